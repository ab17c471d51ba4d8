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
 *	decide.c	whose limits bind who asks for it?  debt.c: it goes, and is owed
 *	    |		else
 *	queue.c		wait in the group's fifo; gates take the groups below
 *	    |		them in turn
 *	dispatch.c	a timer, set to when the first may go; submitted by a worker
 *	    |		near the CPU it came from
 *	share.c		where weights are set: wait while the device has enough
 *	    |		to do; the group with the least of its share goes first
 *	complete.c, observe.c
 *
 * A bio is held before it enters the queue: it has no tag, no queue reference
 * and no lock, so nothing but its group waits for it.  Metadata and swap pass at
 * once, and the group owes; so does writeback that others wait for, within bounds.
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
 * data.  What a removed group still has waiting keeps it alive (I2), under the limits of
 * the groups above.
 *
 * Not goals: scheduling inside the device, latency targets, a hierarchy of our
 * own, user space helpers.
 */
#include <linux/blkdev.h>
#include <linux/init.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ioband.h"

#define CREATE_TRACE_POINTS
#include <trace/events/ioband.h>

DEFINE_STATIC_KEY_FALSE(ioband_key);

/* each has what is before it, and more */
enum ioband_mode {
	IOBAND_OFF,
	IOBAND_LIMITS,
	IOBAND_ON,
};

static enum ioband_mode ioband_mode __ro_after_init =
	IS_ENABLED(CONFIG_BLK_CGROUP_IOBAND_DEFAULT_ON) ? IOBAND_ON :
	IS_ENABLED(CONFIG_BLK_CGROUP_IOBAND_DEFAULT_LIMITS) ? IOBAND_LIMITS :
	IOBAND_OFF;
/* of its own: kmalloc() would take nearly twice as much */
static struct kmem_cache *ioband_grps __ro_after_init;

static int __init ioband_setup(char *str)
{
	static const char * const names[] __initconst = {
		[IOBAND_OFF]	= "off",
		[IOBAND_LIMITS]	= "limits",
		[IOBAND_ON]	= "on",
	};
	int mode = match_string(names, ARRAY_SIZE(names), str);

	if (mode < 0)
		pr_warn("ioband=%s is none of off, limits and on; it is %s\n",
			str, names[ioband_mode]);
	else
		ioband_mode = mode;
	return 1;
}
__setup("ioband=", ioband_setup);

/**
 * ioband_owns_limits - who registers the files of limits?
 *
 * Context: from initcalls on.
 * Return: true if ioband does, false if blk-throttle may.
 */
bool ioband_owns_limits(void)
{
	return ioband_mode >= IOBAND_LIMITS;
}

/**
 * ioband_owns_weights - who registers the files of weights?
 *
 * Context: from initcalls on.
 * Return: true if ioband does, false if iocost may.
 */
bool ioband_owns_weights(void)
{
	return ioband_mode >= IOBAND_ON;
}

static void ioband_free_percpu(struct ioband_grp *grp)
{
	free_percpu(grp->stat);
	free_percpu(grp->lease);
}

/* Returns false if there is no memory; there may be some to free even so. */
static bool ioband_alloc_percpu(struct ioband_grp *grp, bool stats, gfp_t gfp)
{
	int cpu;

	grp->lease = alloc_percpu_gfp(struct ioband_lease, gfp);
	if (!stats || !grp->lease)
		return grp->lease;
	grp->stat = alloc_percpu_gfp(struct ioband_stat, gfp);
	if (!grp->stat)
		return false;
	for_each_possible_cpu(cpu)
		u64_stats_init(&per_cpu_ptr(grp->stat, cpu)->sync);
	return true;
}

static void ioband_grp_free_all(struct ioband_grp *grp)
{
	for (int rw = READ; rw <= WRITE; rw++) {
		ioband_rule_free(rcu_dereference_protected(grp->dir[rw].rule, true));
		ioband_rule_free(grp->dir[rw].spare);
	}
	ioband_free_percpu(grp);
	kmem_cache_free(ioband_grps, grp);
}

static struct blkg_policy_data *ioband_pd_alloc(struct gendisk *disk,
						struct blkcg *blkcg, gfp_t gfp)
{
	struct ioband_grp *grp;
	bool stats;

	grp = kmem_cache_alloc_node(ioband_grps, gfp | __GFP_ZERO, disk->node_id);
	if (!grp)
		return NULL;
	/* the root is there before anybody knows which hierarchy there will be */
	stats = !cgroup_subsys_on_dfl(io_cgrp_subsys) || blkcg == &blkcg_root;
	if (!ioband_alloc_percpu(grp, stats, gfp) || !ioband_default_alloc(grp, blkcg, gfp)) {
		ioband_grp_free_all(grp);
		return NULL;
	}
	grp->io_bytes = IOBAND_IO_BYTES;
	for (int rw = READ; rw <= WRITE; rw++)
		ioband_dir_init(grp, &grp->dir[rw]);
	return &grp->pd;
}

static void ioband_pd_init(struct blkg_policy_data *pd)
{
	struct request_queue *q = pd_to_blkg(pd)->q;
	struct ioband_grp *grp = pd_to_grp(pd);

	ioband_dev_get(q->ioband);
	grp->dev = q->ioband;
	ioband_weight_init(grp);
}

static void ioband_pd_online(struct blkg_policy_data *pd)
{
	ioband_weight_online(pd_to_grp(pd));
	ioband_default_online(pd_to_grp(pd));
}

