// SPDX-License-Identifier: GPL-2.0
/*
 * Bios that complete, and what the share gate learns of the device from them: what an I/O costs,
 * how many I/Os the device does at once, and how many have to be on their way for that.
 */
#include <linux/blk-mq.h>
#include <linux/ktime.h>
#include <linux/math64.h>

#include "../../blk-mq.h"
#include "../ioband.h"
#include "../math/depth_done.h"

/* The latency of an I/O counts as this many times the average at most. */
#define IOBAND_LATENCY_TIMES	16
/* CPUs are busy if I/Os take more than 1 / PART of their latency from dispatch to submission. */
#define IOBAND_LATE_PART	4
/* The number of I/Os among which a rotational disk chooses the next one. */
#define IOBAND_CHOOSES		32

/* Does the device time of a bio depend on its length? */
static bool ioband_has_length(const struct bio *bio)
{
	return bio_op(bio) == REQ_OP_READ || bio_op(bio) == REQ_OP_WRITE ||
	       bio_op(bio) == REQ_OP_ZONE_APPEND;
}

/* The bytes by which a bio is charged, 0 if its device time does not depend on its length. */
u32 ioband_bio_length(const struct bio *bio)
{
	return ioband_has_length(bio) ? bio->bi_iter.bi_size : 0;
}

/* Account for the length of an I/O: when it completes, only its class is known.  dev->lock held. */
void ioband_observe_size(struct ioband_sharer *sh, unsigned int size, u32 bytes)
{
	u64 *average = &sh->bytes[size];

	*average = *average ? *average + (s64)(((u64)bytes << 8) - *average) / 16 : (u64)bytes << 8;
}

/* Is the device busy, so that completions show what it can do? */
static bool ioband_is_busy(const struct ioband_sharer *sh)
{
	switch (sh->depth.phase) {
	case IOBAND_OPEN:
		return ioband_first_grp(sh);
	case IOBAND_SETTLED:
		return ioband_first_grp(sh) || sh->infl - sh->stuck >= sh->depth.depth;
	default:
		return false;
	}
}

/* Learn from a bio that has completed. */
static void ioband_observe(struct ioband_sharer *sh, struct bio *bio, unsigned int size, s64 now)
{
	struct ioband_io io = {
		.class = size,
		.inflight = sh->infl - sh->stuck,
		/* bios that wait in a stuck group do not wait for a tag */
		.outstanding = list_empty(&sh->hung) ? sh->outstanding : 0,
		.given_ns = bio->issue_time_ns,
	};
	s64 latency = max(now - io.given_ns, 0), interval = now - sh->progress_ns;
	u32 bytes = ioband_has_length(bio) ? sh->bytes[size] >> 8 : 0;

	sh->gap += sh->gap ? (interval - sh->gap) / 16 : interval;
	/* an I/O that has hung for half a minute tells little of the others */
	if (sh->latency)
		latency = min(latency, IOBAND_LATENCY_TIMES * sh->latency);
	sh->latency += sh->latency ? (latency - sh->latency) / 16 : latency;
	sh->progress_ns = now;
	io.cost = ioband_cost_of(&sh->cost, bio_data_dir(bio), bytes);
	ioband_cost_done(&sh->cost, bio_data_dir(bio), bytes, io.given_ns, sh->latency, now,
			 sh->idle_ns, ioband_is_busy(sh));
	ioband_depth_done(&sh->depth, &io, now);
}

/* How many more bios should be dispatched, since some time passes until they are submitted? */
static unsigned int ioband_ahead_of(const struct ioband_dev *dev)
{
	const struct ioband_sharer *sh = &dev->share;
	unsigned int ahead = ioband_ahead(sh->lag, sh->latency, sh->depth.depth);

	/* without a scheduler, submitters wait for tags, which may be why submission takes long */
	if (!READ_ONCE(dev->q->elevator))
		ahead = min(ahead, sh->depth.tags - min(sh->depth.depth, sh->depth.tags));
	return ahead;
}

