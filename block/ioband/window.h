/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_WINDOW_H
#define IOBAND_WINDOW_H

#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * How long a device takes for an I/O at some depth: the mean of some batches of
 * completions, and how sure that is.  For depth.h.
 *
 * Nothing here reads a clock or takes a lock.
 */

/* A window ends with this certainty, or after so many batches, or so long. */
#define IOBAND_WINDOW_PPM	2500
#define IOBAND_WINDOW_MIN	4
#define IOBAND_WINDOW_MAX	16
#define IOBAND_WINDOW_NS	(250 * NSEC_PER_MSEC)
/* What is said of one batch: nothing is known. */
#define IOBAND_WINDOW_UNSURE	100000

/**
 * struct ioband_load - what the finder is told of the device with a completion
 * @idle_ns:	total time that nothing was in flight, ns
 * @bdp:	in-flight I/Os that would keep the device busy were none to wait in
 *		it, as multiples of 1 / 1024
 * @outstanding: I/Os submitted and not completed, waiting ones included
 * @groups:	active groups
 * @limit:	I/Os that the device takes at most, 0 if it does not say
 * @limited:	does anything wait just because the depth is reached?
 */
struct ioband_load {
	s64		idle_ns;
	u64		bdp;
	unsigned int	outstanding;
	unsigned int	groups;
	unsigned int	limit;
	bool		limited;
};

/* one window at one depth */
struct ioband_sample {
	u64		per;	/* 1 / 256 ns per completion, at least 1 */
	u32		err;	/* its standard error, ppm */
	unsigned int	outstanding;
	bool		limited;
};

struct ioband_window {
	unsigned int	skip;		/* completions of before it */
	unsigned int	nr;		/* completions in this batch */
	unsigned int	total;		/* and in the window */
	unsigned int	limited;	/* of those */
	unsigned int	batches;
	s64		start;
	s64		batch_start;
	s64		batch_idle;
	u64		ref;		/* period to compare with, or 0 */
	u64		batch[IOBAND_WINDOW_MAX];	/* 1 / 256 ns per I/O */
};

/**
 * ioband_window_start - measure at another depth
 * @w:		the window
 * @depth:	I/Os in flight from now on
 * @now:	ns
 */
static inline void ioband_window_start(struct ioband_window *w,
				       unsigned int depth, s64 now)
{
	w->skip = depth + 2;
	w->nr = 0;
	w->total = 0;
	w->limited = 0;
	w->batches = 0;
	w->start = now;
}

/**
 * ioband_window_again - the device was used without our seeing it
 * @w:		the window
 * @depth:	I/Os in flight
 *
 * What was begun to be measured counts for nothing.
 */
static inline void ioband_window_again(struct ioband_window *w, unsigned int depth)
{
	w->skip = depth + 2;
	w->nr = 0;
}

/* How much faster period @b is than @a, ppm, at most 1000 times; @b is not 0. */
static inline s64 ioband_gain(u64 a, u64 b)
{
	if (div_u64(a, 1000) >= b)
		return 999 * (s64)USEC_PER_SEC;
	return (s64)mul_u64_u64_div_u64(a, USEC_PER_SEC, b) - USEC_PER_SEC;
}

/* The mean of the batches and its standard error. */
static inline void ioband_window_mean(const struct ioband_window *w,
				      struct ioband_sample *s)
{
	u64 sum = 0, sq = 0;

	for (int i = 0; i < w->batches; i++)
		sum += w->batch[i];
	s->per = max(div_u64(sum, w->batches), 1ULL);
	s->err = IOBAND_WINDOW_UNSURE;
	if (w->batches < 2)
		return;
	for (int i = 0; i < w->batches; i++) {
		s64 dev = clamp(ioband_gain(w->batch[i], s->per),
				-(s64)USEC_PER_SEC, (s64)USEC_PER_SEC);

		sq += dev * dev;
	}
	s->err = int_sqrt64(div_u64(sq, (w->batches - 1) * w->batches));
}

static inline bool ioband_window_ends(const struct ioband_window *w,
				      const struct ioband_sample *s, s64 now)
{
	if (w->batches >= IOBAND_WINDOW_MAX)
		return true;
	if (w->batches >= 2 && now - w->start > IOBAND_WINDOW_NS)
		return true;
	if (w->batches < IOBAND_WINDOW_MIN)
		return false;
	return s->err < IOBAND_WINDOW_PPM ||
	       (w->ref && abs(ioband_gain(w->ref, s->per)) > 4 * (s64)s->err);
}

/**
 * ioband_window_done - an I/O has completed
 * @w:		the window
 * @depth:	I/Os in flight
 * @load:	the device now
 * @now:	ns
 * @s:		what the window has shown
 *
 * Return: true if it has ended.
 */
static inline bool ioband_window_done(struct ioband_window *w, unsigned int depth,
				      const struct ioband_load *load, s64 now,
				      struct ioband_sample *s)
{
	if (w->skip) {
		w->skip--;
		w->start = now;
		w->batch_start = now;
		w->batch_idle = load->idle_ns;
		return false;
	}
	w->nr++;
	w->total++;
	w->limited += load->limited;
	if (w->nr < max(8U, depth) &&
	    !(w->nr >= 4 && now - w->start > 2 * IOBAND_WINDOW_NS))
		return false;

	w->batch[w->batches++] =
		div_u64((u64)(now - w->batch_start -
			      (load->idle_ns - w->batch_idle)) << 8, w->nr);
	w->nr = 0;
	w->batch_start = now;
	w->batch_idle = load->idle_ns;
	ioband_window_mean(w, s);
	s->limited = w->limited > w->total / 2;
	s->outstanding = load->outstanding;
	return ioband_window_ends(w, s, now);
}

#endif /* IOBAND_WINDOW_H */
