// SPDX-License-Identifier: GPL-2.0
/*
 * Dispatching held bios, and devices that are added and removed.
 *
 * dev->timed has the entities that have to be looked at later, by time: gates whose limits will
 * have room for their first bio, and the share gate.  A timer is set for the first of them, and
 * starts work, which chooses the bios that are dispatched; submit.c submits them.  These are apart
 * because submission may wait for the device, and other bios must be dispatched meanwhile.  The
 * work and the timer run on no CPU in particular, so that they stay off isolated CPUs.
 */
#include "ioband.h"

/* One hold of dev->lock takes no longer than this, except for its last bio. */
#define IOBAND_HOLD_NS		(20 * NSEC_PER_USEC)
/*
 * The timer is set this much late, so that gates that are due together compete for the gate above
 * by their tags, and not by which is nanoseconds earlier.  If a round dispatches GROUP bios or
 * more, the timer is set by GROUP_SLACK late: at high rates bios are dispatched in small groups
 * then, and not with a timer and two wakeups each.  This costs no rate, see IOBAND_LATE_NS.
 */
#define IOBAND_SLACK_NS		(5 * NSEC_PER_USEC)
#define IOBAND_GROUP_SLACK_NS	(50 * NSEC_PER_USEC)
#define IOBAND_GROUP		4

/* held while a device gets ready: I3 */
DEFINE_MUTEX(ioband_ready_mutex);

/* For the work of all devices: it never sleeps, and must not wait for submissions. */
static struct workqueue_struct *ioband_pick_wq;

/* Take an entity out of the tree that it is in.  dev->lock held. */
void ioband_untime(struct ioband_dev *dev, struct ioband_ent *ent)
{
	if (ent->state == IOBAND_READY)
		rb_erase_cached(&ent->node, &ent->parent->ready);
	else if (ent->state == IOBAND_TIMED)
		rb_erase_cached(&ent->node, &dev->timed);
	ent->state = IOBAND_IDLE;
}

/* Have the timer look at an entity at a time, ns.  dev->lock held; ioband_kick() has to follow. */
void ioband_time(struct ioband_dev *dev, struct ioband_ent *ent, s64 when)
{
	ioband_untime(dev, ent);
	ent->key = when;
	rb_add_cached(&ent->node, &dev->timed, ioband_before);
	ent->state = IOBAND_TIMED;
}

/* Have all that waits on a device looked at in time.  dev->lock held. */
void ioband_kick(struct ioband_dev *dev, s64 now)
{
	struct ioband_ent *first = ioband_first(&dev->timed);
	s64 when;

	lockdep_assert_held(&dev->lock);
	if (dev->dead)
		return;
	if (ioband_first(&dev->top[READ].ready) || ioband_first(&dev->top[WRITE].ready))
		queue_work(ioband_pick_wq, &dev->work);
	if (!first)
		return;
	when = max_t(s64, first->key, now) + dev->slack_ns;
	if (when >= dev->armed)
		return;
	dev->armed = when;
	hrtimer_start(&dev->timer, ns_to_ktime(when), HRTIMER_MODE_ABS);
}

static enum hrtimer_restart ioband_timer_fn(struct hrtimer *timer)
{
	struct ioband_dev *dev = container_of(timer, struct ioband_dev, timer);

	queue_work(ioband_pick_wq, &dev->work);
	return HRTIMER_NORESTART;
}

/* Look at the entities whose time has come. */
static void ioband_wake(struct ioband_dev *dev, s64 now, unsigned int *budget)
{
	struct ioband_ent *ent;

	while (*budget && (ent = ioband_first(&dev->timed)) && (s64)ent->key <= now) {
		(*budget)--;
		ioband_untime(dev, ent);
		if (ent->kind != IOBAND_GRACE) {
			ioband_place(dev, ent, now);
			continue;
		}
		ioband_share_pump(dev, NULL, now);
		/* it has dispatched as many as it may in one hold of the lock */
		if (ent->state == IOBAND_TIMED && (s64)ent->key <= now)
			*budget = 0;
	}
}

