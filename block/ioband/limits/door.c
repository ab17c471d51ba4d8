// SPDX-License-Identifier: GPL-2.0
/*
 * Doors: where a task waits for its limits before it takes a lock.
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

/**
 * ioband_bdi_debt_ns - return the time until a group has repaid its debts on a backing device
 * @css:	the group
 * @bdi:	the backing device
 *
 * Context: any; takes dev->lock.
 * Return: ns, 0 if there is no disk.
 */
u64 ioband_bdi_debt_ns(struct cgroup_subsys_state *css, struct backing_dev_info *bdi)
{
	struct ioband_grp *grp;

	guard(rcu)();
	grp = ioband_bdi_grp(css, bdi);
	return grp ? ioband_grp_debt_ns(grp, NULL) : 0;
}

/**
 * ioband_wait_later - have the current task wait for a debt on its way to user space
 * @disk:	the disk
 *
 * A task waits for one disk: for that on which its group's debt takes longest to repay.
 *
 * Context: process context; see blkcg_schedule_throttle().
 */
void ioband_wait_later(struct gendisk *disk)
{
	struct gendisk *other = current->throttle_disk;
	struct cgroup_subsys_state *css;

	scoped_guard(rcu) {
		css = task_css(current, io_cgrp_id);
		if (other && other != disk &&
		    ioband_bdi_debt_ns(css, disk->bdi) < ioband_bdi_debt_ns(css, other->bdi))
			return;
	}
	blkcg_schedule_throttle(disk, false);
}

/* A part of a read() by the current task, bytes, in I/Os of a page; SIZE_MAX without limits. */
static size_t ioband_part_of(struct file *file)
{
	/* overlayfs opens the real file later, for a read() of its own */
	struct inode *inode = S_ISREG(file_inode(file)->i_mode) ?
		d_real_inode(file_dentry(file)) : file->f_mapping->host;
	u64 bytes = U64_MAX;

	if ((file->f_flags & O_DIRECT) || !(S_ISREG(inode->i_mode) || S_ISBLK(inode->i_mode)))
		return SIZE_MAX;
	guard(rcu)();
	for (struct ioband_grp *grp = ioband_bdi_grp(task_css(current, io_cgrp_id),
						     inode_to_bdi(inode));
	     grp; grp = ioband_parent(grp)) {
		const struct ioband_dir *dir = &grp->dir[READ];

		if (!rcu_access_pointer(dir->rule))
			continue;
		bytes = min(bytes, READ_ONCE(dir->limit[IOBAND_BYTES]));
		if (READ_ONCE(dir->limit[IOBAND_IOS]) < U32_MAX)
			bytes = min(bytes, READ_ONCE(dir->limit[IOBAND_IOS]) << PAGE_SHIFT);
	}
	return bytes < SIZE_MAX ? max_t(u64, bytes, IOBAND_DOOR_BYTES) : SIZE_MAX;
}

int __ioband_settle(void)
{
	while (current->throttle_disk && !fatal_signal_pending(current))
		blkcg_maybe_throttle_current();
	return current->throttle_disk ? -EINTR : 0;
}

ssize_t __ioband_vfs_read(struct file *file, char __user *buf, size_t count, loff_t *pos)
{
	size_t part = ioband_part_of(file), len;
	ssize_t ret, done = 0;

	/* vfs_read() refuses the whole call, or reads MAX_RW_COUNT at most */
	if (part == SIZE_MAX || (ssize_t)count < 0 || !access_ok(buf, count))
		return vfs_read(file, buf, count, pos);
	count = min(count, MAX_RW_COUNT);
	do {
		len = min(count - done, part);
		ret = vfs_read(file, buf + done, len, pos);
		done += max(ret, 0);
	} while (ret == len && done < count && !ioband_settle());
	return done ?: ret;
}
