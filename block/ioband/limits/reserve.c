// SPDX-License-Identifier: GPL-2.0
/*
 * Reserves: units that CPUs have charged to a limit before any bio uses them.
 *
 * A bio that takes its units from a reserve does not write the TAT, whose cache line all
 * CPUs share.  As many CPUs share a reserve as are needed to make a batch worth buying: at a
 * high limit each CPU has a reserve of its own; at a low limit CPUs share reserves, and use
 * them rarely.
 *
 * Before a limit makes a bio wait, all units in reserve go back to the TAT.  From then on
 * each I/O pays for itself, and the rate is exact.
 *
 * Example: 64 CPUs, rbps=2147483648.  IOBAND_RESERVE_NS of that is 1 MiB, enough for 64
 * batches of 16 KiB, one for each CPU.  At rbps=268435456 it is enough for 8 batches, and
 * 8 CPUs share each reserve.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "../ioband.h"

/* The smallest batch that is worth buying, in ordinary I/Os. */
#define IOBAND_MIN_BATCH_IOS	4
#define IOBAND_MIN_BATCH_BYTES	(IOBAND_MIN_BATCH_IOS * SZ_4K)

/**
 * ioband_reserve_alloc - allocate the reserves of a rule
 * @gfp:	allocation flags
 *
 * Context: as @gfp says.
 * Return: empty reserves, NULL if there is no memory.
 */
struct ioband_reserve *ioband_reserve_alloc(gfp_t gfp)
{
	return kcalloc(min(nr_cpu_ids, IOBAND_RESERVES), sizeof(struct ioband_reserve), gfp);
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

	/* a limit too low for a single batch has no reserves, and does not matter here */
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		most = min(most, ioband_rate_parts(limit[unit], min_batch[unit]) ?:
				 IOBAND_RESERVES);
	while (ioband_nr_reserves(rule) > most)
		rule->shift++;
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		ioband_rate_init(&rule->bucket[unit].rate, limit[unit], min_burst[unit],
				 min_batch[unit], ioband_nr_reserves(rule));
	}
	if (rule->bucket[IOBAND_BYTES].rate.per_sec)
		rule->limited |= ioband_pack(BIT_ULL(IOBAND_BYTES_BITS) - 1, 0);
	if (rule->bucket[IOBAND_IOS].rate.per_sec)
		rule->limited |= ioband_pack(0, U64_MAX);
}

/* Undo the charge for units that no bio has used. */
static void ioband_give_back(struct ioband_bucket *b, u64 units)
{
	u64 rem = 0;

	if (units)
		atomic64_sub(ioband_cost(b->rate.per_sec, units, &rem), &b->tat);
}

/* Put charged units in reserve; undo the charge for those beyond a batch. */
static void ioband_stock(struct ioband_rule *rule, struct ioband_reserve *res,
			 const s64 units[IOBAND_NR_UNITS])
{
	s64 left = atomic64_read(&res->left);
	s64 kept[IOBAND_NR_UNITS];

	do {
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			kept[unit] = min_t(s64, units[unit],
					   rule->bucket[unit].rate.batch -
					   ioband_unpack(left, unit));
	} while (!atomic64_try_cmpxchg(&res->left, &left,
				       left + ioband_pack(kept[IOBAND_BYTES],
							  kept[IOBAND_IOS])));
	/* set after the units are there: see ioband_reserve_reclaim() */
	if ((kept[IOBAND_BYTES] || kept[IOBAND_IOS]) && !READ_ONCE(rule->stocked))
		WRITE_ONCE(rule->stocked, true);
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		ioband_give_back(&rule->bucket[unit], units[unit] - kept[unit]);
}

/* Charge units if the TAT allows it. */
static bool ioband_buy(struct ioband_bucket *b, u64 units, s64 now)
{
	u64 rem = 0;
	s64 cost = ioband_cost(b->rate.per_sec, units, &rem);

	return ioband_take(b, cost + !!rem, now, now);
}

