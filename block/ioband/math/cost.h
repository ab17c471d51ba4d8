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
 * cost_filter.h finds the a and b that explain these times best, and forgets old blocks.  I/Os do
 * not complete in the order in which they are done, so a block lasts for many latencies: else its
 * time would be partly that of I/Os counted in the next block, and long I/Os would seem cheap.
 *
 * Shares make I/O regular: with shares by the believed costs, all blocks would consist of the same
 * I/Os, and show nothing.  So while costs are not known well, a quarter more is charged for long
 * I/Os, and a quarter less for short ones, in one block, and the other way round in the next one;
 * then the same with reads and writes.  Other blocks differ only by chance, that is in the I/Os
 * that complete before they end, as if no cost mattered.  They only show whether all I/Os take
 * longer, or less long.
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
	int sign = c->turn & 1 ? 1 : -1;

	if (c->turn & 2 && c->mean[0] && c->mean[2])
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

/*
 * At first almost all is taken for the cost of bytes: then few long I/Os are dispatched, and their
 * cost is seen well.  At too low a cost many long I/Os would be dispatched, the same number in each
 * block, which would show nothing.
 */
static inline void ioband_cost_begin(struct ioband_cost *c, u64 per)
{
	u64 bytes = div_u64(c->bytes[0] + c->bytes[1], c->nr);
	u64 believed = ioband_cost_of(c, false, bytes);

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
	for (int rw = 0; rw < 2; rw++) {
		part[2 * rw] = div_u64(c->ios[rw] << 16, c->nr);
		part[2 * rw + 1] = min(div_u64(c->bytes[rw], c->nr) << 16 >> c->shift,
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
	bool by_kind = c->turn & 2 && part[0] && part[2];
	s64 *mean = &c->answer[by_kind][c->turn & 1];
	s64 other = c->answer[by_kind][!(c->turn & 1)];
	s64 seen = by_kind ? part[2] : part[1] + part[3];
	u32 nr = min(c->turn / (part[0] && part[2] ? 4 : 2) + 1, IOBAND_COST_ANSWERS);
	s64 least = by_kind ? min(part[0], part[2]) / IOBAND_COST_ANSWER :
			      seen / IOBAND_COST_ANSWER_BYTES;

	*mean += *mean ? div_s64(seen - *mean, nr) : seen;
	/* the fewer blocks, the more is by chance */
	return other ? abs(*mean - other) > least + div_u64(2 * least, nr) : !by_kind;
}

/* Does a block differ from the last one in its parts, or was it made to differ? */
static inline bool ioband_cost_differs(struct ioband_cost *c, const s64 part[IOBAND_COSTS])
{
	if (c->varied && ioband_cost_answers(c, part))
		return true;
	for (int i = 0; i < IOBAND_COSTS; i++)
		if (4 * abs(part[i] - c->mean[i]) > c->mean[i])
			return true;
	return false;
}

/*
 * Learn from a block.  A block that takes far longer than its parts explain tells little, since the
 * device may have stood still; two such blocks in a row are believed.
 */
static inline void ioband_cost_learn(struct ioband_cost *c, u64 ns)
{
	u64 most = min(c->nr * IOBAND_COST_MAX, IOBAND_COST_LIMIT >> 8);
	u64 per = max(div_u64(min(ns, most) << 8, c->nr), 1ULL), want;
	s64 part[IOBAND_COSTS], error;
	bool differs;

	if (!c->usual)
		ioband_cost_begin(c, per);
	ioband_cost_parts(c, part);
	want = IOBAND_BLOCK_TIMES * max(c->usual, ioband_cost_explained(c, part));
	c->odd = per > want && !c->odd;
	if (c->odd)
		return;
	per = min(per, want);
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
		if (c->ios[i / 2])
			c->believed[i] += (c->found[i] - c->believed[i]) / 2;
}

/* An I/O was charged for more or less than its cost. */
static inline void ioband_cost_varied(struct ioband_cost *c)
{
	c->varied = true;
}

/* Discard the current block, which tells nothing. */
static inline void ioband_cost_again(struct ioband_cost *c)
{
	c->full_ns = 0;
	c->begin_ns = 0;
}

static inline s64 ioband_cost_block_ns(s64 latency)
{
	s64 most = max(IOBAND_BLOCK_LATENCIES * latency, IOBAND_BLOCK_NS);

	return min3(IOBAND_BLOCK_MANY * latency, most, (s64)IOBAND_COST_MAX);
}

/*
 * An I/O has completed.  @bytes: 0 if its device time does not depend on its length; @busy: has the
 * device as much to do as it does at once?  If not, or without bytes, this ends the block.
 * @latency: average, ns.  @idle_ns: sum of times with nothing in flight.
 */
static inline void ioband_cost_done(struct ioband_cost *c, bool write, u32 bytes, s64 latency,
				    s64 now, s64 idle_ns, bool busy)
{
	if (!busy || !bytes) {
		ioband_cost_again(c);
		return;
	}
	if (!c->full_ns)
		c->full_ns = now;
	/* the device has to fill up first */
	if (now - c->full_ns < latency)
		return;
	if (c->begin_ns) {
		c->ios[write]++;
		c->bytes[write] += bytes;
		if (++c->nr < IOBAND_BLOCK ||
		    now - c->begin_ns < ioband_cost_block_ns(latency))
			return;
		ioband_cost_learn(c, max(now - c->begin_ns - (idle_ns - c->begin_idle_ns), 1LL));
	}
	c->begin_ns = now;
	c->begin_idle_ns = idle_ns;
	c->nr = 0;
	c->varied = false;
	memset(c->ios, 0, sizeof(c->ios));
	memset(c->bytes, 0, sizeof(c->bytes));
}

#endif /* IOBAND_COST_H */
