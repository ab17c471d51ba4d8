/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_DEPTH_H
#define IOBAND_DEPTH_H

#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "window.h"

/*
 * How many I/Os a device does at once: by Little's law the number in flight, divided by how
 * many times longer I/Os take than on an idle device.
 *
 *  OPEN	Nothing is known.  All I/Os go, until a group lags behind others.
 *  PROBE	A quarter of what is in flight may be, then a quarter of that, until I/Os
 *		take no less time: that is how long they take on an idle device.
 *  SETTLED	The number is followed with each window.
 *  DIP		Now and then, or when the number has changed much, a window with half of it
 *		shows again how long I/Os take on an idle device.
 *
 * The number need not be exact.  If it is too low, only groups that lead others wait for it;
 * if it is too high by less than what waits, as many wait as have to.
 *
 * Example: 64 I/Os at once of 100 us each, and 128 in flight take 200 us.  With 32, and with 8,
 * they take 100 us.  So 128 / (200 / 100) = 64 are done at once.
 *
 * Nothing here reads a clock or takes a lock.
 */

/* In flight beyond what a device does at once, 1 / 1024. */
#define IOBAND_DEPTH_MARGIN	40
/* A few more in flight are worth it if that much more is done, 1 / 1024. */
#define IOBAND_DEPTH_GAINS	10
/* Of errors: more would take no longer, and that is no chance. */
#define IOBAND_DEPTH_ROOMY	6
/* Between two dips: so long, and so many I/Os for each that is done at once. */
#define IOBAND_DIP_NS		(2LL * NSEC_PER_SEC)
#define IOBAND_DIP_IOS		3000
/* Below this a device does one I/O at a time, 1 / 1024. */
#define IOBAND_SERIAL		1536
#define IOBAND_DEPTH_MAX	1048576U

enum ioband_phase {
	IOBAND_OPEN,
	IOBAND_PROBE,
	IOBAND_SETTLED,
	IOBAND_DIP,
};

/**
 * struct ioband_depth - what is known of how many I/Os a device does at once
 * @depth:	I/Os in flight at most while a group that leads wants to send another one
 * @most:	I/Os in flight at most while one that does not lead wants to
 * @alone:	the same while there is no other
 * @ceiling:	I/Os in flight at most whoever wants to send one: while a window measures
 * @tags:	I/Os that the device takes, IOBAND_DEPTH_MAX if it does not say
 * @at_once:	I/Os that the device does at once, 1 / 1024
 *
 * See ioband_depth_init().
 */
struct ioband_depth {
	unsigned int		depth;
	unsigned int		most;
	unsigned int		alone;
	unsigned int		ceiling;
	unsigned int		tags;
	u64			at_once;

	/* private: */
	enum ioband_phase	phase;
	struct ioband_window	window;
	bool			first;		/* window of PROBE */
	unsigned int		tries;		/* to have no more in flight than the ceiling */
	s64			measure_ns;	/* that began */
	u64			open_inflight;	/* 1 / 1024: of the last window of OPEN ... */
	u64			open_ratio;	/* ... and how long its I/Os took */
	unsigned int		chooses;	/* see ioband_depth_init() */
	u64			at_dip;		/* at_once of the last dip */
	u64			faster;		/* I/Os take less time since, 1 / 1024 */
	u64			roomy;		/* evidence, 1 / 1024 of an error */
	unsigned int		turn;		/* windows since there was room */
	s64			gains;		/* of a few more in flight, 1 / 1024 */
	s64			dip_at_ns;
	u64			last_ratio;	/* of the last window ... */
	bool			led;		/* ... and see struct ioband_sample */
	unsigned int		windows;	/* that have ended */
	unsigned int		ignore;		/* so many that follow */
	bool			late;		/* I/Os take long also because CPUs are busy */
};

static inline bool ioband_depth_is_settled(const struct ioband_depth *d)
{
	return d->phase == IOBAND_SETTLED || d->phase == IOBAND_DIP;
}