/* An activation that failed leaves nothing that could be removed, I2. */
static void ioband_blkg_removed(struct blkcg_gq *blkg)
{
	struct ioband_grp *grp = blkg_to_grp(blkg);

	if (grp && blkcg_policy_enabled(blkg->q, &blkcg_policy_ioband))
		ioband_removed(grp);
}

static void ioband_pd_offline(struct blkg_policy_data *pd)
{
	ioband_blkg_removed(pd_to_blkg(pd));
}

/**
 * ioband_css_killed - a cgroup is removed, or taken from the block controller
 * @css:	its css, for which nobody can write to files any more
 *
 * Much may come before its blkgs go offline: tasks that exit and wait for the I/O that
 * is held for them, and dirty pages.  Their limits, which would hold up both and which
 * nobody can change, go here.  A blkg that joins the list from now on has none.
 *
 * Context: cgroup_mutex held.
 */
void ioband_css_killed(struct cgroup_subsys_state *css)
{
	struct blkcg_gq *blkg;

	/* no policy is registered with ioband=off */
	if (!static_branch_unlikely(&ioband_key))
		return;
	ioband_drop_defaults(css_to_blkcg(css));
	guard(rcu)();
	hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node)
		ioband_blkg_removed(blkg);
}

static void ioband_grp_free(struct rcu_head *rcu)
{
	struct blkg_policy_data *pd =
		container_of(rcu, struct blkg_policy_data, rcu_head);
	struct ioband_grp *grp = pd_to_grp(pd);

	if (grp->dev)
		ioband_dev_put(grp->dev);
	ioband_grp_free_all(grp);
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

/* Has a disk begun to go away? */
static bool ioband_goes(struct gendisk *disk)
{
	return !disk_live(disk) || test_bit(GD_DEAD, &disk->state);
}

/* Against ioband_let_go(). */
static void ioband_publish(struct request_queue *q, struct ioband_dev *dev, bool ready)
{
	guard(spinlock_irq)(&q->queue_lock);
	q->ioband = dev;
	if (ready)
		WRITE_ONCE(dev->ready, true);
}

/* A queue can have got its next disk, and that one rules, by now: then NULL. */
static struct ioband_dev *ioband_unpublish(struct gendisk *disk)
{
	struct request_queue *q = disk->queue;
	struct ioband_dev *dev;

	guard(spinlock_irq)(&q->queue_lock);
	dev = q->ioband;
	if (!dev || dev->disk != disk)
		return NULL;
	q->ioband = NULL;
	return dev;
}

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
	if (ioband_goes(disk))
		return -ENODEV;
	if (q->ioband)
		/* else the queue's previous disk, whose that is, has not gone yet */
		return blkcg_policy_enabled(q, &blkcg_policy_ioband) ? 0 : -ENODEV;

	dev = ioband_dev_alloc(disk);
	if (!dev)
		return -ENOMEM;
	/* pd_init copies it into the groups, and bios look only there */
	ioband_publish(q, dev, false);
	ret = blkcg_activate_policy(disk, &blkcg_policy_ioband);
	if (ret) {
		ioband_publish(q, NULL, false);
		ioband_dev_free(dev);
		return ret;
	}
	ioband_publish(q, dev, true);
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
	/* it may have begun to go away meanwhile: see I3 */
	if (ioband_goes(disk))
		ioband_let_go(disk);
	static_branch_inc(&ioband_key);
	ioband_debugfs_register(disk);
}

/**
 * ioband_get_disk - get a reference on the disk of a group
 * @grp:	a group that was found in a list of blkgs
 *
 * A disk first loses its blkgs, and is freed a grace period after that at the earliest.
 *
 * Context: the RCU read side in which the group was found.
 * Return: the disk, NULL if it is about to be freed.
 */
struct gendisk *ioband_get_disk(struct ioband_grp *grp)
{
	struct gendisk *disk = grp->dev->disk;

	return kobject_get_unless_zero(&disk_to_dev(disk)->kobj) ? disk : NULL;
}

/**
 * ioband_exit_disk - undo ioband_activate()
 * @disk:	a disk whose blkgs are gone
 *
 * Context: may sleep.
 */
void ioband_exit_disk(struct gendisk *disk)
{
	struct ioband_dev *dev = ioband_unpublish(disk);

	if (!dev)
		return;
	ioband_dev_free(dev);
	static_branch_dec(&ioband_key);
}

static int __init ioband_init(void)
{
	int ret;

	if (!ioband_owns_limits())
		return 0;
	ioband_grps = KMEM_CACHE(ioband_grp, SLAB_PANIC);
	ret = ioband_dispatch_init();
	if (ret)
		return ret;
	ret = blkcg_policy_register(&blkcg_policy_ioband) ?:
	      cgroup_add_legacy_cftypes(&io_cgrp_subsys, ioband_legacy_stat_files);
	if (ret || !ioband_owns_weights())
		return ret;
	return cgroup_add_dfl_cftypes(&io_cgrp_subsys, ioband_weight_files) ?:
	       cgroup_add_legacy_cftypes(&io_cgrp_subsys, ioband_legacy_weight_files) ?:
	       cgroup_add_dfl_cftypes(&io_cgrp_subsys, ioband_device_files) ?:
	       cgroup_add_legacy_cftypes(&io_cgrp_subsys, ioband_legacy_device_files);
}
module_init(ioband_init);
