// SPDX-License-Identifier: GPL-2.0
/*
 * Buffered writes: how fast a group's tasks may dirty pages.
 *
 * kernel/cgroup/dirty_pace.c has them wait, and asks here what the group's limits are,
 * those of its ancestors included, what it can write where there are only weights, and what
 * it owes to disks below.
 */
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/dirty_owner.h>
#include <linux/ktime.h>
#include <linux/major.h>

#include "ioband.h"

/* A group that has reached a disk from above is slowed by that disk for so long after. */
#define IOBAND_BELOW_NS		(10LL * NSEC_PER_SEC)

/*
 * A group on the disk that a backing device is, NULL if it is none.  One that has not met the
 * disk yet has no limits of its own there: its nearest ancestor that has stands for it.
 */
static struct ioband_grp *ioband_bdi_grp(struct cgroup_subsys_state *css,
					 struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);
	struct blkcg_gq *blkg = NULL;
	struct ioband_grp *grp;

	/* only disks own any */
	if (!owner)
		return NULL;
	ioband_default_meet(css, dev_to_disk(owner));
	for (; css && !blkg; css = cgroup_subsys_on_dfl(io_cgrp_subsys) ? css->parent : NULL)
		blkg = blkg_lookup(css_to_blkcg(css), dev_to_disk(owner)->queue);
	grp = blkg ? blkg_to_grp(blkg) : NULL;
	return grp && ioband_is_ready(grp) ? grp : NULL;
}

/* Its writes may become writes of others: btrfs has no disk, some disks have several. */
static bool ioband_is_above(struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);

	return !owner || dev_to_disk(owner)->fops->submit_bio ||
	       dev_to_disk(owner)->major == LOOP_MAJOR;
}

/* Bytes a second that a group's own limits let through in I/Os of @io_bytes, 0 for no limit. */
static u64 ioband_own_bps(struct ioband_grp *grp, unsigned int io_bytes)
{
	u64 bps = READ_ONCE(grp->dir[WRITE].limit[IOBAND_BYTES]);
	u64 ios = READ_ONCE(grp->dir[WRITE].limit[IOBAND_IOS]);

	/* twice, or one I/O a second would never become longer than it is */
	if (ios != U64_MAX && ios < U32_MAX)
		bps = min(bps, max(ios, 2) * io_bytes);
	return bps == U64_MAX ? 0 : bps;
}

/* What the limits of a group and of those above it say, and what it owes.  RCU read side. */
static struct dirty_rate ioband_rate_of(struct ioband_grp *own)
{
	struct dirty_rate rate = { };
	struct ioband_rule *rule;
	s64 now = 0;
	u64 bps;

	for (struct ioband_grp *grp = own; grp; grp = ioband_parent(grp)) {
		rule = rcu_dereference(grp->dir[WRITE].rule);
		if (!rule)
			continue;
		bps = ioband_own_bps(grp, READ_ONCE(own->io_bytes));
		if (bps)
			rate.bps = min(rate.bps ?: U64_MAX, bps);
		/* most groups have no rules: a clock is not free */
		now = now ?: ktime_get_ns();
		rate.owed_ns = max_t(s64, rate.owed_ns, ioband_rule_debt(rule, now));
		rate.shared |= grp != own;
		rate.limited = true;
		rate.since = READ_ONCE(grp->limits_nr);
	}
	return rate;
}

/**
 * ioband_limits_since - see struct dirty_rate
 * @dir:	a group's writes
 *
 * That of the topmost limit: who sets those below cannot begin an account anew by it.
 *
 * Context: dev->lock held.
 * Return: another number whenever the group's limits begin.
 */
unsigned int ioband_limits_since(struct ioband_dir *dir)
{
	struct ioband_dir *top = NULL;

	for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up)
		top = gate;
	return top ? READ_ONCE(top->grp->limits_nr) : 0;
}

/* Add what a group's limits on a disk say that may be below.  RCU read side. */
static void ioband_rate_add(struct dirty_rate *rate, struct ioband_grp *grp, s64 now)
{
	struct dirty_rate below = ioband_rate_of(grp);
	s64 owed_at_ns = READ_ONCE(grp->owed_at_ns);

	if (!below.limited)
		return;
	rate->probe = true;
	rate->shared |= below.shared;
	if (below.bps)
		rate->bps = min(rate->bps ?: U64_MAX, below.bps);
	if (!owed_at_ns || now - owed_at_ns > IOBAND_BELOW_NS)
		return;
	rate->limited = true;
	rate->owed_ns = max(rate->owed_ns, below.owed_ns);
}

/*
 * A device can be above several disks, and nobody knows which of them a file is on.  A disk
 * counts if dirty pages of the group have reached it in the last IOBAND_BELOW_NS.  Where the
 * group has not been yet, groups above it may have limits.
 */
static void ioband_rate_below(struct cgroup_subsys_state *css, struct ioband_grp *own,
			      struct dirty_rate *rate)
{
	s64 now = ktime_get_ns();
	struct blkcg_gq *blkg;
	struct ioband_grp *grp;

	for (; css; css = cgroup_subsys_on_dfl(io_cgrp_subsys) ? css->parent : NULL) {
		rate->shared |= rate->probe;
		hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
			grp = blkg_to_grp(blkg);
			if (grp && grp != own && ioband_is_ready(grp))
				ioband_rate_add(rate, grp, now);
		}
	}
}

/* See struct dirty_owner_ops. */
static struct dirty_rate ioband_dirty_rate(struct cgroup_subsys_state *css,
					   struct backing_dev_info *bdi)
{
	struct ioband_grp *grp = ioband_bdi_grp(css, bdi);
	struct dirty_rate rate = ioband_rate_of(grp);