/**
 * ioband_depth_is_idle - do I/Os take hardly longer than on an idle device?
 * @d:		its depth
 *
 * Return: by the last window; false if that is not known.
 */
static inline bool ioband_depth_is_idle(const struct ioband_depth *d)
{
	return d->phase == IOBAND_SETTLED && d->last_ratio < 1280;
}

static inline unsigned int ioband_depth_round(u64 ios)
{
	return clamp(ios >> 10, 1ULL, (u64)IOBAND_DEPTH_MAX);
}

static inline bool ioband_depth_tries(const struct ioband_depth *d)
{
	return d->turn % (d->at_once < IOBAND_SERIAL ? 64 : 8) == 0;
}

/*
 * Every so many windows a few more are let go, to see whether the device does more by now.
 * Seldom where that makes others wait for long.  One is on its way while it is not in flight.
 */
static inline unsigned int ioband_depth_leading(const struct ioband_depth *d)
{
	/* more than one and a tenth are two: the tenth would be lost; of many it may be nothing */
	u64 more = d->at_once < 4 << 10 || d->gains > IOBAND_DEPTH_GAINS ? 922 : 0;

	more += d->at_once * IOBAND_DEPTH_MARGIN >> 10;
	if (!ioband_depth_tries(d))
		return ioband_depth_round(d->at_once + more);
	return ioband_depth_round(d->at_once + d->at_once / 16) + 2;
}

/*
 * A group that leads nobody may have more in flight, as I/Os of another kind may be done more at
 * once, but not what others would wait for behind it when they come.  Less if it is alone.
 */
static inline void ioband_depth_set(struct ioband_depth *d)
{
	u64 most = d->at_once < IOBAND_SERIAL ? 2 << 10 : 4 * d->at_once;
	u64 alone = max(d->at_once + d->at_once / 2, 2ULL << 10);

	d->at_once = clamp(d->at_once, 1024ULL, (u64)d->tags << 10);
	if (d->chooses > 1) {
		most = max(8 * d->at_once, (u64)d->chooses << 10);
		alone = most;
	}
	d->depth = min(ioband_depth_leading(d), d->tags);
	d->most = min(ioband_depth_round(most), d->tags);
	d->alone = min(ioband_depth_round(alone), d->tags);
}

/**
 * ioband_depth_init - nothing is known of a device
 * @d:		its depth
 * @tags:	I/Os that the device takes, 1 to IOBAND_DEPTH_MAX
 * @chooses:	I/Os that it chooses the next one among, as a disk that turns does: its rate grows
 *		up to there
 */
static inline void ioband_depth_init(struct ioband_depth *d, unsigned int tags,
				     unsigned int chooses)
{
	*d = (struct ioband_depth){
		.depth = tags, .most = tags, .alone = tags, .tags = tags,
		.ceiling = IOBAND_DEPTH_MAX, .at_once = 1024, .chooses = chooses,
	};
}

/**
 * ioband_depth_retag - a device takes more or fewer I/Os than before
 * @d:		its depth
 * @tags:	see ioband_depth_init()
 * @chooses:	the same
 */
static inline void ioband_depth_retag(struct ioband_depth *d, unsigned int tags,
				      unsigned int chooses)
{
	d->tags = tags;
	d->chooses = chooses;
	if (ioband_depth_is_settled(d)) {
		ioband_depth_set(d);
		return;
	}
	d->depth = tags;
	d->most = tags;
	d->alone = tags;
}

static inline void ioband_depth_settle(struct ioband_depth *d, u64 at_once, s64 now)
{
	d->phase = IOBAND_SETTLED;
	d->turn = 1;
	d->ceiling = IOBAND_DEPTH_MAX;
	d->at_once = at_once;
	ioband_depth_set(d);
	d->at_dip = d->at_once;
	d->faster = 1024;
	d->dip_at_ns = now;
}

static inline void ioband_depth_measure(struct ioband_depth *d, enum ioband_phase phase,
					u64 ceiling, s64 now)
{
	d->phase = phase;
	d->tries = 0;
	d->measure_ns = now;
	d->ceiling = ioband_depth_round(ceiling);
}

