/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_COST_FILTER_H
#define IOBAND_COST_FILTER_H

#include <linux/bits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * A Kalman filter that finds what I/Os cost, see cost.h, from the time that each block of I/Os
 * took, and from the parts of which the block consisted.
 *
 * Nothing here reads a clock or takes a lock.
 */

/* a and b of reads, a and b of writes */
#define IOBAND_COSTS		4
/* No I/O costs more than this, about 1 s, in ns. */
#define IOBAND_COST_MAX		BIT_ULL(30)
/* The largest number with which the filter calculates. */
#define IOBAND_COST_LIMIT	BIT_ULL(56)
/* b is the cost of 1 << SHIFT bytes while nothing is known. */
#define IOBAND_COST_SHIFT	16
/* The most of such units of bytes per I/O, << 16: more would be too much for the numbers below. */
#define IOBAND_COST_PART_MAX	BIT_ULL(29)
/* Fractions in the filter are << COV_SHIFT. */
#define IOBAND_COV_SHIFT	30
#define IOBAND_COV_ONE		((s64)BIT_ULL(IOBAND_COV_SHIFT))
/* A cost that has not been seen becomes less sure by this much with each block. */
#define IOBAND_COV_DRIFT	(IOBAND_COV_ONE / 32768)
/* Reads and writes are most likely wrong in the same way: their covariance at first. */
#define IOBAND_COV_BOTH		(IOBAND_COV_ONE * 7 / 8)
/* The variance of the time of blocks that costs do not explain: at first, and its bounds. */
#define IOBAND_NOISE_FIRST	(IOBAND_COV_ONE / 1024)
#define IOBAND_NOISE_MAX	(IOBAND_COV_ONE / 4)
#define IOBAND_NOISE_MIN	(IOBAND_COV_ONE / 16384)
/* The number of blocks over which averages are taken. */
#define IOBAND_BLOCKS		32

/* A block of I/Os: each counts by the part of its time in flight that lies within the block. */
struct ioband_block {
	s64			begin_ns;		/* 0: there is no block */
	s64			begin_idle_ns;
	s64			ns;			/* how long it lasted, without idle time */
	unsigned int		turn;			/* its number: how charges vary */
	bool			varied;			/* charges of some differ from costs */
	u64			ios[2];			/* reads, and writes, << 8 */
	u64			bytes[2];
};

/* What I/Os of a device cost, see ioband_cost_init(). */
struct ioband_cost {
	s64			believed[IOBAND_COSTS];	/* ns << 8; b is for 1 << @shift bytes */
	unsigned int		shift;		/* 1 << @shift: about the first I/Os' length */

	/* private: the filter */
	s64			found[IOBAND_COSTS];	/* as @believed, but less smooth */
	s64			cov[IOBAND_COSTS][IOBAND_COSTS];
	s64			noise;
	u64			usual;			/* time per I/O, ns << 8 */

	s64			mean[IOBAND_COSTS];	/* parts of the last block */
	unsigned int		turn;			/* number of blocks that were learned */
	s64			answer[2][2];		/* see ioband_cost_answers() */

	s64			full_ns;		/* busy since then; 0: not busy */
	struct ioband_block	block;			/* the current one */
	struct ioband_block	last;			/* some of its I/Os are in flight */
};

/* a * b / c, where b may be less than 0.  The result is IOBAND_COST_LIMIT at most, either way. */
static inline s64 ioband_cost_scale(u64 a, s64 b, u64 c)
{
	u64 abs_b = abs(b), quotient = IOBAND_COST_LIMIT;

	/* some CPUs fault if a quotient has more than 64 bits */
	if (mul_u64_u64_shr(a, abs_b, 64) < c)
		quotient = min(mul_u64_u64_div_u64(a, abs_b, c), IOBAND_COST_LIMIT);
	return b < 0 ? -(s64)quotient : (s64)quotient;
}

/* a * part, where a may be less than 0, and part is << 16. */
static inline s64 ioband_cost_mul(s64 a, s64 part)
{
	s64 product = mul_u64_u64_shr(abs(a), part, 16);

	return a < 0 ? -product : product;
}

/* The time of the mean I/O of a block by the costs that were found, ns << 8. */
static inline u64 ioband_cost_explained(const struct ioband_cost *c, const s64 part[IOBAND_COSTS])
{
	u64 ns = 0;

	for (int i = 0; i < IOBAND_COSTS; i++)
		ns += mul_u64_u64_shr(c->found[i], part[i], 16);
	return min(ns, IOBAND_COST_LIMIT);
}

/* The time of a block that costs did not explain, as a part of a usual I/O, << COV_SHIFT. */
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
	/* errors of costs that are not known yet are no noise */
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
 * No cost is less than 0.  If the filter finds one that is, the other costs become what they would
 * be if that one were 0.
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

/* Scale all costs, since all I/Os took longer, or less long, by a part of a usual I/O. */
static inline void ioband_cost_adjust(struct ioband_cost *c, s64 error)
{
	s64 by = clamp(error, -IOBAND_COV_ONE, IOBAND_COV_ONE) / IOBAND_BLOCKS;

	for (int i = 0; i < IOBAND_COSTS; i++) {
		c->found[i] += ioband_cost_scale(c->found[i], by, IOBAND_COV_ONE);
		c->cov[i][i] = min(c->cov[i][i] + IOBAND_COV_DRIFT, IOBAND_COV_ONE);
	}
}

#endif /* IOBAND_COST_FILTER_H */
