// SPDX-License-Identifier: GPL-2.0
/*
 * Tickets: a task that dirties pages waits in line for the bytes that will be written.
 *
 * A ticket is a bio that is never submitted.  It waits at the gates of its group like other
 * bios, behind earlier bios of the group's tasks, and pays for the bytes.  It pays for no
 * I/O, but waits until there is no debt in I/Os.  Then the task may dirty pages of that many
 * bytes, and their writes pass.
 *
 * A ticket of no bytes is for a task that waits for its group's debt while bios wait for the
 * same limits.
 *
 * A task that is killed leaves its ticket behind; such a ticket costs nothing.
 */
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "../ioband.h"

/* The most that a group pays in advance: this time of its limit, and this many bytes. */
#define IOBAND_AHEAD_NS		NSEC_PER_MSEC
#define IOBAND_AHEAD_BYTES	SZ_64K
/* The most that one ticket pays for. */
#define IOBAND_TICKET_BYTES	SZ_1G

struct ioband_ticket {
	struct bio		bio;
	struct completion	paid;
	refcount_t		ref;	/* one for the task, one for the gate */
};

static void ioband_ticket_put(struct ioband_ticket *ticket)
{
	if (!refcount_dec_and_test(&ticket->ref))
		return;
	bio_uninit(&ticket->bio);
	kfree(ticket);
}

/**
 * ioband_ticket_done - wake the task of a ticket that is paid, or whose disk is removed
 * @bio:	the ticket
 *
 * Context: any; dev->lock may be held.
 */
void ioband_ticket_done(struct bio *bio)
{
	struct ioband_ticket *ticket = container_of(bio, struct ioband_ticket, bio);

	complete(&ticket->paid);
	ioband_ticket_put(ticket);
}

/* Bytes that a group may pay in advance: too few to delay other groups noticeably. */
static u32 ioband_in_advance(struct ioband_dir *dir)
{
	u64 bps = U64_MAX;

	for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up)
		bps = min(bps, gate->limit[IOBAND_BYTES]);
	if (bps >= IOBAND_AHEAD_BYTES * (NSEC_PER_SEC / IOBAND_AHEAD_NS))
		return IOBAND_AHEAD_BYTES;
	/* the limit fits 32 bits here */
	return (u32)bps / (u32)(NSEC_PER_SEC / IOBAND_AHEAD_NS);
}

/* Returns the bytes that have been paid, or -EAGAIN.  dev->lock held. */
static s64 ioband_pay_now(struct ioband_dir *dir, struct bio *bio, enum dirty_how how,
			  s64 now)
{
	s64 bytes = bio->bi_iter.bi_size;

	if (!dir->lim || !ioband_is_bound(dir, bio))
		return bytes;
	if (how == DIRTY_OWE) {
		ioband_owe(dir, bio, now, IOBAND_TERMS_DEBT);
		return bytes;
	}
	if (ioband_is_crowded(dir))
		return -EAGAIN;
	bio->bi_iter.bi_size = bytes + ioband_in_advance(dir);
	if (ioband_pay(dir, bio, now))
		return bio->bi_iter.bi_size;
	bio->bi_iter.bi_size = bytes;
	return ioband_pay(dir, bio, now) ? bytes : -EAGAIN;
}

/* As ioband_pay_now(), but if @how is DIRTY_WAIT, a ticket that cannot pay is held. */
static s64 ioband_pay_or_hold(struct ioband_grp *grp, struct bio *bio, enum dirty_how how)
{
	struct ioband_dir *dir = &grp->dir[WRITE];
	struct ioband_dev *dev = grp->dev;
	s64 now, paid;

	guard(spinlock_irqsave)(&dev->lock);
	if (dev->dead)
		return bio->bi_iter.bi_size;
	now = ktime_get_ns();
	ioband_stamp(bio, now, raw_smp_processor_id());
	ioband_relink(dir, now);
	/* a driver pays for the group: a device above writes to this device, see pace.c */
	if (current->flags & PF_KTHREAD)
		WRITE_ONCE(grp->owed_at_ns, now);
	paid = ioband_pay_now(dir, bio, how, now);
	if (paid == -EAGAIN && how == DIRTY_WAIT)
		ioband_hold(dir, bio, now);
	return paid;
}

