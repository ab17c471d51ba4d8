// SPDX-License-Identifier: GPL-2.0
/*
 * Rules: what a write to a control file becomes, and how a new one takes over
 * from the old one under load.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "ioband.h"

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
	rule->reserve = ioband_reserve_alloc();
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
	kfree(rule->reserve);
	kfree(rule);
}

static void ioband_rule_free_rcu(struct rcu_head *rcu)
{
	ioband_rule_free(container_of(rcu, struct ioband_rule, rcu));
}

/*
 * Find the gates on the way up from a group.  The walk is as long as the cgroup is deep;
 * limits are refused below IOBAND_MAX_LEVEL.
 */
static void ioband_link(struct ioband_dir *dir)
{
	struct ioband_dir *first = NULL, *below = NULL;
	int rw = dir - dir->grp->dir;

	for (struct ioband_grp *grp = dir->grp; grp; grp = ioband_parent(grp)) {
		struct ioband_dir *gate = &grp->dir[rw];

		if (!ioband_gate_rule(gate))
			continue;
		if (below)
			WRITE_ONCE(below->up, gate);
		else
			first = gate;
		below = gate;
	}
	if (below)
		WRITE_ONCE(below->up, NULL);
	WRITE_ONCE(dir->lim, first);
	/* pairs with ioband_is_stale(): who finds it current finds the gates */
	smp_store_release(&dir->gen, dir->grp->dev->gen[rw]);
}

/**
 * ioband_relink - have a group know its gates if any have come or gone, I10
 * @dir:	the group and direction
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_relink(struct ioband_dir *dir, s64 now)
{
	lockdep_assert_held(&dir->grp->dev->lock);
	if (!ioband_is_stale(dir))
		return;
	ioband_link(dir);
	if (dir->held)
		ioband_attach(dir, now);
}

/* A gate has come or gone: see I10.  No group has gen 0 once there was one. */
static void ioband_gates_changed(struct ioband_dev *dev, int rw)
{
	unsigned int gen = dev->gen[rw] + 1;

	WRITE_ONCE(dev->gen[rw], gen ?: 1);
}

/* Take over what was earned or is owed under the old rule, I4. */
static void ioband_inherit(struct ioband_rule *new, struct ioband_rule *old,
			   enum ioband_unit unit, s64 arrival, s64 now)
{
	s64 tat = now;

	if (old) {
		bool waiting = arrival != S64_MAX;

		tat = atomic64_xchg(&old->bucket[unit].tat, IOBAND_TIME_MOVED);
		if (waiting && arrival > old->since)
			tat = max(tat, arrival);
		tat = ioband_carry_over(tat, now, waiting,
					&old->bucket[unit].rate,
					&new->bucket[unit].rate);
	}
	atomic64_set(&new->bucket[unit].tat, tat);
}

/* Exchange a rule.  Who waits below is looked at when its turn comes. */
static void ioband_set_rule(struct ioband_dir *dir, struct ioband_rule *new, s64 now)
{
	struct ioband_rule *old = ioband_gate_rule(dir);
	struct ioband_dev *dev = dir->grp->dev;

	rcu_assign_pointer(dir->rule, new);
	dev->changed = now;
	if (!old != !new)
		ioband_gates_changed(dev, dir - dir->grp->dir);
	if (dir->gate.head)
		ioband_place(dev, &dir->gate, now);
	ioband_kick(dev, now);
	if (old)
		call_rcu(&old->rcu, ioband_rule_free_rcu);
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
	/* the group was removed while somebody wrote to its file */
	if (grp->offline)
		return;
	now = ktime_get_ns();
	old = ioband_gate_rule(dir);
	if (limit[IOBAND_BYTES] != U64_MAX || limit[IOBAND_IOS] != U64_MAX) {
		struct bio *head = dir->gate.head;

		swap(new, *spare);
		ioband_reserve_init(new, limit);
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			new->bucket[unit].rate.burst += ioband_ticks_ns();
		new->since = now;
		new->lent = old ? old->lent : now;
		if (old)
			ioband_reserve_reclaim(old);
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			ioband_inherit(new, old, unit,
				       head ? ioband_arrival(head) : S64_MAX, now);
	}
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		WRITE_ONCE(dir->limit[unit], limit[unit]);
	if (rw == WRITE && new && !old)
		WRITE_ONCE(grp->limits_nr, grp->limits_nr + 1);
	ioband_set_rule(dir, new, now);
}

/**
 * ioband_removed - a group goes offline
 * @grp:	the group
 *
 * Its limits go with it, since nobody could change them any more.  What it has held
 * comes under the limits of the groups above.  Comes when the cgroup is removed, and again
 * when the blkg goes, which can be much later, or alone if it is the disk that goes.
 *
 * Context: any; takes dev->lock.
 */
void ioband_removed(struct ioband_grp *grp)
{
	guard(spinlock_irqsave)(&grp->dev->lock);
	grp->offline = true;
	for (int rw = READ; rw <= WRITE; rw++)
		if (ioband_gate_rule(&grp->dir[rw]))
			ioband_set_rule(&grp->dir[rw], NULL, ktime_get_ns());
	ioband_weight_offline(grp);
	ioband_share_removed(grp);
}
