/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_RATE_H
#define IOBAND_RATE_H

#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * Arithmetic of limits: a virtual scheduling clock, also known as GCRA.
 *
 * The state of a limit of R units (bytes or I/Os) a second is one signed number, the
 * theoretical arrival time (TAT).  It is the time at which the group would be done with
 * all dispatched I/O, had it been served at exactly R.  An I/O that costs C = units/R may
 * be dispatched at
 *
 *	max(TAT, arrival) + C - B
 *
 * where B is the burst, as time.  A group that was idle thus has a burst of B in hand and
 * never more; an I/O that costs more than B is dispatched when the group has earned the
 * rest since the I/O arrived.  When the I/O is dispatched at @now, TAT becomes
 *
 *	max(TAT, now - max(C - B, 0)) + C
 *
 * so that time that was earned and not used, beyond B, is lost.  Hence in any window of
 * t seconds at most R * t + max(B, first I/O) units are dispatched.
 *
 * Example: R = 1 MiB/s and B = 64 KiB = 62.5 ms.  Idle at time 0, the group submits
 * 64 KiB I/Os back to back: the first is dispatched at 0 and moves TAT to 62.5 ms, the
 * second at 62.5 + 62.5 - 62.5 = 62.5 ms, the third at 125 ms.
 *
 * Nothing here reads a clock or takes a lock: the caller passes the time in ns of
 * CLOCK_MONOTONIC, and updates a TAT that several CPUs share by cmpxchg.
 */

/* A rate above this is calculated as this: 4 GiB then cost less than 1 ns. */
#define IOBAND_RATE_MAX		BIT_ULL(62)
/* No cost and no TAT exceeds this, 146 years in ns, so that sums fit an s64. */
#define IOBAND_TIME_MAX		((s64)BIT_ULL(62))
/* The default burst is this much time at the rate ... */
#define IOBAND_BURST_NS		(5 * NSEC_PER_MSEC)
/* ... but no less than an ordinary I/O, so that a lone I/O never waits. */
#define IOBAND_BURST_BYTES	SZ_64K
#define IOBAND_BURST_IOS	1
/*
 * Timers and workers are always a little late.  An I/O that is dispatched late by no more
 * than this is charged as of the time when it was due; otherwise each I/O that costs a
 * burst or more would lose that much of the rate.  So the bound above is one on due times.
 */
#define IOBAND_LATE_NS		NSEC_PER_MSEC
/*
 * The most bios that a group has waiting; besides, no more than its limits allow in a second.  That
 * bounds for how long others wait for it, and the memory that it takes.
 */
#define IOBAND_HELD		1024
/* one limit, ready to calculate with */
struct ioband_rate {
	u64	per_sec;	/* units a second */
	s64	burst;		/* time of the rate that an idle group has in hand, ns */
};

/*
 * The time that units, at most 2^33, take at a rate, 1 .. IOBAND_RATE_MAX; ns, at most
 * IOBAND_TIME_MAX.  @rem is the fraction of a nanosecond, as multiples of 1 / @per_sec ns, that is
 * carried from one call to the next, 0 at first.  It makes a sequence of costs exact at any rate.
 */
static inline s64 ioband_cost(u64 per_sec, u64 units, u64 *rem)
{
	/* 2^33 * 10^9 + 2^62 is less than 2^64 */
	u64 ns = div64_u64_rem(units * NSEC_PER_SEC + *rem, per_sec, rem);

	return min_t(u64, ns, IOBAND_TIME_MAX);
}

/*
 * The units that a limit allows in a time, 0 .. 2^36 ns, rounded down; of a rate above 2^40 as many
 * as of that one.
 */
static inline u64 ioband_units_in(u64 per_sec, s64 ns)
{
	/* the quotient must fit 64 bits: on some machines the division would trap otherwise */
	return mul_u64_u64_div_u64(min(per_sec, BIT_ULL(40)), min_t(u64, ns, BIT_ULL(36)),
				   NSEC_PER_SEC);
}

/* Set up a limit.  @min_burst: the smallest burst in units. */
static inline void ioband_rate_init(struct ioband_rate *r, u64 per_sec, u32 min_burst)
{
	u64 rem = 0;
	s64 least;

	r->per_sec = min(per_sec, IOBAND_RATE_MAX);
	least = ioband_cost(r->per_sec, min_burst, &rem);
	r->burst = max_t(s64, IOBAND_BURST_NS, least + !!rem);
}

/* A discard of any length costs as much as a small write: it transfers nothing. */
#define IOBAND_DISCARD_BYTES	((u32)SZ_4K)

/* The time, ns, when an I/O may be dispatched; it may have passed.  All times in ns. */
static inline s64 ioband_when(s64 tat, s64 arrival, s64 cost, s64 burst)
{
	return max(tat, arrival) - burst + cost;
}

/* The TAT after a dispatch at @now, at most IOBAND_TIME_MAX. */
static inline s64 ioband_charge(s64 tat, s64 now, s64 cost, s64 burst)
{
	s64 base = max(tat, now - max(cost - burst, 0));

	return base > IOBAND_TIME_MAX - cost ? IOBAND_TIME_MAX : base + cost;
}

/*
 * The time since @since of a limit that nothing has used.  If as much is charged as of the later of
 * @tat and @since, the burst is still in hand.
 */
static inline s64 ioband_unused_ns(s64 tat, s64 since, s64 now)
{
	return max(now - max(tat, since), 0);
}

/*
 * The TAT under a new rate, at most the new burst after @now: what is in hand stays the same number
 * of units, but no more than the new burst if no I/O waits.  @tat: that under the old rate, or the
 * arrival of the I/O that waits, if that is later.
 */
static inline s64 ioband_carry_over(s64 tat, s64 now, bool waiting,
				    const struct ioband_rate *from,
				    const struct ioband_rate *to)
{
	u64 hand;

	if (!from->per_sec || !to->per_sec)
		return now;
	hand = max(now + from->burst - tat, 0);
	/* at most one doubling from IOBAND_TIME_MAX: the quotient must fit */
	if (ilog2(hand | 1) + ilog2(from->per_sec) - ilog2(to->per_sec) >= 61)
		hand = IOBAND_TIME_MAX;
	else
		hand = mul_u64_u64_div_u64(hand, from->per_sec, to->per_sec);
	tat = now + to->burst - (s64)hand;
	return waiting ? tat : max(tat, now);
}

#endif /* IOBAND_RATE_H */
