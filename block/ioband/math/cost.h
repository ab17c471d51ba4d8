/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_COST_H
#define IOBAND_COST_H

#include <linux/log2.h>
#include <linux/string.h>

#include "cost_filter.h"

/*
 * What an I/O takes of a device: a + b * bytes, for each direction.
 *
 * Latencies do not say that.  Of two I/Os on a link, the short one takes as long as the long
 * one before it.  But while the device has enough to do, the time in which a block of I/Os
 * completes is the time that they took of it, together, and blocks differ in what they consist
 * of.  cost_filter.h finds the a and b that explain these times best, and forgets.  I/Os do not
 * complete in the order in which they are done, so a block lasts for many latencies: else
 * it would have the time of I/Os that are counted in the next one, and long I/Os seem cheap.
 *
 * Shares by what is believed are regular: all blocks would consist of the same, and show
 * nothing.  So as long as costs are not known well, a quarter more is charged for long I/Os, and
 * less for short ones, in one block, and less and more in the next one; then the same with reads
 * and writes.  Other blocks differ by chance only, in which I/Os of them complete before they end:
 * it would seem that no price matters.  They only show whether all I/Os take longer, or less long.
 *
 * Nothing here reads a clock or takes a lock.
 */

/* A block has so many I/Os, and lasts for so many latencies, at least ... */
#define IOBAND_BLOCK		8
#define IOBAND_BLOCK_LATENCIES	4
/* ... and for this number of them as long as that is no longer than this. */
#define IOBAND_BLOCK_MANY	64
#define IOBAND_BLOCK_NS		(20LL * NSEC_PER_MSEC)
/* It counts as so many usual ones at most. */
#define IOBAND_BLOCK_TIMES	4
/* What is unsure by this part of what an I/O takes is looked at, ... */
#define IOBAND_COV_UNSURE	(IOBAND_COV_ONE / 256)
/* ... by such a part more or less of it. */
#define IOBAND_COST_VARY	4
/* Blocks were made to differ if they do by such a part of the fewer of reads and writes ... */
#define IOBAND_COST_ANSWER	8
/* (on average over so many) */
#define IOBAND_COST_ANSWERS	16U
/* ... or of their mean length: of I/Os of 8 and of 16 KiB it differs by a sixth. */
#define IOBAND_COST_ANSWER_BYTES	32

/**
 * ioband_cost_init - nothing is known yet
 * @c:		what I/Os cost
 *
 * 64 us and 8 GB/s.
 */
static inline void ioband_cost_init(struct ioband_cost *c)
{
	memset(c, 0, sizeof(*c));
	c->shift = IOBAND_COST_SHIFT;
	for (int i = 0; i < IOBAND_COSTS; i += 2) {
		c->believed[i] = (64 * NSEC_PER_USEC) << 8;
		c->believed[i + 1] = (8 * NSEC_PER_USEC) << 8;
	}
}

/**
 * ioband_cost_of - what an I/O is going to cost
 * @c:		what I/Os cost
 * @write:	its direction
 * @bytes:	its length, 0 if that does not matter
 *
 * Return: ns, << 8.
 */
static inline u64 ioband_cost_of(const struct ioband_cost *c, bool write, u32 bytes)
{
	const s64 *ab = &c->believed[2 * write];

	return min(ab[0] + mul_u64_u64_shr(ab[1], bytes, c->shift),
		   IOBAND_COST_MAX << 8);
}

/* Is any of two costs not known well, as far as it matters to the mean I/O? */
static inline bool ioband_cost_is_unsure(const struct ioband_cost *c, int i, int k)
{
	u64 one = mul_u64_u64_shr(c->cov[i][i], c->mean[i] * c->mean[i], 32);
	u64 two = mul_u64_u64_shr(c->cov[k][k], c->mean[k] * c->mean[k], 32);

	return max(one, two) > IOBAND_COV_UNSURE;
}

/* 1 if more is to be charged for an I/O than it costs, to learn something, -1 if less. */
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

/**
 * ioband_cost_charged - what is charged for an I/O
 * @c:		what I/Os cost
 * @write:	its direction
 * @bytes:	its length, 0 if that does not matter
 *
 * Return: ns, << 8; on average what it costs.
 */
static inline u64 ioband_cost_charged(const struct ioband_cost *c, bool write, u32 bytes)
{
	s64 cost = ioband_cost_of(c, write, bytes);

	return bytes ? cost + ioband_cost_vary(c, write, bytes) * (cost / IOBAND_COST_VARY) : cost;
}

/*
 * At first most is taken for the price of bytes: then few long I/Os go, and what they cost is seen
 * well.  Too low a price would let many go, as many in each block, and that would show nothing.
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
		/* how many times more the one takes than the other is not known yet, but of time */
		c->believed[i] = mul_u64_u64_div_u64(c->believed[i], per, believed);
	}
}

/*
 * What the mean I/O of the block consists of, << 16: reads, 1 << c->shift bytes of reads; writes,
 * bytes of writes.
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
 * Does what blocks consist of follow what is charged?  Where each group sends the same mix it does
 * not: what differs is by chance, or the other way round, as fewer writes complete while the device
 * collects garbage.  As long as only one of the two charges was seen, lengths are believed to
 * follow it, and kinds are not.
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
	/* the fewer, the more of it is by chance */
	return other ? abs(*mean - other) > least + div_u64(2 * least, nr) : !by_kind;
}

/* Does a block differ from the last one in what it consists of, or was it made to? */
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
 * A block that takes far longer than what it consists of explains may be one in which the device
 * stood still, and says little; two of them are believed.
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

/**
 * ioband_cost_varied - an I/O was charged something else than it costs, to learn something
 * @c:		what I/Os cost
 */
static inline void ioband_cost_varied(struct ioband_cost *c)
{
	c->varied = true;
}

/**
 * ioband_cost_again - the block that is going on tells nothing
 * @c:		what I/Os cost
 */
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

/**
 * ioband_cost_done - an I/O has completed
 * @c:		what I/Os cost
 * @write:	its direction
 * @bytes:	its length, 0 if that does not matter: then it teaches nothing
 * @latency:	of the device's I/Os, ns
 * @now:	ns
 * @idle_ns:	so long nothing was in flight, ever
 * @busy:	the device has at least as much to do as it does at once
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
