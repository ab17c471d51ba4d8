// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: how many pages a group may have dirty or being written on a backing device.
 *
 * About a second's worth of what its limits let through, and so all groups below a limit
 * together.  The rest of the memory is for others, also where the writes are slower than the
 * limit.  What tasks have been let dirty, and have not dirtied yet, counts as dirty.  Where
 * no number says how fast a group's writes are, the window is half a second of what they
 * were seen to do.
 *
 * Example: P has wbps=1048576, and 100 groups below it.  When they have 1 MiB dirty in all,
 * whoever writes next waits until the flusher has written some of that, however little of it
 * is its own.
 */
#include <linux/backing-dev.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/writeback.h>

#include "dirty_leave.h"

/* The least window, where a number says how fast the writes are. */
#define DIRTY_LEAST_WINDOW	SZ_64K
/* Where the rate is measured: the least window, how often, and what it is worth. */
#define DIRTY_LEAST_BYTES	SZ_16M
#define DIRTY_LEARN_NS		(100 * NSEC_PER_MSEC)
#define DIRTY_LEARNT_PART	2
/* A window is at most this part of the dirty limit. */
#define DIRTY_LIMIT_PART	8
/* The part of a window that is dirty before writeback begins. */
#define DIRTY_KICK_PART		4
/* The part of a second's worth that a write() is divided into. */
#define DIRTY_CHUNK_PART	8
/* A task that waits for the window goes on when this part of it is free. */
#define DIRTY_REFILL_PART	16

/**
 * dirty_learn - see how fast the writes of a flow are
 * @flow:	the flow
 * @rate:	as of now
 *
 * How many pages a second it gets written while it has enough of them, and how many it can
 * have without harm to the dirty limit that all share.
 *
 * Context: any.
 */
void dirty_learn(struct dirty_flow *flow, const struct dirty_rate *rate)
{
	s64 now = ktime_get_ns(), elapsed;
	unsigned long background, limit;
	long written;
	u64 drain;

	guard(spinlock_irqsave)(&flow->lock);
	written = atomic_long_read(&flow->written);
	elapsed = now - flow->learnt_at;
	if (elapsed < DIRTY_LEARN_NS)
		return;
	global_dirty_limits(&background, &limit);
	WRITE_ONCE(flow->most, limit / DIRTY_LIMIT_PART);
	drain = mul_u64_u64_div_u64(written - flow->learnt_from, NSEC_PER_SEC, elapsed);
	/*
	 * A time without a look says only what it was at least.  What others had it
	 * write at once says nothing.
	 */
	if (drain > flow->drain && !rate->owed_ns)
		flow->drain = drain;
	else if (drain < flow->drain && dirty_flow_writing(flow) &&
		 elapsed < DIRTY_LEARN_NS + 2 * DIRTY_WAIT_NS)
		flow->drain -= (flow->drain - drain) / 8;
	flow->learnt_from = written;
	flow->learnt_at = now;
}

/* In pages: with the part of a write() that goes beyond it, a second's worth. */
static long dirty_window_of(u64 bps)
{
	bps = max_t(u64, bps - bps / DIRTY_CHUNK_PART, DIRTY_LEAST_WINDOW);
	return min_t(u64, bps >> PAGE_SHIFT, LONG_MAX);
}

/**
 * dirty_window - how many pages a flow may have
 * @flow:	the flow
 * @rate:	as of now
 *
 * Context: any.
 * Return: pages, dirty and being written.
 */
long dirty_window(struct dirty_flow *flow, const struct dirty_rate *rate)
{
	u64 window = max_t(u64, READ_ONCE(flow->most) ?: LONG_MAX,
			   DIRTY_LEAST_WINDOW >> PAGE_SHIFT);

	if (rate->bps)
		window = min_t(u64, window, dirty_window_of(rate->bps));
	if (rate->measured)
		window = min_t(u64, window,
			       max_t(u64, READ_ONCE(flow->drain) / DIRTY_LEARNT_PART,
				     DIRTY_LEAST_BYTES >> PAGE_SHIFT));
	return window;
}

