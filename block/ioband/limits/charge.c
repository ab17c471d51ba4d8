// SPDX-License-Identifier: GPL-2.0
/*
 * Charges: what bios cost, and when they may be dispatched; all that is paid under dev->lock.
 */
#include <linux/ktime.h>

#include "../ioband.h"

/**
 * ioband_take - charge a cost if the TAT allows a dispatch now
 * @b:		the bucket that has the TAT
 * @cost:	ns
 * @arrival:	time when the bio arrived, ns
 * @now:	ns
 *
 * Context: any; the TAT of a rule that has been replaced never allows a dispatch.
 * Return: true if charged.
 */
bool ioband_take(struct ioband_bucket *b, s64 cost, s64 arrival, s64 now)
{
	s64 tat = atomic64_read(&b->tat);

	/* what costs nothing does not use up what is in hand */
	do {
		if (ioband_when(tat, arrival, cost, b->rate.burst) > now)
			return false;
	} while (cost && !atomic64_try_cmpxchg(&b->tat, &tat,
				       ioband_charge(tat, now, cost,
						     b->rate.burst)));
	return true;
}

/* As ioband_take(); if the TAT does not allow it, take back what CPUs have in reserve. */
static bool ioband_take_all(struct ioband_rule *rule, struct ioband_bucket *b,
			    s64 cost, s64 arrival, s64 now)
{
	/* a bio that costs more than a burst uses all of it: nothing may stay in reserve */
	if (cost > b->rate.burst)
		ioband_reserve_reclaim(rule);
	return ioband_take(b, cost, arrival, now) ||
	       (ioband_reserve_reclaim(rule) && ioband_take(b, cost, arrival, now));
}

/* Charge a cost even if that makes a debt; if @bounded, only up to the bound of debts. */
static void ioband_take_anyway(struct ioband_bucket *b, s64 cost, s64 now,
			       bool bounded)
{
	s64 tat = atomic64_read(&b->tat);
	s64 new;

	do {
		new = bounded ? ioband_charge_debt(tat, now, cost, b->rate.burst) :
				ioband_charge_early(tat, now, cost);
	} while (!atomic64_try_cmpxchg(&b->tat, &tat, new));
}

/* The cost of a bio at a limit, ns; it is also stored for ioband_gate_unpay(). */
static s64 ioband_bill(struct ioband_dir *gate, struct ioband_rule *rule,
		       const struct bio *bio, enum ioband_unit unit)
{
	struct ioband_bucket *b = &rule->bucket[unit];

	gate->bill[unit].rem = b->rem;
	gate->bill[unit].cost = ioband_cost(b->rate.per_sec,
					    ioband_units(bio, unit),
					    &gate->bill[unit].rem);
	return gate->bill[unit].cost;
}

/*
 * The time when a bio arrived at a gate, or S64_MIN if that was before the present rule: the
 * rule's TAT includes what the bio had earned by then, see ioband_inherit().
 */
static s64 ioband_arrival_at(const struct ioband_rule *rule,
			     const struct bio *bio)
{
	s64 arrival = ioband_arrival(bio);

	return rule && arrival > rule->since ? arrival : S64_MIN;
}

/*
 * Does a limit apply to a bio?  @rule is NULL if the limits of a gate have been removed, and
 * the group has not been relinked yet.
 */
static bool ioband_binds(const struct ioband_rule *rule, const struct bio *bio,
			 enum ioband_unit unit)
{
	/* a ticket has to wait until there is no debt in either unit */
	return rule && rule->bucket[unit].rate.per_sec &&
	       (ioband_units(bio, unit) || ioband_is_ticket(bio));
}

static void ioband_gate_unpay(struct ioband_dir *gate, const struct bio *bio,
			      enum ioband_unit end)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);

	for (enum ioband_unit unit = 0; unit < end; unit++) {
		if (!ioband_binds(rule, bio, unit))
			continue;
		atomic64_sub(gate->bill[unit].cost, &rule->bucket[unit].tat);
		swap(rule->bucket[unit].rem, gate->bill[unit].rem);
	}
}

/**
 * ioband_gate_pay - charge a bio at one gate
 * @gate:	the gate
 * @bio:	the bio, with its arrival stamped
 * @now:	ns, or the time when the bio was due
 * @terms:	may the charge be a debt?
 *
 * Context: dev->lock held.
 * Return: false if the limits have no room and @terms allow no debt; nothing is paid then.
 */
bool ioband_gate_pay(struct ioband_dir *gate, const struct bio *bio,
		     s64 now, enum ioband_terms terms)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);
	s64 arrival = ioband_arrival_at(rule, bio);

	/* a group in debt must have nothing in reserve */
	if (rule && terms != IOBAND_TERMS_NOW)
		ioband_reserve_reclaim(rule);
	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];
		s64 cost;

		if (!ioband_binds(rule, bio, unit))
			continue;
		cost = ioband_bill(gate, rule, bio, unit);
		if (terms != IOBAND_TERMS_NOW) {
			ioband_take_anyway(b, cost, now,
					   terms == IOBAND_TERMS_BOUNDED);
		} else if (!ioband_take_all(rule, b, cost, arrival, now)) {
			ioband_gate_unpay(gate, bio, unit);
			return false;
		}
		swap(b->rem, gate->bill[unit].rem);
	}
	return true;
}

/**
 * ioband_pay - charge a bio at all its gates, or at none
 * @dir:	the bio's group and direction
 * @bio:	the bio, with its arrival stamped
 * @now:	ns, or the time when the bio was due
 *
 * Context: dev->lock held.
 * Return: false if the limits of a gate have no room yet; nothing is paid then.
 */
