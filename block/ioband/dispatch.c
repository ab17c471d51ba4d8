// SPDX-License-Identifier: GPL-2.0
/*
 * Which held bios are dispatched, and devices that come and go.
 *
 * Work picks the bios that may go, and submit.c submits them.  Picking and submitting are
 * apart because submission may wait for the device, and picking must go on for the others.
 * The work, and the timer that starts it (timer.c), run on no CPU in particular: they stay
 * off CPUs that are isolated.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>

#include "ioband.h"

/* One hold of dev->lock takes no longer than this, and a bio. */
#define IOBAND_HOLD_NS		(20 * NSEC_PER_USEC)
/*
 * The timer is set this much late, so that gates that are due together compete for
 * the one above by their tags, not by who is nanoseconds earlier.  At high rates bios
 * leave in small groups, instead of a timer and two wakeups each: from so many in a
 * round on the timer is set later.  Nothing is lost by it, see IOBAND_LATE_NS.
 */
#define IOBAND_SLACK_NS		(5 * NSEC_PER_USEC)
#define IOBAND_GROUP_SLACK_NS	(50 * NSEC_PER_USEC)
#define IOBAND_GROUP		4

/* Those whose time has come may go, or make others go. */
static void ioband_wake(struct ioband_dev *dev, s64 now, unsigned int *budget)
{
	struct ioband_ent *ent;

	while (*budget && (ent = ioband_expire(dev, now))) {
		(*budget)--;
		if (ent->kind != IOBAND_GRACE) {
			ioband_place(dev, ent, now);
			continue;
		}
		ioband_share_pump(dev, NULL, now);
		/* it has sent all that it may with the lock held once */
		if (ent->state == IOBAND_TIMED && (s64)ent->key <= now)
			*budget = 0;
	}
}

/* Release some in one direction.  Returns how many. */
static unsigned int ioband_release_some(struct ioband_dev *dev, int rw, s64 now,
					unsigned int *budget)
{
	unsigned int nr = 0;
	struct bio *bio;
	s64 due;

	while ((bio = ioband_next(dev, rw, now, &due, budget))) {
		ioband_send(dev, bio, now, due);
		nr++;
		if ((s64)ktime_get_ns() - now > IOBAND_HOLD_NS)
			*budget = 0;
	}
	return nr;
}

/* Release what may go.  Returns true if there is more. */
static bool ioband_release(struct ioband_dev *dev)
{
	unsigned int timed = IOBAND_QUANTUM, quota[2] = { IOBAND_QUANTUM / 2, IOBAND_QUANTUM / 2 };
	s64 now = ktime_get_ns();
	unsigned int nr = 0;

	lockdep_assert_held(&dev->lock);
	if (dev->dead)
		return false;
	dev->armed = S64_MAX;
	ioband_wake(dev, now, &timed);
	for (int rw = READ; rw <= WRITE; rw++)
		nr += ioband_release_some(dev, rw, now, &quota[rw]);
	dev->slack_ns = nr < IOBAND_GROUP ? IOBAND_SLACK_NS : IOBAND_GROUP_SLACK_NS;
	if (!timed || !quota[READ] || !quota[WRITE])
		return true;
	ioband_kick(dev, now);
	return false;
}

static void ioband_dispatch_workfn(struct work_struct *work)
{
	struct ioband_dev *dev = container_of(work, struct ioband_dev, work);
	bool more;

	do {
		scoped_guard(spinlock_irqsave, &dev->lock)
			more = ioband_release(dev);
		cond_resched();
	} while (more);
}

/*
 * Take what is held for a disk that goes away, some of it at a time.  Returns true if there
 * may be more.
 */
static bool ioband_cancel_some(struct ioband_dev *dev, struct bio_list *bios)
{
	unsigned int budget = IOBAND_QUANTUM;
	s64 now = ktime_get_ns();

	guard(spinlock_irqsave)(&dev->lock);
	dev->dead = true;
	for (int rw = READ; rw <= WRITE; rw++) {
		struct ioband_dir *dir, *next;

		list_for_each_entry_safe(dir, next, &dev->active[rw], active) {
			if (!budget--)
				return true;
			ioband_drain(dir, bios, now);
		}
	}
	return ioband_share_drain(dev, bios, &budget);
}

