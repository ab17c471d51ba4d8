// SPDX-License-Identifier: GPL-2.0
/*
 * What drivers' threads, as of loop, dm-crypt and md, do for a group on disks below their device.
 *
 * Others may wait for such I/O, so limits do not hold it: the ghost of the group owes it, in full.
 * Tasks of the group that use a device above wait until that is paid: before they read or write,
 * or else on their way to user space.  It is not known which disks are below a device: each one
 * counts on which a ghost of their group, or of one above, is in line.
 */
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/major.h>
#include <linux/sched/signal.h>

#include "../ioband.h"

/*
 * May I/O of a backing device become I/O of other disks?  That of btrfs has no disk; dm, md and
 * loop devices have disks or files below.
 */
bool ioband_is_above(struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);

	return !owner || dev_to_disk(owner)->fops->submit_bio ||
	       dev_to_disk(owner)->major == LOOP_MAJOR;
}

/* Have the current task wait for what the ghosts of a group owe now. */
static void ioband_wait_for_ghosts(struct ioband_grp *grp)
{
	for (int rw = READ; rw <= WRITE; rw++) {
		struct ioband_dir *dir = &grp->dir[rw];

		if (!READ_ONCE(dir->ghost.held))
			continue;
		guard(spinlock_irqsave)(&grp->dev->lock);
		/* while a ghost is in line its group exists */
		if (dir->ghost.held)
			ioband_wait_for(NULL, dir, 1 + ioband_units_ns(dir->lim, dir->owed_units,
								       ktime_get_ns()));
	}
}

/*
 * Have the current task wait, where it pays its debts next, for what the ghosts of its group, and
 * of those above, owe on disks that may be below one.  Returns true if it has to wait.  The root
 * group has no ghosts that count: see ioband_may_hold().
 */
static bool ioband_wait_below(void)
{
	struct cgroup_subsys_state *css;
	struct blkcg_gq *blkg;

	ioband_in_debt();	/* forgets waits that are over */
	guard(rcu)();
	for (css = task_css(current, io_cgrp_id); css && css->parent; css = ioband_css_above(css))
		hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
			struct ioband_grp *grp = blkg_to_grp(blkg);

			if (grp && ioband_is_ready(grp))
				ioband_wait_for_ghosts(grp);
		}
	return current->ioband_debts;
}

/*
 * The current task submits a bio to a device: if that is above others, it waits on its way to user
 * space for what its group owes below by now.  Process context.
 */
void ioband_asked_above(struct gendisk *disk)
{
	if (!ioband_is_free() && ioband_is_above(disk->bdi) && ioband_wait_below() &&
	    !current->throttle_disk)
		blkcg_schedule_throttle(disk, false);
}

/*
 * Have the current task wait for what its group owes below the disk of an inode that it is about to
 * read, or to write directly; no locks held.  Returns 0, -EAGAIN if it must not wait, or -EINTR if
 * it is killed.
 */
int ioband_door_below(struct inode *inode, bool nowait)
{
	if (!ioband_is_above(inode_to_bdi(inode)) || !ioband_wait_below())
		return 0;
	if (nowait)
		return -EAGAIN;
	while (ioband_debts_wait())
		;
	return fatal_signal_pending(current) ? -EINTR : 0;
}
