// SPDX-License-Identifier: GPL-2.0
/*
 * Bios that need not wait for their share, and pass without dev->lock.
 *
 * The gate is of no use for a device that is not saturated, and for a group that is alone on a
 * device.  Bios that pass then are only counted, per CPU:
 *
 *  solo	All I/O was of one group for a time: 20 ms at first, and up to 10 s if other groups
 *		come often.  Its I/O passes until a bio of another group comes.  The writeback of
 *		the group passes only as long as nothing is known of the device: later the gate
 *		keeps it from delaying I/O that tasks of the group wait for.
 *  open	No bio had to wait for a while, and I/Os take hardly longer than on an idle device:
 *		all bios pass.  On each CPU a bio looks now and then whether there is still room,
 *		and also when the CPU has used up its part of the room.  The gate closes when there
 *		is no room, and from time to time to measure the device.  It is open as well while
 *		it costs more than it is worth, see worth.h.
 *
 * When bios have ceased to pass, the gate counts those that are still in flight until all of them
 * have completed: I9.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/percpu.h>

#include "../ioband.h"

/*
 * A group is alone once all I/O for this long was its own.  The time becomes longer, up to MAX,
 * each time that another group comes, and is as at first again after a group was alone for FORGET.
 */
#define IOBAND_SOLO_NS		(20 * NSEC_PER_MSEC)
#define IOBAND_SOLO_MAX_NS	(10LL * NSEC_PER_SEC)
#define IOBAND_SOLO_FORGET_NS	(60LL * NSEC_PER_SEC)
/* Bios that passed count for this time after the gate closes, or these latencies if longer. */
#define IOBAND_DRAIN_NS		(250 * NSEC_PER_MSEC)
#define IOBAND_DRAIN_LATENCIES	50
/* After this many windows the device has been measured, and bios may pass again. */
#define IOBAND_DRAIN_WINDOWS	2
/* Of the bios that pass on a CPU, one in LOOK looks at most, and one in MAX at least ... */
#define IOBAND_LOOK		16
#define IOBAND_LOOK_MAX		1024
/* ... or one after this time: to look takes the lock, and reads what all CPUs write. */
#define IOBAND_LOOK_JIFFIES	msecs_to_jiffies(10)

/*
 * Begin to count bios that have passed without the lock.  I9: the flag is set before the sum is
 * read.  A bio is missed if it has seen the gate open before and is not in the sum yet.  This can
 * be one bio on each CPU, and the device has as many too many then.
 */
void ioband_drain_passed(struct ioband_dev *dev, s64 now)
{
	WRITE_ONCE(dev->draining, true);
	dev->share.last_wait_ns = now;
	dev->share.closed_ns = now;
	ioband_worth_again(&dev->share.worth);
	ioband_cost_again(&dev->share.cost);
	dev->share.measured = dev->share.depth.windows + IOBAND_DRAIN_WINDOWS;
}

/* The bios in flight that have passed without the lock; the number may change meanwhile. */
unsigned int ioband_passed_sum(struct ioband_dev *dev)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->passed, cpu)->infl);
	return max(sum, 0L);
}

/* The bios in flight that the gate does not count, while they drain, else 0.  dev->lock held. */
unsigned int ioband_uncounted(struct ioband_dev *dev)
{
	struct ioband_sharer *sh = &dev->share;
	unsigned int sum;
	s64 hang_ns;

	if (!dev->draining)
		return 0;
	smp_mb();	/* pairs with ioband_passed_done(), I9 */
	sum = ioband_passed_sum(dev);
	/* bios that hang do not count for ever: see hang.c */
	hang_ns = max(IOBAND_DRAIN_NS, IOBAND_DRAIN_LATENCIES * sh->latency);
	if (sum && (s64)ktime_get_ns() - sh->closed_ns < hang_ns)
		return sum;
	WRITE_ONCE(dev->draining, false);
	/* the current window did not take these bios into account */
	ioband_window_start(&sh->depth.window);
	return 0;
}

/* A bio that has passed completes, perhaps the last one: others may wait for that. */
static noinline void ioband_drained(struct ioband_dev *dev)
{
	guard(spinlock_irqsave)(&dev->lock);
	if (!dev->dead)
		ioband_share_go(dev, NULL, ktime_get_ns());
}

/* A bio that has passed is not in flight any more. */
void ioband_passed_done(struct ioband_dev *dev)
{
	this_cpu_dec(dev->passed->infl);
	smp_mb();	/* pairs with ioband_uncounted(), I9 */
	if (unlikely(READ_ONCE(dev->draining)))
		ioband_drained(dev);
}

/* Has a group enough device time on this CPU for a bio?  If so, the bio is paid. */
static __always_inline bool ioband_has_lease(struct ioband_dev *dev, struct ioband_grp *grp,
					     const struct bio *bio)
{
	struct ioband_lease *lease = this_cpu_ptr(grp->lease);
	s64 cost;

	if (lease->nr != READ_ONCE(dev->lease_nr) || ioband_is_background(bio))
		return false;
	/* costs do not change during leases */
	cost = data_race(ioband_bio_cost(&dev->share, bio));
	if (lease->left < cost)
		return false;
	lease->left -= cost;
	return true;
}

/* Does a bio that passes on this CPU have to look? */
static __always_inline bool ioband_is_to_look(struct ioband_passed *passed)
{
	unsigned int nr = ++passed->nr;

	return nr >= IOBAND_LOOK &&
	       (nr >= IOBAND_LOOK_MAX || time_after_eq(jiffies, passed->look));
}