/* NULL if there is none that is ready: one that comes later is told by ioband_activated(). */
static struct ioband_dev *ioband_dev_of(struct gendisk *disk)
{
	struct ioband_dev *dev;

	guard(spinlock_irq)(&disk->queue->queue_lock);
	dev = disk->queue->ioband;
	return dev && dev->disk == disk && dev->ready ? dev : NULL;
}

/**
 * ioband_let_go - submit what is held for a disk that is about to go away
 * @disk:	the disk, which cannot be opened any more, or which is marked dead
 *
 * File systems are about to be told: they write what is dirty, drop their inodes, and wait
 * for reads that are under way.  From here on limits and weights hold nothing of the disk.
 *
 * Context: process context, without locks that I/O may wait for.
 */
void ioband_let_go(struct gendisk *disk)
{
	struct ioband_dev *dev = ioband_dev_of(disk);
	struct bio_list bios = BIO_EMPTY_LIST;
	struct blk_plug plug;
	struct bio *bio;

	if (!dev)
		return;
	while (ioband_cancel_some(dev, &bios))
		;
	blk_start_plug(&plug);
	while ((bio = bio_list_pop(&bios))) {
		if (ioband_is_ticket(bio)) {
			ioband_ticket_done(bio);
			continue;
		}
		bio_set_flag(bio, BIO_BPS_THROTTLED);
		ioband_unstamp(bio);
		ioband_submit(dev, bio);
	}
	blk_finish_plug(&plug);
	/* what is on its way gets there, unless the driver waits for us to end it */
	if (!test_bit(GD_DEAD, &disk->state))
		flush_workqueue(dev->wq);
}

/**
 * ioband_dev_alloc - what a device needs to hold bios
 * @disk:	the disk
 *
 * Context: may sleep.
 * Return: the device, NULL if there is no memory.
 */
struct ioband_dev *ioband_dev_alloc(struct gendisk *disk)
{
	struct ioband_dev *dev;

	dev = kzalloc_node(sizeof(*dev), GFP_KERNEL, disk->queue->node);
	if (!dev)
		return NULL;
	kref_init(&dev->ref);
	dev->disk = disk;
	dev->q = disk->queue;
	dev->passed = alloc_percpu(struct ioband_passed);
	if (!dev->passed || ioband_lanes_init(dev) || !ioband_outs_init(dev)) {
		kvfree(dev->out);
		kfree(dev->lanes);
		ioband_dev_put(dev);
		return NULL;
	}
	spin_lock_init(&dev->lock);
	for (int rw = READ; rw <= WRITE; rw++) {
		dev->top[rw].kind = IOBAND_TOP;
		dev->top[rw].ready = RB_ROOT_CACHED;
		INIT_LIST_HEAD(&dev->active[rw]);
	}
	ioband_share_init(dev);
	dev->slack_ns = IOBAND_SLACK_NS;
	ioband_dev_timer_init(dev);
	INIT_WORK(&dev->work, ioband_dispatch_workfn);
	return dev;
}

static void ioband_dev_release(struct kref *ref)
{
	struct ioband_dev *dev = container_of(ref, struct ioband_dev, ref);

	free_percpu(dev->passed);
	kfree(dev);
}

/* A group keeps its device: what it has in flight may end late. */
void ioband_dev_get(struct ioband_dev *dev)
{
	kref_get(&dev->ref);
}

void ioband_dev_put(struct ioband_dev *dev)
{
	kref_put(&dev->ref, ioband_dev_release);
}

/**
 * ioband_dev_free - undo ioband_dev_alloc()
 * @dev:	a device that nothing is held for
 *
 * Its memory goes with the last of its groups.
 *
 * Context: may sleep.
 */
void ioband_dev_free(struct ioband_dev *dev)
{
	WARN_ON_ONCE(!list_empty(&dev->active[READ]) ||
		     !list_empty(&dev->active[WRITE]));
	scoped_guard(spinlock_irq, &dev->lock)
		dev->dead = true;
	/* nobody arms the timer any more, and what it starts finds nothing to do */
	hrtimer_cancel(&dev->timer);
	cancel_work_sync(&dev->work);
	/* bios on their way out fail at the dead queue */
	destroy_workqueue(dev->wq);
	kvfree(dev->out);
	kfree(dev->lanes);
	ioband_dev_put(dev);
}
