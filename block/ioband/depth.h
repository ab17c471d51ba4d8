/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_DEPTH_H
#define IOBAND_DEPTH_H

#include <linux/limits.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "window.h"

/*
 * How many I/Os a device needs at once to be as fast as it can be: the knee.
 *
 * Below it the device idles, above it I/Os only wait inside the device, where no
 * weight orders them.  The finder sees nothing but completions.  It measures the
 * time per completion at one depth over a window, then moves:
 *
 *  RAMP		from the last good depth up by 4 until that gains nothing
 *  BISECT	down to the least depth that is within IOBAND_KNEE_PPM of the best, in
 *		two windows: of many, one is lucky
 *  HOLD	stay for a while, and look whether the load has grown
 *  PROBE	one window a little deeper or shallower ...
 *  RETURN	... and one back: three in a row show a gain of a percent through
 *		noise of several
 *
 * Nothing here reads a clock or takes a lock.
 */

#define IOBAND_DEPTH_MAX	1024
/* A device that does one I/O at a time needs no more to reorder in. */
#define IOBAND_DEPTH_SERIAL	32
/* Below this bdp, that is what a device does; see struct ioband_load. */
#define IOBAND_SERIAL_BDP	1536
/* So much faster than with one I/O at a time, 1 / 1024, it does several at once. */
#define IOBAND_PARALLEL_GAIN	4096
/* What counts as a gain, parts per million. */
#define IOBAND_KNEE_PPM		10000
/* Of fewer than this, one less may be a lot less. */
#define IOBAND_KNEE_FEW		8
/* windows between two probes */
#define IOBAND_HOLD_WINDOWS	24

enum ioband_phase {
	IOBAND_RAMP_FROM,	/* measuring the depth to start from */
	IOBAND_RAMP,
	IOBAND_BISECT,
	IOBAND_HOLD,
	IOBAND_PROBE,
	IOBAND_RETURN,
};

enum ioband_probe {
	IOBAND_DOUBLE,
	IOBAND_DEEPER,
	IOBAND_SHALLOWER,
	IOBAND_NR_PROBES,
};

/* what the probes of one kind have shown so far, ppm of gain */
struct ioband_evidence {
	s64		sum;
	u64		sum_sq;
	unsigned int	nr;
};

/**
 * struct ioband_knee - the finder's state
 * @depth:	I/Os in flight at most, at least 1
 * @gain:	how much faster the device was than with one I/O at a time, in
 *		1 / 1024, 0 if that is not known
 *
 * See ioband_knee_init().
 */
struct ioband_knee {
	unsigned int		depth;
	u64			gain;

	/* private: measuring, and the search */
	struct ioband_window	window;
	enum ioband_phase	phase;
	enum ioband_probe	probe;
	unsigned int		good;	/* least depth known to be deep enough */
	unsigned int		bad;	/* greatest known not to be, or 0 */
	unsigned int		prev;
	unsigned int		held;	/* windows of HOLD, then probes */
	unsigned int		turn;
	bool			fitted;	/* one window of BISECT said good */
	unsigned int		outstanding;	/* when the knee was found */
	struct ioband_sample	base;
	struct ioband_sample	best;
	u64			single;	/* period of one I/O at a time, or 0 */
	struct ioband_evidence	seen[IOBAND_NR_PROBES];
};

static inline void ioband_knee_at(struct ioband_knee *k, unsigned int depth,
				  s64 now)
{
	k->depth = clamp(depth, 1U, IOBAND_DEPTH_MAX);
	ioband_window_start(&k->window, k->depth, now);
}

/**
 * ioband_knee_init - start from one I/O at a time
 * @k:		the finder
 * @now:	ns
 */
static inline void ioband_knee_init(struct ioband_knee *k, s64 now)
{
	*k = (struct ioband_knee){ .phase = IOBAND_RAMP_FROM };
	ioband_knee_at(k, 1, now);
}

/* Is @s within what counts as a gain of the best, @slack ppm aside? */
static inline bool ioband_knee_fits(const struct ioband_knee *k,
				    const struct ioband_sample *s, u32 slack)
{
	return ioband_gain(s->per, k->best.per) <=
	       IOBAND_KNEE_PPM + min(slack, 2U * IOBAND_KNEE_PPM);
}

static inline unsigned int ioband_knee_hold(struct ioband_knee *k,
					    unsigned int depth)
{
	k->phase = IOBAND_HOLD;
	k->good = depth;
	k->held = 0;
	k->window.ref = 0;
	return depth;
}

