// SPDX-License-Identifier: GPL-2.0
/*
 * Pacing: a group pays for the writes of its pages when its tasks dirty them.
 *
 * A task can wait in dirty_admit() without making other tasks wait, because it holds no lock
 * there; a long write() is divided into parts, each of which calls dirty_admit().  The group's
 * limits do not hold the writes themselves: these were paid, or are charged as a debt if
 * tasks dirtied the pages in another way, such as through a mapping.  dirty_account.c
 * describes the account of a group.
 *
 * In addition the group may only have a window of pages, see dirty_window.c.
 */
#include <linux/backing-dev.h>
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/uio.h>
#include <linux/writeback.h>

#include "dirty_leave.h"

/* A group below its limit pays ahead for 1/1024 of a second, and for this at most. */
#define DIRTY_AHEAD_PART	1024
#define DIRTY_AHEAD_BYTES	SZ_64K
/* Probing: a flow writes this much, this often, to learn which devices below have limits. */
#define DIRTY_PROBE_BYTES	SZ_1M
#define DIRTY_PROBE_JIFFIES	(10 * HZ)

/*
 * Devices below may have limits, and it is not known which of them the flow's pages go to.
 * Returns true while the flow has written less than DIRTY_PROBE_BYTES since probing began:
 * the flow counts as limited until then.
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

static u64 dirty_flow_bytes(const struct dirty_flow *flow)
{
	return (u64)max(dirty_flow_dirty(flow), 0L) << PAGE_SHIFT;
}

/* Ask the controller for a flow's limits, and update the flow; @mapping may be NULL. */
static struct dirty_rate dirty_look(struct dirty_flow *flow, struct address_space *mapping)
{
	struct dirty_rate rate;

	scoped_guard(rcu) {
		rate = dirty_owner_ops->rate(flow->css, flow->bdi);
		if (rate.limited || rate.probe)
			dirty_owner_ops->save(flow->css, flow->bdi, dirty_flow_bytes(flow));
	}
	if (rate.probe && !rate.limited)
		rate.limited = dirty_is_probing(flow);
	dirty_learn(flow, &rate);
	WRITE_ONCE(flow->limited, rate.limited);
	WRITE_ONCE(flow->owes, rate.owed_ns || rate.turn_ns);
	WRITE_ONCE(flow->chunk, rate.limited ? dirty_chunk_of(dirty_window(flow, &rate)) :
					       DIRTY_CHUNK_ANY);
	if (rate.limited)
		dirty_begin(flow, rate.since);
	if (mapping && (rate.limited || rate.probe))
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

/* Reduce a promise to @keep bytes; what the task has dirtied is promised no more already. */
static void dirty_unpromise(struct dirty_part *part, size_t keep)
{
	if (part->promised <= keep)
		return;
	atomic64_sub(part->promised - keep, &part->flow->promised);
	part->promised = keep;
}

/*
 * Wait for up to DIRTY_WAIT_NS: for a debt to devices below, for the turn of what was written
 * already, else for room in the window.
 */
static int dirty_wait(const struct dirty_part *part, const struct dirty_rate *rate,
		      unsigned int flags)
{
	if (flags & DIRTY_NOWAIT)
		return -EAGAIN;
	if (fatal_signal_pending(current))
		return -EINTR;
	if (rate->owed_ns || rate->turn_ns) {
		__set_current_state(TASK_KILLABLE | TASK_FREEZABLE_UNSAFE);
		dirty_sleep(min_t(u64, max(rate->owed_ns, rate->turn_ns), DIRTY_WAIT_NS));
	} else {
		/* the position of an open file may be locked, if tasks have it open together */
		dirty_wait_for_window(part->flow, rate, part,
				      TASK_KILLABLE | TASK_FREEZABLE_UNSAFE);
	}
	return 0;
}

/* The length of the next part of a write() of @len bytes. */
static size_t dirty_part_of(struct dirty_flow *flow, size_t len, unsigned int flags)
{
	size_t most = READ_ONCE(flow->chunk);

	return min(len, flags & DIRTY_WHOLE ? max(most, DIRTY_WHOLE_BYTES) : most);
}

/*
 * Does a task have to read its data into memory before it keeps its promise?  If the data did not
 * come, such as that of a mapping of a file on a server that does not answer, the promises of such
 * tasks would fill the window, and the group would wait for that server.  One task need not, if it
 * is promised no more than an eighth of the window: promises are added up before they are looked
 * at, so of two tasks at least one sees the other.
 */
static bool dirty_needs_data(const struct dirty_part *part)
{
	return atomic64_read(&part->flow->promised) > part->promised ||
	       part->promised > READ_ONCE(part->flow->chunk);
}

/* Wait until the window has room, and promise the next part of @len bytes to the task. */
static int dirty_find_room(struct dirty_part *part, struct address_space *mapping,
			   const struct iov_iter *from, size_t len, unsigned int flags,
			   struct dirty_rate *rate)
{
	struct dirty_flow *flow = part->flow;
	struct dirty_sum sum;
	bool read = false;
	int ret = 0;

