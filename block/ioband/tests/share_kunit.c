// SPDX-License-Identifier: GPL-2.0
/*
 * What share.h and depth.h promise: exact parts, and a depth that is found on model
 * devices.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "../depth.h"
#include "../share.h"

#define SEC	((s64)NSEC_PER_SEC)
#define US	((s64)NSEC_PER_USEC)

static void share_inverse(struct kunit *test)
{
	static const struct {
		u64 inv;
		u64 sum;
		u32 weight;
		u64 want;
	} table[] = {
		{ 1 << 16,	500,		500,	1 << 16 },
		{ 1 << 16,	1000,		100,	10 << 16 },
		{ 10 << 16,	3,		1,	30 << 16 },
		{ 1 << 16,	10001,		1,	10001ULL << 16 },
		{ 1 << 16,	10000,		10000,	1 << 16 },
		/* beyond what is told apart */
		{ IOBAND_INV_MAX, 10001,	1,	IOBAND_INV_MAX },
		{ IOBAND_INV_MAX, U32_MAX,	1,	IOBAND_INV_MAX },
		{ IOBAND_INV_MAX, U64_MAX,	1,	IOBAND_INV_MAX },
	};

	for (int i = 0; i < ARRAY_SIZE(table); i++)
		KUNIT_EXPECT_EQ_MSG(test, table[i].want,
				    ioband_inverse(table[i].inv, table[i].sum,
						   table[i].weight), "row %d", i);
}

static void share_charge(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 256000ULL, ioband_charge_tag(256000, 1 << 16));
	KUNIT_EXPECT_EQ(test, 2560000ULL, ioband_charge_tag(256000, 10 << 16));
	/* never nothing, never so much that tags could not be compared */
	KUNIT_EXPECT_EQ(test, 1ULL, ioband_charge_tag(0, 1 << 16));
	KUNIT_EXPECT_LE(test, ioband_charge_tag(U64_MAX, IOBAND_INV_MAX), BIT_ULL(61));
}

static void share_classes(struct kunit *test)
{
	static const struct {
		u32 bytes;
		unsigned int class;
	} table[] = {
		{ 0, 0 }, { 512, 0 }, { 2047, 0 }, { 2048, 1 }, { SZ_4K, 1 },
		{ SZ_64K, 3 }, { SZ_128K, 4 }, { SZ_1M, 5 }, { SZ_2M, 6 },
		{ SZ_8M, 6 },
		{ U32_MAX, 6 },
	};

	for (int i = 0; i < ARRAY_SIZE(table); i++)
		KUNIT_EXPECT_EQ_MSG(test, table[i].class,
				    ioband_size_class(table[i].bytes), "row %d", i);
}

/* A class learns what its I/Os take, and says so in proportion to their length. */
static void share_cost(struct kunit *test)
{
	struct ioband_class c = { };

	KUNIT_EXPECT_GT(test, ioband_class_cost(&c, SZ_64K), 0ULL);
	for (int i = 0; i < 1000; i++) {
		ioband_class_size(&c, SZ_64K);
		KUNIT_EXPECT_EQ(test, 900ULL * US,
				ioband_class_learn(&c, 900 * US, 600 * US));
	}
	KUNIT_EXPECT_EQ(test, 600ULL * US << 8, ioband_class_cost(&c, SZ_64K));
	KUNIT_EXPECT_EQ(test, 300ULL * US << 8, ioband_class_cost(&c, SZ_32K));
	/* in bursts of which only the first seems to take time */
	for (int i = 0; i < 32 * 64; i++) {
		ioband_class_size(&c, SZ_64K);
		ioband_class_learn(&c, 900 * US, i % 32 ? 0 : 32 * 600 * US);
		KUNIT_EXPECT_LE(test, 590ULL * US << 8, ioband_class_cost(&c, SZ_64K));
		KUNIT_EXPECT_GE(test, 610ULL * US << 8, ioband_class_cost(&c, SZ_64K));
	}
	/* time that went backwards, or stood still for years */
	ioband_class_learn(&c, -5, -5);
	for (int i = 0; i < IOBAND_CLASS_NR; i++)
		ioband_class_learn(&c, S64_MAX, S64_MAX);
	KUNIT_EXPECT_LE(test, ioband_class_cost(&c, SZ_64K), IOBAND_COST_MAX << 8);
}

/* The least latency that was seen is believed, but not for ever. */
static void share_least(struct kunit *test)
{
	struct ioband_class c = { };

	KUNIT_EXPECT_EQ(test, ioband_class_learn(&c, 100 * US, US), 100ULL * US);
	/* it grows by 2^-16 with each completion: doubled after 45,426, at most as seen */
	for (int i = 0; i < 45426; i++)
		ioband_class_learn(&c, 300 * US, US);
	KUNIT_EXPECT_GE(test, c.least >> 8, 199ULL * US);
	KUNIT_EXPECT_LE(test, c.least >> 8, 201ULL * US);
	for (int i = 0; i < 65536; i++)
		ioband_class_learn(&c, 300 * US, US);
	KUNIT_EXPECT_EQ(test, c.least >> 8, 300ULL * US);
}