static inline unsigned int ioband_knee_bisect(struct ioband_knee *k,
					      unsigned int outstanding)
{
	if (k->good - k->bad > max(1U, k->good / 16)) {
		k->phase = IOBAND_BISECT;
		return (k->good + k->bad) / 2;
	}
	/* nothing does more at once than it has */
	k->gain = min(k->gain, (u64)k->good << 10);
	k->turn = 0;
	memset(k->seen, 0, sizeof(k->seen));
	k->outstanding = outstanding;
	return ioband_knee_hold(k, k->good);
}

/* Four times as deep as @base was measured at. */
static inline unsigned int ioband_knee_ramp(struct ioband_knee *k,
					    const struct ioband_sample *base,
					    unsigned int limit)
{
	if (k->depth == 1)
		k->single = base->per;
	else if (k->phase != IOBAND_RAMP)
		k->single = mul_u64_u64_shr(base->per, k->gain, 10);
	k->phase = IOBAND_RAMP;
	k->base = *base;
	k->prev = k->depth;
	k->window.ref = base->per;
	return max(k->prev, min(limit, 4 * k->prev));
}

static inline unsigned int ioband_knee_ramped(struct ioband_knee *k,
					      const struct ioband_sample *s,
					      unsigned int limit)
{
	s64 gain = ioband_gain(k->base.per, s->per);
	u32 noise = min(s->err + k->base.err, 5U * IOBAND_KNEE_PPM);

	if (gain > max_t(u32, noise, IOBAND_KNEE_PPM) && k->depth != k->prev) {
		k->bad = k->prev;
		return ioband_knee_ramp(k, s, limit);
	}
	k->best = s->per < k->base.per ? *s : k->base;
	k->best.err = min(k->best.err, 2U * IOBAND_KNEE_PPM);
	k->window.ref = 0;
	if (ioband_knee_fits(k, &k->base, k->best.err)) {
		k->good = k->prev;
		return ioband_knee_bisect(k, k->base.outstanding);
	}
	k->good = k->depth;
	k->bad = k->prev;
	return ioband_knee_bisect(k, s->outstanding);
}

/**
 * ioband_knee_bdp - how many I/Os does the device do at once?
 * @k:		the finder
 * @least:	what the least latencies say: too few if I/Os take more or less as
 *		they like
 *
 * Return: in 1 / 1024, see struct ioband_load.
 */
static inline u64 ioband_knee_bdp(const struct ioband_knee *k, u64 least)
{
	return k->gain >= IOBAND_PARALLEL_GAIN ? max(k->gain, least) : least;
}

static inline unsigned int ioband_knee_probe(struct ioband_knee *k,
					     const struct ioband_sample *s,
					     const struct ioband_load *load,
					     unsigned int limit)
{
	static const u8 order[] = {
		IOBAND_DEEPER, IOBAND_SHALLOWER, IOBAND_DEEPER, IOBAND_SHALLOWER,
		IOBAND_DEEPER, IOBAND_SHALLOWER, IOBAND_DOUBLE,
	};
	unsigned int cur = k->good, depth;
	bool slack = ((u64)cur << 10) > 2 * ioband_knee_bdp(k, load->bdp);

	k->held = 0;
	k->probe = order[k->turn++ % ARRAY_SIZE(order)];
	switch (k->probe) {
	case IOBAND_DOUBLE:
		depth = min(limit, 2 * cur);
		break;
	case IOBAND_DEEPER:
		depth = min(limit, cur + max(1U, cur / 8));
		break;
	default:
		/* one of a few less is no small step: only where it should cost nothing */
		if (!slack && cur < IOBAND_KNEE_FEW)
			return cur;
		depth = cur - min(cur, max(1U, cur / (slack ? 2 : 16)));
	}
	/* deeper shows nothing if the depth is no limit, less if there is one group */
	if (!depth || depth == cur ||
	    (k->probe == IOBAND_SHALLOWER ? load->groups < 2 : !s->limited))
		return cur;
	k->phase = IOBAND_PROBE;
	k->base = *s;
	return depth;
}

/* The standard error of the mean of some gains. */
static inline s64 ioband_knee_error(const struct ioband_evidence *e, s64 mean)
{
	u64 sq = (u64)(mean * mean) * e->nr;

	if (e->nr < 2)
		return 0;
	return int_sqrt64(div_u64(e->sum_sq - min(e->sum_sq, sq),
				  e->nr * (e->nr - 1)));
}

