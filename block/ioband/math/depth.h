/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_DEPTH_H
#define IOBAND_DEPTH_H

#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
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
 *		A few more are let go in some of them: if nearly as much more is done, I/Os take
 *		long for another reason than their number, and more is better.
 *  DIP		Now and then, or when the number has changed much, a window with half of it
 *		shows again how long I/Os take on an idle device.
 *		If fewer than that were in flight, it also shows why.  As many as before are there
 *		still: there were no more.  Many more wait at once: their submitters had waited
 *		below, for a tag of a disk that this one is made of, and it does no more than that.
 *
 * The number need not be exact.  If it is too low, only groups that lead others wait for it;
 * if it is too high by less than what waits, as many wait as have to.
 *
 * Example: 64 I/Os at once of 100 us each, and 128 in flight take 200 us.  With 32, and with 8,
 * they take 100 us.  So 128 / (200 / 100) = 64 are done at once.
 *
 * How it is found out is in depth_done.h.  Nothing here reads a clock or takes a lock.
 */

/* In flight beyond what a device does at once, 1 / 1024. */
#define IOBAND_DEPTH_MARGIN	40
/* A few more in flight are worth it if that much more is done, 1 / 1024. */
#define IOBAND_DEPTH_GAINS	10
/* Below this a device does one I/O at a time, 1 / 1024. */
#define IOBAND_SERIAL		1536
/* A disk that turns is several disks if it does as many at once, 1 / 1024. */
#define IOBAND_SEVERAL		2048
#define IOBAND_DEPTH_MAX	1048576U
/* From there on I/Os take longer than on an idle device, 1 / 1024. */
#define IOBAND_DEPTH_BUSY	1280

/* Numbers that are kept for ioband_depth_undo(). */
#define IOBAND_DEPTH_KEPT	4

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
 * @idle_ns:	an I/O takes so long on an idle device; 0 while that is not known
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
	s64			idle_ns;

	/* private: */
	enum ioband_phase	phase;
	struct ioband_window	window;
	bool			first;		/* window of PROBE */
	unsigned int		tries;		/* to have no more in flight than the ceiling */
	s64			measure_ns;	/* that began */
	u64			open_inflight;	/* 1 / 1024: of the last window of OPEN ... */
	u64			open_ratio;	/* ... and how long its I/Os took */
	unsigned int		chooses;	/* see ioband_depth_init() */
	unsigned int		pinned;		/* see ioband_depth_pin(); 0: it is not */
	bool			few;		/* fewer were in flight before a dip than at_once */
	bool			crowded;	/* ... and many more waited when it began */
	u64			at_dip;		/* at_once of the last dip */
	u64			faster;		/* I/Os take less time since, 1 / 1024 */
	u64			roomy;		/* evidence, 1 / 1024 of an error */
	unsigned int		turn;		/* windows since there was room */
	s64			gains;		/* of a few more in flight, 1 / 1024 */
	u64			base_inflight;	/* of windows in which no more were, 1 / 1024 ... */
	u64			base_work;	/* ... and see struct ioband_sample */
	s64			elastic;	/* work gained over number gained, 1 / 1024 */
	s64			dip_at_ns;
	u64			last_ratio;	/* of the last window ... */
	bool			led;		/* ... and see struct ioband_sample */
	unsigned int		windows;	/* that have ended */
	unsigned int		ignore;		/* so many that follow */
	bool			late;		/* I/Os take long also because CPUs are busy */
	u64			kept[IOBAND_DEPTH_KEPT];	/* see ioband_depth_keep() */
};

static inline bool ioband_depth_is_settled(const struct ioband_depth *d)
{
	return d->phase == IOBAND_SETTLED || d->phase == IOBAND_DIP;
}

/**
 * ioband_depth_is_idle - do I/Os take hardly longer than on an idle device?
 * @d:		its depth
 *
 * Return: by the last window; false if that is not known.  True if the depth is pinned: then it is
 *	   enough that there is room.
 */
static inline bool ioband_depth_is_idle(const struct ioband_depth *d)
{
	return d->pinned || (d->phase == IOBAND_SETTLED && d->last_ratio < IOBAND_DEPTH_BUSY);
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
	u64 more = d->at_once < 4 << 10 || d->gains > IOBAND_DEPTH_GAINS ? 922 : 256;
	u64 ios = d->at_once;

	/* with one for each of several disks some have two and others none */
	if (d->chooses > 1 && d->at_once >= IOBAND_SEVERAL)
		ios *= 2;
	more += ios * IOBAND_DEPTH_MARGIN >> 10;
	if (!ioband_depth_tries(d))
		return ioband_depth_round(ios + more);
	return ioband_depth_round(ios + ios / 16) + 2;
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
	if (d->pinned) {
		d->depth = min(d->pinned, d->tags);
		d->most = d->depth;
		d->alone = d->depth;
		d->at_once = (u64)d->depth << 10;
		return;
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

/**
 * ioband_depth_pin - it is given how many I/Os a device does at once
 * @d:		its depth
 * @nr:		I/Os in flight at most, whoever wants to send one; 0: find out
 */
static inline void ioband_depth_pin(struct ioband_depth *d, unsigned int nr)
{
	ioband_depth_init(d, d->tags, d->chooses);
	d->pinned = nr;
	if (!nr)
		return;
	d->phase = IOBAND_SETTLED;
	ioband_depth_set(d);
}

/**
 * ioband_depth_keep - half of the time has passed after which a group is found to hang
 * @d:		the device's depth
 */
static inline void ioband_depth_keep(struct ioband_depth *d)
{
	for (int i = IOBAND_DEPTH_KEPT - 1; i > 0; i--)
		d->kept[i] = d->kept[i - 1];
	d->kept[0] = ioband_depth_is_settled(d) ? d->at_once : 0;
}

/**
 * ioband_depth_undo - what a group has in flight was found to hang
 * @d:		the device's depth
 *
 * Until now it counted as in flight.  More and more were, and those of others took no longer: it
 * seemed that the device does as many at once.  The number is again what it was before, but not
 * greater than now.
 */
static inline void ioband_depth_undo(struct ioband_depth *d)
{
	u64 before = d->kept[IOBAND_DEPTH_KEPT - 1];

	ioband_window_start(&d->window);
	if (!before || !ioband_depth_is_settled(d) || d->at_once <= before)
		return;
	d->at_once = before;
	for (int i = 0; i < IOBAND_DEPTH_KEPT; i++)
		d->kept[i] = before;
	ioband_depth_set(d);
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
