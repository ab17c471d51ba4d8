// SPDX-License-Identifier: GPL-2.0
/*
 * Reserves: units that CPUs have charged to a limit before any bio uses them.
 *
 * A bio that takes its units from the reserve of its CPU does not write the TAT, whose cache line
 * all CPUs share.  At a limit too low for a batch on each CPU there are no reserves: then each bio
 * reads the clock and writes the TAT.
 *
 * Before a limit makes a bio wait, all units in reserve go back to the TAT.  From then on
 * each I/O pays for itself, and the rate is exact.
 *
 * Example: 64 CPUs, rbps=4294967296.  IOBAND_RESERVE_NS of that is 2 MiB, a batch of 32 KiB for
 * each CPU.  At rbps=1073741824 it is 8 KiB, which is not worth buying.
 */
#include <linux/ktime.h>
#include <linux/percpu.h>

#include "../ioband.h"

/* Undo the charge for units that no bio has used. */
static void ioband_unbuy(struct ioband_bucket *b, u64 units)
{
	u64 rem = 0;
	s64 cost = units ? ioband_price(b, units, &rem) : 0;

	/* not at a price that is none */
	if (cost != IOBAND_TIME_MAX)
		atomic64_sub(cost, &b->tat);
}

/* Put charged units in reserve; undo the charge for those beyond a batch. */
static void ioband_stock(struct ioband_rule *rule, struct ioband_reserve *res,
			 const s64 units[IOBAND_NR_UNITS])
{
	s64 left = atomic64_read(&res->left);
	s64 kept[IOBAND_NR_UNITS];

	do {
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			kept[unit] = clamp_t(s64, READ_ONCE(rule->bucket[unit].rate.batch) -
					     (s64)ioband_unpack(left, unit), 0, units[unit]);
	} while (!atomic64_try_cmpxchg(&res->left, &left,
				       left + ioband_pack(kept[IOBAND_BYTES],
							  kept[IOBAND_IOS])));
	/* set after the units are there: see ioband_reserve_reclaim() */
	if ((kept[IOBAND_BYTES] || kept[IOBAND_IOS]) && !READ_ONCE(rule->stocked))
		WRITE_ONCE(rule->stocked, true);
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		ioband_unbuy(&rule->bucket[unit], units[unit] - kept[unit]);
}

/* Charge units if the TAT allows it. */
static bool ioband_buy(struct ioband_bucket *b, u64 units, s64 now)
{
	u64 rem = 0;
	s64 cost = ioband_price(b, units, &rem);

	return ioband_take(b, cost + !!rem, now, now);
}

/* Take units from those in hand; charge the missing ones, with a batch if the TAT allows. */
static bool ioband_spend(struct ioband_bucket *b, s64 *hand, u32 units, s64 now)
{
	s64 lack = units - *hand;
	u64 batch = READ_ONCE(b->rate.batch);

	if (lack <= 0)
		*hand = -lack;
	else if (batch && ioband_buy(b, lack + batch, now))
		*hand = batch;
	else if (ioband_buy(b, lack, now))
		*hand = 0;
	else
		return false;
	return true;
}

/* As ioband_reserve_pay(); @hand is all that was in reserve, and becomes what is left. */
static bool ioband_spend_all(struct ioband_rule *rule, s64 hand[IOBAND_NR_UNITS], u64 units)
{
	u32 bytes = ioband_unpack(units, IOBAND_BYTES), ios = ioband_unpack(units, IOBAND_IOS);
	s64 now = ktime_get_ns();

	/* as in ioband_limited() */
	smp_rmb();
	if (!ioband_spend(&rule->bucket[IOBAND_BYTES], &hand[IOBAND_BYTES], bytes, now))
		return false;
	if (ioband_spend(&rule->bucket[IOBAND_IOS], &hand[IOBAND_IOS], ios, now))
		return true;
	hand[IOBAND_BYTES] += bytes;
	return false;
}

/**
 * ioband_reserve_pay - pay for a bio at a gate, from the reserve of this CPU or from the TAT
 * @rule:	the gate's rule
 * @units:	what ioband_owing() says
 *
 * Context: any; takes no lock.
 * Return: false if the limit has no room; then nothing is paid.
 */
bool ioband_reserve_pay(struct ioband_rule *rule, u64 units)
{
	struct ioband_reserve *res = raw_cpu_ptr(rule->reserve);
	s64 hand[IOBAND_NR_UNITS];
	u64 left;
	bool paid;

	if (ioband_reserve_take(rule, units))
		return true;
	left = atomic64_read(&res->left) ? atomic64_xchg(&res->left, 0) : 0;
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		hand[unit] = ioband_unpack(left, unit);
	paid = ioband_spend_all(rule, hand, units);
	if (hand[IOBAND_BYTES] || hand[IOBAND_IOS])
		ioband_stock(rule, res, hand);
	return paid;
}

/**
 * ioband_reserve_return - undo ioband_reserve_pay() or ioband_reserve_take()
 * @rule:	the gate's rule
 * @units:	what was paid, packed
 *
 * Context: any; takes no lock.
 */
void ioband_reserve_return(struct ioband_rule *rule, u64 units)
{
	const s64 back[] = {
		[IOBAND_BYTES]	= ioband_unpack(units, IOBAND_BYTES),
		[IOBAND_IOS]	= ioband_unpack(units, IOBAND_IOS),
	};

	ioband_stock(rule, raw_cpu_ptr(rule->reserve), back);
}

/**
 * ioband_reserve_reclaim - give back to the TAT what CPUs have in reserve, I12
 * @rule:	a gate's rule
 *
 * Units that CPUs buy at the same moment may stay in reserve.  Only limits that are worth a batch
 * for each CPU have reserves, so that this takes the less time the lower a limit is.
 *
 * Context: dev->lock held.
 * Return: true if anything may have been in reserve.
 */
bool ioband_reserve_reclaim(struct ioband_rule *rule)
{
	int cpu;

	if (!READ_ONCE(rule->stocked))
		return false;
	WRITE_ONCE(rule->stocked, false);
	/* pairs with the cmpxchg in ioband_stock(): that sees ->stocked clear, or this its units */
	smp_mb();
	for_each_possible_cpu(cpu) {
		atomic64_t *left = &per_cpu_ptr(rule->reserve, cpu)->left;
		u64 units = atomic64_read(left) ? atomic64_xchg(left, 0) : 0;

		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			ioband_unbuy(&rule->bucket[unit], ioband_unpack(units, unit));
	}
	return true;
}
