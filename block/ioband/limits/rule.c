// SPDX-License-Identifier: GPL-2.0
/*
 * Rules: a rule is the limits of one group for one device and direction, as a write to a
 * control file sets them.  A new rule replaces the old one under load.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "../ioband.h"

/**
 * ioband_rule_alloc - allocate a rule
 * @gfp:	allocation flags
 *
 * Context: as @gfp says.
 * Return: a rule without limits, NULL if there is no memory.
 */
struct ioband_rule *ioband_rule_alloc(gfp_t gfp)
{
	struct ioband_rule *rule = kzalloc(sizeof(*rule), gfp);

	if (!rule)
		return NULL;
	rule->reserve = ioband_reserve_alloc(gfp);
	if (!rule->reserve) {
		kfree(rule);
		return NULL;
	}
	return rule;
}

/**
 * ioband_rule_free - undo ioband_rule_alloc()
 * @rule:	a rule that cannot be found any more, or NULL
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
 * Look up the gates of a group and of the groups above it.  The walk is as long as the cgroup
 * is deep; cgroups below IOBAND_MAX_LEVEL can have no limits.
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
	/* pairs with ioband_is_older(): a reader that sees this gen sees the gates, too */
	smp_store_release(&dir->gen, dir->grp->dev->gen[rw]);
}

/**
 * ioband_relink - look up the gates of a group again if any gates have come or gone, I10
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

/* A gate has come or gone, see I10.  0 stays the value of a device that had no gate yet. */
static void ioband_gates_changed(struct ioband_dev *dev, int rw)
{
	unsigned int gen = dev->gen[rw] + 1;

	WRITE_ONCE(dev->gen[rw], gen ?: 1);
}

/* Take over what the group has earned or owes under the old rule, I4. */
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

/* Exchange the rule of a gate.  Groups below relink when it is their turn. */
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

/* Set up a rule that replaces @old, which may be NULL. */
static void ioband_rule_begin(struct ioband_dir *dir, struct ioband_rule *new,
			      struct ioband_rule *old, s64 now)
{
	struct bio *head = dir->gate.head;

	ioband_reserve_init(new, dir->limit);
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		new->bucket[unit].rate.burst += ioband_ticks_ns();
	new->since = now;
	if (old)
		ioband_reserve_reclaim(old);
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		ioband_inherit(new, old, unit, head ? ioband_arrival(head) : S64_MAX, now);
}

/* The limits in effect: those set for the device, else those of the cgroup for all devices. */
static void ioband_find_limits(const struct ioband_dir *dir, u64 limit[IOBAND_NR_UNITS])
{
	int rw = dir - dir->grp->dir;

	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		limit[unit] = dir->own[unit] ?: ioband_default_limit(dir->grp, rw, unit) ?:
			      U64_MAX;
}

/**
 * ioband_update_limits - apply the limits that a group has now in one direction
 * @dir:	the group and direction
 * @spare:	a rule from ioband_rule_alloc(), set to NULL if it is used
 *
 * Takes effect at once, also for bios that are held.
 *
 * Context: dev->lock held.
 */
void ioband_update_limits(struct ioband_dir *dir, struct ioband_rule **spare)
{
	struct ioband_rule *old = ioband_gate_rule(dir), *new = NULL;
	struct ioband_grp *grp = dir->grp;
	u64 limit[IOBAND_NR_UNITS];
	bool has;
	s64 now;

	lockdep_assert_held(&grp->dev->lock);
	ioband_find_limits(dir, limit);
	has = limit[IOBAND_BYTES] != U64_MAX || limit[IOBAND_IOS] != U64_MAX;
	/*
	 * Nothing to do if the group was removed while a task wrote to its file.  Nor if there
	 * is no spare: then the cgroup has just got limits for all devices, and the task that
	 * sets them is about to call this with a spare.
	 */
	if (grp->offline || !memcmp(dir->limit, limit, sizeof(limit)) || (has && !*spare))
		return;
	now = ktime_get_ns();
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		WRITE_ONCE(dir->limit[unit], limit[unit]);
	if (has) {
		swap(new, *spare);
		ioband_rule_begin(dir, new, old, now);
	}
	if (dir == &grp->dir[WRITE] && new && !old)
		WRITE_ONCE(grp->limits_nr, grp->limits_nr + 1);
	ioband_set_rule(dir, new, now);
}

/**
 * ioband_set_limits - set the limits of a group for one device and direction
 * @grp:	the group
 * @rw:		READ or WRITE
 * @own:	units a second, U64_MAX for no limit, 0 for the limit of its cgroup for all devices
 * @spare:	a rule from ioband_rule_alloc(), set to NULL if it is used
 *
 * Context: queue_lock held, irqs off; takes dev->lock.
 */
void ioband_set_limits(struct ioband_grp *grp, int rw, const u64 own[IOBAND_NR_UNITS],
		       struct ioband_rule **spare)
{
	struct ioband_dir *dir = &grp->dir[rw];

	lockdep_assert_held(&grp->dev->q->queue_lock);
	guard(spinlock_irqsave)(&grp->dev->lock);
	memcpy(dir->own, own, sizeof(dir->own));
	ioband_update_limits(dir, spare);
}

/**
 * ioband_removed - remove the limits of a group that goes offline
 * @grp:	the group
 *
 * Its limits are removed, since they cannot be changed any more; its held bios wait for the
 * limits of the groups above.  This is called when the cgroup is removed, and again when the
 * blkg goes offline, which can be much later.  If the disk is removed and not the cgroup, only
 * the second call happens.
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
