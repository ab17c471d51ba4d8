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
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <trace/events/ioband.h>

#include "ioband.h"

/* What one hold of dev->lock does at most: tens of us. */
#define IOBAND_QUANTUM		64
/*
 * The timer is set this much late.  High rates leave in small groups then instead
 * of a timer each, and gates that are due together compete for the one above by
 * their tags, not by who is nanoseconds earlier.  Nothing is lost by it, see
 * IOBAND_LATE_NS.
 */
#define IOBAND_TIMER_SLACK_NS	(5 * NSEC_PER_USEC)
/*
 * The most a debt adds at once to what its owner waits before user space, and how
 * often it is looked at whether there still is one: limits change.
 */
#define IOBAND_DELAY_NS		(250 * NSEC_PER_MSEC)

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
		queue_work(dev->wq, &dev->work);
	if (!first)
		return;
	when = rb_entry(first, struct ioband_ent, node)->key;
	when = max(when, now) + IOBAND_TIMER_SLACK_NS;
	if (when >= dev->armed)
		return;
	dev->armed = when;
	hrtimer_start(&dev->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_PINNED);
}

static enum hrtimer_restart ioband_timer_fn(struct hrtimer *timer)
{
	struct ioband_dev *dev = container_of(timer, struct ioband_dev, timer);

	queue_work(dev->wq, &dev->work);
	return HRTIMER_NORESTART;
}

/**
 * ioband_send_from - have a bio submitted from a CPU
 * @dev:	the device
 * @bio:	a bio that may go
 * @cpu:	the one that it came from
 *
 * Context: dev->lock held.
 */
void ioband_send_from(struct ioband_dev *dev, struct bio *bio, unsigned int cpu)
{
	struct ioband_out *out = per_cpu_ptr(dev->out, cpu);

	lockdep_assert_held(&dev->lock);
	bio_list_add(&out->bios, bio);
	queue_work_on(cpu_online(cpu) ? cpu : WORK_CPU_UNBOUND, dev->wq,
		      &out->work);
}

/**
 * ioband_send - have a bio that was held by its caps submitted
 * @dev:	the device
 * @bio:	a bio that has paid, stamped
 * @now:	ns
 * @due:	when it was due, ns
 *
 * Context: dev->lock held.
 */
void ioband_send(struct ioband_dev *dev, struct bio *bio, s64 now, s64 due)
{
	unsigned int cpu = ioband_cpu(bio);

	if (ioband_in_order(bio)) {
		cpu = cpumask_first(cpu_possible_mask);
		dev->zoned_out++;
	}
	trace_ioband_release(bio, now, now - due);
	bio_set_flag(bio, BIO_BPS_THROTTLED);
	ioband_unstamp(bio);
	ioband_send_from(dev, bio, cpu);
}

static void ioband_submit(struct ioband_dev *dev, struct bio *bio)
{
	bool in_order = ioband_in_order(bio);

	/* splits and lower devices are to see whose work this is */
	kthread_associate_blkcg(bio_blkcg_css(bio));
	if (!static_branch_unlikely(&ioband_share_key) || !ioband_share(bio))
		submit_bio_noacct_nocheck(bio, false);
	kthread_associate_blkcg(NULL);
	if (in_order) {
		guard(spinlock_irqsave)(&dev->lock);
		dev->zoned_out--;
	}
}

static void ioband_out_workfn(struct work_struct *work)
{
	struct ioband_out *out = container_of(work, struct ioband_out, work);
	struct bio_list bios = BIO_EMPTY_LIST;
	struct blk_plug plug;
	struct bio *bio;
	bool plugged;

	scoped_guard(spinlock_irqsave, &out->dev->lock) {
		bio_list_merge_init(&bios, &out->bios);
		ioband_observe_lag(out->dev, bios.head);
	}

	/* with a tag, in a plug, an I/O would leave the device idle */
	plugged = bios.head && (!ioband_is_carried(bios.head) ||
				READ_ONCE(out->dev->q->elevator));
	if (plugged)
		blk_start_plug(&plug);
	while ((bio = bio_list_pop(&bios))) {
		ioband_submit(out->dev, bio);
		cond_resched();
	}
	if (plugged)
		blk_finish_plug(&plug);
}

/* Negative: iocost and its blkcg_set_delay() have taken over this group. */
static bool ioband_may_delay(struct ioband_grp *grp)
{
	return atomic_read(&pd_to_blkg(&grp->pd)->use_delay) >= 0;
}

static void ioband_end_delay(struct ioband_grp *grp)
{
	if (ioband_may_delay(grp))
		blkcg_unuse_delay(pd_to_blkg(&grp->pd));
}

