// SPDX-License-Identifier: GPL-2.0
/*
 * Leases: shares of a fast device, without its lock for each I/O.
 *
 * When groups that contend do hundreds of thousands of I/Os a second, dev->lock would be taken
 * twice for each, on all CPUs, and that would be the limit.  But so many I/Os need not be put in
 * order one by one.  A group that leads nobody by much buys device time for some I/Os on a CPU
 * ahead, and is charged for it at once; they pass without the lock, see bypass.c.  One that
 * leads others by more than ->lease_ns waits as ever, and goes when others have bought so much
 * that it does not.  As all leases together are for no longer than ->lease_ns of the device, a
 * group's share is off by no more than that.
 *
 * That is for groups that keep the device busy without those that lead.  Where the latter fill
 * places that others leave, each I/O counts, and leases end.
 *
 * Nothing is learned of the device meanwhile: what passes is not seen.  So leases end soon, and
 * begin again when a few windows have shown how many I/Os it does at once, see depth.h.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/percpu.h>

#include "../ioband.h"

/*
 * A lease is for so many I/Os like the one that buys it: more if more CPUs take the lock; one for
 * fewer is not worth it.
 */
#define IOBAND_LEASE_IOS	16U
#define IOBAND_LEASE_MIN	4U
#define IOBAND_LEASE_CPUS	4
/* A group may lead by so many times what there may be of these. */
#define IOBAND_LEASE_TIMES	2
/* They begin if I/Os complete as often as this, unless debugfs says otherwise, ... */
#define IOBAND_LEASE_GAP_NS	(5 * NSEC_PER_USEC)
/* ... or this, by which tests have them on any device, ... */
#define IOBAND_LEASE_ALWAYS_NS	NSEC_PER_SEC
/* ... once so many windows and blocks have ended since the last ones ... */
#define IOBAND_LEASE_WINDOWS	4
#define IOBAND_LEASE_BLOCKS	1
/* ... and end after so many times what that took, but not sooner nor later than this. */
#define IOBAND_LEASE_EXACTS	8
#define IOBAND_LEASE_END_NS	(100LL * NSEC_PER_MSEC)
#define IOBAND_LEASE_END_MAX_NS	(500LL * NSEC_PER_MSEC)
/* Leases are for so many GAP_NS together at most, and no I/O takes as many as LONG of these. */
#define IOBAND_LEASE_GAPS	200
#define IOBAND_LEASE_LONG	3
/* The first windows after leases see what these have left. */
#define IOBAND_LEASE_IGNORE	2
/* While somebody waits it is looked whether the device is busy. */
#define IOBAND_LEASE_WATCH_NS	(100 * NSEC_PER_USEC)
/* A group that has bought nothing for so long is not active. */
#define IOBAND_LEASE_IDLE_NS	NSEC_PER_MSEC

/**
 * ioband_lease_init - no device time has been bought yet
 * @sh:		the device
 */
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

/* Is a device one for leases, and known well enough? */
static bool ioband_lease_suit(const struct ioband_sharer *sh, s64 now)
{
	u64 gap_ns = READ_ONCE(sh->lease_gap_ns);

	if (sh->excess || sh->depth.pinned || sh->nr_active < 2 || !list_empty(&sh->hung))
		return false;
	if (gap_ns >= IOBAND_LEASE_ALWAYS_NS)
		return true;
	/* those that led others filled places that these had left */
	if (sh->depth.phase != IOBAND_SETTLED || sh->depth.led)
		return false;
	/* in the long run as well, where a device works in pulses */
	if (sh->gap > gap_ns || sh->cost.usual >> 8 > gap_ns)
		return false;
	if (now - sh->lease_not_ns < IOBAND_LEASE_END_NS)
		return false;
	return sh->depth.windows - sh->lease_windows >= IOBAND_LEASE_WINDOWS &&
	       sh->cost.turn - sh->lease_blocks >= IOBAND_LEASE_BLOCKS;
}

/**
 * ioband_lease_try - begin with leases, if the device is one for them
 * @dev:	the device
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_lease_try(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	if (!dev->leasing && !dev->solo && !dev->open && ioband_lease_suit(sh, now) &&
	    !ioband_uncounted(dev))
		ioband_lease_begin(dev, now);
}

/*
 * May leases go on?  If a group waits because it leads others, these have to be enough for the
 * device.
 */
