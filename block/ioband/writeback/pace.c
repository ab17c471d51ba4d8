// SPDX-License-Identifier: GPL-2.0
/*
 * Buffered writes: how fast a group's tasks may dirty pages.
 *
 * kernel/cgroup/dirty_pace.c makes these tasks wait.  It asks here for the limits that apply to
 * the group, those of its ancestors included; whether weights, which set no rate, share the
 * device; and for the debts of the group on disks below.
 */
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/dirty_owner.h>
#include <linux/ktime.h>

#include "../ioband.h"

/* For this time after unpaid writes of a group reached a disk below, its limits apply above. */
#define IOBAND_BELOW_NS		(10LL * NSEC_PER_SEC)

/* Bytes a second that a group's own limits allow in I/Os of @io_bytes, 0 for no limit. */
static u64 ioband_own_bps(struct ioband_grp *grp, unsigned int io_bytes)
{
	u64 bps = READ_ONCE(grp->dir[WRITE].limit[IOBAND_BYTES]);
	u64 ios = READ_ONCE(grp->dir[WRITE].limit[IOBAND_IOS]);

	/* assume two I/Os at least: at one a second their average length could never grow */
	if (ios != U64_MAX && ios < U32_MAX)
		bps = min(bps, max(ios, 2) * io_bytes);
	return bps == U64_MAX ? 0 : bps;
}

/* The limits of a group and of those above it, and its debt.  RCU read side. */
static struct dirty_rate ioband_rate_of(struct ioband_grp *own)
{
	struct dirty_rate rate = { };
	u64 bps;

	for (struct ioband_grp *grp = own; grp; grp = ioband_parent(grp)) {
		if (!ioband_limited(&grp->dir[WRITE].rule))
			continue;
		bps = ioband_own_bps(grp, READ_ONCE(own->io_bytes));
		if (bps)
			rate.bps = min(rate.bps ?: U64_MAX, bps);
		rate.shared |= grp != own;
		rate.limited = true;
		rate.since = READ_ONCE(grp->limits_nr);
	}
	if (rate.limited && READ_ONCE(own->dir[WRITE].ghost.held))
		rate.owed_ns = ioband_units_ns(READ_ONCE(own->dir[WRITE].lim),
					       own->dir[WRITE].owed_units, ktime_get_ns());
	return rate;
}

/*
 * A number that changes when the limits of a group's writes begin, see struct dirty_rate; 0 if
 * there are none.  It is that of the topmost limit, so that changes of limits below it do not
 * restart the group's account.  dev->lock held.
 */
unsigned int ioband_limits_since(struct ioband_dir *dir)
{
	struct ioband_dir *top = NULL;

	for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up)
		top = gate;
	return top ? READ_ONCE(top->grp->limits_nr) : 0;
}

/* Have unpaid writes of a group reached a disk lately? */
static bool ioband_is_reached(const struct ioband_grp *grp, s64 now)
{
	s64 owed_at_ns = READ_ONCE(grp->owed_at_ns);

	return owed_at_ns && now - owed_at_ns <= IOBAND_BELOW_NS;
}

/* Add the limits and the debt of a group on a disk that may be below.  RCU read side. */
static void ioband_rate_add(struct dirty_rate *rate, struct ioband_grp *grp, s64 now)
{
	struct dirty_rate below = ioband_rate_of(grp);

	if (!below.limited)
		return;
	rate->probe = true;
	rate->shared |= below.shared;
	if (below.bps)
		rate->bps = min(rate->bps ?: U64_MAX, below.bps);
	if (!ioband_is_reached(grp, now))
		return;
	rate->limited = true;
	rate->owed_ns = max(rate->owed_ns, below.owed_ns);
}

/*
 * Add the limits of disks below a device.  It can have several disks below, and it is not known
 * which of them a file is on: a disk counts if unpaid writes of the group have reached it in the
 * last IOBAND_BELOW_NS.  On disks that the group has not used yet, groups above it may have
 * limits.  Where the device has weights, the group waits for writeback of its own that passed out
 * of turn on any disk.
 */
static void ioband_rate_below(struct cgroup_subsys_state *css, struct ioband_grp *own,
			      struct dirty_rate *rate)
{
	struct cgroup_subsys_state *first = css;
	s64 now = ktime_get_ns();
	struct blkcg_gq *blkg;
	struct ioband_grp *grp;

	for (; css; css = ioband_css_above(css)) {
		rate->shared |= rate->probe;
		hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
			grp = blkg_to_grp(blkg);
			if (!grp || grp == own || !ioband_is_ready(grp))
				continue;
			ioband_rate_add(rate, grp, now);
			if (rate->measured && css == first)
				rate->turn_ns = max_t(s64, rate->turn_ns,
						      ioband_share_owed_ns(grp, false));
		}
	}
}

/* See struct dirty_owner_ops. */
static struct dirty_rate ioband_dirty_rate(struct cgroup_subsys_state *css,
					   struct backing_dev_info *bdi)
{
	struct ioband_grp *grp = ioband_bdi_grp(css, bdi);
	struct dirty_rate rate = ioband_rate_of(grp);

