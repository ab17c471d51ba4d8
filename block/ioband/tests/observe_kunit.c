// SPDX-License-Identifier: GPL-2.0
/*
 * How far ahead of completions I/Os are let go, by the time that their submission takes:
 * in virtual time it takes none.
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
	/* which are not looked into */
	dev->q->mq_ops = (const struct blk_mq_ops *)dev;
	spin_lock_init(&dev->lock);
	dev->share.latency = NSEC_PER_MSEC;
	dev->share.depth.depth = DEPTH;
	return dev;
}

/* 32 I/Os that are submitted @lag_ns after they were let go */
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

/* The elevator is not looked into. */
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
	/* no more than there are tags for, if nothing else can wait for one */
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
	/* it did not wait for its share */
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
