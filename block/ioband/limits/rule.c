// SPDX-License-Identifier: GPL-2.0
/*
 * Rules: a rule is the limits of one group for one device and direction, as a write to a
 * control file sets them.  It changes under load.
 */
#include "../ioband.h"

/*
 * Look up the gates of a group and of the groups above it.  The walk is as long as the cgroup
 * is deep; cgroups below IOBAND_MAX_LEVEL can have no limits.
 */
static void ioband_link(struct ioband_dir *dir)
{
	struct ioband_dir *first = NULL, *below = NULL;
	int rw = ioband_rw(dir);

	for (struct ioband_grp *grp = dir->grp; grp; grp = ioband_parent(grp)) {
		struct ioband_dir *gate = &grp->dir[rw];

		if (!gate->rule.limited)
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

/* Look up the gates of a group again if any have come or gone, I10.  dev->lock held. */
void ioband_relink(struct ioband_dir *dir, s64 now)
{
	lockdep_assert_held(&dir->grp->dev->lock);
	if (!ioband_is_stale(dir))
		return;
	ioband_link(dir);
	if (dir->held)
		ioband_attach(dir, now);
}

atomic_long_t ioband_epoch = ATOMIC_LONG_INIT(1);

/* Have all tasks find out anew whether limits bind them, I17.  Context: any. */
void ioband_bound_anew(void)
{
	/* the value that is returned makes it a barrier, for ioband_may_bind_task() */
	(void)atomic_long_inc_return(&ioband_epoch);
}

/* A gate has come or gone, see I10.  0 stays the value of a device that had no gate yet. */
static void ioband_gates_changed(struct ioband_dir *dir, bool has)
{
	int rw = ioband_rw(dir);
	unsigned int gen = dir->grp->dev->gen[rw] + 1;

	WRITE_ONCE(dir->grp->dev->gen[rw], gen ?: 1);
	ioband_count(dir, IOBAND_LIMITED, has ? 1 : -1);
	ioband_bound_anew();
}

static bool ioband_is_slow(const struct ioband_dir *dir)
{
	return dir->limit[IOBAND_BYTES] < IOBAND_DOOR_BYTES;
}

/*
 * Set the limits of a gate, U64_MAX for none; what is in hand stays, I4.  @head: the bio that waits
 * at the gate, or NULL.  A TAT changes in any case: a bio that is being charged without the lock
 * looks again, so that no charge exceeds the new burst.  dev->lock held.
 */
void ioband_rule_set(struct ioband_rule *rule, const u64 limit[IOBAND_NR_UNITS],
		     const struct bio *head, s64 now)
{
	static const u32 min_burst[] = { IOBAND_BURST_BYTES, IOBAND_BURST_IOS };
	s64 arrival = head && ioband_arrival(head) > rule->since ? ioband_arrival(head) : S64_MIN;
	unsigned int limited = 0;

	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];
		struct ioband_rate from = b->rate, to;
		s64 tat, new;

		/* the old rate stays: a CPU may be calculating with it */
		if (limit[unit] == U64_MAX)
			continue;
		if (!ioband_limits(rule, unit))
			from.per_sec = 0;
		ioband_rate_init(&to, limit[unit], min_burst[unit]);
		to.burst += ioband_ticks_ns();
		WRITE_ONCE(b->rate.per_sec, to.per_sec);
		WRITE_ONCE(b->rate.burst, to.burst);
		b->rem = 0;
		do {
			tat = atomic64_read(&b->tat);
			new = ioband_carry_over(max(tat, arrival), now, head, &from, &to);
			new += new == tat;
		} while (atomic64_cmpxchg(&b->tat, tat, new) != tat);
		limited |= BIT(unit);
	}
	rule->since = now;
	/* pairs with ioband_limited() */
	smp_wmb();
	WRITE_ONCE(rule->limited, limited);
}

/* Set limits of a gate.  Groups below look up their gates again when it is their turn. */
static void ioband_set_rule(struct ioband_dir *dir, const u64 limit[IOBAND_NR_UNITS])
{
	struct ioband_dev *dev = dir->grp->dev;
	bool had = dir->rule.limited, has = false, slow = ioband_is_slow(dir);
	s64 now = ktime_get_ns();

	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		WRITE_ONCE(dir->limit[unit], limit[unit]);
		has |= limit[unit] != U64_MAX;
	}
	if (dir == &dir->grp->dir[WRITE] && has && !had)
		WRITE_ONCE(dir->grp->limits_nr, dir->grp->limits_nr + 1);
	ioband_rule_set(&dir->rule, limit, dir->gate.head, now);
	dev->changed = now;
	ioband_count(dir, IOBAND_SLOW, ioband_is_slow(dir) - slow);
	if (had != has)
		ioband_gates_changed(dir, has);
	if (dir->gate.head)
		ioband_place(dev, &dir->gate, now);
	ioband_kick(dev, now);
}

/* Apply the limits that a group has now, also to bios that are held.  dev->lock held. */
void ioband_update_limits(struct ioband_dir *dir)
{
	u64 limit[IOBAND_NR_UNITS];

	lockdep_assert_held(&dir->grp->dev->lock);
	/* those set for the device, else those of the cgroup for all devices */
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		limit[unit] = dir->own[unit] ?:
			      ioband_default_limit(dir->grp, ioband_rw(dir), unit) ?: U64_MAX;
	/* nothing to do either if the group was removed while a task wrote to its file */
	if (!dir->grp->offline && memcmp(dir->limit, limit, sizeof(limit)))
		ioband_set_rule(dir, limit);
}

/*
 * Set the limits of a group for one device and direction: U64_MAX for none, 0 for the limit of its
 * cgroup for all devices.  queue_lock held, irqs off.
 */
void ioband_set_limits(struct ioband_grp *grp, int rw, const u64 own[IOBAND_NR_UNITS])
{
	struct ioband_dir *dir = &grp->dir[rw];

	lockdep_assert_held(&grp->dev->q->queue_lock);
	guard(spinlock_irqsave)(&grp->dev->lock);
	memcpy(dir->own, own, sizeof(dir->own));
	ioband_update_limits(dir);
}

/*
 * A group goes offline: remove its limits, since they cannot be changed any more; its held bios
 * wait for the limits of the groups above.  This is called when the cgroup is removed, and again
 * when the blkg goes offline, which can be much later; if the disk is removed, only then.
 */
void ioband_removed(struct ioband_grp *grp)
{
	static const u64 none[IOBAND_NR_UNITS] = { U64_MAX, U64_MAX };

	guard(spinlock_irqsave)(&grp->dev->lock);
	grp->offline = true;
	for (int rw = READ; rw <= WRITE; rw++)
		if (grp->dir[rw].rule.limited)
			ioband_set_rule(&grp->dir[rw], none);
	ioband_weight_offline(grp);
	ioband_share_removed(grp);
}
