// SPDX-License-Identifier: GPL-2.0
/*
 * Pacing: a group pays for the writes of its pages when its tasks dirty them.
 *
 * There a task can wait and make nobody else wait: dirty_admit() asks before any lock is
 * taken, and lets a long write() go in parts.  The writes themselves are not held
 * by the group's limits.  They were paid, or are charged as a debt: what tasks dirtied in
 * other ways, through a mapping for example.  See dirty_account.c for who pays what.
 *
 * Besides there is a window of pages, see dirty_window.c.
 */
#include <linux/backing-dev.h>
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/writeback.h>

#include "dirty_leave.h"

/* Pages that may be dirtied within a jiffy before anything is looked at again. */
#define DIRTY_FREE_PAGES	256
/* A group that does not reach its limit pays for this part of a second at once. */
#define DIRTY_AHEAD_PART	1024
#define DIRTY_AHEAD_BYTES	SZ_64K
/* It is learnt which disks below have a limit: by writing so much, so often. */
#define DIRTY_PROBE_BYTES	SZ_1M
#define DIRTY_PROBE_JIFFIES	(10 * HZ)

/*
 * Devices below may have limits, and nobody knows which of them the pages go to.  Has the
 * flow written little since that was last asked?  It is taken for limited meanwhile.
 */
static bool dirty_is_probing(struct dirty_flow *flow)
{
	long written = atomic_long_read(&flow->written);

	if (time_after(jiffies, READ_ONCE(flow->probe_until)) || !flow->probe_until) {
		WRITE_ONCE(flow->probe_until, (jiffies + DIRTY_PROBE_JIFFIES) | 1);
		WRITE_ONCE(flow->probe_from, written);
	}
	return written - READ_ONCE(flow->probe_from) < DIRTY_PROBE_BYTES >> PAGE_SHIFT;
}

/* What the controller says now; @mapping may be NULL. */
static struct dirty_rate dirty_look(struct dirty_flow *flow, struct address_space *mapping)
{
	struct dirty_rate rate;

	scoped_guard(rcu)
		rate = dirty_owner_ops->rate(flow->css, flow->bdi);
	if (rate.probe && !rate.limited)
		rate.limited = dirty_is_probing(flow);
	dirty_learn(flow, &rate);
	WRITE_ONCE(flow->limited, rate.limited);
	WRITE_ONCE(flow->words, rate.limited || rate.probe);
	WRITE_ONCE(flow->owes, rate.owed_ns);
	WRITE_ONCE(flow->chunk, rate.limited ? dirty_chunk_of(dirty_window(flow, &rate)) :
					       DIRTY_CHUNK_ANY);
	if (rate.limited)
		dirty_begin(flow, rate.since);
	if (mapping && READ_ONCE(flow->words))
		dirty_note_mapping(flow, mapping);
	WRITE_ONCE(flow->free_to, atomic_long_read(&flow->dirtied) + DIRTY_FREE_PAGES);
	WRITE_ONCE(flow->looked_at, jiffies);
	return rate;
}

static void dirty_promise(struct dirty_part *part, size_t bytes)
{
	part->promised = bytes;
	atomic64_add(bytes, &part->flow->promised);
}

/* Keep what has been dirtied meanwhile and @keep bytes. */
static void dirty_unpromise(struct dirty_part *part, size_t keep)
{
	if (part->promised <= keep)
		return;
	atomic64_sub(part->promised - keep, &part->flow->promised);
	part->promised = keep;
}

/* Wait for a while: for the window of pages, or what is owed to devices below. */
static int dirty_wait(const struct dirty_part *part, const struct dirty_rate *rate,
		      unsigned int flags)
{
	if (flags & DIRTY_NOWAIT)
		return -EAGAIN;
	if (fatal_signal_pending(current))
		return -EINTR;
	if (rate->owed_ns) {
		__set_current_state(TASK_KILLABLE | TASK_FREEZABLE);
		dirty_sleep(min_t(u64, rate->owed_ns, DIRTY_WAIT_NS));
	} else {
		dirty_wait_for_window(part->flow, rate, part);
	}
	return 0;
}

/* How many of @len bytes go at once? */
static size_t dirty_part_of(struct dirty_flow *flow, size_t len, unsigned int flags)
{
	size_t most = READ_ONCE(flow->chunk);

	return min(len, flags & DIRTY_WHOLE ? max(most, DIRTY_WHOLE_BYTES) : most);
}

/* Promise as many of @len bytes as there is room for. */
static int dirty_find_room(struct dirty_part *part, struct address_space *mapping, size_t len,
			   unsigned int flags, struct dirty_rate *rate)
{
	struct dirty_flow *flow = part->flow;
	struct dirty_sum sum;
	int ret;

	for (;;) {
		*rate = dirty_look(flow, mapping);
		if (!rate->limited)
			return 0;
		dirty_promise(part, dirty_part_of(flow, len, flags));
		if (!dirty_is_full(flow, mapping, rate, part, &sum) && !rate->owed_ns)
			break;
		dirty_unpromise(part, 0);
		ret = dirty_wait(part, rate, flags);
		if (ret)
			return ret;
	}
	if (sum.crowded && !(flags & DIRTY_WHOLE))
		dirty_unpromise(part, PAGE_SIZE);
	return 0;
}

