// SPDX-License-Identifier: GPL-2.0
/* Tests of depth.h: the queue depth of model devices is found, and changes of it are followed. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "../math/depth_done.h"

#define SEC	((s64)NSEC_PER_SEC)
#define US	((s64)NSEC_PER_USEC)

/* A device with @servers that each take @ns for an I/O, and @outstanding I/Os to do. */
struct model {
	unsigned int servers;
	s64 ns;
	unsigned int jitter;	/* percent of ns, either way */
	unsigned int outstanding;
	bool even;		/* no group lags behind another one */
	unsigned int tags;	/* the most in flight: more submitters wait unseen; 0: no limit */
};

/* Run the device for @completions, while a group lags behind unless it is even. */
static void use(const struct model *m, struct ioband_depth *d, unsigned int completions, s64 *now)
{
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 1);
	while (completions--) {
		unsigned int room = min(d->depth, d->ceiling);
		unsigned int inflight = min3(room, m->outstanding, m->tags ?: UINT_MAX);
		bool unseen = m->tags && m->tags < room;
		s64 ns = div_s64(m->ns * max(inflight, m->servers), m->servers);
		struct ioband_io io = {
			.class = 3,
			.inflight = inflight,
			.outstanding = unseen ? inflight : m->outstanding,
		};

		*now += max(div_s64(ns, inflight), 1);
		ioband_window_time(&d->window, inflight, *now);
		if (m->jitter)
			ns += div_s64(ns * ((s64)(prandom_u32_state(&rnd) % (2 * m->jitter)) -
					    m->jitter), 100);
		io.given_ns = *now - ns;
		d->window.led += !m->even;
		d->window.held += !unseen && inflight < m->outstanding;
		ioband_depth_done(d, &io, *now);
	}
}

/* The depth is found, and soon. */
static void depth_settles(struct kunit *test)
{
	static const struct {
		struct model m;
		unsigned int ios;
	} table[] = {
		{ { 1, 6600 * US, 0, 32 }, 500 },
		{ { 1, 40 * US, 0, 2 }, 500 },
		{ { 2, 100 * US, 0, 64 }, 1000 },
		{ { 64, 100 * US, 0, 128 }, 3000 },
		{ { 64, 100 * US, 30, 4096 }, 50000 },
		{ { 256, 10 * US, 0, 1024 }, 20000 },
		{ { 4096, 10000 * US, 0, 8192 }, 200000 },
	};

	for (int i = 0; i < ARRAY_SIZE(table); i++) {
		unsigned int servers = table[i].m.servers;
		struct ioband_depth d;
		s64 now = SEC;

		ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
		use(&table[i].m, &d, table[i].ios, &now);
		KUNIT_EXPECT_TRUE_MSG(test, ioband_depth_is_settled(&d), "row %d", i);
		KUNIT_EXPECT_GE_MSG(test, 100 * d.at_once, ((u64)servers << 10) * 97, "row %d", i);
		KUNIT_EXPECT_LE_MSG(test, 100 * d.at_once, ((u64)servers << 10) * 105, "row %d", i);
		KUNIT_EXPECT_GE_MSG(test, d.most, servers, "row %d", i);
	}
}

/*
 * After a hang, I/Os seem to take longer on the idle device than they do, and the device seems to
 * do all I/Os at once that there are.  The depth is found again although no group lags behind
 * others.
 */
static void depth_after_a_hang(struct kunit *test)
{
	struct model m = { 32, 2000 * US, 0, 128 };
	struct ioband_depth d;
	s64 now = SEC;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	use(&m, &d, 20000, &now);
	KUNIT_EXPECT_LE(test, d.depth, 36U);
	ioband_window_idle(&d.window, 4 << 10);
	ioband_depth_settle(&d, 142 << 10, now);
	KUNIT_EXPECT_GE(test, d.depth, 128U);
	m.even = true;
	use(&m, &d, 16 * 5000, &now);
	KUNIT_EXPECT_GE(test, d.depth, 31U);
	KUNIT_EXPECT_LE(test, d.depth, 36U);
}

/*
 * The idle latency seems to be hundreds of times what it is, so that there are never as many I/Os
 * as the device seems to do at once.  Both are found.
 */
