// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of observe.c: how many I/Os are dispatched beyond the depth, by the time that submission
 * takes.  In virtual time it takes none, so these tests pretend that it does.
 */
#include <kunit/test.h>
#include <linux/ktime.h>

#include "../ioband.h"

#define DEPTH	64

static struct ioband_dev *observed_dev(struct kunit *test)
{
	struct ioband_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->q = kunit_kzalloc(test, sizeof(*dev->q), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, dev->q);
	/* no function of these is called */
	dev->q->mq_ops = (const struct blk_mq_ops *)dev;
	spin_lock_init(&dev->lock);
	dev->share.latency = NSEC_PER_MSEC;
	dev->share.depth.depth = DEPTH;
	return dev;
}

/* 32 I/Os that are submitted @lag_ns after their dispatch */
static void observe_lags(struct ioband_dev *dev, struct bio *bio, u64 lag_ns)
{
	bio->bi_iocost_cost = 1;
	for (int i = 0; i < 32; i++) {
		bio->issue_time_ns = ktime_get_ns() - lag_ns;
		guard(spinlock_irqsave)(&dev->lock);
		dev->share.on_way++;
		ioband_observe_sent(dev, bio, 1);
	}
}

/* With a scheduler, whose data is not used, and without one. */
static void observe_scheduler(struct kunit *test)
{
	struct ioband_dev *dev = observed_dev(test);
	struct bio *bio = kunit_kzalloc(test, sizeof(*bio), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bio);
	dev->q->elevator = (struct elevator_queue *)dev;
	observe_lags(dev, bio, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, dev->share.on_way, 0U);
	KUNIT_EXPECT_GT(test, dev->share.ahead, DEPTH / 2U);
	KUNIT_EXPECT_LE(test, dev->share.ahead, (unsigned int)DEPTH);
	/* no more than there are tags for, since without a scheduler only the device has room */
	dev->q->elevator = NULL;
	dev->share.depth.tags = DEPTH + 2;
	observe_lags(dev, bio, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, dev->share.ahead, 2U);
}

static void observe_others(struct kunit *test)
{
	struct ioband_dev *dev = observed_dev(test);
	struct bio *bio = kunit_kzalloc(test, sizeof(*bio), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bio);
	/* a bio that did not wait for its share */
	bio->issue_time_ns = ktime_get_ns() - NSEC_PER_MSEC;
	guard(spinlock_irqsave)(&dev->lock);
	ioband_observe_sent(dev, bio, 0);
	ioband_observe_sent(dev, NULL, 0);
	KUNIT_EXPECT_EQ(test, dev->share.lag, 0LL);
}

static struct kunit_case observe_cases[] = {
	KUNIT_CASE(observe_scheduler),
	KUNIT_CASE(observe_others),
	{ }
};

static struct kunit_suite observe_suite = {
	.name = "ioband_observe",
	.test_cases = observe_cases,
};

kunit_test_suite(observe_suite);
