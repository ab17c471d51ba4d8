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

static void ioband_take_anyway(struct ioband_bucket *b, s64 cost, s64 now)
{
	s64 tat = atomic64_read(&b->tat);

	while (!atomic64_try_cmpxchg(&b->tat, &tat,
				     ioband_charge(tat, now, cost,
						   b->rate.burst)))
		;
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

/* A removed group may know a gate whose rule has gone since: @rule can be NULL. */
static bool ioband_binds(const struct ioband_rule *rule, const struct bio *bio,
			 enum ioband_unit unit)
{
	return rule && rule->bucket[unit].rate.per_sec && ioband_units(bio, unit);
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

static bool ioband_gate_pay(struct ioband_dir *gate, const struct bio *bio,
			    s64 now, bool anyway)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);
	s64 arrival = ioband_arrival_at(rule, bio);

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];
		s64 cost;

		if (!ioband_binds(rule, bio, unit))
			continue;
		cost = ioband_bill(gate, rule, bio, unit);
		if (anyway) {
			ioband_take_anyway(b, cost, now);
		} else if (!ioband_take(b, cost, arrival, now)) {
			ioband_gate_unpay(gate, bio, unit);
			return false;
		}
		swap(b->rem, gate->bill[unit].rem);
		/* see IOBAND_RESERVE_NS */
		if (b->rate.batch && cost > b->rate.burst) {
			rule->closed_until = now + IOBAND_RESERVE_NS;
			WRITE_ONCE(rule->closed, true);
		}
	}
	return true;
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
	struct ioband_dir *gate, *paid;

	lockdep_assert_held(&dir->grp->dev->lock);
	for (gate = dir->lim; gate; gate = gate->up) {
		if (!ioband_gate_pay(gate, bio, now, false))
			break;
	}
	if (!gate)
		return true;
	for (paid = dir->lim; paid; paid = paid->up) {
		if (paid == gate)
			break;
		ioband_gate_unpay(paid, bio, IOBAND_NR_UNITS);
	}
	return false;
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

		if (!ioband_binds(rule, bio, unit))
			continue;
		when = max(when, ioband_when(atomic64_read(&b->tat), arrival,
					     ioband_bill(gate, rule, bio, unit),
					     b->rate.burst));
	}
	return when;
}

/**
 * ioband_due - when should a held bio leave?
 * @dir:	the bio's group and direction
 * @bio:	the bio
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: the time in ns that it is to be charged for, no more than
 *	   IOBAND_LATE_NS before @now; after @now if it may not leave yet.
 */
s64 ioband_due(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	s64 due = max(ioband_arrival(bio), now - IOBAND_LATE_NS);
	struct ioband_dir *gate;

	/* nobody is due before it is its turn */
	due = max(due, dir->source.last_due);
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
 * ioband_bio_share - how much of a gate's time a bio uses up
 * @gate:	the gate
 * @bio:	the bio
 *
 * Context: dev->lock held.
 * Return: ns by the limit that binds tightest.
 */
s64 ioband_bio_share(struct ioband_dir *gate, struct bio *bio)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);
	s64 share = 0;

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++)
		if (ioband_binds(rule, bio, unit))
			share = max(share, ioband_bill(gate, rule, bio, unit));
	return share;
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

/**
 * ioband_reopen - let reserves be used again that were closed for a while
 * @dir:	a group and direction
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_reopen(struct ioband_dir *dir, s64 now)
{
	struct ioband_dir *gate;

	for (gate = dir->lim; gate; gate = gate->up) {
		struct ioband_rule *rule = ioband_gate_rule(gate);

		if (rule && rule->closed && rule->closed_until <= now)
			WRITE_ONCE(rule->closed, false);
	}
}

static s64 ioband_rule_debt_end(struct ioband_rule *rule)
{
	s64 end = 0;

	for (int unit = 0; rule && unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];

		if (b->rate.per_sec)
			end = max(end, atomic64_read(&b->tat) - b->rate.burst);
	}
	return end;
}

/**
 * ioband_dir_debt_end - until when has a group been given more than it may have?
 * @dir:	one direction of it
 *
 * Context: dev->lock held.
 * Return: the time in ns when all its gates let an I/O of no size go.
 */
s64 ioband_dir_debt_end(struct ioband_dir *dir)
{
	struct ioband_dir *gate;
	s64 end = 0;

	for (gate = dir->lim; gate; gate = gate->up)
		end = max(end, ioband_rule_debt_end(ioband_gate_rule(gate)));
	return end;
}

/**
 * ioband_debt_end - as ioband_dir_debt_end(), for both directions
 * @grp:	the group
 *
 * Context: dev->lock held.
 * Return: the time in ns.
 */
s64 ioband_debt_end(struct ioband_grp *grp)
{
	return max(ioband_dir_debt_end(&grp->dir[READ]),
		   ioband_dir_debt_end(&grp->dir[WRITE]));
}

/**
 * ioband_owe - a bio goes now and its group pays later
 * @grp:	the group
 * @bio:	the bio
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_owe(struct ioband_grp *grp, struct bio *bio, s64 now)
{
	struct ioband_dir *gate;
	s64 cost = 0;

	for (gate = grp->dir[bio_data_dir(bio)].lim; gate; gate = gate->up) {
		cost = max(cost, ioband_bio_share(gate, bio));
		ioband_gate_pay(gate, bio, now, true);
	}
	if (!ioband_is_owned(bio))
		ioband_delay(grp, cost, now);
	/* who dirties pages waits for that: their owner, or that of copies of them */
	if (op_is_write(bio_op(bio)) && ioband_may_be_awaited(bio))
		WRITE_ONCE(grp->owed_until, ioband_dir_debt_end(&grp->dir[WRITE]));
}
