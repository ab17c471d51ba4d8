// SPDX-License-Identifier: GPL-2.0
/* Tests of cost.h: costs of I/Os are learned, and stay known. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sizes.h>

#include "../math/cost.h"

#define SEC	((s64)NSEC_PER_SEC)
#define US	((s64)NSEC_PER_USEC)

/* The device time of an I/O, from which costs are learned. */
struct price {
	s64 ios[2];		/* ns for a read, for a write */
	s64 bytes;		/* ns for 64 KiB */
};

/* Complete @ios I/Os of two lengths and directions in random order, each after its device time. */
static void pay(struct ioband_cost *c, const struct price *price, const u32 bytes[2], int ios)
{
	struct rnd_state rnd;
	s64 now = SEC;

	/* time begins anew */
	ioband_cost_again(c);
	prandom_seed_state(&rnd, 3);
	for (int i = 0; i < ios; i++) {
		bool second = prandom_u32_state(&rnd) % 3 == 0;
		bool write = prandom_u32_state(&rnd) % 4 == 0;

		s64 ns = price->ios[write] + ((price->bytes * bytes[second]) >> 16);

		now += ns;
		ioband_cost_done(c, write, bytes[second], now - ns, 0, now, 0, true);
	}
}

static void cost_is_near(struct kunit *test, const struct ioband_cost *c, bool write, u32 bytes,
			 s64 ns, int row)
{
	u64 cost = ioband_cost_of(c, write, bytes) >> 8;

	KUNIT_EXPECT_GE_MSG(test, cost, div_s64(ns * 95, 100), "row %d", row);
	KUNIT_EXPECT_LE_MSG(test, cost, div_s64(ns * 105, 100), "row %d", row);
}

/* Costs by length, as of a link; by number, as of servers; and by direction. */
static void cost_learns(struct kunit *test)
{
	static const struct price table[] = {
		{ { 100 * US, 100 * US }, 0 },
		{ { US, US }, 65 * US },
		{ { 20 * US, 20 * US }, 130 * US },
		{ { 10 * US, 90 * US }, 0 },
		{ { 2 * US, 40 * US }, 30 * US },
	};
	static const u32 bytes[] = { SZ_4K, SZ_256K };

	for (int i = 0; i < ARRAY_SIZE(table); i++) {
		struct ioband_cost c;

		ioband_cost_init(&c);
		pay(&c, &table[i], bytes, 20000);
		for (int k = 0; k < 2; k++)
			for (int write = 0; write < 2; write++)
				cost_is_near(test, &c, write, bytes[k], table[i].ios[write] +
					     ((table[i].bytes * bytes[k]) >> 16), i);
	}
}

/* A device that stands still for long does not make I/Os expensive, nor do impossible times. */
static void cost_forgets(struct kunit *test)
{
	static const struct price price = { { 100 * US, 100 * US }, 0 };
	static const u32 bytes[] = { SZ_4K, SZ_64K };
	struct ioband_cost c;

	ioband_cost_init(&c);
	pay(&c, &price, bytes, 5000);
	/* the block that has stood still is learned when the next one ends */
	for (int i = 0; i < 2 * IOBAND_BLOCK; i++)
		ioband_cost_done(&c, false, SZ_4K, 0, 0, 10000 * SEC + i * 100 * US, 0, true);
	cost_is_near(test, &c, false, SZ_4K, 100 * US, 0);
	ioband_cost_done(&c, false, SZ_4K, 0, 0, -SEC, 0, true);
	for (int i = 0; i < IOBAND_BLOCK; i++)
		ioband_cost_done(&c, true, U32_MAX, 0, 0, i % 2 ? S64_MAX : 1, 0, true);
	KUNIT_EXPECT_LE(test, ioband_cost_of(&c, false, SZ_4K) >> 8, 20 * 100 * US);
	pay(&c, &price, bytes, 20000);
	cost_is_near(test, &c, false, SZ_4K, 100 * US, 0);
	cost_is_near(test, &c, false, SZ_64K, 100 * US, 1);
}

/* I/Os of 512 bytes, and then of 4 MiB and more: no number overflows. */
static void cost_of_other_lengths(struct kunit *test)
{
	static const struct price price = { { US, US }, 16 * US };
	static const u32 first[] = { SZ_512, SZ_512 };
	static const u32 then[] = { SZ_4M, SZ_64M };
	struct ioband_cost c;

	ioband_cost_init(&c);
	pay(&c, &price, first, 20000);
	pay(&c, &price, then, 20000);
	for (int i = 0; i < IOBAND_COSTS; i++)
		for (int k = 0; k < IOBAND_COSTS; k++)
			KUNIT_EXPECT_EQ(test, c.cov[i][k], c.cov[k][i]);
	cost_is_near(test, &c, false, SZ_4M, 1025 * US, 0);
	cost_is_near(test, &c, true, SZ_4M, 1025 * US, 1);
}

/* Costs are at least 1, and never so large that tags could not be compared. */
static void cost_stays_in_range(struct kunit *test)
{
	struct ioband_cost c;
	struct rnd_state rnd;
	s64 now = 0;

	prandom_seed_state(&rnd, 4);
	ioband_cost_init(&c);
	for (int i = 0; i < 200000; i++) {
		u64 cost;

		now += (s64)prandom_u32_state(&rnd) >> (prandom_u32_state(&rnd) % 32);
		ioband_cost_done(&c, i % 3 == 0, prandom_u32_state(&rnd) >> (i % 24),
				 (s64)prandom_u32_state(&rnd), 0, now, 0, true);
		cost = ioband_cost_of(&c, i % 2, prandom_u32_state(&rnd));
		if (!cost || cost > IOBAND_COST_MAX << 8) {
			KUNIT_FAIL(test, "cost %llu after %d", cost, i);
			return;
		}
	}
}