static void depth_never_full(struct kunit *test)
{
	struct model m = { 2, 650 * US, 0, 120, true };
	struct ioband_depth d;
	s64 now = SEC;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	m.even = false;
	use(&m, &d, 5000, &now);
	KUNIT_EXPECT_LE(test, d.depth, 4U);
	m.even = true;
	ioband_window_idle(&d.window, 400 << 10);
	ioband_depth_settle(&d, 246 << 10, now);
	use(&m, &d, 5000, &now);
	KUNIT_EXPECT_GE(test, d.at_once, 1900U);
	KUNIT_EXPECT_LE(test, d.at_once, 2300U);
}

/* A device with one I/O at a time is idle, although its depth is not known; not with two. */
static void depth_of_one_at_a_time(struct kunit *test)
{
	struct model m = { 64, 100 * US, 0, 1, true };
	struct ioband_depth d;
	s64 now = SEC;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	KUNIT_EXPECT_FALSE(test, ioband_depth_is_idle(&d));
	use(&m, &d, 200, &now);
	KUNIT_EXPECT_TRUE(test, ioband_depth_is_idle(&d));
	m.outstanding = 2;
	use(&m, &d, 200, &now);
	KUNIT_EXPECT_FALSE(test, ioband_depth_is_idle(&d));
	/* one I/O is all that a device with one tag does */
	ioband_depth_init(&d, 1, 1);
	m.outstanding = 1;
	use(&m, &d, 200, &now);
	KUNIT_EXPECT_FALSE(test, ioband_depth_is_idle(&d));
}

/*
 * I/Os that complete when the first probe begins take longer than those before it, as they are of
 * another load, and were dispatched when many more were in flight.
 */
static void depth_of_two_loads(struct kunit *test)
{
	struct model few = { 32, 600 * US, 0, 21 }, late = { 2, 16000 * US, 0, 1500 };
	struct model many = { 2, 600 * US, 0, 1500 };
	unsigned int windows;
	struct ioband_depth d;
	s64 now = SEC;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	while (d.phase == IOBAND_OPEN)
		use(&few, &d, 1, &now);
	windows = d.windows;
	while (d.windows == windows)
		use(&late, &d, 1, &now);
	while (!ioband_depth_is_settled(&d))
		use(&many, &d, 1, &now);
	KUNIT_EXPECT_GE(test, d.at_once, 1900U);
	KUNIT_EXPECT_LE(test, d.at_once, 2300U);
}

/*
 * Until I/Os are found to hang, more and more are in flight, and other I/Os take no longer.  When
 * they are found, what was learned is forgotten, with the current window.
 */
static void depth_before_a_hang(struct kunit *test)
{
	struct model m = { 32, 2000 * US, 0, 128 }, hanging = { 512, 2000 * US, 0, 512 };
	struct ioband_depth d;
	s64 now = SEC;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	ioband_depth_keep(&d);
	ioband_depth_undo(&d);
	use(&m, &d, 20000, &now);
	for (int i = 0; i < IOBAND_DEPTH_KEPT; i++)
		ioband_depth_keep(&d);
	for (int i = 0; i < IOBAND_DEPTH_KEPT - 1; i++) {
		use(&hanging, &d, 4000, &now);
		ioband_depth_keep(&d);
	}
	KUNIT_EXPECT_GE(test, d.depth, 64U);
	ioband_depth_undo(&d);
	KUNIT_EXPECT_GE(test, d.depth, 31U);
	KUNIT_EXPECT_LE(test, d.depth, 36U);
	KUNIT_EXPECT_FALSE(test, d.window.begun);
	/* another group hangs: the depth is right already */
	ioband_depth_undo(&d);
	KUNIT_EXPECT_GE(test, d.depth, 31U);
	/* a depth that has become smaller than the one that was kept stays */
	m.servers = 8;
	use(&m, &d, 20000, &now);
	ioband_depth_undo(&d);
	KUNIT_EXPECT_LE(test, d.depth, 12U);
}

/*
 * Submitters wait below, for tags of a disk of which the device is made: no more I/Os are in flight
 * than there are tags, none is held, and none takes longer.  During a dip fewer are dispatched, and
 * all that come then are seen.  If no more come than before, the device may do more.
 */
