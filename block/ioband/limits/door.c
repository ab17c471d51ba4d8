// SPDX-License-Identifier: GPL-2.0
/*
 * Doors: where a task waits for its limits before it takes a lock.
 *
 * Direct I/O is paid before it is submitted, by a ticket, so that nothing waits with a lock.  Only
 * asynchronous I/O goes on without, as long as its bios may be held.
 *
 * A task that reads pages which are not in the page cache takes its turn in the same way, and pays
 * for up to a burst.  What it reads beyond that, as by readahead, is a debt at the head of the
 * line, see debt.c.  Without that, each of many tasks could begin a debt at the same time.
 *
 * A read() or write() of many megabytes is divided into parts, each of which is paid for by itself.
 */
#include <linux/backing-dev.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>

#include "../ioband.h"

/*
 * The group of a cgroup on the disk of a backing device; NULL if there is no disk, as for btrfs, or
 * no group.  A cgroup that has not used the disk yet has no group and no limits of its own there:
 * then it is the group of its nearest ancestor that has one.  RCU read side.
 */
struct ioband_grp *ioband_bdi_grp(struct cgroup_subsys_state *css, struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);
	struct blkcg_gq *blkg = NULL;
	struct ioband_grp *grp;

	/* only a disk can be the owner of a backing device */
	if (!owner)
		return NULL;
	if (ioband_has_defaults())
		ioband_default_meet(css, dev_to_disk(owner));
	for (; css && !blkg; css = ioband_css_above(css))
		blkg = blkg_lookup(css_to_blkcg(css), dev_to_disk(owner)->queue);
	grp = blkg ? blkg_to_grp(blkg) : NULL;
	return grp && ioband_is_ready(grp) ? grp : NULL;
}

/*
 * The inode of a file on a disk or of a block device, NULL for another file, or if its pages are
 * memory.  Overlayfs opens the real file later, for a read() of its own.
 */
static struct inode *ioband_inode_of(struct file *file)
{
	struct inode *inode = S_ISREG(file_inode(file)->i_mode) ?
		d_real_inode(file_dentry(file)) : file->f_mapping->host;

	return (S_ISREG(inode->i_mode) || S_ISBLK(inode->i_mode)) && !IS_DAX(inode) &&
	       READ_ONCE(inode_to_bdi(inode)->owner) ? inode : NULL;
}

/*
 * Can a limit bind the current task on any disk?  If none can, it passes doors at once until that
 * may have changed, I17.  Sets @slow if one may allow less than IOBAND_DOOR_BYTES a second.  RCU
 * read side.
 */
static __always_inline bool ioband_may_bind_task(bool *slow)
{
	/* pairs with ioband_bound_anew() */
	unsigned long epoch = atomic_long_read_acquire(&ioband_epoch);
	/* on v1 pages without a dirtier are the root group's, which must not pay for others */
	bool bound = false, roots = !cgroup_subsys_on_dfl(io_cgrp_subsys) &&
				    atomic_read(&ioband_blkcg(&blkcg_root)->nr[IOBAND_LIMITED]);

	for (struct cgroup_subsys_state *css = task_css(current, io_cgrp_id); css;
	     css = ioband_css_above(css)) {
		struct ioband_blkcg *b = ioband_blkcg(css_to_blkcg(css));

		if (atomic_read(&b->nr[IOBAND_LIMITED])) {
			bound = true;
			*slow |= atomic_read(&b->nr[IOBAND_SLOW]);
		}
	}
	if (!bound && !roots && !current->ioband_debts && !(current->flags & PF_KTHREAD))
		current->ioband_free = epoch;
	return bound;
}

/*
 * Does no limit bind the current task?  As ioband_is_free() from now on; false for threads of the
 * kernel, which may act for a group.  RCU read side; any locks.
 */
bool ioband_find_free(void)
{
	bool slow = false;

	return !(current->flags & PF_KTHREAD) && !ioband_may_bind_task(&slow) && ioband_is_free();
}

/* The current task, which is in its old cgroup yet, is about to move tasks.  Returns 0. */
int ioband_moves(struct cgroup_taskset *tset)
{
	struct cgroup_subsys_state *css;

	cgroup_taskset_first(tset, &css);
	scoped_guard(rcu)
		ioband_share_debts(css);
	return 0;
}

/* Tasks have moved to another cgroup.  May sleep. */
void ioband_moved(struct cgroup_taskset *tset)
{
	ioband_bound_anew();
}

/* The direction of the group that pays for the current task's I/O to an inode, if it has limits. */
static struct ioband_dir *ioband_door_dir(struct inode *inode, int rw)
{
	struct ioband_grp *grp = ioband_bdi_grp(task_css(current, io_cgrp_id),
						inode_to_bdi(inode));
	struct ioband_dir *dir = grp ? &grp->dir[rw] : NULL;

	if (dir && ioband_is_stale(dir)) {
		guard(spinlock_irqsave)(&grp->dev->lock);
		ioband_relink(dir, ktime_get_ns());
	}
	return dir && READ_ONCE(dir->lim) ? dir : NULL;
}

/* Is a page in the page cache that has readahead go on?  RCU read side. */
static bool ioband_is_mark(struct address_space *mapping, pgoff_t index)
{
	struct folio *folio = xa_load(&mapping->i_pages, index);

	return folio && !xa_is_value(folio) && folio_test_readahead(folio);
}