	for (;;) {
		*rate = dirty_look(flow, mapping);
		if (!rate->limited)
			return 0;
		dirty_promise(part, dirty_part_of(flow, len, flags));
		if (dirty_is_full(flow, mapping, rate, part, &sum) || rate->owed_ns ||
		    rate->turn_ns) {
			dirty_unpromise(part, 0);
			ret = dirty_wait(part, rate, flags);
			read = false;
		} else if (!read && dirty_needs_data(part)) {
			dirty_unpromise(part, 0);
			fault_in_iov_iter_readable(from, dirty_part_of(flow, len, flags));
			read = true;
		} else {
			break;
		}
		if (ret)
			return ret;
	}
	if (sum.crowded)
		dirty_unpromise(part, PAGE_SIZE);
	return 0;
}

/*
 * Pay for what a task has been promised.  A payment takes memory and the lock of the device.
 * Below its limit a group therefore pays once for many small writes.  At its limit it does
 * not: each write() waits for its own pages, so that all take equally long.  Nor does a group
 * that shares a limit with others: it pays for no more than its tasks ask for.
 */
static int dirty_pay_for(const struct dirty_part *part, enum dirty_how how,
			 const struct dirty_rate *rate)
{
	u64 ahead = min_t(u64, rate->bps / DIRTY_AHEAD_PART, DIRTY_AHEAD_BYTES);

	if (part->promised < ahead && !rate->shared &&
	    !dirty_pay(part->flow, part->promised, DIRTY_TRY, ahead))
		return 0;
	return dirty_pay(part->flow, part->promised, how, 0);
}

/* Wait until some of @len bytes may be dirtied, and pay for them. */
static ssize_t dirty_admit_limited(struct dirty_part *part, struct address_space *mapping,
				   const struct iov_iter *from, size_t len, unsigned int flags)
{
	const enum dirty_how how = flags & DIRTY_NOWAIT ? DIRTY_TRY : DIRTY_WAIT;
	struct dirty_flow *flow = part->flow;
	struct dirty_rate rate;
	int ret;

	ret = dirty_find_room(part, mapping, from, len, flags, &rate);
	if (ret || !rate.limited)
		return ret ?: len;
	dirty_forfeit(flow, (s64)dirty_window(flow, &rate) << PAGE_SHIFT);
	ret = dirty_pay_for(part, how, &rate);
	if (ret) {
		dirty_unpromise(part, 0);
		return ret;
	}
	/* other tasks may have been promised pages while this one waited */
	if (rate.shared && dirty_is_crowded(flow, &rate, part))
		dirty_unpromise(part, PAGE_SIZE);
	return part->promised;
}

/* Has the flow no debt below, has it paid all that is dirty or promised, and has it room? */
static bool dirty_is_well(struct dirty_flow *flow)
{
	s64 promised = atomic64_read(&flow->promised);

	return !READ_ONCE(flow->owes) && dirty_unpaid(flow) + promised <= 0 &&
	       dirty_flow_pages(flow) + PFN_UP(promised) < READ_ONCE(flow->refill);
}

/* Promise @len bytes to a task if they are paid already and the window has room for them. */
static bool dirty_is_free(struct dirty_part *part, const struct iov_iter *from, size_t len)
{
	bool read;

	if (!dirty_is_fresh(part->flow) || len > READ_ONCE(part->flow->chunk))
		return false;
	for (read = false;; read = true) {
		dirty_promise(part, len);
		if (!dirty_is_well(part->flow))
			break;
		if (read || !dirty_needs_data(part))
			return true;
		dirty_unpromise(part, 0);
		fault_in_iov_iter_readable(from, min(len, SZ_1M));
	}
	dirty_unpromise(part, 0);
	return false;
}

/*
 * The flow that the current task would dirty pages for, kept from being freed by ->users, O3;
 * NULL if there is none, or if nothing limited it in this jiffy.
 */
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

/*
 * Wait until the current task may write to a file; dirty_admitted() has to follow, after the write.
 * @part: ->flow and ->promised are zero at first.  @flags: DIRTY_NOWAIT, DIRTY_WHOLE.  Sleeps for
 * as long as the limits of the task's group demand; no locks held.  Returns the bytes of @len that
 * it may write now; -EAGAIN if it would have to sleep and must not, -EINTR if it is killed.
 */
ssize_t dirty_admit(struct dirty_part *part, struct file *file, const struct iov_iter *from,
		    size_t len, unsigned int flags)
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
	if (!dirty_is_free(part, from, len))
		ret = dirty_admit_limited(part, inode->i_mapping, from, len, flags);
	if (part->promised)
		current->dirty_part = part;
	else
		dirty_admitted(part);
	return ret;
}