	/* a cgroup that has no group on the disk yet may have a weight there later */
	rate.measured = grp ? ioband_has_weights(grp->dev) : atomic_read(&ioband_nr_weights);
	/* the limits of a cgroup that has no group on the disk yet are those of a group above */
	rate.shared |= rate.limited && &pd_to_blkg(&grp->pd)->blkcg->css != css;
	rate.limited |= rate.measured;
	/* on this device tasks pay in advance, and line up behind the debt */
	rate.owed_ns = 0;
	if (grp && rate.measured)
		rate.turn_ns = ioband_share_owed_ns(grp, &pd_to_blkg(&grp->pd)->blkcg->css != css);
	if (ioband_is_above(bdi))
		ioband_rate_below(css, grp, &rate);
	return rate;
}

/* See struct dirty_owner_ops.  It is not known which of the disks below a file is on. */
static void ioband_dirty_save(struct cgroup_subsys_state *css, struct backing_dev_info *bdi,
			      u64 bytes)
{
	struct device *owner = READ_ONCE(bdi->owner);
	struct request_queue *own = owner ? dev_to_disk(owner)->queue : NULL;
	bool above = ioband_is_above(bdi);
	s64 now = ktime_get_ns();
	struct blkcg_gq *blkg;
	struct ioband_grp *grp;

	hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
		grp = blkg_to_grp(blkg);
		if (!grp || !ioband_is_ready(grp) || !READ_ONCE(grp->dir[WRITE].lim))
			continue;
		if (blkg->q == own || (above && ioband_is_reached(grp, now)))
			ioband_save(grp, bytes, blkg->q != own, now);
	}
}

/* See struct dirty_owner_ops.  I/Os, and bytes on devices below, are not paid in advance. */
static u64 ioband_dirty_bps(struct cgroup_subsys_state *css, struct backing_dev_info *bdi,
			    bool *ahead)
{
	struct device *owner = READ_ONCE(bdi->owner);
	struct request_queue *own = owner ? dev_to_disk(owner)->queue : NULL;
	bool above = ioband_is_above(bdi);
	u64 least = U64_MAX, bps;
	struct blkcg_gq *blkg;
	struct ioband_grp *grp;

	*ahead = false;
	hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
		if (!above && blkg->q != own)
			continue;
		grp = blkg_to_grp(blkg);
		bps = grp && ioband_is_ready(grp) ? ioband_own_bps(grp, IOBAND_IO_BYTES) : 0;
		if (!bps || bps >= least)
			continue;
		least = bps;
		*ahead = blkg->q == own &&
			 bps == READ_ONCE(grp->dir[WRITE].limit[IOBAND_BYTES]);
	}
	return least == U64_MAX ? 0 : least;
}

/* See struct dirty_owner_ops. */
static bool ioband_settle_later(struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);

	/*
	 * A task that asks twice for a disk is in a long system call: it has to pay at once.  A
	 * worker of io_uring pays between two pieces of work; others never do.
	 */
	if (!owner || (current->flags & PF_KTHREAD) ||
	    (current->flags & (PF_USER_WORKER | PF_IO_WORKER)) == PF_USER_WORKER ||
	    current->throttle_disk == dev_to_disk(owner))
		return false;
	blkcg_schedule_throttle(dev_to_disk(owner), false);
	return true;
}

/* Let what a cgroup has waiting on a disk or on all disks pass.  Returns true if it has a group. */
static bool ioband_hurry_css(struct cgroup_subsys_state *css, struct request_queue *own, bool all)
{
	struct blkcg_gq *blkg;
	struct ioband_grp *grp;
	bool has = false;

	hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
		grp = blkg->q == own || all ? blkg_to_grp(blkg) : NULL;
		if (!grp || !ioband_is_ready(grp))
			continue;
		ioband_share_hurry(grp);
		has = true;
	}
	return has;
}

/*
 * See struct dirty_owner_ops.  Where the disk of the pages is not known, these are writes to all
 * disks.  The writes of a removed group are those of the group above it.  Writes of the root group
 * wait: nothing would bound how many there are, and nobody would pay for them.
 */
static void ioband_dirty_hurry(struct cgroup_subsys_state *css, struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);
	struct request_queue *own = owner ? dev_to_disk(owner)->queue : NULL;
	bool all = ioband_is_above(bdi);

	while (css->parent && !ioband_hurry_css(css, own, all))
		css = css->parent;
}

static const struct dirty_owner_ops ioband_dirty_ops = {
	.rate		= ioband_dirty_rate,
	.save		= ioband_dirty_save,
	.bps		= ioband_dirty_bps,
	.pay		= ioband_pay_ahead,
	.free		= ioband_find_free,
	.settle_later	= ioband_settle_later,
	.hurry		= ioband_dirty_hurry,
};

/*
 * Record the dirtiers of pages when a group is given a limit or weight, but not for the root group,
 * which does not need it.  May sleep.  Returns 0, or -ENOMEM.
 */
int ioband_own_pages(struct blkcg *blkcg)
{
	return blkcg->css.parent ? dirty_owner_enable(&ioband_dirty_ops) : 0;
}
