// SPDX-License-Identifier: GPL-2.0
/*
 * Pages without words, O7: they get words when their inode gets another wb.  This file also tells
 * the flusher which inodes to write for limited groups.
 */
#include <linux/backing-dev.h>

#include "dirty_leave.h"

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
