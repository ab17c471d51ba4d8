// SPDX-License-Identifier: GPL-2.0
/*
 * What bios cost and when they may go: everything that is paid under dev->lock.
 */
#include <linux/ktime.h>

#include "ioband.h"

/**
 * ioband_take - charge a TAT if it allows it
 * @b:		the bucket
 * @cost:	ns
 * @arrival:	when the bio came, ns
 * @now:	ns
 *
 * Context: any; a rule that has been replaced never allows it.
 * Return: true if charged.
 */
bool ioband_take(struct ioband_bucket *b, s64 cost, s64 arrival, s64 now)
{
	s64 tat = atomic64_read(&b->tat);

	do {
		if (ioband_when(tat, arrival, cost, b->rate.burst) > now)
			return false;
	} while (!atomic64_try_cmpxchg(&b->tat, &tat,
				       ioband_charge(tat, now, cost,
						     b->rate.burst)));
	return true;
}

/* As ioband_take(), with all that CPUs have in reserve, if need be. */
static bool ioband_take_all(struct ioband_rule *rule, struct ioband_bucket *b,
			    s64 cost, s64 arrival, s64 now)
{
	/* after a long one nothing may be in hand: it has used the burst and more */
	if (cost > b->rate.burst)
		ioband_reserve_reclaim(rule);
	return ioband_take(b, cost, arrival, now) ||
	       (ioband_reserve_reclaim(rule) && ioband_take(b, cost, arrival, now));
}

/* Charge a TAT that does not allow it; with a bounded debt no more than that. */
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

/* What a bio costs at a limit, also noted for ioband_gate_unpay(). */
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
 * When a bio arrived at a gate.  The TAT of a rule that came later knows what it
 * had earned by then, see ioband_inherit(): no clock starts anew for it.
 */
static s64 ioband_arrival_at(const struct ioband_rule *rule,
			     const struct bio *bio)
{
	s64 arrival = ioband_arrival(bio);

	return rule && arrival > rule->since ? arrival : S64_MIN;
}

/* A gate whose rule has gone binds nobody until its group is relinked: @rule is NULL. */
static bool ioband_binds(const struct ioband_rule *rule, const struct bio *bio,
			 enum ioband_unit unit)
{
	/* a ticket waits until there is no debt, of whatever */
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
 * ioband_gate_pay - take what a bio costs at one gate
 * @gate:	the gate
 * @bio:	the bio, with its arrival stamped
 * @now:	ns, or when it was due
 * @terms:	may it be a debt?
 *
 * Context: dev->lock held.
 * Return: false if there is not enough, and no debt may be made; nothing is paid then.
 */
bool ioband_gate_pay(struct ioband_dir *gate, const struct bio *bio,
		     s64 now, enum ioband_terms terms)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);
	s64 arrival = ioband_arrival_at(rule, bio), most = 0;

	/* nobody who owes has something in hand */
	if (rule && terms != IOBAND_TERMS_NOW)
		ioband_reserve_reclaim(rule);
	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];
		s64 cost;

		if (!ioband_binds(rule, bio, unit))
			continue;
		cost = ioband_bill(gate, rule, bio, unit);
		most = max(most, cost);
		if (terms != IOBAND_TERMS_NOW) {
			ioband_take_anyway(b, cost, now,
					   terms == IOBAND_TERMS_BOUNDED);
		} else if (!ioband_take_all(rule, b, cost, arrival, now)) {
			ioband_gate_unpay(gate, bio, unit);
			return false;
		}
		swap(b->rem, gate->bill[unit].rem);
	}
	if (terms == IOBAND_TERMS_BOUNDED && most)
		rule->lent = ioband_lent(rule->lent, now, most);
	return true;
}

/**
 * ioband_pay_between - take what a bio costs at some of its gates, or nothing
 * @from:	the first gate
 * @end:	the gate above the last one, NULL for all
 * @bio:	the bio, with its arrival stamped
 * @now:	ns, or when it was due
 *
 * Context: dev->lock held.
 * Return: false if some gate does not let it go yet.
 */
bool ioband_pay_between(struct ioband_dir *from, struct ioband_dir *end,
			struct bio *bio, s64 now)
{
	struct ioband_dir *gate, *paid;

	for (gate = from; gate != end; gate = gate->up) {
		if (!ioband_gate_pay(gate, bio, now, IOBAND_TERMS_NOW))
			break;
	}
	if (gate == end)
		return true;
	for (paid = from; paid != gate; paid = paid->up)
		ioband_gate_unpay(paid, bio, IOBAND_NR_UNITS);
	return false;
}

