// SPDX-License-Identifier: GPL-2.0
/*
 * Getting disks ready for settings that apply to all of them: a cgroup's weight, or its limits for
 * all devices.
 *
 * While there is such a setting, every open disk is ready, so no bio gets round it.  Whoever makes
 * a setting first gets the disks ready that are open, or fails; whoever opens a disk gets it ready
 * before its first bio, or fails.  One of the two sees the other: the setting is counted before
 * disks are looked at, and the open is counted before it looks for settings.
 *
 * This takes memory and no I/O: a disk that hangs is made ready as fast as any other.
 */
#include "ioband.h"

DEFINE_STATIC_KEY_FALSE(ioband_share_key);
DEFINE_STATIC_KEY_FALSE(ioband_done_key);

/* Get an open disk ready if there is a setting that applies to it.  A dead disk needs nothing. */
static int ioband_ready_disk(struct gendisk *disk)
{
	int ret;

	/* no weights on zoned devices, where writes of a zone must stay in order */
	if (!ioband_has_defaults() &&
	    (!atomic_read(&ioband_nr_weights) || blk_queue_is_zoned(disk->queue)))
		return 0;
	ret = ioband_activate(disk);
	if (ret > 0)
		ioband_activated(disk);
	return ret == -ENODEV ? 0 : min(ret, 0);
}

/* A disk is opened, and counts as open: get it ready.  May sleep.  Returns 0 or -ENOMEM. */
int ioband_open_disk(struct gendisk *disk)
{
	smp_mb__after_atomic();	/* pairs with ioband_ready_all() */
	return ioband_ready_disk(disk);
}

/*
 * Get all open disks ready for a setting that is about to be made: until the caller has made it, it
 * counts in @nr as one more.  May sleep.  Returns 0, or -ENOMEM: then @nr is as before.
 */
int ioband_ready_all(atomic_t *nr)
{
	struct class_dev_iter iter;
	struct device *dev;
	int ret = 0;

	atomic_inc(nr);
	smp_mb__after_atomic();	/* pairs with ioband_open_disk() */
	class_dev_iter_init(&iter, &block_class, NULL, &disk_type);
	while (!ret && (dev = class_dev_iter_next(&iter)))
		if (disk_openers(dev_to_disk(dev)))
			ret = ioband_ready_disk(dev_to_disk(dev));
	class_dev_iter_exit(&iter);
	if (ret)
		atomic_dec(nr);
	return ret;
}

/* Have all bios pass the share gate, when the first weight is set.  May sleep; no locks of ours. */
void ioband_share_begin(void)
{
	/* a key is patched place by place, so completions have to be on before submissions */
	static_branch_enable(&ioband_done_key);
	static_branch_enable(&ioband_share_key);
}
