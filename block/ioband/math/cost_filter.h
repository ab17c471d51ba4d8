/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_COST_FILTER_H
#define IOBAND_COST_FILTER_H

#include <linux/bits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * A Kalman filter that finds what I/Os cost, see cost.h: from the time that each block of them
 * took, and from what it consisted of.
 *
 * Nothing here reads a clock or takes a lock.
 */

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
/* Blocks that averages are over. */
#define IOBAND_BLOCKS		32

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
	s64			answer[2][2];		/* see ioband_cost_answers() */

	/* the block that is going on */
	s64			full_ns;		/* busy since then, 0: not */
	s64			begin_ns;		/* 0: none is */
	s64			begin_idle_ns;
	unsigned int		nr;
	bool			varied;			/* see ioband_cost_varied() */
	u64			ios[2];
	u64			bytes[2];
};

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

/* All I/Os took longer, or less long, by a part of a usual one. */
static inline void ioband_cost_adjust(struct ioband_cost *c, s64 error)
{
	s64 by = clamp(error, -IOBAND_COV_ONE, IOBAND_COV_ONE) / IOBAND_BLOCKS;

	for (int i = 0; i < IOBAND_COSTS; i++) {
		c->found[i] += ioband_cost_scale(c->found[i], by, IOBAND_COV_ONE);
		c->cov[i][i] = min(c->cov[i][i] + IOBAND_COV_DRIFT, IOBAND_COV_ONE);
	}
}

#endif /* IOBAND_COST_FILTER_H */
