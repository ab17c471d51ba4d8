// SPDX-License-Identifier: GPL-2.0
/*
 * Disks whose I/O scheduler is BFQ.
 *
 * BFQ shares a disk by weight itself.  It has to see all requests to choose among them, so the
 * share gate holds no bios there, and weights that are written to a file are passed on to BFQ.
 * If ioband has the files of weights, it also has those with BFQ's names, see files/weights.c, so
 * that a cgroup has one weight, whichever of the names a program knows.
 *
 * BFQ may be a module: ioband_bfq is published and withdrawn under RCU.
 */
#include <linux/blkdev.h>
#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "../ioband.h"

struct blkcg_policy __rcu *ioband_bfq;
static void (*ioband_bfq_set)(struct blkg_policy_data *pd, u32 weight);

/* Skip BFQ's own files of weights, which are at the beginning of its list of files. */
static struct cftype *ioband_without_weights(struct cftype *cft)
{
	while (str_has_prefix(cft->name, "bfq.weight"))
		cft++;
	return cft;
}

/**
 * ioband_register_bfq - register BFQ's policy, and have it share by ioband's weights
 * @pol:	the policy
 * @set:	sets the weight of a group on a disk whose scheduler is BFQ
 *
 * If ioband has the files of weights, BFQ's own files of weights are not registered.
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
 * ioband_unregister_bfq - unregister BFQ's policy
 * @pol:	the policy
 *
 * Context: may sleep; BFQ is not the scheduler of any disk any more.
 */
void ioband_unregister_bfq(struct blkcg_policy *pol)
{
	RCU_INIT_POINTER(ioband_bfq, NULL);
	synchronize_rcu();
	blkcg_policy_unregister(pol);
}
EXPORT_SYMBOL_GPL(ioband_unregister_bfq);

/**
 * ioband_weight_for_bfq - find the weight that BFQ has to use for a group on a disk
 * @blkg:	the group
 * @weight:	the weight that BFQ has itself
 *
 * Return: ioband's weight, in BFQ's range; @weight if ioband does not have the files of
 *	   weights.
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

u32 ioband_bfq_weight(u32 weight)
{
	return clamp(weight, IOBAND_BFQ_WEIGHT_MIN, IOBAND_BFQ_WEIGHT_MAX);
}

/* Tell BFQ a new weight.  queue_lock or blkcg->lock held, so that BFQ's data is not freed. */
void ioband_tell_bfq(struct blkcg_gq *blkg, u32 weight)
{
	struct blkg_policy_data *pd;
	struct blkcg_policy *pol;

	guard(rcu)();
	pol = rcu_dereference(ioband_bfq);
	pd = pol ? blkg_to_pd(blkg, pol) : NULL;
	/* the root group has no siblings, so it has no weight in BFQ */
	if (pd && blkg->parent)
		ioband_bfq_set(pd, ioband_bfq_weight(weight));
}