	/* weights may be the group's, which has not met the disk yet */
	rate.measured = grp ? ioband_has_weights(grp->dev) : atomic_read(&ioband_nr_weights);
	rate.limited |= rate.measured;
	/* here it is paid in advance, and who pays waits for that */
	rate.owes = rate.owed_ns > 0;
	rate.owed_ns = 0;
	if (ioband_is_above(bdi))
		ioband_rate_below(css, grp, &rate);
	return rate;
}

/* See struct dirty_owner_ops. */
static u64 ioband_dirty_bps(struct cgroup_subsys_state *css, struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);
	bool above = ioband_is_above(bdi);
	struct blkcg_gq *blkg;
	struct ioband_grp *grp;
	u64 least = U64_MAX;

	hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
		if (!above && blkg->q != dev_to_disk(owner)->queue)
			continue;
		grp = blkg_to_grp(blkg);
		if (grp && ioband_is_ready(grp))
			least = min(least, ioband_own_bps(grp, IOBAND_IO_BYTES) ?: U64_MAX);
	}
	return least == U64_MAX ? 0 : least;
}

/* A disk below that a group owes to, and where others wait; with references on both. */
static struct ioband_grp *ioband_get_owed(struct cgroup_subsys_state *css)
{
	s64 owed_at_ns, now = ktime_get_ns();
	struct blkcg_gq *blkg;
	struct ioband_grp *grp;

	guard(rcu)();
	hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
		grp = blkg_to_grp(blkg);
		if (!grp || !ioband_is_ready(grp))
			continue;
		owed_at_ns = READ_ONCE(grp->owed_at_ns);
		if (!owed_at_ns || now - owed_at_ns > IOBAND_BELOW_NS ||
		    !ioband_has_line(grp) || !blkg_tryget(blkg))
			continue;
		if (ioband_get_disk(grp))
			return grp;
		blkg_put(blkg);
	}
	return NULL;
}

/* See struct dirty_owner_ops. */
static void ioband_line_up_below(struct cgroup_subsys_state *css)
{
	struct ioband_grp *grp = ioband_get_owed(css);
	struct gendisk *disk;

	if (!grp)
		return;
	disk = grp->dev->disk;
	ioband_stand_in_line(grp);
	blkg_put(pd_to_blkg(&grp->pd));
	put_disk(disk);
}

/**
 * ioband_asked_above - a task writes metadata to a device whose limits let it
 * @bio:	the bio
 *
 * If the device is above others, those may have limits, and there it is a driver that
 * writes: the task that asks waits on its way to user space.  A task that is to come by for
 * another disk does that: it may owe there, and looks at the disks below all the same.
 *
 * Context: process context; see blkcg_schedule_throttle().
 */
void ioband_asked_above(struct bio *bio)
{
	struct gendisk *disk = bio->bi_bdev->bd_disk;

	if (op_is_write(bio_op(bio)) && ioband_is_above(disk->bdi) && !current->throttle_disk)
		blkcg_schedule_throttle(disk, false);
}

/**
 * ioband_owed_below_ns - what drivers have written for a group and it owes
 * @css:	the group
 * @disk:	the device that the current task comes by for; what is owed to that is not
 *		looked at
 *
 * A task comes by for one disk only, and may have asked several for metadata.
 *
 * Has the current task line up at a device below if the group owes nothing, see
 * ioband_stand_in_line().
 *
 * Context: may sleep.
 * Return: ns until it is repaid.
 */
s64 ioband_owed_below_ns(struct cgroup_subsys_state *css, struct gendisk *disk)
{
	struct dirty_rate rate = { };

	scoped_guard(rcu)
		ioband_rate_below(css, ioband_bdi_grp(css, disk->bdi), &rate);
	if (rate.probe && !rate.owed_ns)
		ioband_line_up_below(css);
	return rate.owed_ns;
}

/* See struct dirty_owner_ops. */
static u64 ioband_write_debt_ns(struct cgroup_subsys_state *css,
				struct backing_dev_info *bdi)
{
	struct ioband_grp *grp;

	guard(rcu)();
	grp = ioband_bdi_grp(css, bdi);
	return grp ? ioband_grp_debt_ns(grp) : 0;
}

/* See struct dirty_owner_ops. */
static bool ioband_settle_later(struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);

	/* once for a disk: a task that comes again is in a long call */
	if (!owner || (current->flags & (PF_KTHREAD | PF_USER_WORKER)) ||
	    current->throttle_disk == dev_to_disk(owner))
		return false;
	/* it comes with the first I/O; before, nobody would have the task wait */
	scoped_guard(rcu)
		if (!blkg_lookup(css_to_blkcg(task_css(current, io_cgrp_id)),
				 dev_to_disk(owner)->queue))
			return false;
	blkcg_schedule_throttle(dev_to_disk(owner), false);
	return true;
}

static const struct dirty_owner_ops ioband_dirty_ops = {
	.rate		= ioband_dirty_rate,
	.bps		= ioband_dirty_bps,
	.pay		= ioband_pay_ahead,
	.debt_ns	= ioband_write_debt_ns,
	.line_up_below	= ioband_line_up_below,
	.settle_later	= ioband_settle_later,
};

/**
 * ioband_own_pages - let pages have owners, if a group needs that
 * @blkcg:	the group that got a limit or weight
 *
 * Context: may sleep.
 * Return: 0, or -ENOMEM.
 */
int ioband_own_pages(struct blkcg *blkcg)
{
	return blkcg->css.parent ? dirty_owner_enable(&ioband_dirty_ops) : 0;
}
