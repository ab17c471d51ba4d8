// SPDX-License-Identifier: GPL-2.0
/*
 * Pacing: write() to the page cache is as fast as the group's writes to the device.
 *
 * Two things hold a dirtier.  The clock lets it dirty what its group's rate allows, so
 * that it sees that rate at once and evenly, whatever writeback does.  The window lets
 * its group have about a second's worth of pages dirty or being written on a backing
 * device: the rest of the memory is for others, also where the writes are slower than
 * the rate.
 *
 * Where no number says how fast a group's writes are, there is the window alone, for
 * half a second of what they were seen to do.
 */
#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/writeback.h>

#include "dirty_owner-internal.h"

/* May be dirtied at once: so long of the rate, or so much. */
#define DIRTY_BURST_NS		(5 * NSEC_PER_MSEC)
#define DIRTY_BURST_BYTES	SZ_64K
/* One wait; then all is looked at again. */
#define DIRTY_WAIT_NS		(200 * NSEC_PER_MSEC)
/* Where the rate is measured: the least window, how often, and what it is worth. */
#define DIRTY_LEAST_BYTES	SZ_16M
#define DIRTY_LEARN_NS		(100 * NSEC_PER_MSEC)
#define DIRTY_LEARNT_PART	2
/* A window is at most this part of the dirty limit. */
#define DIRTY_LIMIT_PART	8
/* Parts of the window that are dirty before writeback begins, and in a write. */
#define DIRTY_KICK_PART		4
#define DIRTY_CHUNK_PART	8
/* Who waits for the window goes on when this part of it is free. */
#define DIRTY_REFILL_PART	16
/* May be dirtied within a jiffy before anything is looked at again, in pages. */
#define DIRTY_FREE_MAX		256

/* Longer than anybody waits, and what there is room for. */
#define DIRTY_FOREVER_NS	(S64_MAX / 4)

static s64 dirty_cost(u64 bytes, u64 rate)
{
	/* a quotient of more than 64 bits is a trap on some machines */
	if (div64_u64(bytes, rate) >= DIRTY_FOREVER_NS / NSEC_PER_SEC)
		return DIRTY_FOREVER_NS;
	return mul_u64_u64_div_u64(bytes, NSEC_PER_SEC, rate);
}

/* As many bytes, at another rate. */
static s64 dirty_rescale(s64 ns, u64 from, u64 to)
{
	return dirty_cost(mul_u64_u64_div_u64(ns, from, NSEC_PER_SEC), to);
}

/*
 * How many pages a second a flow gets written while it has enough of them, and how many
 * it can have without harm to the dirty limit that all share.
 */
static void dirty_learn(struct dirty_flow *flow, bool owes, s64 now)
{
	long written = atomic_long_read(&flow->written);
	s64 elapsed = now - flow->learnt_at;
	unsigned long background, limit;
	u64 drain;

	lockdep_assert_held(&flow->lock);
	if (elapsed < DIRTY_LEARN_NS)
		return;
	global_dirty_limits(&background, &limit);
	WRITE_ONCE(flow->most, limit / DIRTY_LIMIT_PART);
	drain = mul_u64_u64_div_u64(written - flow->learnt_from, NSEC_PER_SEC, elapsed);
	/*
	 * A time without a look says only what it was at least.  What others had it
	 * write at once says nothing.
	 */
	if (drain > flow->drain && !owes)
		flow->drain = drain;
	else if (drain < flow->drain && dirty_flow_writing(flow) &&
		 elapsed < DIRTY_LEARN_NS + 2 * DIRTY_WAIT_NS)
		flow->drain -= (flow->drain - drain) / 8;
	flow->learnt_from = written;
	flow->learnt_at = now;
}

