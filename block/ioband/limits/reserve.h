/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_RESERVE_H
#define IOBAND_RESERVE_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/percpu.h>

#include "../bio.h"
#include "../math/rate.h"

/*
 * Bytes and I/Os in reserve are one number, so that one atomic operation takes both: bytes in
 * the low half, I/Os in the high half.  The top bit of each half is clear.  A subtraction of
 * more than a half has sets its top bit; the half for bytes is wide enough for that to work
 * with the bytes of any bio.
 */
#define IOBAND_BYTES_BITS	34
#define IOBAND_SHORT		(BIT_ULL(63) | BIT_ULL(IOBAND_BYTES_BITS - 1))

static_assert(BIT_ULL(63 - IOBAND_BYTES_BITS) > IOBAND_BATCH_MAX);

static __always_inline u64 ioband_pack(u64 bytes, u64 ios)
{
	return bytes | ios << IOBAND_BYTES_BITS;
}

static inline u64 ioband_unpack(u64 units, enum ioband_unit unit)
{
	return unit == IOBAND_IOS ? units >> IOBAND_BYTES_BITS :
				    units & (BIT_ULL(IOBAND_BYTES_BITS) - 1);
}

/* The half of packed units that is for one unit, as a mask. */
static inline u64 ioband_half(enum ioband_unit unit)
{
	return unit == IOBAND_IOS ? ~(BIT_ULL(IOBAND_BYTES_BITS) - 1) :
				    BIT_ULL(IOBAND_BYTES_BITS) - 1;
}

/* per CPU and gate: units that are charged and not used yet, I12 */
struct ioband_reserve {
	atomic64_t		left;	/* units, see ioband_pack() */
};

struct ioband_bucket {
	struct ioband_rate	rate;	/* dev->lock to write: I4 */
	atomic64_t		tat;	/* ns, see rate.h */
	u64			rem;	/* dev->lock, see ioband_cost() */
};

/* per group, device and direction: the limits of one gate, I4 */
struct ioband_rule {
	struct ioband_reserve __percpu *reserve;
	u64			limited;	/* mask of the halves of units that are limited */
	bool			stocked;	/* units may be in reserve, I12 */
	s64			since;	/* ns; the TATs include what arrived before: dev->lock */
	/* written often: not in a cache line with what every bio reads */
	struct ioband_bucket	bucket[IOBAND_NR_UNITS] ____cacheline_aligned_in_smp;
};

/* reserve.c */
bool ioband_reserve_pay(struct ioband_rule *rule, u64 units);
void ioband_reserve_return(struct ioband_rule *rule, u64 units);
bool ioband_reserve_reclaim(struct ioband_rule *rule);

/* Which units are limited, as a mask?  Their rates are there. */
static inline u64 ioband_limited(const struct ioband_rule *rule)
{
	u64 limited = READ_ONCE(rule->limited);

	/* pairs with smp_wmb() in ioband_rule_set() */
	smp_rmb();
	return limited;
}

/* Does a limit apply in a unit? */
static inline bool ioband_limits(const struct ioband_rule *rule, enum ioband_unit unit)
{
	return ioband_limited(rule) & ioband_half(unit);
}

/* What a bio pays at a gate, packed: those of its units that are limited. */
static __always_inline u64 ioband_owing(const struct ioband_rule *rule, u64 bytes)
{
	return ioband_pack(bytes, 1) & READ_ONCE(rule->limited);
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

/* Take packed units from the reserve of this CPU, if it has all of them. */
static __always_inline bool ioband_reserve_take(const struct ioband_rule *rule, u64 units)
{
	atomic64_t *left = &raw_cpu_ptr(rule->reserve)->left;
	s64 had = atomic64_read(left), rest;

	do {
		rest = had - units;
		if (unlikely(rest & IOBAND_SHORT))
			return false;
	} while (unlikely(!atomic64_try_cmpxchg(left, &had, rest)));
	return true;
}

/* Would ioband_reserve_take() take a bio of @bytes?  The answer may change at any time. */
static inline bool ioband_reserve_has(const struct ioband_rule *rule, u64 bytes)
{
	s64 had = atomic64_read(&raw_cpu_ptr(rule->reserve)->left);

	return !((had - ioband_owing(rule, bytes)) & IOBAND_SHORT);
}

#endif /* IOBAND_RESERVE_H */
