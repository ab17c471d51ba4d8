// SPDX-License-Identifier: GPL-2.0
/*
 * Tickets: places in line that are no bios.
 *
 * A ticket waits in the fifo of its group, between bios, and pays at the gates when it is its turn.
 * A task that is about to submit direct I/O waits for its ticket before it takes a lock, see
 * door.c: then it has a credit, by which its bios pass.  What it does not use is given back.
 * A task that is going to dirty pages waits in the same way, see ahead.c.  What passes unpaid is
 * owed by a ticket, which its task waits for later, see debt.c.
 */
#include <linux/slab.h>
#include <trace/events/ioband.h>

#include "../ioband.h"

/*
 * A task that has paid submits within this time, or its credit is lost: otherwise many tasks could
 * save up credits, and use them, or get them back, all at once.  It may have to wait for the lock
 * of a file.
 */
#define IOBAND_CREDIT_NS	NSEC_PER_SEC

/* Ghosts that are in line on any disk. */
atomic_t ioband_ghosts = ATOMIC_INIT(0);

/* Set up a ticket that is all zero. */
void ioband_ticket_init(struct ioband_ticket *ticket)
{
	init_waitqueue_head(&ticket->wait);
	refcount_set(&ticket->ref, 1);
}

/* A ticket of no group yet, with a reference for the task; NULL if there is no memory. */
struct ioband_ticket *ioband_ticket_alloc(gfp_t gfp)
{
	struct ioband_ticket *ticket = kzalloc_obj(*ticket, gfp | __GFP_NOWARN);

	if (ticket)
		ioband_ticket_init(ticket);
	return ticket;
}

/* Give a ticket to a group.  dev->lock held. */
void ioband_ticket_give(struct ioband_ticket *ticket, struct ioband_dir *dir)
{
	struct blkcg_gq *blkg = pd_to_blkg(&dir->grp->pd);

	bio_init(&ticket->bio, NULL, NULL, 0,
		 dir == &dir->grp->dir[READ] ? REQ_OP_READ : REQ_OP_WRITE);
	ticket->bio.bi_end_io = ioband_ticket_done;
	ticket->bio.bi_bdev = dir->grp->dev->disk->part0;
	blkg_get(blkg);
	ticket->bio.bi_blkg = blkg;
}

/* As ioband_ticket_give(), to the group of a cgroup, NULL: the task's.  False if there is none. */
bool ioband_ticket_give_css(struct ioband_ticket *ticket, struct gendisk *disk, int rw,
			    struct cgroup_subsys_state *css)
{
	struct ioband_grp *grp;

	bio_init(&ticket->bio, disk->part0, NULL, 0, rw == READ ? REQ_OP_READ : REQ_OP_WRITE);
	ticket->bio.bi_end_io = ioband_ticket_done;
	/* bio_init() has associated it with the current task's group */
	if (css)
		bio_associate_blkg_from_css(&ticket->bio, css);
	guard(rcu)();
	grp = ticket->bio.bi_blkg ? blkg_to_grp(ticket->bio.bi_blkg) : NULL;
	return grp && ioband_is_ready(grp);
}

/* The group and direction of a ticket. */
struct ioband_dir *ioband_ticket_dir(const struct ioband_ticket *ticket)
{
	return &blkg_to_grp(ticket->bio.bi_blkg)->dir[bio_data_dir(&ticket->bio)];
}

void ioband_ticket_put(struct ioband_ticket *ticket)
{
	if (!refcount_dec_and_test(&ticket->ref))
		return;
	bio_uninit(&ticket->bio);
	kfree(ticket);
}

/* A ticket has paid, or its disk is removed.  dev->lock may be held. */
void ioband_ticket_done(struct bio *bio)
{
	struct ioband_ticket *ticket = container_of(bio, struct ioband_ticket, bio);
	struct blkcg_gq *blkg = bio->bi_blkg;

	ticket->held = false;
	/* a ghost belongs to its group, and has a reference on that only while it waits */
	if (ticket == &ioband_ticket_dir(ticket)->ghost) {
		bio->bi_blkg = NULL;
		atomic_dec(&ioband_ghosts);
		blkg_put(blkg);
		return;
	}
	/* from now on it is a credit */
	bio->issue_time_ns = ktime_get_ns();
	WRITE_ONCE(ticket->done, true);
	wake_up(&ticket->wait);
	ioband_ticket_put(ticket);
}

/*
 * What a ticket pays next: others have their turns between two parts.  A debt is paid I/O by I/O.
 * What is going to be submitted pays for bytes and I/Os together, as it is dispatched together.
 */
