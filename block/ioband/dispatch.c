// SPDX-License-Identifier: GPL-2.0
/*
 * How held bios leave: a timer set to the exact time of the next one, work that
 * picks who goes, and work on the CPU of each submitter that submits them.
 *
 * Picking and submitting are apart because submission may wait for the device,
 * and picking must go on for the others.
 */
#include <linux/blkdev.h>
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <trace/events/ioband.h>

#include "ioband.h"

/* What one hold of dev->lock does at most: tens of us. */
#define IOBAND_QUANTUM		64
/*
 * The timer is set no closer than this, so that high rates leave in small
 * groups instead of a timer each; far below IOBAND_BURST_NS, so no rate is lost.
 */
#define IOBAND_TIMER_SLACK_NS	(10 * NSEC_PER_USEC)
/* The most a debt adds at once to what its owner waits before user space. */
#define IOBAND_DELAY_MAX_NS	NSEC_PER_SEC

struct workqueue_struct *ioband_wq;

static bool ioband_any_ready(struct ioband_dev *dev)
{
	return !RB_EMPTY_ROOT(&dev->top[READ].ready.rb_root) ||
	       !RB_EMPTY_ROOT(&dev->top[WRITE].ready.rb_root);
}

/**
 * ioband_kick - see to it that whatever waits on a device goes in time
 * @dev:	the device
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_kick(struct ioband_dev *dev, s64 now)
{
	struct rb_node *first = rb_first_cached(&dev->timed);
	s64 when;

	lockdep_assert_held(&dev->lock);
	if (ioband_any_ready(dev))
		queue_work(ioband_wq, &dev->work);
	if (!first)
		return;
	when = rb_entry(first, struct ioband_ent, node)->key;
	when = max(when, now + IOBAND_TIMER_SLACK_NS);
	if (when >= dev->armed)
		return;
	dev->armed = when;
	hrtimer_start(&dev->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_PINNED);
}

static enum hrtimer_restart ioband_timer_fn(struct hrtimer *timer)
{
	struct ioband_dev *dev = container_of(timer, struct ioband_dev, timer);

	queue_work(ioband_wq, &dev->work);
	return HRTIMER_NORESTART;
}

/* Hand a bio to the CPU that submitted it. */
static void ioband_send(struct ioband_dev *dev, struct bio *bio, s64 now)
{
	unsigned int cpu = ioband_cpu(bio);
	struct ioband_out *out;

	/* writes to a zone must stay in order: one list for all */
	if (bdev_is_zoned(bio->bi_bdev) && op_is_write(bio->bi_opf))
		cpu = cpumask_first(cpu_possible_mask);

	trace_ioband_release(bio, now, now - ioband_arrival(bio));
	bio_set_flag(bio, BIO_BPS_THROTTLED);
	ioband_unstamp(bio);

	out = per_cpu_ptr(dev->out, cpu);
	bio_list_add(&out->bios, bio);
	queue_work_on(cpu_online(cpu) ? cpu : WORK_CPU_UNBOUND, ioband_wq,
		      &out->work);
}

static void ioband_end_delay(struct ioband_ent *ent)
{
	struct ioband_grp *grp = container_of(ent, struct ioband_grp, debt);

	blkcg_unuse_delay(pd_to_blkg(&grp->pd));
}