/* Time to see whether a group is still in debt. */
static void ioband_check_debt(struct ioband_grp *grp, s64 now)
{
	s64 end = ioband_debt_end(grp);

	if (end > now)
		ioband_time(grp->dev, &grp->debt, min(end, now + IOBAND_DELAY_NS));
	else
		ioband_end_delay(grp);
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
			ioband_check_debt(container_of(ent, struct ioband_grp, debt), now);
		else if (ent->kind == IOBAND_GRACE)
			ioband_share_pump(dev, now);
		else
			ioband_place(dev, ent, now);
		budget--;
	}
	for (int rw = READ; rw <= WRITE; rw++) {
		unsigned int quota = IOBAND_QUANTUM / 2;
		struct bio *bio;
		s64 due;

		while (quota && (bio = ioband_next(dev, rw, now, &due))) {
			ioband_send(dev, bio, now, due);
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

/**
 * ioband_delay - slow down who runs up debts
 * @grp:	the group
 * @cost:	what it was just given unpaid, ns
 * @now:	ns
 *
 * A group that does nothing but metadata never waits for its caps.  While it is in
 * debt its tasks wait on their way back to user space instead, where they hold
 * nothing that others may need.
 *
 * Context: dev->lock held.
 */
void ioband_delay(struct ioband_grp *grp, s64 cost, s64 now)
{
	struct blkcg_gq *blkg = pd_to_blkg(&grp->pd);

	lockdep_assert_held(&grp->dev->lock);
	/* the root is everybody's parent, and never delayed */
	if (grp->offline || !blkg->parent || !ioband_may_delay(grp) ||
	    ioband_debt_end(grp) <= now)
		return;
	if (grp->debt.state == IOBAND_IDLE) {
		blkcg_use_delay(blkg);
		ioband_check_debt(grp, now);
		ioband_kick(grp->dev, now);
	}
	blkcg_add_delay(blkg, now, min(cost, IOBAND_DELAY_NS));
}

/**
 * ioband_removed - a group goes offline
 * @grp:	the group
 *
 * What it has waiting goes on as it is; who it kept from user space goes free.
 *
 * Context: any; takes dev->lock.
 */
void ioband_removed(struct ioband_grp *grp)
{
	guard(spinlock_irqsave)(&grp->dev->lock);
	grp->offline = true;
	WRITE_ONCE(grp->careful, true);
	ioband_weight_offline(grp);
	ioband_share_removed(grp);
	if (grp->debt.state == IOBAND_IDLE)
		return;
	ioband_untime(grp->dev, &grp->debt);
	ioband_end_delay(grp);
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
	struct bio_list bios = BIO_EMPTY_LIST;
	struct ioband_dev *dev;
	struct bio *bio;

	/* against ioband_activate(): there may be no dev yet */
	guard(mutex)(&disk->queue->rq_qos_mutex);
	dev = disk->queue->ioband;
	if (!dev)
		return;

	scoped_guard(spinlock_irqsave, &dev->lock) {
		struct ioband_dir *dir, *next;
		s64 now = ktime_get_ns();

		dev->dead = true;
		for (int rw = READ; rw <= WRITE; rw++)
			list_for_each_entry_safe(dir, next, &dev->active[rw],
						 active)
				ioband_drain(dir, &bios, now);
		ioband_share_drain(dev, &bios);
	}
	while ((bio = bio_list_pop(&bios))) {
		ioband_unstamp(bio);
		bio_io_error(bio);
	}
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
	int cpu;

	dev = kzalloc_node(sizeof(*dev), GFP_KERNEL, disk->queue->node);
	if (!dev)
		return NULL;
	dev->passed = alloc_percpu(struct ioband_passed);
	if (!dev->passed)
		goto free_dev;
	dev->out = alloc_percpu(struct ioband_out);
	if (!dev->out)
		goto free_passed;
	/* the device idles until it runs */
	dev->wq = alloc_workqueue("ioband/%s",
				  WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU, 0,
				  disk->disk_name);
	if (!dev->wq)
		goto free_out;
	for_each_possible_cpu(cpu) {
		struct ioband_out *out = per_cpu_ptr(dev->out, cpu);

		out->dev = dev;
		bio_list_init(&out->bios);
		INIT_WORK(&out->work, ioband_out_workfn);
	}
	kref_init(&dev->ref);
	dev->disk = disk;
	dev->q = disk->queue;
	spin_lock_init(&dev->lock);
	dev->timed = RB_ROOT_CACHED;
	for (int rw = READ; rw <= WRITE; rw++) {
		dev->top[rw].kind = IOBAND_TOP;
		dev->top[rw].ready = RB_ROOT_CACHED;
		INIT_LIST_HEAD(&dev->active[rw]);
	}
	ioband_share_init(dev);
	dev->armed = S64_MAX;
	hrtimer_setup(&dev->timer, ioband_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED);
	INIT_WORK(&dev->work, ioband_dispatch_workfn);
	return dev;

free_out:
	free_percpu(dev->out);
free_passed:
	free_percpu(dev->passed);
free_dev:
	kfree(dev);
	return NULL;
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
	/* timer and work set each other off, but find nothing to do */
	cancel_work_sync(&dev->work);
	hrtimer_cancel(&dev->timer);
	cancel_work_sync(&dev->work);
	/* bios on their way out fail at the dead queue */
	destroy_workqueue(dev->wq);
	free_percpu(dev->out);
	ioband_dev_put(dev);
}
