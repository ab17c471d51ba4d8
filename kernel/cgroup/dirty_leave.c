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

/* Do pages of an inode need nothing that the current task dirties?  See dirty_may_write(). */
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
 * dirty_may_write - may the current task write to a file without being asked?
 * @file:	the file
 * @len:	bytes that it wants to write
 * @free:	what current->dirty_free is to be while it does
 *
 * If it is of the root group, or of one that nothing limited there a moment ago.  Most are;
 * they are not to pay for it by much.
 *
 * Context: may sleep.
 * Return: true if so; false if that is for dirty_admit() to say.
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
	/* nothing limited the group when it dirtied them */
	atomic64_add((s64)owned << PAGE_SHIFT, &flow->paid);
#endif
}
