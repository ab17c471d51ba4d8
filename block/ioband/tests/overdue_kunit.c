// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of overdue.h: where it does not help that others wait for an overdue I/O, they soon cease
 * to; where it helps, they wait but for rare trials.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../math/overdue.h"

#define MS	((s64)NSEC_PER_MSEC)

/*
 * The times that I/Os take, in turn, while others wait for them, and while they do not, ms; and the
 * I/Os of others that are done in each ms of that.
 */
struct times {
	unsigned int	waited[4];
	unsigned int	free[4];
	unsigned int	done_waited;
	unsigned int	done_free;
};

/*
 * One I/O after the other is overdue from @from_ms to @to_ms.
 *
 * Returns how many ms of that others did not wait.
 */
static unsigned int run(struct ioband_overdue *o, const struct times *times, unsigned int from_ms,
			unsigned int to_ms)
{
	unsigned int ms = from_ms, turn = 0, free = 0;

	while (ms < to_ms) {
		struct ioband_overdue_io io = { };
		bool waits = ioband_overdue_waits(o, &io, 0, ms * MS);
		unsigned int took = (waits ? times->waited : times->free)[turn++ % 4];

		ioband_overdue_begin(o, &io);
		io.phase = o->phase;
		ms += took;
		free += waits ? 0 : took;
		o->done += 1 + took * (waits ? times->done_waited : times->done_free);
		ioband_overdue_done(o, &io, took * MS, ms * MS);
	}
	return free;
}

/* A virtual disk: each I/O takes as long as it takes. */
static void overdue_in_vain(struct kunit *test)
{
	const struct times same = {
		.waited = { 4, 8, 8, 12 }, .free = { 8, 4, 12, 8 },
		.done_waited = 8, .done_free = 64,
	};
	struct ioband_overdue o;

	ioband_overdue_init(&o);
	KUNIT_EXPECT_GE(test, run(&o, &same, 0, 8000), 7300U);
	KUNIT_EXPECT_GE(test, run(&o, &same, 8000, 108000), 98000U);
}

/* A disk that does others first: one of four I/Os takes ten times as long. */
static void overdue_helps(struct kunit *test)
{
	const struct times disk = {
		.waited = { 8, 12, 16, 20 }, .free = { 8, 12, 16, 160 },
		.done_waited = 1, .done_free = 4,
	};
	struct ioband_overdue o;

	ioband_overdue_init(&o);
	KUNIT_EXPECT_LE(test, run(&o, &disk, 0, 8000), 1600U);
	KUNIT_EXPECT_LE(test, run(&o, &disk, 8000, 108000), 4 * 1600U);
	/* a trial ends with the I/O after which it is clear, and there are others later */
	KUNIT_EXPECT_GE(test, run(&o, &disk, 108000, 408000), 160U);
}

/* A disk that does an I/O no sooner if it gets no others, but not many more of them either. */
static void overdue_gains_little(struct kunit *test)
{
	const struct times disk = {
		.waited = { 8, 12, 16, 20 }, .free = { 12, 8, 20, 16 },
		.done_waited = 4, .done_free = 6,
	};
	struct ioband_overdue o;

	ioband_overdue_init(&o);
	KUNIT_EXPECT_LE(test, run(&o, &disk, 0, 8000), 8 * 20U);
	KUNIT_EXPECT_LE(test, run(&o, &disk, 8000, 108000), 4 * 8 * 20U);
}

/* An I/O that takes very long is waited for in a trial as well. */
static void overdue_longest(struct kunit *test)
{
	const struct times same = { .waited = { 8, 8, 8, 8 }, .free = { 8, 8, 8, 8 } };
	struct ioband_overdue_io io = { };
	struct ioband_overdue o;

	ioband_overdue_init(&o);
	run(&o, &same, 0, 8 * IOBAND_OVERDUE_IOS);
	KUNIT_EXPECT_EQ(test, (int)o.way, (int)IOBAND_OVERDUE_TRIAL);
	KUNIT_EXPECT_FALSE(test, ioband_overdue_waits(&o, &io, 23 * MS, 600 * MS));
	KUNIT_EXPECT_TRUE(test, ioband_overdue_waits(&o, &io, 25 * MS, 600 * MS));
}

/* An I/O that was found overdue before others did otherwise does not count. */
static void overdue_phase(struct kunit *test)
{
	struct ioband_overdue o;

	ioband_overdue_init(&o);
	for (int i = 0; i < 3 * IOBAND_OVERDUE_IOS; i++) {
		struct ioband_overdue_io io = { .phase = 1 }, none = { };

		ioband_overdue_done(&o, &none, 8 * MS, 8 * i * MS);
		ioband_overdue_done(&o, &io, 8 * MS, 8 * i * MS);
	}
	KUNIT_EXPECT_EQ(test, (int)o.way, (int)IOBAND_OVERDUE_TRIAL);
	KUNIT_EXPECT_FALSE(test, o.nr);
}

static struct kunit_case overdue_cases[] = {
	KUNIT_CASE(overdue_in_vain),
	KUNIT_CASE(overdue_helps),
	KUNIT_CASE(overdue_gains_little),
	KUNIT_CASE(overdue_longest),
	KUNIT_CASE(overdue_phase),
	{ }
};

static struct kunit_suite overdue_suite = {
	.name = "ioband_overdue",
	.test_cases = overdue_cases,
};

kunit_test_suite(overdue_suite);

MODULE_DESCRIPTION("KUnit tests of what waiting for overdue I/Os does");
MODULE_LICENSE("GPL");
