// SPDX-License-Identifier: GPL-2.0
/*
 * Bios that leave the share gate.
 *
 * Bios that follow each other on the disk are one I/O to the device.  Who writes back a disk
 * without a file system sends a bio for each 4 KiB, and drivers get requests of hundreds of KiB
 * all the same: these bios are merged while their submitter has them in its plug.  What waits for
 * its share has left that plug.  So it is joined here: the first bio of a run carries the group and
 * the length of all, takes one place in the device, and is charged for all; those that follow it
 * pass as if without the lock, and are submitted in one plug with it.
 */
#include <linux/blk-crypto.h>
#include <linux/blk-integrity.h>
#include <linux/blkdev.h>

#include "../ioband.h"

/* One in so many bios of a group is writeback, if others of it wait as well. */
#define IOBAND_WRITEBACK_TURN	8

/* Which fifo's turn is it?  One of them has something. */
static bool ioband_background_next(const struct ioband_share *g)
{
	if (bio_list_empty(&g->fifo[false]))
		return true;
	return !bio_list_empty(&g->fifo[true]) && g->turn % IOBAND_WRITEBACK_TURN == 0;
}

/**
 * ioband_next_fifo - whose turn is it: what tasks wait for, or writeback?
 * @g:		the share of a group that has something waiting
 *
 * Context: dev->lock held.
 * Return: one that is not empty.
 */
struct bio_list *ioband_next_fifo(struct ioband_share *g)
{
	return &g->fifo[ioband_background_next(g)];
}

/* It will have forgotten its size. */
static void ioband_carry(struct ioband_grp *grp, struct bio *bio, u32 bytes, s64 now)
{
	unsigned int size = ioband_window_class(bio_data_dir(bio), bytes);

	BUILD_BUG_ON(2 * IOBAND_WINDOW_SIZES + IOBAND_CARRY_PASSED > IOBAND_CARRY_MASK);
	blkg_get(pd_to_blkg(&grp->pd));
	ioband_observe_size(&grp->dev->share, size, bytes);
	bio->issue_time_ns = now;
	bio->bi_iocost_cost = (uintptr_t)grp | ioband_carry_of(size % IOBAND_WINDOW_SIZES);
}

/**
 * ioband_give - a bio is given to the device, with what was joined to it
 * @grp:	the group, whose fifos do not have it any more
 * @bio:	the bio
 * @bytes:	of all, 0 if they move no data
 * @turn:	was it its turn?
 * @now:	ns
 *
 * The bio is in flight from here on, I7.
 *
 * Context: dev->lock held.
 */
void ioband_give(struct ioband_grp *grp, struct bio *bio, u32 bytes, bool turn, s64 now)
{
	struct ioband_sharer *sh = &grp->dev->share;
	u64 cost = ioband_cost_of(&sh->cost, bio_data_dir(bio), bytes), charged;

	charged = ioband_cost_charged(&sh->cost, bio_data_dir(bio), bytes);
	if (charged != cost)
		ioband_cost_varied(&sh->cost);
	ioband_lease_suits(sh, bio, cost, charged, now);
	ioband_window_time(&sh->depth.window, ioband_in_device(sh), now);
	if (!sh->infl) {
		sh->idle_ns += now - sh->idle_since;
		ioband_worth_idle(&sh->worth, now - sh->idle_since);
		sh->last = now;
	}
	sh->infl++;
	grp->share.infl++;
	ioband_gave(grp, now);
	ioband_used(grp, cost, now);
	ioband_charge_io(grp, charged, turn);
	if (!ioband_has_waiting(&grp->share))
		ioband_all_sent(grp);
	ioband_carry(grp, bio, bytes, now);
}

/* Is a bio one that the block layer merges with others? */
static bool ioband_is_mergeable(struct request_queue *q, struct bio *bio)
{
	/* a driver that wants whole pages gets one of others as a request of its own */
	unsigned long part = bio_iovec(bio).bv_offset | bio->bi_iter.bi_size;

	return !(bio->bi_opf & (REQ_NOMERGE_FLAGS | REQ_ATOMIC)) && !bio_integrity(bio) &&
	       !bio_has_crypt_ctx(bio) && !(part & queue_virt_boundary(q));
}

/*
 * Does a bio begin where another one ends, and is it of the same kind?  Where the block layer does
 * not merge two, the device would get both in the place of one, and at its price.
 */