/* In pages. */
static long dirty_window(struct dirty_flow *flow, const struct dirty_rate *rate)
{
	u64 window = max_t(u64, READ_ONCE(flow->most) ?: LONG_MAX,
			   DIRTY_BURST_BYTES >> PAGE_SHIFT);

	if (rate->bps)
		window = min_t(u64, window,
			       max_t(u64, rate->bps, 2 * DIRTY_BURST_BYTES) >> PAGE_SHIFT);
	if (rate->measured)
		window = min_t(u64, window,
			       max_t(u64, READ_ONCE(flow->drain) / DIRTY_LEARNT_PART,
				     DIRTY_LEAST_BYTES >> PAGE_SHIFT));
	return window;
}

/* In bytes, a power of two. */
static size_t dirty_chunk_of(long window)
{
	long nr = clamp_t(long, window / DIRTY_CHUNK_PART, 1, SZ_1G >> PAGE_SHIFT);

	return (size_t)rounddown_pow_of_two(nr) << PAGE_SHIFT;
}

/*
 * Have a flow pay for what it has dirtied.  Returns for how long it has dirtied more than
 * it may at once; less than 0 is room for more.
 */
static s64 dirty_clock(struct dirty_flow *flow, u64 rate, s64 now)
{
	long nr = atomic_long_read(&flow->dirtied);
	s64 burst = max(DIRTY_BURST_NS, dirty_cost(DIRTY_BURST_BYTES, rate));
	s64 left;

	lockdep_assert_held(&flow->lock);
	swap(nr, flow->paced);
	nr = flow->paced - nr;
	left = max(flow->next - now, 0);
	if (!flow->rate) {
		/* nothing limited it until now */
		nr = 0;
		left = 0;
	} else if (flow->rate != rate) {
		left = dirty_rescale(left, flow->rate, rate);
	}
	flow->rate = rate;
	if (nr >= 0)
		left += dirty_cost((u64)nr << PAGE_SHIFT, rate);
	else
		left -= min(left, dirty_cost((u64)-nr << PAGE_SHIFT, rate));
	left = min(left, DIRTY_FOREVER_NS);
	flow->next = now + left;
	return left - burst;
}

/* As dirty_clock(), if there is one. */
static s64 dirty_ahead_ns(struct dirty_flow *flow, const struct dirty_rate *rate)
{
	s64 now = ktime_get_ns();

	guard(spinlock)(&flow->lock);
	dirty_learn(flow, rate->owed_ns, now);
	if (rate->bps)
		return dirty_clock(flow, rate->bps, now);
	WRITE_ONCE(flow->rate, 0);
	return 0;
}

/* Has the flow got as many pages as it may have?  If not, or for long, have some written. */
static bool dirty_is_full(struct dirty_flow *flow, const struct dirty_rate *rate)
{
	long window = dirty_window(flow, rate);
	bool full = dirty_flow_pages(flow) >= window;

	WRITE_ONCE(flow->refill, window - window / DIRTY_REFILL_PART);
	if (dirty_flow_dirty(flow) >= window / DIRTY_KICK_PART)
		wb_start_owned_writeback(&flow->bdi->wb, full);
	return full;
}

static struct dirty_rate dirty_rate(struct dirty_flow *flow)
{
	guard(rcu)();
	return dirty_owner_ops->rate(flow->css, flow->bdi);
}

static bool dirty_is_limited(const struct dirty_rate *rate)
{
	return rate->bps || rate->measured;
}

/* Who has to go on, since others wait for it. */
static bool dirty_may_wait(void)
{
	return !(current->flags & (PF_KTHREAD | PF_MEMALLOC | PF_LOCAL_THROTTLE));
}

static void dirty_sleep(s64 ns)
{
	set_current_state(TASK_KILLABLE);
	schedule_hrtimeout_range(&(ktime_t){ ns }, ns >> 10, HRTIMER_MODE_REL);
}

static void dirty_wait_for_window(struct dirty_flow *flow, const struct dirty_rate *rate)
{
	DEFINE_WAIT(wait);

	/* pairs with dirty_flow_less() */
	prepare_to_wait_exclusive(&flow->wait, &wait, TASK_KILLABLE);
	if (dirty_is_full(flow, rate))
		schedule_hrtimeout_range(&(ktime_t){ DIRTY_WAIT_NS }, DIRTY_WAIT_NS >> 10,
					 HRTIMER_MODE_REL);
	finish_wait(&flow->wait, &wait);
}