/* Back from a probe: move if all such probes together leave no doubt. */
static inline unsigned int ioband_knee_judge(struct ioband_knee *k,
					     const struct ioband_sample *s,
					     unsigned int limit)
{
	struct ioband_evidence *e = &k->seen[k->probe];
	u64 both = mul_u64_u64_div_u64(2 * k->base.per, s->per,
				       k->base.per + s->per);
	s64 gain = clamp(ioband_gain(both, k->best.per), -(s64)USEC_PER_SEC,
			 (s64)USEC_PER_SEC);
	unsigned int probed = k->prev;
	bool moved = false;
	s64 mean, se;

	e->nr++;
	e->sum += gain;
	e->sum_sq += gain * gain;
	mean = div_s64(e->sum, e->nr);
	se = ioband_knee_error(e, mean);
	if (e->nr >= 3 && k->probe != IOBAND_SHALLOWER &&
	    mean - 3 * se / 2 > IOBAND_KNEE_PPM) {
		e->nr = 0;
		k->bad = k->good;
		return ioband_knee_ramp(k, s, limit);
	}
	if (e->nr >= 3 && k->probe == IOBAND_SHALLOWER &&
	    mean - 3 * se / 2 > -IOBAND_KNEE_PPM / 2)
		moved = true;
	if (e->nr >= 12 || (e->nr >= 3 &&
			    (moved || abs(mean - IOBAND_KNEE_PPM) > 3 * se)))
		*e = (struct ioband_evidence){ };
	return ioband_knee_hold(k, moved ? probed : k->good);
}

/* A window has ended.  Returns the depth of the next. */
static inline unsigned int ioband_knee_step(struct ioband_knee *k,
					    const struct ioband_sample *s,
					    const struct ioband_load *load)
{
	unsigned int limit = IOBAND_DEPTH_MAX;
	bool fits;

	if (k->phase == IOBAND_RAMP && k->single)
		k->gain = min(div64_u64(k->single << 10, min(s->per, k->base.per)),
			      (u64)k->depth << 10);
	if (ioband_knee_bdp(k, load->bdp) < IOBAND_SERIAL_BDP)
		limit = IOBAND_DEPTH_SERIAL;
	/* beyond that submitters wait where no weight counts */
	limit = min_not_zero(limit, load->limit);
	switch (k->phase) {
	case IOBAND_RAMP_FROM:
		k->bad = 0;
		return ioband_knee_ramp(k, s, limit);
	case IOBAND_RAMP:
		return ioband_knee_ramped(k, s, limit);
	case IOBAND_BISECT:
		/* in doubt deeper: probes come back from there, and nothing is lost */
		fits = ioband_gain(s->per, k->best.per) + s->err + k->best.err <=
		       IOBAND_KNEE_PPM;
		if (fits && !k->fitted) {
			k->fitted = true;
			return k->depth;
		}
		k->fitted = false;
		*(fits ? &k->good : &k->bad) = k->depth;
		return ioband_knee_bisect(k, s->outstanding);
	case IOBAND_HOLD:
		/* it takes fewer than it did */
		k->good = min_not_zero(k->good, load->limit);
		if (s->limited && s->outstanding > 2 * k->outstanding &&
		    k->outstanding < max(32U, 2 * k->good)) {
			k->bad = 0;
			return ioband_knee_ramp(k, s, limit);
		}
		if (++k->held < IOBAND_HOLD_WINDOWS)
			return k->good;
		return ioband_knee_probe(k, s, load, limit);
	case IOBAND_PROBE:
		k->phase = IOBAND_RETURN;
		k->best = *s;
		k->prev = k->depth;
		return k->good;
	case IOBAND_RETURN:
		return ioband_knee_judge(k, s, limit);
	}
	return k->good;
}

/**
 * ioband_knee_done - an I/O has completed
 * @k:		the finder
 * @load:	the device now
 * @now:	ns
 *
 * Return: true if @k->depth may have changed.
 */
static inline bool ioband_knee_done(struct ioband_knee *k,
				    const struct ioband_load *load, s64 now)
{
	struct ioband_sample s;

	if (!ioband_window_done(&k->window, k->depth, load, now, &s))
		return false;
	ioband_knee_at(k, ioband_knee_step(k, &s, load), now);
	return true;
}

/**
 * ioband_ahead - how many I/Os should wait in the device beside those that it does?
 * @lag:	from the completion of one to the submission of that which it made
 *		room for, ns
 * @latency:	from there to its completion, the lag included, ns
 * @depth:	what the finder found
 *
 * As many as complete meanwhile.  Twice that, since those that go together are
 * submitted one after the other.
 *
 * Return: at most a quarter of @depth, as no weight orders them.
 */
static inline unsigned int ioband_ahead(u64 lag, u64 latency, unsigned int depth)
{
	return mul_u64_u64_div_u64(2 * min(lag, latency / 8), depth, max(latency, 1ULL));
}

#endif /* IOBAND_DEPTH_H */
