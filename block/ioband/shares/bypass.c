// SPDX-License-Identifier: GPL-2.0
/*
 * Bios that need not wait for their share, and pass without dev->lock.
 *
 * A gate can do nothing for a device that takes all that it is given, or for a group
 * that is alone.  What passes then is only counted, per CPU:
 *
 *  solo	All I/O for a while was of one group.  It passes until another one comes; the
 *		more often that happens the longer is the while.  Its writeback passes only
 *		if nothing is known of the device: else it is kept from delaying what the
 *		group's tasks wait for.
 *  open	Nobody had to wait for a while, and I/Os take hardly longer than at best:
 *		all pass.  On each CPU one of them looks now and then whether there is
 *		still room, and at once if the CPU has used up its part of what there
 *		was.  The gate closes when there is none, and now and then to see what the device is
 *		like.  It is open as well while it costs more than it is worth, see worth.h.
 *
 * The gate counts in what passed and is still in flight, until that has drained: I9.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/percpu.h>

#include "../ioband.h"

/*
 * A group is alone once all I/O for this long was its own; for longer, up to MAX, each time that
 * another one came all the same, and as at first after a FORGET alone.
 */
#define IOBAND_SOLO_NS		(20 * NSEC_PER_MSEC)
#define IOBAND_SOLO_MAX_NS	(10LL * NSEC_PER_SEC)
#define IOBAND_SOLO_FORGET_NS	(60LL * NSEC_PER_SEC)
/* What passed counts for so long after the gate closed, and for so many latencies, at most. */
#define IOBAND_DRAIN_NS		(250 * NSEC_PER_MSEC)
#define IOBAND_DRAIN_LATENCIES	50
/* Of bios that pass on a CPU one in so many looks at most, and one in MAX at least ... */
#define IOBAND_LOOK		16
#define IOBAND_LOOK_MAX		1024
/* ... or one after this: looks take the lock, and read what all CPUs write. */
#define IOBAND_LOOK_JIFFIES	msecs_to_jiffies(10)

/*
 * I9: the flag first, then the sum.  Who saw the gate open before and is not in that
 * yet is missed: one on each CPU at most, which makes the device that much too full.
 */
void ioband_drain_passed(struct ioband_dev *dev, s64 now)
{
	WRITE_ONCE(dev->draining, true);
	dev->share.waited = now;
	dev->share.closed = now;
	ioband_worth_again(&dev->share.worth);
	ioband_cost_again(&dev->share.cost);
}

/**
 * ioband_passed_sum - bios in flight that passed
 * @dev:	the device
 *
 * Return: about how many.
 */
unsigned int ioband_passed_sum(struct ioband_dev *dev)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->passed, cpu)->infl);
	return max(sum, 0L);
}

/**
 * ioband_uncounted - bios in flight that passed without the gate's knowledge
 * @dev:	the device
 *
 * Context: dev->lock held.
 * Return: how many, 0 once all that there were have completed.
 */
unsigned int ioband_uncounted(struct ioband_dev *dev)
{
	struct ioband_sharer *sh = &dev->share;
	unsigned int sum;
	s64 hang_ns;

	if (!dev->draining)
		return 0;
	smp_mb();	/* with ioband_passed_done(), I9 */
	sum = ioband_passed_sum(dev);
	/* what hangs does not count for ever: see hang.c */
	hang_ns = max(IOBAND_DRAIN_NS, IOBAND_DRAIN_LATENCIES * sh->latency);
	if (sum && (s64)ktime_get_ns() - sh->closed < hang_ns)
		return sum;
	WRITE_ONCE(dev->draining, false);
	/* what was begun to be measured before knows nothing of them */
	ioband_window_start(&sh->depth.window);
	return 0;
}

/* The last of those that passed, perhaps: somebody waits for that. */
static noinline void ioband_drained(struct ioband_dev *dev)
{
	guard(spinlock_irqsave)(&dev->lock);
	if (!dev->dead)
		ioband_share_go(dev, NULL, ktime_get_ns());
}

