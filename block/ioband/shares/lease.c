// SPDX-License-Identifier: GPL-2.0
/*
 * Leases: sharing a fast device without taking its lock for each I/O.
 *
 * If competing groups do hundreds of thousands of I/Os a second, dev->lock, taken twice for each
 * I/O on all CPUs, would limit their rate.  But so many I/Os need not be ordered one by one.  A
 * group that does not lead others by much buys device time for several I/Os on a CPU in advance,
 * and is charged for it at once; these I/Os pass without the lock, see bypass.c.  A group that
 * leads others by more than ->lease_ns waits at the gate, and is dispatched when others have bought
 * so much that it does not lead any more.  All leases together are for ->lease_ns of the device at
 * most, so the share of a group is off by no more than that.
 *
 * Leases are for groups that keep the device busy without the groups that lead.  If leading groups
 * use places that others leave free, each I/O counts, and leases end.
 *
 * While there are leases nothing is learned of the device, since I/Os that pass without the lock
 * are not observed.  So leases end soon, and begin again after some windows have shown how many
 * I/Os the device does at once, see depth.h.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/percpu.h>

#include "../ioband.h"

/*
 * A lease is for this many I/Os, each like the I/O that buys it: IOBAND_LEASE_MIN, or one for each
 * IOBAND_LEASE_CPUS CPUs, as these contend for the lock, but no more than IOBAND_LEASE_IOS.
 */
#define IOBAND_LEASE_IOS	16U
#define IOBAND_LEASE_MIN	4U
#define IOBAND_LEASE_CPUS	4
/* A group may lead by this many times the device time that leases on all CPUs are for. */
#define IOBAND_LEASE_TIMES	2
/* Leases begin if I/Os complete as often as this, unless debugfs has another time, ... */
#define IOBAND_LEASE_GAP_NS	(5 * NSEC_PER_USEC)
/* ... with which tests can have leases on any device, ... */
#define IOBAND_LEASE_ALWAYS_NS	NSEC_PER_SEC
/* ... once this many windows and blocks have ended since the last leases. */
#define IOBAND_LEASE_WINDOWS	4
#define IOBAND_LEASE_BLOCKS	1
/* Leases end after EXACTS times the time for which there were none, within these bounds. */
#define IOBAND_LEASE_EXACTS	8
#define IOBAND_LEASE_END_NS	(100LL * NSEC_PER_MSEC)
#define IOBAND_LEASE_END_MAX_NS	(500LL * NSEC_PER_MSEC)
/*
 * All leases are for GAPS times ->lease_gap_ns at most; an I/O that takes LONG times it suits none.
 */
#define IOBAND_LEASE_GAPS	200
#define IOBAND_LEASE_LONG	3
/* The number of windows after leases that are ignored: they see I/Os that leases have left. */
#define IOBAND_LEASE_IGNORE	2
/* The time after which it is checked again that the device is busy, while a group waits. */
#define IOBAND_LEASE_WATCH_NS	(100 * NSEC_PER_USEC)
/* The time after which a group that has bought nothing is not active. */
#define IOBAND_LEASE_IDLE_NS	NSEC_PER_MSEC

void ioband_lease_init(struct ioband_sharer *sh)
{
	INIT_LIST_HEAD(&sh->leased);
	sh->lease_gap_ns = IOBAND_LEASE_GAP_NS;
}

static unsigned int ioband_lease_ios(void)
{
	return clamp(num_online_cpus() / IOBAND_LEASE_CPUS, IOBAND_LEASE_MIN, IOBAND_LEASE_IOS);
}

static void ioband_lease_begin(struct ioband_dev *dev, s64 now)
{
	u64 ios = (u64)IOBAND_LEASE_TIMES * ioband_lease_ios() * num_online_cpus();
	struct ioband_sharer *sh = &dev->share;

	sh->lease_ns = min((ios * sh->cost.usual >> 8) + 1, IOBAND_LEASE_GAPS * sh->lease_gap_ns);
	sh->lease_since_ns = now;
	sh->lease_until_ns = now + clamp(IOBAND_LEASE_EXACTS * (now - sh->lease_ended_ns),
					 IOBAND_LEASE_END_NS, IOBAND_LEASE_END_MAX_NS);
	sh->lease_watch_ns = now;
	WRITE_ONCE(dev->lease_nr, dev->lease_nr + 1);
	WRITE_ONCE(dev->leasing, true);
}

/* Do leases suit a device, and is enough known of it? */
static bool ioband_lease_suit(const struct ioband_sharer *sh, s64 now)
{
	u64 gap_ns = READ_ONCE(sh->lease_gap_ns);

	if (sh->excess || sh->depth.pinned || sh->nr_active < 2 || !list_empty(&sh->hung))
		return false;
	if (gap_ns >= IOBAND_LEASE_ALWAYS_NS)
		return true;
	/* leading groups were dispatched, in places that the others had left free */
	if (sh->depth.phase != IOBAND_SETTLED || sh->depth.led)
		return false;
	/* a device may work in pulses: on average it has to be fast as well */
	if (sh->gap > gap_ns || sh->cost.usual >> 8 > gap_ns)
		return false;
	if (now - sh->lease_not_ns < IOBAND_LEASE_END_NS)
		return false;
	return sh->depth.windows - sh->lease_windows >= IOBAND_LEASE_WINDOWS &&
	       sh->cost.turn - sh->lease_blocks >= IOBAND_LEASE_BLOCKS;
}