/*
 * When costs are known, blocks of I/Os take the same time however many long I/Os complete within
 * them: these differ in what was begun before.  Costs stay as they are.
 */
static void cost_of_chance(struct kunit *test)
{
	static const struct price price = { { 20 * US, 20 * US }, 65 * US };
	static const u32 bytes[] = { SZ_4K, SZ_64K };
	s64 now = 10000 * SEC, block_ns = 8 * 85 * US + 24 * 24 * US;
	struct rnd_state rnd;
	struct ioband_cost c;

	ioband_cost_init(&c);
	pay(&c, &price, bytes, 20000);
	prandom_seed_state(&rnd, 5);
	ioband_cost_again(&c);
	for (int block = 0; block < 2000; block++) {
		unsigned int nr_long = 7 + prandom_u32_state(&rnd) % 3;

		for (unsigned int i = 0; i < 32; i++) {
			now += block_ns / 32;
			ioband_cost_done(&c, false, bytes[i < nr_long], now - block_ns / 4,
					 block_ns / 4, now, 0, true);
		}
	}
	KUNIT_EXPECT_LE(test, ioband_cost_of(&c, false, SZ_4K) >> 8, 28 * US);
	KUNIT_EXPECT_GE(test, ioband_cost_of(&c, false, SZ_64K) >> 8, 72 * US);
}

/*
 * Each group submits the same mix, so blocks do not follow what is charged.  In half of them fewer
 * writes complete in the same time, as the device collects garbage: this must not make reads
 * expensive.
 */
static void cost_of_one_mix(struct kunit *test)
{
	s64 now = SEC, block_ns = 64 * 200 * US;
	struct rnd_state rnd;
	struct ioband_cost c;

	prandom_seed_state(&rnd, 6);
	ioband_cost_init(&c);
	for (int block = 0; block < 5000; block++) {
		unsigned int writes = prandom_u32_state(&rnd) % 2 ? 150 : 192, ios = 64 + writes;

		for (unsigned int i = 0; i < ios; i++) {
			bool write = i * writes / ios != (i + 1) * writes / ios;
			u64 cost = ioband_cost_of(&c, write, SZ_4K);

			now += div_s64(block_ns, ios);
			c.block.varied |= ioband_cost_charged(&c, write, SZ_4K) != cost;
			ioband_cost_done(&c, write, SZ_4K, now - 200 * US, 200 * US, now, 0, true);
		}
	}
	KUNIT_EXPECT_LE(test, ioband_cost_of(&c, false, SZ_4K),
			2 * ioband_cost_of(&c, true, SZ_4K));
}

/*
 * A long write comes at regular times, and is in flight for longer than a read.  Meanwhile, or at
 * the end of that time, reads take longer.  So in many cases the reads of one block are slow, and
 * the write completes in another one.
 */
struct regular {
	s64 each, flight, slow;		/* ns: from write to write, of it, and reads are slow */
	s64 read, slow_read;		/* ns: from read to read; a read takes eight of these */
};

static void see_regular(struct ioband_cost *c, const struct regular *r)
{
	s64 now = SEC, begin = SEC, latency = 8 * r->read;

	ioband_cost_init(c);
	for (int i = 0; i < 40000; i++) {
		s64 left = begin + r->flight - now;

		now += left > 0 && left <= r->slow ? r->slow_read : r->read;
		ioband_cost_done(c, false, SZ_4K, now - latency, latency, now, 0, true);
		if (now < begin + r->flight)
			continue;
		ioband_cost_done(c, true, SZ_1M, begin, latency, now, 0, true);
		begin += r->each;
	}
}

static void cost_of_regular(struct kunit *test)
{
	static const struct regular table[] = {
		{ 32000 * US, 6000 * US, 6000 * US, 250 * US, 400 * US },
		{ 25000 * US, 6000 * US, 6000 * US, 250 * US, 400 * US },
		/* a block lasts for 13 ms */
		{ 70000 * US, 60000 * US, 4000 * US, 25 * US, 50 * US },
	};
	struct ioband_cost c;

	for (int i = 0; i < ARRAY_SIZE(table); i++) {
		const struct regular *r = &table[i];
		s64 ns = r->slow - div64_s64(r->slow, r->slow_read) * r->read, cost;

		see_regular(&c, r);
		cost = ioband_cost_of(&c, true, SZ_1M) >> 8;
		KUNIT_EXPECT_GE_MSG(test, cost, div_s64(ns * 3, 4), "row %d", i);
		KUNIT_EXPECT_LE_MSG(test, cost, div_s64(ns * 5, 4), "row %d", i);
		cost = ioband_cost_of(&c, false, SZ_4K) >> 8;
		KUNIT_EXPECT_LE_MSG(test, cost, div_s64(r->read * 105, 100), "row %d", i);
	}
}

static struct kunit_case cost_cases[] = {
	KUNIT_CASE(cost_learns),
	KUNIT_CASE(cost_forgets),
	KUNIT_CASE(cost_of_other_lengths),
	KUNIT_CASE(cost_stays_in_range),
	KUNIT_CASE(cost_of_chance),
	KUNIT_CASE(cost_of_one_mix),
	KUNIT_CASE(cost_of_regular),
	{ }
};

static struct kunit_suite cost_suite = {
	.name = "ioband_cost",
	.test_cases = cost_cases,
};

kunit_test_suite(cost_suite);

MODULE_DESCRIPTION("KUnit tests of what I/Os cost for ioband");
MODULE_LICENSE("GPL");
