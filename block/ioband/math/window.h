/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_WINDOW_H
#define IOBAND_WINDOW_H

#include <linux/log2.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * The latency of I/Os in relation to their latency on an idle device (the ratio): its mean over a
 * window of completions, and the standard error of the mean.  Used by depth.h.
 *
 * A window counts only I/Os that the device got since it began.  It lasts until the mean is known
 * well.  That it has seen equal latencies does not end it sooner: rare I/Os that take long count.
 *
 * Nothing here reads a clock or takes a lock.
 */

/*
 * A window ends when the standard error of the mean is ERR, 1 / 1024 of it, but not before MIN
 * completions; or after MAX completions, or NS.  The error counts as ERR_MIN at least.
 */
#define IOBAND_WINDOW_ERR	31
#define IOBAND_WINDOW_ERR_MIN	5
#define IOBAND_WINDOW_MIN	32
#define IOBAND_WINDOW_FEW	16
#define IOBAND_WINDOW_MAX	4096
#define IOBAND_WINDOW_NS	(250 * NSEC_PER_MSEC)
/* A window that has lasted for SLOW may end with FEW completions, ... */
#define IOBAND_WINDOW_SLOW_NS	(100 * NSEC_PER_MSEC)
/* ... and a window that has lasted for SLOWER with CLASS completions. */
#define IOBAND_WINDOW_SLOWER_NS	NSEC_PER_SEC
/* The number of I/Os of a class in a window from which their mean latency is known. */
#define IOBAND_WINDOW_CLASS	8
/*
 * Classes of lengths, by powers of 2 from 512 B to 4 MiB and more, and one for no length; for each
 * direction.
 */
#define IOBAND_WINDOW_SIZES	15
/* The latency of an I/O counts as this many times that on an idle device at most. */
#define IOBAND_WINDOW_RATIO_MAX	((u64)1024 << 10)

/* An I/O that has completed. */
struct ioband_io {
	unsigned int	class;		/* of direction and length, see ioband_window_class() */
	unsigned int	inflight;	/* this one included; I/Os that hang do not count */
	unsigned int	outstanding;	/* these, and I/Os that wait for their share */
	s64		given_ns;	/* when the device got it */
	u64		cost;		/* device time that it takes, ns << 8; 0: not known */
};

/* What a window has shown. */
struct ioband_sample {
	u64		ratio;		/* of latencies to those on an idle device, 1 / 1024 */
	u32		err;		/* its standard error, 1 / 1024 of it */
	u64		inflight;	/* I/Os in flight, mean over time, 1 / 1024 */
	u64		per;		/* time between completions, ns << 8 */
	s64		idle_ns;	/* mean latency of such I/Os on an idle device */
	u64		work;		/* costs of I/Os over the time, 1 / 1024 */
	bool		held;		/* some I/Os waited because enough were in flight */
	bool		led;		/* some were dispatched of groups that led others */
};

/* The latency of I/Os of a class: on an idle device; and in this window, sum and number. */
struct ioband_window_class {
	u64		idle_ns;
	u64		sum_ns;
	unsigned int	nr;
};

struct ioband_window {
	struct ioband_window_class class[2 * IOBAND_WINDOW_SIZES];
	u64		spread;		/* usual ioband_window_spread() */

	/* I/Os in flight times ns, summed up since the beginning */
	u64		inflight_ns;
	s64		inflight_at_ns;

	/* this window */
	bool		begun;
	s64		from_ns;	/* it counts I/Os that the device got since */
	s64		begin_ns;	/* 0 until the first of these has completed */
	u64		begin_inflight_ns;
	unsigned int	done;		/* I/Os completed since then, uncounted ones as well ... */
	u64		work;		/* ... and what they cost, ns << 8 */
	unsigned int	nr;
	unsigned int	held;
	unsigned int	led;
	u64		sum_ns;
	u64		sum_idle_ns;
	u64		sum_ratio;
	u64		sum_ratio_sq;
};

/* The class of an I/O, less than 2 * IOBAND_WINDOW_SIZES.  @bytes: 0 if it has no length. */
static inline unsigned int ioband_window_class(bool write, u32 bytes)
{
	int size = bytes ? clamp(ilog2(bytes) - 9, 0, IOBAND_WINDOW_SIZES - 2) :
			   IOBAND_WINDOW_SIZES - 1;

	return write * IOBAND_WINDOW_SIZES + size;
}

static inline void ioband_window_start(struct ioband_window *w)
{
	for (int i = 0; i < ARRAY_SIZE(w->class); i++) {
		w->class[i].sum_ns = 0;
		w->class[i].nr = 0;
	}
	memset_startat(w, 0, begun);
}

/*
 * Account for the time since the last call, with @inflight I/Os in flight.  Little's law holds for
 * the mean over time: where I/Os complete in bursts, the mean over completions is less.
 */
static inline void ioband_window_time(struct ioband_window *w, unsigned int inflight, s64 now)
{
	w->inflight_ns += (u64)inflight * max(now - w->inflight_at_ns, 0LL);
	w->inflight_at_ns = now;
}

