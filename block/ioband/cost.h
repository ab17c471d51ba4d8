/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_COST_H
#define IOBAND_COST_H

#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * What an I/O takes of a device: a + b * bytes, for each direction.
 *
 * Latencies do not say that.  Of two I/Os on a link, the short one takes as long as the long
 * one before it.  But while the device has enough to do, the time in which a block of I/Os
 * completes is the time that they took of it, together, and blocks differ in what they consist
 * of.  A Kalman filter finds the a and b that explain these times best, and forgets.  I/Os do not
 * complete in the order in which they are done, so a block lasts for several latencies: else
 * it would have the time of I/Os that are counted in the next one, and long I/Os seem cheap.
 *
 * Shares by what is believed are regular: all blocks would consist of the same, and show
 * nothing.  So as long as costs are not known well, a quarter more is charged for long I/Os, and
 * less for short ones, in one block, and less and more in the next one; then the same with reads
 * and writes.
 *
 * Nothing here reads a clock or takes a lock.
 */

/* A block has so many I/Os, and lasts for so many latencies, at least. */
#define IOBAND_BLOCK		8
#define IOBAND_BLOCK_LATENCIES	4
/* It counts as so many usual ones at most. */
#define IOBAND_BLOCK_TIMES	4
/* Blocks that averages are over. */
#define IOBAND_BLOCKS		32
/* a and b of reads, a and b of writes */
#define IOBAND_COSTS		4
/* No I/O costs more than 1 s. */
#define IOBAND_COST_MAX		BIT_ULL(30)
/* Of what the filter computes with. */
#define IOBAND_COST_LIMIT	BIT_ULL(56)
/* b is for so many bytes while nothing is known: 1 << 16. */
#define IOBAND_COST_SHIFT	16
/* More bytes than that would be too much for the numbers below: so many of these, << 16. */
#define IOBAND_COST_PART_MAX	BIT_ULL(29)
/* Fractions of the filter. */
#define IOBAND_COV_SHIFT	30
#define IOBAND_COV_ONE		((s64)BIT_ULL(IOBAND_COV_SHIFT))
/* What is believed of a cost that has not been seen for long loses so much with a block. */
#define IOBAND_COV_DRIFT	(IOBAND_COV_ONE / 32768)
/* What is not known of reads is most likely the same that is not known of writes. */
#define IOBAND_COV_BOTH		(IOBAND_COV_ONE * 7 / 8)
/* Blocks differ by such a part, squared: at first, and at least. */
#define IOBAND_NOISE_FIRST	(IOBAND_COV_ONE / 1024)
#define IOBAND_NOISE_MAX	(IOBAND_COV_ONE / 4)
#define IOBAND_NOISE_MIN	(IOBAND_COV_ONE / 16384)
/* What is unsure by this part of what an I/O takes is looked at, ... */
#define IOBAND_COV_UNSURE	(IOBAND_COV_ONE / 256)
/* ... by such a part more or less of it. */
#define IOBAND_COST_VARY	4

/**
 * struct ioband_cost - what I/Os of a device cost
 * @believed:	a and b of reads and of writes, ns << 8; b for 1 << @shift bytes
 * @shift:	of about what I/Os had when the first were seen
 *
 * See ioband_cost_init().
 */
struct ioband_cost {
	s64			believed[IOBAND_COSTS];
	unsigned int		shift;

	/* private: the filter */
	s64			found[IOBAND_COSTS];	/* as believed, less smooth */
	s64			cov[IOBAND_COSTS][IOBAND_COSTS];
	s64			noise;
	u64			usual;			/* per I/O, ns << 8 */

	s64			mean[IOBAND_COSTS];	/* parts of the last block */
	unsigned int		turn;			/* blocks */
	bool			odd;			/* the last took far longer */

	/* the block that is going on */
	s64			full_ns;		/* busy since then, 0: not */
	s64			begin_ns;		/* 0: none is */
	s64			begin_idle_ns;
	unsigned int		nr;
	u64			ios[2];
	u64			bytes[2];
};

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

/* a * b / c, where b may be less than 0; no number here needs to be greater than the limit. */
static inline s64 ioband_cost_scale(u64 a, s64 b, u64 c)
{
	u64 abs_b = abs(b), quotient = IOBAND_COST_LIMIT;

	/* a quotient of more than 64 bits is a fault of some CPUs */
	if (mul_u64_u64_shr(a, abs_b, 64) < c)
		quotient = min(mul_u64_u64_div_u64(a, abs_b, c), IOBAND_COST_LIMIT);
	return b < 0 ? -(s64)quotient : (s64)quotient;
}