static void depth_of_those_unseen(struct kunit *test)
{
	struct model m = { 34, 1000 * US, 0, 128, .even = true, .tags = 34 };
	struct ioband_depth d;
	s64 now = SEC;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	use(&m, &d, 20000, &now);
	ioband_depth_settle(&d, 110 << 10, now);
	use(&m, &d, 34 * 4000, &now);
	KUNIT_EXPECT_GE(test, d.depth, 33U);
	KUNIT_EXPECT_LE(test, d.depth, 38U);

	m.outstanding = 34;
	ioband_depth_settle(&d, 110 << 10, now);
	use(&m, &d, 34 * 4000, &now);
	KUNIT_EXPECT_GE(test, d.depth, 110U);
}

/* Changes of the depth, and of the speed, of a device are followed. */
static void depth_follows(struct kunit *test)
{
	struct model m = { 16, 100 * US, 5, 512 };
	struct ioband_depth d;
	s64 now = SEC;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	use(&m, &d, 50000, &now);
	for (int i = 0; i < 4; i++) {
		m.servers = i % 2 ? 16 : 64;
		m.ns = i / 2 ? 1000 * US : 100 * US;
		use(&m, &d, 300000, &now);
		KUNIT_EXPECT_GE_MSG(test, d.depth, m.servers * 9 / 10, "change %d", i);
		KUNIT_EXPECT_LE_MSG(test, d.depth, m.servers * 12 / 10 + 1, "change %d", i);
	}
}

/* A window in which I/Os take twice as long as on the idle device, whatever their number. */
static void see_window(struct ioband_depth *d, u64 inflight, u64 work)
{
	struct ioband_sample s = {
		.inflight = inflight << 10, .work = work, .ratio = 2 << 10, .err = 20,
		.held = true, .led = true,
	};

	ioband_depth_track(d, &s);
}

/*
 * If I/Os take long for another reason than their number, a larger depth is found if it gains work.
 */
static void depth_by_work(struct kunit *test)
{
	static const struct {
		u64 work;		/* done with ten in flight; 800 with eight */
		unsigned int chooses;
		bool late;
		bool deeper;
	} table[] = {
		{ 1000, 1, false, true },
		{ 960, 1, false, true },
		{ 880, 1, false, false },
		{ 800, 1, false, false },
		/* a rotational disk does more with each I/O, and others wait longer for that */
		{ 1000, 32, false, false },
		/* more is done because of the CPUs */
		{ 1000, 1, true, false },
	};

	for (int i = 0; i < ARRAY_SIZE(table); i++) {
		struct ioband_depth d;
		bool deeper = false;

		ioband_depth_init(&d, IOBAND_DEPTH_MAX, table[i].chooses);
		d.late = table[i].late;
		for (int round = 0; round < 64; round++) {
			ioband_depth_settle(&d, 8 << 10, SEC);
			see_window(&d, 8, 800);
			d.turn = 8;	/* a window with a few more I/Os */
			see_window(&d, 10, table[i].work);
			deeper |= d.at_once == 10 << 10;
		}
		KUNIT_EXPECT_EQ_MSG(test, deeper, table[i].deeper, "row %d", i);
	}
}

/* A window with a large error counts all the same, if it is far off. */
static void depth_far_off(struct kunit *test)
{
	struct ioband_sample s = {
		.inflight = 4 << 10, .ratio = 3 << 10, .err = 108, .held = true, .led = true,
	};
	struct ioband_depth d;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	ioband_depth_settle(&d, 4 << 10, SEC);
	ioband_depth_track(&d, &s);
	KUNIT_EXPECT_LT(test, d.at_once, 3950ULL);
	/* a difference of a few errors may be chance */
	ioband_depth_settle(&d, 4 << 10, SEC);
	s.ratio = 1400;
	ioband_depth_track(&d, &s);
	KUNIT_EXPECT_GT(test, d.at_once, 4060ULL);
}

/* With one I/O for each of several rotational disks, some disks would be idle. */
static void depth_of_disks(struct kunit *test)
{
	struct ioband_depth d;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 32);
	ioband_depth_settle(&d, 8 << 10, SEC);
	KUNIT_EXPECT_GE(test, d.depth, 16U);
	KUNIT_EXPECT_LE(test, d.depth, 17U);
	ioband_depth_settle(&d, 1 << 10, SEC);
	KUNIT_EXPECT_LE(test, d.depth, 2U);
	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	ioband_depth_settle(&d, 8 << 10, SEC);
	KUNIT_EXPECT_LE(test, d.depth, 9U);
}