/* Do I/Os take less time than it was thought that they do on an idle device?  Look further down. */
static inline bool ioband_depth_further(struct ioband_depth *d, const struct ioband_sample *s,
					s64 now)
{
	if (s->ratio >= 922 && !d->first)
		return false;
	d->first = false;
	ioband_window_idle(&d->window, s->ratio);
	d->open_ratio = div64_u64(d->open_ratio << 10, max(s->ratio, 1ULL));
	if (d->ceiling <= 1)
		return false;
	ioband_depth_measure(d, IOBAND_PROBE, (u64)d->ceiling << 8, now);
	return true;
}

static inline u64 ioband_depth_little(const struct ioband_depth *d)
{
	return div64_u64(d->open_inflight << 10, max(d->open_ratio, 1ULL));
}

static inline void ioband_depth_opened(struct ioband_depth *d, const struct ioband_sample *s,
				       s64 now)
{
	ioband_window_idle(&d->window, s->ratio);
	d->open_inflight = s->inflight;
	d->open_ratio = 1024;
	/* once more in any case: those that take the longest may all still be in flight */
	d->first = true;
	if (s->led ? s->inflight >= 1536 : s->inflight >= 8 << 10)
		ioband_depth_measure(d, IOBAND_PROBE, s->inflight / 4, now);
}

static inline void ioband_depth_probed(struct ioband_depth *d, const struct ioband_sample *s,
				       s64 now)
{
	if (!s->held && !s->led) {
		d->phase = IOBAND_OPEN;
		d->ceiling = IOBAND_DEPTH_MAX;
	} else if (!ioband_depth_further(d, s, now)) {
		/* if fewer were no faster it may do more than there were */
		ioband_depth_settle(d, ioband_depth_little(d) << (d->open_ratio < 1075), now);
	}
}

/* The less sure a window is, the less it counts: 1 / 1024. */
static inline u64 ioband_depth_gain(const struct ioband_sample *s)
{
	return clamp(div_u64(256 * 420, s->err * s->err), 16ULL, 256ULL);
}

static inline void ioband_depth_track(struct ioband_depth *d, const struct ioband_sample *s)
{
	u64 seen = div64_u64(s->inflight << 10, max(s->ratio, 1024ULL));
	s64 room = div64_u64(s->inflight << 10, d->at_once) - s->ratio, gain;
	bool longer = s->ratio > 1024 + max_t(u64, IOBAND_DEPTH_MARGIN, 2 * s->err);

	if (ioband_depth_tries(d)) {
		gain = div64_s64((s64)(seen - d->at_once) << 10, d->at_once);
		d->gains += (gain - d->gains) / 8;
	}
	/* more than it does at once, and it takes no longer?  Half an error is for chance. */
	if (longer)
		d->roomy = 0;
	else if (s->inflight > d->at_once + d->at_once / 256)
		d->roomy = max((s64)d->roomy + div_s64(room * 1024, s->err) - 512, 0LL);
	/* bursts waited, and did not take longer than what was done between them */
	if (!longer && s->held && d->at_once >= IOBAND_SERIAL &&
	    5 * s->inflight < 4ULL * d->depth << 10)
		d->at_once += d->at_once / 8;
	if (d->roomy > IOBAND_DEPTH_ROOMY << 10) {
		d->at_once = max(d->at_once, s->inflight);
		d->at_once += d->at_once / 4;
		d->roomy = 0;
		d->turn = UINT_MAX;	/* the next one tries */
	} else if (seen > d->at_once || (longer && !d->late)) {
		/* with fewer in flight than that, all that is known is that it does as many */
		d->at_once += ((s64)(seen - d->at_once) * (s64)ioband_depth_gain(s)) >> 10;
	}
}