/**
 * ioband_passed_done - a bio that passed is not in flight any more
 * @dev:	the device that it passed to
 *
 * Context: any.
 */
void ioband_passed_done(struct ioband_dev *dev)
{
	this_cpu_dec(dev->passed->infl);
	smp_mb();	/* with ioband_uncounted(), I9 */
	if (unlikely(READ_ONCE(dev->draining)))
		ioband_drained(dev);
}

/* Has a group bought device time on this CPU that is enough for a bio? */
static __always_inline bool ioband_has_lease(struct ioband_dev *dev, struct ioband_grp *grp,
					     const struct bio *bio)
{
	struct ioband_lease *lease = this_cpu_ptr(grp->lease);
	s64 cost;

	if (lease->nr != READ_ONCE(dev->lease_nr) || ioband_is_background(bio))
		return false;
	/* what I/Os cost does not change meanwhile */
	cost = data_race(ioband_bio_cost(&dev->share, bio));
	if (lease->left < cost)
		return false;
	lease->left -= cost;
	return true;
}

/* A bio passes on this CPU.  Is it its turn to look? */
static __always_inline bool ioband_is_to_look(struct ioband_passed *passed)
{
	unsigned int nr = ++passed->nr;

	return nr >= IOBAND_LOOK &&
	       (nr >= IOBAND_LOOK_MAX || time_after_eq(jiffies, passed->look));
}

/* May the next bio on this CPU pass without a look?  Preemption is off. */
static __always_inline bool ioband_passes(struct ioband_dev *dev, struct ioband_grp *grp,
					  const struct bio *bio)
{
	struct ioband_passed *passed;

	if (likely(READ_ONCE(dev->solo) == grp))
		return READ_ONCE(dev->solo_all) || !ioband_is_background(bio);
	if (READ_ONCE(dev->leasing))
		return ioband_has_lease(dev, grp, bio);
	if (!READ_ONCE(dev->open))
		return false;
	passed = this_cpu_ptr(dev->passed);
	return READ_ONCE(passed->infl) < READ_ONCE(passed->most) && !ioband_is_to_look(passed);
}

/*
 * Another group has come.  If it comes again and again, for a short while only, the device has to
 * be known by then, and nothing is learned from what passes.
 */
static void ioband_end_solo(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	sh->solo_after_ns = now - sh->solo_since > IOBAND_SOLO_FORGET_NS ? IOBAND_SOLO_NS :
			    min(IOBAND_BYPASS_TIMES * sh->solo_after_ns, IOBAND_SOLO_MAX_NS);
	WRITE_ONCE(dev->solo, NULL);
	ioband_drain_passed(dev, now);
}

/* Alone for long enough? */
static void ioband_try_solo(struct ioband_dev *dev, struct ioband_grp *grp, bool background,
			    s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	/* the first of all is alone at once; its own writeback is another one to its tasks */
	if ((sh->latest != grp && sh->latest) ||
	    (background && ioband_depth_is_settled(&sh->depth)))
		sh->alone_since = now;
	sh->latest = grp;
	if (dev->solo == grp) {
		if (!background || dev->solo_all)
			return;
		/* see ioband_passes() */
		WRITE_ONCE(dev->solo, NULL);
		ioband_drain_passed(dev, now);
	} else if (dev->solo) {
		ioband_end_solo(dev, now);
	} else if (!dev->solo && !dev->open && !grp->offline && list_empty(&sh->hung) &&
		   sh->nr_active == ioband_is_active(grp->share.own.where) &&
		   now - sh->alone_since > sh->solo_after_ns && !ioband_uncounted(dev)) {
		/* of whom was alone before, nothing is in flight any more */
		sh->solo_since = now;
		WRITE_ONCE(dev->solo_all, !ioband_depth_is_settled(&sh->depth));
		WRITE_ONCE(dev->solo, grp);
	}
}