bool ioband_pay(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	struct ioband_dir *gate = dir->lim, *paid;

	lockdep_assert_held(&dir->grp->dev->lock);
	while (gate && ioband_gate_pay(gate, bio, now, IOBAND_TERMS_NOW))
		gate = gate->up;
	for (paid = dir->lim; gate && paid != gate; paid = paid->up)
		ioband_gate_unpay(paid, bio, IOBAND_NR_UNITS);
	return !gate;
}

/* The cost of a small I/O, or a burst if that is less; ns. */
static s64 ioband_room(const struct ioband_bucket *b, enum ioband_unit unit)
{
	u64 rem = 0;

	return min(ioband_cost(b->rate.per_sec, unit == IOBAND_BYTES ? SZ_4K : 1, &rem),
		   b->rate.burst);
}

/**
 * ioband_bio_when - return the time when the limits of one gate allow a bio to be dispatched
 * @gate:	the gate
 * @bio:	a held bio
 *
 * Context: dev->lock held.
 * Return: time in ns; it may have passed.
 */
s64 ioband_bio_when(struct ioband_dir *gate, struct bio *bio)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);
	s64 arrival = ioband_arrival_at(rule, bio);
	s64 when = S64_MIN;

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];
		s64 cost;

		if (!ioband_binds(rule, bio, unit))
			continue;
		/*
		 * A ticket of no bytes waits until a small I/O could be dispatched, and does
		 * not use that: the group whose turn it is may be about to submit again.
		 */
		cost = ioband_is_ticket(bio) && !bio->bi_iter.bi_size ?
		       ioband_room(b, unit) : ioband_bill(gate, rule, bio, unit);
		when = max(when, ioband_when(atomic64_read(&b->tat), arrival, cost,
					     b->rate.burst));
	}
	return when;
}

/**
 * ioband_gate_used - note that a group has taken its turn at a gate
 * @gate:	the gate
 *
 * A group that submits before the gate could dispatch another small I/O is in time for its
 * next turn.
 *
 * Context: dev->lock held.
 */
void ioband_gate_used(struct ioband_dir *gate)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);

	gate->gate.busy_until_ns = S64_MIN;
	for (int unit = 0; rule && unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];

		if (b->rate.per_sec)
			gate->gate.busy_until_ns =
				max(gate->gate.busy_until_ns,
				    ioband_when(atomic64_read(&b->tat), S64_MIN,
						ioband_room(b, unit), b->rate.burst));
	}
}

/**
 * ioband_due - return the time when a held bio is due
 * @dir:	the bio's group and direction
 * @bio:	the bio
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: the time in ns as of which the bio is to be charged.  It is no more than
 *	   IOBAND_LATE_NS and ioband_ticks_ns() before @now, and after @now if the bio may
 *	   not be dispatched yet.
 */
s64 ioband_due(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	s64 due = max(ioband_arrival(bio), now - IOBAND_LATE_NS - ioband_ticks_ns());
	struct ioband_dir *gate;

	/* a bio is due neither before those ahead of it, nor before the limits last changed */
	due = max3(due, dir->source.last_due, dir->grp->dev->changed);
	for (gate = dir->lim; gate; gate = gate->up) {
		due = max(due, gate->gate.last_due);
		due = max(due, ioband_bio_when(gate, bio));
	}
	return due;
}

/**
 * ioband_bio_saves - tell whether a bio costs more than a burst, and a gate has that in hand for it
 * @gate:	the gate
 * @bio:	the bio
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: true if the gate saves up for the bio.
 */
bool ioband_bio_saves(struct ioband_dir *gate, struct bio *bio, s64 now)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++)
		if (ioband_binds(rule, bio, unit) &&
		    ioband_bill(gate, rule, bio, unit) > rule->bucket[unit].rate.burst &&
		    atomic64_read(&rule->bucket[unit].tat) <= now)
			return true;
	return false;
}

/**
 * ioband_bio_turn - return how much of its group's turn at a gate a bio uses up
 * @gate:	the gate
 * @bio:	the bio
 *
 * Siblings take turns by this amount.  It is in bytes and not a time, since the rates may
 * change while bios wait.  Where both units are limited, an I/O counts for at least the
 * bytes that the limit in bytes allows in the time that the limit in I/Os makes it take.
 *
 * Context: dev->lock held.
 * Return: bytes.
 */
u64 ioband_bio_turn(struct ioband_dir *gate, struct bio *bio)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);
	u64 bytes = 0, least = SZ_4K;

	if (!rule)
		return 0;
	if (rule->bucket[IOBAND_BYTES].rate.per_sec) {
		u64 ios = rule->bucket[IOBAND_IOS].rate.per_sec;

		bytes = ioband_units(bio, IOBAND_BYTES);
		least = ios ? div64_u64(rule->bucket[IOBAND_BYTES].rate.per_sec, ios) : 0;
	}
	return max(bytes, min(least, SZ_1M));
}

/**
 * ioband_is_bound - tell whether any limit applies to a bio
 * @dir:	the bio's group and direction
 * @bio:	the bio
 *
 * Context: dev->lock held.
 * Return: true if the bio has to pay at a gate.
 */
bool ioband_is_bound(struct ioband_dir *dir, const struct bio *bio)
{
	struct ioband_dir *gate;

	for (gate = dir->lim; gate; gate = gate->up)
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			if (ioband_binds(ioband_gate_rule(gate), bio, unit))
				return true;
	return false;
}

/**
 * ioband_is_crowded - tell whether bios wait at any gate of a group
 * @dir:	the group and direction
 *
 * Context: dev->lock held.
 * Return: true if some do.
 */
bool ioband_is_crowded(struct ioband_dir *dir)
{
	struct ioband_dir *gate;

	for (gate = dir->lim; gate; gate = gate->up)
		if (ioband_crowded(gate))
			return true;
	return false;
}
