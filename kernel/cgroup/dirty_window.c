// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: how many pages a group may have dirty on a backing device.
 *
 * A window is about one second's worth of the group's limit.  All groups below a limit together
 * have one second's worth of that limit, too.  Bytes that tasks have been promised, and have not
 * dirtied yet, count as dirty.  A page that is being written counts until its bio is paid and at
 * a disk with limits, see dirty_owner_passed(): from then on it waits for the disk, in which
 * other groups may have many requests, and the limit has nothing to do with that.  Where no
 * limit in bytes tells how fast a group's writes are, the window is half a second's worth of
 * their measured speed, and pages count until they are written.
 *
 * Example: P has wbps=1048576, and 100 groups below it.  When these have 1 MiB dirty in all,
 * the next task in any of them that writes waits until the flusher has written some of it,
 * even if hardly any of it is its own group's.
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

/* The smallest window of a limit in bytes; bytes. */
#define DIRTY_LEAST_WINDOW	SZ_64K
/*
 * Measured speed: the smallest window in bytes, the shortest time between two measurements,
 * and the part of a second's worth that is the window: 1/2.
 */
#define DIRTY_LEAST_BYTES	SZ_16M
#define DIRTY_LEARN_NS		(100 * NSEC_PER_MSEC)
#define DIRTY_LEARNT_PART	2
/* A window is at most 1/8 of the global dirty limit. */
#define DIRTY_LIMIT_PART	8
/* Writeback begins when 1/4 of a window is dirty. */
#define DIRTY_KICK_PART		4
/* The longest pause between two searches for the inodes of limited groups. */
#define DIRTY_PAUSE_MS		250
/* Waits with less than this between them follow each other. */
#define DIRTY_AGAIN_MS		50
/* After this time of such waits a flow counts as stuck even if the flusher is busy. */
#define DIRTY_TRY_MS		5000
/* A write() is divided into parts of 1/8 of a second's worth. */
#define DIRTY_CHUNK_PART	8
/* Tasks that wait for the window are woken when 1/16 of it is free. */
#define DIRTY_REFILL_PART	16

/*
 * Measure how fast the writes of a flow are: flow->drain, the pages per second that are written
 * while the flow has enough of them; and flow->most, its share of the global dirty limit.
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
	 * A long interval gives only a lower bound: the flow may have been idle in it.  While
	 * the flow is in debt, some of its writes were dispatched ahead of its limits because
	 * other tasks waited for them: these tell nothing about its speed.
	 */
	if (drain > flow->drain && !rate->owed_ns && !rate->turn_ns)
		flow->drain = drain;
	else if (drain < flow->drain && dirty_flow_writing(flow) &&
		 elapsed < DIRTY_LEARN_NS + 2 * DIRTY_WAIT_NS)
		flow->drain -= (flow->drain - drain) / 8;
	flow->learnt_from = written;
	flow->learnt_at = now;
}

/*
 * The window of a limit of @bps bytes a second; pages.  Together with the part of a write()
 * that may go beyond the window it is a second's worth.
 */
static long dirty_window_of(u64 bps)
{
	bps = max_t(u64, bps - bps / DIRTY_CHUNK_PART, DIRTY_LEAST_WINDOW);
	return min_t(u64, bps >> PAGE_SHIFT, LONG_MAX);
}

/* The pages that a flow may have dirty or being written, by its limits as of now. */
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

/* The bytes of the parts that a write() is divided into, a power of two.  @window: pages. */
size_t dirty_chunk_of(long window)
{
	/* the window is 7 of the 8 parts of a second's worth, see dirty_window_of() */
	long nr = clamp_t(long, window / (DIRTY_CHUNK_PART - 1), 1, SZ_1G >> PAGE_SHIFT);

	return (size_t)rounddown_pow_of_two(nr) << PAGE_SHIFT;
}

/* The pages of one flow, without those promised to @part, if that is not NULL. */
static struct dirty_sum dirty_own_sum(struct dirty_flow *flow, const struct dirty_part *part)
{
	s64 promised = atomic64_read(&flow->promised) - (part ? part->promised : 0);

