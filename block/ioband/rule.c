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

static void __ioband_link(struct ioband_grp *grp, int rw)
{
	struct ioband_dir *dir = &grp->dir[rw], *up = NULL;

	while (!up && (grp = ioband_parent(grp)))
		if (rcu_access_pointer(grp->dir[rw].rule))
			up = &grp->dir[rw];
	WRITE_ONCE(dir->up, up);
	/* pairs with __ioband_bio(): who finds a gate finds the group set up */
	smp_store_release(&dir->lim, rcu_access_pointer(dir->rule) ? dir : up);
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
	lockdep_assert_held(&grp->dev->q->queue_lock);
	__ioband_link(grp, rw);
}

/**
 * ioband_link_removed - find the gates of a removed group that still has bios
 * @grp:	the group
 *
 * The walk over descendants in ioband_relink() does not meet it any more.
 *
 * Context: dev->lock held.
 */
void ioband_link_removed(struct ioband_grp *grp)
{
	lockdep_assert_held(&grp->dev->lock);
	for (; grp && grp->offline; grp = ioband_parent(grp))
		for (int rw = READ; rw <= WRITE; rw++)
			__ioband_link(grp, rw);
}

static bool ioband_is_below(struct ioband_grp *grp, struct ioband_grp *top)
{
	while (grp && grp != top)
		grp = ioband_parent(grp);
	return grp;
}

/* A gate has come or gone: all who pass it find their way anew. */
static void ioband_relink(struct ioband_grp *grp, int rw)
{
	struct cgroup_subsys_state *pos;
	struct ioband_dir *dir;
	struct blkcg_gq *blkg;

	ioband_link(grp, rw);
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
		return;
	scoped_guard(rcu) {
		blkg_for_each_descendant_pre(blkg, pos, pd_to_blkg(&grp->pd))
			if (blkg_to_grp(blkg))
				ioband_link(blkg_to_grp(blkg), rw);
	}
	list_for_each_entry(dir, &grp->dev->active[rw], active)
		ioband_link_removed(dir->grp);
}

/*
 * Take who waits at a gate or below it out of the trees.  Returns when the first
 * of those whose turn is next arrived, S64_MAX if nobody waits.
 */
static s64 ioband_pull(struct ioband_grp *grp, int rw)
{
	struct ioband_dir *dir;
	s64 arrival = S64_MAX;

	list_for_each_entry(dir, &grp->dev->active[rw], active) {
		if (!ioband_is_below(dir->grp, grp))
			continue;
		ioband_detach(dir);
		arrival = min(arrival, ioband_arrival(bio_list_peek(&dir->fifo)));
	}
	return arrival;
}

static void ioband_push(struct ioband_grp *grp, int rw, s64 now)
{
	struct ioband_dir *dir;

	list_for_each_entry(dir, &grp->dev->active[rw], active)
		if (ioband_is_below(dir->grp, grp))
			ioband_attach(dir, now);
	ioband_kick(grp->dev, now);
}

/* Take over what was earned or is owed under the old rule, I4. */
static void ioband_inherit(struct ioband_rule *new, struct ioband_rule *old,
			   enum ioband_unit unit, s64 arrival, s64 now)
{
	s64 tat = now;

	if (old) {
		bool waiting = arrival != S64_MAX;

		tat = atomic64_xchg(&old->bucket[unit].tat, IOBAND_TIME_MAX);
		if (waiting && arrival > old->since)
			tat = max(tat, arrival);
		tat = ioband_carry_over(tat, now, waiting,
					&old->bucket[unit].rate,
					&new->bucket[unit].rate);
	}
	atomic64_set(&new->bucket[unit].tat, tat);
}

static void ioband_rule_init(struct ioband_rule *rule,
			     const u64 limit[IOBAND_NR_UNITS], s64 now)
{
	int cpu;

	ioband_rate_init(&rule->bucket[IOBAND_BYTES].rate, limit[IOBAND_BYTES],
			 IOBAND_BURST_BYTES, IOBAND_MIN_BATCH_BYTES,
			 num_possible_cpus());
	ioband_rate_init(&rule->bucket[IOBAND_IOS].rate, limit[IOBAND_IOS],
			 IOBAND_BURST_IOS, IOBAND_MIN_BATCH_IOS,
			 num_possible_cpus());
	for_each_possible_cpu(cpu)
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			if (!rule->bucket[unit].rate.per_sec)
				per_cpu_ptr(rule->reserve, cpu)->left[unit] =
					IOBAND_PLENTY;
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
	s64 now, arrival;

	lockdep_assert_held(&grp->dev->q->queue_lock);
	if (!memcmp(dir->limit, limit, sizeof(dir->limit)))
		return;

	guard(spinlock_irqsave)(&grp->dev->lock);
	now = ktime_get_ns();
	arrival = ioband_pull(grp, rw);
	old = ioband_gate_rule(dir);
	if (limit[IOBAND_BYTES] != U64_MAX || limit[IOBAND_IOS] != U64_MAX) {
		swap(new, *spare);
		ioband_rule_init(new, limit, now);
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			ioband_inherit(new, old, unit, arrival, now);
	}
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		WRITE_ONCE(dir->limit[unit], limit[unit]);

	rcu_assign_pointer(dir->rule, new);
	dir->gate.epoch++;
	if (!old != !new)
		ioband_relink(grp, rw);
	ioband_push(grp, rw, now);
	if (old)
		call_rcu(&old->rcu, ioband_rule_free_rcu);
}
