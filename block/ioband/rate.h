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
 * Cap arithmetic: a virtual scheduling clock, also known as GCRA.
 *
 * A limit of R units (bytes or I/Os) a second is one signed number, the
 * theoretical arrival time (TAT): when the group would be done with all it has
 * been given, had it been served at exactly R.  An I/O that costs C = units/R
 * may leave at
 *
 *	max(TAT, arrival) + C - B
 *
 * where B is the burst, as time.  A group that was idle thus has B in hand and
 * never more; an I/O that costs more than B leaves once the rest has been earned
 * since it arrived.  When it leaves at @now, TAT becomes
 *
 *	max(TAT, now - max(C - B, 0)) + C
 *
 * so that what was earned while nothing wanted it, beyond B, is gone.  Hence in
 * any window of t seconds at most R * t + max(B, first I/O) units leave.
 *
 * Example: R = 1 MiB/s and B = 64 KiB = 62.5 ms.  Idle at time 0, the group
 * sends 64 KiB I/Os back to back: the first leaves at 0 and moves TAT to 62.5
 * ms, the second at 62.5 + 62.5 - 62.5 = 62.5 ms, the third at 125 ms.
 *
 * Nothing here reads a clock or takes a lock: time comes in as nanoseconds of
 * CLOCK_MONOTONIC, and who updates a TAT from several CPUs does so by cmpxchg.
 */

/* A rate above this is calculated as this: 4 GiB then cost less than 1 ns. */
#define IOBAND_RATE_MAX		BIT_ULL(62)
/* No cost and no TAT goes past this, 146 years, so that sums fit an s64. */
#define IOBAND_TIME_MAX		((s64)BIT_ULL(62))
/* The default burst is this much time at the rate ... */
#define IOBAND_BURST_NS		(5 * NSEC_PER_MSEC)
/* ... but no less than an ordinary I/O, so that a lone one never waits. */
#define IOBAND_BURST_BYTES	SZ_64K
#define IOBAND_BURST_IOS	1
/*
 * A timer and a worker are never quite on time.  What leaves late by no more than
 * this is charged as of when it was due, or else every I/O that costs a burst or
 * more would lose that much of the rate.  So the bound above is one on due times.
 */
#define IOBAND_LATE_NS		NSEC_PER_MSEC
/*
 * CPUs take tokens in batches to stay off each other's cache lines.  What all
 * of them can hold back together is this much time of the rate; it is taken
 * out of the burst, so the bound above holds whatever they hold.  After an I/O
 * larger than what is left of the burst they stay closed for as long.
 */
#define IOBAND_RESERVE_NS	(100 * NSEC_PER_USEC)

/**
 * struct ioband_rate - one limit, ready to calculate with
 * @per_sec:	units a second, 0 for no limit
 * @burst:	ns of the rate that an idle group has in hand
 * @batch:	units that a CPU reserves at a time, 0 for none
 *
 * Immutable once set up by ioband_rate_init().
 */
struct ioband_rate {
	u64	per_sec;
	s64	burst;
	u64	batch;
};

/**
 * ioband_cost - time that some units take at a rate
 * @per_sec:	the rate, 1 .. IOBAND_RATE_MAX
 * @units:	bytes or I/Os, at most 2^33: a bio and a batch
 * @rem:	fraction of a nanosecond carried from one call to the next, as
 *		multiples of 1 / @per_sec ns; start with 0
 *
 * Carrying the fraction makes a sequence of costs exact at any rate.
 *
 * Return: nanoseconds, at most IOBAND_TIME_MAX.
 */
static inline s64 ioband_cost(u64 per_sec, u64 units, u64 *rem)
{
	/* 2^33 * 10^9 + 2^62 is less than 2^64 */
	u64 ns = div64_u64_rem(units * NSEC_PER_SEC + *rem, per_sec, rem);

	return min_t(u64, ns, IOBAND_TIME_MAX);
}

