// SPDX-License-Identifier: GPL-2.0
/*
 * Groups for which other groups wait at the share gate.
 *
 * The group with the least start tag is first, of those that have bios waiting.  A group that does
 * one I/O after the other never has one waiting.  Three rules are for such groups:
 *
 * Anticipation, on devices that do one I/O at a time: while such a group is behind, and its I/O is
 * in flight or its next one is about to come, other groups wait, for as long as it usually takes.
 * They wait only if it takes less than an eighth of the time between two completions.
 *
 * Kept places, on devices with a queue: when an I/O of a group completes that is behind and submits
 * the next one quickly, its place in the device is kept for that group, for as long as it usually
 * takes.  Other groups use the other places.  This matters where I/Os complete in bursts, and
 * threads run only after a burst.
 *
 * Overdue I/Os, on disks that choose the next I/O among those that they have: when an I/O of a
 * group that is behind has taken a part of what an I/O takes on an idle disk, no further I/O is
 * dispatched, because the disk could do that one first.  Then the worst latency depends on the I/Os
 * that the disk had before, not on those that come later.  Where I/Os take no longer without that,
 * nobody waits, see overdue.h.
 *
 * In addition, the start tag of such a group may lie in the past, see ioband_catch_up() in tree.c.
 *
 * All functions of this file are called with dev->lock held.
 */
#include <linux/ktime.h>

#include "../ioband.h"

/* The longest time that others wait for a group. */
#define IOBAND_GRACE_NS		(2 * NSEC_PER_MSEC)
#define IOBAND_GRACE_SLACK_NS	(10 * NSEC_PER_USEC)
/* Waiting for a group costs at most 1 / GRACE_PART of the time of the device, ... */
#define IOBAND_GRACE_PART	8
/* ... and keeping a place for it 1 / PLACE_PART of the time of that place. */
#define IOBAND_PLACE_PART	16
/* The most groups that are looked at on each level. */
#define IOBAND_AWAIT_GROUPS	4
/*
 * An I/O is overdue after 1 / PART of what it takes on an idle disk: less I/O is done if that is
 * sooner, and the worst latency grows if it is later.  An I/O that has taken TIMES as long as on an
 * idle disk is late for another reason.
 */
#define IOBAND_OVERDUE_PART	3
#define IOBAND_OVERDUE_TIMES	8
/* The number of think times (from a completion to the next bio) after which their mean is known. */
#define IOBAND_MIN_THINK	4

/* Does a device do one I/O at a time?  False while its depth is not known. */
bool ioband_is_serial(const struct ioband_sharer *sh)
{
	return sh->depth.tags == 1 ||
	       (ioband_depth_is_settled(&sh->depth) && sh->depth.at_once < IOBAND_SERIAL);
}

/* Is a group so quick that waiting for it costs little of what the device does? */
static bool ioband_is_sync(const struct ioband_sharer *sh,
			   const struct ioband_share *g)
{
	if (g->nr_think < IOBAND_MIN_THINK)
		return false;
	return ioband_is_serial(sh) ? IOBAND_GRACE_PART * g->think <= sh->gap :
				      IOBAND_PLACE_PART * g->think <= sh->latency;
}

/* Others have waited for a group in vain: it has to show anew how quick it is. */
static void ioband_in_vain(struct ioband_grp *grp, s64 now)
{
	grp->share.nr_think = 0;
	ioband_unawait(grp, now);
}

/* Let other groups wait for a group no longer. */
void ioband_unawait(struct ioband_grp *grp, s64 now)
{
	struct ioband_share *g = &grp->share;

	g->nr_back = 0;
	g->sync = false;
	if (list_empty(&g->awaited))
		return;
	list_del_init(&g->awaited);
	ioband_move(grp, IOBAND_AWAY, now);
}

/*
 * End waiting for groups that have not submitted I/O in time.  The list is not sorted by time:
 * others may wait for a group for as much longer as for a group before it in the list.
 */
void ioband_expire_awaited(struct ioband_dev *dev, s64 now)
{
	struct ioband_grp *grp, *next;

	list_for_each_entry_safe(grp, next, &dev->share.awaited, share.awaited) {
		if (now < grp->share.grace)
			break;
		ioband_in_vain(grp, now);
	}
}

/* Is a group that has nothing waiting worth waiting for? */
static bool ioband_is_awaited(struct ioband_sharer *sh, struct ioband_grp *grp, s64 now)
{
	struct ioband_share *g = &grp->share;

	if (!g->sync)
		return false;
	if (now < g->grace || (g->infl && (!g->nr_back || ioband_is_serial(sh))))
		return true;
	ioband_in_vain(grp, now);
	return false;
}

/*
 * Would a disk do other I/Os before one of a group that it has had for long?  Then the timer is set
 * as well: a broken disk may complete nothing at all.
 */