static bool ioband_follows(const struct bio *bio, const struct bio *next)
{
	blk_opf_t kind = REQ_OP_MASK | REQ_META | REQ_SWAP;

	return next->bi_iter.bi_sector == bio_end_sector(bio) && next->bi_bdev == bio->bi_bdev &&
	       (next->bi_opf & kind) == (bio->bi_opf & kind) && next->bi_blkg == bio->bi_blkg &&
	       next->bi_ioprio == bio->bi_ioprio && next->bi_write_hint == bio->bi_write_hint &&
	       next->bi_write_stream == bio->bi_write_stream;
}

/*
 * Takes from a fifo what can go with the bio that was first there, as one I/O, and adds it to a
 * list; but not @own, whose submitter waits for what becomes of it.  Returns the bytes of all.
 */
static u32 ioband_join(struct ioband_dev *dev, struct bio *bio, struct bio_list *fifo,
		       const struct bio *own, struct bio_list *rest)
{
	unsigned int segments = max(bio->bi_vcnt, 1);
	u32 bytes = ioband_bio_length(bio);
	struct request_queue *q = dev->q;
	struct bio *next;

	/* those that follow would be counted with what has passed before */
	if (!bytes || bio == own || dev->draining || blk_queue_nomerges(q) ||
	    !ioband_is_mergeable(q, bio))
		return bytes;
	while ((next = bio_list_peek(fifo)) && next != own && ioband_follows(bio, next)) {
		segments += max(next->bi_vcnt, 1);
		if (bytes + next->bi_iter.bi_size > queue_max_bytes(q) ||
		    segments > queue_max_segments(q) || !ioband_is_mergeable(q, next))
			break;
		bytes += next->bi_iter.bi_size;
		bio_list_add(rest, bio_list_pop(fifo));
		bio = next;
	}
	return bytes;
}

/**
 * ioband_is_joined - does a bio go as one I/O with that before it?
 * @bio:	a bio that was let go
 * @sector:	where the one before it ends
 *
 * Context: any.
 * Return: true if it does; false if @bio is NULL.
 */
bool ioband_is_joined(const struct bio *bio, sector_t sector)
{
	return bio && ioband_carry_passed(bio->bi_iocost_cost) && bio->bi_iter.bi_sector == sector;
}

/* A bio has waited, and goes from the CPU on which it came, or another one. */
static void ioband_send_waited(struct ioband_grp *grp, struct bio *bio, s64 arrival,
			       unsigned int cpu, s64 now)
{
	grp->share.waited_ns += now - arrival;
	grp->share.nr_waited++;
	ioband_send_from(grp->dev, bio, cpu);
}

/* Those that were joined to a bio go with it.  Returns how many. */
static unsigned int ioband_send_rest(struct ioband_grp *grp, struct bio_list *rest,
				     unsigned int cpu, s64 now)
{
	unsigned int nr = 0;
	struct bio *bio;

	while ((bio = bio_list_pop(rest))) {
		s64 arrival = ioband_arrival(bio);

		grp->dev->share.outstanding--;
		ioband_pass(grp->dev, bio);
		ioband_send_waited(grp, bio, arrival, cpu, now);
		nr++;
	}
	return nr;
}

/**
 * ioband_send_next - a group's next bio is given to the device, with what follows it
 * @dev:	the device
 * @grp:	the group, which has something waiting
 * @round:	that it is part of; a bio that the caller submits is not sent
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_send_next(struct ioband_dev *dev, struct ioband_grp *grp,
		      struct ioband_round *round, s64 now)
{
	struct bio_list *fifo = ioband_next_fifo(&grp->share);
	struct bio *bio = bio_list_pop(fifo);
	struct bio_list rest = BIO_EMPTY_LIST;
	unsigned int cpu = ioband_cpu(bio);
	s64 arrival = ioband_arrival(bio);
	bool own = bio == round->own;
	u32 bytes;

	grp->share.turn++;
	/* a lease is of a group that stays, I14 */
	if (dev->leasing && !grp->offline) {
		ioband_lease_give(grp, bio, own, now);
	} else {
		bytes = ioband_join(dev, bio, fifo, round->own, &rest);
		/* one that is stuck goes by time, and its tag says nothing of that of others */
		ioband_give(grp, bio, bytes, grp->share.own.where != IOBAND_STUCK, now);
		dev->share.on_way += !own && ioband_has_way(dev);
	}
	round->own_goes |= own;
	if (!own)
		ioband_send_waited(grp, bio, arrival, cpu, now);
	round->quantum -= 1 + ioband_send_rest(grp, &rest, cpu, now);
}