static bool ioband_lease_stays(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	if (now > sh->lease_until_ns || sh->nr_active < 2 ||
	    sh->lease_not_ns > sh->lease_since_ns)
		return false;
	/* a stuck group sends one I/O now and then, and that is counted */
	if (!list_empty(&sh->hung))
		return false;
	if (now - sh->lease_watch_ns < IOBAND_LEASE_WATCH_NS)
		return true;
	sh->lease_watch_ns = now;
	return !ioband_first_grp(sh) ||
	       (u64)(ioband_counted(sh) + ioband_passed_sum(dev)) << 10 >= sh->depth.at_once;
}

/**
 * ioband_lease_gone - a group buys no more
 * @grp:	the group
 * @now:	ns
 *
 * Context: dev->lock held.
 */
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

/**
 * ioband_lease_look - somebody has dev->lock: what has passed meanwhile, and may it go on?
 * @dev:	the device
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_lease_look(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	if (!list_empty(&sh->leased))
		ioband_lease_expire(sh, now);
	if (dev->leasing && !ioband_lease_stays(dev, now))
		ioband_lease_end(dev, now);
}

/**
 * ioband_lease_end - each I/O is put in order again
 * @dev:	the device
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_lease_end(struct ioband_dev *dev, s64 now)
{
	if (!dev->leasing)
		return;
	WRITE_ONCE(dev->leasing, false);
	/* what completed meanwhile was not seen */
	dev->share.last = now;
	dev->share.lease_ended_ns = now;
	dev->share.depth.ignore = IOBAND_LEASE_IGNORE;
	/* it is of the time in which each I/O is put in order that dips may have a part */
	dev->share.depth.dip_at_ns += now - dev->share.lease_since_ns;
	dev->share.lease_windows = dev->share.depth.windows;
	dev->share.lease_blocks = dev->share.cost.turn;
	ioband_drain_passed(dev, now);
}

/**
 * ioband_lease_wait - somebody waits while I/Os pass without the lock
 * @dev:	the device
 * @now:	ns
 *
 * Others may leave the device, and not look.
 *
 * Context: dev->lock held; ioband_kick() has to follow.
 */
void ioband_lease_wait(struct ioband_dev *dev, s64 now)
{
	struct ioband_ent *timer = &dev->share.timer;

	if (dev->leasing && (timer->state != IOBAND_TIMED ||
			     (s64)timer->key > now + IOBAND_LEASE_WATCH_NS))
		ioband_time(dev, timer, now + IOBAND_LEASE_WATCH_NS);
}

/* What a group buys for a CPU: device time, ns << 8, that of one I/O at least. */
static u64 ioband_lease_size(const struct ioband_grp *grp, u64 cost)
{
	u64 most = div_u64((u64)grp->dev->share.lease_ns << 8, num_online_cpus());

	for (const struct ioband_node *n = &grp->share.own; n->above; n = n->above)
		most = div64_u64(most * n->weight, n->above->active_sum);
	most = min(most, ioband_lease_ios() * cost);
	return most < IOBAND_LEASE_MIN * cost ? cost : most;
}

/**
 * ioband_lease_suits - an I/O is given to the device
 * @sh:		the device
 * @bio:	the I/O
 * @cost:	what it takes of it, ns << 8
 * @charged:	and what is charged for it: something else if the cost is not known well
 * @now:	ns
 *
 * For a while there are no leases after writeback, which is not to go all at once, or after an I/O
 * that takes long, nor as long as costs have to be learned.
 *
 * Context: dev->lock held.
 */
void ioband_lease_suits(struct ioband_sharer *sh, const struct bio *bio, u64 cost, u64 charged,
			s64 now)
{
	if (ioband_is_background(bio) || cost != charged ||
	    cost > (IOBAND_LEASE_LONG * sh->lease_gap_ns) << 8)
		sh->lease_not_ns = now;
}

/**
 * ioband_lease_give - a bio of a group is given to the device, and not counted
 * @grp:	the group, whose fifos do not have the bio any more
 * @bio:	the bio
 * @buys:	is it submitted on this CPU, where others like it are to follow?
 * @now:	ns
 *
 * Context: dev->lock held.
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
