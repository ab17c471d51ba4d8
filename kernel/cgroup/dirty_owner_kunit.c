// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the dirtiers of a large folio's pages, of the account of a flow, and of when a flow
 * starts writeback.  Included by dirty_owner.c.
 */
#include <kunit/test.h>

/* The number of pages in a huge page of x86. */
#define FOLIO_PAGES	512

static struct dirty_flow *dirty_test_flow(struct kunit *test, u32 id)
{
	struct dirty_flow *flow = kunit_kzalloc(test, sizeof(*flow), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, flow);
	spin_lock_init(&flow->lock);
	flow->id = id;
	return flow;
}

static void dirty_first_owner(struct kunit *test)
{
	struct dirty_words *w = kunit_kcalloc(test, FOLIO_PAGES, sizeof(*w), GFP_KERNEL);
	struct dirty_flow *a = dirty_test_flow(test, 1), *b = dirty_test_flow(test, 2);

	KUNIT_ASSERT_NOT_NULL(test, w);
	dirty_own(w + 8, 4, b);
	KUNIT_EXPECT_EQ(test, dirty_flow_dirty(b), 4);
	/* when another group dirties the folio, pages that have a dirtier keep it */
	dirty_own(w, FOLIO_PAGES, a);
	KUNIT_EXPECT_EQ(test, dirty_flow_dirty(a), FOLIO_PAGES - 4);
	dirty_own(w, FOLIO_PAGES, b);
	KUNIT_EXPECT_EQ(test, dirty_flow_dirty(b), 4);
	for (int i = 0; i < FOLIO_PAGES; i++)
		KUNIT_EXPECT_EQ(test, w[i].dirty, i / 4 == 2 ? 2U : 1U);
}

/* Pages that are dirty when a limit is set are free of charge, pages dirtied later are not. */
static void dirty_account_begins(struct kunit *test)
{
	struct dirty_flow *flow = dirty_test_flow(test, 1);

	atomic_long_set(&flow->dirtied, 100);
	atomic_long_set(&flow->sent, 70);
	atomic_long_set(&flow->started, 70);
	atomic_long_set(&flow->written, 60);
	dirty_begin(flow, 1);
	KUNIT_EXPECT_EQ(test, dirty_unpaid(flow), 0);
	/* 30 pages are dirty, and 10 are being written: 60 are done with */
	KUNIT_EXPECT_EQ(test, flow->used, 60LL << PAGE_SHIFT);
	atomic_long_add(5, &flow->dirtied);
	KUNIT_EXPECT_EQ(test, dirty_unpaid(flow), 5LL << PAGE_SHIFT);
	/* the same limits: the account goes on */
	dirty_begin(flow, 1);
	KUNIT_EXPECT_EQ(test, dirty_unpaid(flow), 5LL << PAGE_SHIFT);
	dirty_begin(flow, 2);
	KUNIT_EXPECT_EQ(test, dirty_unpaid(flow), 0);
}

/* dirty_forfeit() takes back what was paid and not dirtied, beyond what the flow may keep. */
static void dirty_account_forfeits(struct kunit *test)
{
	struct dirty_flow *flow = dirty_test_flow(test, 1);

	atomic64_set(&flow->paid, 3 * SZ_1M);
	dirty_forfeit(flow, 4 * SZ_1M);
	KUNIT_EXPECT_EQ(test, dirty_unpaid(flow), -3LL * SZ_1M);
	dirty_forfeit(flow, SZ_1M);
	KUNIT_EXPECT_EQ(test, dirty_unpaid(flow), -1LL * SZ_1M);
	/* a flow that has dirtied more than it paid loses nothing */
	atomic_long_set(&flow->dirtied, SZ_2M >> PAGE_SHIFT);
	dirty_forfeit(flow, SZ_1M);
	KUNIT_EXPECT_EQ(test, dirty_unpaid(flow), (s64)SZ_1M);
}