/* Who looks stands for all that passed on this CPU since somebody did. */
static void ioband_sample(struct ioband_grp *grp, struct bio *bio, s64 now)
{
	struct ioband_passed *passed = this_cpu_ptr(grp->dev->passed);
	u64 cost = ioband_bio_cost(&grp->dev->share, bio);
	unsigned int nr = max(passed->nr, 1U);

	ioband_used(grp, nr * cost, now);
	ioband_worth_done(&grp->dev->share.worth, nr, nr * cost);
	passed->nr = 0;
	/* what the gate costs is measured within milliseconds */
	passed->look = jiffies + (grp->dev->share.worth.open ? 0 : IOBAND_LOOK_JIFFIES);
}

/**
 * ioband_bypass - does a bio pass all the same, now that somebody looks?
 * @grp:	its group
 * @bio:	the bio
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: true if it needs nothing else of the gate.
 */
bool ioband_bypass(struct ioband_grp *grp, struct bio *bio, s64 now)
{
	struct ioband_dev *dev = grp->dev;

	lockdep_assert_held(&dev->lock);
	ioband_observe_elevator(dev);
	ioband_lease_look(dev, now);
	if (dev->leasing)
		return false;
	ioband_try_solo(dev, grp, ioband_is_background(bio), now);
	if (!dev->open) {
		ioband_try_open(dev, now);
		ioband_lease_try(dev, now);
		return false;
	}
	if (!ioband_stays_open(dev, now))
		return false;
	ioband_sample(grp, bio, now);
	ioband_pass(dev, bio);
	return true;
}

/**
 * ioband_share - pass a bio through the share gate of its device
 * @bio:	a bio that its caps let go
 *
 * Context: as ioband_bio().
 * Return: true if it is kept, and submitted later.
 */
bool ioband_share(struct bio *bio)
{
	struct ioband_grp *grp;
	struct ioband_dev *dev;

	/* the rest of a split: its first part waited for both */
	if (ioband_is_carried(bio) || !bio_sectors(bio))
		return false;
	/* an RCU read side: see ioband_is_ready() */
	preempt_disable();
	grp = blkg_to_grp(bio->bi_blkg);
	if (unlikely(!grp || !ioband_is_ready(grp))) {
		preempt_enable();
		/* zone writes must stay in order: no shares there yet */
		if (atomic_read(&ioband_nr_weights) && !bdev_is_zoned(bio->bi_bdev))
			ioband_want(bio->bi_bdev->bd_disk);
		return false;
	}
	dev = grp->dev;
	if (unlikely(dev->lanes) || ioband_is_aside(dev)) {
		preempt_enable();
		return false;
	}
	if (likely(ioband_passes(dev, grp, bio))) {
		ioband_pass(dev, bio);
		preempt_enable();
		return false;
	}
	preempt_enable();
	return ioband_has_weights(dev) && ioband_share_slow(grp, bio);
}

/**
 * ioband_bypass_init - nobody passes a device yet
 * @dev:	the device
 * @now:	ns
 */
void ioband_bypass_init(struct ioband_dev *dev, s64 now)
{
	dev->share.alone_since = now - 2 * IOBAND_SOLO_NS;
	dev->share.solo_after_ns = IOBAND_SOLO_NS;
	ioband_open_init(&dev->share, now);
}

/**
 * ioband_bypass_removed - a group goes offline
 * @grp:	the group
 *
 * Context: dev->lock held.
 */
void ioband_bypass_removed(struct ioband_grp *grp)
{
	struct ioband_dev *dev = grp->dev;

	/* the next to come is not the first of all, and may not be alone */
	if (dev->share.latest == grp) {
		dev->share.latest = NULL;
		dev->share.alone_since = ktime_get_ns();
	}
	if (dev->solo != grp)
		return;
	WRITE_ONCE(dev->solo, NULL);
	ioband_drain_passed(dev, ktime_get_ns());
}