	return (struct dirty_sum){
		.css = flow->css,
		.dirty = max(dirty_flow_dirty(flow), 0),
		.on_way = dirty_flow_on_way(flow),
		.gone = dirty_flow_gone(flow),
		.promised = max(promised, 0) >> PAGE_SHIFT,
	};
}

/* @stuck_at: value of gone at which the window holds nobody, see dirty_wait_for_window() */
static bool dirty_is_over(const struct dirty_rate *rate, const struct dirty_sum *sum, long window,
			  long stuck_at)
{
	if (sum->dirty + sum->on_way + sum->promised < window)
		return false;
	return rate->measured || stuck_at != sum->gone;
}

/* Is a time, in jiffies, in the future?  A time of long ago would be after jiffies have wrapped. */
static bool dirty_is_ahead(unsigned long time)
{
	return time - jiffies - 1 < msecs_to_jiffies(DIRTY_PAUSE_MS);
}

/*
 * Has the flusher looked at so many inodes for those of limited groups that it should pause?  A
 * task that waits for the window asks for writeback every DIRTY_WAIT_NS.
 */
static bool dirty_is_pause(const struct bdi_writeback *wb)
{
	return dirty_is_ahead(READ_ONCE(wb->owned_next));
}

static void dirty_start_writeback(struct bdi_writeback *wb, bool again)
{
	/* wb_start_background_writeback() enables irqs when it returns */
	lockdep_assert_irqs_enabled();
	if (!wb_has_dirty_io(wb) || dirty_is_pause(wb) ||
	    (!again && test_bit(WB_start_owned, &wb->state)))
		return;
	set_bit(WB_start_owned, &wb->state);
	wb_start_background_writeback(wb);
}

/*
 * Start writeback of a flow's pages: by the flusher of @mapping, or by all flushers of the
 * backing device, since on the default hierarchy a flow may have pages in inodes of several.
 * After it has asked n flushers, @flow does not ask all of them for n / 64 ms.
 */
static void dirty_kick(struct dirty_flow *flow, struct address_space *mapping, bool all)
{
	struct bdi_writeback *wb;
	unsigned int asked = 0;

	guard(rcu)();
	/* under the lock that keeps an inode in its wb irqs would be off */
	if (mapping && !all) {
		wb = dirty_wb_of(mapping->host);
		if (wb)
			dirty_start_writeback(wb, false);
		return;
	}
	if (dirty_is_ahead(READ_ONCE(flow->kick_next)))
		return;
	list_for_each_entry_rcu(wb, &flow->bdi->wb_list, bdi_node) {
		dirty_start_writeback(wb, all);
		asked++;
	}
	WRITE_ONCE(flow->kick_next, jiffies + msecs_to_jiffies(min(asked / 64, DIRTY_PAUSE_MS)));
}

/*
 * The pages of all groups below a limit with a window of @window pages.  If the window is full
 * they lose what they have paid and not dirtied.
 */
static struct dirty_sum dirty_sum_above(struct dirty_flow *flow,
					struct cgroup_subsys_state *css, long promised,
					long window)
{
	struct dirty_sum sum = dirty_flow_sum(css, flow);

	window -= promised;
	if (sum.saved && sum.dirty + sum.on_way + sum.saved >= window) {
		dirty_flow_forfeit(css, flow);
		sum = dirty_flow_sum(css, flow);
	}
	sum.crowded = sum.dirty + sum.on_way + sum.saved >= window;
	sum.promised = promised;
	return sum;
}

/*
 * Is there room in a window for all that tasks can pay in a jiffy?  That is 1% of a second's
 * worth of the limit, and its burst: 0.5% or 64 KiB.  A part of a write() that has waited for
 * longer is paid at once; it may go beyond the window, see dirty_window_of().
 */