/**
 * dirty_chunk_of - how much of a write() goes at once
 * @window:	of the flow, pages
 *
 * Return: bytes, a power of two.
 */
size_t dirty_chunk_of(long window)
{
	/* the window is what is left of a second's worth without one */
	long nr = clamp_t(long, window / (DIRTY_CHUNK_PART - 1), 1, SZ_1G >> PAGE_SHIFT);

	return (size_t)rounddown_pow_of_two(nr) << PAGE_SHIFT;
}

/* But for what @part, if any, has been promised. */
static struct dirty_sum dirty_own_sum(struct dirty_flow *flow, const struct dirty_part *part)
{
	s64 promised = atomic64_read(&flow->promised) - (part ? part->promised : 0);

	return (struct dirty_sum){
		.css = flow->css,
		.dirty = max(dirty_flow_dirty(flow), 0),
		.writing = max(dirty_flow_writing(flow), 0),
		.written = atomic_long_read(&flow->written),
		.promised = max(promised, 0) >> PAGE_SHIFT,
	};
}

static bool dirty_is_over(struct dirty_flow *flow, const struct dirty_rate *rate,
			  const struct dirty_sum *sum, long window)
{
	if (sum->dirty + sum->writing + sum->promised < window)
		return false;
	/* see dirty_wait_for_window() */
	return rate->measured || READ_ONCE(flow->stuck_at) != sum->written;
}

static void dirty_start_writeback(struct bdi_writeback *wb, bool again)
{
	/* they are when this returns */
	lockdep_assert_irqs_enabled();
	if (!wb_has_dirty_io(wb) || (!again && test_bit(WB_start_owned, &wb->state)))
		return;
	set_bit(WB_start_owned, &wb->state);
	wb_start_background_writeback(wb);
}

/* On the default hierarchy a flow may have pages in inodes of several flushers. */
static void dirty_kick(struct dirty_flow *flow, struct address_space *mapping, bool all)
{
	struct bdi_writeback *wb;

	guard(rcu)();
	/* without the lock that keeps an inode in its wb, below which irqs are off */
	if (mapping && !all) {
		wb = dirty_wb_of(mapping->host);
		if (wb)
			dirty_start_writeback(wb, false);
		return;
	}
	list_for_each_entry_rcu(wb, &flow->bdi->wb_list, bdi_node)
		dirty_start_writeback(wb, all);
}

/* What all groups below a limit of @bps have; what they have saved up they may lose. */
static struct dirty_sum dirty_sum_above(struct dirty_flow *flow,
					struct cgroup_subsys_state *css, long promised,
					long window)
{
	struct dirty_sum sum = dirty_flow_sum(css, flow);

	window -= promised;
	if (sum.dirty + sum.writing + sum.saved >= window) {
		dirty_flow_forfeit(css, flow);
		sum = dirty_flow_sum(css, flow);
		sum.crowded = sum.dirty + sum.writing + sum.saved >= window;
	}
	sum.promised = promised;
	return sum;
}

/*
 * All groups below a limit have about a second's worth of it together.  What they have paid
 * and not dirtied they could dirty at once: they keep it only if there is room.  What tasks
 * have been promised and have paid they keep, and others go on page by page: they cannot
 * know when those tasks get the locks that they wait for.
 */
static bool dirty_is_full_above(struct dirty_flow *flow, const struct dirty_rate *rate,
				struct dirty_sum *sum)
{
	long window, promised = sum->promised;
	struct cgroup_subsys_state *css;
	bool full = false, crowded = false;
	u64 bps;

	guard(rcu)();
	for (css = flow->css->parent; css && !full; css = css->parent) {
		bps = dirty_owner_ops->bps(css, flow->bdi);
		if (!bps)
			continue;
		window = dirty_window_of(bps);
		*sum = dirty_sum_above(flow, css, promised, window);
		crowded |= sum->crowded;
		full = dirty_is_over(flow, rate, sum, window);
		if (full || sum->dirty >= window / DIRTY_KICK_PART)
			dirty_kick(flow, NULL, full);
	}
	sum->crowded = crowded && !full;
	return full;
}

