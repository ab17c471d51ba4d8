// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of worth.h: a gate that costs a third or more of the work that could be done opens, and a
 * gate that costs less is seldom opened for a trial.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../math/worth.h"

#define MS	((s64)NSEC_PER_MSEC)

/* A device, and the I/Os that are done there in a ms while the gate is closed, or open. */
struct load {
	unsigned int	closed;
	unsigned int	open;
	bool		late;
	unsigned int	busy_ms;	/* in each period, ... */
	unsigned int	idle_ms;	/* ... and there is nothing to do for the rest of it */
};

/* Returns the number of ms for which the gate was open. */
static unsigned int run(struct ioband_worth *w, const struct load *load, unsigned int from_ms,
			unsigned int to_ms)
{
	unsigned int period = load->busy_ms + load->idle_ms, open = 0;

	for (unsigned int ms = from_ms; ms < to_ms; ms++) {
		if (period && ms % period >= load->busy_ms) {
			open += w->open;
			continue;
		}
		if (period && ms % period == 0 && !w->open)
			ioband_worth_idle(w, load->idle_ms * MS);
		if (!w->open)
			ioband_worth_closed(w, load->late, ms * MS);
		else if (!ioband_worth_open(w, 0, ms * MS))
			ioband_worth_again(w);
		for (unsigned int i = 0; i < (w->open ? load->open : load->closed); i++)
			ioband_worth_done(w, 1, 1000 << 8);
		open += w->open;
	}
	return open;
}

static void worth_costs(struct kunit *test)
{
	const struct load costs = { .closed = 20, .open = 50, .late = true };
	const struct load calm = { .closed = 50, .open = 50, .late = true };
	struct ioband_worth w;

	ioband_worth_init(&w);
	KUNIT_EXPECT_EQ(test, run(&w, &costs, 1, 250), 0U);
	run(&w, &costs, 250, 1000);
	KUNIT_EXPECT_EQ(test, w.nr_costs, 1U);
	KUNIT_EXPECT_GE(test, run(&w, &costs, 1000, 31000), 29000U);
	/* the gate costs nothing any more: it closes after the longest time of staying open */
	run(&w, &calm, 31000, 40000);
	KUNIT_EXPECT_LE(test, run(&w, &calm, 40000, 60000), 200U);
}

static void worth_pays(struct kunit *test)
{
	const struct load pays = { .closed = 40, .open = 50, .late = true };
	struct ioband_worth w;

	ioband_worth_init(&w);
	run(&w, &pays, 1, 60000);
	KUNIT_EXPECT_EQ(test, w.nr_costs, 0U);
	/* one trial in eight seconds */
	KUNIT_EXPECT_LE(test, run(&w, &pays, 60000, 140000), 300U);
	KUNIT_EXPECT_GE(test, run(&w, &pays, 140000, 220000), 200U);
}

static void worth_of_no_interest(struct kunit *test)
{
	const struct load early = { .closed = 20, .open = 50 };
	const struct load few = { .closed = 1, .open = 2, .late = true };
	const struct load nothing = { };
	struct ioband_worth w;

	ioband_worth_init(&w);
	KUNIT_EXPECT_EQ(test, run(&w, &early, 1, 10000), 0U);
	ioband_worth_init(&w);
	KUNIT_EXPECT_EQ(test, run(&w, &few, 10000, 20000), 0U);
	KUNIT_EXPECT_EQ(test, run(&w, &nothing, 20000, 30000), 0U);
}

/* Opening the gate makes bursts no faster, but a trial begins together with a burst. */
static void worth_of_bursts(struct kunit *test)
{
	const struct load bursts = {
		.closed = 40, .open = 40, .late = true, .busy_ms = 60, .idle_ms = 240,
	};
	struct ioband_worth w;

	ioband_worth_init(&w);
	run(&w, &bursts, 1, 60000);
	KUNIT_EXPECT_EQ(test, w.nr_costs, 0U);
}

/* Many I/Os are submitted while the gate is open, and the device does not complete them. */
static void worth_of_floods(struct kunit *test)
{
	struct ioband_worth w;

	ioband_worth_init(&w);
	for (unsigned int ms = 1; ms < 2000; ms++) {
		if (!w.open)
			ioband_worth_closed(&w, true, ms * MS);
		else if (!ioband_worth_open(&w, w.nr - min(w.nr, 500U), ms * MS))
			ioband_worth_again(&w);
		ioband_worth_done(&w, w.open ? 1000 : 20, w.open ? 1000000 << 8 : 20000 << 8);
	}
	KUNIT_EXPECT_EQ(test, w.nr_costs, 0U);
}

/* Numbers are not too large for the arithmetic, nor times too short. */
static void worth_extremes(struct kunit *test)
{
	struct ioband_worth w;

	ioband_worth_init(&w);
	ioband_worth_closed(&w, true, MS);
	ioband_worth_done(&w, 1000, U64_MAX / 2);
	ioband_worth_idle(&w, 250 * MS);
	KUNIT_EXPECT_TRUE(test, ioband_worth_closed(&w, true, 251 * MS));
	ioband_worth_done(&w, 1000, U64_MAX / 2);
	KUNIT_EXPECT_FALSE(test, ioband_worth_open(&w, 0, 276 * MS));
	ioband_worth_again(&w);

	ioband_worth_init(&w);
	ioband_worth_closed(&w, true, MS);
	ioband_worth_done(&w, 1000, 1);
	ioband_worth_idle(&w, S64_MAX / 2);
	KUNIT_EXPECT_TRUE(test, ioband_worth_closed(&w, true, 251 * MS));
	KUNIT_EXPECT_TRUE(test, ioband_worth_open(&w, 0, 251 * MS));
	KUNIT_EXPECT_FALSE(test, ioband_worth_open(&w, 0, S64_MAX / 2));
}

static struct kunit_case worth_cases[] = {
	KUNIT_CASE(worth_extremes),
	KUNIT_CASE(worth_costs),
	KUNIT_CASE(worth_pays),
	KUNIT_CASE(worth_of_floods),
	KUNIT_CASE(worth_of_no_interest),
	KUNIT_CASE(worth_of_bursts),
	{ }
};

static struct kunit_suite worth_suite = {
	.name = "ioband_worth",
	.test_cases = worth_cases,
};

kunit_test_suite(worth_suite);

MODULE_DESCRIPTION("KUnit tests of what the gate of ioband is worth");
MODULE_LICENSE("GPL");
