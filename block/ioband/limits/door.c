// SPDX-License-Identifier: GPL-2.0
/*
 * Doors: where a task waits for its limits before it takes a lock.
 *
 * Direct I/O is paid before it is submitted, by a ticket, so that nothing waits with a lock.  Only
 * asynchronous I/O goes on without, as long as its bios may be held.
 *
 * Reads of the page cache pass as a debt, see debt.c.  A read() of many megabytes would make a debt
 * of all of them.  So it is divided into parts, and the task repays between two parts.
 */
#include <linux/backing-dev.h>
#include <linux/ioband.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "../ioband.h"

/**
 * ioband_bdi_grp - find the group of a cgroup on the disk of a backing device
 * @css:	the cgroup
 * @bdi:	the backing device
 *
 * A cgroup that has not used the disk yet has no group and no limits of its own there: then this
 * is the group of its nearest ancestor that has one.
 *
 * Context: RCU read side.
 * Return: the group; NULL if there is no disk, as for btrfs, or no group.
 */
struct ioband_grp *ioband_bdi_grp(struct cgroup_subsys_state *css, struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);
	struct blkcg_gq *blkg = NULL;
	struct ioband_grp *grp;

	/* only a disk can be the owner of a backing device */
	if (!owner)
		return NULL;
	ioband_default_meet(css, dev_to_disk(owner));
	for (; css && !blkg; css = cgroup_subsys_on_dfl(io_cgrp_subsys) ? css->parent : NULL)
		blkg = blkg_lookup(css_to_blkcg(css), dev_to_disk(owner)->queue);
	grp = blkg ? blkg_to_grp(blkg) : NULL;
	return grp && ioband_is_ready(grp) ? grp : NULL;
}

/*
 * The inode of a file on a disk or of a block device, NULL for another file.  Overlayfs opens the
 * real file later, for a read() of its own.
 */
static struct inode *ioband_inode_of(struct file *file)
{
	struct inode *inode = S_ISREG(file_inode(file)->i_mode) ?
		d_real_inode(file_dentry(file)) : file->f_mapping->host;

	return S_ISREG(inode->i_mode) || S_ISBLK(inode->i_mode) ? inode : NULL;
}

/*
 * A part of a read() or write() by the current task, bytes, in I/Os of a page; SIZE_MAX without
 * limits.  Direct I/O is paid before, so that parts of it are as short as can be.
 */
static size_t ioband_part_of(struct file *file, int rw)
{
	struct inode *inode = ioband_inode_of(file);
	u64 bytes = U64_MAX;

	if (!inode)
		return SIZE_MAX;
	guard(rcu)();
	for (struct ioband_grp *grp = ioband_bdi_grp(task_css(current, io_cgrp_id),
						     inode_to_bdi(inode));
	     grp; grp = ioband_parent(grp)) {
		const struct ioband_dir *dir = &grp->dir[rw];

		if (!ioband_limited(&dir->rule))
			continue;
		bytes = min(bytes, READ_ONCE(dir->limit[IOBAND_BYTES]));
		if (READ_ONCE(dir->limit[IOBAND_IOS]) < U32_MAX)
			bytes = min(bytes, READ_ONCE(dir->limit[IOBAND_IOS]) << PAGE_SHIFT);
	}
	if (bytes >= SIZE_MAX)
		return SIZE_MAX;
	return file->f_flags & O_DIRECT ? IOBAND_DOOR_BYTES : max_t(u64, bytes, IOBAND_DOOR_BYTES);
}

/* May one more bio of the current task's group be held?  In any case its gates are up to date. */
static bool ioband_may_go_on(struct ioband_dir *dir, u64 bytes)
{
	s64 now;

	guard(spinlock_irqsave)(&dir->grp->dev->lock);
	now = ktime_get_ns();
	ioband_relink(dir, now);
	return ioband_may_line_up(dir, bytes, now);
}

int __ioband_door(struct file *file, int rw, loff_t pos, size_t count, bool async, bool nowait)
{
	struct inode *inode = ioband_inode_of(file);
	struct ioband_grp *grp;
	struct ioband_dir *dir;
	struct gendisk *disk;

	/* a call can ask for many I/Os, one after the other */
	if (nowait && ioband_in_debt())
		return inode ? -EAGAIN : 0;
	while (ioband_debts_wait())
		;
	if (fatal_signal_pending(current))
		return -EINTR;
	if (!inode || !(file->f_flags & O_DIRECT))
		return 0;
	ioband_credit_return();
	count = min(count, MAX_RW_COUNT);
	if (rw == READ)
		count = min_t(u64, count, max(i_size_read(inode) - pos, 0));
	scoped_guard(rcu) {
		grp = ioband_bdi_grp(task_css(current, io_cgrp_id), inode_to_bdi(inode));
		dir = grp ? &grp->dir[rw] : NULL;
		if (!count || !dir || !ioband_may_owe(dir))
			return 0;
		disk = grp->dev->disk;
		if (ioband_is_stale(dir))
			ioband_may_go_on(dir, count);
		if (ioband_may_pass(dir, count) || (async && ioband_may_go_on(dir, count)))
			return 0;
	}
	return nowait ? -EAGAIN : ioband_prepay(disk, rw, count);
}

int __ioband_settle(void)
{
	while (current->throttle_disk && !fatal_signal_pending(current))
		blkcg_maybe_throttle_current();
	return current->throttle_disk ? -EINTR : 0;
}

ssize_t __ioband_vfs_rw(struct file *file, char __user *buf, size_t count, loff_t *pos, int rw)
{
	size_t part = ioband_part_of(file, rw), len;
	ssize_t ret, done = 0;

	/* the whole call may be refused, for its length or alignment, or ends at MAX_RW_COUNT */
	if ((ssize_t)count < 0 || !access_ok(buf, count) ||
	    ((file->f_flags & O_DIRECT) && !IS_ALIGNED(count, SZ_4K)))
		part = SIZE_MAX;
	else
		count = min(count, MAX_RW_COUNT);
	do {
		len = min(count - done, part);
		ret = rw == READ ? vfs_read(file, buf + done, len, pos) :
				   vfs_write(file, buf + done, len, pos);
		done += max(ret, 0);
	} while (ret == len && done < count && !ioband_settle());
	return done ?: ret;
}
