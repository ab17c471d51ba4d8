// SPDX-License-Identifier: GPL-2.0
/*
 * Debts of device time, for bios that had to pass the share gate out of turn.
 *
 * Such a bio advances the tags of its group, which so is ahead of others.  The group would wait
 * for its next turn until all others have had as much; that can take minutes if its weight is
 * low, and reads of the group would wait as well.  So tags are bounded: a group is ahead by
 * IOBAND_DEBT_NS of device time at most.  For what goes beyond that, tasks wait:
 *
 *  - The tasks that submit such bios wait on their way to user space, for IOBAND_DELAY_NS at most.
 *    Most of these bios are metadata and swap.
 *  - Writeback that others wait for is submitted by the flusher, by a task of another group, or
 *    by a worker.  The tasks that would dirty more pages wait, see writeback/pace.c, until the
 *    others have had as much for their weight: the pages would not have been written before
 *    either.  The others may use the device less, or in ways that do not advance the virtual
 *    time; so the wait ends after TIMES the time that a device takes which does nothing else, and
 *    after IOBAND_OWE_NS.  Without this rule a group that syncs its own pages all the time could
 *    have most of the device, whatever its weight is.
 *
 * A node's ->due is the tag that it would have if nothing had been forgiven since writeback first
 * passed out of turn.
 */
#include <linux/ktime.h>

#include "../ioband.h"

/* The device time by which a group may be ahead. */
#define IOBAND_DEBT_NS		(100 * NSEC_PER_MSEC)
/* The longest wait for a bio that had to pass, of the tasks that submit such bios ... */
#define IOBAND_DELAY_NS		(250 * NSEC_PER_MSEC)
/* ... and of those that would dirty pages, after writeback had to pass. */
#define IOBAND_OWE_NS		(10LL * NSEC_PER_SEC)
#define IOBAND_OWE_TIMES	2
/* They do not wait for this device time: it is that of some bios, which all groups have ahead. */
#define IOBAND_OWE_FREE_NS	(20 * NSEC_PER_MSEC)

/* Are no siblings of a node active?  Then it is ahead of nobody. */
static bool ioband_node_is_alone(const struct ioband_node *n)
{
	return n->above->active_sum <= (ioband_is_active(n->where) ? n->weight : 0);
}

/* Has the device room for more I/O, and does no group wait for it or come back at once? */
static bool ioband_has_room(struct ioband_dev *dev)
{
	struct ioband_sharer *sh = &dev->share;

	return !ioband_first_grp(sh) && list_empty(&sh->awaited) &&
	       ioband_counted(sh) + ioband_uncounted(dev) < ioband_depth_now(sh);
}

/* The device time, ns, until siblings have had as much as a node, without @free_ns. */
static s64 ioband_node_ahead_ns(const struct ioband_node *n, s64 free_ns)
{
	s64 ahead = n->due - n->above->vtime;

	if (free_ns)
		ahead -= ioband_charge_tag((u64)free_ns << 8, n->inv);
	return ahead > 0 ? ioband_tag_ns(n, ahead) : 0;
}

/* How long do tasks have to wait before they dirty more pages, for one node? */
static s64 ioband_node_owed_ns(const struct ioband_node *n, s64 now)
{
	if (now >= n->owed_until_ns || ioband_node_is_alone(n))
		return 0;
	return min(ioband_node_ahead_ns(n, IOBAND_OWE_FREE_NS), n->owed_until_ns - now);
}

/*
 * A bio is about to pass out of turn; its group has not been charged for it yet.  If the group owes
 * nothing, its account begins at the virtual time; it begins anew while the device has room, or no
 * other group has I/O.  dev->lock held.
 */
void ioband_owe_begin(struct ioband_grp *grp, s64 now)
{
	bool has_room = ioband_has_room(grp->dev);

	for (struct ioband_node *n = &grp->share.own; n->above; n = n->above)
		if (now >= n->owed_until_ns || ioband_tag_before(n->due, n->above->vtime) ||
		    ioband_node_is_alone(n) || has_room)
			n->due = n->above->vtime;
}

/* A node has been charged for writeback that had to pass: its ->due counts from now on. */
static void ioband_node_owe(struct ioband_dev *dev, struct ioband_node *n, s64 now)
{
	n->owed_until_ns = now + min(IOBAND_OWE_TIMES * ioband_node_ahead_ns(n, 0), IOBAND_OWE_NS);
	if (ioband_node_owed_ns(n, now))
		WRITE_ONCE(dev->share.owed_until_ns,
			   max(dev->share.owed_until_ns, n->owed_until_ns));
}

/* Bound what a group is ahead once it is charged for a bio that had to pass.  dev->lock held. */
void ioband_owe_share(struct ioband_grp *grp, bool writeback, s64 now)
{
	struct ioband_share *g = &grp->share;
	s64 owed_ns = 0;

	lockdep_assert_held(&grp->dev->lock);
	for (struct ioband_node *n = &g->own; n->above; n = n->above) {
		if (writeback)
			ioband_node_owe(grp->dev, n, now);
		owed_ns = max(owed_ns, ioband_node_bound(n, IOBAND_DEBT_NS));
	}
	if (!owed_ns)
		return;
	owed_ns += max(g->owed_until_ns - now, 0);
	WRITE_ONCE(g->owed_until_ns, now + min(owed_ns, IOBAND_DELAY_NS));
}

/* May ioband_share_owed_ns() of some group be more than 0? */
bool ioband_is_owed(const struct ioband_sharer *sh, s64 now)
{
	return now < READ_ONCE(sh->owed_until_ns);
}

/* Have the submitter of a bio that had to pass wait, if it is a task of the bio's group. */
void ioband_share_wait(struct ioband_grp *grp)
{
	s64 until_ns = READ_ONCE(grp->share.owed_until_ns);
	s64 ns = until_ns ? until_ns - (s64)ktime_get_ns() : 0;

	guard(rcu)();
	if (ns > 0 && ioband_asker() == &pd_to_blkg(&grp->pd)->blkcg->css)
		ioband_wait_for(grp->dev->disk, NULL, ns);
}

/*
 * How long tasks of a group, whose writeback may have passed out of turn, have to wait before they
 * dirty more pages: ns, an estimate: ask again later.  @below: they are of a group below @grp that
 * has not used the device yet.  Not in hard interrupts; i_pages may be held, dev->lock not.
 */
s64 ioband_share_owed_ns(struct ioband_grp *grp, bool below)
{
	struct ioband_node *n = below ? &grp->share.all : &grp->share.own;
	struct ioband_dev *dev = grp->dev;
	s64 owed_ns = 0, now;

	if (likely(!READ_ONCE(dev->share.owed_until_ns)) ||
	    (below && !pd_to_blkg(&grp->pd)->parent))
		return 0;
	now = ktime_get_ns();
	if (!ioband_is_owed(&dev->share, now))
		return 0;
	guard(spinlock_irqsave)(&dev->lock);
	if (dev->dead || ioband_is_moot(dev, now) || ioband_has_room(dev))
		return 0;
	for (; n->above; n = n->above)
		owed_ns = max(owed_ns, ioband_node_owed_ns(n, now));
	return owed_ns;
}