/* Correct what is known of latencies on an idle device by a factor, 1 / 1024. */
static inline void ioband_window_scale(struct ioband_window *w, u64 by)
{
	for (int i = 0; i < ARRAY_SIZE(w->class); i++) {
		u64 *idle_ns = &w->class[i].idle_ns;

		if (*idle_ns)
			*idle_ns = max(mul_u64_u64_shr(*idle_ns, by, 10), 1ULL);
	}
}

/* Take the latencies of this window, and its ratio, 1 / 1024, for those on an idle device. */
static inline void ioband_window_idle(struct ioband_window *w, u64 ratio)
{
	ioband_window_scale(w, ratio);
	for (int i = 0; i < ARRAY_SIZE(w->class); i++) {
		struct ioband_window_class *class = &w->class[i];

		if (class->nr >= IOBAND_WINDOW_CLASS)
			class->idle_ns = max(div_u64(class->sum_ns, class->nr), 1ULL);
	}
}

/* The variance of the ratios over their mean's square, 1 / 1024. */
static inline u64 ioband_window_spread(const struct ioband_window *w)
{
	u64 mean = div_u64(w->sum_ratio, w->nr);
	u64 sq = div_u64(w->sum_ratio_sq, w->nr);

	if (!mean || sq <= mean * mean)
		return 0;
	return div64_u64((sq - mean * mean) << 10, mean * mean);
}

static inline bool ioband_window_ends(struct ioband_window *w, u64 inflight, s64 now, u32 *err)
{
	u64 spread = ioband_window_spread(w), enough;
	s64 elapsed = now - w->begin_ns;

	/* a window does not end within a burst of completions */
	if (elapsed < div_u64(w->sum_ns, w->nr))
		return false;
	if (w->nr < max((u64)IOBAND_WINDOW_MIN, inflight >> 8) &&
	    (elapsed < IOBAND_WINDOW_SLOW_NS ||
	     (elapsed < IOBAND_WINDOW_SLOWER_NS && w->nr < IOBAND_WINDOW_FEW)))
		return false;
	enough = div_u64(max(w->spread, spread) << 10, IOBAND_WINDOW_ERR * IOBAND_WINDOW_ERR);
	if (w->nr < min_t(u64, enough, IOBAND_WINDOW_MAX) && elapsed < IOBAND_WINDOW_NS)
		return false;
	if (spread > w->spread)
		w->spread += (spread - w->spread) / 4;
	else
		w->spread -= (w->spread - spread) / 32;
	*err = max_t(u32, int_sqrt64(div_u64(spread << 10, w->nr)), IOBAND_WINDOW_ERR_MIN);
	return true;
}

/* Does a completed I/O count?  This begins the window; the first I/O that would count does not. */
static inline bool ioband_window_counts(struct ioband_window *w, const struct ioband_io *io,
					unsigned int ceiling, s64 now)
{
	if (!w->begun) {
		if (io->inflight <= ceiling) {
			w->begun = true;
			w->from_ns = now;
		}
		return false;
	}
	w->done++;
	w->work += io->cost;
	if (io->given_ns < w->from_ns)
		return false;
	if (w->begin_ns)
		return true;
	w->done = 0;
	w->work = 0;
	w->begin_ns = now;
	w->begin_inflight_ns = w->inflight_ns;
	return false;
}

/*
 * An I/O has completed; ioband_window_time() has been called for @now.  Returns true if the window
 * has ended: @s is what it has shown.  @ceiling: the most I/Os in flight with which it begins.
 */
static inline bool ioband_window_done(struct ioband_window *w, const struct ioband_io *io,
				      unsigned int ceiling, s64 now, struct ioband_sample *s)
{
	struct ioband_window_class *class = &w->class[io->class];
	u64 latency = max(now - io->given_ns, 1LL), ratio, inflight;
	s64 elapsed;

	if (!class->idle_ns)
		class->idle_ns = latency;
	if (!ioband_window_counts(w, io, ceiling, now))
		return false;
	ratio = min(div64_u64(latency << 10, class->idle_ns), IOBAND_WINDOW_RATIO_MAX);
	class->sum_ns += latency;
	class->nr++;
	w->nr++;
	w->sum_ns += latency;
	w->sum_idle_ns += class->idle_ns;
	w->sum_ratio += ratio;
	w->sum_ratio_sq += ratio * ratio;
	/* the rest takes divisions, so look only now and then */
	if (w->nr % IOBAND_WINDOW_CLASS)
		return false;
	elapsed = max(now - w->begin_ns, 1LL);
	inflight = mul_u64_u64_div_u64(w->inflight_ns - w->begin_inflight_ns, 1024, elapsed);
	if (!ioband_window_ends(w, inflight, now, &s->err))
		return false;
	s->ratio = max(mul_u64_u64_div_u64(w->sum_ns, 1024, w->sum_idle_ns), 1ULL);
	s->inflight = inflight;
	s->idle_ns = div_u64(w->sum_idle_ns, w->nr);
	s->work = mul_u64_u64_div_u64(w->work, 4, elapsed);
	s->per = max(mul_u64_u64_div_u64(elapsed, 256, w->done), 1ULL);
	s->held = 10 * w->held > w->nr;
	s->led = 20 * w->led > w->nr;
	return true;
}

#endif /* IOBAND_WINDOW_H */