static inline void ioband_depth_follow(struct ioband_depth *d, const struct ioband_sample *s,
				       s64 now)
{
	u64 period_ns;

	if (s->ratio + 2 * s->err < 1024) {
		/* by about the fourth root */
		ioband_window_scale(&d->window, (3 * 1024 + s->ratio) / 4);
		d->faster = d->faster * (3 * 1024 + s->ratio) >> 12;
	}
	if (!s->held && !s->led && s->inflight <= d->at_once)
		return;
	ioband_depth_track(d, s);
	d->turn++;
	ioband_depth_set(d);
	period_ns = mul_u64_u64_shr(IOBAND_DIP_IOS * s->per, d->at_once, 18);
	if (10 * d->at_once < 7 * d->at_dip || d->faster < 922 ||
	    now - d->dip_at_ns > max_t(s64, IOBAND_DIP_NS, period_ns)) {
		d->open_inflight = d->at_once;
		d->open_ratio = 1024;
		ioband_depth_measure(d, IOBAND_DIP, d->at_once / 2, now);
	}
}

static inline void ioband_depth_dipped(struct ioband_depth *d, const struct ioband_sample *s,
				       s64 now)
{
	u64 at_once = d->at_once;

	if (ioband_depth_further(d, s, now))
		return;
	if (s->ratio < 922)
		at_once = ioband_depth_little(d);
	else if (s->ratio > 1075 && s->ratio > 1024 + 3 * s->err)
		ioband_window_idle(&d->window, s->ratio);
	else
		ioband_window_scale(&d->window, (3 * 1024 + s->ratio) / 4);
	ioband_depth_settle(d, at_once, now);
}

/*
 * What cannot wait does not, and may be more than the ceiling.  Others do not wait for it to become
 * less for ever.
 */
static inline bool ioband_depth_give_up(struct ioband_depth *d, s64 now)
{
	/* at least that many I/Os are to complete before it can be less */
	if (d->ceiling == IOBAND_DEPTH_MAX || ++d->tries <= 2 * (d->open_inflight >> 10) + 64 ||
	    now - d->measure_ns < NSEC_PER_SEC)
		return false;
	if (d->phase == IOBAND_DIP) {
		ioband_depth_settle(d, d->at_once, now);
	} else {
		d->phase = IOBAND_OPEN;
		d->ceiling = IOBAND_DEPTH_MAX;
	}
	return true;
}

/**
 * ioband_depth_done - an I/O has completed
 * @d:		the device's depth
 * @io:		the I/O
 * @now:	ns
 *
 * Return: true if @d->depth or @d->ceiling may have changed.
 */
static inline bool ioband_depth_done(struct ioband_depth *d, const struct ioband_io *io, s64 now)
{
	struct ioband_sample s;

	if (!ioband_window_done(&d->window, io, d->ceiling, now, &s))
		return !d->window.begun && ioband_depth_give_up(d, now);
	if (s.inflight > d->ceiling * 1280ULL) {
		ioband_depth_give_up(d, now);
		ioband_window_start(&d->window);
		return true;
	}
	d->windows++;
	if (d->ignore) {
		d->ignore--;
		ioband_window_start(&d->window);
		return false;
	}
	d->last_ratio = s.ratio;
	d->led = s.led;
	switch (d->phase) {
	case IOBAND_OPEN:
		ioband_depth_opened(d, &s, now);
		break;
	case IOBAND_PROBE:
		ioband_depth_probed(d, &s, now);
		break;
	case IOBAND_SETTLED:
		ioband_depth_follow(d, &s, now);
		break;
	case IOBAND_DIP:
		ioband_depth_dipped(d, &s, now);
		break;
	}
	ioband_window_start(&d->window);
	return true;
}

/**
 * ioband_ahead - how many I/Os should be on their way to the device beside those that it does?
 * @lag:	from the completion of one to the submission of that which it made
 *		room for, ns
 * @latency:	from there to its completion, ns
 * @depth:	I/Os in flight
 *
 * As many as complete meanwhile.
 *
 * Return: at most three times @depth.
 */
static inline unsigned int ioband_ahead(u64 lag, u64 latency, unsigned int depth)
{
	return mul_u64_u64_div_u64(min(lag, 3 * latency), depth, max(latency, 1ULL));
}

#endif /* IOBAND_DEPTH_H */