u32 ioband_ticket_units(const struct ioband_ticket *ticket, enum ioband_unit unit)
{
	u64 bytes = ticket->units[IOBAND_BYTES], ios = ticket->units[IOBAND_IOS];
	u64 parts = ticket->debt ? max(ios, DIV_ROUND_UP_ULL(bytes, IOBAND_DEBT_BYTES)) :
				   DIV_ROUND_UP_ULL(bytes, IOBAND_DOOR_BYTES);

	return DIV64_U64_ROUND_UP(ticket->units[unit], max(parts, 1));
}

/* A ticket has paid what ioband_units() says.  Returns true if there is more.  dev->lock held. */
bool ioband_ticket_paid(struct ioband_ticket *ticket, struct ioband_dir *dir)
{
	const u32 paid[IOBAND_NR_UNITS] = {
		ioband_units(&ticket->bio, IOBAND_BYTES), ioband_units(&ticket->bio, IOBAND_IOS)
	};
	bool more = false;

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		ticket->units[unit] -= paid[unit];
		WRITE_ONCE(ticket->paid[unit], ticket->paid[unit] + paid[unit]);
		dir->held_units[unit] -= ticket->held ? paid[unit] : 0;
		if (ticket->held && ticket->debt)
			ioband_owed(dir, unit, -(s64)paid[unit]);
		more |= ticket->units[unit];
	}
	return more;
}

/* Have a ticket, which has a group, wait in line.  dev->lock held. */
void ioband_ticket_hold(struct ioband_ticket *ticket, s64 now)
{
	struct ioband_dir *dir = ioband_ticket_dir(ticket);

	ticket->held = true;
	ioband_stamp(&ticket->bio, now, raw_smp_processor_id());
	if (ticket == &dir->ghost)
		atomic_inc(&ioband_ghosts);
	else
		refcount_inc(&ticket->ref);
	ioband_hold(dir, &ticket->bio, now);
}

/* A task has stopped waiting for its ticket: the ticket stays in line, and costs nothing. */
static void ioband_ticket_void(struct ioband_ticket *ticket)
{
	struct ioband_dir *dir = ioband_ticket_dir(ticket);
	struct ioband_dev *dev = dir->grp->dev;
	s64 now;

	guard(spinlock_irqsave)(&dev->lock);
	if (dev->dead || !ticket->held)
		return;
	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		dir->held_units[unit] -= ticket->units[unit];
		ticket->units[unit] = 0;
	}
	/* the ticket may be the first in its fifo, and is due earlier now */
	now = ktime_get_ns();
	ioband_place(dev, &dir->source, now);
	ioband_kick(dev, now);
}

/* Need the task of a ticket wait for it no more? */
bool ioband_ticket_is_done(const struct ioband_ticket *ticket)
{
	const struct ioband_ticket *ghost;

	if (READ_ONCE(ticket->done) || !ticket->below)
		return READ_ONCE(ticket->done) ||
		       (ticket->until_ns && (s64)ktime_get_ns() >= ticket->until_ns);
	ghost = &ioband_ticket_dir(ticket)->ghost;
	return !READ_ONCE(ghost->held) ||
	       (READ_ONCE(ghost->paid[IOBAND_BYTES]) >= ticket->paid[IOBAND_BYTES] &&
		READ_ONCE(ghost->paid[IOBAND_IOS]) >= ticket->paid[IOBAND_IOS]);
}

/*
 * Have the current task wait for a ticket that is in line, for IOBAND_LOOK_NS at most.  Returns
 * true if the ticket is done.
 */
bool ioband_ticket_look(struct ioband_ticket *ticket)
{
	s64 ns = ticket->until_ns ? ticket->until_ns - (s64)ktime_get_ns() : IOBAND_LOOK_NS;
	int token = io_schedule_prepare();

	/* others have had turns meanwhile: it is late by 1/16 of what these took */
	if (ticket->below && ns <= 0)
		ns = max_t(s64, -ns / 16, TICK_NSEC);
	__wait_event_hrtimeout(ticket->wait, READ_ONCE(ticket->done),
			       ns_to_ktime(clamp(ns, 0, IOBAND_LOOK_NS)), ioband_repay_state());
	io_schedule_finish(token);
	return ioband_ticket_is_done(ticket);
}

/*
 * Have the current task wait until a ticket that is in line has paid.  Returns 0, or -EINTR if the
 * task is killed: then the ticket is void, unless it has just paid.  May sleep; no locks held.
 */
int ioband_ticket_wait(struct ioband_ticket *ticket)
{
	while (!ioband_ticket_look(ticket))
		if (fatal_signal_pending(current)) {
			ioband_ticket_void(ticket);
			return -EINTR;
		}
	/* a credit is traced when it ends */
	if (ticket != current->ioband_credit)
		trace_ioband_return(&ticket->bio, ktime_get_ns(), 0);
	return 0;
}

/*
 * Pay for a ticket, which has a group; if the limits have no room, have it wait in line if @wait is
 * set.  Returns true if all is paid.  Takes dev->lock.
 */
