// SPDX-License-Identifier: GPL-2.0
/*
 * Disks whose I/O scheduler is BFQ.
 *
 * BFQ shares a disk by weight itself.  It has to see the requests that it chooses among, so
 * the share gate stands aside there, and what is written to a file of weights is passed on to
 * BFQ.  While ioband has the files of weights it has those with BFQ's names too, see
 * weight_file.c, so that a cgroup has one weight, whichever of its names a program knows.
 *
 * BFQ may be a module: ioband_bfq is published and withdrawn under RCU.
 */
#include <linux/blkdev.h>
#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "ioband.h"

static struct blkcg_policy __rcu *ioband_bfq;
static void (*ioband_bfq_set)(struct blkg_policy_data *pd, u32 weight);

/* The policy of BFQ has no files of weights of its own: they come first, or are all. */
static struct cftype *ioband_without_weights(struct cftype *cft)
{
	while (str_has_prefix(cft->name, "bfq.weight"))
		cft++;
	return cft;
}

/**
 * ioband_register_bfq - register BFQ's policy, which shares by the weights of ioband
 * @pol:	the policy
 * @set:	sets the weight of a group on a disk that BFQ is the scheduler of
 *
 * It leaves its files of weights to ioband, if that has the others.
 *
 * Context: may sleep.  @set is called with queue_lock or blkcg->lock held.
 * Return: as blkcg_policy_register().
 */
int ioband_register_bfq(struct blkcg_policy *pol,
			void (*set)(struct blkg_policy_data *pd, u32 weight))
{
	int ret;

	if (!ioband_owns_weights())
		return blkcg_policy_register(pol);
	pol->dfl_cftypes = ioband_without_weights(pol->dfl_cftypes);
	pol->legacy_cftypes = ioband_without_weights(pol->legacy_cftypes);
	ret = blkcg_policy_register(pol);
	if (ret)
		return ret;
	ioband_bfq_set = set;
	rcu_assign_pointer(ioband_bfq, pol);
	return 0;
}
EXPORT_SYMBOL_GPL(ioband_register_bfq);

/**
 * ioband_unregister_bfq - BFQ goes
 * @pol:	its policy
 *
 * Context: may sleep; BFQ is no disk's scheduler any more.
 */
void ioband_unregister_bfq(struct blkcg_policy *pol)
{
	RCU_INIT_POINTER(ioband_bfq, NULL);
	synchronize_rcu();
	blkcg_policy_unregister(pol);
}
EXPORT_SYMBOL_GPL(ioband_unregister_bfq);

/**
 * ioband_weight_for_bfq - the weight of a group on a disk
 * @blkg:	the group
 * @weight:	BFQ's own
 *
 * Return: in BFQ's range; @weight if ioband does not have the files of weights.
 */
u32 ioband_weight_for_bfq(struct blkcg_gq *blkg, u32 weight)
{
	struct ioband_grp *grp;

	if (!ioband_owns_weights())
		return weight;
	grp = blkg_to_grp(blkg);
	weight = grp ? READ_ONCE(grp->share.own_weight[IOBAND_WEIGHT]) : 0;
	return ioband_bfq_weight(weight ?: ioband_blkcg_weight(blkg->blkcg, IOBAND_WEIGHT));
}
EXPORT_SYMBOL_GPL(ioband_weight_for_bfq);

/**
 * ioband_bfq_weight - a weight as BFQ has it
 * @weight:	the weight
 *
 * Return: in BFQ's range.
 */
u32 ioband_bfq_weight(u32 weight)
{
	return clamp(weight, IOBAND_BFQ_WEIGHT_MIN, IOBAND_BFQ_WEIGHT_MAX);
}

/**
 * ioband_has_bfq - does BFQ share by the weights of ioband?
 *
 * Context: any.
 * Return: true if so.
 */
bool ioband_has_bfq(void)
{
	return rcu_access_pointer(ioband_bfq);
}

/**
 * ioband_tell_bfq - the weight of a group on a disk has changed
 * @blkg:	the group
 * @weight:	the weight
 *
 * Context: queue_lock or blkcg->lock held: BFQ's data of @blkg do not go.
 */
void ioband_tell_bfq(struct blkcg_gq *blkg, u32 weight)
{
	struct blkg_policy_data *pd;
	struct blkcg_policy *pol;

	guard(rcu)();
	pol = rcu_dereference(ioband_bfq);
	pd = pol ? blkg_to_pd(blkg, pol) : NULL;
	/* the root has no share of itself */
	if (pd && blkg->parent)
		ioband_bfq_set(pd, ioband_bfq_weight(weight));
}