/**
 * dirty_is_crowded - have others below the same limits been promised all that there is?
 * @flow:	the flow
 * @rate:	as of now
 *
 * Context: may not sleep; no spinlock held.
 * Return: true if so.
 */
bool dirty_is_crowded(struct dirty_flow *flow, const struct dirty_rate *rate)
{
	struct dirty_sum sum = { };

	return dirty_is_full_above(flow, rate, &sum) || sum.crowded;
}

/**
 * dirty_is_full - has a flow got as many pages as it may have?
 * @flow:	the flow
 * @mapping:	what is about to be dirtied, or NULL
 * @rate:	as of now
 * @part:	what is about to be dirtied and has been promised, or NULL
 * @sum:	becomes what is full: the flow, or all below a limit
 *
 * If there are many pages some are written.
 *
 * Context: may not sleep; no spinlock held.
 * Return: true if so.
 */
bool dirty_is_full(struct dirty_flow *flow, struct address_space *mapping,
		   const struct dirty_rate *rate, const struct dirty_part *part,
		   struct dirty_sum *sum)
{
	long window = dirty_window(flow, rate);
	bool full, promised;

	*sum = dirty_own_sum(flow, part);
	promised = sum->promised > 0;
	WRITE_ONCE(flow->refill, window - window / DIRTY_REFILL_PART);
	full = dirty_is_over(flow, rate, sum, window);
	if (full || sum->dirty >= window / DIRTY_KICK_PART)
		dirty_kick(flow, mapping, full);
	if (full || !rate->shared || (part && part->promised && dirty_due(flow) <= 0))
		return full;
	/* in a crowd one task of a group goes on, see dirty_find_room() */
	return dirty_is_full_above(flow, rate, sum) || (sum->crowded && (promised || !part));
}

/**
 * dirty_flow_wake - see dirty_flow_less()
 * @flow:	a flow where tasks wait
 */
noinline void dirty_flow_wake(struct dirty_flow *flow)
{
	if (dirty_flow_pages(flow) <= READ_ONCE(flow->refill))
		wake_up(&flow->wait);
}

/**
 * dirty_sleep - sleep as for I/O, which it is in the end
 * @ns:		for how long
 *
 * Context: the state of the task is set.
 */
void dirty_sleep(s64 ns)
{
	ktime_t expires = ns;
	int token = io_schedule_prepare();

	schedule_hrtimeout_range(&expires, ns >> 10, HRTIMER_MODE_REL);
	io_schedule_finish(token);
}

/**
 * dirty_wait_for_window - wait until a flow may have more pages, DIRTY_WAIT_NS at most
 * @flow:	the flow
 * @rate:	as of now
 * @part:	as in dirty_is_full()
 *
 * If nothing is written meanwhile, nor under writeback, the pages cannot be written: with
 * data=journal ext4 first has to commit them.  Until something is, the group goes on at its
 * rate.
 *
 * Context: sleeps, killable.
 */
void dirty_wait_for_window(struct dirty_flow *flow, const struct dirty_rate *rate,
			   const struct dirty_part *part)
{
	struct dirty_sum before, after;
	DEFINE_WAIT(wait);

	/* pairs with dirty_flow_less() */
	prepare_to_wait_exclusive(&flow->wait, &wait, TASK_KILLABLE | TASK_FREEZABLE);
	if (dirty_is_full(flow, NULL, rate, part, &before))
		dirty_sleep(DIRTY_WAIT_NS);
	finish_wait(&flow->wait, &wait);
	if (before.css == flow->css)
		after = dirty_own_sum(flow, NULL);
	else
		scoped_guard(rcu)
			after = dirty_flow_sum(before.css, flow);
	if (!after.writing && !before.crowded && !atomic64_read(&flow->promised) &&
	    after.written == before.written)
		WRITE_ONCE(flow->stuck_at, after.written);
}
