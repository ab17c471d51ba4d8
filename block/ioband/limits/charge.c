// SPDX-License-Identifier: GPL-2.0
/*
 * Charges: what bios cost, and when they may be dispatched; all that is paid under dev->lock.
 */
#include "../ioband.h"

/* Charge a cost, ns, if the TAT allows a dispatch now of what arrived at @arrival. */
static bool ioband_take(struct ioband_bucket *b, s64 cost, s64 arrival, s64 now)
{
	s64 tat, burst = b->rate.burst;

	/* what costs nothing does not use up what is in hand */
	do {
		tat = atomic64_read(&b->tat);
		if (ioband_when(tat, arrival, cost, burst) > now)
			return false;
	} while (cost && atomic64_cmpxchg(&b->tat, tat,
					  ioband_charge(tat, now, cost, burst)) != tat);
	return true;
}

/* The cost of a bio at a limit, ns.  @rem: the fraction that is carried, see ioband_cost(). */
static s64 ioband_bill(const struct ioband_dir *gate, const struct bio *bio, enum ioband_unit unit,
		       u64 *rem)
{
	return ioband_cost(gate->rule.bucket[unit].rate.per_sec, ioband_units(bio, unit), rem);
}

/*
 * The time when a bio arrived at a gate, or S64_MIN if that was before the limits last changed: the
 * TAT includes what the bio had earned by then, see ioband_rule_set().
 */
static s64 ioband_arrival_at(const struct ioband_dir *gate, const struct bio *bio)
{
	s64 arrival = ioband_arrival(bio);

	return arrival > gate->rule.since ? arrival : S64_MIN;
}

/* Does a limit of a gate apply to a bio?  If it was removed, the group may not know yet. */
static bool ioband_binds(const struct ioband_dir *gate, const struct bio *bio,
			 enum ioband_unit unit)
{
	return ioband_limits(&gate->rule, unit) && ioband_units(bio, unit);
}

/* Take back a charge in units before @end; a fraction of a nanosecond stays. */
static void ioband_gate_unpay(struct ioband_dir *gate, const struct bio *bio,
			      enum ioband_unit end)
{
	for (enum ioband_unit unit = 0; unit < end; unit++)
		if (ioband_binds(gate, bio, unit))
			atomic64_sub(ioband_bill(gate, bio, unit, &(u64){ 0 }),
				     &gate->rule.bucket[unit].tat);
}

/* Charge a bio at one gate.  Returns false if its limits have no room; nothing is paid then. */
static bool ioband_gate_pay(struct ioband_dir *gate, const struct bio *bio, s64 now)
{
	s64 arrival = ioband_arrival_at(gate, bio);

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &gate->rule.bucket[unit];
		u64 rem = b->rem;

		if (!ioband_binds(gate, bio, unit))
			continue;
		if (!ioband_take(b, ioband_bill(gate, bio, unit, &rem), arrival, now)) {
			ioband_gate_unpay(gate, bio, unit);
			return false;
		}
		b->rem = rem;
	}
	return true;
}

/*
 * Charge a bio, with its arrival stamped, at all its gates, or at none if one has no room yet.
 * @now may be the time when the bio was due, ns.
 */
bool ioband_pay(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	struct ioband_dir *gate = dir->lim, *paid;

	lockdep_assert_held(&dir->grp->dev->lock);
	while (gate && ioband_gate_pay(gate, bio, now))
		gate = gate->up;
	for (paid = dir->lim; gate && paid != gate; paid = paid->up)
		ioband_gate_unpay(paid, bio, IOBAND_NR_UNITS);
	return !gate;
}

/* The cost of units that may be as many as a call asks for, ns. */
static s64 ioband_price_of_many(const struct ioband_bucket *b, u64 units, u64 rem)
{
	return ioband_price(b, min(units, BIT_ULL(33)), &rem);
}

/* The time, ns, when a gate allows units that arrived at @arrival; S64_MIN if it limits none. */
static s64 ioband_gate_when(const struct ioband_dir *gate, const u64 units[IOBAND_NR_UNITS],
			    s64 arrival)
{
	s64 when = S64_MIN;

	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		const struct ioband_bucket *b = &gate->rule.bucket[unit];
		/* a fraction of a ns, which CPUs that charge without the lock change */
		u64 rem = data_race(b->rem);

		if (ioband_limits(&gate->rule, unit) && units[unit])
			when = max(when, ioband_when(atomic64_read(&b->tat), arrival,
						     ioband_price_of_many(b, units[unit], rem),
						     READ_ONCE(b->rate.burst)));
	}
	return when;
}

/* The time, ns, when the limits of one gate allow a held bio to be dispatched.  dev->lock held. */
s64 ioband_bio_when(struct ioband_dir *gate, struct bio *bio)
{
	u64 units[] = { ioband_units(bio, IOBAND_BYTES), ioband_units(bio, IOBAND_IOS) };

	return ioband_gate_when(gate, units, ioband_arrival_at(gate, bio));
}

