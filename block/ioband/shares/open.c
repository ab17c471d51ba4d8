// SPDX-License-Identifier: GPL-2.0
/*
 * When the share gate of a device is open, so that no bio has to wait.
 *
 * It is open while the device has fewer I/Os than it does at once, since a gate could only cost
 * time then, and where the gate costs more of the device than it is worth, see worth.h.  Meanwhile
 * bios pass without dev->lock, see bypass.c: each CPU has its part of the room that there is, and
 * now and then one of its bios looks here.
 */
#include <linux/cpumask.h>
#include <linux/math64.h>
#include <linux/percpu.h>

#include "../ioband.h"

/*
 * The gate opens once no bio has waited for CALM.  The time becomes longer, up to OPEN, each time
 * that the gate closes for want of room within OPEN.
 */
#define IOBAND_CALM_NS		(20 * NSEC_PER_MSEC)
/* The gate closes when a bio looks after OPEN, so that the device is measured. */
#define IOBAND_OPEN_NS		NSEC_PER_SEC
/* The gate closes at once if the device has TIMES as many I/Os as it does at once. */
#define IOBAND_OPEN_TIMES	2
/* This many looks in a latency are enough to see its average, see ioband_is_saturated() ... */
#define IOBAND_LOOKS		2
/* ... unless a CPU lets more than 1 / PART of the depth pass between two of its looks. */
#define IOBAND_LOOKS_PART	8
/* While the depth is not known, the gate is open for one I/O at a time, and closes from FEW on. */
#define IOBAND_OPEN_FEW		2U
/* The gate has opened in vain if it closes within this many latencies. */
#define IOBAND_OPEN_LATENCIES	8
/* I/Os are submitted late if that takes more than 1 / LATE of their latency. */
#define IOBAND_WORTH_LATE	2

/* The most I/Os in flight while the gate is open. */
static unsigned int ioband_open_depth(const struct ioband_sharer *sh)
{
	if (ioband_depth_is_settled(&sh->depth))
		return ioband_depth_now(sh);
	return min(sh->depth.tags, IOBAND_OPEN_FEW);
}

/*
 * Let a CPU have its part of the room until a bio looks again.  Without room each bio looks, also
 * on a CPU on which more bios complete than are submitted, so that its ->infl is less than 0.
 */
static void ioband_grant(struct ioband_passed *passed, int room, int least)
{
	long part = max(room / (int)num_online_cpus(), least);

	WRITE_ONCE(passed->most, room > 0 ? READ_ONCE(passed->infl) + part : LONG_MIN);
}

static void ioband_open(struct ioband_dev *dev, int room, s64 now)
{
	unsigned int depth = ioband_open_depth(&dev->share);
	int cpu;

	for_each_possible_cpu(cpu) {
		ioband_grant(per_cpu_ptr(dev->passed, cpu), room, 1);
		/* bios that passed earlier are not charged to the group that looks first */
		WRITE_ONCE(per_cpu_ptr(dev->passed, cpu)->nr, 0);
	}
	dev->share.open_since = now;
	dev->share.looked_ns = now;
	dev->share.looked_infl = dev->share.infl;
	/* if it is full by now, the average shows that after about a latency */
	dev->share.looked_mean = (s64)min(dev->share.infl, depth / 2) << 16;
	WRITE_ONCE(dev->open, true);
}

/* Does the gate seem to cost more than it is worth?  Then it is opened for a trial. */
static bool ioband_try_worth(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;

	if (!ioband_worth_closed(&sh->worth, IOBAND_WORTH_LATE * sh->lag > sh->latency, now))
		return false;
	ioband_open(dev, INT_MAX / 2, now);
	return true;
}

/*
 * Has no bio waited for long enough?  If none has waited at all since the gate closed, the device
 * only has to be measured.
 */
static bool ioband_is_calm(const struct ioband_sharer *sh, s64 now)
{
	if (now - sh->last_wait_ns >= sh->calm_ns)
		return true;
	return sh->last_wait_ns == sh->closed_ns && (int)(sh->depth.windows - sh->measured) >= 0;
}