/*
 * Pay for what a task has been promised.  A payment takes memory and the lock of the device:
 * where the limit is not reached, one is for many small writes.  Where the limit is reached,
 * each write() waits for its own pages, and all take equally long.  Where groups share a
 * limit, none pays for more than it asks for.
 */
static int dirty_pay_for(const struct dirty_part *part, enum dirty_how how,
			 const struct dirty_rate *rate)
{
	u64 ahead = min_t(u64, rate->bps / DIRTY_AHEAD_PART, DIRTY_AHEAD_BYTES);

	if (part->promised < ahead && !rate->shared && !rate->owes &&
	    !dirty_pay(part->flow, DIRTY_TRY, false, ahead) &&
	    /* without memory nothing is paid, and one that may wait gets some */
	    dirty_due(part->flow) <= 0)
		return 0;
	return dirty_pay(part->flow, how, rate->owes, 0);
}

/* Wait until some of @len bytes may be dirtied, and pay for them. */
static ssize_t dirty_admit_limited(struct dirty_part *part, struct address_space *mapping,
				   size_t len, unsigned int flags)
{
	const enum dirty_how how = flags & DIRTY_NOWAIT ? DIRTY_TRY : DIRTY_WAIT;
	struct dirty_flow *flow = part->flow;
	struct dirty_rate rate;
	int ret;

	ret = dirty_find_room(part, mapping, len, flags, &rate);
	if (ret || !rate.limited)
		return ret ?: len;
	if (rate.probe && !(flags & DIRTY_NOWAIT))
		dirty_owner_ops->line_up_below(flow->css);
	dirty_forfeit(flow, (s64)dirty_window(flow, &rate) << PAGE_SHIFT);
	ret = dirty_pay_for(part, how, &rate);
	if (ret) {
		dirty_unpromise(part, 0);
		return ret;
	}
	/* others may have been promised pages while this task waited */
	if (rate.shared && !(flags & DIRTY_WHOLE) && dirty_is_crowded(flow, &rate))
		dirty_unpromise(part, PAGE_SIZE);
	return part->promised;
}

/* Is all paid that is dirty or promised, and is there room? */
static bool dirty_is_well(struct dirty_flow *flow)
{
	s64 promised = atomic64_read(&flow->promised);

	return !READ_ONCE(flow->owes) && dirty_unpaid(flow) + promised <= 0 &&
	       dirty_flow_pages(flow) + PFN_UP(promised) < READ_ONCE(flow->refill);
}

/* May a task dirty @len bytes at once, and are they paid?  They are promised. */
static bool dirty_is_free(struct dirty_part *part, size_t len)
{
	if (!dirty_is_fresh(part->flow) || len > READ_ONCE(part->flow->chunk))
		return false;
	dirty_promise(part, len);
	if (dirty_is_well(part->flow))
		return true;
	dirty_unpromise(part, 0);
	return false;
}

/* The flow that the current task would dirty pages of, which stays, O3; NULL for none. */
static struct dirty_flow *dirty_flow_to_ask(struct inode *inode, struct backing_dev_info *bdi)
{
	struct cgroup_subsys_state *css;
	struct dirty_flow *flow;

	guard(rcu)();
	css = dirty_css_of_current();
	if (!css || !dirty_is_data(inode))
		return NULL;
	flow = dirty_flow_of(css, bdi);
	if (!flow || (dirty_is_fresh(flow) && !READ_ONCE(flow->limited)))
		return NULL;
	atomic_inc(&flow->users);
	return flow;
}

/**
 * dirty_admit - wait until a task may write to a file
 * @part:	all zero; dirty_admitted() is to follow
 * @file:	the file
 * @len:	bytes that it wants to write
 * @flags:	DIRTY_NOWAIT, DIRTY_WHOLE
 *
 * Context: sleeps for as long as the limits of the task's group demand it: no locks held.
 * Return: bytes that it may write now, at most @len; -EAGAIN if it would have to sleep and
 *	   must not, -EINTR if it is killed.
 */
ssize_t dirty_admit(struct dirty_part *part, struct file *file, size_t len,
		    unsigned int flags)
{
	struct inode *inode;
	ssize_t ret = len;

	if (!len || (file->f_flags & O_DIRECT) || !(file->f_mode & FMODE_WRITE) ||
	    current->dirty_part)
		return len;
	inode = dirty_inode_of(file);
	part->flow = dirty_flow_to_ask(inode, inode_to_bdi(inode));
	if (!part->flow)
		return len;
	if (file->f_flags & O_APPEND)
		flags |= DIRTY_WHOLE;
	if (!dirty_is_free(part, len))
		ret = dirty_admit_limited(part, inode->i_mapping, len, flags);
	if (part->promised)
		current->dirty_part = part;
	else
		dirty_admitted(part);
	return ret;
}

