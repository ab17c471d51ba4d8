// SPDX-License-Identifier: GPL-2.0
/*
 * Groups and devices that hang.
 *
 * I/Os that hang must not take up the room of other groups.  A group is stuck if none of its bios
 * in flight has completed for long.  Then these bios do not count any more, and of its bios that
 * wait only one is dispatched now and then.  The group is no longer stuck as soon as one of its
 * bios completes.  If a device completes nothing at all, the gate is of no use, and all bios are
 * dispatched.
 *
 * All functions of this file are called with dev->lock held.
 */
#include "../ioband.h"

/* A group is stuck after this time, and this many latencies, without a completion, ... */
#define IOBAND_STUCK_NS		(100 * NSEC_PER_MSEC)
#define IOBAND_STUCK_LATENCIES	50
/* ... and the device is dead, so that all bios are dispatched, after these. */
#define IOBAND_DEAD_NS		(250 * NSEC_PER_MSEC)
#define IOBAND_DEAD_LATENCIES	8

/*
 * A device gets a bio of a group that is not stuck.  If only stuck bios were in flight, the time
 * without a completion tells nothing, and begins anew.
 */
void ioband_hang_arrived(struct ioband_sharer *sh, s64 now)
{
	if (sh->infl == sh->stuck)
		sh->progress_ns = now;
}

/* Has nothing completed for so long that the gate is of no use? */
bool ioband_is_dead(const struct ioband_sharer *sh, s64 now)
{
	return sh->infl && now - sh->progress_ns > IOBAND_DEAD_NS &&
	       now - sh->progress_ns > IOBAND_DEAD_LATENCIES * sh->latency;
}

/*
 * Has a bio that completes hung, or was it in flight while others hung?  Its latency, and the
 * number of bios in flight meanwhile, tell nothing of the device.
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

/* Make a group active again, if it is stuck. */
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

void ioband_unstick_all(struct ioband_sharer *sh, s64 now)
{
	struct ioband_grp *grp, *next;

	list_for_each_entry_safe(grp, next, &sh->hung, share.busy)
		ioband_unstick(grp, now);
}

/* A bio of a group has been dispatched. */
void ioband_hang_dispatched(struct ioband_grp *grp, s64 now)
{
	struct ioband_sharer *sh = &grp->dev->share;
	struct ioband_share *g = &grp->share;

	if (g->own.where == IOBAND_STUCK) {
		sh->stuck++;
		g->probe_ns = now + IOBAND_STUCK_NS;
		list_move_tail(&g->busy, &sh->hung);
	} else if (g->infl == 1) {
		g->progress_ns = now;
		ioband_overdue_begin(&sh->overdue, &g->overdue);
		list_add_tail(&g->busy, &sh->busy);
	}
}

/* A stuck group that may dispatch one more bio, to see whether it completes; NULL if none. */
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

/*
 * Look for groups that hang, from time to time, while others wait.  Returns true if the number of
 * stuck bios has changed, so that there may be room.  Sets dev->share.timer.
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
	if (sh->timer.state != IOBAND_TIMED || (s64)sh->timer.key > sh->watch_ns)
		ioband_time(dev, &sh->timer, sh->watch_ns);
	return sh->stuck != before;
}
