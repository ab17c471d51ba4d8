// SPDX-License-Identifier: GPL-2.0
/*
 * ioband - one cgroup policy for block I/O
 *
 * The problem.  An administrator wants to say "this group gets at most 3 MiB/s of
 * that disk" and have exactly that, whatever the device, the scheduler and the
 * size of the I/O; and nobody else may notice.
 *
 * The model.  A limit is a virtual clock, see rate.h.  A group with limits on a
 * device and direction is a gate.  On the default hierarchy a bio passes the
 * gates of its group and of all above it; on v1 the one of its group.  It pays at
 * all of them or at none.
 *
 *	submit_bio()
 *	    |		v1, dirty pages: writeback.c makes it the group's that dirtied
 *	    |		them
 *	submit_bio_noacct()
 *	    |
 *	admit.c		enough at every gate, and nobody waits there: go on
 *	    |		else
 *	queue.c		wait in the group's fifo; gates take the groups below
 *	    |		them in turn
 *	dispatch.c	a timer, set to when the first may go; submitted from the
 *	    |		CPU it came from
 *	share.c		where weights are set: wait while the device has enough
 *	    |		to do; the group with the least of its share goes first
 *	complete.c, observe.c
 *
 * A bio is held before it enters the queue: it has no tag, no queue reference
 * and no lock, so nothing but its group waits for it.  Those that others would
 * wait for (metadata, swap, writeback that somebody waits for) pass at once, and
 * the group owes.
 *
 * Example, default hierarchy: A has wbps=2097152, its children B and C write as
 * much as they can, C has wbps=1572864.  Gates are A and C.  B's bios wait at A,
 * C's at C first.  A takes B and C in turn, so each gets 1 MiB/s.  B stops: C
 * goes on at its own 1.5 MiB/s, and A lets half a MiB/s go unused.
 *
 * Shares.  Who is active on a device gets its time in proportion to the weights, see
 * share.h.  That can only be so for what waits here, so no more I/Os are in the device
 * than it needs to be busy, see depth.h.
 *
 * Lifetimes.  A device's ioband_dev comes with its first rule, or its first bio under
 * weights, and goes with the disk and the last of its groups.  Groups are blkg policy
 * data.  A removed group keeps its rule for the bios that it still has waiting, which
 * keep it alive (I2).
 *
 * Not goals: scheduling inside the device, latency targets, a hierarchy of our
 * own, user space helpers.
 */
#include <linux/blkdev.h>
#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/slab.h>

#include "ioband.h"

#define CREATE_TRACE_POINTS
#include <trace/events/ioband.h>

DEFINE_STATIC_KEY_FALSE(ioband_key);

static bool ioband_on __ro_after_init = true;
/* of its own: kmalloc() would take nearly twice as much */
static struct kmem_cache *ioband_grps __ro_after_init;

static int __init ioband_setup(char *str)
{
	return !kstrtobool(str, &ioband_on);
}
__setup("ioband=", ioband_setup);

/**
 * ioband_owns_files - who registers the files that two controllers have?
 *
 * Context: from initcalls on.
 * Return: true unless booted with ioband=off.
 */
bool ioband_owns_files(void)
{
	return ioband_on;
}

static void ioband_dir_init(struct ioband_grp *grp, struct ioband_dir *dir)
{
	dir->grp = grp;
	dir->gate.kind = IOBAND_GATE;
	dir->gate.ready = RB_ROOT_CACHED;
	dir->source.kind = IOBAND_SOURCE;
	bio_list_init(&dir->fifo);
	INIT_LIST_HEAD(&dir->active);
	dir->limit[IOBAND_BYTES] = U64_MAX;
	dir->limit[IOBAND_IOS] = U64_MAX;
}

static struct blkg_policy_data *ioband_pd_alloc(struct gendisk *disk,
						struct blkcg *blkcg, gfp_t gfp)
{
	struct ioband_grp *grp;
	int cpu;

	grp = kmem_cache_alloc_node(ioband_grps, gfp | __GFP_ZERO, disk->node_id);
	if (!grp)
		return NULL;
	/* the root is there before anybody knows which hierarchy there will be */
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys) || blkcg == &blkcg_root) {
		grp->stat = alloc_percpu_gfp(struct ioband_stat, gfp);
		if (!grp->stat) {
			kmem_cache_free(ioband_grps, grp);
			return NULL;
		}
		for_each_possible_cpu(cpu)
			u64_stats_init(&per_cpu_ptr(grp->stat, cpu)->sync);
	}
	for (int rw = READ; rw <= WRITE; rw++)
		ioband_dir_init(grp, &grp->dir[rw]);
	grp->debt.kind = IOBAND_DEBT;
	return &grp->pd;
}