/* Dispatch held bios in one direction.  Returns how many. */
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

/* Dispatch the bios that are due.  Returns true if there may be more. */
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
 * Take some of the bios that limits hold for a disk that is being removed, and some of those that
 * wait for their share.  Returns true if there may be more.
 */
static bool ioband_cancel_some(struct ioband_dev *dev, struct bio_list *held,
			       struct bio_list *bios)
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
			ioband_drain(dir, held, now);
		}
	}
	return ioband_share_drain(dev, bios, &budget);
}

static void ioband_submit_all(struct ioband_dev *dev, struct bio_list *bios, bool fail)
{
	struct blk_plug plug;
	struct bio *bio;

	blk_start_plug(&plug);
	while ((bio = bio_list_pop(bios))) {
		if (ioband_is_ticket(bio)) {
			ioband_ticket_done(bio);
			continue;
		}
		bio_set_flag(bio, BIO_BPS_THROTTLED);
		ioband_unstamp(bio);
		ioband_submit(dev, bio, fail);
	}
	blk_finish_plug(&plug);
}

/*
 * A disk is about to be removed: end or submit the bios that are held for it.  File systems are
 * about to be told: they write dirty pages, drop their inodes, and wait for reads in flight.  From
 * here on limits and weights hold no bio of the disk.  Direct I/O that limits held fails, as in
 * mainline.
 */
void ioband_let_go(struct gendisk *disk)
{
	struct bio_list held = BIO_EMPTY_LIST, bios = BIO_EMPTY_LIST;
	struct ioband_dev *dev;

	scoped_guard(mutex, &ioband_ready_mutex)
		dev = disk->ioband;
	if (!dev)
		return;
	while (ioband_cancel_some(dev, &held, &bios))
		;
	ioband_submit_all(dev, &held, true);
	ioband_submit_all(dev, &bios, false);
	/* wait until all are submitted, unless the driver waits for this function to end them */
	if (!test_bit(GD_DEAD, &disk->state))
		flush_workqueue(dev->wq);
}

/* Allocate what a device needs to hold bios.  Returns NULL if there is no memory. */
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
	if (!dev->passed || !ioband_outs_init(dev)) {
		kvfree(dev->out);
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
	dev->timed = RB_ROOT_CACHED;
	dev->armed = S64_MAX;
	hrtimer_setup(&dev->timer, ioband_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	INIT_WORK(&dev->work, ioband_dispatch_workfn);
	return dev;
}

static void ioband_dev_release(struct kref *ref)
{
	struct ioband_dev *dev = container_of(ref, struct ioband_dev, ref);

	free_percpu(dev->passed);
	kfree(dev);
}

/* Each group has a reference on its device, since its bios in flight may complete late. */
void ioband_dev_put(struct ioband_dev *dev)
{
	kref_put(&dev->ref, ioband_dev_release);
}

/*
 * Undo ioband_dev_alloc(), for a device for which no bio is held.  May sleep.  The memory is freed
 * with the last group of the device.
 */
void ioband_dev_free(struct ioband_dev *dev)
{
	WARN_ON_ONCE(!list_empty(&dev->active[READ]) ||
		     !list_empty(&dev->active[WRITE]));
	scoped_guard(spinlock_irq, &dev->lock)
		dev->dead = true;
	/* the timer is not set any more, and the work that it starts finds nothing to do */
	hrtimer_cancel(&dev->timer);
	cancel_work_sync(&dev->work);
	/* bios that are still to be submitted fail at the dead queue */
	destroy_workqueue(dev->wq);
	kvfree(dev->out);
	ioband_dev_put(dev);
}

/* Allocate at boot what the work of all devices needs.  Returns 0 or -ENOMEM. */
int __init ioband_timer_init(void)
{
	ioband_pick_wq = alloc_workqueue("ioband", WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_UNBOUND, 0);
	return ioband_pick_wq ? 0 : -ENOMEM;
}
