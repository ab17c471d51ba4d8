/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_RULE_H
#define IOBAND_RULE_H

#include "../bio.h"

struct ioband_bucket {
	struct ioband_rate	rate;	/* dev->lock to write: I4 */
	atomic64_t		tat;	/* ns, see rate.h */
	u64			rem;	/* dev->lock, see ioband_cost() */
};

/* per group, device and direction: the limits of one gate, I4 */
struct ioband_rule {
	unsigned int		limited;	/* mask of BIT(unit): which units are limited */
	s64			since;	/* ns; the TATs include what arrived before: dev->lock */
	struct ioband_bucket	bucket[IOBAND_NR_UNITS];
};

/* Which units are limited, as a mask?  Their rates are there. */
static inline unsigned int ioband_limited(const struct ioband_rule *rule)
{
	unsigned int limited = READ_ONCE(rule->limited);

	/* pairs with smp_wmb() in ioband_rule_set() */
	smp_rmb();
	return limited;
}

/* Does a limit apply in a unit? */
static inline bool ioband_limits(const struct ioband_rule *rule, enum ioband_unit unit)
{
	return ioband_limited(rule) & BIT(unit);
}

/*
 * What units cost, ns.  Without dev->lock the rate may be changing: then it is that under the old
 * or the new rate; on 32 bits, where half of a rate may be seen, it can be IOBAND_TIME_MAX.
 */
static inline s64 ioband_price(const struct ioband_bucket *b, u64 units, u64 *rem)
{
	u64 per_sec = READ_ONCE(b->rate.per_sec);

	return per_sec ? ioband_cost(per_sec, units, rem) : IOBAND_TIME_MAX;
}

#endif /* IOBAND_RULE_H */