static void ioband_pd_init(struct blkg_policy_data *pd)
{
	struct request_queue *q = pd_to_blkg(pd)->q;
	struct ioband_grp *grp = pd_to_grp(pd);

	grp->careful = blk_queue_is_zoned(q);
	ioband_weight_init(grp);
	ioband_dev_get(q->ioband);
	/* pairs with ioband_is_ready() */
	smp_store_release(&grp->dev, q->ioband);
}

static void ioband_pd_online(struct blkg_policy_data *pd)
{
	for (int rw = READ; rw <= WRITE; rw++)
		ioband_link(pd_to_grp(pd), rw);
	ioband_weight_online(pd_to_grp(pd));
}

static void ioband_pd_offline(struct blkg_policy_data *pd)
{
	/* an activation that failed leaves nothing that could be removed, I2 */
	if (blkcg_policy_enabled(pd_to_blkg(pd)->q, &blkcg_policy_ioband))
		ioband_removed(pd_to_grp(pd));
}

static void ioband_grp_free(struct rcu_head *rcu)
{
	struct blkg_policy_data *pd =
		container_of(rcu, struct blkg_policy_data, rcu_head);
	struct ioband_grp *grp = pd_to_grp(pd);

	for (int rw = READ; rw <= WRITE; rw++)
		ioband_rule_free(rcu_dereference_protected(grp->dir[rw].rule, true));
	free_percpu(grp->stat);
	if (grp->dev)
		ioband_dev_put(grp->dev);
	kmem_cache_free(ioband_grps, grp);
}

static void ioband_pd_free(struct blkg_policy_data *pd)
{
	call_rcu(&pd->rcu_head, ioband_grp_free);
}

struct blkcg_policy blkcg_policy_ioband = {
	.dfl_cftypes		= ioband_files,
	.legacy_cftypes		= ioband_legacy_files,

	.cpd_alloc_fn		= ioband_cpd_alloc,
	.cpd_free_fn		= ioband_cpd_free,
	.pd_alloc_fn		= ioband_pd_alloc,
	.pd_init_fn		= ioband_pd_init,
	.pd_online_fn		= ioband_pd_online,
	.pd_offline_fn		= ioband_pd_offline,
	.pd_free_fn		= ioband_pd_free,
	.pd_reset_stats_fn	= ioband_reset_stats,
	.pd_stat_fn		= ioband_print_stat,
};

/**
 * ioband_activate - get a device ready for rules
 * @disk:	the disk
 *
 * Context: may sleep; rq_qos_mutex held.
 * Return: 1 if this made it so, 0 if it was so, or -errno.
 */
int ioband_activate(struct gendisk *disk)
{
	struct request_queue *q = disk->queue;
	struct ioband_dev *dev;
	int ret;

	lockdep_assert_held(&q->rq_qos_mutex);
	/* pairs with ioband_cancel_bios(): see I3 */
	if (test_bit(GD_DEAD, &disk->state))
		return -ENODEV;
	if (q->ioband)
		return blkcg_policy_enabled(q, &blkcg_policy_ioband) ? 0 : -EOPNOTSUPP;

	dev = ioband_dev_alloc(disk);
	if (!dev)
		return -ENOMEM;
	/* pd_init copies it into the groups, and bios look only there */
	q->ioband = dev;
	ret = blkcg_activate_policy(disk, &blkcg_policy_ioband);
	if (ret) {
		q->ioband = NULL;
		ioband_dev_free(dev);
		return ret;
	}
	WRITE_ONCE(dev->ready, true);
	return 1;
}

/**
 * ioband_activated - the part of ioband_activate() that wants no locks held
 * @disk:	the disk, with a reference
 *
 * Context: may sleep.
 */
void ioband_activated(struct gendisk *disk)
{
	static_branch_inc(&ioband_key);
	ioband_debugfs_register(disk);
}

/**
 * ioband_exit_disk - undo ioband_activate()
 * @disk:	a disk whose blkgs are gone
 *
 * Context: may sleep.
 */
void ioband_exit_disk(struct gendisk *disk)
{
	struct ioband_dev *dev = disk->queue->ioband;

	/* a queue can have got its next disk, and that one rules, by now */
	if (!dev || dev->disk != disk)
		return;
	disk->queue->ioband = NULL;
	ioband_dev_free(dev);
	static_branch_dec(&ioband_key);
}

static int __init ioband_init(void)
{
	if (!ioband_on)
		return 0;
	ioband_grps = KMEM_CACHE(ioband_grp, SLAB_PANIC);
	return blkcg_policy_register(&blkcg_policy_ioband);
}
module_init(ioband_init);