static bool ioband_is_overdue(struct ioband_dev *dev, struct ioband_grp *grp, s64 now)
{
	s64 since_ns = grp->share.progress_ns, idle_ns = dev->share.depth.idle_ns;
	s64 until_ns = since_ns + IOBAND_OVERDUE_TIMES * idle_ns;

	if (dev->share.depth.chooses <= 1 || !grp->share.infl ||
	    IOBAND_OVERDUE_PART * (now - since_ns) <= idle_ns)
		return false;
	if (!ioband_overdue_waits(&dev->share.overdue, &grp->share.overdue, now - since_ns, now) ||
	    now >= until_ns)
		return false;
	ioband_time(dev, &dev->share.timer, until_ns);
	return true;
}

/* On one level: do bios below @next have to wait for the sake of its siblings? */
static bool ioband_must_await_at(struct ioband_dev *dev, struct ioband_node *next, s64 now)
{
	struct rb_node *node = rb_first_cached(&next->above->flying);
	struct ioband_sharer *sh = &dev->share;
	unsigned int kept = 0;

	for (int i = 0; node && i < IOBAND_AWAIT_GROUPS; i++) {
		struct ioband_node *behind = rb_entry(node, struct ioband_node, node);
		struct ioband_grp *grp;

		if (!ioband_tag_before(behind->tag, next->tag))
			break;
		node = rb_next(node);
		grp = ioband_behind(behind);
		if (ioband_is_overdue(dev, grp, now))
			return true;
		if (!ioband_is_awaited(sh, grp, now))
			continue;
		if (ioband_is_serial(sh)) {
			if (!grp->share.infl)
				ioband_time(dev, &sh->timer, grp->share.grace);
			return true;
		}
		if (now < grp->share.grace)
			kept += grp->share.nr_back;
		if (kept && ioband_counted(sh) + kept >= ioband_depth_now(sh)) {
			ioband_time(dev, &sh->timer, grp->share.grace);
			return true;
		}
	}
	return false;
}

/*
 * Has a group with the least tag, and with bios waiting, to wait for another one?  Free places may
 * be kept for such a group; if @next is dispatched on credit, there may be no free place.  While
 * this returns true, dev->share.timer is set or a bio is in flight.
 */
bool ioband_must_await(struct ioband_dev *dev, struct ioband_grp *next, s64 now)
{
	for (struct ioband_node *n = &next->share.own; n->above; n = n->above)
		if (ioband_must_await_at(dev, n, now))
			return true;
	return false;
}

/* All bios that a group had waiting are in flight. */
void ioband_await_all_sent(struct ioband_grp *grp)
{
	grp->share.sync = ioband_is_sync(&grp->dev->share, &grp->share);
}

/* Account for the time from a group's last completion to its next bio: mean and deviation. */
static void ioband_think(struct ioband_share *g, s64 now)
{
	s64 t = min(now - g->last_done,
		    max((s64)IOBAND_GRACE_NS, IOBAND_GRACE_PART * g->think));

	if (g->nr_think) {
		g->think_dev += (abs(t - g->think) - g->think_dev) / 4;
		g->think += (t - g->think) / 8;
	} else {
		g->think_dev = t / 2;
		g->think = t;
	}
	g->nr_think++;
}

/* A bio of a group has come to the gate. */
void ioband_await_arrived(struct ioband_grp *grp, s64 now)
{
	struct ioband_share *g = &grp->share;

	/* bios that passed without the lock meanwhile were not seen here */
	if (g->last_done < grp->dev->share.closed_ns)
		g->nr_back = 0;
	if (g->nr_back && g->own.where != IOBAND_QUEUED)
		ioband_think(g, now);
	if (g->nr_back)
		g->nr_back--;
	list_del_init(&g->awaited);
}

/*
 * A bio of a group has completed, or waits for a limit now.  If the group has nothing waiting, this
 * decides whether others wait for it.
 */
void ioband_await_returned(struct ioband_grp *grp, s64 now)
{
	struct ioband_sharer *sh = &grp->dev->share;
	struct ioband_share *g = &grp->share;

	g->last_done = now;
	g->grace = now + min(g->think + 4 * g->think_dev + IOBAND_GRACE_SLACK_NS,
			     IOBAND_GRACE_NS);
	g->nr_back++;
	if (g->own.where != IOBAND_FLYING)
		return;
	g->sync = ioband_is_sync(sh, g) && !grp->offline && !grp->dev->dead && sh->nr_active > 1;
	if (!g->sync)
		g->nr_back = min(g->nr_back, 1U);
	if (g->infl || !list_empty(&g->leased))
		return;
	if (g->sync)
		list_add_tail(&g->awaited, &sh->awaited);
	else
		ioband_move(grp, IOBAND_AWAY, now);
}
