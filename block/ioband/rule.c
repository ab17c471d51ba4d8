// SPDX-License-Identifier: GPL-2.0
/*
 * Rules: what a write to a control file becomes, and how a new one takes over
 * from the old one under load.
 */
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include "ioband.h"

/* A batch pays from this many ordinary I/Os on. */
#define IOBAND_MIN_BATCH_IOS	4
#define IOBAND_MIN_BATCH_BYTES	(IOBAND_MIN_BATCH_IOS * SZ_4K)

/**
 * ioband_rule_alloc - memory for a rule
 *
 * Context: may sleep.
 * Return: a rule without limits, NULL if there is no memory.
 */
struct ioband_rule *ioband_rule_alloc(void)
{
	struct ioband_rule *rule = kzalloc(sizeof(*rule), GFP_KERNEL);

	if (!rule)
		return NULL;
	rule->reserve = alloc_percpu(struct ioband_reserve);
	if (!rule->reserve) {
		kfree(rule);
		return NULL;
	}
	return rule;
}

/**
 * ioband_rule_free - undo ioband_rule_alloc()
 * @rule:	a rule that nobody sees, or NULL
 *
 * Context: any.
 */
void ioband_rule_free(struct ioband_rule *rule)
{
	if (!rule)
		return;
	free_percpu(rule->reserve);
	kfree(rule);
}

static void ioband_rule_free_rcu(struct rcu_head *rcu)
{
	ioband_rule_free(container_of(rcu, struct ioband_rule, rcu));
}

/**
 * ioband_link - find the gates of a group
 * @grp:	the group
 * @rw:		READ or WRITE
 *
 * Context: queue_lock held.
 */
void ioband_link(struct ioband_grp *grp, int rw)
{
	struct ioband_dir *dir = &grp->dir[rw];
	struct ioband_grp *up = ioband_parent(grp);

	lockdep_assert_held(&grp->dev->q->queue_lock);
	while (up && !rcu_access_pointer(up->dir[rw].rule))
		up = ioband_parent(up);
	WRITE_ONCE(dir->up, up);
	WRITE_ONCE(dir->lim, rcu_access_pointer(dir->rule) ? grp : up);
}

/*
 * A gate has come or gone: all who pass it find their way anew.  Groups that
 * were removed but still have bios here are no descendants any more.
 */
static void ioband_relink(struct ioband_grp *grp, int rw, s64 now)
{
	struct ioband_dev *dev = grp->dev;
	struct cgroup_subsys_state *pos;
	struct ioband_grp *anc;
	struct ioband_dir *dir;
	struct blkcg_gq *blkg;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry(dir, &dev->active[rw], active)
		ioband_detach(dir->grp, rw);

	ioband_link(grp, rw);
	if (cgroup_subsys_on_dfl(io_cgrp_subsys)) {
		guard(rcu)();
		blkg_for_each_descendant_pre(blkg, pos, pd_to_blkg(&grp->pd))
			if (blkg_to_grp(blkg))
				ioband_link(blkg_to_grp(blkg), rw);
	}
	list_for_each_entry(dir, &dev->active[rw], active)
		for (anc = dir->grp; anc; anc = ioband_parent(anc))
			ioband_link(anc, rw);

	list_for_each_entry(dir, &dev->active[rw], active)
		ioband_attach(dir->grp, rw, now);
}

/* Take over what was earned or is owed under the old rule, I4. */
static s64 ioband_inherit(struct ioband_dir *dir, struct ioband_rule *old,
			  struct ioband_rule *new, enum ioband_unit unit, s64 now)
{
	struct bio *head = ioband_gate_head(dir);
	s64 tat;

	if (!old)
		return now;
	tat = atomic64_xchg(&old->bucket[unit].tat, IOBAND_TIME_MAX);
	if (head && ioband_arrival(head) > old->since)
		tat = max(tat, ioband_arrival(head));
	return ioband_carry_over(tat, now, head, &old->bucket[unit].rate,
				 &new->bucket[unit].rate);
}

static void ioband_rule_init(struct ioband_rule *rule,
			     const u64 limit[IOBAND_NR_UNITS], s64 now)
{
	ioband_rate_init(&rule->bucket[IOBAND_BYTES].rate, limit[IOBAND_BYTES],
			 IOBAND_BURST_BYTES, IOBAND_MIN_BATCH_BYTES,
			 num_possible_cpus());
	ioband_rate_init(&rule->bucket[IOBAND_IOS].rate, limit[IOBAND_IOS],
			 IOBAND_BURST_IOS, IOBAND_MIN_BATCH_IOS,
			 num_possible_cpus());
	rule->since = now;
}

/**
 * ioband_set_limits - change the limits of a group in one direction
 * @grp:	the group
 * @rw:		READ or WRITE
 * @limit:	units a second, U64_MAX for none
 * @spare:	a rule from ioband_rule_alloc(), set to NULL if used up
 *
 * Takes effect at once, also for the bios that wait.
 *
 * Context: queue_lock held, irqs off.
 */
void ioband_set_limits(struct ioband_grp *grp, int rw,
		       const u64 limit[IOBAND_NR_UNITS],
		       struct ioband_rule **spare)
{
	struct ioband_dir *dir = &grp->dir[rw];
	struct ioband_rule *old, *new = NULL;
	s64 now;

	lockdep_assert_held(&grp->dev->q->queue_lock);
	if (!memcmp(dir->limit, limit, sizeof(dir->limit)))
		return;

	guard(spinlock_irqsave)(&grp->dev->lock);
	now = ktime_get_ns();
	old = ioband_gate_rule(dir);
	if (limit[IOBAND_BYTES] != U64_MAX || limit[IOBAND_IOS] != U64_MAX) {
		swap(new, *spare);
		ioband_rule_init(new, limit, now);
		for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++)
			atomic64_set(&new->bucket[unit].tat,
				     ioband_inherit(dir, old, new, unit, now));
	}
	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++)
		WRITE_ONCE(dir->limit[unit], limit[unit]);

	rcu_assign_pointer(dir->rule, new);
	if (!old != !new)
		ioband_relink(grp, rw, now);
	else if (ioband_gate_head(dir))
		ioband_place(grp->dev, &dir->gate, now);
	ioband_kick(grp->dev, now);
	if (old)
		call_rcu(&old->rcu, ioband_rule_free_rcu);
}