/* Much more than what is free already, or than the clock has room for, is not. */
static void dirty_set_free(struct dirty_flow *flow, const struct dirty_rate *rate,
			   s64 ahead)
{
	long window = dirty_window(flow, rate);
	u64 nr = min(window / DIRTY_REFILL_PART, DIRTY_FREE_MAX);

	if (rate->bps)
		nr = min(nr, mul_u64_u64_div_u64(-ahead, rate->bps, NSEC_PER_SEC) >> PAGE_SHIFT);
	WRITE_ONCE(flow->chunk, dirty_chunk_of(window));
	WRITE_ONCE(flow->free_to, atomic_long_read(&flow->dirtied) + (long)nr);
	WRITE_ONCE(flow->free_at, jiffies);
}

static int dirty_wait(struct dirty_flow *flow, struct address_space *mapping,
		      unsigned int flags)
{
	for (;;) {
		struct dirty_rate rate = dirty_rate(flow);
		s64 ns, ahead = dirty_ahead_ns(flow, &rate);
		bool full;

		WRITE_ONCE(flow->limited, dirty_is_limited(&rate));
		dirty_note_mapping(flow, mapping);
		full = flow->limited && dirty_is_full(flow, &rate);
		if (ahead <= 0 && !rate.owed_ns && !full) {
			dirty_set_free(flow, &rate, ahead);
			return 0;
		}
		if (freezing(current) || !dirty_may_wait())
			return 0;
		/* who has to wait waits for a while, with locks of the filesystem held */
		ns = ahead > 0 ? ahead + DIRTY_BURST_NS / 2 : 0;
		ns = min_t(u64, max_t(u64, ns, rate.owed_ns), DIRTY_WAIT_NS);
		if (flags & BDP_ASYNC)
			return -EAGAIN;
		if (fatal_signal_pending(current))
			return -EINTR;
		if (full)
			dirty_wait_for_window(flow, &rate);
		else
			dirty_sleep(ns);
	}
}

static noinline int dirty_pace(struct address_space *mapping,
			       struct backing_dev_info *bdi, unsigned int flags)
{
	struct cgroup_subsys_state *css;
	struct dirty_flow *flow;
	int ret;

	scoped_guard(rcu) {
		css = dirty_css_of_current();
		if (!css || !dirty_is_data(mapping->host))
			return 0;
		flow = dirty_flow_of(css, bdi);
		if (!flow || dirty_is_free(flow))
			return 0;
		/* it stays, O3 */
		atomic_inc(&flow->users);
	}
	ret = dirty_wait(flow, mapping, flags);
	atomic_dec(&flow->users);
	return ret;
}

int __dirty_owner_pace(struct address_space *mapping, struct backing_dev_info *bdi,
		       unsigned int flags)
{
	struct cgroup_subsys_state *css;
	struct dirty_flow *flow;

	if (unlikely(current->flags & PF_KTHREAD))
		return dirty_pace(mapping, bdi, flags);
	/* who comes here for each page mostly may go on at once */
	scoped_guard(preempt) {
		css = task_css_check(current, io_cgrp_id, rcu_read_lock_any_held());
		if (!css->parent)
			return 0;
		flow = this_cpu_read(dirty_hints.by_css);
		if (likely(flow->css == css && flow->bdi == bdi && dirty_is_free(flow)))
			return 0;
	}
	return dirty_pace(mapping, bdi, flags);
}

size_t __dirty_owner_chunk(struct address_space *mapping, size_t chunk, size_t len)
{
	struct dirty_flow *flow;
	struct dirty_rate rate;

	guard(rcu)();
	flow = dirty_flow_of_current(mapping->host);
	if (!flow)
		return chunk;
	if (dirty_is_free(flow))
		return min(READ_ONCE(flow->chunk), chunk);
	rate = dirty_owner_ops->rate(flow->css, flow->bdi);
	return min(dirty_chunk_of(dirty_window(flow, &rate)), chunk);
}
