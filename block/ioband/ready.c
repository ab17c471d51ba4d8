// SPDX-License-Identifier: GPL-2.0
/*
 * Getting disks ready for settings that apply to all of them: a cgroup's weight, or its limits for
 * all devices.  A disk is made ready when its next bio is submitted.
 */
#include <linux/blkdev.h>
#include <linux/jiffies.h>
#include <linux/sched/mm.h>

#include "ioband.h"

DEFINE_STATIC_KEY_FALSE(ioband_share_key);
DEFINE_STATIC_KEY_FALSE(ioband_done_key);

/* the disk that ioband_want_work gets ready */
static struct gendisk *ioband_wanted;
/* jiffies until which no disk is made ready, after one has failed */
static unsigned long ioband_want_after = INITIAL_JIFFIES;

static void ioband_want_workfn(struct work_struct *work)
{
	struct gendisk *disk = ioband_wanted;
	unsigned int memflags;
	int ret;

	/* as in ioband_write_line() */
	memflags = memalloc_noio_save();
	scoped_guard(mutex, &disk->queue->rq_qos_mutex)
		ret = ioband_activate(disk);
	memalloc_noio_restore(memflags);
	if (ret > 0)
		ioband_activated(disk);
	else if (ret < 0)
		WRITE_ONCE(ioband_want_after, jiffies + HZ);
	put_disk(disk);
	/* pairs with the cmpxchg in ioband_want(): this disk is finished with */
	smp_store_release(&ioband_wanted, NULL);
}

static DECLARE_WORK(ioband_want_work, ioband_want_workfn);

/**
 * ioband_want - have a disk made ready for settings that apply to all devices
 * @disk:	a disk that is in use and not ready
 *
 * The work is done later, for one disk at a time.  While it is busy with another disk, this
 * does nothing: the next bio to @disk asks again.
 *
 * Context: any.
 */
void ioband_want(struct gendisk *disk)
{
	if (disk->queue->ioband || READ_ONCE(ioband_wanted) ||
	    time_before(jiffies, READ_ONCE(ioband_want_after)))
		return;
	/* a path of a multipath device is not limited, so that failover does not wait */
	if ((disk->flags & GENHD_FL_HIDDEN) || !disk_live(disk))
		return;
	get_device(disk_to_dev(disk));
	if (cmpxchg(&ioband_wanted, NULL, disk))
		put_disk(disk);
	else
		queue_work(system_dfl_wq, &ioband_want_work);
}

/**
 * ioband_share_begin - have all bios pass the share gate, when the first weight is set
 *
 * Context: may sleep; none of ioband's locks held.
 */
void ioband_share_begin(void)
{
	static DEFINE_MUTEX(once);

	guard(mutex)(&once);
	if (static_key_enabled(&ioband_share_key))
		return;
	static_branch_inc(&ioband_key);
	/* a key is patched place by place, so completions have to be on before submissions */
	static_branch_enable(&ioband_done_key);
	static_branch_enable(&ioband_share_key);
}
