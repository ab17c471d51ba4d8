// SPDX-License-Identifier: GPL-2.0
/*
 * Bios that come back to the share gate, and what they tell of the device: what an
 * I/O costs, how many it does at once, and how many it has to have for that.
 */
#include <linux/blk-mq.h>
#include <linux/ktime.h>
#include <linux/math64.h>

#include "../blk-mq.h"
#include "ioband.h"

/* Completions between two looks at the bdp, at least. */
#define IOBAND_BDP_NR		64

static void ioband_observe_bdp(struct ioband_sharer *sh, u64 least, s64 now)
{
	s64 elapsed = now - sh->bdp_start;

	sh->bdp_sum += least;
	/* not within a burst of completions */
	if (++sh->bdp_nr < IOBAND_BDP_NR || elapsed < 2 * sh->latency)
		return;
	sh->bdp = max(div64_u64(sh->bdp_sum << 10, max(elapsed, 1)),
		      sh->bdp - div_u64(sh->bdp, 50));
	sh->bdp_sum = 0;
	sh->bdp_nr = 0;
	sh->bdp_start = now;
}

/* What the device is like, from one more completion. */
static void ioband_observe(struct ioband_sharer *sh, struct bio *bio,
			   unsigned int size, s64 now)
{
	s64 latency = now - bio->issue_time_ns;
	s64 interval = now - sh->last;
	bool serial = ioband_is_serial(sh) || sh->knee.depth < 4;
	s64 took = serial ? interval : div_s64(latency, sh->infl);
	u64 least = ioband_class_learn(ioband_class(sh, bio, size), latency, took);

	sh->gap += sh->gap ? (interval - sh->gap) / 16 : interval;
	sh->latency += sh->latency ? (latency - sh->latency) / 16 : latency;
	sh->least += sh->least ? ((s64)least - sh->least) / 16 : least;
	sh->last = now;
	ioband_observe_bdp(sh, least, now);
}

/**
 * ioband_observe_lag - bios are about to be submitted
 * @dev:	the device
 * @bio:	the first, or NULL
 *
 * Looks how long ago that was let go, if it had to wait for its share.  Only a scheduler
 * has room for what waits for the device; without one it would be the submitter who
 * waits.
 *
 * Context: dev->lock held.
 */
void ioband_observe_lag(struct ioband_dev *dev, const struct bio *bio)
{
	struct ioband_sharer *sh = &dev->share;
	s64 lag;

	lockdep_assert_held(&dev->lock);
	if (!bio || !ioband_is_carried(bio))
		return;
	lag = (s64)ktime_get_ns() - (s64)bio->issue_time_ns;
	sh->lag += (max(lag, 0) - sh->lag) / 16;
	sh->ahead = READ_ONCE(dev->q->elevator) ?
		    ioband_ahead(sh->lag, sh->latency, sh->knee.depth) : 0;
}

/* All its tags; a device without does not say. */
static unsigned int ioband_tags(struct request_queue *q)
{
	struct blk_mq_tag_set *set = q->tag_set;
	unsigned int queues;

	if (!queue_is_mq(q))
		return 0;
	if (blk_mq_is_shared_tags(set->flags))
		return set->queue_depth;
	queues = max3(set->map[HCTX_TYPE_DEFAULT].nr_queues,
		      set->map[HCTX_TYPE_READ].nr_queues, 1U);
	return min_t(u64, (u64)set->queue_depth * queues, UINT_MAX);
}

static void ioband_observe_depth(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	struct elevator_queue *elevator = READ_ONCE(dev->q->elevator);
	struct ioband_load load = {
		.idle_ns = sh->idle_ns,
		.bdp = sh->bdp,
		.outstanding = sh->outstanding,
		.groups = sh->nr_active,
		.limit = ioband_tags(dev->q),
		.limited = sh->limited,
	};

	/* with another scheduler it is another device */
	if (sh->elevator != elevator) {
		sh->elevator = elevator;
		ioband_knee_init(&sh->knee, now);
	}
	ioband_knee_done(&sh->knee, &load, now);
}

/* It is not in flight any more. */
static void ioband_landed(struct ioband_sharer *sh, struct ioband_grp *grp, u64 cost,
			  s64 now)
{
	sh->infl--;
	sh->outstanding--;
	grp->share.infl--;
	if (sh->excess) {
		/* half for those who wait: of two that leave, one was too many */
		sh->credit += rb_first_cached(&sh->queued) ? cost / 2 : 0;
		sh->excess = min(sh->excess - 1, sh->infl);
	}
	if (!sh->excess)
		sh->credit = 0;
	if (!sh->infl)
		sh->idle_since = now;
}

static void ioband_share_done(struct ioband_grp *grp, struct bio *bio,
			      unsigned int size, bool completed)
{
	struct ioband_dev *dev = grp->dev;
	s64 now = ktime_get_ns();

	/* with others in the device that are not counted it tells nothing */
	completed &= !dev->draining;
	if (completed)
		ioband_observe(&dev->share, bio, size, now);
	else
		dev->share.last = now;
	ioband_landed(&dev->share, grp,
		      completed ? ioband_class(&dev->share, bio, size)->ns : 0, now);
	ioband_got_back(dev, grp, now);
	/* it may be gone but for what we have a reference on */
	if (dev->dead)
		return;
	if (completed)
		ioband_observe_depth(dev, now);
	ioband_share_go(dev, NULL, now);
}

static noinline void ioband_counted_done(struct ioband_grp *grp, struct bio *bio,
					 unsigned int size, bool completed)
{
	scoped_guard(spinlock_irqsave, &grp->dev->lock)
		ioband_share_done(grp, bio, size, completed);
	blkg_put(pd_to_blkg(&grp->pd));
}

static __always_inline void ioband_uncarry(struct bio *bio, bool completed)
{
	unsigned int size = bio->bi_iocost_cost & IOBAND_CARRY_MASK;
	void *carried = (void *)(uintptr_t)(bio->bi_iocost_cost - size);

	bio->bi_iocost_cost = 0;
	if (size == IOBAND_CARRY_PASSED)
		ioband_passed_done(carried);
	else
		ioband_counted_done(carried, bio, size, completed);
}

/* See ioband_done_bio(). */
void __ioband_share_done(struct bio *bio)
{
	ioband_uncarry(bio, true);
}

/**
 * ioband_share_return - a bio that the share gate let go is to wait for a cap
 * @bio:	the rest of a split, or one remapped to a device below
 *
 * It gives its place in the device to others meanwhile, and passes the gate again
 * afterwards.
 *
 * Context: that of the submitter; no lock of ours held.
 */
void ioband_share_return(struct bio *bio)
{
	ioband_uncarry(bio, false);
}
