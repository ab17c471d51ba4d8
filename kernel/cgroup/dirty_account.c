// SPDX-License-Identifier: GPL-2.0
/*
 * What a group has paid for the writes of its pages, on each backing device.
 *
 * The account of a flow, in bytes ever:
 *
 *	dirtied		pages that became dirty, less those that will not be written
 *	paid		by its tasks before they dirtied pages, or by writes as a debt
 *	used		writes that have been covered by that
 *
 * and at the moment:
 *
 *	promised	what tasks have been let dirty, and have not dirtied yet
 *	claimed		what tasks are about to pay, and wait for
 *
 * What is dirtied and not paid is paid by the next task that dirties pages.  What is paid
 * and not used covers the next writes, whoever starts them.
 *
 * Example: a group may write 1 MiB a second.  Its task calls write() with 1 MiB, which
 * goes in 8 parts of 128 KiB.  Before each, the task waits until the group's limit has
 * room for 128 KiB, and the flow has paid that.  The flusher writes the pages in bios of
 * which each uses up what was paid, and none waits.  A store through a mapping then
 * dirties a page: paid is 4 KiB behind dirtied, and the task pays on its way to user space.
 */
#include <linux/mm.h>

#include "dirty_owner-internal.h"

/**
 * dirty_begin - begin the account of a flow anew if its limits began anew
 * @flow:	the flow
 * @since:	as in struct dirty_rate
 *
 * What has words by then costs nothing: most of it was dirtied when there was no limit.
 */
void dirty_begin(struct dirty_flow *flow, unsigned int since)
{
	s64 dirtied;

	if (READ_ONCE(flow->since) == since)
		return;
	guard(spinlock_irqsave)(&flow->lock);
	if (flow->since == since)
		return;
	dirtied = (s64)atomic_long_read(&flow->dirtied) << PAGE_SHIFT;
	atomic64_set(&flow->paid, dirtied);
	flow->used = dirtied - ((s64)dirty_flow_pages(flow) << PAGE_SHIFT);
	WRITE_ONCE(flow->since, since);
}

/**
 * dirty_forfeit - lose what was paid in advance and never dirtied
 * @flow:	the flow
 * @most:	bytes that it may keep
 *
 * Or a group could save up, by writes that fail after it has paid.
 */
void dirty_forfeit(struct dirty_flow *flow, s64 most)
{
	s64 beyond;

	guard(spinlock_irqsave)(&flow->lock);
	beyond = -dirty_due(flow) - most;
	if (beyond > 0)
		atomic64_sub(beyond, &flow->paid);
}

/**
 * dirty_pay - pay for pages that are dirty, or promised
 * @flow:	the flow
 * @how:	what to do if the limits say no
 * @owes:	also wait for what the group owes there
 * @ahead:	bytes to pay beyond those that are due, if any are
 *
 * For those that no other task is about to pay.
 *
 * Context: may sleep if @how says so.
 * Return: 0, -EAGAIN or -EINTR.
 */
int dirty_pay(struct dirty_flow *flow, enum dirty_how how, bool owes, s64 ahead)
{
	s64 bytes, paid = 0;

	scoped_guard(spinlock_irqsave, &flow->lock) {
		bytes = max(dirty_due(flow), 0);
		atomic64_add(bytes, &flow->claimed);
	}
	if (bytes || owes)
		paid = dirty_owner_ops->pay(flow->css, flow->bdi, bytes ? bytes + ahead : 0,
					    how);
	guard(spinlock_irqsave)(&flow->lock);
	atomic64_sub(bytes, &flow->claimed);
	if (paid < 0)
		return paid;
	atomic64_add(paid, &flow->paid);
	return 0;
}

/**
 * dirty_owner_use - cover a write of dirty pages by what a group has paid
 * @css:	the group
 * @bdi:	the device that it is a write to
 * @bytes:	its length
 * @since:	as in struct dirty_rate
 *
 * Context: any; RCU read side.
 * Return: false if it has not been paid: the caller is to charge it, which is paying it.
 */
bool dirty_owner_use(struct cgroup_subsys_state *css, struct backing_dev_info *bdi,
		     unsigned int bytes, unsigned int since)
{
	struct dirty_flow *flow = dirty_flow_peek(css, bdi);
	bool covered;

	if (!flow)
		return false;
	dirty_begin(flow, since);
	guard(spinlock_irqsave)(&flow->lock);
	covered = atomic64_read(&flow->paid) - flow->used >= bytes;
	if (!covered)
		atomic64_add(bytes, &flow->paid);
	flow->used += bytes;
	return covered;
}
