/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_COST_H
#define IOBAND_COST_H

#include <linux/log2.h>
#include <linux/string.h>

#include "cost_filter.h"

/*
 * The device time that an I/O takes: a + b * bytes, for each direction.
 *
 * Latencies do not tell this time.  Of two I/Os on a link, the short one takes as long as the long
 * one before it.  But while the device has enough to do, the time in which a block of I/Os
 * completes is the sum of their device times, and blocks differ in the I/Os of which they consist.
 * cost_filter.h finds the a and b that explain these times best, and forgets old blocks.
 *
 * An I/O that is in flight while a block ends counts in both blocks, by its time in flight in each.
 * If it counted where it completes, a long I/O would slow down the others of one block and count in
 * the next, and so seem to cost nothing.  Only its last BLOCK_LATENCIES count: an I/O that is in
 * flight for far longer than others has most likely waited before that.
 *
 * Shares make I/O regular: with shares by the believed costs, all blocks would consist of the same
 * I/Os, and show nothing.  So while costs are not known well, a quarter more is charged for long
 * I/Os, and a quarter less for short ones, in one block, and the other way round in the next one;
 * then the same with reads and writes.  Other blocks differ only by chance, as if no
 * cost mattered.  They only show whether all I/Os take longer, or less long.
 *
 * Nothing here reads a clock or takes a lock.
 */

/* A block has at least this many I/Os, and lasts for at least this many latencies, ... */
#define IOBAND_BLOCK		8
#define IOBAND_BLOCK_LATENCIES	4
/* ... and for MANY latencies as long as these are no longer than this. */
#define IOBAND_BLOCK_MANY	64
#define IOBAND_BLOCK_NS		(20LL * NSEC_PER_MSEC)
/* A block counts as taking this many times the usual time at most. */
#define IOBAND_BLOCK_TIMES	4
/* While a cost is unsure by this part of what an I/O takes, its charge is varied, ... */
#define IOBAND_COV_UNSURE	(IOBAND_COV_ONE / 256)
/* ... by 1 / VARY of the cost, more or less. */
#define IOBAND_COST_VARY	4
/* Blocks follow charges if they differ by 1 / ANSWER of the fewer of reads and writes ... */
#define IOBAND_COST_ANSWER	8
/* (on average over this many blocks) */
#define IOBAND_COST_ANSWERS	16U
/* ... or by 1 / BYTES of their mean length: for I/Os of 8 and of 16 KiB it differs by 1/6. */
#define IOBAND_COST_ANSWER_BYTES	32

/* Nothing is known: 64 us for an I/O, and 8 GB/s. */
static inline void ioband_cost_init(struct ioband_cost *c)
{
	memset(c, 0, sizeof(*c));
	c->shift = IOBAND_COST_SHIFT;
	for (int i = 0; i < IOBAND_COSTS; i += 2) {
		c->believed[i] = (64 * NSEC_PER_USEC) << 8;
		c->believed[i + 1] = (8 * NSEC_PER_USEC) << 8;
	}
}

/* The device time of an I/O, ns << 8.  @bytes: 0 if it does not depend on the length. */
static inline u64 ioband_cost_of(const struct ioband_cost *c, bool write, u32 bytes)
{
	const s64 *ab = &c->believed[2 * write];

	return min(ab[0] + mul_u64_u64_shr(ab[1], bytes, c->shift),
		   IOBAND_COST_MAX << 8);
}

/* Is one of two costs not known well, as far as it matters to the mean I/O? */
static inline bool ioband_cost_is_unsure(const struct ioband_cost *c, int i, int k)
{
	u64 one = mul_u64_u64_shr(c->cov[i][i], c->mean[i] * c->mean[i], 32);
	u64 two = mul_u64_u64_shr(c->cov[k][k], c->mean[k] * c->mean[k], 32);

	return max(one, two) > IOBAND_COV_UNSURE;
}

/* 1 if more is to be charged for an I/O than its cost, to learn costs, -1 if less, else 0. */
static inline int ioband_cost_vary(const struct ioband_cost *c, bool write, u32 bytes)
{
	s64 mean = (c->mean[1] + c->mean[3]) >> 8 << c->shift >> 8;
	int sign = c->block.turn & 1 ? 1 : -1;

	if (c->block.turn & 2 && c->mean[0] && c->mean[2])
		return ioband_cost_is_unsure(c, 0, 2) ? (write ? sign : -sign) : 0;
	if (abs(bytes - mean) * 8 < mean || !ioband_cost_is_unsure(c, 1, 3))
		return 0;
	return bytes > mean ? sign : -sign;
}

