/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_COST_H
#define IOBAND_COST_H

#include <linux/bits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * What an I/O takes of a device: a + b * bytes, for each direction.
 *
 * Latencies do not say that.  Of two I/Os on a link, the short one takes as long as the long
 * one before it.  But while somebody waits for the device, the time in which IOBAND_BLOCK I/Os
 * complete is the time that they took of it, together, and blocks differ in what they consist
 * of.  A Kalman filter finds the a and b that explain these times best, and forgets.
 *
 * Nothing here reads a clock or takes a lock.
 */

/* I/Os of a block. */
#define IOBAND_BLOCK		8
/* Blocks that averages are over. */
#define IOBAND_BLOCKS		32
/* a and b of reads, a and b of writes */
#define IOBAND_COSTS		4
/* No I/O costs more than 1 s. */
#define IOBAND_COST_MAX		BIT_ULL(30)
/* b is for so many bytes. */
#define IOBAND_COST_BYTES_SHIFT	16
/* Fractions of the filter. */
#define IOBAND_COV_SHIFT	30
#define IOBAND_COV_ONE		((s64)BIT_ULL(IOBAND_COV_SHIFT))
/* What is believed of a cost that has not been seen for long loses so much with a block. */
#define IOBAND_COV_DRIFT	(IOBAND_COV_ONE / 32768)
#define IOBAND_NOISE_MIN	(IOBAND_COV_ONE / 1024)

/**
 * struct ioband_cost - what I/Os of a device cost
 * @believed:	a and b of reads and of writes, ns << 8; b for 64 KiB
 *
 * See ioband_cost_init().
 */
struct ioband_cost {
	s64			believed[IOBAND_COSTS];

	/* private: the filter */
	s64			found[IOBAND_COSTS];	/* as believed, less smooth */
	s64			cov[IOBAND_COSTS][IOBAND_COSTS];
	s64			noise;
	u64			usual_ns;		/* of a block */

	/* the block that is going on */
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

	return min(ab[0] + mul_u64_u64_shr(ab[1], bytes, IOBAND_COST_BYTES_SHIFT),
		   IOBAND_COST_MAX << 8);
}

/* a * b / c, where b may be less than 0. */
static inline s64 ioband_cost_scale(u64 a, s64 b, u64 c)
{
	s64 abs_b = b < 0 ? -b : b;
	s64 quotient = mul_u64_u64_div_u64(a, abs_b, c);

	return b < 0 ? -quotient : quotient;
}

/*
 * At first most is taken for the price of bytes: then few long I/Os go, and what they cost is seen
 * well.  Too low a price would let many go, as many in each block, and that would show nothing.
 */
static inline void ioband_cost_begin(struct ioband_cost *c, u64 ns)
{
	u64 parts = max((c->bytes[0] + c->bytes[1]) >> IOBAND_COST_BYTES_SHIFT, 1ULL);

	c->usual_ns = ns;
	c->noise = 0;
	for (int i = 0; i < IOBAND_COSTS; i++) {
		c->found[i] = i % 2 ? div64_u64(ns << 8, parts) : (ns << 8) / IOBAND_BLOCK / 4;
		for (int k = 0; k < IOBAND_COSTS; k++)
			c->cov[i][k] = i == k ? IOBAND_COV_ONE : 0;
	}
}

/* What the block consists of: parts of IOBAND_BLOCK, << 16; of bytes, of that many 64 KiB. */
static inline void ioband_cost_parts(const struct ioband_cost *c, s64 part[IOBAND_COSTS])
{
	for (int rw = 0; rw < 2; rw++) {
		part[2 * rw] = (c->ios[rw] << 16) / IOBAND_BLOCK;
		/* more than 4 MiB each would be too much for the numbers below */
		part[2 * rw + 1] = min(c->bytes[rw] / IOBAND_BLOCK, (u64)64 << 16);
	}
}

