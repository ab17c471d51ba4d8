/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_DEPTH_DONE_H
#define IOBAND_DEPTH_DONE_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "depth.h"

/*
 * What completions tell of how many I/Os a device does at once: from phase to phase, see depth.h.
 */

/* Of errors: more would take no longer, and that is no chance. */
#define IOBAND_DEPTH_ROOMY	6
/* Between two dips: so long, and so many I/Os for each that is done at once. */
#define IOBAND_DIP_NS		(2LL * NSEC_PER_SEC)
#define IOBAND_DIP_IOS		3000
/* So many more in flight can be compared, and are worth it if so much more is done: 1 / 1024. */
#define IOBAND_DEPTH_MORE	32
#define IOBAND_DEPTH_ELASTIC	614

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
		/* between two bursts nobody wants more: that shows nothing, unless it lasts */
		if (now - d->measure_ns < NSEC_PER_SEC)
			return;
		d->phase = IOBAND_OPEN;
		d->ceiling = IOBAND_DEPTH_MAX;
	} else if (!ioband_depth_further(d, s, now)) {
		/* if fewer were no faster it may do more than there were */
		ioband_depth_settle(d, ioband_depth_little(d) << (d->open_ratio < 1075), now);
	}
}

/*
 * The less sure a window is, the less it counts: 1 / 1024.  But where it is off by many errors that
 * is no chance, and it counts for something in any case.
 */
static inline u64 ioband_depth_gain(const struct ioband_sample *s, u64 off)
{
	u64 least = off > 4 * s->err ? 64 : 16;

	return clamp(div_u64(256 * 420, s->err * s->err), least, 256ULL);
}

/*
 * How much more is done while a few more are in flight, as a part of how many more they are?
 * I/Os may take long for another reason than their number: what a cache of writes has put off, or
 * garbage.  A disk that turns does more with each, and others wait longer for that.
 */
static inline void ioband_depth_compare(struct ioband_depth *d, const struct ioband_sample *s)
{
	s64 more, gain;

	if (!ioband_depth_tries(d)) {
		d->base_inflight += d->base_inflight ? (s64)(s->inflight - d->base_inflight) / 4 :
						       s->inflight;
		d->base_work += d->base_work ? (s64)(s->work - d->base_work) / 4 : s->work;
		return;
	}
	if (!d->base_inflight || !d->base_work || d->late || d->chooses > 1)
		return;
	more = div64_s64((s64)(s->inflight - d->base_inflight) << 10, d->base_inflight);
	if (more < IOBAND_DEPTH_MORE)
		return;
	gain = (s64)div64_u64(s->work << 10, d->base_work) - 1024;
	d->elastic += (clamp(div64_s64(gain << 10, more), -2048LL, 2048LL) - d->elastic) / 16;
}

static inline void ioband_depth_track(struct ioband_depth *d, const struct ioband_sample *s)
{
	u64 seen = div64_u64(s->inflight << 10, max(s->ratio, 1024ULL));
	s64 room = div64_u64(s->inflight << 10, d->at_once) - s->ratio, gain;
	bool longer = s->ratio > 1024 + max_t(u64, IOBAND_DEPTH_MARGIN, 2 * s->err);
	u64 off;

	ioband_depth_compare(d, s);
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
	} else if (d->elastic > IOBAND_DEPTH_ELASTIC) {
		if (ioband_depth_tries(d)) {
			d->at_once = max(d->at_once, s->inflight);
			d->elastic -= d->elastic / 4;
		}
	} else if (seen > d->at_once || (longer && !d->late)) {
		/* with fewer in flight than that, all that is known is that it does as many */
		off = div64_u64((u64)abs((s64)(seen - d->at_once)) << 10, d->at_once);
		d->at_once += ((s64)(seen - d->at_once) * (s64)ioband_depth_gain(s, off)) >> 10;
	}
}

static inline void ioband_depth_follow(struct ioband_depth *d, const struct ioband_sample *s,
				       s64 now)
{
	/* if I/Os take long although there are few, it does not do as many as was thought */
	bool full = s->held || s->led || s->inflight > d->at_once ||
		    s->ratio > IOBAND_DEPTH_BUSY + 2 * s->err;
	u64 period_ns, ios;

	if (s->ratio + 2 * s->err < 1024) {
		/* by about the fourth root */
		ioband_window_scale(&d->window, (3 * 1024 + s->ratio) / 4);
		d->faster = d->faster * (3 * 1024 + s->ratio) >> 12;
	}
	if (full) {
		ioband_depth_track(d, s);
		d->turn++;
		ioband_depth_set(d);
	} else if (s->inflight < IOBAND_SEVERAL) {
		return;
	}
	/* of fewer it shows as well, and if it is not known there may always be fewer */
	ios = full ? d->at_once : s->inflight;
	period_ns = mul_u64_u64_shr(IOBAND_DIP_IOS * s->per, ios, 18);
	if ((full && (10 * d->at_once < 7 * d->at_dip || d->faster < 922)) ||
	    now - d->dip_at_ns > max_t(s64, IOBAND_DIP_NS, period_ns)) {
		d->open_inflight = ios;
		d->open_ratio = 1024;
		d->few = !full;
		d->crowded = false;
		/* on several disks half of them still meet each other */
		ioband_depth_measure(d, IOBAND_DIP, ios >> (d->chooses > 1 ? 3 : 1), now);
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
	if (d->crowded)
		at_once = min(at_once, ioband_depth_little(d));
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

/*
 * A dip begins, half of those in flight have completed.  Meanwhile as many may have come as would
 * have without it, and that is as many again at most.
 */
static inline void ioband_depth_dips(struct ioband_depth *d, const struct ioband_io *io)
{
	d->crowded |= d->few && io->outstanding > 2 * (d->open_inflight >> 10);
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
	bool begun = d->window.begun;
	struct ioband_sample s;

	if (!ioband_window_done(&d->window, io, d->ceiling, now, &s)) {
		if (!begun && d->window.begun && d->phase == IOBAND_DIP)
			ioband_depth_dips(d, io);
		return !d->window.begun && ioband_depth_give_up(d, now);
	}
	if (s.inflight > d->ceiling * 1280ULL) {
		ioband_depth_give_up(d, now);
		ioband_window_start(&d->window);
		return true;
	}
	d->windows++;
	if (d->ignore || d->pinned) {
		d->ignore -= !!d->ignore;
		ioband_window_start(&d->window);
		return false;
	}
	d->last_ratio = s.ratio;
	d->idle_ns = s.idle_ns;
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

#endif /* IOBAND_DEPTH_DONE_H */