/* What an I/O is charged for, on average its cost.  As ioband_cost_of(). */
static inline u64 ioband_cost_charged(const struct ioband_cost *c, bool write, u32 bytes)
{
	s64 cost = ioband_cost_of(c, write, bytes);

	return bytes ? cost + ioband_cost_vary(c, write, bytes) * (cost / IOBAND_COST_VARY) : cost;
}

/* The I/Os of a block, << 8: at least IOBAND_BLOCK << 8 once it has ended. */
static inline u64 ioband_block_ios(const struct ioband_block *b)
{
	return b->ios[0] + b->ios[1];
}

/* The time of a block per I/O, ns << 8. */
static inline u64 ioband_block_per(const struct ioband_block *b)
{
	u64 ns = min(b->ns, (s64)(IOBAND_COST_LIMIT >> 16));

	return clamp(div64_u64(ns << 16, ioband_block_ios(b)), 1ULL, IOBAND_COST_MAX << 8);
}

/*
 * At first almost all is taken for the cost of bytes: then few long I/Os are dispatched, and their
 * cost is seen well.  At too low a cost many long I/Os would be dispatched, the same number in each
 * block, which would show nothing.
 */
static inline void ioband_cost_begin(struct ioband_cost *c, const struct ioband_block *b)
{
	u64 bytes = div64_u64((b->bytes[0] + b->bytes[1]) << 8, ioband_block_ios(b));
	u64 per = ioband_block_per(b), believed = ioband_cost_of(c, false, bytes);

	c->shift = ilog2(max(bytes, 4096ULL));
	for (int i = 1; i < IOBAND_COSTS; i += 2)
		c->believed[i] = c->believed[i] << c->shift >> IOBAND_COST_SHIFT;
	c->usual = per;
	c->noise = IOBAND_NOISE_FIRST;
	for (int i = 0; i < IOBAND_COSTS; i++) {
		c->found[i] = i % 2 ? per : per / 4;
		for (int k = 0; k < IOBAND_COSTS; k++)
			c->cov[i][k] = i == k ? IOBAND_COV_ONE :
				       i % 2 == k % 2 ? IOBAND_COV_BOTH : 0;
		/* the proportions of costs are not known yet, but now their size is */
		c->believed[i] = mul_u64_u64_div_u64(c->believed[i], per, believed);
	}
}

/*
 * The parts of the mean I/O of the block, << 16: reads, and bytes of reads in units of 1 <<
 * c->shift; writes, and bytes of writes.
 */
static inline void ioband_cost_parts(const struct ioband_cost *c, s64 part[IOBAND_COSTS])
{
	const struct ioband_block *b = &c->last;
	u64 ios = ioband_block_ios(b);

	for (int rw = 0; rw < 2; rw++) {
		part[2 * rw] = div64_u64(b->ios[rw] << 16, ios);
		part[2 * rw + 1] = min(div64_u64(b->bytes[rw] << 16, ios) << 8 >> c->shift,
				       IOBAND_COST_PART_MAX);
	}
}

/*
 * Do the parts of blocks follow what is charged?  They do not if each group submits the same mix:
 * then they differ by chance, or the parts follow the costs, as fewer writes complete while the
 * device collects garbage.  As long as only one of the two charges was seen, lengths are taken to
 * follow it, and directions are not.
 */
static inline bool ioband_cost_answers(struct ioband_cost *c, const s64 part[IOBAND_COSTS])
{
	bool by_kind = c->last.turn & 2 && part[0] && part[2];
	s64 *mean = &c->answer[by_kind][c->last.turn & 1];
	s64 other = c->answer[by_kind][!(c->last.turn & 1)];
	s64 seen = by_kind ? part[2] : part[1] + part[3];
	u32 nr = min(c->last.turn / (part[0] && part[2] ? 4 : 2) + 1, IOBAND_COST_ANSWERS);
	s64 least = by_kind ? min(part[0], part[2]) / IOBAND_COST_ANSWER :
			      seen / IOBAND_COST_ANSWER_BYTES;

	*mean += *mean ? div_s64(seen - *mean, nr) : seen;
	/* the fewer blocks, the more is by chance */
	return other ? abs(*mean - other) > least + div_u64(2 * least, nr) : !by_kind;
}

