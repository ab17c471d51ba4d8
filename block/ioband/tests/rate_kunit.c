// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of rate.h: tables of expected values, and its bound over long random sequences.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "../math/rate.h"

#define SEC	((s64)NSEC_PER_SEC)
#define MS	((s64)NSEC_PER_MSEC)

static struct ioband_rate bps(u64 per_sec)
{
	struct ioband_rate r;

	ioband_rate_init(&r, per_sec, IOBAND_BURST_BYTES);
	return r;
}

static struct ioband_rate iops(u64 per_sec)
{
	struct ioband_rate r;

	ioband_rate_init(&r, per_sec, IOBAND_BURST_IOS);
	return r;
}

static void rate_cost(struct kunit *test)
{
	static const struct {
		u64 per_sec;
		u64 units;
		s64 cost;
	} table[] = {
		{ SZ_1M,	SZ_64K,		62500000 },
		{ 8192,		1,		122070 },
		{ 3,		1,		333333333 },
		{ 1,		1,		SEC },
		{ 1,		U32_MAX,	4294967295 * SEC },
		{ 1,		1ULL << 33,	IOBAND_TIME_MAX },
		{ 10000000000,	4096,		409 },
		{ 1ULL << 62,	U32_MAX,	0 },
		{ 5,		0,		0 },
	};

	for (int i = 0; i < ARRAY_SIZE(table); i++) {
		u64 rem = 0;

		KUNIT_EXPECT_EQ_MSG(test, table[i].cost,
				    ioband_cost(table[i].per_sec, table[i].units, &rem),
				    "row %d", i);
	}
}

/* A million costs add up to the exact time, at rates that do not divide a second. */
static void rate_cost_carries(struct kunit *test)
{
	static const u64 rates[] = { 3, 8192, 1000003, 9999999967, 1ULL << 40 };

	for (int i = 0; i < ARRAY_SIZE(rates); i++) {
		const u64 n = 1000000, units = 4097;
		u64 rem = 0, sum = 0;

		for (u64 k = 0; k < n; k++)
			sum += ioband_cost(rates[i], units, &rem);
		KUNIT_EXPECT_EQ(test, sum, mul_u64_u64_div_u64(n * units,
							       NSEC_PER_SEC, rates[i]));
	}
}

static void rate_burst(struct kunit *test)
{
	/* the burst is the time of 64 KiB or one I/O, or 5 ms if that is more */
	KUNIT_EXPECT_EQ(test, bps(SZ_1M).burst, 62500 * (s64)NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, bps(1).burst, 65536 * SEC);
	KUNIT_EXPECT_EQ(test, bps(1000000000).burst, 5 * MS);
	KUNIT_EXPECT_EQ(test, iops(1).burst, SEC);
	/* rounded up, or the I/O would never be paid at once */
	KUNIT_EXPECT_EQ(test, iops(3).burst, 333333334);
	KUNIT_EXPECT_EQ(test, iops(1000000).burst, 5 * MS);
	/* the largest rate that is calculated with */
	KUNIT_EXPECT_EQ(test, bps(1ULL << 63).per_sec, IOBAND_RATE_MAX);
}

static void rate_when(struct kunit *test)
{
	const s64 now = 100 * SEC, b = 62500000;
	static const struct {
		s64 tat, arrival, cost, when;
	} table[] = {
		/* idle: an I/O of up to a burst at once, a larger one when the rest is earned */
		{  0, 0, 62500000, 0 },
		{  0, 0, 1000000000, 937500000 },
		/* the burst is used up */
		{  62500000, 0, 62500000, 62500000 },
		/* a large I/O earns from its arrival on */
		{  -50000000, 20000000, 1000000000, 957500000 },
	};

	for (int i = 0; i < ARRAY_SIZE(table); i++)
		KUNIT_EXPECT_EQ_MSG(test, now + table[i].when,
				    ioband_when(now + table[i].tat,
						now + table[i].arrival,
						table[i].cost, b),
				    "row %d", i);
	/* extreme values do not wrap */
	KUNIT_EXPECT_GT(test, ioband_when(IOBAND_TIME_MAX, now, IOBAND_TIME_MAX,
					  IOBAND_BURST_NS), IOBAND_TIME_MAX);
	KUNIT_EXPECT_LT(test, ioband_when(-IOBAND_TIME_MAX, S64_MIN, 0,
					  IOBAND_TIME_MAX), 0);
}

