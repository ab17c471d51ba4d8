/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_RESERVE_H
#define IOBAND_RESERVE_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>

#include "../bio.h"
#include "../math/rate.h"

/* The most reserves that a rule has, whatever the number of CPUs. */
#define IOBAND_RESERVES		64U

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

/* per rule and several CPUs: units that are charged and not used yet, I12 */
struct ioband_reserve {
	atomic64_t		left;	/* units, see ioband_pack() */
} ____cacheline_aligned_in_smp;

struct ioband_bucket {
	struct ioband_rate	rate;
	atomic64_t		tat;	/* ns, see rate.h */
	u64			rem;	/* dev->lock, see ioband_cost() */
};

/* per group, device and direction: the limits of one gate; I4, RCU */
struct ioband_rule {
	struct ioband_reserve	*reserve;	/* indexed by CPU >> shift */
	u64			limited;	/* mask of the halves of units that are limited */
	u8			shift;
	bool			stocked;	/* units may be in reserve, I12 */
	/* written often: not in a cache line with what every bio reads */
	struct ioband_bucket	bucket[IOBAND_NR_UNITS] ____cacheline_aligned_in_smp;
	s64			since;	/* ns; the TAT includes bios that arrived before */
	struct rcu_head		rcu;
};

/* reserve.c */
struct ioband_reserve *ioband_reserve_alloc(gfp_t gfp);
void ioband_reserve_init(struct ioband_rule *rule, const u64 limit[IOBAND_NR_UNITS]);
bool ioband_reserve_pay(struct ioband_rule *rule, u32 bytes);
void ioband_reserve_return(struct ioband_rule *rule, u32 bytes);
bool ioband_reserve_reclaim(struct ioband_rule *rule);

static __always_inline struct ioband_reserve *
ioband_reserve_of(const struct ioband_rule *rule)
{
	return &rule->reserve[(unsigned int)raw_smp_processor_id() >> rule->shift];
}

/* Take those of @units that are limited from the reserve, if it has all of them. */
static __always_inline bool ioband_reserve_take(const struct ioband_rule *rule, u64 units)
{
	atomic64_t *left = &ioband_reserve_of(rule)->left;
	s64 had = atomic64_read(left), rest;

	units &= rule->limited;
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
	s64 had = atomic64_read(&ioband_reserve_of(rule)->left);

	return !((had - (ioband_pack(bytes, 1) & rule->limited)) & IOBAND_SHORT);
}

#endif /* IOBAND_RESERVE_H */
