// SPDX-License-Identifier: GPL-2.0
/*
 * ioband - one cgroup policy for block I/O
 *
 * The problem.  An administrator wants to say "this group gets at most 3 MiB/s of
 * that disk" and get exactly that, whatever the device, the scheduler and the
 * size of the I/O; and no other group may be slowed down by it.
 *
 * The model.  A limit is a virtual clock, see rate.h.  The limits of a group on a
 * device and direction are a limit gate.  On the default hierarchy a bio passes the
 * gates of its group and of all groups above; on v1 only that of its group.  The
 * bio pays at all its gates or at none.
 *
 *	read(), write()
 *	    |		door.c: a task takes its turn before it locks anything, for reads and
 *	    |		direct I/O (ticket.c)
 *	submit_bio()
 *	    |		dirty pages: writeback.c associates the bio with the
 *	    |		group that dirtied them
 *	submit_bio_noacct()
 *	    |
 *	admit.c		passes if each gate has room and no bio waits there
 *	    |		else
 *	decide.c	passes as a debt (debt.c), unless it is direct I/O of a task that
 *	    |		holds no lock; the task waits on its way to user space and at doors.
 *	    |		For what drivers' threads do, its group waits (below.c)
 *	    |		else
 *	queue.c		is held in the group's fifo; at each gate the groups below
 *	    |		take turns
 *	dispatch.c	a timer expires when the first bio may pass; submit.c
 *	    |		submits it near the CPU that it came from
 *	gate.c		with weights: waits while the device has enough to do; the
 *	    |		group that is furthest behind its share is first
 *	observe.c	the bio has completed: what weights learn from it
 *
 * A bio is held before it enters the queue: it has no tag, no queue reference and no page of a
 * file, so only those wait for it who use its file, freeze its file system or suspend a device
 * above.  All but direct I/O passes, since other groups may wait: what is not paid in advance is a
 * debt.  On v1, limits of the root group also hold what threads of the kernel do in its name.
 *
 * Example, default hierarchy: A has wbps=2097152, its children B and C write as
 * much as they can, and C has wbps=1572864.  The gates are A and C.  B's bios wait
 * at A, C's bios at C first.  At A groups B and C take turns, so each gets 1 MiB/s.
 * When B stops, C goes on at its own 1.5 MiB/s, and 0.5 MiB/s of A's limit are not
 * used.
 *
 * Shares.  The groups that are active on a device get its time in proportion to their
 * weights, see share.h.  ioband can only order bios that wait here, so it has no more
 * I/Os in flight than the device needs to be busy, see depth.h.
 *
 * Lifetimes.  A disk's ioband_dev is created with its first limit, weight or setting, or when
 * it is open while some apply to all disks (ready.c).  It is freed with the disk and the last
 * of its groups, which are blkg policy data.  Bios that a removed group still has waiting keep
 * it alive (I2); they wait for the limits of the groups above.
 *
 * Not goals: scheduling inside the device, latency targets, a hierarchy besides that of
 * cgroups, user space helpers.
 */
#include <linux/init.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ioband.h"

#define CREATE_TRACE_POINTS
#include <trace/events/ioband.h>

DEFINE_STATIC_KEY_FALSE(ioband_key);

/* each mode includes the one before it */
enum ioband_mode {
	IOBAND_OFF,
	IOBAND_LIMITS,
	IOBAND_ON,
};

static enum ioband_mode ioband_mode __ro_after_init =
	IS_ENABLED(CONFIG_BLK_CGROUP_IOBAND_DEFAULT_ON) ? IOBAND_ON :
	IS_ENABLED(CONFIG_BLK_CGROUP_IOBAND_DEFAULT_LIMITS) ? IOBAND_LIMITS :
	IOBAND_OFF;
/* a cache for groups: kmalloc() would take nearly twice the memory */
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

/* Has ioband the files of limits?  If not, blk-throttle may.  From initcalls on. */
bool ioband_owns_limits(void)
{
	return ioband_mode >= IOBAND_LIMITS;
}

/* Has ioband the files of weights?  If not, iocost may.  From initcalls on. */
bool ioband_owns_weights(void)
{
	return ioband_mode >= IOBAND_ON;
}

static struct blkcg_policy_data *ioband_cpd_alloc(gfp_t gfp)
{
	struct ioband_blkcg *blkcg = kzalloc(sizeof(*blkcg), gfp);

	return blkcg ? &blkcg->cpd : NULL;
}

static void ioband_cpd_free(struct blkcg_policy_data *cpd)
{
	struct ioband_blkcg *blkcg = container_of(cpd, struct ioband_blkcg, cpd);

	for (int which = 0; which < IOBAND_WEIGHTS; which++)
		atomic_sub(!!blkcg->weight[which], &ioband_nr_weights);
	/* a task that had a file open may have set limits after the cgroup was removed */
	atomic_sub(ioband_has_default(blkcg), &ioband_nr_defaults);
	kfree(blkcg);
}