/**
 * ioband_rate_init - set up a limit
 * @r:		the limit
 * @per_sec:	units a second; 0 or U64_MAX mean no limit
 * @min_burst:	the least burst in units
 * @min_batch:	the least batch in units that is worth reserving
 * @nr_cpus:	how many CPUs may hold a batch
 */
static inline void ioband_rate_init(struct ioband_rate *r, u64 per_sec,
				    u32 min_burst, u32 min_batch,
				    unsigned int nr_cpus)
{
	u64 rem = 0;

	*r = (struct ioband_rate){ };
	if (!per_sec || per_sec == U64_MAX)
		return;

	r->per_sec = min(per_sec, IOBAND_RATE_MAX);
	r->burst = max_t(s64, IOBAND_BURST_NS,
			 ioband_cost(r->per_sec, min_burst, &rem));
	r->batch = mul_u64_u32_div(r->per_sec, IOBAND_RESERVE_NS / nr_cpus,
				   NSEC_PER_SEC);
	/* it is bought along with a bio's worth: see ioband_cost() */
	r->batch = min_t(u64, r->batch, S32_MAX);
	if (r->batch < min_batch)
		r->batch = 0;
	else
		r->burst -= IOBAND_RESERVE_NS;
}

/**
 * ioband_when - when may an I/O leave?
 * @tat:	the limit's theoretical arrival time, ns
 * @arrival:	when the I/O arrived, ns
 * @cost:	what it costs, ns
 * @burst:	the limit's burst, ns
 *
 * Return: the time in ns; it may have passed.
 */
static inline s64 ioband_when(s64 tat, s64 arrival, s64 cost, s64 burst)
{
	return max(tat, arrival) - burst + cost;
}

/**
 * ioband_charge - the TAT once an I/O has left
 * @tat:	the TAT before, ns
 * @now:	when it leaves, ns
 * @cost:	what it costs, ns
 * @burst:	the limit's burst, ns
 *
 * Also for an I/O that leaves before its time: the TAT then runs ahead and the
 * next ones wait the longer.
 *
 * Return: the new TAT, at most IOBAND_TIME_MAX.
 */
static inline s64 ioband_charge(s64 tat, s64 now, s64 cost, s64 burst)
{
	s64 base = max(tat, now - max(cost - burst, 0));

	return base > IOBAND_TIME_MAX - cost ? IOBAND_TIME_MAX : base + cost;
}

/* @ns * @from / @to, saturating at +-IOBAND_TIME_MAX */
static inline s64 ioband_scale(s64 ns, u64 from, u64 to)
{
	u64 abs = ns < 0 ? -(u64)ns : ns;

	if (!abs)
		return 0;
	/* at most one doubling from IOBAND_TIME_MAX either way */
	if (ilog2(abs) + ilog2(from) - ilog2(to) >= 61)
		abs = IOBAND_TIME_MAX;
	else
		abs = mul_u64_u64_div_u64(abs, from, to);
	return ns < 0 ? -(s64)abs : abs;
}

/**
 * ioband_carry_over - the TAT under a new rate, keeping what was earned
 * @tat:	the TAT under the old rate, ns; for a waiting I/O that arrived
 *		later than that, the time of its arrival
 * @now:	the time of the change, ns
 * @waiting:	is an I/O waiting at this limit?
 * @from:	the old limit
 * @to:		the new limit
 *
 * Units in hand, or owed, stay the same number of units.  Without a waiting I/O
 * no more than the new burst is kept.
 *
 * Return: the new TAT, ns.
 */
static inline s64 ioband_carry_over(s64 tat, s64 now, bool waiting,
				    const struct ioband_rate *from,
				    const struct ioband_rate *to)
{
	s64 owed;

	if (!from->per_sec || !to->per_sec)
		return now;

	owed = ioband_scale(tat - now - from->burst, from->per_sec, to->per_sec);
	tat = clamp(owed, -IOBAND_TIME_MAX, IOBAND_TIME_MAX - now - to->burst) +
	      now + to->burst;
	return waiting ? tat : max(tat, now);
}

#endif /* IOBAND_RATE_H */
