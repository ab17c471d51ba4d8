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
/*
 * The TAT of a rule that another one has taken over from: later than any, also when a CPU
 * gives back what it had in reserve, and by less than the least burst, so that sums fit.
 */
#define IOBAND_TIME_MOVED	(IOBAND_TIME_MAX + 2 * IOBAND_RESERVE_NS)
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
 * CPUs buy units in batches to stay off each other's cache lines.  What all of them
 * can have in reserve together is this much time of the rate.  It is taken out of the
 * burst, since a TAT forgets during idle times what was bought before: so the bound
 * above holds whatever they have.  One case is left: an I/O larger than the burst goes
 * while a CPU, interrupted between taking from its reserve and charging for more, has
 * in hand what could not be taken back.  That CPU may then use its batch on top.
 */
#define IOBAND_RESERVE_NS	(500 * NSEC_PER_USEC)
/*
 * A limit is overdrawn by this much time of its rate at most for I/O that is not
 * held because somebody else waits for it.
 */
#define IOBAND_DEBT_MAX_NS	NSEC_PER_SEC
/* No batch is of more units than this: reserve.h keeps both units in one number. */
#define IOBAND_BATCH_MAX	(BIT(28) - 1)
/* One part in so many of a rate can be spent by those whom the limit does not bind. */
#define IOBAND_LEND_PART	2

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
 * @nr_parts:	how many batches can be held at a time
 */
static inline void ioband_rate_init(struct ioband_rate *r, u64 per_sec,
				    u32 min_burst, u32 min_batch,
				    unsigned int nr_parts)
{
	u64 rem = 0;

	*r = (struct ioband_rate){ };
	if (!per_sec || per_sec == U64_MAX)
		return;

	r->per_sec = min(per_sec, IOBAND_RATE_MAX);
	r->burst = max_t(s64, IOBAND_BURST_NS,
			 ioband_cost(r->per_sec, min_burst, &rem));
	r->batch = div_u64(mul_u64_u32_div(r->per_sec, IOBAND_RESERVE_NS, NSEC_PER_SEC),
			   nr_parts);
	/* it is bought along with a bio's worth: see ioband_cost() */
	r->batch = min_t(u64, r->batch, IOBAND_BATCH_MAX);
	if (r->batch < min_batch)
		r->batch = 0;
	else
		r->burst -= IOBAND_RESERVE_NS;
}

/**
 * ioband_rate_parts - how many batches is the reserve of a limit worth?
 * @per_sec:	units a second, 0 or U64_MAX for no limit
 * @min_batch:	the least batch in units
 *
 * Return: the number, 0 if not one; UINT_MAX for no limit.
 */
static inline unsigned int ioband_rate_parts(u64 per_sec, u32 min_batch)
{
	if (!per_sec || per_sec == U64_MAX)
		return UINT_MAX;
	return min_t(u64, UINT_MAX,
		     div_u64(mul_u64_u32_div(min(per_sec, IOBAND_RATE_MAX), IOBAND_RESERVE_NS,
					     NSEC_PER_SEC), min_batch));
}

/**
 * ioband_discard_bytes - what a discard counts for
 * @bytes:	that it discards
 *
 * A small discard keeps a disk about as busy as a write of its size.  A large one does
 * not, and still is not free: a group that discards in a loop gets no more of the disk
 * than its limit is worth.
 *
 * Return: all of the first 4 KiB, or a 256th of it all if that is more.
 */
static inline u32 ioband_discard_bytes(u32 bytes)
{
	return min(bytes, max_t(u32, SZ_4K, bytes / 256));
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
 * For an I/O that leaves before its time see ioband_charge_early().
 *
 * Return: the new TAT, at most IOBAND_TIME_MAX.
 */
static inline s64 ioband_charge(s64 tat, s64 now, s64 cost, s64 burst)
{
	s64 base = max(tat, now - max(cost - burst, 0));

	return base > IOBAND_TIME_MAX - cost ? IOBAND_TIME_MAX : base + cost;
}

/**
 * ioband_debt - how long until a limit lets an I/O of no size go
 * @tat:	the limit's theoretical arrival time, ns
 * @now:	ns
 * @burst:	the limit's burst, ns
 *
 * Return: ns, 0 if it does at once.
 */
static inline s64 ioband_debt(s64 tat, s64 now, s64 burst)
{
	return max(tat - burst - now, 0);
}

/**
 * ioband_charge_early - the TAT once an I/O has left before its time
 * @tat:	the TAT before, ns
 * @now:	when it leaves, ns
 * @cost:	what it costs, ns
 *
 * The TAT then runs ahead and the next ones wait the longer.  Unlike one that has
 * waited the I/O has earned nothing beyond the burst.
 *
 * Return: the new TAT, at most IOBAND_TIME_MAX.
 */
static inline s64 ioband_charge_early(s64 tat, s64 now, s64 cost)
{
	s64 base = max(tat, now);

	return base > IOBAND_TIME_MAX - cost ? IOBAND_TIME_MAX : base + cost;
}

/**
 * ioband_may_owe - may an I/O leave before its time and be paid for later?
 * @tat:	the limit's theoretical arrival time, ns
 * @now:	ns
 * @cost:	what the I/O costs, ns
 * @burst:	the limit's burst, ns
 *
 * Return: true if the debt would be no more than IOBAND_DEBT_MAX_NS.
 */
static inline bool ioband_may_owe(s64 tat, s64 now, s64 cost, s64 burst)
{
	return ioband_debt(ioband_charge_early(tat, now, cost), now, burst) <=
	       IOBAND_DEBT_MAX_NS;
}

/**
 * ioband_charge_debt - as ioband_charge_early(), but add no debt beyond the bound
 * @tat:	the TAT before, ns
 * @now:	when the I/O leaves, ns
 * @cost:	what it costs, ns
 * @burst:	the limit's burst, ns
 *
 * Return: the new TAT; IOBAND_DEBT_MAX_NS beyond the burst at most, or @tat if that is
 *	   later.
 */
static inline s64 ioband_charge_debt(s64 tat, s64 now, s64 cost, s64 burst)
{
	s64 most = max(tat, now + IOBAND_DEBT_MAX_NS + burst);

	return min(ioband_charge_early(tat, now, cost), most);
}

/**
 * ioband_lent - until when nothing more is lent, once an I/O has been
 * @lent:	the same before, ns
 * @now:	ns
 * @cost:	what the I/O costs, ns
 *
 * Return: ns; IOBAND_LEND_PART * IOBAND_DEBT_MAX_NS after @now at most.
 */
static inline s64 ioband_lent(s64 lent, s64 now, s64 cost)
{
	s64 most = now + IOBAND_LEND_PART * IOBAND_DEBT_MAX_NS;

	return min(max(lent, now) + IOBAND_LEND_PART * min(cost, IOBAND_DEBT_MAX_NS), most);
}

/**
 * ioband_may_lend - is there room for an I/O in what is lent?
 * @lent:	see ioband_lent()
 * @now:	ns
 * @cost:	what the I/O costs, ns
 *
 * Return: true if so.
 */
static inline bool ioband_may_lend(s64 lent, s64 now, s64 cost)
{
	return cost <= IOBAND_DEBT_MAX_NS &&
	       max(lent, now) + IOBAND_LEND_PART * cost <=
	       now + IOBAND_LEND_PART * IOBAND_DEBT_MAX_NS;
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