static void rate_charge(struct kunit *test)
{
	const s64 now = 100 * SEC, b = 62500000;

	/* an idle group earns no more than the burst, a waiting I/O earns all that it needs */
	KUNIT_EXPECT_EQ(test, ioband_charge(0, now, b, b), now + b);
	KUNIT_EXPECT_EQ(test, ioband_charge(0, now, SEC, b), now + b);
	KUNIT_EXPECT_EQ(test, ioband_charge(now + SEC, now, 7, b), now + SEC + 7);
	/* debts saturate */
	KUNIT_EXPECT_EQ(test, ioband_charge(IOBAND_TIME_MAX - 5, now, 7, b),
			IOBAND_TIME_MAX);
	KUNIT_EXPECT_EQ(test, ioband_charge(now, now, IOBAND_TIME_MAX, b),
			IOBAND_TIME_MAX);
}

/* 3 s to 10 s count. */
static void rate_unused(struct kunit *test)
{
	static const struct {
		s64 tat, ns;
	} table[] = {
		{ 0, 7 * SEC }, { 3 * SEC, 7 * SEC }, { 9 * SEC, SEC }, { 10 * SEC, 0 },
		{ 12 * SEC, 0 },
	};

	for (int i = 0; i < ARRAY_SIZE(table); i++)
		KUNIT_EXPECT_EQ_MSG(test, table[i].ns,
				    ioband_unused_ns(table[i].tat, 3 * SEC, 10 * SEC), "row %d", i);
	KUNIT_EXPECT_EQ(test, ioband_unused_ns(0, 10 * SEC, 10 * SEC), 0);
	KUNIT_EXPECT_EQ(test, ioband_units_in(1000, SEC - 1), 999);
	KUNIT_EXPECT_EQ(test, ioband_units_in(1, 60 * SEC), 60);
	KUNIT_EXPECT_EQ(test, ioband_units_in(IOBAND_RATE_MAX, SEC), BIT_ULL(40));
	/* traps on x86-64 if the quotient does not fit */
	KUNIT_EXPECT_EQ(test, ioband_units_in(IOBAND_RATE_MAX, 60 * SEC), 60 * BIT_ULL(40));
}

/* 1 MiB at 512 KiB/s, changed to 256 KiB/s after 1 s: dispatched at 3 s less a burst. */
static void rate_change_waiting(struct kunit *test)
{
	const s64 t0 = 100 * SEC;
	struct ioband_rate from = bps(SZ_512K), to = bps(SZ_256K);
	u64 rem = 0;
	s64 tat = ioband_carry_over(t0, t0 + SEC, true, &from, &to);

	KUNIT_EXPECT_EQ(test, t0 + 3 * SEC - to.burst,
			ioband_when(tat, S64_MIN, ioband_cost(SZ_256K, SZ_1M, &rem),
				    to.burst));
}

static void rate_change_idle(struct kunit *test)
{
	const s64 now = 100 * SEC;
	struct ioband_rate slow = bps(SZ_1M), fast = bps(1000000000), none = bps(0);
	struct ioband_rate ten = iops(10), twenty = iops(20);

	/* after a long idle time: a full burst of the new rate and no more */
	KUNIT_EXPECT_EQ(test, ioband_carry_over(0, now, false, &slow, &fast), now);
	/* if the burst is used up, nothing is in hand under the new rate either */
	KUNIT_EXPECT_EQ(test, ioband_carry_over(now + fast.burst, now, false, &fast, &slow),
			now + slow.burst);
	/* half a burst, 32 KiB, stays 32 KiB */
	KUNIT_EXPECT_EQ(test, ioband_carry_over(now + slow.burst / 2, now, false, &slow, &fast),
			now + fast.burst - 32768);
	/* nor is half an I/O lost, nor anything if the rate stays */
	KUNIT_EXPECT_EQ(test, ioband_carry_over(now + SEC / 20, now, false, &ten, &twenty),
			now + SEC / 40);
	KUNIT_EXPECT_EQ(test, ioband_carry_over(now + 7, now, false, &ten, &ten), now + 7);
	/* what is in hand can be no more than the new burst */
	KUNIT_EXPECT_EQ(test, ioband_carry_over(now + MS, now, false, &fast, &slow), now);
	KUNIT_EXPECT_EQ(test, ioband_carry_over(0, now, true, &none, &slow), now);
}