/* a * part, where a may be less than 0 and the part is << 16. */
static inline s64 ioband_cost_mul(s64 a, s64 part)
{
	s64 product = mul_u64_u64_shr(abs(a), part, 16);

	return a < 0 ? -product : product;
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

/* What the mean I/O of the block takes by what was found, ns << 8. */
static inline u64 ioband_cost_explained(const struct ioband_cost *c, const s64 part[IOBAND_COSTS])
{
	u64 ns = 0;

	for (int i = 0; i < IOBAND_COSTS; i++)
		ns += mul_u64_u64_shr(c->found[i], part[i], 16);
	return min(ns, IOBAND_COST_LIMIT);
}

/* By how much of a usual I/O the costs did not explain this block, << IOBAND_COV_SHIFT. */
static inline s64 ioband_cost_error(const struct ioband_cost *c, const s64 part[IOBAND_COSTS],
				    u64 per)
{
	s64 error = per - ioband_cost_explained(c, part);

	error = ioband_cost_scale(IOBAND_COV_ONE, error, c->usual);
	return clamp(error, -3 * IOBAND_COV_ONE, 3 * IOBAND_COV_ONE);
}

/* The filter was surer than it should have been. */
static inline void ioband_cost_doubt(struct ioband_cost *c)
{
	bool sure[IOBAND_COSTS];

	for (int i = 0; i < IOBAND_COSTS; i++)
		sure[i] = c->cov[i][i] <= IOBAND_COV_ONE / 2;
	for (int i = 0; i < IOBAND_COSTS; i++)
		for (int k = 0; k < IOBAND_COSTS; k++)
			if (sure[i] && sure[k])
				c->cov[i][k] *= 2;
}

static inline void ioband_cost_filter(struct ioband_cost *c, const s64 part[IOBAND_COSTS],
				      s64 error)
{
	s64 gain[IOBAND_COSTS] = { }, sum = 0, noise;
	s64 abs_error = error < 0 ? -error : error;

	for (int i = 0; i < IOBAND_COSTS; i++) {
		for (int k = 0; k < IOBAND_COSTS; k++)
			gain[i] += ioband_cost_mul(c->cov[i][k], part[k]);
		sum += ioband_cost_mul(gain[i], part[i]);
	}
	/* what is not known yet is no noise */
	noise = max((s64)mul_u64_u64_shr(abs_error, abs_error, IOBAND_COV_SHIFT) - sum, 0);
	c->noise += (min(noise, IOBAND_NOISE_MAX) - c->noise) / IOBAND_BLOCKS;
	sum = max(sum, 0) + max(c->noise, IOBAND_NOISE_MIN);
	if (noise > 3 * sum)
		ioband_cost_doubt(c);
	for (int i = 0; i < IOBAND_COSTS; i++) {
		s64 abs_gain = gain[i] < 0 ? -gain[i] : gain[i];
		s64 step = ioband_cost_scale(abs_gain, error, sum);

		step = ioband_cost_scale(c->usual, gain[i] < 0 ? -step : step, IOBAND_COV_ONE);
		c->found[i] += step;
		for (int k = 0; k < IOBAND_COSTS; k++) {
			s64 less = ioband_cost_scale(abs_gain, gain[k], sum);

			c->cov[i][k] = clamp(c->cov[i][k] - (gain[i] < 0 ? -less : less),
					     -IOBAND_COV_ONE, IOBAND_COV_ONE);
		}
		c->cov[i][i] = clamp(c->cov[i][i] + IOBAND_COV_DRIFT, IOBAND_COV_DRIFT,
				     IOBAND_COV_ONE);
	}
}

/*
 * No price is less than nothing.  Where the filter says so the others are what they are if it is
 * nothing.
 */
static inline void ioband_cost_limit(struct ioband_cost *c)
{
	for (int i = 0; i < IOBAND_COSTS; i++) {
		s64 least = i % 2 ? 0 : max(c->usual / 256, 1ULL), less = least - c->found[i];

		if (less <= 0)
			continue;
		for (int k = 0; k < IOBAND_COSTS; k++) {
			u64 abs_cov = abs(c->cov[k][i]);
			s64 step = ioband_cost_scale(abs_cov, less, c->cov[i][i]);

			if (k != i)
				c->found[k] += c->cov[k][i] < 0 ? -step : step;
		}
		c->found[i] = least;
	}
	for (int i = 0; i < IOBAND_COSTS; i++)
		c->found[i] = clamp(c->found[i], 0, (s64)IOBAND_COST_LIMIT);
}

/*
 * A block that takes far longer than what it consists of explains may be one in which the device
 * stood still, and says little; two of them are believed.
 */
static inline void ioband_cost_learn(struct ioband_cost *c, u64 ns)
{
	u64 most = min(c->nr * IOBAND_COST_MAX, IOBAND_COST_LIMIT >> 8);
	u64 per = max(div_u64(min(ns, most) << 8, c->nr), 1ULL), want;
	s64 part[IOBAND_COSTS];

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
	memcpy(c->mean, part, sizeof(part));
	c->turn++;
	ioband_cost_filter(c, part, ioband_cost_error(c, part, per));
	ioband_cost_limit(c);
	for (int i = 0; i < IOBAND_COSTS; i++)
		if (c->ios[i / 2])
			c->believed[i] += (c->found[i] - c->believed[i]) / 2;
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
		    now - c->begin_ns < min(IOBAND_BLOCK_LATENCIES * latency, (s64)IOBAND_COST_MAX))
			return;
		ioband_cost_learn(c, max(now - c->begin_ns - (idle_ns - c->begin_idle_ns), 1LL));
	}
	c->begin_ns = now;
	c->begin_idle_ns = idle_ns;
	c->nr = 0;
	memset(c->ios, 0, sizeof(c->ios));
	memset(c->bytes, 0, sizeof(c->bytes));
}

#endif /* IOBAND_COST_H */