/* End a promise to the current task, which has written, or failed to. */
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

/*
 * Kernel threads, tasks in reclaim, and tasks that write on behalf of others (such as nfsd and
 * loop, PF_LOCAL_THROTTLE) must go on: other tasks wait for them.
 */
static bool dirty_may_wait(void)
{
	return !(current->flags & (PF_KTHREAD | PF_MEMALLOC | PF_LOCAL_THROTTLE));
}

/*
 * The current task has dirtied pages that nobody has paid for, and may hold locks.  It pays on
 * its way to user space.  It pays here if it cannot pay there, or if the window is full, as in
 * a long system call that does not ask dirty_admit().  Returns 1 if the group waits for the turn
 * of what was written: then dirty_owner_settle() has this task wait, too.
 */
static int dirty_pace(struct dirty_flow *flow, struct address_space *mapping,
		      unsigned int flags)
{
	struct dirty_rate rate = dirty_look(flow, mapping);
	struct dirty_sum sum;
	bool full, later;
	u64 owed_ns = max(rate.owed_ns, rate.turn_ns);

	if (!rate.limited)
		return 0;
	full = dirty_is_full(flow, mapping, &rate, NULL, &sum);
	if ((current->flags & PF_MEMALLOC) || (dirty_due(flow) <= 0 && !full && !owed_ns))
		return 0;
	if (flags & BDP_ASYNC)
		return -EAGAIN;
	if (fatal_signal_pending(current))
		return 0;
	/* at once: there may be pages of several disks, and the task waits for its debts on all */
	dirty_pay(flow, 0, DIRTY_OWE, 0);
	if (!dirty_may_wait())
		return 0;
	later = dirty_owner_ops->settle_later(flow->bdi);
	if (later && !full)
		return rate.turn_ns > 0;
	/* not freezable: frozen, the task would keep its locks for as long as that */
	if (full)
		dirty_wait_for_window(flow, &rate, NULL, TASK_KILLABLE);
	if (owed_ns && !fatal_signal_pending(current)) {
		__set_current_state(TASK_KILLABLE);
		dirty_sleep(min_t(u64, owed_ns, DIRTY_WAIT_NS));
	}
	return 0;
}

int __dirty_owner_pace(struct address_space *mapping, struct backing_dev_info *bdi,
		       unsigned int flags)
{
	struct dirty_flow *flow;
	int ret;

	/* these pages were promised; pages dirtied before are due after the promise ends */
	if (current->dirty_part)
		return 0;
	current->dirty_due = false;
	flow = dirty_flow_to_ask(mapping->host, bdi);
	if (!flow)
		return 0;
	ret = dirty_is_fresh(flow) && dirty_is_well(flow) ? 0 : dirty_pace(flow, mapping, flags);
	atomic_dec(&flow->users);
	/* a task that must not wait is asked again */
	current->dirty_due = ret;
	return min(ret, 0);
}

/**
 * dirty_owner_settle - charge what a group has dirtied and not paid, and wait once
 * @bdi:	the backing device of the pages
 *
 * The amount is a debt of the group from now on.  The task waits for room in the window, or
 * for the group's debt to devices below, for DIRTY_WAIT_NS at most.
 *
 * Context: may sleep; no locks held.
 * Return: true if the task should call this again before it dirties more pages.
 */
bool dirty_owner_settle(struct backing_dev_info *bdi)
{
	struct cgroup_subsys_state *css;
	struct dirty_flow *flow;
	struct dirty_rate rate;
	struct dirty_sum sum;
	u64 owed_ns;
	bool full;

	if (!DIRTY_OWNER_ON)
		return false;
	scoped_guard(rcu) {
		css = dirty_css_of_current();
		flow = css ? dirty_flow_peek(css, bdi) : NULL;
		if (!flow || !READ_ONCE(flow->limited))
			return false;
		atomic_inc(&flow->users);
	}
	dirty_pay(flow, 0, DIRTY_OWE, 0);
	rate = dirty_look(flow, NULL);
	full = rate.limited && dirty_is_full(flow, NULL, &rate, NULL, &sum);
	/* a task that has dirtied no page need not wait for what others have had written */
	owed_ns = max(rate.owed_ns, current->dirty_due ? rate.turn_ns : 0);
	if (!rate.turn_ns)
		current->dirty_due = false;
	if (fatal_signal_pending(current)) {
		full = false;
	} else if (full) {
		dirty_wait_for_window(flow, &rate, NULL, TASK_KILLABLE | TASK_FREEZABLE);
	} else if (owed_ns) {
		__set_current_state(TASK_KILLABLE | TASK_FREEZABLE);
		dirty_sleep(min_t(u64, owed_ns, DIRTY_WAIT_NS));
	}
	atomic_dec(&flow->users);
	/* if crowded, the task may dirty a page after each wait */
	return (full && !sum.crowded) || (owed_ns && !fatal_signal_pending(current));
}