/* By how much of a usual block the costs did not explain this one, << IOBAND_COV_SHIFT. */
static inline s64 ioband_cost_error(const struct ioband_cost *c, const s64 part[IOBAND_COSTS],
				    u64 ns)
{
	s64 error = (s64)min(ns, IOBAND_COST_MAX) << 8;

	for (int i = 0; i < IOBAND_COSTS; i++)
		error -= mul_u64_u64_shr(c->found[i], part[i], 16) * IOBAND_BLOCK;
	error = ioband_cost_scale(IOBAND_COV_ONE, error, c->usual_ns << 8);
	return clamp(error, -3 * IOBAND_COV_ONE, 3 * IOBAND_COV_ONE);
}

static inline void ioband_cost_filter(struct ioband_cost *c, const s64 part[IOBAND_COSTS], s64 error)
{
	s64 gain[IOBAND_COSTS] = { }, sum, least = (c->usual_ns << 8) / IOBAND_BLOCK / 256;
	s64 abs_error = error < 0 ? -error : error;

	c->noise += ((s64)mul_u64_u64_shr(abs_error, abs_error, IOBAND_COV_SHIFT) - c->noise) /
		    IOBAND_BLOCKS;
	sum = max(c->noise, IOBAND_NOISE_MIN);
	for (int i = 0; i < IOBAND_COSTS; i++) {
		for (int k = 0; k < IOBAND_COSTS; k++)
			gain[i] += c->cov[i][k] / 256 * part[k] / 256;
		sum += gain[i] / 256 * part[i] / 256;
	}
	sum = max(sum, IOBAND_NOISE_MIN);
	for (int i = 0; i < IOBAND_COSTS; i++) {
		s64 abs_gain = gain[i] < 0 ? -gain[i] : gain[i];
		s64 step = ioband_cost_scale(abs_gain, error, sum);

		step = ioband_cost_scale(c->usual_ns << 8, gain[i] < 0 ? -step : step,
					 (u64)IOBAND_BLOCK << IOBAND_COV_SHIFT);
		c->found[i] = max(c->found[i] + step, i % 2 ? 0 : max(least, 1LL));
		for (int k = 0; k < IOBAND_COSTS; k++) {
			s64 less = ioband_cost_scale(abs_gain, gain[k], sum);

			c->cov[i][k] -= gain[i] < 0 ? -less : less;
		}
		c->cov[i][i] = clamp(c->cov[i][i] + IOBAND_COV_DRIFT, IOBAND_COV_DRIFT, IOBAND_COV_ONE);
	}
}

static inline void ioband_cost_learn(struct ioband_cost *c, u64 ns)
{
	s64 part[IOBAND_COSTS];

	ns = clamp(ns, (u64)IOBAND_BLOCK, IOBAND_COST_MAX);
	if (!c->usual_ns)
		ioband_cost_begin(c, ns);
	c->usual_ns += ((s64)ns - (s64)c->usual_ns) / IOBAND_BLOCKS;
	ioband_cost_parts(c, part);
	ioband_cost_filter(c, part, ioband_cost_error(c, part, ns));
	for (int i = 0; i < IOBAND_COSTS; i++)
		if (c->ios[i / 2])
			c->believed[i] += (c->found[i] - c->believed[i]) / 4;
}

/**
 * ioband_cost_done - an I/O has completed
 * @c:		what I/Os cost
 * @write:	its direction
 * @bytes:	its length, 0 if that does not matter: then it teaches nothing
 * @now:	ns
 * @idle_ns:	so long nothing was in flight, ever
 * @waited:	somebody has waited for the device
 */
static inline void ioband_cost_done(struct ioband_cost *c, bool write, u32 bytes, s64 now,
				    s64 idle_ns, bool waited)
{
	if (!waited || !bytes) {
		c->begin_ns = 0;
		return;
	}
	if (c->begin_ns) {
		c->ios[write]++;
		c->bytes[write] += bytes;
		if (++c->nr < IOBAND_BLOCK)
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