/*
 * What is paid at the door for a read of the page cache, bytes: nothing if all its pages are there,
 * and it causes no readahead.  It is no more than any burst, so that it can be given back exactly.
 * What is read beyond that is a debt, at the head of the line.  RCU read side.
 */
static size_t ioband_missing(struct file *file, struct address_space *mapping, loff_t pos,
			     size_t count)
{
	const struct file_ra_state *ra = &file->f_ra;
	pgoff_t first = pos >> PAGE_SHIFT, last = (pos + count - 1) >> PAGE_SHIFT;
	pgoff_t mark = ra->start + ra->size - ra->async_size, missing;
	/* readahead that goes on reads twice as much as the last time */
	size_t ahead = min_t(size_t, 2 * ra->size, ra->ra_pages) << PAGE_SHIFT;

	last = min(last, first + (IOBAND_DOOR_BYTES >> PAGE_SHIFT) - 1);
	if (ra->async_size && mark >= first && mark <= last && ioband_is_mark(mapping, mark))
		return min(ahead, IOBAND_BURST_BYTES);
	/* page_cache_next_miss() does not look at index 0 */
	if (!first && !xa_load(&mapping->i_pages, 0))
		missing = 0;
	else if (last)
		missing = page_cache_next_miss(mapping, max(first, 1), last - max(first, 1) + 1);
	else
		return 0;
	if (missing < first || missing > last)
		return 0;
	return min((last - missing + 1) << PAGE_SHIFT, IOBAND_BURST_BYTES);
}

/* Would an I/O probably be admitted?  RCU read side; the answer may change. */
static bool ioband_may_pass(struct ioband_dir *gate, u64 bytes)
{
	const u64 units[] = { bytes, 1 };

	return !ioband_is_crowded(gate) && !ioband_units_ns(gate, units, ktime_get_ns());
}

/* Do tasks share the position of a file, which is locked while one of them reads? */
static bool ioband_is_shared(struct file *file)
{
	return (file->f_mode & FMODE_ATOMIC_POS) && file_count(file) > 1;
}

/*
 * Have the current task pay its debts, and give back what it has left of the last call.  A task can
 * ask for many I/Os in one system call.
 */
static noinline int ioband_door_debts(struct file *file, bool nowait)
{
	ioband_credit_return();
	if (nowait && ioband_in_debt())
		return ioband_inode_of(file) ? -EAGAIN : 0;
	while (ioband_debts_wait())
		;
	return fatal_signal_pending(current) ? -EINTR : 0;
}

int __ioband_door(struct file *file, int rw, loff_t pos, size_t count, bool async, bool nowait)
{
	bool direct = file->f_flags & O_DIRECT, slow = count > IOBAND_DOOR_BYTES;
	struct ioband_blkcg *b;
	struct ioband_dir *dir;
	struct gendisk *disk;
	struct inode *inode;
	int ret;

	if (current->ioband_debts || current->ioband_credit) {
		ret = ioband_door_debts(file, nowait);
		if (ret)
			return ret;
	}
	if (ioband_may_owe_below() && (direct || rw == READ) &&
	    (async || !ioband_is_shared(file))) {
		inode = ioband_inode_of(file);
		ret = inode ? ioband_door_below(inode, nowait) : 0;
		if (ret)
			return ret;
	}
	scoped_guard(rcu) {
		if (!ioband_may_bind_task(&slow))
			return 0;
		b = ioband_blkcg(css_to_blkcg(task_css(current, io_cgrp_id)));
		/* it may be held, as nothing of its group is in line, or pages pay when dirtied */
		if (direct ? async && !slow && !atomic_read(&b->nr[IOBAND_LINES]) : rw == WRITE)
			return 0;
		inode = ioband_inode_of(file);
		if (!inode)
			return 0;
		count = min(count, MAX_RW_COUNT);
		if (rw == READ)
			count = min_t(u64, count, max(i_size_read(inode) - pos, 0));
		dir = count ? ioband_door_dir(inode, rw) : NULL;
		if (!dir || (direct && async && ioband_may_line_up(dir, count)) ||
		    ioband_may_pass(READ_ONCE(dir->lim),
				    direct ? count : min(count, IOBAND_BURST_BYTES)))
			return 0;
		if (!direct)
			count = ioband_is_shared(file) ? 0 :
				ioband_missing(file, inode->i_mapping, pos, count);
		if (!count)
			return 0;
		disk = dir->grp->dev->disk;
	}
	if (nowait)
		return -EAGAIN;
	ret = ioband_prepay(disk, rw, count);
	/* what is in the page cache can be read from a disk that is removed */
	return ret == -EIO && !direct ? 0 : ret;
}

int __ioband_settle(void)
{
	while (current->throttle_disk && !fatal_signal_pending(current))
		blkcg_maybe_throttle_current();
	return current->throttle_disk ? -EINTR : 0;
}

ssize_t __ioband_vfs_rw(struct file *file, char __user *buf, size_t count, loff_t *pos, int rw)
{
	size_t part = SIZE_MAX, len;
	ssize_t ret, done = 0;
	bool slow = false;

	scoped_guard(rcu)
		if (ioband_may_bind_task(&slow) && ioband_inode_of(file))
			part = IOBAND_DOOR_BYTES;

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
