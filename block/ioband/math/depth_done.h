/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_DEPTH_DONE_H
#define IOBAND_DEPTH_DONE_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "depth.h"

/* What completions tell of the queue depth of a device: from phase to phase, see depth.h. */

/* Between two dips: at least this time, and this many I/Os for each that is done at once. */
#define IOBAND_DIP_NS		(2LL * NSEC_PER_SEC)
#define IOBAND_DIP_IOS		3000
/*
 * This many more I/Os in flight can be compared, and are worth it if this part of it is gained in
 * work: 1 / 1024.
 */
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

static inline void ioband_depth_reopen(struct ioband_depth *d)
{
	d->phase = IOBAND_OPEN;
	d->ceiling = IOBAND_DEPTH_MAX;
	d->few_windows = 0;
}

/*
 * Do I/Os take less time than they were thought to take on the idle device?  Then measure with even
 * fewer in flight.
 */
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
	/* two windows at least: during the first the longest I/Os may all still be in flight */
	d->first = true;
	if (s->led ? s->inflight >= 1536 : s->inflight >= 8 << 10)
		ioband_depth_measure(d, IOBAND_PROBE, s->inflight / 4, now);
}

static inline void ioband_depth_probed(struct ioband_depth *d, const struct ioband_sample *s,
				       s64 now)
{
	if (!s->held && !s->led) {
		/* between two bursts no bio is held: that tells nothing, unless it lasts */
		if (now - d->measure_ns < NSEC_PER_SEC)
			return;
		ioband_depth_reopen(d);
	} else if (d->first && s->ratio > IOBAND_DEPTH_BUSY + 2 * s->err) {
		/* fewer in flight, and I/Os take longer: what OPEN has seen was another load */
		ioband_depth_reopen(d);
	} else if (!ioband_depth_further(d, s, now)) {
		/* if I/Os were no faster with fewer in flight, twice as many may be done at once */
		ioband_depth_settle(d, ioband_depth_little(d) << (d->open_ratio < 1075), now);
	}
}

/*
 * The weight of a window, 1 / 1024: the larger its error, the less it counts.  A depth that is off
 * by many errors is no chance, so that such a window counts for something in any case.
 */
static inline u64 ioband_depth_gain(const struct ioband_sample *s, u64 off)
{
	u64 least = off > 4 * s->err ? 64 : 16;

	return clamp(div_u64(256 * 420, s->err * s->err), least, 256ULL);
}

/*
 * Compare the work of windows with a few more I/Os in flight with that of others: the gain in work,
 * as a part of the gain in I/Os in flight.  I/Os may take long for another reason than their
 * number, such as a write cache that is written back, or garbage collection.  A rotational disk
 * does more with each I/O in flight, and others wait longer for that, so it is not compared.
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
	bool longer = s->ratio > 1024 + max_t(u64, IOBAND_DEPTH_MARGIN, 2 * s->err);
	u64 off;

	ioband_depth_compare(d, s);
	if (ioband_depth_tries(d))
		d->gains += (div64_s64((s64)(seen - d->at_once) << 10, d->at_once) - d->gains) / 8;
	/* I/Os of a burst were held, and took no longer than those between bursts */
	if (!longer && s->held && d->at_once >= IOBAND_SERIAL &&
	    5 * s->inflight < 4ULL * d->depth << 10)
		d->at_once += d->at_once / 8;
	if (d->elastic > IOBAND_DEPTH_ELASTIC) {
		if (ioband_depth_tries(d)) {
			d->at_once = max(d->at_once, s->inflight);
			d->elastic -= d->elastic / 4;
		}
	} else if (seen > d->at_once || (longer && !d->late)) {
		/* if I/Os took no longer, the device does at least as many as were in flight */
		off = div64_u64((u64)abs((s64)(seen - d->at_once)) << 10, d->at_once);
		d->at_once += ((s64)(seen - d->at_once) * (s64)ioband_depth_gain(s, off)) >> 10;
	}
}

static inline void ioband_depth_follow(struct ioband_depth *d, const struct ioband_sample *s,
				       s64 now)
{
	/* if I/Os take long although few are in flight, the depth is smaller than was thought */
	bool full = s->held || s->led || s->inflight > d->at_once ||
		    s->ratio > IOBAND_DEPTH_BUSY + 2 * s->err;
	u64 period_ns, ios, scale, ratio = 1024;

	if (s->ratio + 2 * s->err < 1024) {
		/* by about the fourth root of the ratio */
		scale = (3 * 1024 + s->ratio) / 4;
		ioband_window_scale(&d->window, scale);
		d->faster = d->faster * scale >> 10;
		ratio = div64_u64(s->ratio << 10, scale);
	}
	if (full) {
		ioband_depth_track(d, s);
		d->turn++;
		ioband_depth_set(d);
	} else if (s->inflight < IOBAND_SEVERAL) {
		return;
	}
	/* fewer in flight are enough for a dip, and there may never be more if at_once is wrong */
	ios = full ? d->at_once : s->inflight;
	period_ns = mul_u64_u64_shr(IOBAND_DIP_IOS * s->per, ios, 18);
	if ((full && 10 * d->at_once < 7 * d->at_dip) || d->faster < (full ? 922 : 512) ||
	    now - d->dip_at_ns > max_t(s64, IOBAND_DIP_NS, period_ns)) {
		d->open_inflight = ios;
		d->open_ratio = full ? 1024 : ratio;
		d->few = !full;
		d->crowded = false;
		/* half of the I/Os of several disks would still meet others on the same disk */
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
 * Give up a measurement if the number of I/Os in flight stays above the ceiling for long, as I/Os
 * that must not wait may keep it there: other I/Os wait meanwhile.
 */
static inline bool ioband_depth_give_up(struct ioband_depth *d, s64 now)
{
	/* I/Os in flight have to complete before fewer can be in flight */
	if (d->ceiling == IOBAND_DEPTH_MAX || ++d->tries <= 2 * (d->open_inflight >> 10) + 64 ||
	    now - d->measure_ns < NSEC_PER_SEC)
		return false;
	if (d->phase == IOBAND_DIP)
		ioband_depth_settle(d, d->at_once, now);
	else
		ioband_depth_reopen(d);
	return true;
}

/* An I/O has completed.  Returns true if @d->depth or @d->ceiling may have changed. */
static inline bool ioband_depth_done(struct ioband_depth *d, const struct ioband_io *io, s64 now)
{
	bool begun = d->window.begun;
	struct ioband_sample s;

	if (!ioband_window_done(&d->window, io, d->ceiling, now, &s)) {
		/*
		 * The window of a dip begins: half of the I/Os that were in flight have completed.
		 * By now as many I/Os may have come as would have without the dip, that is as many
		 * again at most.  If more are outstanding, their submitters had waited below.
		 */
		if (!begun && d->window.begun && d->phase == IOBAND_DIP)
			d->crowded |= d->few && io->outstanding > 2 * (d->open_inflight >> 10);
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
	d->few_windows++;
	if (s.inflight >= min((u64)d->tags << 10, (u64)IOBAND_SERIAL))
		d->few_windows = 0;
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
