// SPDX-License-Identifier: GPL-2.0
/*
 * Whom others wait for at the share gate.
 *
 * The least start tag goes first, of those that are seen waiting.  A group that does
 * one I/O after the other is never seen.  Three rules are for its sake:
 *
 * Anticipation, on devices that do one I/O at a time: when such a group is behind and
 * in flight, or about to come back, nobody else goes, for as long as it usually takes.
 * Only who takes less than an eighth of the time between two completions for that is
 * waited for.
 *
 * Kept places, on devices with a queue: what has just left the device and belongs to
 * a group that is behind and comes back at once leaves its place to that group, for as
 * long as this usually takes.  Others use the rest.  This matters where completions
 * come in bursts, and threads run only after them.
 *
 * Overdue I/Os, on disks that choose among what they have: while one of a group that is behind has
 * taken a part of what it takes on an idle disk, no more are given to the disk to choose before it.
 * How long it takes at worst is then by what was there before it, not by what comes after it.
 *
 * And what a group has fallen behind while it had all it wants in flight it may claim when
 * it comes back, up to a few turnovers of the device.
 *
 * All functions here want dev->lock.
 */
#include <linux/ktime.h>

#include "../ioband.h"

/* Nobody is waited for longer than this. */
#define IOBAND_GRACE_NS		(2 * NSEC_PER_MSEC)
#define IOBAND_GRACE_SLACK_NS	(10 * NSEC_PER_USEC)
/* Waiting for a group costs at most 1 / this of the device ... */
#define IOBAND_GRACE_PART	8
/* ... and keeping its place in the device 1 / this of that place. */
#define IOBAND_PLACE_PART	16
/* Groups that are looked at on each level. */
#define IOBAND_AWAIT_GROUPS	4
/*
 * An I/O is overdue after 1 / PART of what it takes on an idle disk: less is done if that is
 * sooner, and it takes longer if that is later.  After TIMES as long it is for another reason.
 */
#define IOBAND_OVERDUE_PART	3
#define IOBAND_OVERDUE_TIMES	8
/* Completions that a think time is known from. */
#define IOBAND_MIN_THINK	4

/**
 * ioband_is_serial - does a device do one I/O at a time?
 * @sh:	the device
 *
 * Return: true for a device with one tag; else false while it is not known.
 */
bool ioband_is_serial(const struct ioband_sharer *sh)
{
	return sh->depth.tags == 1 ||
	       (ioband_depth_is_settled(&sh->depth) && sh->depth.at_once < IOBAND_SERIAL);
}

/* Waiting for it costs no more than a part of what the device does meanwhile. */
static bool ioband_is_sync(const struct ioband_sharer *sh,
			   const struct ioband_share *g)
{
	if (g->nr_think < IOBAND_MIN_THINK)
		return false;
	return ioband_is_serial(sh) ? IOBAND_GRACE_PART * g->think <= sh->gap :
				      IOBAND_PLACE_PART * g->think <= sh->latency;
}

/* It was to come back by now.  It has to show again how quick it is. */
static void ioband_in_vain(struct ioband_grp *grp, s64 now)
{
	grp->share.nr_think = 0;
	ioband_unawait(grp, now);
}

/**
 * ioband_unawait - nobody waits for a group any more
 * @grp:	the group
 * @now:	ns
 */
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

/**
 * ioband_expire_awaited - nobody waits for those who did not come back
 * @dev:	the device
 * @now:	ns
 *
 * One of them may be awaited for as much longer as one before it.
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

/* Is a group with all it wants in flight worth waiting for? */
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
 * Would a disk do others before what a group has there for long?  If so the timer is set, as a disk
 * that is broken may do nothing at all.
 */
static bool ioband_is_overdue(struct ioband_dev *dev, const struct ioband_grp *grp, s64 now)
{
	s64 since_ns = grp->share.progress_ns, idle_ns = dev->share.depth.idle_ns;
	s64 until_ns = since_ns + IOBAND_OVERDUE_TIMES * idle_ns;

	if (dev->share.depth.chooses <= 1 || !grp->share.infl || now >= until_ns ||
	    IOBAND_OVERDUE_PART * (now - since_ns) <= idle_ns)
		return false;
	ioband_time(dev, &dev->share.timer, until_ns);
	return true;
}

/* On one level: may what is below @next not go, for the sake of its siblings? */
static bool ioband_bend_at(struct ioband_dev *dev, struct ioband_node *next, s64 now)
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

/**
 * ioband_bend - is it not the turn of a group, although its tag is the least?
 * @dev:	the device
 * @next:	the group, which has something waiting
 * @now:	ns
 *
 * On a serial device others wait for who comes back at once; on others free places may be of
 * groups that fell behind and come back at once.  There may be none, where one goes on credit.
 * If only time is awaited, dev->share.timer is set; else something is in flight.
 *
 * Return: true if nobody may go now.
 */
bool ioband_bend(struct ioband_dev *dev, struct ioband_grp *next, s64 now)
{
	for (struct ioband_node *n = &next->share.own; n->above; n = n->above)
		if (ioband_bend_at(dev, n, now))
			return true;
	return false;
}

/**
 * ioband_all_sent - all that a group had waiting is in flight
 * @grp:	the group
 */
void ioband_all_sent(struct ioband_grp *grp)
{
	grp->share.sync = ioband_is_sync(&grp->dev->share, &grp->share);
}

/* How long it took to come back, on average, and the deviation from it. */
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

/**
 * ioband_came - a bio of a group comes to the gate
 * @grp:	the group
 * @now:	ns
 */
void ioband_came(struct ioband_grp *grp, s64 now)
{
	struct ioband_share *g = &grp->share;

	/* what passed meanwhile is not known here */
	if (g->last_done < grp->dev->share.closed)
		g->nr_back = 0;
	if (g->nr_back && g->own.where != IOBAND_QUEUED)
		ioband_think(g, now);
	if (g->nr_back)
		g->nr_back--;
	list_del_init(&g->awaited);
}

/**
 * ioband_got_back - a bio of a group has completed, or waits for a limit now
 * @grp:	the group
 * @now:	ns
 *
 * If it has nothing waiting: is it about to send more?
 */
void ioband_got_back(struct ioband_grp *grp, s64 now)
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