/**
 * ioband_pay - take what a bio costs at all its gates, or nothing
 * @dir:	the bio's group and direction
 * @bio:	the bio, with its arrival stamped
 * @now:	ns, or when it was due
 *
 * Context: dev->lock held.
 * Return: false if some gate does not let it go yet.
 */
bool ioband_pay(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	lockdep_assert_held(&dir->grp->dev->lock);
	return ioband_pay_between(dir->lim, NULL, bio, now);
}

/**
 * ioband_gate_may_owe - is there room for what a bio costs in a bounded debt?
 * @gate:	the gate
 * @bio:	the bio
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: true if so.
 */
bool ioband_gate_may_owe(struct ioband_dir *gate, const struct bio *bio, s64 now)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];
		s64 cost;

		if (!ioband_binds(rule, bio, unit))
			continue;
		cost = ioband_bill(gate, rule, bio, unit);
		if (!ioband_may_owe(atomic64_read(&b->tat), now, cost, b->rate.burst) ||
		    !ioband_may_lend(rule->lent, now, cost))
			return false;
	}
	return true;
}

/* What a small I/O costs, or a burst if that is less. */
static s64 ioband_room(const struct ioband_bucket *b, enum ioband_unit unit)
{
	u64 rem = 0;

	return min(ioband_cost(b->rate.per_sec, unit == IOBAND_BYTES ? SZ_4K : 1, &rem),
		   b->rate.burst);
}

/**
 * ioband_bio_when - when do the limits of one gate let a bio go?
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
		 * A ticket of no bytes waits until a small I/O could go, and leaves that to
		 * others: those whose turn it is may be about to come back.
		 */
		cost = ioband_is_ticket(bio) && !bio->bi_iter.bi_size ?
		       ioband_room(b, unit) : ioband_bill(gate, rule, bio, unit);
		when = max(when, ioband_when(atomic64_read(&b->tat), arrival, cost,
					     b->rate.burst));
	}
	return when;
}

/**
 * ioband_gate_used - note that a turn at a gate has been taken
 * @gate:	the gate
 *
 * Whoever comes before a small I/O could go comes in time for the next turn.
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
 * ioband_due - when should a held bio leave?
 * @dir:	the bio's group and direction
 * @bio:	the bio
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: the time in ns that it is to be charged for, no more than
 *	   IOBAND_LATE_NS and ioband_ticks_ns() before @now; after @now if it may not
 *	   leave yet.
 */
s64 ioband_due(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	s64 due = max(ioband_arrival(bio), now - IOBAND_LATE_NS - ioband_ticks_ns());
	struct ioband_dir *gate;

	/* nobody is due before it is its turn, nor by a limit that was not there yet */
	due = max3(due, dir->source.last_due, dir->grp->dev->changed);
	for (gate = dir->lim; gate; gate = gate->up) {
		due = max(due, gate->gate.last_due);
		due = max(due, ioband_bio_when(gate, bio));
	}
	return due;
}

/**
 * ioband_bio_saves - does a bio cost more than a gate has in hand when idle?
 * @gate:	the gate
 * @bio:	the bio
 *
 * Context: dev->lock held.
 * Return: true if it must save up for longer than a burst.
 */
bool ioband_bio_saves(struct ioband_dir *gate, struct bio *bio)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++)
		if (ioband_binds(rule, bio, unit) &&
		    ioband_bill(gate, rule, bio, unit) >
		    rule->bucket[unit].rate.burst)
			return true;
	return false;
}

/**
 * ioband_bio_turn - how much of its turn at a gate a bio uses up
 * @gate:	the gate
 * @bio:	the bio
 *
 * Siblings take turns by this. It is no time, since the rates may change while they
 * wait; where both units are limited, an I/O counts for the bytes that could go in
 * the time that it takes.
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
 * ioband_is_bound - does any limit concern a bio?
 * @dir:	the bio's group and direction
 * @bio:	the bio
 *
 * Context: dev->lock held.
 * Return: true if it has to pay at a gate.
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
 * ioband_is_crowded - does anybody wait at a gate that a bio is to pass?
 * @dir:	the bio's group and direction
 *
 * Context: dev->lock held.
 * Return: true if somebody does.
 */
bool ioband_is_crowded(struct ioband_dir *dir)
{
	struct ioband_dir *gate;

	for (gate = dir->lim; gate; gate = gate->up)
		if (ioband_crowded(gate))
			return true;
	return false;
}