/* What was used counts in this second and in the next, and no longer. */
static void share_used(struct kunit *test)
{
	struct ioband_used u = { };

	ioband_use(&u, 7, 100);
	ioband_use(&u, 7, 20);
	KUNIT_EXPECT_EQ(test, u.now, 120ULL);
	KUNIT_EXPECT_EQ(test, u.before, 0ULL);
	ioband_use(&u, 8, 3);
	KUNIT_EXPECT_EQ(test, u.now, 3ULL);
	KUNIT_EXPECT_EQ(test, u.before, 120ULL);
	ioband_use(&u, 10, 0);
	KUNIT_EXPECT_EQ(test, u.now, 0ULL);
	KUNIT_EXPECT_EQ(test, u.before, 0ULL);
}

static void share_tags_wrap(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, ioband_tag_before(U64_MAX - 5, 5));
	KUNIT_EXPECT_FALSE(test, ioband_tag_before(5, U64_MAX - 5));
	KUNIT_EXPECT_EQ(test, 5ULL, ioband_tag_max(U64_MAX - 5, 5));
}

/* Time in which nothing is in flight is none that the device takes for an I/O. */
static void window_idle(struct kunit *test)
{
	struct ioband_load load = { .outstanding = 1 };
	struct ioband_window w = { };
	struct ioband_sample s = { };
	s64 now = SEC;
	int nr = 0;

	ioband_window_start(&w, 1, now);
	do {
		now += 10 * US;
		if (nr % 3 == 0) {	/* idle before every third */
			now += 90 * US;
			load.idle_ns += 90 * US;
		}
	} while (++nr < 1000 && !ioband_window_done(&w, 1, &load, now, &s));
	KUNIT_EXPECT_LT(test, nr, 1000);
	KUNIT_EXPECT_EQ(test, s.per, 10ULL * US << 8);
	KUNIT_EXPECT_EQ(test, s.err, 0U);
}

/* A device of @servers that each take @ns, always with enough to do. */
struct model {
	unsigned int servers;
	s64 ns;
	unsigned int jitter;	/* percent of ns, either way */
	bool blind;		/* latencies say nothing of how much it does at once */
	unsigned int crowd;	/* percent that each I/O beyond @servers slows all down */
};

/* Run the finder on it for so many completions; when it has found the depth. */
static s64 find(const struct model *m, struct ioband_knee *k,
		unsigned int completions, s64 *now)
{
	s64 found = S64_MAX;
	struct rnd_state rnd;
	struct ioband_load load = {
		.bdp = m->blind ? 0 : (u64)m->servers << 10,
		.outstanding = 4096,
		.groups = 2,
		.limited = true,
	};

	prandom_seed_state(&rnd, 1);
	while (completions--) {
		unsigned int busy = min(k->depth, m->servers);
		s64 ns = m->ns;

		if (m->jitter)
			ns += div_s64(ns * ((s64)(prandom_u32_state(&rnd) % (2 * m->jitter)) -
					    m->jitter), 100);
		ns += div_s64(ns * m->crowd * (k->depth - busy), 100);
		*now += max(div_s64(ns, busy), 1);
		ioband_knee_done(k, &load, *now);
		if (k->phase >= IOBAND_HOLD)
			found = min(found, *now);
	}
	return found;
}

static void depth_finds_knee(struct kunit *test)
{
	static const struct {
		struct model m;
		unsigned int least, most;
	} table[] = {
		{ { 1, 6600 * US },		1, 1 },
		{ { 1, 40 * US },		1, 1 },
		{ { 2, 100 * US },		2, 2 },
		{ { 64, 100 * US },		62, 66 },
		{ { 256, 10 * US },		250, 270 },
		{ { 64, 100 * US, 30 },		60, 80 },
		{ { 1024, 10 * US },		1000, 1024 },
		{ { 1, 40 * US, 0, true },	1, 1 },
		{ { 64, 100 * US, 30, true },	60, 80 },
		{ { 256, 10 * US, 0, true },	250, 270 },
	};

	for (int i = 0; i < ARRAY_SIZE(table); i++) {
		struct ioband_knee k;
		unsigned int depth;
		s64 found, now = SEC;

		ioband_knee_init(&k, now);
		found = find(&table[i].m, &k, 200000, &now) - SEC;
		depth = k.good;
		KUNIT_EXPECT_LE_MSG(test, found, 2 * SEC, "row %d", i);
		KUNIT_EXPECT_GE_MSG(test, depth, table[i].least, "row %d", i);
		KUNIT_EXPECT_LE_MSG(test, depth, table[i].most, "row %d", i);
		KUNIT_EXPECT_GE_MSG(test, k.phase, IOBAND_HOLD, "row %d", i);
	}
}