static int ioband_ticket_wait(struct ioband_ticket *ticket, unsigned int state)
{
	int token = io_schedule_prepare(), ret;

	ret = wait_for_completion_state(&ticket->paid, state);
	io_schedule_finish(token);
	return ret ? -EINTR : 0;
}

/* A task has stopped waiting for its ticket: the ticket stays in line, and costs nothing. */
static void ioband_ticket_void(struct ioband_dir *dir, struct ioband_ticket *ticket)
{
	struct ioband_dev *dev = dir->grp->dev;
	s64 now;

	guard(spinlock_irqsave)(&dev->lock);
	ticket->bio.bi_iter.bi_size = 0;
	if (dev->dead || !dir->held)
		return;
	/* the ticket may be the first in its fifo, and is due earlier now */
	now = ktime_get_ns();
	ioband_place(dev, &dir->source, now);
	ioband_kick(dev, now);
}

static struct ioband_grp *ioband_ticket_grp(struct bio *bio)
{
	struct ioband_grp *grp = bio->bi_blkg ? blkg_to_grp(bio->bi_blkg) : NULL;

	return grp && ioband_is_ready(grp) ? grp : NULL;
}

static void ioband_ticket_init(struct bio *bio, struct gendisk *disk, enum req_op op, s64 bytes)
{
	bio_init(bio, disk->part0, NULL, 0, op);
	bio->bi_iter.bi_size = min(bytes, IOBAND_TICKET_BYTES);
	bio->bi_end_io = ioband_ticket_done;
}

/* As ioband_pay_or_hold(), by the group of a ticket; without limits all bytes count as paid. */
static s64 ioband_pay_at_once(struct bio *bio, enum dirty_how how)
{
	struct ioband_grp *grp;

	guard(rcu)();
	grp = ioband_ticket_grp(bio);
	return grp ? ioband_pay_or_hold(grp, bio, how) : (s64)bio->bi_iter.bi_size;
}

/*
 * Charge a debt, which needs no memory.  Where the task would have waited for its turn, it waits
 * until the group has no debt.
 */
static s64 ioband_pay_as_debt(struct gendisk *disk, struct cgroup_subsys_state *css, s64 bytes,
			      bool wait)
{
	struct ioband_grp *grp;
	struct bio bio;
	s64 paid;

	ioband_ticket_init(&bio, disk, REQ_OP_WRITE, bytes);
	bio_associate_blkg_from_css(&bio, css);
	paid = ioband_pay_at_once(&bio, DIRTY_OWE);
	/* the bio keeps the group */
	grp = ioband_ticket_grp(&bio);
	while (wait && grp && ioband_repay_debt(ioband_grp_debt_ns(grp, NULL)))
		;
	bio_uninit(&bio);
	return paid;
}

/* A ticket for @bytes, of no group yet, with a reference for the task and one for the gate. */
static struct ioband_ticket *ioband_ticket_alloc(struct gendisk *disk, enum req_op op, s64 bytes,
						 gfp_t gfp)
{
	struct ioband_ticket *ticket;

	/* accounted: tickets of killed tasks stay in line */
	ticket = kzalloc_obj(*ticket, gfp | __GFP_NOWARN | __GFP_ACCOUNT);
	if (!ticket)
		return NULL;
	ioband_ticket_init(&ticket->bio, disk, op, bytes);
	init_completion(&ticket->paid);
	refcount_set(&ticket->ref, 2);
	return ticket;
}

/* A direction in which a group has a debt while bios wait, or NULL.  dev->lock held. */
static struct ioband_dir *ioband_owed_line(struct ioband_grp *grp, s64 now)
{
	if (grp->dev->dead)
		return NULL;
	for (int rw = READ; rw <= WRITE; rw++) {
		struct ioband_dir *dir = &grp->dir[rw];

		ioband_relink(dir, now);
		if (ioband_is_crowded(dir) &&
		    (dir->owed_turn || ioband_gates_debt_ns(dir->lim, now)))
			return dir;
	}
	return NULL;
}