bool ioband_ticket_pay(struct ioband_ticket *ticket, bool wait)
{
	struct ioband_dir *dir = ioband_ticket_dir(ticket);
	s64 now;

	guard(spinlock_irqsave)(&dir->grp->dev->lock);
	now = ktime_get_ns();
	ioband_relink(dir, now);
	if (dir->grp->dev->dead || !dir->lim)
		return true;
	ioband_stamp(&ticket->bio, now, raw_smp_processor_id());
	while (!ioband_is_crowded(dir->lim) && ioband_pay(dir, &ticket->bio, now))
		if (!ioband_ticket_paid(ticket, dir))
			return true;
	if (wait) {
		trace_ioband_hold(&ticket->bio, now, dir->held + 1);
		dir->nr_throttled++;
		ioband_ticket_hold(ticket, now);
	}
	return false;
}

/*
 * Have the current task pay for direct I/O that it is about to submit.  It has the credit until
 * ioband_credit_return().  Without memory it gets none: then its bios are owed.  May sleep; no
 * locks held.  Returns as ioband_ticket_wait(); -EIO if the disk is removed.
 */
int ioband_prepay(struct gendisk *disk, int rw, u64 bytes)
{
	struct ioband_ticket *ticket = ioband_ticket_alloc(GFP_KERNEL_ACCOUNT);
	int ret = 0;

	if (!ticket)
		return 0;
	if (!ioband_ticket_give_css(ticket, disk, rw, NULL)) {
		ioband_ticket_put(ticket);
		return 0;
	}
	ticket->units[IOBAND_BYTES] = bytes;
	/* that is how many bios there are if its memory is in pages */
	ticket->units[IOBAND_IOS] = DIV_ROUND_UP_ULL(bytes, min_t(u32, queue_max_bytes(disk->queue),
								  BIO_MAX_VECS << PAGE_SHIFT));
	current->ioband_credit = ticket;
	if (!ioband_ticket_pay(ticket, true))
		ret = ioband_ticket_wait(ticket);
	/* the disk has been removed while the task waited: its I/O fails, as what is held does */
	if (!ret && READ_ONCE(ioband_ticket_dir(ticket)->grp->dev->dead)) {
		ioband_credit_return();
		return -EIO;
	}
	/* what is left of the credit at the end of the call is given back then */
	blkcg_schedule_throttle(disk, false);
	return ret;
}

/*
 * Let a bio of the current task pass for which it has paid in advance: true if the credit is
 * enough.  There may be more bios than were expected: these I/Os are owed, which sets @owed.  What
 * is split off has nothing but its I/O to pay, and pays as without a credit then.  dev->lock held.
 */
bool ioband_credit_use(struct bio *bio, s64 now, bool *owed)
{
	struct ioband_ticket *credit = current->ioband_credit;
	u64 one[IOBAND_NR_UNITS] = { [IOBAND_IOS] = 1 };
	u32 bytes = ioband_units(bio, IOBAND_BYTES);

	/* metadata is owed, or there would not be enough left for the data */
	if (!credit || credit->bio.bi_blkg != bio->bi_blkg || bio_issue_as_root_blkg(bio) ||
	    bio_data_dir(&credit->bio) != bio_data_dir(bio) ||
	    credit->paid[IOBAND_BYTES] < bytes || (!bytes && !credit->paid[IOBAND_IOS]) ||
	    now - ioband_arrival(&credit->bio) > IOBAND_CREDIT_NS)
		return false;
	credit->paid[IOBAND_BYTES] -= bytes;
	*owed = !credit->paid[IOBAND_IOS] &&
		ioband_lowest(ioband_ticket_dir(credit), IOBAND_IOS) != U64_MAX;
	if (credit->paid[IOBAND_IOS])
		credit->paid[IOBAND_IOS]--;
	else if (*owed)
		ioband_debt(ioband_ticket_dir(credit), one, now, false);
	credit->units[IOBAND_BYTES] += bytes;
	credit->units[IOBAND_IOS]++;
	return true;
}

/* Give back what the current task has paid in advance and not used. */
void ioband_credit_return(void)
{
	struct ioband_ticket *credit = current->ioband_credit;
	s64 now;

	if (!credit)
		return;
	current->ioband_credit = NULL;
	now = ktime_get_ns();
	trace_ioband_return(&credit->bio, now, credit->paid[IOBAND_BYTES]);
	if (credit->paid[IOBAND_BYTES] || credit->paid[IOBAND_IOS]) {
		struct ioband_dir *dir = ioband_ticket_dir(credit);

		guard(spinlock_irqsave)(&dir->grp->dev->lock);
		if (!dir->grp->dev->dead && now - ioband_arrival(&credit->bio) <= IOBAND_CREDIT_NS)
			ioband_unpay(dir, credit, now);
	}
	ioband_ticket_put(credit);
}
