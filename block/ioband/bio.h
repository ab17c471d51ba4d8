/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_BIO_H
#define IOBAND_BIO_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/ioband.h>
#include <linux/refcount.h>
#include <linux/wait.h>

#include "../blk-cgroup.h"
#include "hooks.h"
#include "math/rate.h"

/*
 * What ioband needs to know of a bio: the units that it is charged for, what is stored in it
 * while it is held, and whether it has to stay in order.
 */

void ioband_ticket_done(struct bio *bio);

enum ioband_unit {
	IOBAND_BYTES,
	IOBAND_IOS,
	IOBAND_NR_UNITS,
};

/*
 * A place in line that is no bio: it pays for what a task is going to submit, or for what has
 * passed as a debt, see ticket.c.
 */
struct ioband_ticket {
	struct bio		bio;	/* it has the group, and is never submitted */
	u64			units[IOBAND_NR_UNITS];	/* to pay; of a credit, used: dev->lock */
	u64			paid[IOBAND_NR_UNITS];	/* a credit, if no debt or below */
	bool			debt;	/* for what has passed */
	bool			held;	/* in line: dev->lock */
	bool			done;
	bool			below;	/* until the ghost of its group has paid what @paid says */
	s64			until_ns;	/* if not 0: in no line; done by then, or below */
	wait_queue_head_t	wait;	/* until it is done */
	refcount_t		ref;	/* one for the task, one while it is held */
	struct ioband_ticket	*next;	/* the task's next debt */
};

u32 ioband_ticket_units(const struct ioband_ticket *ticket, enum ioband_unit unit);

/*
 * The most bytes of a debt that are paid at a time: then others have their turn.  What is going to
 * be submitted pays for IOBAND_DOOR_BYTES at a time, as large bios do.
 */
#define IOBAND_DEBT_BYTES	SZ_64K

/*
 * While a bio is held, two of its fields store when it arrived and on which CPU, from which it
 * will be submitted.  No layer below uses these fields yet.
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
 * Does a bio write dirty pages of the page cache, itself or for a device above?  The code that
 * builds such a bio sets the flag.  The pages do not tell: pages of direct I/O can be in the
 * page cache of any file, and under writeback.
 */
static inline bool ioband_is_writeback(const struct bio *bio)
{
	return bio_flagged((struct bio *)bio, BIO_WRITEBACK);
}

/* Are dirtiers of pages recorded?  They are from the first limit or weight on. */
static inline bool ioband_pages_have_owners(void)
{
	return static_branch_unlikely(&dirty_owner_key);
}

/* Do the tasks that dirty the pages of a bio pay for it?  Then limits do not hold the bio. */
static inline bool ioband_is_paced(const struct bio *bio)
{
	return ioband_pages_have_owners() && ioband_is_writeback(bio);
}

/* Is a bio a ticket, which stands for later I/O and is never submitted?  See ticket.c. */
static inline bool ioband_is_ticket(const struct bio *bio)
{
	return bio->bi_end_io == ioband_ticket_done;
}

/* Is a bio a ticket for what has passed already? */
static inline bool ioband_is_debt(const struct bio *bio)
{
	return ioband_is_ticket(bio) && container_of(bio, struct ioband_ticket, bio)->debt;
}

/* Does a bio write to a sequential zone?  Such bios must be submitted in order. */
static inline bool ioband_in_order(const struct bio *bio)
{
	return op_is_write(bio->bi_opf) && bio_op(bio) != REQ_OP_ZONE_APPEND &&
	       bdev_zone_is_seq(bio->bi_bdev, bio->bi_iter.bi_sector);
}

/*
 * The units that a bio is charged for: 0 if limits in this unit do not apply to it.  Its bytes are
 * charged once, however it is split; I/Os are charged for each piece.
 */
static inline u32 ioband_units(const struct bio *bio, enum ioband_unit unit)
{
	if (unlikely(ioband_is_ticket(bio)))
		return ioband_ticket_units(container_of(bio, struct ioband_ticket, bio), unit);
	if (unit == IOBAND_IOS)
		return 1;
	if (unlikely(bio_flagged(bio, BIO_BPS_THROTTLED)))
		return 0;
	if (bio_op(bio) == REQ_OP_DISCARD)
		return min(bio->bi_iter.bi_size, IOBAND_DISCARD_BYTES);
	return bio->bi_iter.bi_size;
}

#endif /* IOBAND_BIO_H */
