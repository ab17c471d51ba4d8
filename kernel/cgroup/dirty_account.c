// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts: what a group has paid for the writes of its pages, on each backing device.
 *
 * The account of a flow has three totals that only grow, in bytes:
 *
 *	dirtied		pages that became dirty, less those that will not be written
 *	paid		charged to the group's limits: by its tasks before they dirty pages,
 *			or as a debt by writes that had not been paid
 *	used		writes that what was paid has covered
 *
 * and two amounts as of now:
 *
 *	promised	bytes that tasks may dirty, and have not dirtied yet
 *	claimed		bytes that tasks are about to pay, and wait for
 *
 * Bytes that are dirtied and not paid are paid by the next task of the group that dirties
 * pages.  Bytes that are paid and not used cover the next writes, whichever task starts them.
 *
 * Example: a group may write 1 MiB per second.  Its task calls write() with 1 MiB, which is
 * divided into 8 parts of 128 KiB.  Before each part the task waits until the group's limit
 * has room for 128 KiB, and the flow has paid 128 KiB.  The flusher writes the pages in bios;
 * each bio uses up some of what was paid, and none is held.  Then a store through a
 * mapping dirties a page: paid is 4 KiB behind dirtied, and the task pays on its way to user
 * space.
 */
#include <linux/mm.h>

#include "dirty_owner-internal.h"

/*
 * Restart the account of a flow if its limits have begun since, see struct dirty_rate.  Pages that
 * have words by then cost nothing: most were dirtied when there was no limit.
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

/*
 * Let a flow keep at most @most bytes that it paid and did not dirty, beside those promised.  Else
 * a group could save up bytes by writes that fail after it has paid for them.
 */
void dirty_forfeit(struct dirty_flow *flow, s64 most)
{
	s64 beyond;

	guard(spinlock_irqsave)(&flow->lock);
	beyond = -dirty_due(flow) - most;
	if (beyond > 0)
		atomic64_sub(beyond, &flow->paid);
}

/*
 * Pay what is due, that is bytes that no other task is about to pay: those that are dirty, and
 * @promised bytes, which the task itself has been promised.  Other tasks pay for their promises.
 * @ahead: bytes to pay in addition, if any are due.  May sleep if @how is DIRTY_WAIT.  Returns 0;
 * -EAGAIN or -EINTR if nothing was paid.
 */
int dirty_pay(struct dirty_flow *flow, s64 promised, enum dirty_how how, s64 ahead)
{
	s64 bytes, paid = 0, most;

	scoped_guard(spinlock_irqsave, &flow->lock) {
		most = max(dirty_unpaid(flow), 0) + promised;
		bytes = clamp(dirty_due(flow), 0, most);
		atomic64_add(bytes, &flow->claimed);
	}
	if (bytes)
		paid = dirty_owner_ops->pay(flow->css, flow->bdi, bytes + ahead, how);
	guard(spinlock_irqsave)(&flow->lock);
	atomic64_sub(bytes, &flow->claimed);
	if (paid < 0)
		return paid;
	atomic64_add(paid, &flow->paid);
	return 0;
}

/**
 * dirty_owner_use - cover a write of dirty pages by what their dirtier has paid
 * @css:	the dirtier's group
 * @bdi:	the backing device that is written to
 * @bytes:	length of the write
 * @since:	as in struct dirty_rate
 *
 * Context: any; RCU read side.
 * Return: true if the write has been paid.  False if not: the caller has to charge it to the
 *	   group's limits, and the account counts it as paid by that.
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
