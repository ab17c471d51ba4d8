// SPDX-License-Identifier: GPL-2.0
/*
 * Reserves: units that have been charged to a limit before anybody uses them.
 *
 * A bio that takes them leaves the TAT alone, a line that all CPUs write.  As many CPUs
 * share a reserve as it takes to make a batch worth buying: at a high limit each CPU
 * has its own, at a low one they share, and then use it rarely.
 *
 * Before a limit has somebody wait, all that is in reserve goes back to the TAT.  From
 * then on each I/O pays for itself, and the rate is exact.
 *
 * Example: 64 CPUs, rbps=2147483648.  IOBAND_RESERVE_NS of that is 1 MiB, enough for 64
 * batches of 16 KiB, one a CPU.  At rbps=268435456 it is for 8, and 8 CPUs share each.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "ioband.h"

/* A batch pays from this many ordinary I/Os on. */
#define IOBAND_MIN_BATCH_IOS	4
#define IOBAND_MIN_BATCH_BYTES	(IOBAND_MIN_BATCH_IOS * SZ_4K)

/**
 * ioband_reserve_alloc - memory for the reserves of a rule
 *
 * Context: may sleep.
 * Return: empty ones, NULL if there is no memory.
 */
struct ioband_reserve *ioband_reserve_alloc(void)
{
	return kcalloc(min(nr_cpu_ids, IOBAND_RESERVES), sizeof(struct ioband_reserve),
		       GFP_KERNEL);
}

static unsigned int ioband_nr_reserves(const struct ioband_rule *rule)
{
	return ((nr_cpu_ids - 1) >> rule->shift) + 1;
}

/**
 * ioband_reserve_init - set up the limits of a rule, and how CPUs share its reserves
 * @rule:	the rule, from ioband_rule_alloc()
 * @limit:	units a second, U64_MAX for none
 */
void ioband_reserve_init(struct ioband_rule *rule, const u64 limit[IOBAND_NR_UNITS])
{
	static const u32 min_burst[] = { IOBAND_BURST_BYTES, IOBAND_BURST_IOS };
	static const u32 min_batch[] = { IOBAND_MIN_BATCH_BYTES, IOBAND_MIN_BATCH_IOS };
	unsigned int most = IOBAND_RESERVES;

	/* a limit that is too low for one batch has none, and does not count */
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		most = min(most, ioband_rate_parts(limit[unit], min_batch[unit]) ?:
				 IOBAND_RESERVES);
	while (ioband_nr_reserves(rule) > most)
		rule->shift++;
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		ioband_rate_init(&rule->bucket[unit].rate, limit[unit], min_burst[unit],
				 min_batch[unit], ioband_nr_reserves(rule));
		rule->limits[unit] = rule->bucket[unit].rate.per_sec;
	}
}

/* Undo the charge for units that nobody has used. */
static void ioband_give_back(struct ioband_bucket *b, u64 units)
{
	u64 rem = 0;

	if (units)
		atomic64_sub(ioband_cost(b->rate.per_sec, units, &rem), &b->tat);
}

/* Put units in reserve that have been charged; what goes beyond a batch goes back. */
static void ioband_stock(struct ioband_rule *rule, struct ioband_reserve *res,
			 enum ioband_unit unit, s64 units)
{
	struct ioband_bucket *b = &rule->bucket[unit];
	s64 left = atomic64_read(&res->left[unit]);
	s64 kept;

	do {
		kept = min(units, (s64)b->rate.batch - left);
	} while (!atomic64_try_cmpxchg(&res->left[unit], &left, left + kept));
	/* after it is there: see ioband_reserve_reclaim() */
	if (kept > 0 && !READ_ONCE(rule->stocked))
		WRITE_ONCE(rule->stocked, true);
	ioband_give_back(b, units - kept);
}

/* Charge @units that are not in reserve, and a batch if there is enough. */
static bool ioband_buy(struct ioband_rule *rule, struct ioband_reserve *res,
		       enum ioband_unit unit, u32 units)
{
	struct ioband_bucket *b = &rule->bucket[unit];
	s64 batch = b->rate.batch, now = ktime_get_ns();
	s64 left = batch ? atomic64_xchg(&res->left[unit], 0) : 0;

	for (;;) {
		s64 need = units + batch - left;
		u64 rem = 0;

		if (need <= 0 ||
		    ioband_take(b, ioband_cost(b->rate.per_sec, need, &rem) + !!rem,
				now, now)) {
			ioband_stock(rule, res, unit, need > 0 ? batch : -need);
			return true;
		}
		if (!batch)
			break;
		batch = 0;
	}
	ioband_stock(rule, res, unit, left);
	return false;
}

/**
 * ioband_reserve_return - undo what was paid at a gate
 * @rule:	the gate's rule
 * @bytes:	that were paid
 * @ios:	I/Os that were paid
 *
 * Context: any; no lock.
 */
void ioband_reserve_return(struct ioband_rule *rule, u32 bytes, u32 ios)
{
	struct ioband_reserve *res = ioband_reserve_of(rule);

	if (bytes && rule->limits[IOBAND_BYTES])
		ioband_stock(rule, res, IOBAND_BYTES, bytes);
	if (ios && rule->limits[IOBAND_IOS])
		ioband_stock(rule, res, IOBAND_IOS, ios);
}

/**
 * ioband_reserve_pay - pay at a gate from the reserve of this CPU, or from its TAT
 * @rule:	the gate's rule
 * @bytes:	the bio's
 *
 * Context: any; no lock.
 * Return: false if there is not enough; then nothing is paid.
 */
bool ioband_reserve_pay(struct ioband_rule *rule, u32 bytes)
{
	struct ioband_reserve *res = ioband_reserve_of(rule);
	const u32 units[] = { bytes, 1 };

	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		if (!rule->limits[unit] ||
		    ioband_reserve_take_units(res, unit, units[unit]) ||
		    ioband_buy(rule, res, unit, units[unit]))
			continue;
		ioband_reserve_return(rule, unit == IOBAND_BYTES ? 0 : bytes, 0);
		return false;
	}
	return true;
}

/**
 * ioband_reserve_reclaim - take back what CPUs have in reserve, I12
 * @rule:	a gate's rule
 *
 * What CPUs buy at the same moment may stay.
 *
 * Context: dev->lock held.
 * Return: true if there may have been something.
 */
bool ioband_reserve_reclaim(struct ioband_rule *rule)
{
	if (!READ_ONCE(rule->stocked))
		return false;
	WRITE_ONCE(rule->stocked, false);
	/* pairs with the cmpxchg in ioband_stock(): it sees ->stocked clear, or we its units */
	smp_mb();
	for (unsigned int i = 0; i < ioband_nr_reserves(rule); i++) {
		atomic64_t *left = rule->reserve[i].left;

		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			if (rule->limits[unit] && atomic64_read(&left[unit]))
				ioband_give_back(&rule->bucket[unit],
						 atomic64_xchg(&left[unit], 0));
	}
	return true;
}