/*
 * A group has taken its turn at a gate.  One that submits before the gate could dispatch another
 * small I/O is in time for its next turn.  dev->lock held.
 */
void ioband_gate_used(struct ioband_dir *gate)
{
	static const u64 small[] = { SZ_4K, 1 };

	gate->gate.busy_until_ns = ioband_gate_when(gate, small, S64_MIN);
}

/*
 * Give units back, but no more than if the @used ones alone had been paid for at @paid_ns: what was
 * earned for a payment beyond a burst is not in hand.  The TAT forgets a payment when it has
 * passed, unless others have waited since (@busy): then there is nothing to give back.
 */
static void ioband_give_back(struct ioband_bucket *b, u64 units, u64 used, s64 paid_ns, bool busy,
			     s64 now)
{
	s64 least = max(now, paid_ns + min(ioband_price_of_many(b, used, 0), b->rate.burst));
	s64 tat = atomic64_read(&b->tat);

	if (!busy && now >= paid_ns + min(ioband_price_of_many(b, used + units, 0), b->rate.burst))
		return;
	while (tat > least &&
	       !atomic64_try_cmpxchg(&b->tat, &tat,
				     max(tat - ioband_price_of_many(b, units, 0), least)))
		;
}

/* Give back what a task has paid for I/O that is not submitted.  dev->lock held. */
void ioband_unpay(struct ioband_dir *dir, const struct ioband_ticket *credit, s64 now)
{
	s64 paid_ns = ioband_arrival(&credit->bio);
	bool busy = dir->held && dir->held_since <= paid_ns;

	ioband_relink(dir, now);
	for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up) {
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			if (ioband_limits(&gate->rule, unit))
				ioband_give_back(&gate->rule.bucket[unit], credit->paid[unit],
						 credit->units[unit], paid_ns, busy, now);
		/* its first bio is due earlier now */
		if (gate->gate.head)
			ioband_place(gate->grp->dev, &gate->gate, now);
	}
	ioband_kick(dir->grp->dev, now);
}

/*
 * How long it takes until a gate, NULL for none, and those above allow units that arrive now, ns;
 * what others have to pay there is left out.  dev->lock held, or RCU read side: then it may be off.
 */
s64 ioband_units_ns(const struct ioband_dir *gate, const u64 units[IOBAND_NR_UNITS], s64 now)
{
	u64 now_units[] = { READ_ONCE(units[IOBAND_BYTES]), READ_ONCE(units[IOBAND_IOS]) };
	s64 when = now;

	for (; gate; gate = READ_ONCE(gate->up))
		when = max(when, ioband_gate_when(gate, now_units, now));
	return when - now;
}

/*
 * The time, ns, as of which a held bio is to be charged: no more than IOBAND_LATE_NS and
 * ioband_ticks_ns() before @now, and after @now if it may not be dispatched yet.  dev->lock held.
 */
s64 ioband_due(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	s64 due = max(ioband_arrival(bio), now - IOBAND_LATE_NS - ioband_ticks_ns());
	struct ioband_dir *gate;

	/* a bio is due neither before those ahead of it, nor before limits last changed, or went */
	due = max3(due, dir->source.last_due, dir->grp->dev->changed);
	for (gate = dir->lim; gate; gate = gate->up) {
		due = max(due, gate->gate.last_due);
		due = max(due, ioband_bio_when(gate, bio));
	}
	return due;
}

/* Does a bio cost more than a burst, and has a gate that in hand for it?  dev->lock held. */
bool ioband_bio_saves(struct ioband_dir *gate, struct bio *bio, s64 now)
{
	u64 rem = 0;

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++)
		if (ioband_binds(gate, bio, unit) &&
		    ioband_bill(gate, bio, unit, &rem) > gate->rule.bucket[unit].rate.burst &&
		    atomic64_read(&gate->rule.bucket[unit].tat) <= now)
			return true;
	return false;
}

/*
 * How much of its group's turn at a gate a bio uses up, bytes.  It is no time, since the rates may
 * change while bios wait.  Where both units are limited, an I/O counts for at least the bytes that
 * the limit in bytes allows in the time that the limit in I/Os makes it take.  dev->lock held.
 */
u64 ioband_bio_turn(const struct ioband_dir *gate, const struct bio *bio)
{
	u64 bps = gate->limit[IOBAND_BYTES], ios = gate->limit[IOBAND_IOS];
	u64 bytes = 0, least = SZ_4K;

	if (bps != U64_MAX) {
		bytes = ioband_units(bio, IOBAND_BYTES);
		least = ios != U64_MAX ? div64_u64(bps, ios) : 0;
	}
	return max(bytes, min(least, SZ_1M) * ioband_units(bio, IOBAND_IOS));
}

/* Does any limit apply to a bio?  dev->lock held. */
bool ioband_is_bound(struct ioband_dir *dir, const struct bio *bio)
{
	struct ioband_dir *gate;

	for (gate = dir->lim; gate; gate = gate->up)
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			if (ioband_binds(gate, bio, unit))
				return true;
	return false;
}