/* Between two bursts no I/O is held: a measurement goes on.  If that lasts, it ends. */
static void depth_between_bursts(struct kunit *test)
{
	struct ioband_sample s = { .inflight = 4 << 10, .ratio = 1024, .err = 10, .led = true };
	struct ioband_depth d;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	ioband_depth_opened(&d, &s, SEC);
	KUNIT_EXPECT_EQ(test, d.phase, IOBAND_PROBE);
	s.led = false;
	ioband_depth_probed(&d, &s, SEC + NSEC_PER_SEC / 2);
	KUNIT_EXPECT_EQ(test, d.phase, IOBAND_PROBE);
	ioband_depth_probed(&d, &s, SEC + SEC);
	KUNIT_EXPECT_EQ(test, d.phase, IOBAND_OPEN);
	KUNIT_EXPECT_EQ(test, d.ceiling, IOBAND_DEPTH_MAX);
}

/* No group lags behind, and few I/Os are in flight: all are dispatched. */
static void depth_needs_a_reason(struct kunit *test)
{
	struct ioband_io io = { .class = 3, .inflight = 4 };
	struct ioband_depth d;
	s64 now = SEC;

	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	for (int i = 0; i < 10000; i++) {
		now += 25 * US;
		ioband_window_time(&d.window, 4, now);
		io.given_ns = now - 100 * US;
		ioband_depth_done(&d, &io, now);
	}
	KUNIT_EXPECT_EQ(test, d.phase, IOBAND_OPEN);
	KUNIT_EXPECT_EQ(test, d.ceiling, IOBAND_DEPTH_MAX);
}

/* Whatever the clock says, the depths stay in range. */
static void depth_extremes(struct kunit *test)
{
	struct ioband_depth d;
	struct rnd_state rnd;
	s64 now = 0;

	prandom_seed_state(&rnd, 2);
	ioband_depth_init(&d, IOBAND_DEPTH_MAX, 1);
	for (int i = 0; i < 200000; i++) {
		struct ioband_io io = {
			.class = prandom_u32_state(&rnd) % (2 * IOBAND_WINDOW_SIZES),
			.inflight = prandom_u32_state(&rnd) % (1 << i % 20) + 1,
		};

		now += prandom_u32_state(&rnd) % 3 ? 0 : (s64)prandom_u32_state(&rnd) << 8;
		ioband_window_time(&d.window, io.inflight, now);
		io.given_ns = now - prandom_u32_state(&rnd);
		d.window.held += i % 2;
		d.window.led += i % 3;
		ioband_depth_done(&d, &io, now);
		if (!d.depth || !d.most || !d.ceiling || d.depth > IOBAND_DEPTH_MAX) {
			KUNIT_FAIL(test, "depth %u after %d", d.depth, i);
			return;
		}
	}
}

/* As many I/Os as complete meanwhile, and at most three times the depth. */
static void depth_ahead(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ioband_ahead(63 * US, 500 * US, 16), 2U);
	KUNIT_EXPECT_EQ(test, ioband_ahead(US, 563 * US, 16), 0U);
	KUNIT_EXPECT_EQ(test, ioband_ahead(600 * US, 100 * US, 16), 48U);
	KUNIT_EXPECT_EQ(test, ioband_ahead(US, 0, 16), 0U);
	KUNIT_EXPECT_EQ(test, ioband_ahead(S64_MAX, S64_MAX / 4, 1024), 3072U);
}

static struct kunit_case depth_cases[] = {
	KUNIT_CASE(depth_settles),
	KUNIT_CASE(depth_of_those_unseen),
	KUNIT_CASE(depth_follows),
	KUNIT_CASE(depth_after_a_hang),
	KUNIT_CASE(depth_never_full),
	KUNIT_CASE(depth_of_two_loads),
	KUNIT_CASE(depth_of_one_at_a_time),
	KUNIT_CASE(depth_before_a_hang),
	KUNIT_CASE(depth_by_work),
	KUNIT_CASE(depth_far_off),
	KUNIT_CASE(depth_of_disks),
	KUNIT_CASE(depth_between_bursts),
	KUNIT_CASE(depth_needs_a_reason),
	KUNIT_CASE(depth_extremes),
	KUNIT_CASE(depth_ahead),
	{ }
};

static struct kunit_suite depth_suite = {
	.name = "ioband_depth",
	.test_cases = depth_cases,
};

kunit_test_suite(depth_suite);

MODULE_DESCRIPTION("KUnit tests of how ioband finds the depth of a device");
MODULE_LICENSE("GPL");
