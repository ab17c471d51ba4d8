// SPDX-License-Identifier: GPL-2.0
/*
 * Groups, and devices, that hang.
 *
 * What hangs must not keep the places of others.  A group is stuck if none of what it has in
 * flight has completed for long: that counts no more then, and of what the group has waiting
 * goes only one now and then.  It is stuck no more as soon as one completes.  If nothing at
 * all completes the gate is of no use, and everything goes.
 *
 * All functions here want dev->lock.
 */
#include "../ioband.h"

/* Without a completion for so long, and for so many latencies: a group is stuck ... */
#define IOBAND_STUCK_NS		(100 * NSEC_PER_MSEC)
#define IOBAND_STUCK_LATENCIES	50
/* ... or the device is, and gets all that there is. */
#define IOBAND_DEAD_NS		(250 * NSEC_PER_MSEC)
#define IOBAND_DEAD_LATENCIES	8

/**
 * ioband_hope - a group that is not stuck has something for a device
 * @sh:		the device
 * @now:	ns
 *
 * That nothing completed for long says nothing if only what hangs was in flight.
 */
void ioband_hope(struct ioband_sharer *sh, s64 now)
{
	if (sh->infl == sh->stuck)
		sh->last = now;
}

/**
 * ioband_is_dead - has nothing completed for so long that the gate is of no use?
 * @sh:		the device
 * @now:	ns
 *
 * Return: true if so.
 */
bool ioband_is_dead(const struct ioband_sharer *sh, s64 now)
{
	return sh->infl && now - sh->last > IOBAND_DEAD_NS &&
	       now - sh->last > IOBAND_DEAD_LATENCIES * sh->latency;
}

/**
 * ioband_has_hung - has a bio that completes hung, or been in flight beside what has?
 * @grp:	its group
 * @bio:	the bio
 * @now:	ns
 *
 * How long it took, and how many were in flight meanwhile, says nothing of what the device does.
 *
 * Return: true if so.
 */
bool ioband_has_hung(struct ioband_grp *grp, const struct bio *bio, s64 now)
{
	struct ioband_sharer *sh = &grp->dev->share;

	if (grp->share.own.where == IOBAND_STUCK || ioband_is_dead(sh, now)) {
		sh->hung_ns = now;
		ioband_window_start(&sh->depth.window);
	}
	return (s64)bio->issue_time_ns < sh->hung_ns &&
	       now - (s64)bio->issue_time_ns > IOBAND_STUCK_NS;
}

static s64 ioband_stuck_ns(const struct ioband_sharer *sh)
{
	return max(IOBAND_STUCK_NS, IOBAND_STUCK_LATENCIES * sh->latency);
}

static void ioband_stick(struct ioband_grp *grp, s64 now)
{
	struct ioband_share *g = &grp->share;

	grp->dev->share.stuck += g->infl;
	ioband_cost_again(&grp->dev->share.cost);
	ioband_depth_undo(&grp->dev->share.depth);
	g->probe_ns = now + IOBAND_STUCK_NS;
	list_move_tail(&g->busy, &grp->dev->share.hung);
	ioband_move(grp, IOBAND_STUCK, now);
}

/**
 * ioband_unstick - a group is not stuck, or is to be treated as if it were not
 * @grp:	the group
 * @now:	ns
 */
void ioband_unstick(struct ioband_grp *grp, s64 now)
{
	struct ioband_share *g = &grp->share;

	if (g->own.where != IOBAND_STUCK)
		return;
	grp->dev->share.stuck -= g->infl;
	g->progress_ns = now;
	list_move_tail(&g->busy, &grp->dev->share.busy);
	if (ioband_has_waiting(g))
		ioband_queue(grp, 0, now);
	else
		ioband_move(grp, IOBAND_FLYING, now);
}

/**
 * ioband_unstick_all - no group is stuck any more
 * @sh:		the device
 * @now:	ns
 */
void ioband_unstick_all(struct ioband_sharer *sh, s64 now)
{
	struct ioband_grp *grp, *next;

	list_for_each_entry_safe(grp, next, &sh->hung, share.busy)
		ioband_unstick(grp, now);
}

/**
 * ioband_gave - a group's I/O has been given to the device
 * @grp:	the group
 * @now:	ns
 */
void ioband_gave(struct ioband_grp *grp, s64 now)
{
	struct ioband_sharer *sh = &grp->dev->share;
	struct ioband_share *g = &grp->share;

	if (g->own.where == IOBAND_STUCK) {
		sh->stuck++;
		g->probe_ns = now + IOBAND_STUCK_NS;
		list_move_tail(&g->busy, &sh->hung);
	} else if (g->infl == 1) {
		g->progress_ns = now;
		list_add_tail(&g->busy, &sh->busy);
	}
}

/**
 * ioband_probes - a stuck group that may send one more, to see whether it still is
 * @sh:		the device
 * @now:	ns
 *
 * Return: NULL if there is none.
 */
struct ioband_grp *ioband_probes(struct ioband_sharer *sh, s64 now)
{
	struct ioband_grp *grp, *next;

	list_for_each_entry_safe(grp, next, &sh->hung, share.busy) {
		if (now < grp->share.probe_ns)
			break;
		if (ioband_has_waiting(&grp->share))
			return grp;
		grp->share.probe_ns = now + IOBAND_STUCK_NS;
		list_move_tail(&grp->share.busy, &sh->hung);
	}
	return NULL;
}

/**
 * ioband_watch - look whether something hangs, now and then, while groups wait
 * @dev:	the device
 * @now:	ns
 *
 * Sets dev->share.timer.
 *
 * Return: true if places have become free.
 */
bool ioband_watch(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	unsigned int before = sh->stuck;
	struct ioband_grp *grp, *next;

	if (!sh->infl && !dev->draining)
		return false;
	if (now >= sh->watch_ns) {
		sh->watch_ns = now + ioband_stuck_ns(sh) / 2;
		list_for_each_entry_safe(grp, next, &sh->busy, share.busy) {
			if (now - grp->share.progress_ns < ioband_stuck_ns(sh))
				break;
			ioband_stick(grp, now);
		}
		ioband_depth_keep(&sh->depth);
	}
	if (sh->timer.state != IOBAND_TIMED)
		ioband_time(dev, &sh->timer, sh->watch_ns);
	return sh->stuck != before;
}