/* Does a block differ from the last one in its parts, or was it made to differ? */
static inline bool ioband_cost_differs(struct ioband_cost *c, const s64 part[IOBAND_COSTS])
{
	if (c->last.varied && ioband_cost_answers(c, part))
		return true;
	for (int i = 0; i < IOBAND_COSTS; i++)
		if (4 * abs(part[i] - c->mean[i]) > c->mean[i])
			return true;
	return false;
}

/* Learn from a block.  If it takes far longer than others, the device may have stood still. */
static inline void ioband_cost_learn(struct ioband_cost *c)
{
	u64 per = ioband_block_per(&c->last);
	s64 part[IOBAND_COSTS], error;
	bool differs;

	ioband_cost_parts(c, part);
	c->usual += ((s64)min(per, IOBAND_BLOCK_TIMES * c->usual) - (s64)c->usual) / IOBAND_BLOCKS;
	c->usual = max(c->usual, 1ULL);
	differs = ioband_cost_differs(c, part);
	error = ioband_cost_error(c, part, per);
	memcpy(c->mean, part, sizeof(part));
	c->turn++;
	if (differs)
		ioband_cost_filter(c, part, error);
	else
		ioband_cost_adjust(c, error);
	ioband_cost_limit(c);
	for (int i = 0; i < IOBAND_COSTS; i++)
		if (c->last.ios[i / 2])
			c->believed[i] += (c->found[i] - c->believed[i]) / 2;
}

/* Discard the current blocks, which tell nothing. */
static inline void ioband_cost_again(struct ioband_cost *c)
{
	c->full_ns = 0;
	c->block.begin_ns = 0;
	c->last.begin_ns = 0;
}

/* Count an I/O that was in flight for @within of @ns in a block. */
static inline void ioband_cost_count(struct ioband_block *b, bool write, u32 bytes, s64 within,
				     s64 ns)
{
	u64 part = within >= ns ? 256 : div64_u64(max(within, 0LL) << 8, ns);

	b->ios[write] += part;
	b->bytes[write] += bytes * part >> 8;
}

/*
 * An I/O has completed, which the device got at @given_ns.  @bytes: 0 if its device time does not
 * depend on its length; @busy: has the device as much to do as it does at once?  If not, or without
 * bytes, this ends the block.  @latency: average, ns.  @idle_ns: sum of times without any I/O, ns.
 */
static inline void ioband_cost_done(struct ioband_cost *c, bool write, u32 bytes, s64 given_ns,
				    s64 latency, s64 now, s64 idle_ns, bool busy)
{
	struct ioband_block *b = &c->block, *last = &c->last;
	s64 most = clamp(IOBAND_BLOCK_LATENCIES * latency, IOBAND_BLOCK_NS, (s64)IOBAND_COST_MAX);
	s64 ns;

	if (!busy || !bytes) {
		ioband_cost_again(c);
		return;
	}
	if (!c->full_ns)
		c->full_ns = now;
	/* the device has to fill up first */
	if (now - c->full_ns < latency)
		return;
	if (b->begin_ns) {
		given_ns = max(given_ns, now - IOBAND_BLOCK_LATENCIES * latency);
		ns = max(now - given_ns, 1LL);
		ioband_cost_count(b, write, bytes, now - b->begin_ns, ns);
		if (last->begin_ns && given_ns < b->begin_ns)
			ioband_cost_count(last, write, bytes, b->begin_ns - given_ns, ns);
		if (ioband_block_ios(b) < IOBAND_BLOCK << 8 ||
		    now - b->begin_ns < min(IOBAND_BLOCK_MANY * latency, most))
			return;
		if (last->begin_ns)
			ioband_cost_learn(c);
		b->ns = max(now - b->begin_ns - (idle_ns - b->begin_idle_ns), 1LL);
		if (!c->usual)
			ioband_cost_begin(c, b);
		*last = *b;
	}
	*b = (struct ioband_block){
		.begin_ns = now, .begin_idle_ns = idle_ns, .turn = c->turn + !!last->begin_ns,
	};
}

#endif /* IOBAND_COST_H */
