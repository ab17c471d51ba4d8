// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of share.h and window.h: shares are exact, and bursts of completions do not mislead
 * windows.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sizes.h>

#include "../math/share.h"
#include "../math/window.h"

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
		/* larger values count as the largest */
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
	/* at least 1, and never so much that tags could not be compared */
	KUNIT_EXPECT_EQ(test, 1ULL, ioband_charge_tag(0, 1 << 16));
	KUNIT_EXPECT_LE(test, ioband_charge_tag(U64_MAX, IOBAND_INV_MAX), BIT_ULL(61));
}

static void window_classes(struct kunit *test)
{
	static const struct {
		u32 bytes;
		unsigned int class;
	} table[] = {
		{ 0, 14 }, { 512, 0 }, { 1023, 0 }, { 1024, 1 }, { SZ_4K, 3 }, { SZ_8K, 4 },
		{ SZ_1M, 11 }, { SZ_4M, 13 }, { SZ_8M, 13 }, { U32_MAX, 13 },
	};

	for (int i = 0; i < ARRAY_SIZE(table); i++) {
		KUNIT_EXPECT_EQ_MSG(test, table[i].class,
				    ioband_window_class(false, table[i].bytes), "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, table[i].class + IOBAND_WINDOW_SIZES,
				    ioband_window_class(true, table[i].bytes), "row %d", i);
	}
}

/* Device time that was used counts in this second and in the next one, and no longer. */
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

/* A window counts I/Os given to the device since it began, and does not end within a burst. */
static void window_bursts(struct kunit *test)
{
	struct ioband_io io = { .class = 3, .inflight = 64, .given_ns = SEC };
	struct ioband_window w = { };
	struct ioband_sample s;
	s64 now = SEC + 10000 * US;

	/* given to the device before the window began */
	for (int i = 0; i < 1000; i++)
		KUNIT_EXPECT_FALSE(test, ioband_window_done(&w, &io, UINT_MAX, now + i, &s));
	KUNIT_EXPECT_EQ(test, w.nr, 0U);
	/* bursts of 64 I/Os, each of 10 ms */
	for (int burst = 0; burst < 2; burst++) {
		io.given_ns = now + 1000;
		now = io.given_ns + 10000 * US;
		for (int i = 0; i < 64; i++)
			KUNIT_EXPECT_FALSE_MSG(test, burst == 0 &&
					       ioband_window_done(&w, &io, UINT_MAX, now + i, &s),
					       "I/O %d of a burst", i);
	}
}

static struct kunit_case share_cases[] = {
	KUNIT_CASE(share_inverse),
	KUNIT_CASE(share_charge),
	KUNIT_CASE(window_classes),
	KUNIT_CASE(share_used),
	KUNIT_CASE(share_tags_wrap),
	KUNIT_CASE(window_bursts),
	{ }
};

static struct kunit_suite share_suite = {
	.name = "ioband_share",
	.test_cases = share_cases,
};

kunit_test_suite(share_suite);

MODULE_DESCRIPTION("KUnit tests of ioband's share arithmetic");
MODULE_LICENSE("GPL");
