/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __DIRTY_LEAVE_H
#define __DIRTY_LEAVE_H

/*
 * Tasks and pages that need no accounting: those of the root group, and those of groups that
 * nothing limits; see dirty_leave.c.
 */
#include <linux/blk-cgroup.h>
#include <linux/dcache.h>
#include <linux/jiffies.h>
#include <linux/magic.h>

#include "dirty_owner-internal.h"

/*
 * The wb of an inode, NULL if it has none yet.  The inode may switch to another wb at any
 * time; the one returned is not freed before the end of the RCU read side.
 */
static inline struct bdi_writeback *dirty_wb_of(struct inode *inode)
{
#ifdef CONFIG_CGROUP_WRITEBACK
	return READ_ONCE(inode->i_wb);
#else
	return inode_to_wb(inode);
#endif
}

static inline struct cgroup_subsys_state *dirty_css_of_wb(const struct bdi_writeback *wb)
{
#ifdef CONFIG_CGROUP_WRITEBACK
	return wb->blkcg_css;
#else
	return blkcg_root_css;
#endif
}

/* Can one bio of this filesystem hold pages of several inodes?  In most it cannot. */
static inline bool dirty_shares_bios(const struct inode *inode)
{
	const unsigned long magic = inode->i_sb->s_magic;

	return magic == F2FS_SUPER_MAGIC || magic == NILFS_SUPER_MAGIC;
}

/* The inode whose pages a write() to a file dirties: that of the lower file of an overlay. */
static inline struct inode *dirty_inode_of(struct file *file)
{
	struct inode *inode = file->f_mapping->host;

	return S_ISREG(inode->i_mode) ? d_real_inode(file->f_path.dentry) : inode;
}

/* A flow may dirty this many pages within a jiffy before its limits are looked up again. */
#define DIRTY_FREE_PAGES	256

/*
 * Is the last look at a flow of this jiffy, and has the flow dirtied few pages since?  If it has
 * truncated some, ->dirtied is less than it was then, and tells nothing.
 */
static inline bool dirty_is_fresh(struct dirty_flow *flow)
{
	long left = READ_ONCE(flow->free_to) - atomic_long_read(&flow->dirtied);

	return !time_after(jiffies, READ_ONCE(flow->looked_at)) && left > 0 &&
	       left <= DIRTY_FREE_PAGES;
}

/* Make a flow the dirtier of those pages that have none.  Returns how many had none. */
static __always_inline long dirty_own(struct dirty_words *w, long nr,
				      struct dirty_flow *flow)
{
	long owned = 0;

	for (long i = 0; i < nr; i++)
		owned += !READ_ONCE(w[i].dirty) && !cmpxchg(&w[i].dirty, 0, flow->id);
	if (!owned)
		return 0;
	atomic_long_add(owned, &flow->dirtied);
	if (!dirty_redeem(flow, owned) && (READ_ONCE(flow->limited) || !dirty_is_fresh(flow)))
		current->dirty_due = true;
	return owned;
}

#endif /* __DIRTY_LEAVE_H */
