// SPDX-License-Identifier: GPL-2.0
/*
 * The share gate of a device, which holds bios that have passed their limits.
 *
 * As many bios may be in flight as the device does at once, see depth.h.  Then the gate holds
 * further bios, and whenever there is room it dispatches one of the group that tree.c says is next,
 * unless another group is worth waiting for, see await.c.  Room matters only for a group that leads
 * another one: a group that leads none may have more in flight.
 *
 * In each group, writeback waits behind bios that tasks wait for.
 *
 * Bios that need not wait do not come here, see bypass.c.
 */
#include <linux/ktime.h>
#include <trace/events/ioband.h>

#include "../ioband.h"

/* The most bios that are dispatched in one hold of dev->lock. */
#define IOBAND_SHARE_QUANTUM	64
/* Writeback of a group passes after others began to wait for a page: so long, or for latencies. */
#define IOBAND_HURRY_NS		(100 * NSEC_PER_MSEC)
#define IOBAND_HURRY_LATENCIES	50

/* The device time that a bio takes, ns << 8.  dev->lock held. */
u64 ioband_bio_cost(struct ioband_sharer *sh, const struct bio *bio)
{
	return ioband_cost_of(&sh->cost, bio_data_dir(bio), ioband_bio_length(bio));
}

static struct bio *ioband_peek(struct ioband_grp *grp)
{
	return bio_list_peek(ioband_next_fifo(&grp->share));
}

/*
 * The room for more bios below @depth; less than 0 if there are too many.  Bios that had to pass,
 * and stuck ones, take up none.
 */
static int ioband_tags_left(struct ioband_dev *dev, unsigned int depth)
{
	struct ioband_sharer *sh = &dev->share;

	return (int)depth - (int)(ioband_counted(sh) + ioband_uncounted(dev));
}

/*
 * Bios that had to pass (->excess) delay others for half of their time only: while bios wait, each
 * of these that completes gives half of its device time as a credit.  To count one bio for two
 * would be no measure, as their lengths differ.
 */
static bool ioband_has_credit(struct ioband_sharer *sh, struct ioband_grp *grp)
{
	return sh->excess &&
	       sh->credit >= ioband_bio_cost(sh, ioband_peek(grp));
}

/* Does a group have to wait because enough bios are in flight? */
static bool ioband_is_full(struct ioband_dev *dev, struct ioband_grp *grp, bool leads)
{
	struct ioband_sharer *sh = &dev->share;
	unsigned int depth = leads ? sh->depth.depth :
			     sh->nr_active == 1 ? sh->depth.alone : sh->depth.most;

	return ioband_tags_left(dev, min(depth + sh->ahead, sh->depth.ceiling)) <= 0;
}

/* Is it of no use to hold bios of a device?  dev->lock held. */
bool ioband_is_moot(const struct ioband_dev *dev, s64 now)
{
	return dev->open || ioband_is_aside(dev) || ioband_is_dead(&dev->share, now);
}

/* May a group dispatch one more bio now? */
static bool ioband_may_go(struct ioband_dev *dev, struct ioband_grp *grp, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	bool leads, full;

	if (ioband_is_moot(dev, now))
		return true;
	if (dev->leasing)
		return !ioband_leads(grp, dev->share.lease_ns);
	leads = ioband_leads(grp, 0);
	full = ioband_is_full(dev, grp, leads);
	if (full && !ioband_has_credit(sh, grp)) {
		sh->depth.window.held++;
		return false;
	}
	if (ioband_must_await(dev, grp, now))
		return false;
	if (full) {
		sh->credit -= ioband_bio_cost(sh, ioband_peek(grp));
		sh->excess++;
	}
	sh->depth.window.led += leads;
	return true;
}

/* The group whose next bio may be dispatched now; NULL if there is none. */
static struct ioband_grp *ioband_next_grp(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	struct ioband_grp *grp;

	if (ioband_is_moot(dev, now))
		ioband_unstick_all(sh, now);
	do {
		grp = ioband_probes(sh, now) ?: ioband_first_grp(sh);
		if (grp && (grp->share.own.where == IOBAND_STUCK || ioband_may_go(dev, grp, now)))
			return grp;
	} while ((grp || !list_empty(&sh->hung)) && ioband_watch(dev, now));
	return NULL;
}

