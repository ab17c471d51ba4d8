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
 *  - Writeback for sync() or fsync() is submitted by the flusher, or by a task of another group.
 *    The tasks that would dirty more pages wait, see writeback/pace.c: not before the others have
 *    had as much for their weight would the pages have been written without that sync().  The
 *    wait ends IOBAND_OWE_NS after the last such bio; without it a group that syncs its own pages
 *    all the time could have most of the device, whatever its weight is.
 *
 * A node's ->due is what its tag would be if nothing had been forgiven.  It counts for
 * IOBAND_OWE_NS after ->owed_ns, and only if it is ahead of the tag.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "../ioband.h"

/* The device time by which a group may be ahead. */
#define IOBAND_DEBT_NS		(100 * NSEC_PER_MSEC)
/* The longest wait for a bio that had to pass, of the tasks that submit such bios ... */
#define IOBAND_DELAY_NS		(250 * NSEC_PER_MSEC)
/* ... and of those that would dirty pages, after writeback had to pass. */
#define IOBAND_OWE_NS		(10LL * NSEC_PER_SEC)
/* They do not wait for this device time: it is that of some bios, which all groups have ahead. */
#define IOBAND_OWE_FREE_NS	(20 * NSEC_PER_MSEC)

/* Are no siblings of a node active?  Then it is ahead of nobody. */
static bool ioband_node_is_alone(const struct ioband_node *n)
{
	return n->above->active_sum <= (ioband_is_active(n->where) ? n->weight : 0);
}

/* How long do tasks have to wait before they dirty more pages, for one node? */
static s64 ioband_node_owed_ns(const struct ioband_node *n, s64 now)
{
	s64 left_ns = IOBAND_OWE_NS - (now - n->owed_ns);
	s64 ahead = n->due - n->above->vtime -
		    ioband_charge_tag((u64)IOBAND_OWE_FREE_NS << 8, n->inv);

	if (left_ns <= 0 || ahead <= 0 || ioband_node_is_alone(n))
		return 0;
	return min(ioband_tag_ns(n, ahead), left_ns);
}

/* A node is charged for writeback that had to pass: its ->due counts from now on. */
static void ioband_node_owe(struct ioband_dev *dev, struct ioband_node *n, s64 now)
{
	if (now - n->owed_ns > IOBAND_OWE_NS || ioband_tag_before(n->due, n->tag) ||
	    ioband_node_is_alone(n))
		n->due = n->tag;
	n->owed_ns = now;
	if (ioband_node_owed_ns(n, now))
		WRITE_ONCE(dev->share.owed_until, jiffies + nsecs_to_jiffies(IOBAND_OWE_NS));
}

/**
 * ioband_owe_share - bound what a group is ahead of others, for a bio that had to pass
 * @grp:	the group, which has been charged for it
 * @writeback:	is the bio writeback?
 * @now:	ns
 *
 * Context: dev->lock held.
 */
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

/**
 * ioband_is_owed - tell whether tasks may have to wait before they dirty pages
 * @sh:		the device
 *
 * Context: any.
 * Return: true if ioband_share_owed_ns() of some group may be more than 0.
 */
bool ioband_is_owed(const struct ioband_sharer *sh)
{
	return time_before(jiffies, READ_ONCE(sh->owed_until));
}

/**
 * ioband_share_debt_ns - find how long tasks have to wait that submitted bios that had to pass
 * @grp:	the group, which has the debt for these bios
 *
 * Context: any.
 * Return: ns.
 */
s64 ioband_share_debt_ns(struct ioband_grp *grp)
{
	s64 until_ns = READ_ONCE(grp->share.owed_until_ns);

	return until_ns ? max(until_ns - (s64)ktime_get_ns(), 0) : 0;
}

/**
 * ioband_share_owed_ns - find how long tasks have to wait before they dirty more pages
 * @grp:	the group, whose writeback may have passed out of turn
 *
 * They do not have to while the gate is open, or while no other group has I/O.
 *
 * Context: any but hard interrupts; dev->lock not held.
 * Return: ns, an estimate: tasks have to ask again after some time.
 */
s64 ioband_share_owed_ns(struct ioband_grp *grp)
{
	struct ioband_dev *dev = grp->dev;
	s64 owed_ns = 0, now;

	if (likely(!ioband_is_owed(&dev->share)))
		return 0;
	now = ktime_get_ns();
	guard(spinlock_irqsave)(&dev->lock);
	if (dev->dead || ioband_is_moot(dev, now))
		return 0;
	for (struct ioband_node *n = &grp->share.own; n->above; n = n->above)
		owed_ns = max(owed_ns, ioband_node_owed_ns(n, now));
	return owed_ns;
}
