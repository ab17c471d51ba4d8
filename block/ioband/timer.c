// SPDX-License-Identifier: GPL-2.0
/*
 * What is due on a device, and when.
 *
 * dev->timed has the entities that have to be looked at later, by time: gates whose limits will
 * have room for their first bio, and the share gate.  One timer per device is set for the first of
 * them, and starts the work of dispatch.c.  No function here calls another file.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>

#include "ioband.h"

/* For the work of dispatch.c on all devices: it never sleeps, and must not wait for submissions. */
static struct workqueue_struct *ioband_pick_wq;

/**
 * ioband_untime - take an entity out of the tree that it is in
 * @dev:	the device
 * @ent:	the entity, wherever it is
 *
 * Context: dev->lock held.
 */
void ioband_untime(struct ioband_dev *dev, struct ioband_ent *ent)
{
	if (ent->state == IOBAND_READY)
		rb_erase_cached(&ent->node, &ent->parent->ready);
	else if (ent->state == IOBAND_TIMED)
		rb_erase_cached(&ent->node, &dev->timed);
	ent->state = IOBAND_IDLE;
}

/**
 * ioband_time - have ioband_expire() return an entity at a given time
 * @dev:	the device
 * @ent:	the entity, wherever it is
 * @when:	the time, ns
 *
 * Context: dev->lock held; the caller arms the timer, see ioband_kick().
 */
void ioband_time(struct ioband_dev *dev, struct ioband_ent *ent, s64 when)
{
	ioband_untime(dev, ent);
	ent->key = when;
	rb_add_cached(&ent->node, &dev->timed, ioband_before);
	ent->state = IOBAND_TIMED;
}

/**
 * ioband_expire - take an entity whose time, set by ioband_time(), has come
 * @dev:	the device
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: the entity, which is in no tree any more; NULL if there is none.
 */
struct ioband_ent *ioband_expire(struct ioband_dev *dev, s64 now)
{
	struct ioband_ent *ent = ioband_first(&dev->timed);

	if (!ent || (s64)ent->key > now)
		return NULL;
	ioband_untime(dev, ent);
	return ent;
}

static bool ioband_any_ready(struct ioband_dev *dev)
{
	return !RB_EMPTY_ROOT(&dev->top[READ].ready.rb_root) ||
	       !RB_EMPTY_ROOT(&dev->top[WRITE].ready.rb_root);
}

/**
 * ioband_kick - have all that waits on a device looked at in time
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
	if (dev->dead)
		return;
	if (ioband_any_ready(dev))
		queue_work(ioband_pick_wq, &dev->work);
	if (!first)
		return;
	when = rb_entry(first, struct ioband_ent, node)->key;
	when = max(when, now) + dev->slack_ns;
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

/**
 * ioband_dev_timer_init - set up the timer of a device
 * @dev:	the device, whose work is set up
 */
void ioband_dev_timer_init(struct ioband_dev *dev)
{
	dev->timed = RB_ROOT_CACHED;
	dev->armed = S64_MAX;
	hrtimer_setup(&dev->timer, ioband_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}

/**
 * ioband_timer_init - allocate at boot what the timers of all devices need
 *
 * Return: 0, or -ENOMEM.
 */
int __init ioband_timer_init(void)
{
	ioband_pick_wq = alloc_workqueue("ioband", WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_UNBOUND, 0);
	return ioband_pick_wq ? 0 : -ENOMEM;
}