/* May a bio pass on this CPU without a look?  Preemption is off. */
static __always_inline bool ioband_passes(struct ioband_dev *dev, struct ioband_grp *grp,
					  const struct bio *bio)
{
	struct ioband_passed *passed;

	if (likely(READ_ONCE(dev->solo) == grp))
		return READ_ONCE(dev->solo_all) || !ioband_is_background(bio);
	if (!READ_ONCE(dev->open))
		return false;
	passed = this_cpu_ptr(dev->passed);
	return READ_ONCE(passed->infl) < READ_ONCE(passed->most) && !ioband_is_to_look(passed);
}

/*
 * Another group has come.  If groups come often and for a short while, the device has to be
 * measured meanwhile.  Bios that pass are not observed, so the next group has to be alone for
 * longer.
 */
static void ioband_end_solo(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	sh->solo_after_ns = now - sh->solo_since > IOBAND_SOLO_FORGET_NS ? IOBAND_SOLO_NS :
			    min(IOBAND_BYPASS_TIMES * sh->solo_after_ns, IOBAND_SOLO_MAX_NS);
	WRITE_ONCE(dev->solo, NULL);
	ioband_drain_passed(dev, now);
}

/* Let a group pass if it has been alone for long enough, or end that. */
static void ioband_try_solo(struct ioband_dev *dev, struct ioband_grp *grp, bool background,
			    s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	/* the very first group is alone at once; writeback counts as another group's I/O */
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
	} else if (!dev->open && !grp->offline && list_empty(&sh->hung) &&
		   !ioband_is_owed(sh, now) &&
		   sh->nr_active == ioband_is_active(grp->share.own.where) &&
		   now - sh->alone_since > sh->solo_after_ns && !ioband_uncounted(dev)) {
		/* nothing that another group has passed is in flight any more */
		sh->solo_since = now;
		WRITE_ONCE(dev->solo_all, !ioband_depth_is_settled(&sh->depth));
		WRITE_ONCE(dev->solo, grp);
	}
}

/* A bio that looks charges its group for all bios that have passed on this CPU since the last. */
static void ioband_sample(struct ioband_grp *grp, struct bio *bio, s64 now)
{
	struct ioband_passed *passed = this_cpu_ptr(grp->dev->passed);
	u64 cost = ioband_bio_cost(&grp->dev->share, bio);
	unsigned int nr = max(passed->nr, 1U);

	ioband_used(grp, nr * cost, now);
	ioband_worth_done(&grp->dev->share.worth, nr, nr * cost);
	passed->nr = 0;
	/* a trial of what the gate costs takes some milliseconds only */
	passed->look = jiffies + (grp->dev->share.worth.open ? 0 : IOBAND_LOOK_JIFFIES);
}

/* Does a bio pass after all, now that it looks?  Then the gate is done with it.  dev->lock held. */
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

/* As ioband_share(), on a device that is leased. */
static noinline bool ioband_share_leased(struct ioband_grp *grp, struct bio *bio)
{
	struct ioband_dev *dev = grp->dev;

	scoped_guard(preempt) {
		if (READ_ONCE(dev->leasing) && ioband_has_lease(dev, grp, bio)) {
			ioband_pass(dev, bio);
			return false;
		}
	}
	return ioband_has_weights(dev) && ioband_share_slow(grp, bio);
}

/* The share gate, for a bio that has passed its limits.  Context and result as ioband_bio(). */
bool ioband_share(struct bio *bio)
{
	struct ioband_grp *grp;
	struct ioband_dev *dev;

	/*
	 * Functions are called at the end only, so that no registers need be saved.  The rest of
	 * a split, whose first part was dispatched, and a flush without data pass.
	 */
	if (ioband_is_carried(bio) || !bio_sectors(bio))
		return false;
	/* an RCU read side: see ioband_is_ready() */
	preempt_disable();
	grp = blkg_to_grp(bio->bi_blkg);
	if (unlikely(!grp || !ioband_is_ready(grp)) ||
	    unlikely(blk_queue_is_zoned(grp->dev->q)) || ioband_is_aside(grp->dev)) {
		preempt_enable();
		return false;
	}
	dev = grp->dev;
	if (likely(ioband_passes(dev, grp, bio))) {
		ioband_pass(dev, bio);
		preempt_enable();
		return false;
	}
	preempt_enable();
	if (READ_ONCE(dev->leasing))
		return ioband_share_leased(grp, bio);
	return ioband_has_weights(dev) && ioband_share_slow(grp, bio);
}

void ioband_bypass_init(struct ioband_dev *dev, s64 now)
{
	dev->share.alone_since = now - 2 * IOBAND_SOLO_NS;
	dev->share.solo_after_ns = IOBAND_SOLO_NS;
	ioband_open_init(&dev->share, now);
}

/* A group goes offline.  dev->lock held. */
void ioband_bypass_removed(struct ioband_grp *grp)
{
	struct ioband_dev *dev = grp->dev;

	/* the next group is not the very first one, and may not be alone */
	if (dev->share.latest == grp) {
		dev->share.latest = NULL;
		dev->share.alone_since = ktime_get_ns();
	}
	if (dev->solo != grp)
		return;
	WRITE_ONCE(dev->solo, NULL);
	ioband_drain_passed(dev, ktime_get_ns());
}
