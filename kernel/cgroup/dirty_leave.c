// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that need no words, and writes that need not be asked: those of the root group, and
 * those of groups that nothing limits in files whose writeback is their own, O7.
 */
#include <linux/backing-dev.h>

#include "dirty_leave.h"

/**
 * dirty_flow_look - does something limit a flow by now that nothing limited a moment ago?
 * @flow:	the flow
 *
 * Context: any locks held.
 * Return: true if nothing does, and its pages need no words.
 */
bool dirty_flow_look(struct dirty_flow *flow)
{
	struct dirty_rate rate;

	/* the lock of i_pages is not enough for what is looked up */
	scoped_guard(rcu)
		rate = dirty_owner_ops->rate(flow->css, flow->bdi);
	if (rate.limited || rate.probe) {
		WRITE_ONCE(flow->words, true);
		return false;
	}
	WRITE_ONCE(flow->looked_at, jiffies);
	return true;
}

/**
 * dirty_may_write - may the current task write to a file without being asked?
 * @file:	the file
 *
 * Context: may sleep.
 * Return: true if so; false if that is for dirty_admit() to say.
 */
bool dirty_may_write(struct file *file)
{
	return dirty_is_roots() || dirty_is_unlimited(inode_to_bdi(dirty_inode_of(file)));
}

/**
 * dirty_wb_to_leave - the wb whose pages need nothing while the current task writes
 * @file:	to this file; dirty_may_write()
 * @len:	so many bytes
 *
 * Context: may sleep.
 * Return: see current->dirty_free.
 */
const struct bdi_writeback *dirty_wb_to_leave(struct file *file, size_t len)
{
#ifdef CONFIG_CGROUP_WRITEBACK
	struct cgroup_subsys_state *css;
	const struct bdi_writeback *wb;
	struct dirty_flow *flow;
	struct inode *inode;

	if (len > DIRTY_WHOLE_BYTES || !(file->f_mode & FMODE_WRITE))
		return NULL;
	inode = dirty_inode_of(file);
	/* also an RCU read side */
	guard(preempt)();
	wb = READ_ONCE(inode->i_wb);
	css = task_css_check(current, io_cgrp_id, true);
	if (!wb || !css->parent)
		return wb;
	flow = this_cpu_read(dirty_hints.by_css);
	if (flow->css == css && flow->bdi == wb->bdi && wb->blkcg_css == css &&
	    !READ_ONCE(flow->words) && !dirty_shares_bios(inode))
		return wb;
#endif
	return NULL;
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
	/* nothing limited the group when it dirtied them */
	atomic64_add((s64)owned << PAGE_SHIFT, &flow->paid);
#endif
}
