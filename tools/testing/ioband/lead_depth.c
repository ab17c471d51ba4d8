// SPDX-License-Identifier: GPL-2.0
/*
 * How many I/Os a device does at once, by Little's law: the number in flight, divided by how
 * many times longer than on an idle device they take.
 *
 *  OPEN	Nothing is known.  All I/Os go, until a group lags behind others.
 *  PROBE	A quarter of what is in flight may be, then a quarter of that, until I/Os
 *		take no shorter: that is how long they take on an idle device.
 *  SETTLED	The number is followed with each window.
 *  DIP		Now and then, or when the number has changed much, a window with half of it
 *		shows again how long I/Os take on an idle device.
 *
 * A window counts only I/Os that were given to the device since it began.  It is as long as it
 * takes to know the mean latency, and does not end sooner because what it has seen is smooth:
 * rare long ones count.
 */
#include <math.h>
#include <stdio.h>

#include "lead.h"

#define MARGIN		.04		/* in flight beyond what the device does at once */
#define ROOMY		6		/* errors: that is no chance */
#define ERROR		.03		/* of the mean of a window */
#define WINDOW_MAX	4096
#define WINDOW_NS	(250 * NSEC_PER_MSEC)
#define DIP_NS		(2 * NSEC_PER_SEC)	/* between two dips, at least ... */
#define DIP_IOS		3000		/* and so many times what is in flight, in I/Os */
#define CLASSES		14
#define NO_LIMIT	1e9

enum phase { OPEN, PROBE, SETTLED, DIP };

struct lead_depth lead_depth = { .depth = NO_LIMIT, .ceiling = NO_LIMIT, .alone = NO_LIMIT };
double lead_latency_ns, lead_gap_ns;	/* averages */

static enum phase phase;
static s64 last_done_ns, dip_at_ns;
static double spread;			/* of latencies: variance over the mean's square */
static double open_inflight, open_ratio;
static double at_dip;			/* at_once when last measured by a dip */
static double gains_to, peak;		/* in flight; I/Os a second */
static double faster;			/* by so much I/Os have come to take less time since */
static double inflight_ns;
static s64 inflight_at_ns;
static double roomy;			/* evidence that more would take no longer, in errors */

/* I/Os of one direction and length: on an idle device; and in this window */
static struct class {
	double	idle_ns;
	double	sum_ns;
	double	nr;
} classes[2 * CLASSES];

static struct {
	bool	begun;
	s64	from_ns;
	double	nr, sum_ns, sum_idle_ns, ratio, ratio_sq, held, lagged;
	double	inflight_ns;		/* what lead_depth_time() said when it began */
	s64	begin_ns;
} w;

struct sample {
	double	ratio;			/* latency by that on an idle device */
	double	error;			/* of it, relative */
	double	inflight;
	bool	held, lagged;
};

static void window_begin(void)
{
	memset(&w, 0, sizeof(w));
	for (int i = 0; i < 2 * CLASSES; i++)
		classes[i].sum_ns = classes[i].nr = 0;
}

static void scale_idle(double by)
{
	for (int i = 0; i < 2 * CLASSES; i++)
		classes[i].idle_ns *= by;
}

/* What this window has seen is how long I/Os take on an idle device. */
static void take_idle(const struct sample *s)
{
	for (int i = 0; i < 2 * CLASSES; i++) {
		struct class *class = &classes[i];

		class->idle_ns = class->nr >= 8 ? class->sum_ns / class->nr : class->idle_ns * s->ratio;
	}
}

/*
 * Who is alone may have more in flight, but not what others would wait for behind it: half more
 * than the device does at once, or as many as it still gains by, as a disk that chooses among them.
 */
static void set_depths(void)
{
	lead_depth.depth = lead_depth.at_once * (1 + MARGIN);
	lead_depth.alone = max(lead_depth.at_once * 1.5, gains_to);
}

static void probe_deeper(enum phase next, double ceiling)
{
	phase = next;
	lead_depth.ceiling = max(1.0, floor(ceiling));
}

static void settle(double at_once)
{
	phase = SETTLED;
	lead_depth.settled = true;
	lead_depth.ceiling = NO_LIMIT;
	lead_depth.at_once = max(at_once, 1.0);
	set_depths();
	at_dip = lead_depth.at_once;
	faster = 1;
	dip_at_ns = lab_now;
}

/* Shorter than what an idle device was thought to take?  Then look on, further down. */
static bool look_further_down(const struct sample *s)
{
	if (s->ratio >= .9)
		return false;
	take_idle(s);
	open_ratio /= s->ratio;
	if (lead_depth.ceiling <= 1)
		return false;
	probe_deeper(PROBE, lead_depth.ceiling / 4);
	return true;
}

static void follow(const struct sample *s, double ios_a_second)
{
	double gain = clamp(.25 * pow(.02 / s->error, 2), 1 / 64., .25), ratio = max(s->ratio, 1.0);
	double *at_once = &lead_depth.at_once;

	if (s->ratio < 1 - 2 * s->error) {
		scale_idle(pow(s->ratio, .25));
		faster *= pow(s->ratio, .25);
	}
	if (!s->held && !s->lagged)
		return;
	if (s->held || s->inflight > .9 * *at_once) {
		if (s->inflight > .9 * *at_once)
			roomy = max(roomy + (1 + MARGIN / 2 - s->ratio) / s->error, 0.0);
		if (roomy > ROOMY) {
			*at_once = max(*at_once, s->inflight) * 1.25;
			roomy = 0;
		} else {
			*at_once += (s->inflight / ratio - *at_once) * gain;
		}
	}
	*at_once = max(*at_once, 1.0);
	set_depths();
	if (*at_once < .7 * at_dip || faster < .9 ||
	    lab_now - dip_at_ns > max((double)DIP_NS, DIP_IOS * *at_once / ios_a_second * 1e9)) {
		open_inflight = *at_once;
		open_ratio = 1;
		probe_deeper(DIP, *at_once / 2);
	}
}