static bool dirty_is_roomy(const struct dirty_flow *own, const struct dirty_sum *sum,
			   long window)
{
	long saved = sum->saved + (max(-dirty_unpaid(own), 0) >> PAGE_SHIFT);

	return sum->dirty + sum->on_way + sum->promised + saved <
	       window - window / DIRTY_REFILL_PART - (DIRTY_LEAST_WINDOW >> PAGE_SHIFT);
}

/*
 * All groups below a limit together have about a second's worth of it.  Pages that they have
 * paid and not dirtied could become dirty at any time, so they keep these only while the
 * window has room.  Tasks keep what they have been promised and have paid; meanwhile other
 * tasks go on page by page, since nobody knows when the promised tasks get the locks that
 * they wait for.
 *
 * To sum up the pages of many groups takes time.  So the flow of the group that has the limit
 * says in which jiffy there was much room, and then no other task sums up in that jiffy.  That
 * holds only where tasks pay for the window's bytes before they dirty pages.  I/Os, and what
 * devices below charge, are paid afterwards: there nothing but the window bounds the pages of
 * one jiffy.
 */
static bool dirty_is_full_above(struct dirty_flow *flow, const struct dirty_rate *rate,
				struct dirty_sum *sum)
{
	bool full = false, crowded = false, ahead;
	long window, promised = sum->promised;
	struct cgroup_subsys_state *css;
	unsigned long tick = jiffies;
	struct dirty_flow *pool;
	u64 bps;

	guard(rcu)();
	for (css = flow->css->parent; css && !full; css = css->parent) {
		bps = dirty_owner_ops->bps(css, flow->bdi, &ahead);
		if (!bps)
			continue;
		pool = dirty_flow_find(css, flow->bdi);
		if (pool && ahead && !time_after(tick, READ_ONCE(pool->roomy_at)))
			continue;
		window = dirty_window_of(bps);
		*sum = dirty_sum_above(flow, css, promised, window);
		if (pool && dirty_is_roomy(flow, sum, window))
			WRITE_ONCE(pool->roomy_at, tick);
		crowded |= sum->crowded;
		full = dirty_is_over(rate, sum, window, pool ? READ_ONCE(pool->stuck_below) : -1);
		if (full || sum->dirty >= window / DIRTY_KICK_PART)
			dirty_kick(pool ?: flow, NULL, full);
	}
	sum->crowded = crowded && !full;
	return full;
}

/*
 * Is the window of a limit above a flow full, or promised to other tasks?  The promise @part, which
 * has been paid, does not count.  Of those to other tasks of the flow, those count that are paid:
 * the other tasks ask this, too, when they have paid.  No spinlock held.
 */
bool dirty_is_crowded(struct dirty_flow *flow, const struct dirty_rate *rate,
		      const struct dirty_part *part)
{
	s64 others = min(atomic64_read(&flow->promised), -dirty_unpaid(flow)) - part->promised;
	struct dirty_sum sum = { .promised = max(others, 0) >> PAGE_SHIFT };

	return dirty_is_full_above(flow, rate, &sum) || sum.crowded;
}

/*
 * Is the window of a flow, or of a limit above it, full?  Sets @sum to the pages in that window:
 * the flow's, or those of all groups below a limit.  @mapping: the file that is about to be
 * dirtied, or NULL.  @part: a promise that does not count, or NULL.  Starts writeback when a
 * quarter of the window is dirty.  No spinlock held.
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
	full = dirty_is_over(rate, sum, window, READ_ONCE(flow->stuck_at));
	if (full || sum->dirty >= window / DIRTY_KICK_PART)
		dirty_kick(flow, mapping, full);
	if (full || !rate->shared || (part && part->promised && dirty_due(flow) <= 0))
		return full;
	/* if crowded, one task of each group goes on page by page, see dirty_find_room() */
	return dirty_is_full_above(flow, rate, sum) || (sum->crowded && (promised || !part));
}

/* Wake a task if the window has room again; see dirty_flow_less(). */
noinline void dirty_flow_wake(struct dirty_flow *flow)
{
	if (dirty_flow_pages(flow) <= READ_ONCE(flow->refill))
		wake_up(&flow->wait);
}

