// SPDX-License-Identifier: GPL-2.0
/*
 * Bios that leave the share gate.
 *
 * Bios that are contiguous on the disk are one I/O to the device.  The writeback of a disk without
 * a file system submits a bio for each 4 KiB, and drivers get requests of hundreds of KiB all the
 * same: these bios are merged while their submitter has them in its plug.  Bios that wait for their
 * share have left that plug, so they are joined here.  The first bio of a run carries the group and
 * the length of all, counts as one I/O in flight, and is charged for all.  The bios that follow
 * pass as if without the lock, and are submitted in one plug with the first.
 */
#include <linux/blk-crypto.h>
#include <linux/blk-integrity.h>
#include <linux/blkdev.h>
#include <linux/pagemap.h>

#include "../ioband.h"

/*
 * Is a bio metadata or swap?  ext4 reads inodes ahead without REQ_META: what a disk that a file
 * system is on has in its own page cache counts, too.
 */
static bool ioband_is_metadata(struct bio *bio)
{
	struct address_space *mapping;

	/* pages of direct I/O can be in any page cache */
	if (bio_issue_as_root_blkg(bio) || !bio_has_data(bio) || bio_flagged(bio, BIO_UNLOCKED))
		return bio_issue_as_root_blkg(bio);
	mapping = folio_mapping(page_folio(bio_page(bio)));
	return mapping && mapping->host && S_ISBLK(mapping->host->i_mode) &&
	       READ_ONCE(I_BDEV(mapping->host)->bd_holder_ops);
}

/*
 * Do tasks of other groups wait for a bio?  They do for metadata, and for pages that a task of
 * another group writes for sync() or fsync(): these pass.  Context: its submitter.
 */
bool ioband_must_pass(struct bio *bio)
{
	guard(rcu)();
	return ioband_is_metadata(bio) ||
	       ((bio->bi_opf & REQ_SYNC) && ioband_is_writeback(bio) &&
		ioband_asker() != bio_blkcg_css(bio));
}

/* One of this many bios of a group is writeback, if other bios of it wait as well. */
#define IOBAND_WRITEBACK_TURN	8

/* Is the fifo of writeback next?  At least one fifo has bios. */
static bool ioband_background_next(const struct ioband_share *g)
{
	if (bio_list_empty(&g->fifo[false]))
		return true;
	return !bio_list_empty(&g->fifo[true]) && g->turn % IOBAND_WRITEBACK_TURN == 0;
}

/* The fifo that is next of a group that has bios waiting; it is not empty.  dev->lock held. */
struct bio_list *ioband_next_fifo(struct ioband_share *g)
{
	return &g->fifo[ioband_background_next(g)];
}

/* Let a bio carry its group and size class, I7: when it completes, its own size is 0. */
static void ioband_carry(struct ioband_grp *grp, struct bio *bio, u32 bytes, s64 now)
{
	unsigned int size = ioband_window_class(bio_data_dir(bio), bytes);

	BUILD_BUG_ON(ioband_carry_of(IOBAND_WINDOW_SIZES - 1) > IOBAND_CARRY_MASK);
	blkg_get(pd_to_blkg(&grp->pd));
	ioband_observe_size(&grp->dev->share, size, bytes);
	bio->issue_time_ns = now;
	bio->bi_iocost_cost = (uintptr_t)grp | ioband_carry_of(size % IOBAND_WINDOW_SIZES);
}

/*
 * Account for a bio that is dispatched, with those joined to it, of @bytes in all, 0 if they move
 * no data.  It is in flight from here on, I7; its group's fifos do not have it any more.  @turn:
 * was it the turn of @grp?  dev->lock held.
 */
void ioband_give(struct ioband_grp *grp, struct bio *bio, u32 bytes, bool turn, s64 now)
{
	struct ioband_sharer *sh = &grp->dev->share;
	u64 cost = ioband_cost_of(&sh->cost, bio_data_dir(bio), bytes), charged;

	charged = ioband_cost_charged(&sh->cost, bio_data_dir(bio), bytes);
	sh->cost.block.varied |= charged != cost;
	ioband_lease_suits(sh, bio, cost, charged, now);
	ioband_window_time(&sh->depth.window, ioband_in_device(sh), now);
	if (!sh->infl) {
		sh->idle_ns += now - sh->idle_since;
		ioband_worth_idle(&sh->worth, now - sh->idle_since);
		sh->progress_ns = now;
	}
	sh->infl++;
	grp->share.infl++;
	ioband_hang_dispatched(grp, now);
	ioband_used(grp, cost, now);
	ioband_charge_io(grp, charged, turn);
	if (!ioband_has_waiting(&grp->share))
		ioband_await_all_sent(grp);
	ioband_carry(grp, bio, bytes, now);
}