static void rate_change_extremes(struct kunit *test)
{
	struct ioband_rate one = bps(1), most = bps(1ULL << 63);

	/* a burst at one byte a second is almost nothing at the highest rate, and back */
	KUNIT_EXPECT_EQ(test, ioband_carry_over(SEC, SEC, false, &one, &most), SEC + most.burst);
	KUNIT_EXPECT_EQ(test, ioband_carry_over(-IOBAND_TIME_MAX, SEC, false, &most, &one), SEC);
	KUNIT_EXPECT_LT(test, ioband_carry_over(-IOBAND_TIME_MAX, SEC, true, &most, &one), SEC);
	KUNIT_EXPECT_EQ(test, ioband_carry_over(SEC, SEC, false, &most, &one), SEC);
	KUNIT_EXPECT_EQ(test, ioband_carry_over(IOBAND_TIME_MAX, SEC, false, &one, &most),
			SEC + most.burst);
	/* a clock that jumps back makes I/O wait, and does nothing else */
	KUNIT_EXPECT_GT(test, ioband_carry_over(SEC, -SEC, false, &one, &most), -SEC);
}

/* The bound of rate.h on a random run: never above it, and at the rate while backlogged. */
static void rate_window(struct kunit *test, struct ioband_rate r, u32 max_units)
{
	struct rnd_state rnd;
	s64 now = 0, tat = 0, least = 0, arrival;
	u64 rem = 0, total = 0;

	prandom_seed_state(&rnd, 3);
	for (int i = 0; i < 100000; i++) {
		u32 units = 1 + prandom_u32_state(&rnd) % max_units;
		s64 cost = ioband_cost(r.per_sec, units, &rem);
		s64 bound;

		/* mostly backlogged, sometimes idle for up to a second */
		arrival = now;
		if (!(prandom_u32_state(&rnd) % 1000))
			arrival = now += prandom_u32_state(&rnd) % NSEC_PER_SEC;
		now = max(now, ioband_when(tat, arrival, cost, r.burst));
		tat = ioband_charge(tat, now, cost, r.burst);

		/* how much a window that begins with this I/O may have by any later time */
		bound = (s64)total - now + max(cost, r.burst);
		least = i ? min(least, bound) : bound;
		total += cost;
		KUNIT_ASSERT_LE(test, (s64)total - now, least);
	}
}

static void rate_windows(struct kunit *test)
{
	rate_window(test, bps(4096), SZ_4M);
	rate_window(test, bps(SZ_1M), SZ_4M);
	rate_window(test, bps(10000000000), SZ_4M);
	rate_window(test, iops(1), 1);
	rate_window(test, iops(8192), 1);
}

static struct kunit_case rate_cases[] = {
	KUNIT_CASE(rate_cost),
	KUNIT_CASE(rate_cost_carries),
	KUNIT_CASE(rate_burst),
	KUNIT_CASE(rate_when),
	KUNIT_CASE(rate_charge),
	KUNIT_CASE(rate_unused),
	KUNIT_CASE(rate_change_waiting),
	KUNIT_CASE(rate_change_idle),
	KUNIT_CASE(rate_change_extremes),
	KUNIT_CASE(rate_windows),
	{ }
};

static struct kunit_suite rate_suite = {
	.name = "ioband_rate",
	.test_cases = rate_cases,
};

kunit_test_suite(rate_suite);

MODULE_DESCRIPTION("KUnit tests of ioband's arithmetic");
MODULE_LICENSE("GPL");
