// SPDX-License-Identifier: GPL-2.0
/*
 * What an I/O takes of the device: a + b * bytes, for each direction.
 *
 * Latencies do not say that.  Of two I/Os on a link, the short one takes as long as the long
 * one before it.  But as long as somebody waits for the device, the time in which BLOCK I/Os
 * end is the time that they took of it, together; and blocks differ in what they consist of.
 * A Kalman filter finds what explains these times best, and forgets.
 */
#include "lead.h"

#define BLOCK		32
#define NR		4		/* a and b of reads, a and b of writes */
/* What is believed of what has not been seen for long changes by so much with a block. */
#define DRIFT		3e-5
#define SCALE_BYTES	65536.0		/* of b */

static double a[2] = { 64e3, 64e3 }, b[2] = { .125, .125 };	/* ns, ns per byte */
static double p[NR], cov[NR][NR], noise, usual_ns;
static double x[NR];			/* the block: I/Os and bytes by direction */
static int nr, blocks;
static s64 begin_ns, begin_idle_ns;

/**
 * lead_cost_ns - what an I/O takes of the device
 * @bio:	the I/O
 */
double lead_cost_ns(const struct bio *bio)
{
	int dir = bio_data_dir(bio);

	/* of no length that counts */
	if (bio_op(bio) == REQ_OP_DISCARD)
		return a[dir];
	return a[dir] + b[dir] * bio->bi_iter.bi_size;
}

static void begin_learning(double ns)
{
	usual_ns = ns;
	for (int i = 0; i < NR; i++) {
		cov[i][i] = 1;
		p[i] = i % 2 ? ns / BLOCK * .1 / SCALE_BYTES : ns / BLOCK * .9;
	}
}

/* A block has taken so long. */
static void learn(double ns)
{
	double scale[NR], scaled[NR], gain[NR], error = ns, sum = 0;

	usual_ns += (ns - usual_ns) / BLOCK;
	for (int i = 0; i < NR; i++) {
		scale[i] = usual_ns / BLOCK / (i % 2 ? SCALE_BYTES : 1);
		scaled[i] = x[i] * scale[i] / usual_ns;
		error -= p[i] * x[i];
	}
	error = clamp(error / usual_ns, -3.0, 3.0);
	for (int i = 0; i < NR; i++) {
		gain[i] = 0;
		for (int k = 0; k < NR; k++)
			gain[i] += cov[i][k] * scaled[k];
		sum += scaled[i] * gain[i];
	}
	noise += (error * error - noise) / BLOCK;
	sum += max(noise, 1e-3);
	for (int i = 0; i < NR; i++) {
		p[i] = max(p[i] + gain[i] / sum * error * scale[i],
			   i % 2 ? 0 : usual_ns / BLOCK / 256);
		for (int k = 0; k < NR; k++)
			cov[i][k] -= gain[i] * gain[k] / sum;
		cov[i][i] = min(cov[i][i] + DRIFT, 1.0);
	}
	for (int dir = 0; dir < 2; dir++)
		if (x[2 * dir]) {
			a[dir] += (p[2 * dir] - a[dir]) / 4;
			b[dir] += (p[2 * dir + 1] - b[dir]) / 4;
		}
}

/**
 * lead_cost_done - an I/O has ended
 * @bio:	the I/O
 * @idle_ns:	so long the device has had nothing to do, ever
 * @waiting:	has somebody waited for the device?
 */
void lead_cost_done(const struct bio *bio, s64 idle_ns, bool waiting)
{
	int dir = bio_data_dir(bio);

	if (!waiting || bio_op(bio) == REQ_OP_DISCARD) {
		begin_ns = 0;
		return;
	}
	if (begin_ns) {
		x[2 * dir]++;
		x[2 * dir + 1] += bio->bi_iter.bi_size;
		if (++nr < BLOCK)
			return;
		if (!blocks++)
			begin_learning(lab_now - begin_ns);
		learn(lab_now - begin_ns - (idle_ns - begin_idle_ns));
	}
	begin_ns = lab_now;
	begin_idle_ns = idle_ns;
	nr = 0;
	memset(x, 0, sizeof(x));
}