/*
 * Dispatch the bios that may go now.  Returns true if @own, a bio that the caller submits, or NULL,
 * is one of them: it is left to the caller.  dev->lock held; ioband_kick() has to follow.
 */
bool ioband_share_pump(struct ioband_dev *dev, struct bio *own, s64 now)
{
	struct ioband_round round = { .own = own, .quantum = IOBAND_SHARE_QUANTUM };
	struct ioband_sharer *sh = &dev->share;
	struct ioband_grp *grp;

	lockdep_assert_held(&dev->lock);
	ioband_lease_look(dev, now);
	ioband_expire_awaited(dev, now);
	while (round.quantum > 0 && (grp = ioband_next_grp(dev, now)))
		ioband_send_next(grp, &round, now);
	if (ioband_first_grp(sh)) {
		/* they wait for want of room, unless to measure the depth, or for the next round */
		if (sh->depth.ceiling == IOBAND_DEPTH_MAX && round.quantum > 0)
			sh->last_wait_ns = now;
		ioband_lease_wait(dev, now);
	}
	/* more bios may have to be dispatched: go on in the next hold of the lock */
	if (round.quantum <= 0)
		ioband_time(dev, &sh->timer, now);
	return round.own_goes;
}

/* As ioband_share_pump(), and set the timer for others. */
bool ioband_share_go(struct ioband_dev *dev, struct bio *own, s64 now)
{
	bool own_goes = ioband_share_pump(dev, own, now);

	ioband_kick(dev, now);
	return own_goes;
}

/* A bio is about to be dispatched out of turn: perhaps there is no room for it. */
static void ioband_exceed(struct ioband_grp *grp, s64 now)
{
	struct ioband_sharer *sh = &grp->dev->share;

	ioband_owe_begin(grp, now);
	if (grp->share.own.where == IOBAND_STUCK ||
	    ioband_tags_left(grp->dev, min(ioband_depth_now(sh), sh->depth.ceiling)) > 0)
		return;
	sh->excess++;
	/* it would have had to wait for want of room, unless to measure the depth */
	if (sh->depth.ceiling == IOBAND_DEPTH_MAX)
		sh->last_wait_ns = now;
}

/* Have writeback that a task of the group waits for itself, for fsync(), hurry as well. */
static void ioband_hurry_synced(struct ioband_share *g)
{
	struct bio_list rest = BIO_EMPTY_LIST;
	struct bio *bio;

	while ((bio = bio_list_pop(&g->fifo[false])))
		bio_list_add(ioband_is_writeback(bio) ? &g->fifo[true] : &rest, bio);
	g->fifo[false] = rest;
}

/* Returns true if more writeback of the group may be held. */
static bool ioband_hurry_locked(struct ioband_grp *grp)
{
	struct ioband_round round = { .quantum = IOBAND_SHARE_QUANTUM };
	struct bio_list *fifo = &grp->share.fifo[true];
	struct ioband_sharer *sh = &grp->dev->share;
	s64 now = ktime_get_ns();

	if (grp->dev->dead || grp->share.own.where == IOBAND_STUCK)
		return false;
	/* on a slow device the flusher itself may wait for so long before it submits a bio */
	grp->share.hurry_until_ns = now +
				    max(IOBAND_HURRY_NS, IOBAND_HURRY_LATENCIES * sh->latency);
	ioband_hurry_synced(&grp->share);
	if (!bio_list_empty(fifo))
		ioband_lease_end(grp->dev, now);
	while (round.quantum > 0 && !bio_list_empty(fifo)) {
		ioband_exceed(grp, now);
		ioband_send_first(grp, fifo, &round, false, now);
		ioband_owe_share(grp, true, now);
	}
	ioband_kick(grp->dev, now);
	return round.quantum <= 0;
}

/*
 * Dispatch the writeback of a group that the gate holds.  Others wait for some of these bios; it is
 * not known for which, nor of which files they are.  There are no more than what the group may have
 * under writeback.  Pages may be under writeback whose bios have not come to the gate yet: for a
 * while these pass as well.  RCU read side; dev->lock not held.
 */