/* Returns false if there is no memory; the caller frees what was allocated. */
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
	free_percpu(grp->stat);
	free_percpu(grp->lease);
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
	/* the root group is created before it is known whether v1 or v2 will be mounted */
	stats = !cgroup_subsys_on_dfl(io_cgrp_subsys) || blkcg == &blkcg_root;
	if (!ioband_alloc_percpu(grp, stats, gfp)) {
		ioband_grp_free_all(grp);
		return NULL;
	}
	kref_get(&disk->ioband->ref);
	grp->dev = disk->ioband;
	grp->io_bytes = IOBAND_IO_BYTES;
	for (int rw = READ; rw <= WRITE; rw++)
		ioband_dir_init(grp, &grp->dir[rw]);
	return &grp->pd;
}

static void ioband_pd_init(struct blkg_policy_data *pd)
{
	ioband_weight_init(pd_to_grp(pd));
}

static void ioband_pd_online(struct blkg_policy_data *pd)
{
	ioband_weight_online(pd_to_grp(pd));
	ioband_apply_defaults(pd_to_grp(pd));
}

static void ioband_pd_offline(struct blkg_policy_data *pd)
{
	ioband_removed(pd_to_grp(pd));
}

/*
 * A cgroup is removed, or loses the block controller: remove its limits.  It may take long until
 * its blkgs go offline: tasks that exit wait for their held I/O, and dirty pages have to be
 * written.  Limits would delay both, and could not be changed any more.  A blkg that joins the list
 * from now on has none.
 */
void ioband_css_killed(struct cgroup_subsys_state *css)
{
	struct blkcg_gq *blkg;

	/* no policy is registered with ioband=off */
	if (!ioband_owns_limits())
		return;
	ioband_drop_defaults(css_to_blkcg(css));
	guard(rcu)();
	hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node)
		/* a blkg has no limits if the activation of the policy failed */
		if (blkg_to_grp(blkg) && blkcg_policy_enabled(blkg->q, &blkcg_policy_ioband))
			ioband_removed(blkg_to_grp(blkg));
}

static void ioband_grp_free(struct rcu_head *rcu)
{
	struct blkg_policy_data *pd = container_of(rcu, struct blkg_policy_data, rcu_head);
	struct ioband_grp *grp = pd_to_grp(pd);

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
	.no_freeze		= true,
};

/* Create the groups of a device.  ioband_ready_mutex held. */
static int ioband_create_grps(struct gendisk *disk, struct ioband_dev *dev)
{
	int ret;

	/* it is being removed */
	if (!disk_live(disk) || test_bit(GD_DEAD, &disk->state))
		return -ENODEV;
	if (disk->ioband)
		return 0;
	/* another task was creating them and has failed */
	if (!dev)
		return -ENOMEM;
	/* ioband_pd_alloc() copies this into the groups, and bios look only there */
	disk->ioband = dev;
	ret = blkcg_activate_policy(disk, &blkcg_policy_ioband);
	if (ret) {
		disk->ioband = NULL;
		return ret;
	}
	WRITE_ONCE(dev->ready, true);
	return 1;
}

/*
 * Get a device ready for limits and weights.  May sleep, and does not wait for I/O.  Returns 1 if
 * the device became ready, 0 if it was ready already, or -errno.
 */
int ioband_activate(struct gendisk *disk)
{
	struct ioband_dev *dev = NULL;
	unsigned int memflags;
	int ret;

	if (!READ_ONCE(disk->ioband)) {
		dev = ioband_dev_alloc(disk);
		if (!dev)
			return -ENOMEM;
	}
	memflags = memalloc_noio_save();
	scoped_guard(mutex, &ioband_ready_mutex)
		ret = ioband_create_grps(disk, dev);
	memalloc_noio_restore(memflags);
	if (dev && ret <= 0)
		ioband_dev_free(dev);
	return ret;
}

/* The part of ioband_activate() that needs all locks of the queue dropped.  May sleep. */
void ioband_activated(struct gendisk *disk)
{
	static_branch_inc(&ioband_key);
	ioband_debugfs_register(disk);
}

/* Undo ioband_activate(), for a disk whose blkgs have been freed.  May sleep. */
void ioband_exit_disk(struct gendisk *disk)
{
	if (!disk->ioband)
		return;
	ioband_dev_free(disk->ioband);
	static_branch_dec(&ioband_key);
}

static int __init ioband_init(void)
{
	int ret;

	if (!ioband_owns_limits())
		return 0;
	ioband_grps = KMEM_CACHE(ioband_grp, SLAB_PANIC);
	ret = ioband_timer_init();
	if (ret)
		return ret;
	ret = blkcg_policy_register(&blkcg_policy_ioband) ?:
	      cgroup_add_legacy_cftypes(&io_cgrp_subsys, ioband_legacy_stat_files);
	if (!ret)
		pr_info("ioband: limits on\n");
	if (ret || !ioband_owns_weights())
		return ret;
	pr_info("ioband: weights on\n");
	return cgroup_add_dfl_cftypes(&io_cgrp_subsys, ioband_weight_files) ?:
	       cgroup_add_legacy_cftypes(&io_cgrp_subsys, ioband_legacy_weight_files) ?:
	       cgroup_add_dfl_cftypes(&io_cgrp_subsys, ioband_device_files) ?:
	       cgroup_add_legacy_cftypes(&io_cgrp_subsys, ioband_legacy_device_files);
}
module_init(ioband_init);