/*
 * Sleep for @ns at most, accounted as waiting for I/O, which the wait is for in the end.  The
 * caller has set the state of the task.  Returns false if it was woken before.
 */
bool dirty_sleep(s64 ns)
{
	ktime_t expires = ns;
	int token = io_schedule_prepare(), ret;

	ret = schedule_hrtimeout_range(&expires, ns >> 10, HRTIMER_MODE_REL);
	io_schedule_finish(token);
	return !ret;
}

/*
 * Have the flushers searched for owned inodes, and begun to write them, since the flow has waited
 * in vain?  They may be busy with other writes, or pause.  While somebody syncs for long, no task
 * waits for them for more than DIRTY_TRY_MS.
 */
static bool dirty_has_searched(struct dirty_flow *flow, long gone, unsigned long begin)
{
	unsigned long again = READ_ONCE(flow->tried_at) + msecs_to_jiffies(DIRTY_AGAIN_MS);
	struct bdi_writeback *wb;

	if (READ_ONCE(flow->tried_gone) != gone ||
	    time_after(jiffies - nsecs_to_jiffies(DIRTY_WAIT_NS), again)) {
		WRITE_ONCE(flow->tried_gone, gone);
		WRITE_ONCE(flow->tried_since, begin);
		WRITE_ONCE(flow->tried_from, jiffies);
	}
	WRITE_ONCE(flow->tried_at, jiffies);
	if (time_after(jiffies, READ_ONCE(flow->tried_from) + msecs_to_jiffies(DIRTY_TRY_MS)))
		return true;
	guard(rcu)();
	list_for_each_entry_rcu(wb, &flow->bdi->wb_list, bdi_node)
		if (wb_has_dirty_io(wb) &&
		    (long)(READ_ONCE(wb->owned_done) - READ_ONCE(flow->tried_since)) <= 0)
			return false;
	return true;
}

/* Until a page goes away, the window holds neither the flow nor the flows that @sum is of. */
static void dirty_set_stuck(struct dirty_flow *flow, const struct dirty_sum *sum)
{
	struct dirty_flow *pool;

	WRITE_ONCE(flow->stuck_at, dirty_flow_gone(flow));
	if (sum->css == flow->css)
		return;
	guard(rcu)();
	pool = dirty_flow_find(sum->css, flow->bdi);
	if (pool)
		WRITE_ONCE(pool->stuck_below, sum->gone);
}

/*
 * Wait until a window has room, for DIRTY_WAIT_NS at most.  @part: as in dirty_is_full().  @state:
 * TASK_KILLABLE; with TASK_FREEZABLE if the task holds no lock.
 *
 * If no page goes away in that time though the flushers have searched for pages to write, and none
 * is on its way to the disk, the flow is stuck: its pages cannot be written yet.  ext4 with
 * data=journal, for example, has to commit them first.  Until a page goes away, the window does not
 * hold the group; its limits still do.  Where its speed is measured the window holds it.
 */
void dirty_wait_for_window(struct dirty_flow *flow, const struct dirty_rate *rate,
			   const struct dirty_part *part, unsigned int state)
{
	unsigned long begin = atomic_long_read(&flow->bdi->owned_seq);
	struct dirty_sum before, after;
	bool expired = false;
	DEFINE_WAIT(wait);

	/* pairs with dirty_flow_less() */
	prepare_to_wait_exclusive(&flow->wait, &wait, state);
	if (dirty_is_full(flow, NULL, rate, part, &before))
		expired = dirty_sleep(DIRTY_WAIT_NS);
	finish_wait(&flow->wait, &wait);
	if (!expired || before.crowded)
		return;
	if (before.css == flow->css)
		after = dirty_own_sum(flow, NULL);
	else
		scoped_guard(rcu)
			after = dirty_flow_sum(before.css, flow);
	if (!after.on_way && !atomic64_read(&flow->promised) && after.gone == before.gone &&
	    dirty_has_searched(flow, after.gone, begin))
		dirty_set_stuck(flow, &after);
}
