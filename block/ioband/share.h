/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_SHARE_H
#define IOBAND_SHARE_H

#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * Share arithmetic: start-time fair queueing of device time.
 *
 * Each group has a start tag, the virtual time at which its next I/O begins.  An
 * I/O that takes c ns of the device moves it by c / w, where w is the part of the
 * device that the group's weight is of all active ones.  The least tag goes first.
 * The device's virtual time is the greatest start tag that went; a group that comes
 * back starts there, so nobody saves up while away.
 *
 * What an I/O costs is learned from completions, per direction and size.  I/Os of one
 * class cost the same for all, so equal I/Os are shared exactly by number.
 *
 * Tags wrap: compare them by ioband_tag_before().  Nothing here reads a clock or
 * takes a lock.
 */

/* An inverse share is a multiple of 2^-16: 1 << 16 is all of the device. */
#define IOBAND_INV_SHIFT	16
#define IOBAND_INV_MAX		BIT_ULL(34)
/* On the top level, in place of the sum: shares there need none. */
#define IOBAND_TOP_SUM		10000
/* No I/O costs more than 1 s. */
#define IOBAND_COST_MAX		BIT_ULL(30)
/* from 512 B to 2 MiB and more, by powers of 4 */
#define IOBAND_SIZES		7

/*
 * What I/Os of one direction and size have shown.  What they cost is looked at anew
 * after so many completions and not with each: a device that completes in bursts
 * shows much time before the first of a burst and none after, and groups take turns.
 */
#define IOBAND_CLASS_NR		64
#define IOBAND_CLASS_NR_FIRST	4

struct ioband_class {
	u64		ns;		/* time of the device that one takes, << 8 */
	u64		bytes;		/* how long they are, << 8 */
	u64		least;		/* the least latency, << 8; grows slowly */
	u64		sum_ns;		/* since the last look */
	u64		sum_bytes;
	unsigned int	nr_ns;
	unsigned int	nr_bytes;
};

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
 * ioband_size_class - the class of an I/O
 * @bytes:	its length
 *
 * Return: less than IOBAND_SIZES.
 */
static inline unsigned int ioband_size_class(u32 bytes)
{
	int order = bytes ? ilog2(bytes) : 0;

	return clamp((order - 9) / 2, 0, IOBAND_SIZES - 1);
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
 * @inv:	inverse share, see ioband_inverse()
 *
 * Return: virtual ns, << 8.
 */
static inline u64 ioband_charge_tag(u64 cost, u64 inv)
{
	/* at least 1, so that a group that goes on for nothing goes round */
	return max(mul_u64_u64_shr(min(cost, IOBAND_COST_MAX << 8), inv,
				   IOBAND_INV_SHIFT), 1ULL);
}

/**
 * ioband_class_cost - what an I/O is going to cost
 * @c:		its class
 * @bytes:	its length
 *
 * Within a class, which spans a factor of 4, in proportion to its length.
 *
 * Return: ns, << 8.
 */
static inline u64 ioband_class_cost(const struct ioband_class *c, u32 bytes)
{
	/* nothing is known yet: 64 us and 8 ns for each 64 bytes, that is 8 GB/s */
	if (!c->ns || !c->bytes)
		return ((u64)64 * NSEC_PER_USEC + bytes / 8) << 8;
	return mul_u64_u64_div_u64(c->ns, (u64)bytes << 8, c->bytes);
}

static inline u64 ioband_average(u64 avg, u64 val)
{
	if (!avg)
		return max(val, 1ULL);
	return max(val > avg ? avg + (val - avg) / 4 : avg - (avg - val) / 4, 1ULL);
}

/**
 * ioband_class_size - an I/O is given to the device
 * @c:		its class
 * @bytes:	its length
 */
static inline void ioband_class_size(struct ioband_class *c, u32 bytes)
{
	c->sum_bytes += bytes;
	c->nr_bytes++;
}

static inline void ioband_class_look(struct ioband_class *c)
{
	c->ns = ioband_average(c->ns, div_u64(c->sum_ns << 8, c->nr_ns));
	c->sum_ns = 0;
	c->nr_ns = 0;
	if (!c->nr_bytes)
		return;
	c->bytes = ioband_average(c->bytes, div_u64(c->sum_bytes << 8, c->nr_bytes));
	c->sum_bytes = 0;
	c->nr_bytes = 0;
}

/**
 * ioband_class_learn - an I/O has completed
 * @c:		its class
 * @latency:	ns since it was given to the device
 * @took:	ns of the device that are attributed to it
 *
 * Return: the least latency of its class, ns.
 */
static inline u64 ioband_class_learn(struct ioband_class *c, s64 latency, s64 took)
{
	u64 lat = clamp(latency, 1LL, (s64)IOBAND_COST_MAX);

	c->sum_ns += clamp(took, 0LL, (s64)IOBAND_COST_MAX);
	if (++c->nr_ns >= (c->ns ? IOBAND_CLASS_NR : IOBAND_CLASS_NR_FIRST))
		ioband_class_look(c);
	/* what was true once need not be for ever */
	c->least += c->least >> 16;
	if (!c->least || lat << 8 < c->least)
		c->least = lat << 8;
	return c->least >> 8;
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