/* The last step of the ramp, from 4 to 16, makes the device slower: 4 is the best. */
static void depth_ramps_too_far(struct kunit *test)
{
	const struct model m = { 4, 100 * US, .crowd = 4 };
	struct ioband_knee k;
	s64 now = SEC;
	int nr = 0;

	ioband_knee_init(&k, now);
	while (k.phase < IOBAND_HOLD && nr++ < 10000)
		find(&m, &k, 1, &now);
	KUNIT_EXPECT_EQ(test, k.phase, IOBAND_HOLD);
	KUNIT_EXPECT_EQ(test, k.good, 4U);
}

/* A device that becomes four times as parallel is followed. */
static void depth_follows(struct kunit *test)
{
	struct model m = { 16, 100 * US };
	struct ioband_knee k;
	s64 now = SEC;

	ioband_knee_init(&k, now);
	find(&m, &k, 100000, &now);
	KUNIT_EXPECT_GE(test, k.good, 15U);
	KUNIT_EXPECT_LE(test, k.good, 17U);
	m.servers = 64;
	find(&m, &k, 3000000, &now);
	KUNIT_EXPECT_GE(test, k.good, 58U);
	KUNIT_EXPECT_LE(test, k.good, 72U);
}

/* A device that takes fewer than it did is given no more than that. */
static void depth_shrinks(struct kunit *test)
{
	const struct model m = { 64, 100 * US };
	struct ioband_load load = { .bdp = 64 << 10, .groups = 2, .limit = 8 };
	struct ioband_knee k;
	s64 now = SEC;

	ioband_knee_init(&k, now);
	find(&m, &k, 100000, &now);
	KUNIT_EXPECT_GE(test, k.good, 62U);
	for (int i = 0; i < 4096; i++) {
		now += 12 * US;
		ioband_knee_done(&k, &load, now);
	}
	KUNIT_EXPECT_LE(test, k.depth, 8U);
}

/* Whatever the clock says, the depth stays in range. */
static void depth_extremes(struct kunit *test)
{
	struct ioband_load load = { .groups = 2, .limited = true };
	struct ioband_knee k;
	struct rnd_state rnd;
	s64 now = 0;

	prandom_seed_state(&rnd, 2);
	ioband_knee_init(&k, now);
	for (int i = 0; i < 200000; i++) {
		now += prandom_u32_state(&rnd) % 3 ? 0 : (s64)prandom_u32_state(&rnd) << 8;
		load.idle_ns += prandom_u32_state(&rnd) % 100;
		load.bdp = (u64)prandom_u32_state(&rnd) << (i % 8);
		load.outstanding = prandom_u32_state(&rnd);
		load.limited = i % 3;
		load.groups = i % 5;
		ioband_knee_done(&k, &load, now);
		if (k.depth < 1 || k.depth > IOBAND_DEPTH_MAX) {
			KUNIT_FAIL(test, "depth %u after %d", k.depth, i);
			return;
		}
	}
}

/* Twice what completes meanwhile, and never more than a quarter of the depth. */
static void depth_ahead(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ioband_ahead(63 * US, 563 * US, 16), 3U);
	KUNIT_EXPECT_EQ(test, ioband_ahead(US, 563 * US, 16), 0U);
	KUNIT_EXPECT_EQ(test, ioband_ahead(500 * US, 563 * US, 16), 4U);
	KUNIT_EXPECT_EQ(test, ioband_ahead(500 * US, 563 * US, 256), 64U);
	KUNIT_EXPECT_EQ(test, ioband_ahead(500 * US, 563 * US, 3), 0U);
	KUNIT_EXPECT_EQ(test, ioband_ahead(US, 0, 16), 0U);
	KUNIT_EXPECT_EQ(test, ioband_ahead(S64_MAX, S64_MAX, 1024), 255U);
}

static struct kunit_case share_cases[] = {
	KUNIT_CASE(share_inverse),
	KUNIT_CASE(share_charge),
	KUNIT_CASE(share_classes),
	KUNIT_CASE(share_cost),
	KUNIT_CASE(share_least),
	KUNIT_CASE(share_used),
	KUNIT_CASE(share_tags_wrap),
	KUNIT_CASE(window_idle),
	KUNIT_CASE(depth_finds_knee),
	KUNIT_CASE(depth_ramps_too_far),
	KUNIT_CASE(depth_follows),
	KUNIT_CASE(depth_shrinks),
	KUNIT_CASE(depth_extremes),
	KUNIT_CASE(depth_ahead),
	{ }
};

static struct kunit_suite share_suite = {
	.name = "ioband_share",
	.test_cases = share_cases,
};

kunit_test_suite(share_suite);

MODULE_DESCRIPTION("KUnit tests of ioband's share arithmetic");
MODULE_LICENSE("GPL");
