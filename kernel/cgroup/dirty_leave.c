// SPDX-License-Identifier: GPL-2.0
/*
 * What the accounts of dirty pages may leave out: this file decides which pages need no words,
 * and which writes need not ask dirty_admit().  These are the writes of the root group, and of
 * groups without limits to files whose writeback belongs to them, O7.  This file also tells the
 * flusher which inodes to write for limited groups.
 */
#include <linux/backing-dev.h>

#include "dirty_leave.h"

/**
 * dirty_flow_look - does a flow that was not limited in an earlier jiffy still have no limit?
 * @flow:	the flow
 *
 * Context: any locks held.
 * Return: true if nothing limits the flow, so that its pages need no words.
 */
bool dirty_flow_look(struct dirty_flow *flow)
{
	struct dirty_rate rate;

	/* ->rate needs an RCU read side; that the i_pages lock is held is not enough */
	scoped_guard(rcu)
		rate = dirty_owner_ops->rate(flow->css, flow->bdi);
	if (rate.limited || rate.probe) {
		WRITE_ONCE(flow->words, true);
		return false;
	}
	WRITE_ONCE(flow->looked_at, jiffies);
	return true;
}

/* The inode's wb if pages that the current task dirties in a write() need no words, O7. */
static __always_inline const struct bdi_writeback *
dirty_wb_to_leave(const struct inode *inode, const struct dirty_flow *flow, struct file *file,
		  size_t len)
{
#ifdef CONFIG_CGROUP_WRITEBACK
	const struct bdi_writeback *wb = READ_ONCE(inode->i_wb);

	if (!wb || len > DIRTY_WHOLE_BYTES || !(file->f_mode & FMODE_WRITE))
		return NULL;
	if (!flow || (wb->blkcg_css == flow->css && !READ_ONCE(flow->words) &&
		      !dirty_shares_bios(inode)))
		return wb;
#endif
	return NULL;
}

/**
 * dirty_may_write - may the current task write to a file without asking dirty_admit()?
 * @file:	the file
 * @len:	bytes that it wants to write
 * @free:	the value of current->dirty_free while it writes
 *
 * It may if it is in the root group, or in a group that nothing limited on that device in
 * this jiffy.  Most tasks are: this is the fast path, and should cost them little.
 *
 * Context: may sleep.
 * Return: true if it may; false if dirty_admit() has to decide.
 */
bool dirty_may_write(struct file *file, size_t len, const struct bdi_writeback **free)
{
	struct inode *inode = dirty_inode_of(file);
	struct cgroup_subsys_state *css;
	struct dirty_flow *flow;

	if (unlikely((current->flags & PF_KTHREAD) || current->dirty_part))
		return false;
	/* also an RCU read side */
	guard(preempt)();
	css = task_css_check(current, io_cgrp_id, true);
	flow = css->parent ? this_cpu_read(dirty_hints.by_css) : NULL;
	if (flow && (flow->css != css || flow->bdi != inode_to_bdi(inode) ||
		     READ_ONCE(flow->limited) || !dirty_is_fresh(flow)))
		return false;
	*free = dirty_wb_to_leave(inode, flow, file, len);
	return true;
}

void __dirty_owner_switched(struct folio *folio, struct bdi_writeback *wb)
{
#ifdef CONFIG_CGROUP_WRITEBACK
	struct address_space *mapping = folio->mapping;
	struct dirty_words *w = dirty_folio_words(folio);
	struct dirty_flow *flow;
	long owned;

	if (!w || !wb->blkcg_css->parent || !dirty_is_data(mapping->host))
		return;
	guard(rcu)();
	flow = dirty_flow_of(wb->blkcg_css, wb->bdi);
	if (!flow)
		return;
	dirty_note_mapping(flow, mapping);
	owned = dirty_own(w, folio_nr_pages(folio), flow);
	/* free of charge: nothing limited the group when it dirtied these pages */
	atomic64_add((s64)owned << PAGE_SHIFT, &flow->paid);
#endif
}

/**
 * dirty_owner_queue - queue the inodes of a wb that limited groups have written to before others
 * @wb:		the wb
 *
 * The eldest are to be written first.  Other inodes stay where they are, and as old.
 *
 * Context: wb->list_lock held.  Takes some 100 ns for each dirty inode of the wb.
 * Return: the number of inodes that were looked at.
 */
int dirty_owner_queue(struct bdi_writeback *wb)
{
	struct list_head *lists[] = { &wb->b_io, &wb->b_more_io, &wb->b_dirty };
	struct inode *inode, *next;
	LIST_HEAD(owned);
	int seen = 0;

	lockdep_assert_held(&wb->list_lock);
	for (int i = 0; i < ARRAY_SIZE(lists); i++) {
		list_for_each_entry_safe_reverse(inode, next, lists[i], i_io_list) {
			seen++;
			if (!dirty_owner_is_owned(inode))
				continue;
			spin_lock(&inode->i_lock);
			inode_state_set(inode, I_SYNC_QUEUED);
			list_move(&inode->i_io_list, &owned);
			spin_unlock(&inode->i_lock);
		}
	}
	list_splice_tail(&owned, &wb->b_io);
	return seen;
}

/**
 * dirty_owner_is_next - have limited groups written to the inode that is to be written next?
 * @wb:		the wb
 *
 * Context: wb->list_lock held.
 * Return: true if so.
 */
bool dirty_owner_is_next(const struct bdi_writeback *wb)
{
	return !list_empty(&wb->b_io) &&
	       dirty_owner_is_owned(list_last_entry(&wb->b_io, struct inode, i_io_list));
}
