// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/block/DISK/ioband/: the state of a device and its groups.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/string_choices.h>

#include "../ioband.h"

static void ioband_show_dir(struct seq_file *sf, struct ioband_dir *dir, s64 now)
{
	static const char * const states[] = { "idle", "ready", "timed" };
	struct ioband_rule *rule = &dir->rule;

	if (!rule->limited && !dir->nr_throttled)
		return;
	seq_printf(sf, " %s: held=%u nr_throttled=%llu nr_owed=%llu",
		   str_write_read(ioband_rw(dir)), dir->held, dir->nr_throttled, dir->nr_owed);
	if (rule->limited)
		seq_printf(sf, " gate=%s", states[dir->gate.state]);
	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];

		if (ioband_limits(rule, unit))
			seq_printf(sf, " %s=%llu burst_ns=%lld ahead_ns=%lld",
				   unit == IOBAND_BYTES ? "bps" : "iops", b->rate.per_sec,
				   b->rate.burst, (s64)atomic64_read(&b->tat) - now);
	}
}

static void ioband_show_share(struct seq_file *sf, struct ioband_grp *grp)
{
	static const char * const where[] = { "away", "queued", "flying", "stuck" };
	struct ioband_share *g = &grp->share;
	u64 asked, got;

	if (!g->last_done && !g->used.second && g->own.where == IOBAND_AWAY)
		return;
	ioband_share_parts(grp, &asked, &got);
	seq_printf(sf, " share: weight=%u share_ppm=%llu got_ppm=%llu %s inflight=%u share_waits=%llu share_wait_ns=%lld think_ns=%lld",
		   g->weight, asked, got, where[g->own.where], g->infl,
		   g->nr_waited, g->waited_ns, g->think);
	if (g->own.where != IOBAND_AWAY)
		seq_printf(sf, " behind_ns=%lld",
			   -ioband_lead_ns(grp));
}

static bool ioband_worth_showing(struct ioband_grp *grp)
{
	lockdep_assert_held(&grp->dev->lock);
	for (int rw = READ; rw <= WRITE; rw++)
		if (grp->dir[rw].rule.limited || grp->dir[rw].nr_throttled)
			return true;
	return grp->share.last_done || grp->share.used.second;
}

/* One line for each group that has limits, was held, or shares by weight; removed ones, too. */
static void ioband_show_grp(struct seq_file *sf, struct blkcg_gq *blkg, struct ioband_dev *dev)
{
	struct ioband_grp *grp = blkg_to_grp(blkg);

	/* a queue may have groups of its previous disk */
	if (!grp || grp->dev != dev)
		return;
	guard(spinlock_irqsave)(&grp->dev->lock);
	if (!ioband_worth_showing(grp))
		return;
	seq_printf(sf, "cg=%llu%s", cgroup_id(blkg->blkcg->css.cgroup),
		   grp->offline ? " removed" : "");
	for (int rw = READ; rw <= WRITE; rw++)
		ioband_show_dir(sf, &grp->dir[rw], ktime_get_ns());
	ioband_show_share(sf, grp);
	seq_putc(sf, '\n');
}

static int ioband_groups_show(struct seq_file *sf, void *v)
{
	/* the device is freed after its debugfs directory is removed */
	struct ioband_dev *dev = sf->private;
	struct request_queue *q = dev->q;
	struct blkcg_gq *blkg;

	/* groups are freed, and leave the list, under blkcg_mutex */
	guard(mutex)(&q->blkcg_mutex);
	spin_lock_irq(&q->queue_lock);
	list_for_each_entry(blkg, &q->blkg_list, q_node) {
		if (seq_has_overflowed(sf))
			break;
		ioband_show_grp(sf, blkg, dev);
		/* there may be thousands of groups */
		spin_unlock_irq(&q->queue_lock);
		cond_resched();
		spin_lock_irq(&q->queue_lock);
	}
	spin_unlock_irq(&q->queue_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ioband_groups);

/* How the device is shared by weight, and what has been measured of it. */
static int ioband_share_show(struct seq_file *sf, void *v)
{
	static const char * const phases[] = {
		"open", "probe", "settled", "dip",
	};
	struct ioband_dev *dev = sf->private;
	struct ioband_sharer *sh = &dev->share;

	guard(spinlock_irq)(&dev->lock);
	seq_printf(sf, "depth=%llu %s leading=%u most=%u ahead=%u inflight=%u outstanding=%u passed=%u active=%u%s opened=%u costs=%u leases=%u gap_ns=%lld latency_ns=%lld lag_ns=%lld stuck=%u\n",
		   (sh->depth.at_once + 512) >> 10, phases[sh->depth.phase],
		   min(ioband_depth_now(sh), sh->depth.ceiling),
		   min(sh->depth.most, sh->depth.ceiling), sh->ahead, sh->infl,
		   sh->outstanding, ioband_passed_sum(dev), sh->nr_active,
		   ioband_is_aside(dev) ? " aside" : dev->solo ? " solo" : dev->open ? " open" :
		   dev->leasing ? " leasing" : "",
		   sh->nr_opened, sh->worth.nr_costs, dev->lease_nr,
		   sh->gap, sh->latency, sh->lag, sh->stuck);
	for (int size = 0; size < 2 * IOBAND_WINDOW_SIZES; size++) {
		u32 bytes = sh->bytes[size] >> 8;
		bool write = size >= IOBAND_WINDOW_SIZES;

		if (bytes)
			seq_printf(sf, "%s bytes=%u cost_ns=%llu idle_ns=%llu\n",
				   str_write_read(write), bytes,
				   ioband_cost_of(&sh->cost, write, bytes) >> 8,
				   sh->depth.window.class[size].idle_ns);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ioband_share);

/*
 * Create the debugfs files of a device.  They are removed together with the directory of the queue.
 * May sleep; no lock of the queue held.
 */
void ioband_debugfs_register(struct gendisk *disk)
{
	struct request_queue *q = disk->queue;
	unsigned int memflags = blk_debugfs_lock(q);

	if (q->debugfs_dir) {
		struct dentry *dir = debugfs_create_dir("ioband", q->debugfs_dir);

		debugfs_create_file("groups", 0400, dir, disk->ioband, &ioband_groups_fops);
		debugfs_create_file("share", 0400, dir, disk->ioband, &ioband_share_fops);
		/* for tests on slow machines: sets the I/O rate that begins leases, see lease.c */
		debugfs_create_u64("lease_gap_ns", 0600, dir, &disk->ioband->share.lease_gap_ns);
	}
	blk_debugfs_unlock(q, memflags);
}