/* Begin with leases if they suit the device.  dev->lock held. */
void ioband_lease_try(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	if (!dev->leasing && !dev->solo && !dev->open && ioband_lease_suit(sh, now) &&
	    !ioband_uncounted(dev))
		ioband_lease_begin(dev, now);
}

/*
 * May leases go on?  If a group waits because it leads others, the others have to keep the device
 * busy.
 */
static bool ioband_lease_stays(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	if (now > sh->lease_until_ns || sh->nr_active < 2 ||
	    sh->lease_not_ns > sh->lease_since_ns)
		return false;
	/* a stuck group dispatches one bio now and then, which has to be counted */
	if (!list_empty(&sh->hung))
		return false;
	if (now - sh->lease_watch_ns < IOBAND_LEASE_WATCH_NS)
		return true;
	sh->lease_watch_ns = now;
	return !ioband_first_grp(sh) ||
	       (u64)(ioband_counted(sh) + ioband_passed_sum(dev)) << 10 >= sh->depth.at_once;
}

/* A group has ceased to buy device time.  dev->lock held. */
void ioband_lease_gone(struct ioband_grp *grp, s64 now)
{
	struct ioband_share *g = &grp->share;

	if (list_empty(&g->leased))
		return;
	list_del_init(&g->leased);
	if (g->own.where == IOBAND_FLYING && !g->infl && list_empty(&g->awaited))
		ioband_move(grp, IOBAND_AWAY, now);
}

static void ioband_lease_expire(struct ioband_sharer *sh, s64 now)
{
	struct ioband_grp *grp, *next;

	list_for_each_entry_safe(grp, next, &sh->leased, share.leased) {
		if (now - grp->share.leased_ns < IOBAND_LEASE_IDLE_NS)
			break;
		ioband_lease_gone(grp, now);
	}
}

/* Update leases while dev->lock is held anyway, and end them if they do not suit. */
void ioband_lease_look(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	if (!list_empty(&sh->leased))
		ioband_lease_expire(sh, now);
	if (dev->leasing && !ioband_lease_stays(dev, now))
		ioband_lease_end(dev, now);
}

/* Let each I/O be ordered again.  dev->lock held. */
void ioband_lease_end(struct ioband_dev *dev, s64 now)
{
	if (!dev->leasing)
		return;
	WRITE_ONCE(dev->leasing, false);
	/* completions since then were not observed */
	dev->share.progress_ns = now;
	dev->share.lease_ended_ns = now;
	dev->share.depth.ignore = IOBAND_LEASE_IGNORE;
	/* dips may take a part of the time in which each I/O is ordered: put off the next one */
	dev->share.depth.dip_at_ns += now - dev->share.lease_since_ns;
	dev->share.lease_windows = dev->share.depth.windows;
	dev->share.lease_blocks = dev->share.cost.turn;
	ioband_drain_passed(dev, now);
	dev->share.measured += IOBAND_LEASE_IGNORE;
}

/*
 * Have a group that waits looked after while I/Os pass without the lock: the groups that pass may
 * become idle without taking it.  dev->lock held; ioband_kick() has to follow.
 */
void ioband_lease_wait(struct ioband_dev *dev, s64 now)
{
	struct ioband_ent *timer = &dev->share.timer;

	if (dev->leasing && (timer->state != IOBAND_TIMED ||
			     (s64)timer->key > now + IOBAND_LEASE_WATCH_NS))
		ioband_time(dev, timer, now + IOBAND_LEASE_WATCH_NS);
}

/* The device time, ns << 8, that a group buys for a CPU: that of one I/O at least. */
static u64 ioband_lease_size(const struct ioband_grp *grp, u64 cost)
{
	u64 most = div_u64((u64)grp->dev->share.lease_ns << 8, num_online_cpus());

	for (const struct ioband_node *n = &grp->share.own; n->above; n = n->above)
		most = div64_u64(most * n->weight, n->above->active_sum);
	most = min(most, ioband_lease_ios() * cost);
	return most < IOBAND_LEASE_MIN * cost ? cost : most;
}

/*
 * Note if an I/O that is dispatched does not suit leases: then there are none for a while.
 * Writeback must not pass all at once, a long I/O would make shares inexact, and costs, ns << 8,
 * cannot be learned during leases: if they are unsure, @charged is not @cost.  dev->lock held.
 */
void ioband_lease_suits(struct ioband_sharer *sh, const struct bio *bio, u64 cost, u64 charged,
			s64 now)
{
	if (ioband_is_background(bio) || cost != charged ||
	    cost > (IOBAND_LEASE_LONG * sh->lease_gap_ns) << 8)
		sh->lease_not_ns = now;
}

/*
 * Dispatch a bio, which its group's fifos have no more, without counting it, and buy a lease.
 * @buys: is it submitted on this CPU, where bios like it are likely to follow?  dev->lock held.
 */
void ioband_lease_give(struct ioband_grp *grp, struct bio *bio, bool buys, s64 now)
{
	struct ioband_dev *dev = grp->dev;
	struct ioband_sharer *sh = &dev->share;
	u64 cost = ioband_bio_cost(sh, bio), time = cost;
	struct ioband_lease *lease;

	ioband_lease_suits(sh, bio, cost, cost, now);
	if (buys && !ioband_is_background(bio)) {
		lease = this_cpu_ptr(grp->lease);
		time = ioband_lease_size(grp, cost);
		lease->left = time - cost;
		lease->nr = dev->lease_nr;
	}
	ioband_used(grp, time, now);
	grp->share.leased_ns = now;
	list_move_tail(&grp->share.leased, &sh->leased);
	ioband_charge_io(grp, time, true);
	sh->outstanding--;
	ioband_pass(dev, bio);
}