static void dipped(const struct sample *s)
{
	if (look_further_down(s))
		return;
	if (s->ratio > 1 + 3 * s->error && s->ratio > 1.05)
		take_idle(s);
	else if (s->ratio >= .9)
		scale_idle(pow(s->ratio, .25));
	settle(s->ratio < .9 ? open_inflight / open_ratio : lead_depth.at_once);
}

static void window_end(const struct sample *s, double ios_a_second)
{
	switch (phase) {
	case OPEN:
		take_idle(s);
		open_inflight = s->inflight;
		open_ratio = 1;
		peak = ios_a_second;
		gains_to = s->inflight;
		if (s->lagged ? s->inflight >= 1.5 : s->inflight >= 8)
			probe_deeper(PROBE, s->inflight / 4);
		break;
	case PROBE:
		if (lead_depth.alone == NO_LIMIT && ios_a_second > .98 * peak)
			gains_to = s->inflight;
		if (!s->held && !s->lagged) {
			phase = OPEN;
			lead_depth.ceiling = NO_LIMIT;
		} else if (!look_further_down(s)) {
			settle(open_inflight / open_ratio);
		}
		break;
	case SETTLED:
		follow(s, ios_a_second);
		break;
	case DIP:
		dipped(s);
		break;
	}
	if (getenv("LAB_DEPTH"))
		fprintf(stderr, "%.4f phase %d nr %.0f in flight %.1f ratio %.3f +- %.3f%s%s: at once %.1f ceiling %g\n",
			(lab_now - NSEC_PER_SEC) / 1e9, phase, w.nr, s->inflight, s->ratio, s->error,
			s->held ? " held" : "", s->lagged ? " lagged" : "", lead_depth.at_once, lead_depth.ceiling);
	window_begin();
}

/*
 * So many I/Os have been in flight since the last call.  It is the mean over time that Little's
 * law is of: where I/Os end in bursts, that over their ends is less.
 */
void lead_depth_time(unsigned int inflight)
{
	inflight_ns += (double)inflight * (lab_now - inflight_at_ns);
	inflight_at_ns = lab_now;
}

/* Somebody had to wait, as enough is in flight. */
void lead_depth_held(void)
{
	w.held++;
}

/* Somebody went who leads. */
void lead_depth_lagged(void)
{
	w.lagged++;
}

static struct class *class_of(const struct bio *bio)
{
	int order = bio->bi_iter.bi_size ? ilog2(bio->bi_iter.bi_size) - 9 : 0;

	return &classes[bio_data_dir(bio) * CLASSES + clamp(order, 0, CLASSES - 1)];
}

static double mean_inflight(void)
{
	return (inflight_ns - w.inflight_ns) / max((double)(lab_now - w.begin_ns), 1.0);
}

static bool window_is_over(double *error)
{
	double mean = w.ratio / w.nr, seen = max(w.ratio_sq / w.nr / (mean * mean) - 1, 0.0);
	double elapsed = lab_now - w.begin_ns;

	if (w.nr < max(32.0, 4 * mean_inflight()) && (elapsed < .1e9 || w.nr < 16))
		return false;
	if (w.nr < min(max(spread, seen) / (ERROR * ERROR), (double)WINDOW_MAX) && elapsed < WINDOW_NS)
		return false;
	spread += (seen - spread) * (seen > spread ? .25 : 1 / 32.);
	*error = max(sqrt(seen / w.nr), .005);
	return true;
}

/**
 * lead_depth_done - an I/O has ended
 * @bio:	the I/O
 * @inflight:	I/Os in flight, this one included
 */
void lead_depth_done(const struct bio *bio, unsigned int inflight)
{
	double latency = lab_now - (s64)bio->issue_time_ns, ratio, error;
	struct class *class = class_of(bio);

	lead_latency_ns += (latency - lead_latency_ns) / 32;
	if (last_done_ns)
		lead_gap_ns += (lab_now - last_done_ns - lead_gap_ns) / 32;
	last_done_ns = lab_now;
	if (!class->idle_ns)
		class->idle_ns = latency;
	if (!w.begun) {
		if (inflight > lead_depth.ceiling)
			return;
		w.begun = true;
		w.from_ns = lab_now;
		return;
	}
	if ((s64)bio->issue_time_ns < w.from_ns)
		return;
	if (!w.begin_ns) {
		w.begin_ns = lab_now;
		w.inflight_ns = inflight_ns;
		return;
	}
	ratio = latency / class->idle_ns;
	class->sum_ns += latency;
	class->nr++;
	w.nr++;
	w.sum_ns += latency;
	w.sum_idle_ns += class->idle_ns;
	w.ratio += ratio;
	w.ratio_sq += ratio * ratio;
	if (window_is_over(&error)) {
		struct sample s = {
			.ratio = w.sum_ns / w.sum_idle_ns, .error = error, .inflight = mean_inflight(),
			.held = w.held > .1 * w.nr, .lagged = w.lagged > .05 * w.nr,
		};

		window_end(&s, w.nr * 1e9 / (lab_now - w.begin_ns));
	}
}