/* Take units from those in hand; charge the missing ones, with a batch if the TAT allows. */
static bool ioband_spend(struct ioband_bucket *b, s64 *hand, u32 units, s64 now)
{
	s64 lack = units - *hand;

	if (lack <= 0)
		*hand = -lack;
	else if (b->rate.batch && ioband_buy(b, lack + b->rate.batch, now))
		*hand = b->rate.batch;
	else if (ioband_buy(b, lack, now))
		*hand = 0;
	else
		return false;
	return true;
}

/* As ioband_reserve_pay(); @hand is all that was in reserve, and becomes what is left. */
static bool ioband_spend_all(struct ioband_rule *rule, s64 hand[IOBAND_NR_UNITS], u32 bytes)
{
	struct ioband_bucket *b = rule->bucket;
	s64 now = ktime_get_ns();

	if (b[IOBAND_BYTES].rate.per_sec &&
	    !ioband_spend(&b[IOBAND_BYTES], &hand[IOBAND_BYTES], bytes, now))
		return false;
	if (!b[IOBAND_IOS].rate.per_sec ||
	    ioband_spend(&b[IOBAND_IOS], &hand[IOBAND_IOS], 1, now))
		return true;
	if (b[IOBAND_BYTES].rate.per_sec)
		hand[IOBAND_BYTES] += bytes;
	return false;
}

/**
 * ioband_reserve_pay - pay for a bio at a gate, from the reserve of this CPU or from the TAT
 * @rule:	the gate's rule
 * @bytes:	the bytes that the bio is charged for
 *
 * Context: any; takes no lock.
 * Return: false if the limit has no room; then nothing is paid.
 */
bool ioband_reserve_pay(struct ioband_rule *rule, u32 bytes)
{
	struct ioband_reserve *res = ioband_reserve_of(rule);
	s64 hand[IOBAND_NR_UNITS];
	u64 left;
	bool paid;

	if (ioband_reserve_take(rule, ioband_pack(bytes, 1)))
		return true;
	left = atomic64_read(&res->left) ? atomic64_xchg(&res->left, 0) : 0;
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		hand[unit] = ioband_unpack(left, unit);
	paid = ioband_spend_all(rule, hand, bytes);
	if (hand[IOBAND_BYTES] || hand[IOBAND_IOS])
		ioband_stock(rule, res, hand);
	return paid;
}

/**
 * ioband_reserve_return - undo ioband_reserve_pay() or ioband_reserve_take() of a bio
 * @rule:	the gate's rule
 * @bytes:	the bytes that were paid
 *
 * Context: any; takes no lock.
 */
void ioband_reserve_return(struct ioband_rule *rule, u32 bytes)
{
	u64 units = ioband_pack(bytes, 1) & rule->limited;
	const s64 back[] = {
		[IOBAND_BYTES]	= ioband_unpack(units, IOBAND_BYTES),
		[IOBAND_IOS]	= ioband_unpack(units, IOBAND_IOS),
	};

	ioband_stock(rule, ioband_reserve_of(rule), back);
}

/**
 * ioband_reserve_reclaim - give back to the TAT what CPUs have in reserve, I12
 * @rule:	a gate's rule
 *
 * Units that CPUs buy at the same moment may stay in reserve.
 *
 * Context: dev->lock held.
 * Return: true if anything may have been in reserve.
 */
bool ioband_reserve_reclaim(struct ioband_rule *rule)
{
	if (!READ_ONCE(rule->stocked))
		return false;
	WRITE_ONCE(rule->stocked, false);
	/* pairs with the cmpxchg in ioband_stock(): that sees ->stocked clear, or this its units */
	smp_mb();
	for (unsigned int i = 0; i < ioband_nr_reserves(rule); i++) {
		atomic64_t *left = &rule->reserve[i].left;
		u64 units = atomic64_read(left) ? atomic64_xchg(left, 0) : 0;

		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			ioband_give_back(&rule->bucket[unit], ioband_unpack(units, unit));
	}
	return true;
}