void ioband_share_hurry(struct ioband_grp *grp)
{
	bool more = ioband_has_weights(grp->dev);

	while (more)
		scoped_guard(spinlock_irqsave, &grp->dev->lock)
			more = ioband_hurry_locked(grp);
}

static bool ioband_share_locked(struct ioband_grp *grp, struct bio *bio,
				bool must_pass)
{
	struct ioband_dev *dev = grp->dev;
	struct ioband_share *g = &grp->share;
	s64 now = ktime_get_ns();

	if (ioband_bypass(grp, bio, now))
		return false;
	dev->share.outstanding++;
	ioband_stamp(bio, now, raw_smp_processor_id());
	ioband_await_arrived(grp, now);
	if (g->own.where != IOBAND_STUCK) {
		ioband_hang_arrived(&dev->share, now);
		ioband_queue(grp, ioband_bio_cost(&dev->share, bio), now);
	}
	if (must_pass || (ioband_is_writeback(bio) && now < g->hurry_until_ns)) {
		/* its group is charged for it, and so is ahead of others, see owe.c */
		ioband_exceed(grp, now);
		ioband_give(grp, bio, ioband_bio_length(bio), false, now);
		ioband_owe_share(grp, ioband_is_writeback(bio), now);
		return false;
	}
	bio_list_add(&g->fifo[ioband_is_background(bio)], bio);
	if (ioband_share_go(dev, bio, now))
		return false;
	/* the bio waits now: see ioband_hold() */
	bio->bi_opf &= ~REQ_NOWAIT;
	return true;
}

/* As ioband_share(), for a bio that has to take the lock. */
bool ioband_share_slow(struct ioband_grp *grp, struct bio *bio)
{
	struct ioband_dev *dev = grp->dev;
	bool must_pass, kept;

	must_pass = ioband_must_pass(bio);
	/* let an interrupt complete it: a task that stops polling would keep it in flight */
	if (bio->bi_opf & REQ_POLLED)
		bio_clear_polled(bio);
	scoped_guard(spinlock_irqsave, &dev->lock)
		kept = !dev->dead && ioband_share_locked(grp, bio, must_pass);
	if (must_pass)
		ioband_share_wait(grp);
	return kept;
}

void ioband_share_init(struct ioband_dev *dev)
{
	struct ioband_sharer *sh = &dev->share;
	s64 now = ktime_get_ns();

	ioband_node_init(&sh->top, NULL, IOBAND_WEIGHT_UNIT);
	INIT_LIST_HEAD(&sh->awaited);
	INIT_LIST_HEAD(&sh->busy);
	INIT_LIST_HEAD(&sh->hung);
	ioband_lease_init(sh);
	sh->timer.kind = IOBAND_GRACE;
	sh->idle_since = now;
	ioband_cost_init(&sh->cost);
	ioband_depth_init(&sh->depth, IOBAND_DEPTH_MAX, 1);
	ioband_bypass_init(dev, now);
}

/* A group goes offline: no group waits for it, but its bios keep their places.  dev->lock held. */
void ioband_share_removed(struct ioband_grp *grp)
{
	s64 now = ktime_get_ns();

	lockdep_assert_held(&grp->dev->lock);
	ioband_bypass_removed(grp);
	ioband_lease_gone(grp, now);
	ioband_unawait(grp, now);
	ioband_share_go(grp->dev, NULL, now);
}

/* Move up to *@budget bios to a list, and reduce it.  True if more wait.  dev->lock held. */
bool ioband_share_drain(struct ioband_dev *dev, struct bio_list *bios,
			unsigned int *budget)
{
	struct ioband_sharer *sh = &dev->share;
	s64 now = ktime_get_ns();
	struct ioband_grp *grp;

	ioband_unstick_all(sh, now);
	while ((grp = ioband_first_grp(sh))) {
		for (; *budget && ioband_has_waiting(&grp->share); (*budget)--) {
			bio_list_add(bios, bio_list_pop(ioband_next_fifo(&grp->share)));
			sh->outstanding--;
		}
		if (ioband_has_waiting(&grp->share))
			return true;
		ioband_move(grp, grp->share.infl ? IOBAND_FLYING : IOBAND_AWAY, now);
	}
	return false;
}