/* Open a gate, which is not open, if the device is not saturated.  dev->lock held. */
void ioband_try_open(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	int room = (int)ioband_open_depth(sh) - (int)sh->infl;

	if (dev->leasing || dev->solo || !list_empty(&sh->hung) || ioband_uncounted(dev) ||
	    ioband_try_worth(dev, now))
		return;
	if (!ioband_is_calm(sh, now) || !ioband_depth_is_idle(&sh->depth) || ioband_first_grp(sh) ||
	    room <= 0)
		return;
	ioband_open(dev, room, now);
	sh->nr_opened++;
	/* the CPUs may be less busy by now, which is not seen while no bio waits */
	sh->lag /= 2;
	sh->ahead /= 2;
}

/*
 * A look takes the lock and reads a line of each CPU.  Bios that are submitted on one CPU and
 * complete on another one use up the part of the room of the first CPU, although there is as much
 * room as before.  So while bios look more often than is of use, more of them pass on each CPU
 * until one looks again.
 */
static int ioband_look_part(const struct ioband_sharer *sh, s64 now)
{
	if (IOBAND_LOOKS * (now - sh->looked_ns) >= sh->latency)
		return max(sh->look_part / 2, 1);
	return clamp(sh->look_part + 1, 1, max((int)ioband_open_depth(sh) / IOBAND_LOOKS_PART, 1));
}

/*
 * Is the device full?  A single look does not tell: limits dispatch I/Os in groups, so that it may
 * have too many for a moment, and devices complete them in groups, so that it may have none.  This
 * takes the average over about the latency of an I/O, of what was in flight from look to look.
 */
static bool ioband_is_saturated(struct ioband_sharer *sh, unsigned int infl, s64 now)
{
	s64 since_ns = min(now - sh->looked_ns, sh->latency);
	s64 part, depth = ioband_open_depth(sh);

	sh->look_part = ioband_look_part(sh, now);
	if (since_ns > 0) {
		part = div64_s64(since_ns << 16, sh->latency);
		sh->looked_mean += (((s64)sh->looked_infl << 16) - sh->looked_mean) * part >> 16;
	}
	sh->looked_ns = now;
	sh->looked_infl = infl;
	return infl >= IOBAND_OPEN_TIMES * depth || sh->looked_mean >= (depth << 16) - (1 << 15);
}

/* The gate is open because of what it costs.  May it stay open? */
static bool ioband_stays_worth(struct ioband_dev *dev, s64 now)
{
	struct ioband_worth *worth = &dev->share.worth;
	unsigned int costs = worth->nr_costs;
	bool stays = ioband_worth_open(worth, ioband_passed_sum(dev), now);

	if (!costs && worth->nr_costs)
		pr_info("ioband: %s: CPUs are busy, and weights would cost a third of its I/O or more: not enforced meanwhile\n",
			dev->disk->disk_name);
	return stays;
}

/* May an open gate stay open?  If not, close it.  dev->lock held; preemption off. */
bool ioband_stays_open(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	unsigned int infl;
	bool full;

	if (sh->worth.open) {
		if (ioband_stays_worth(dev, now))
			return true;
	} else {
		infl = sh->infl + ioband_passed_sum(dev);
		full = ioband_is_saturated(sh, infl, now);
		if (now - sh->open_since < IOBAND_OPEN_NS && !full) {
			ioband_grant(this_cpu_ptr(dev->passed),
				     (int)ioband_open_depth(sh) - (int)infl, sh->look_part);
			return true;
		}
		if (!full)
			sh->calm_ns = IOBAND_CALM_NS;
		else if (now - sh->open_since < IOBAND_OPEN_NS)
			sh->calm_ns = min(IOBAND_BYPASS_TIMES * sh->calm_ns, IOBAND_OPEN_NS);
	}
	WRITE_ONCE(dev->open, false);
	ioband_drain_passed(dev, now);
	/* only some bios have looked: it is not known whether all were of ->latest meanwhile */
	sh->alone_since = min(sh->alone_since + now - sh->open_since, now);
	/* it has opened in vain: it does so again only once no bio has waited for ->calm_ns */
	if (now - sh->open_since < IOBAND_OPEN_LATENCIES * sh->latency)
		sh->measured = sh->depth.windows + INT_MAX;
	return false;
}

/* The gate is closed at first. */
void ioband_open_init(struct ioband_sharer *sh, s64 now)
{
	sh->calm_ns = IOBAND_CALM_NS;
	sh->last_wait_ns = now;
	ioband_worth_init(&sh->worth);
	ioband_overdue_init(&sh->overdue);
}