/* Promised bytes are due until they are paid, and dirty_forfeit() leaves them to the task. */
static void dirty_account_promises(struct kunit *test)
{
	struct dirty_words *w = kunit_kcalloc(test, 8, sizeof(*w), GFP_KERNEL);
	struct dirty_flow *flow = dirty_test_flow(test, 1);
	struct dirty_part part = { .flow = flow, .promised = 8 << PAGE_SHIFT };

	KUNIT_ASSERT_NOT_NULL(test, w);
	atomic64_set(&flow->promised, part.promised);
	KUNIT_EXPECT_EQ(test, dirty_due(flow), 8LL << PAGE_SHIFT);
	/* what one task is about to pay is not due for another */
	atomic64_set(&flow->claimed, 6 << PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, dirty_due(flow), 2LL << PAGE_SHIFT);
	atomic64_set(&flow->claimed, 0);
	atomic64_set(&flow->paid, 10 << PAGE_SHIFT);
	dirty_forfeit(flow, 0);
	KUNIT_EXPECT_EQ(test, dirty_unpaid(flow), -8LL << PAGE_SHIFT);
	/* pages that the task dirties reduce its promise */
	current->dirty_part = &part;
	dirty_own(w, 3, flow);
	current->dirty_part = NULL;
	KUNIT_EXPECT_EQ(test, part.promised, (size_t)5 << PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, atomic64_read(&flow->promised), 5LL << PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, dirty_due(flow), 0);
	/* pages that another task dirties do not */
	dirty_own(w + 3, 3, flow);
	KUNIT_EXPECT_EQ(test, part.promised, (size_t)5 << PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, dirty_due(flow), 3LL << PAGE_SHIFT);
}

#ifdef CONFIG_CGROUP_WRITEBACK
/*
 * A group with many dirty pages starts writeback, also while the inode switches to another
 * flusher.
 */
static void dirty_kicks_switching(struct kunit *test)
{
	struct inode *inode = kunit_kzalloc(test, sizeof(*inode), GFP_KERNEL);
	struct bdi_writeback *wb = kunit_kzalloc(test, sizeof(*wb), GFP_KERNEL);
	struct dirty_rate rate = { .limited = true, .bps = SZ_64M };
	struct dirty_flow *flow = dirty_test_flow(test, 1);
	struct dirty_sum sum;

	KUNIT_ASSERT_NOT_NULL(test, inode);
	KUNIT_ASSERT_NOT_NULL(test, wb);
	wb->bdi = &noop_backing_dev_info;
	wb->state = BIT(WB_has_dirty_io);
	spin_lock_init(&wb->work_lock);
	spin_lock_init(&inode->i_lock);
	address_space_init_once(&inode->i_data);
	inode->i_mapping = &inode->i_data;
	inode->i_data.host = inode;
	inode->i_wb = wb;
	scoped_guard(spinlock, &inode->i_lock)
		inode_state_set(inode, I_WB_SWITCH);
	flow->bdi = &noop_backing_dev_info;
	flow->stuck_at = -1;
	atomic_long_set(&flow->dirtied, dirty_window(flow, &rate) - 1);
	KUNIT_EXPECT_FALSE(test, dirty_is_full(flow, &inode->i_data, &rate, NULL, &sum));
	KUNIT_EXPECT_TRUE(test, test_bit(WB_start_owned, &wb->state));
}
#endif

static struct kunit_case dirty_cases[] = {
	KUNIT_CASE(dirty_first_owner),
	KUNIT_CASE(dirty_account_begins),
	KUNIT_CASE(dirty_account_forfeits),
	KUNIT_CASE(dirty_account_promises),
#ifdef CONFIG_CGROUP_WRITEBACK
	KUNIT_CASE(dirty_kicks_switching),
#endif
	{}
};

static struct kunit_suite dirty_suite = {
	.name = "ioband_dirty",
	.test_cases = dirty_cases,
};

kunit_test_suite(dirty_suite);
