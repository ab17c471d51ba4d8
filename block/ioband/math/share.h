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
 * Arithmetic of shares: start-time fair queueing of device time, among the children of each group.
 *
 * Each child has a start tag, the virtual time at which its next I/O begins.  An I/O that takes c
 * ns of the device advances the tag by c * IOBAND_WEIGHT_UNIT / weight.  The child with the least
 * tag is first.  The virtual time of a group is the greatest start tag of its children's I/Os that
 * have been dispatched.  A child that becomes active starts there, so it earns nothing while it is
 * not active.  What one child does not use goes to its siblings.
 *
 * The time that an I/O takes is learned, see cost.h.  It is the same for all groups, so for equal
 * I/Os the numbers of I/Os are in proportion to the weights.
 *
 * Tags wrap: compare them by ioband_tag_before().  Nothing here reads a clock or takes a lock.
 */

/* An inverse share is a multiple of 2^-16: 1 << 16 is the whole device. */
#define IOBAND_INV_SHIFT	16
#define IOBAND_INV_MAX		BIT_ULL(34)
/* The weight at which a tag advances by the cost of the I/O. */
#define IOBAND_WEIGHT_UNIT	10000

/* device time that a group or all groups have used, ns << 8, in this second and the one before */
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

/*
 * A group's inverse share one level up: @inv * @sum / @weight, at most IOBAND_INV_MAX.  @inv: that
 * on the level below, or 1 << IOBAND_INV_SHIFT.  @sum: of the weights of all active nodes on this
 * level, including @weight, which is at least 1.
 */
static inline u64 ioband_inverse(u64 inv, u64 sum, u32 weight)
{
	if (inv > div64_u64(U64_MAX, max(sum, 1ULL)))
		return IOBAND_INV_MAX;
	return min(div_u64(inv * sum, weight), IOBAND_INV_MAX);
}

/* How far a cost moves a tag; ns << 8.  @inv: IOBAND_WEIGHT_UNIT / weight << IOBAND_INV_SHIFT. */
static inline u64 ioband_charge_tag(u64 cost, u64 inv)
{
	/* at least 1, so that a group whose I/Os cost nothing does not stay first for ever */
	return max(mul_u64_u64_shr(min(cost, IOBAND_COST_MAX << 8), inv,
				   IOBAND_INV_SHIFT), 1ULL);
}

/* About a second, 2^30 ns: this takes no division. */
static inline unsigned int ioband_second(s64 now)
{
	return now >> 30;
}

/* Account for device time that is used, ns << 8, may be 0.  @second: see ioband_second(). */
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