/**
 * dirty_admitted - a task has written what it was let write, or not
 * @part:	of dirty_admit()
 *
 * Context: that of the task.
 */
void dirty_admitted(struct dirty_part *part)
{
	struct dirty_flow *flow = part->flow;

	if (!flow)
		return;
	current->dirty_part = NULL;
	dirty_unpromise(part, 0);
	dirty_flow_less(flow);
	part->flow = NULL;
	atomic_dec(&flow->users);
}

/* Tasks that others wait for, and those of io_uring, have to go on. */
static bool dirty_may_wait(void)
{
	return !(current->flags & (PF_KTHREAD | PF_MEMALLOC | PF_LOCAL_THROTTLE));
}

/*
 * A task has dirtied pages that nobody has paid for, and may hold locks.  It pays on its way
 * to user space; here only if it comes again before that, as in a long call that does not ask
 * dirty_admit().
 */
static int dirty_pace(struct dirty_flow *flow, struct address_space *mapping,
		      unsigned int flags)
{
	struct dirty_rate rate = dirty_look(flow, mapping);
	struct dirty_sum sum;
	bool full, later;
	s64 owed_ns;

	if (!rate.limited)
		return 0;
	full = dirty_is_full(flow, mapping, &rate, NULL, &sum);
	if (!dirty_may_wait() ||
	    (dirty_due(flow) <= 0 && !full && !rate.owed_ns && !rate.owes))
		return 0;
	if (flags & BDP_ASYNC)
		return -EAGAIN;
	if (fatal_signal_pending(current))
		return 0;
	later = dirty_owner_ops->settle_later(flow->bdi);
	if (later && !full)
		return 0;
	dirty_pay(flow, DIRTY_OWE, false, 0);
	if (full)
		dirty_wait_for_window(flow, &rate, NULL);
	for (;;) {
		owed_ns = max_t(s64, dirty_owner_ops->debt_ns(flow->css, flow->bdi),
				rate.owed_ns);
		if (!owed_ns || fatal_signal_pending(current))
			return 0;
		__set_current_state(TASK_KILLABLE);
		dirty_sleep(min_t(s64, owed_ns, DIRTY_WAIT_NS));
		/* one that does not go to user space never pays later: many could take turns */
		if (!(current->flags & PF_USER_WORKER))
			return 0;
		rate.owed_ns = 0;
	}
}

int __dirty_owner_pace(struct address_space *mapping, struct backing_dev_info *bdi,
		       unsigned int flags)
{
	struct dirty_flow *flow;
	int ret;

	/* what it dirties has been promised; what it dirtied before is due after that */
	if (current->dirty_part)
		return 0;
	current->dirty_due = false;
	flow = dirty_flow_to_ask(mapping->host, bdi);
	if (!flow)
		return 0;
	ret = dirty_is_fresh(flow) && dirty_is_well(flow) ? 0 : dirty_pace(flow, mapping, flags);
	atomic_dec(&flow->users);
	/* one that must not wait comes again */
	current->dirty_due = ret == -EAGAIN;
	return ret;
}

/**
 * dirty_owner_settle - charge what a group has dirtied and not paid, and wait for a while
 * @css:	the current task's group
 * @bdi:	where it will be written
 *
 * The group owes it from now on.  The task waits for the window of pages, and for what the
 * group owes to devices below.
 *
 * Context: may sleep; no locks held.
 * Return: true if it should come again before it dirties more pages.
 */
bool dirty_owner_settle(struct cgroup_subsys_state *css, struct backing_dev_info *bdi)
{
	struct dirty_flow *flow;
	struct dirty_rate rate;
	struct dirty_sum sum;
	bool full;

	if (!DIRTY_OWNER_ON)
		return false;
	scoped_guard(rcu) {
		flow = dirty_flow_peek(css, bdi);
		if (!flow || !READ_ONCE(flow->limited))
			return false;
		atomic_inc(&flow->users);
	}
	dirty_pay(flow, DIRTY_OWE, false, 0);
	rate = dirty_look(flow, NULL);
	full = rate.limited && dirty_is_full(flow, NULL, &rate, NULL, &sum);
	if (fatal_signal_pending(current)) {
		full = false;
	} else if (full) {
		dirty_wait_for_window(flow, &rate, NULL);
	} else if (rate.owed_ns) {
		__set_current_state(TASK_KILLABLE | TASK_FREEZABLE);
		dirty_sleep(min_t(u64, rate.owed_ns, DIRTY_WAIT_NS));
	} else if (rate.probe) {
		dirty_owner_ops->line_up_below(flow->css);
	}
	atomic_dec(&flow->users);
	/* in a crowd, a page after each wait */
	return (full && !sum.crowded) || (rate.owed_ns && !fatal_signal_pending(current));
}
