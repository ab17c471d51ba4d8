// SPDX-License-Identifier: GPL-2.0
/*
 * Weights, and the part of a device that a weight is worth.
 *
 * Siblings share what their parent gets, see tree.c.  A group's own I/O counts as that of a child
 * with the default weight, or on v1 with the group's leaf weight.  Only the weights of active
 * groups count.
 */
#include <linux/blkdev.h>

#include "../ioband.h"

/* The default weight on v1; v2 has CGROUP_WEIGHT_DFL. */
#define IOBAND_V1_WEIGHT_DFL	500
/* The most by which a group is ahead after a change of its weight, so that it takes effect soon. */
#define IOBAND_WEIGHT_LEAD_NS	(10 * NSEC_PER_MSEC)

/* the number of weights of cgroups that are not the default */
atomic_t ioband_nr_weights = ATOMIC_INIT(0);

/* The weight where none was set, in the hierarchy to which the controller belongs now. */
u32 ioband_default_weight(void)
{
	return cgroup_subsys_on_dfl(io_cgrp_subsys) ? CGROUP_WEIGHT_DFL :
						      IOBAND_V1_WEIGHT_DFL;
}

/* The weight that was set for a cgroup, or the default. */
u32 ioband_blkcg_weight(struct blkcg *blkcg, enum ioband_weight which)
{
	return READ_ONCE(ioband_blkcg(blkcg)->weight[which]) ?: ioband_default_weight();
}

/* The weight of a group's own I/O among those below; the root's node is for own I/O alone. */
u32 ioband_leaf_weight(struct ioband_grp *grp)
{
	if (!pd_to_blkg(&grp->pd)->parent)
		return grp->share.weight;
	return grp->share.leaf ?: ioband_default_weight();
}

/* The part of a device, ppm, that a group's own I/O is due; 0: not active.  dev->lock held. */
u64 ioband_share_part(struct ioband_grp *grp)
{
	u64 inv = 1 << IOBAND_INV_SHIFT;

	if (!ioband_is_active(grp->share.own.where))
		return 0;
	for (struct ioband_node *n = &grp->share.own; n->above; n = n->above)
		inv = ioband_inverse(inv, n->above->active_sum, n->weight);
	return div64_u64((u64)USEC_PER_SEC << IOBAND_INV_SHIFT, inv);
}

/* The node to which the weight of a group applies. */
static struct ioband_node *ioband_weighed(struct ioband_grp *grp)
{
	return pd_to_blkg(&grp->pd)->parent ? &grp->share.all : &grp->share.own;
}

static void ioband_set_weight(struct ioband_grp *grp, u32 weight)
{
	struct ioband_node *n = ioband_weighed(grp);

	lockdep_assert_held(&grp->dev->lock);
	grp->share.weight = weight;
	ioband_tell_bfq(pd_to_blkg(&grp->pd), weight);
	ioband_node_weigh(n, weight);
	if (ioband_is_active(n->where))
		ioband_node_bound(n, IOBAND_WEIGHT_LEAD_NS);
	/* what it owes at the old weight is no measure */
	n->due = n->above->vtime;
}

/* The leaf weight takes effect when a bio of the group waits next, see ioband_queue(). */
static void ioband_update_weights(struct ioband_grp *grp)
{
	struct blkcg *blkcg = pd_to_blkg(&grp->pd)->blkcg;
	u32 weight = grp->share.own_weight[IOBAND_WEIGHT] ?:
		ioband_blkcg_weight(blkcg, IOBAND_WEIGHT);

	lockdep_assert_held(&grp->dev->lock);
	grp->share.leaf = grp->share.own_weight[IOBAND_LEAF_WEIGHT] ?:
		READ_ONCE(ioband_blkcg(blkcg)->weight[IOBAND_LEAF_WEIGHT]);
	if (weight != grp->share.weight)
		ioband_set_weight(grp, weight);
}

/* Set a weight of a cgroup for all devices, 0 for the default.  Takes blkcg->lock. */
void ioband_set_blkcg_weight(struct blkcg *blkcg, enum ioband_weight which, u32 weight)
{
	u32 *now = &ioband_blkcg(blkcg)->weight[which];
	struct blkcg_gq *blkg;

	guard(spinlock_irq)(&blkcg->lock);
	atomic_add(!!weight - !!*now, &ioband_nr_weights);
	WRITE_ONCE(*now, weight);
	hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node) {
		struct ioband_grp *grp = blkg_to_grp(blkg);

		if (!grp) {
			ioband_tell_bfq(blkg, ioband_blkcg_weight(blkcg, IOBAND_WEIGHT));
			continue;
		}
		guard(spinlock_irqsave)(&grp->dev->lock);
		ioband_update_weights(grp);
	}
}

/* Set a weight of a group for its device, 0 for that of the cgroup.  queue_lock held. */
void ioband_set_own_weight(struct ioband_grp *grp, enum ioband_weight which, u32 weight)
{
	struct ioband_sharer *sh = &grp->dev->share;
	u32 *now = &grp->share.own_weight[which];

	guard(spinlock_irqsave)(&grp->dev->lock);
	WRITE_ONCE(sh->nr_own, sh->nr_own + !!weight - !!*now);
	WRITE_ONCE(*now, weight);
	ioband_update_weights(grp);
}

/* Set up weights of a new group, not yet published; its device and the group above are set up. */
void ioband_weight_init(struct ioband_grp *grp)
{
	struct blkcg_gq *parent = pd_to_blkg(&grp->pd)->parent;
	struct ioband_node *above = &grp->dev->share.top;
	struct ioband_share *g = &grp->share;

	INIT_LIST_HEAD(&g->busy);
	INIT_LIST_HEAD(&g->awaited);
	INIT_LIST_HEAD(&g->leased);
	g->weight = ioband_blkcg_weight(pd_to_blkg(&grp->pd)->blkcg, IOBAND_WEIGHT);
	if (parent && parent->parent)
		above = &blkg_to_grp(parent)->share.all;
	ioband_node_init(&g->all, above, g->weight);
	ioband_node_init(&g->own, parent ? &g->all : above, ioband_leaf_weight(grp));
}

/* The weight of the cgroup may have changed since ioband_weight_init().  blkcg->lock held. */
void ioband_weight_online(struct ioband_grp *grp)
{
	guard(spinlock_irqsave)(&grp->dev->lock);
	ioband_update_weights(grp);
}

/* Remove a group's own weights; bios that wait keep that in effect.  dev->lock held. */
void ioband_weight_offline(struct ioband_grp *grp)
{
	struct ioband_sharer *sh = &grp->dev->share;

	lockdep_assert_held(&grp->dev->lock);
	for (int which = 0; which < IOBAND_WEIGHTS; which++) {
		WRITE_ONCE(sh->nr_own, sh->nr_own - !!grp->share.own_weight[which]);
		grp->share.own_weight[which] = 0;
	}
}
