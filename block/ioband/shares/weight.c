// SPDX-License-Identifier: GPL-2.0
/*
 * Weights, and what part of a device they are.
 *
 * Siblings share what their parent gets, see tree.c.  A group's own I/O counts as that of a
 * child with the default weight, or on v1 with its leaf weight.  Only active ones count.
 */
#include <linux/blkdev.h>

#include "../ioband.h"

/* On v1; v2 has CGROUP_WEIGHT_DFL. */
#define IOBAND_V1_WEIGHT_DFL	500
/* A weight counts at once, whatever was earned by the old one. */
#define IOBAND_WEIGHT_LEAD_NS	(10 * NSEC_PER_MSEC)

/* weights of cgroups that are not the default */
atomic_t ioband_nr_weights = ATOMIC_INIT(0);

/**
 * ioband_default_weight - the weight of whom nobody gave one
 *
 * Return: by the hierarchy that the controller is on now.
 */
u32 ioband_default_weight(void)
{
	return cgroup_subsys_on_dfl(io_cgrp_subsys) ? CGROUP_WEIGHT_DFL :
						      IOBAND_V1_WEIGHT_DFL;
}

/**
 * ioband_blkcg_weight - a weight of a cgroup
 * @blkcg:	the cgroup
 * @which:	which one
 *
 * Return: what was set, or the default.
 */
u32 ioband_blkcg_weight(struct blkcg *blkcg, enum ioband_weight which)
{
	return READ_ONCE(ioband_blkcg(blkcg)->weight[which]) ?: ioband_default_weight();
}

/**
 * ioband_leaf_weight - what a group's own I/O counts with among its children's
 * @grp:	the group
 *
 * Return: the weight; the root's is for that alone.
 */
u32 ioband_leaf_weight(struct ioband_grp *grp)
{
	if (!pd_to_blkg(&grp->pd)->parent)
		return grp->share.weight;
	return grp->share.leaf ?: ioband_default_weight();
}

/**
 * ioband_share_part - what part of its device is a group's own?
 * @grp:	the group
 *
 * Context: dev->lock held.
 * Return: ppm, 0 if it is not active.
 */
u64 ioband_share_part(struct ioband_grp *grp)
{
	u64 inv = 1 << IOBAND_INV_SHIFT;

	if (!ioband_is_active(grp->share.own.where))
		return 0;
	for (struct ioband_node *n = &grp->share.own; n->above; n = n->above)
		inv = ioband_inverse(inv, n->above->active_sum, n->weight);
	return div64_u64((u64)USEC_PER_SEC << IOBAND_INV_SHIFT, inv);
}

/* What a group's weight is of. */
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
}

/* The leaf weight counts from the group's next I/O on that waits, see ioband_queue(). */
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

/**
 * ioband_set_blkcg_weight - set a weight of a cgroup
 * @blkcg:	the cgroup
 * @which:	which one
 * @weight:	in range, or 0 for the default
 *
 * Context: takes blkcg->lock.
 */
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

/**
 * ioband_set_own_weight - set a weight of a group on its device
 * @grp:	the group
 * @which:	which one
 * @weight:	in range, or 0 for that of its cgroup
 *
 * Context: queue_lock held; takes dev->lock.
 */
void ioband_set_own_weight(struct ioband_grp *grp, enum ioband_weight which, u32 weight)
{
	struct ioband_sharer *sh = &grp->dev->share;
	u32 *now = &grp->share.own_weight[which];

	guard(spinlock_irqsave)(&grp->dev->lock);
	WRITE_ONCE(sh->nr_own, sh->nr_own + !!weight - !!*now);
	WRITE_ONCE(*now, weight);
	ioband_update_weights(grp);
}

/**
 * ioband_weight_init - a group is made
 * @grp:	the group, of which nobody knows yet; its device is set, and the group above is made
 */
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

/**
 * ioband_weight_online - a group comes to a device
 * @grp:	the group, whose cgroup's weight may have changed meanwhile
 *
 * Context: blkcg->lock held.
 */
void ioband_weight_online(struct ioband_grp *grp)
{
	guard(spinlock_irqsave)(&grp->dev->lock);
	ioband_update_weights(grp);
}

/**
 * ioband_weight_offline - a group is removed
 * @grp:	the group
 *
 * It keeps its weight for what it has waiting.
 *
 * Context: dev->lock held.
 */
void ioband_weight_offline(struct ioband_grp *grp)
{
	struct ioband_sharer *sh = &grp->dev->share;

	lockdep_assert_held(&grp->dev->lock);
	for (int which = 0; which < IOBAND_WEIGHTS; which++) {
		WRITE_ONCE(sh->nr_own, sh->nr_own - !!grp->share.own_weight[which]);
		grp->share.own_weight[which] = 0;
	}
}
