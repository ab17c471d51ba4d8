/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_BIO_H
#define IOBAND_BIO_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/pagemap.h>

#include "../blk-cgroup.h"
#include "hooks.h"
#include "rate.h"

/*
 * What a bio is to ioband: what it counts for, what it says while it is held, and
 * whether it has a place in an order.
 */

void ioband_ticket_done(struct bio *bio);

enum ioband_unit {
	IOBAND_BYTES,
	IOBAND_IOS,
	IOBAND_NR_UNITS,
};

/* {read, write, discard} x {async, sync}; reads are all sync, see the reader */
static inline unsigned int ioband_stat_kind(blk_opf_t opf)
{
	unsigned int op = (__force unsigned int)(opf & REQ_OP_MASK);
	unsigned int sync = !!(opf & (REQ_SYNC | REQ_FUA | REQ_PREFLUSH));
	unsigned int kind = op & 1 ? BLKG_IOSTAT_WRITE : BLKG_IOSTAT_READ;

	if (unlikely(op == (__force unsigned int)REQ_OP_DISCARD))
		kind = BLKG_IOSTAT_DISCARD;
	return kind * 2 + sync;
}

/*
 * While it is held a bio says here when it came and on which CPU, to go out
 * from there: nobody below has seen it yet.
 */
static inline void ioband_stamp(struct bio *bio, s64 now, unsigned int cpu)
{
	bio->issue_time_ns = now;
	bio->bi_iocost_cost = cpu;
}

static inline void ioband_unstamp(struct bio *bio)
{
	bio->bi_iocost_cost = 0;
}

static inline unsigned int ioband_cpu(const struct bio *bio)
{
	return bio->bi_iocost_cost;
}

static inline s64 ioband_arrival(const struct bio *bio)
{
	return bio->issue_time_ns;
}

/*
 * Does a bio write dirty pages of the page cache, itself or for a device above?  Who built
 * it has said so.  Its pages say nothing: those of direct I/O may be anybody's in the page
 * cache, and under writeback.
 */
static inline bool ioband_is_writeback(const struct bio *bio)
{
	return bio_flagged((struct bio *)bio, BIO_WRITEBACK);
}

/* They do once there is a limit or a weight. */
static inline bool ioband_pages_have_owners(void)
{
	return static_branch_unlikely(&dirty_owner_key);
}

/* Have the tasks paid that dirtied the pages of a bio?  Then limits do not hold it. */
static inline bool ioband_is_paced(const struct bio *bio)
{
	return ioband_pages_have_owners() && ioband_is_writeback(bio);
}

/* Does a bio stand for what will be written, see ticket.c?  It is never submitted. */
static inline bool ioband_is_ticket(const struct bio *bio)
{
	return bio->bi_end_io == ioband_ticket_done;
}

/* Writes to a sequential zone must stay in order, until they are submitted. */
static inline bool ioband_in_order(const struct bio *bio)
{
	return op_is_write(bio->bi_opf) && bio_op(bio) != REQ_OP_ZONE_APPEND &&
	       bdev_zone_is_seq(bio->bi_bdev, bio->bi_iter.bi_sector);
}

/*
 * The rest of a split whose first part is still being submitted: held, it could leave
 * again before that on another CPU.
 */
static inline bool ioband_must_follow(const struct bio *bio)
{
	return bio_flagged(bio, BIO_BPS_THROTTLED) && ioband_in_order(bio);
}

/**
 * ioband_units - what a bio counts for
 * @bio:	the bio
 * @unit:	bytes or I/Os
 *
 * Bytes count once for a bio, however it is split, I/Os for each piece.
 *
 * Return: units, 0 if this limit does not concern @bio.
 */
static inline u32 ioband_units(const struct bio *bio, enum ioband_unit unit)
{
	if (unit == IOBAND_IOS)
		return !ioband_is_ticket(bio);
	if (unlikely(bio_flagged(bio, BIO_BPS_THROTTLED)))
		return 0;
	if (bio_op(bio) == REQ_OP_DISCARD)
		return ioband_discard_bytes(bio->bi_iter.bi_size);
	return bio->bi_iter.bi_size;
}

#endif /* IOBAND_BIO_H */