/*
 * Bios are about to be submitted; @carried of them have waited for their share.  Learns from the
 * first one, @bio, how long bios take from dispatch to submission.  dev->lock held.
 */
void ioband_observe_sent(struct ioband_dev *dev, const struct bio *bio, unsigned int carried)
{
	struct ioband_sharer *sh = &dev->share;
	s64 now = ktime_get_ns(), lag;

	lockdep_assert_held(&dev->lock);
	if (!carried || !ioband_has_way(dev))
		return;
	ioband_window_time(&sh->depth.window, ioband_in_device(sh), now);
	sh->on_way -= carried;
	if (!ioband_is_carried(bio))
		return;
	lag = now - (s64)bio->issue_time_ns;
	sh->lag += (max(lag, 0) - sh->lag) / 16;
	sh->depth.late = IOBAND_LATE_PART * sh->lag > sh->latency;
	sh->ahead = ioband_ahead_of(dev);
}

/*
 * The number of I/Os that the device accepts.  Beyond that submitters wait where no weight counts,
 * or a driver refuses I/Os and tries again later.  It is not known for a device without tags.
 */
static unsigned int ioband_tags(struct request_queue *q)
{
	unsigned int depth = min_not_zero(q->queue_depth, IOBAND_DEPTH_MAX), queues = 1;
	struct blk_mq_tag_set *set = q->tag_set;

	if (!queue_is_mq(q))
		return depth;
	if (!blk_mq_is_shared_tags(set->flags))
		queues = max3(set->map[HCTX_TYPE_DEFAULT].nr_queues,
			      set->map[HCTX_TYPE_READ].nr_queues, 1U);
	return clamp_t(u64, (u64)(set->queue_depth - set->reserved_tags) * queues, 1, depth);
}

static unsigned int ioband_chooses(struct request_queue *q)
{
	return blk_queue_rot(q) ? IOBAND_CHOOSES : 1;
}

/* Forget the depth of a device, which may have changed.  dev->lock held. */
void ioband_observe_anew(struct ioband_dev *dev, s64 now)
{
	struct ioband_depth *depth = &dev->share.depth;

	lockdep_assert_held(&dev->lock);
	dev->share.elevator = READ_ONCE(dev->q->elevator);
	depth->tags = ioband_tags(dev->q);
	depth->chooses = ioband_chooses(dev->q);
	ioband_depth_pin(depth, depth->pinned);
	ioband_lease_end(dev, now);
}

/* Look whether a device has another scheduler or number of tags.  dev->lock held. */
void ioband_observe_elevator(struct ioband_dev *dev)
{
	unsigned int chooses = ioband_chooses(dev->q), tags = ioband_tags(dev->q);
	struct ioband_depth *depth = &dev->share.depth;

	if (dev->share.elevator != READ_ONCE(dev->q->elevator))
		ioband_observe_anew(dev, ktime_get_ns());
	else if (unlikely(depth->tags != tags || depth->chooses != chooses))
		ioband_depth_retag(depth, tags, chooses);
}

/* Take a bio that was in flight off the accounts. */
static void ioband_landed(struct ioband_sharer *sh, struct ioband_grp *grp, u64 cost,
			  s64 now)
{
	/* if the depth has shrunk below the I/Os that count, this I/O was one of these */
	bool beyond = ioband_counted(sh) <= min(sh->depth.most + sh->ahead, sh->depth.ceiling);

	sh->infl--;
	sh->outstanding--;
	if (!--grp->share.infl)
		list_del_init(&grp->share.busy);
	if (sh->excess) {
		/* half for the bios that wait: of two bios that complete, one was too many */
		sh->credit += ioband_first_grp(sh) ? cost / 2 : 0;
		sh->excess = min(sh->excess - beyond, sh->infl - sh->stuck);
	}
	if (!sh->excess)
		sh->credit = 0;
	if (!sh->infl)
		sh->idle_since = now;
}