/* Release what may go.  Returns true if there is more. */
static bool ioband_release(struct ioband_dev *dev)
{
	unsigned int budget = IOBAND_QUANTUM;
	struct ioband_ent *ent;
	s64 now = ktime_get_ns();

	lockdep_assert_held(&dev->lock);
	dev->armed = S64_MAX;
	while (budget && (ent = ioband_expire(dev, now))) {
		if (ent->kind == IOBAND_DEBT)
			ioband_end_delay(ent);
		else
			ioband_place(dev, ent, now);
		budget--;
	}
	for (int rw = READ; rw <= WRITE; rw++) {
		unsigned int quota = IOBAND_QUANTUM / 2;
		struct bio *bio;

		while (quota && (bio = ioband_next(dev, rw, now))) {
			ioband_send(dev, bio, now);
			quota--;
		}
		budget = quota ? budget : 0;
	}
	if (!budget)
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

static void ioband_out_workfn(struct work_struct *work)
{
	struct ioband_out *out = container_of(work, struct ioband_out, work);
	struct bio_list bios = BIO_EMPTY_LIST;
	struct blk_plug plug;
	struct bio *bio;

	scoped_guard(spinlock_irqsave, &out->dev->lock)
		bio_list_merge_init(&bios, &out->bios);

	blk_start_plug(&plug);
	while ((bio = bio_list_pop(&bios)))
		submit_bio_noacct_nocheck(bio, false);
	blk_finish_plug(&plug);
}

/**
 * ioband_delay - slow down who runs up debts
 * @grp:	the group
 * @until:	when its gates would have let the bio go, ns
 * @cost:	what the bio costs there, ns
 * @now:	ns
 *
 * A group that does nothing but metadata never waits for its caps.  Until
 * @until its tasks wait on their way back to user space instead, where they
 * hold nothing that others may need.
 *
 * Context: dev->lock held.
 */
void ioband_delay(struct ioband_grp *grp, s64 until, s64 cost, s64 now)
{
	struct blkcg_gq *blkg = pd_to_blkg(&grp->pd);

	lockdep_assert_held(&grp->dev->lock);
	if (until <= now || grp->offline)
		return;
	if (grp->debt.state == IOBAND_IDLE) {
		/* negative: blkcg_set_delay() is in charge of this one */
		if (atomic_read(&blkg->use_delay) < 0)
			return;
		blkcg_use_delay(blkg);
	}
	blkcg_add_delay(blkg, now, min(cost, IOBAND_DELAY_MAX_NS));
	ioband_time(grp->dev, &grp->debt, until);
	ioband_kick(grp->dev, now);
}

/**
 * ioband_undelay - no more delays for a group that goes offline
 * @grp:	the group
 *
 * Context: any; takes dev->lock.
 */
void ioband_undelay(struct ioband_grp *grp)
{
	guard(spinlock_irqsave)(&grp->dev->lock);
	grp->offline = true;
	if (grp->debt.state == IOBAND_IDLE)
		return;
	ioband_untime(grp->dev, &grp->debt);
	ioband_end_delay(&grp->debt);
}

/**
 * ioband_cancel_bios - fail what is held for a disk that is going away
 * @disk:	the disk, dead by now
 *
 * Nothing is held for it from here on.
 *
 * Context: process context, del_gendisk().
 */
void ioband_cancel_bios(struct gendisk *disk)
{
	struct ioband_dev *dev = disk->queue->ioband;
	struct bio_list bios = BIO_EMPTY_LIST;
	struct bio *bio;

	if (!dev)
		return;

	scoped_guard(spinlock_irqsave, &dev->lock) {
		struct ioband_dir *dir, *next;
		s64 now = ktime_get_ns();

		dev->dead = true;
		for (int rw = READ; rw <= WRITE; rw++) {
			list_for_each_entry_safe(dir, next, &dev->active[rw],
						 active) {
				ioband_detach(dir->grp, rw);
				while (dir->held)
					bio_list_add(&bios, ioband_unhold(dir->grp, rw, now));
			}
		}
	}
	while ((bio = bio_list_pop(&bios))) {
		ioband_unstamp(bio);
		bio_io_error(bio);
	}
}

/**
 * ioband_dev_alloc - what a device needs to hold bios
 * @q:		its queue
 *
 * Context: may sleep.
 * Return: the device, NULL if there is no memory.
 */
struct ioband_dev *ioband_dev_alloc(struct request_queue *q)
{
	struct ioband_dev *dev;
	int cpu;

	dev = kzalloc_node(sizeof(*dev), GFP_KERNEL, q->node);
	if (!dev)
		return NULL;
	dev->out = alloc_percpu(struct ioband_out);
	if (!dev->out) {
		kfree(dev);
		return NULL;
	}
	for_each_possible_cpu(cpu) {
		struct ioband_out *out = per_cpu_ptr(dev->out, cpu);

		out->dev = dev;
		bio_list_init(&out->bios);
		INIT_WORK(&out->work, ioband_out_workfn);
	}
	dev->q = q;
	spin_lock_init(&dev->lock);
	dev->timed = RB_ROOT_CACHED;
	for (int rw = READ; rw <= WRITE; rw++) {
		dev->top[rw].kind = IOBAND_TOP;
		dev->top[rw].ready = RB_ROOT_CACHED;
		INIT_LIST_HEAD(&dev->active[rw]);
	}
	dev->armed = S64_MAX;
	hrtimer_setup(&dev->timer, ioband_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED);
	INIT_WORK(&dev->work, ioband_dispatch_workfn);
	return dev;
}

/**
 * ioband_dev_free - undo ioband_dev_alloc()
 * @dev:	a device that nothing is held for
 *
 * Context: may sleep.
 */
void ioband_dev_free(struct ioband_dev *dev)
{
	int cpu;

	WARN_ON_ONCE(!list_empty(&dev->active[READ]) ||
		     !list_empty(&dev->active[WRITE]));
	/* timer and work set each other off, but find nothing to do */
	cancel_work_sync(&dev->work);
	hrtimer_cancel(&dev->timer);
	cancel_work_sync(&dev->work);
	for_each_possible_cpu(cpu)
		flush_work(&per_cpu_ptr(dev->out, cpu)->work);
	free_percpu(dev->out);
	kfree(dev);
}