/**
 * ioband_has_line - tell whether a group has a debt while bios wait for the same limits
 * @grp:	the group
 *
 * Context: any; takes dev->lock.
 * Return: true if ioband_stand_in_line() would wait.
 */
bool ioband_has_line(struct ioband_grp *grp)
{
	guard(spinlock_irqsave)(&grp->dev->lock);
	return ioband_owed_line(grp, ktime_get_ns());
}

/**
 * ioband_stand_in_line - wait in line until it is the turn of a group that has a debt
 * @grp:	the current task's group, on which the caller has a reference
 *
 * Context: may sleep; no locks held.
 * Return: false if the task has not waited, because there is no line, or no memory.
 */
bool ioband_stand_in_line(struct ioband_grp *grp)
{
	struct blkcg_gq *blkg = pd_to_blkg(&grp->pd);
	struct ioband_dev *dev = grp->dev;
	struct ioband_ticket *ticket;
	struct ioband_dir *dir;

	if (!ioband_has_line(grp))
		return false;
	ticket = ioband_ticket_alloc(dev->disk, REQ_OP_READ, 0, GFP_KERNEL);
	if (!ticket)
		return false;
	/*
	 * The ticket keeps this very group, I2, even if its cgroup has been removed by now.
	 * bio_init() has associated it with the group of the task.
	 */
	blkg_get(blkg);
	swap(ticket->bio.bi_blkg, blkg);
	if (blkg)
		blkg_put(blkg);
	scoped_guard(spinlock_irqsave, &dev->lock) {
		s64 now = ktime_get_ns();

		dir = ioband_owed_line(grp, now);
		if (dir) {
			if (dir == &grp->dir[WRITE])
				ticket->bio.bi_opf = REQ_OP_WRITE;
			ioband_stamp(&ticket->bio, now, raw_smp_processor_id());
			ioband_hold(dir, &ticket->bio, now);
		}
	}
	if (!dir)
		ioband_ticket_put(ticket);
	else if (ioband_ticket_wait(ticket, ioband_repay_state()))
		ioband_ticket_void(dir, ticket);
	ioband_ticket_put(ticket);
	return dir;
}

/**
 * ioband_pay_ahead - pay for bytes before they are written, see struct dirty_owner_ops
 * @css:	the group
 * @bdi:	the backing device that they will be written to
 * @bytes:	number of bytes
 * @how:	what to do if the limits have no room
 *
 * Context: may sleep, unless @how is DIRTY_TRY.
 * Return: the number of bytes that have been paid, -EAGAIN or -EINTR.
 */
s64 ioband_pay_ahead(struct cgroup_subsys_state *css, struct backing_dev_info *bdi,
		     s64 bytes, enum dirty_how how)
{
	struct device *owner = READ_ONCE(bdi->owner);
	gfp_t gfp = how == DIRTY_TRY ? GFP_NOWAIT : GFP_NOFS;
	struct ioband_ticket *ticket = NULL;
	struct bio *bio;
	s64 paid;

	if (!owner)
		return bytes;
	if (how != DIRTY_OWE)
		ticket = ioband_ticket_alloc(dev_to_disk(owner), REQ_OP_WRITE, bytes, gfp);
	if (!ticket)
		return how == DIRTY_TRY ? -EAGAIN :
		       ioband_pay_as_debt(dev_to_disk(owner), css, bytes, how == DIRTY_WAIT);
	bio = &ticket->bio;
	bio_associate_blkg_from_css(bio, css);
	paid = ioband_pay_at_once(bio, how);
	if (paid == -EAGAIN && how == DIRTY_WAIT) {
		/* the position of an open file may be locked, if tasks have it open together */
		paid = ioband_ticket_wait(ticket, TASK_KILLABLE | TASK_FREEZABLE_UNSAFE) ?:
		       (s64)bio->bi_iter.bi_size;
		if (paid < 0)
			ioband_ticket_void(&blkg_to_grp(bio->bi_blkg)->dir[WRITE], ticket);
	} else {
		ioband_ticket_put(ticket);
	}
	ioband_ticket_put(ticket);
	return paid;
}