/* Does a bio tell anything of the device?  If it failed, or would have had to wait, it does not. */
static bool ioband_tells(const struct ioband_dev *dev, const struct bio *bio)
{
	/* nor does it while bios are in flight that are not counted */
	return !dev->draining && !dev->leasing && !dev->open && bio->bi_status == BLK_STS_OK;
}

/* A bio of a group has completed, so the group does not hang. */
static void ioband_progress(struct ioband_grp *grp, s64 now)
{
	struct ioband_sharer *sh = &grp->dev->share;

	sh->progress_ns = now;
	sh->overdue.done++;
	ioband_overdue_done(&sh->overdue, &grp->share.overdue, now - grp->share.progress_ns, now);
	ioband_overdue_begin(&sh->overdue, &grp->share.overdue);
	ioband_unstick(grp, now);
	grp->share.progress_ns = now;
	list_move_tail(&grp->share.busy, &sh->busy);
}

/* The device time that a returned bio was most likely charged for when it was dispatched. */
static u64 ioband_unused(const struct ioband_sharer *sh, const struct bio *bio)
{
	bool write = bio_data_dir(bio);
	u64 charged = ioband_cost_charged(&sh->cost, write, ioband_bio_length(bio));

	/* the first part of a split has been dispatched, and is an I/O by itself */
	if (bio_flagged((struct bio *)bio, BIO_BPS_THROTTLED))
		charged -= min(charged, ioband_cost_of(&sh->cost, write, 0));
	return charged;
}

/* A bio returns without having completed: it tells nothing, and is charged for again later. */
static void ioband_share_recall(struct ioband_grp *grp, const struct bio *bio, s64 now)
{
	struct ioband_sharer *sh = &grp->dev->share;

	ioband_refund(grp, ioband_unused(sh, bio));
	if (grp->share.own.where != IOBAND_STUCK)
		return;
	if (grp->share.infl == 1)
		ioband_unstick(grp, now);
	else
		sh->stuck--;
}

static void ioband_share_done(struct ioband_grp *grp, struct bio *bio,
			      unsigned int size, bool completed)
{
	struct ioband_dev *dev = grp->dev;
	struct ioband_sharer *sh = &dev->share;
	s64 now = ktime_get_ns();
	u64 cost = 0;

	size += bio_data_dir(bio) * IOBAND_WINDOW_SIZES;
	ioband_window_time(&sh->depth.window, ioband_in_device(sh), now);
	if (completed && ioband_tells(dev, bio) && !ioband_has_hung(grp, bio, now)) {
		ioband_observe(sh, bio, size, now);
		cost = ioband_cost_of(&sh->cost, bio_data_dir(bio), sh->bytes[size] >> 8);
		ioband_worth_done(&sh->worth, 1, cost);
	}
	if (completed)
		ioband_progress(grp, now);
	else
		ioband_share_recall(grp, bio, now);
	ioband_landed(sh, grp, cost, now);
	ioband_await_returned(grp, now);
	/* the disk may be gone: only what the bio's reference keeps is left */
	if (dev->dead)
		return;
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
	unsigned int carry = bio->bi_iocost_cost & IOBAND_CARRY_MASK;
	uintptr_t carried = bio->bi_iocost_cost;

	bio->bi_iocost_cost = 0;
	if (ioband_carry_passed(carried))
		ioband_passed_done((void *)(carried - IOBAND_CARRY_PASSED));
	else
		ioband_counted_done((void *)(carried - carry), bio, ioband_carried_size(carry),
				    completed);
}

/* See ioband_done_bio(). */
void __ioband_share_done(struct bio *bio)
{
	ioband_uncarry(bio, true);
}

/*
 * Take back a dispatched bio that has to wait for a limit: the rest of a split, or a bio that was
 * remapped to a device below.  Meanwhile its place in the device is free for others; then it passes
 * the gate again, and is charged for again.  By its submitter; none of ioband's locks held.
 */
void ioband_share_return(struct bio *bio)
{
	ioband_uncarry(bio, false);
}