/* Does the block layer merge a bio with others? */
static bool ioband_is_mergeable(struct request_queue *q, struct bio *bio)
{
	/* with a virtual boundary, a bio that is not of whole pages is a request of its own */
	unsigned long part = bio_iovec(bio).bv_offset | bio->bi_iter.bi_size;

	return !(bio->bi_opf & (REQ_NOMERGE_FLAGS | REQ_ATOMIC)) && !bio_integrity(bio) &&
	       !bio_has_crypt_ctx(bio) && !(part & queue_virt_boundary(q));
}

/*
 * Does @next begin where @bio ends, and is it of the same kind?  If the block layer did not merge
 * the two, the device would have both in place of one, and at the price of one.
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
 * Move bios that continue @bio on the disk from its fifo to a list, to be dispatched with it as one
 * I/O; but not @own, since its submitter waits for the decision on it.  Returns the bytes of all.
 */
static u32 ioband_join(struct ioband_dev *dev, struct bio *bio, struct bio_list *fifo,
		       const struct bio *own, struct bio_list *rest)
{
	unsigned int segments = max(bio->bi_vcnt, 1);
	u32 bytes = ioband_bio_length(bio);
	struct request_queue *q = dev->q;
	struct bio *next;

	/* while the gate counts bios that passed without the lock, it would count the rest, too */
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

/* Is a dispatched bio, or NULL, one I/O with the bio before it, which ends at @sector? */
bool ioband_is_joined(const struct bio *bio, sector_t sector)
{
	return bio && ioband_carry_passed(bio->bi_iocost_cost) && bio->bi_iter.bi_sector == sector;
}

/*
 * Have a bio that has waited submitted near the CPU that it came from.  Bios are submitted in the
 * order in which the gate dispatched them, but for those dispatched out of turn: for these @rw is
 * WRITE, since there may be more of them than the device has tags.
 */
static void ioband_send_waited(struct ioband_grp *grp, struct bio *bio, s64 arrival,
			       unsigned int cpu, int rw, s64 now)
{
	grp->share.waited_ns += now - arrival;
	grp->share.nr_waited++;
	ioband_send_from(grp->dev, bio, cpu, rw);
}

/* Dispatch the bios that were joined to another one.  Returns how many these are. */
static unsigned int ioband_send_rest(struct ioband_grp *grp, struct bio_list *rest,
				     unsigned int cpu, int rw, s64 now)
{
	unsigned int nr = 0;
	struct bio *bio;

	while ((bio = bio_list_pop(rest))) {
		s64 arrival = ioband_arrival(bio);

		grp->dev->share.outstanding--;
		ioband_pass(grp->dev, bio);
		ioband_send_waited(grp, bio, arrival, cpu, rw, now);
		nr++;
	}
	return nr;
}

/*
 * Dispatch the first bio of a fifo that is not empty, with those that continue it; a bio that the
 * caller submits is not sent.  @turn: is it the turn of @grp?  dev->lock held.
 */
void ioband_send_first(struct ioband_grp *grp, struct bio_list *fifo, struct ioband_round *round,
		       bool turn, s64 now)
{
	struct ioband_dev *dev = grp->dev;
	struct bio *bio = bio_list_pop(fifo);
	struct bio_list rest = BIO_EMPTY_LIST;
	unsigned int cpu = ioband_cpu(bio);
	s64 arrival = ioband_arrival(bio);
	bool own = bio == round->own;
	int rw = turn ? READ : WRITE;
	u32 bytes;

	/* only a group that stays can have a lease, I14 */
	if (dev->leasing && !grp->offline) {
		ioband_lease_give(grp, bio, own, now);
	} else {
		bytes = ioband_join(dev, bio, fifo, round->own, &rest);
		ioband_give(grp, bio, bytes, turn, now);
		dev->share.on_way += !own && ioband_has_way(dev);
	}
	round->own_goes |= own;
	if (!own)
		ioband_send_waited(grp, bio, arrival, cpu, rw, now);
	round->quantum -= 1 + ioband_send_rest(grp, &rest, cpu, rw, now);
}

/* As ioband_send_first(), for the next bio of a group that has bios waiting. */
void ioband_send_next(struct ioband_grp *grp, struct ioband_round *round, s64 now)
{
	struct bio_list *fifo = ioband_next_fifo(&grp->share);

	grp->share.turn++;
	/* a stuck group is served by time: its tag does not advance the virtual time */
	ioband_send_first(grp, fifo, round, grp->share.own.where != IOBAND_STUCK, now);
}
