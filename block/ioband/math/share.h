/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_SHARE_H
#define IOBAND_SHARE_H

#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "cost.h"

/*
 * Share arithmetic: start-time fair queueing of device time, among the children of each group.
 *
 * Each has a start tag, the virtual time at which its next I/O begins.  An I/O that takes c ns
 * of the device moves it by c * IOBAND_WEIGHT_UNIT / weight.  The least tag goes first.  The
 * virtual time of those below a group is the greatest start tag that went; one that comes
 * back starts there, so nobody saves up while away.  What one leaves goes to its siblings.
 *
 * What an I/O costs is learned, see cost.h; it is the same for all groups, so equal I/Os are
 * shared exactly by number.
 *
 * Tags wrap: compare them by ioband_tag_before().  Nothing here reads a clock or
 * takes a lock.
 */

/* An inverse share is a multiple of 2^-16: 1 << 16 is all of the device. */
#define IOBAND_INV_SHIFT	16
#define IOBAND_INV_MAX		BIT_ULL(34)
/* The weight that costs are charged as they are by. */
#define IOBAND_WEIGHT_UNIT	10000

/* device time that somebody used, ns << 8, in this second and the one before */
struct ioband_used {
	unsigned int	second;
	u64		now;
	u64		before;
};

static inline bool ioband_tag_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline u64 ioband_tag_max(u64 a, u64 b)
{
	return ioband_tag_before(a, b) ? b : a;
}

/**
 * ioband_inverse - one level of a group's inverse share
 * @inv:	of those below, or 1 << IOBAND_INV_SHIFT
 * @sum:	weights of all active on this level, our own included
 * @weight:	our own, at least 1
 *
 * Return: @inv * @sum / @weight, at most IOBAND_INV_MAX.
 */
static inline u64 ioband_inverse(u64 inv, u64 sum, u32 weight)
{
	if (inv > div64_u64(U64_MAX, max(sum, 1ULL)))
		return IOBAND_INV_MAX;
	return min(div_u64(inv * sum, weight), IOBAND_INV_MAX);
}

/**
 * ioband_charge_tag - how far an I/O moves a start tag
 * @cost:	ns of the device, << 8
 * @inv:	of a weight: IOBAND_WEIGHT_UNIT / weight, << IOBAND_INV_SHIFT
 *
 * Return: virtual ns, << 8.
 */
static inline u64 ioband_charge_tag(u64 cost, u64 inv)
{
	/* at least 1, so that a group that goes on for nothing goes round */
	return max(mul_u64_u64_shr(min(cost, IOBAND_COST_MAX << 8), inv,
				   IOBAND_INV_SHIFT), 1ULL);
}

/* About: it takes no division. */
static inline unsigned int ioband_second(s64 now)
{
	return now >> 30;
}

/**
 * ioband_use - somebody uses the device
 * @u:		who
 * @second:	of which
 * @cost:	ns << 8, may be 0
 */
static inline void ioband_use(struct ioband_used *u, unsigned int second, u64 cost)
{
	if (u->second != second) {
		u->before = u->second + 1 == second ? u->now : 0;
		u->now = 0;
		u->second = second;
	}
	u->now += cost;
}

#endif /* IOBAND_SHARE_H */
