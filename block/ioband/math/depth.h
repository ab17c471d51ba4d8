/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_DEPTH_H
#define IOBAND_DEPTH_H

#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "window.h"

/*
 * The queue depth of a device, that is how many I/Os it does at once: by Little's law the number of
 * I/Os in flight, divided by how many times longer I/Os take than on the idle device.
 *
 *  OPEN	Nothing is known.  All I/Os are dispatched until a group lags behind others.
 *  PROBE	A quarter of the I/Os that were in flight may be, then a quarter of that, until
 *		I/Os take no less time.  This is how long they take on the idle device.
 *  SETTLED	The depth is known, and updated with each window.
 *		In some windows a few more I/Os are dispatched.  If nearly as much more is done,
 *		I/Os take long for another reason than their number, and a larger depth is better.
 *  DIP	From time to time, or when the depth has changed much, a window with half as many I/Os
 *		in flight shows again how long I/Os take on the idle device.
 *		If fewer I/Os than the depth were in flight before, DIP also shows why.  If no more
 *		than these are outstanding now, there were no more.  If many more wait at once,
 *		their submitters had waited below, for a tag of a disk of which the device is made,
 *		and the device does no more than were in flight.
 *
 * The depth need not be exact.  If it is too small, only groups that lead others wait for it.  If
 * it is too large by less than the number of I/Os that wait, those that lead still wait.
 *
 * Example: 64 I/Os at once of 100 us each, and 128 in flight take 200 us.  With 32, and with 8,
 * they take 100 us.  So the depth is 128 / (200 / 100) = 64.
 *
 * How the depth is found is in depth_done.h.  Nothing here reads a clock or takes a lock.
 */

/* I/Os in flight beyond the measured depth, 1 / 1024 of it. */
#define IOBAND_DEPTH_MARGIN	40
/* A few more I/Os in flight are worth it if this much more is done, 1 / 1024. */
#define IOBAND_DEPTH_GAINS	10
/* A device with a depth below this does one I/O at a time, 1 / 1024. */
#define IOBAND_SERIAL		1536
/* A rotational device with a depth from this on consists of several disks, 1 / 1024. */
#define IOBAND_SEVERAL		2048
#define IOBAND_DEPTH_MAX	1048576U
/* From this ratio on I/Os take longer than on the idle device, 1 / 1024. */
#define IOBAND_DEPTH_BUSY	1280

/* A device has one I/O at a time after this many windows, as idle times count for the first. */
#define IOBAND_FEW_WINDOWS	4

/* The number of depths that are kept for ioband_depth_undo(). */
#define IOBAND_DEPTH_KEPT	4

enum ioband_phase {
	IOBAND_OPEN,
	IOBAND_PROBE,
	IOBAND_SETTLED,
	IOBAND_DIP,
};

/* What is known of the queue depth of a device, see ioband_depth_init(). */
struct ioband_depth {
	/* the most I/Os in flight when one is dispatched ... */
	unsigned int		depth;		/* ... of a group that leads others */
	unsigned int		most;		/* ... of a group that leads none */
	unsigned int		alone;		/* ... of the only group that is active */
	unsigned int		ceiling;	/* ... of any group, while a window measures */
	unsigned int		tags;		/* I/Os it accepts; IOBAND_DEPTH_MAX: not known */
	u64			at_once;	/* the measured depth, 1 / 1024 */
	s64			idle_ns;	/* latency on the idle device; 0: not known */

	/* private: */
	enum ioband_phase	phase;
	struct ioband_window	window;
	bool			first;		/* the next window is the first of PROBE */
	unsigned int		tries;		/* tries to get below the ceiling */
	s64			measure_ns;	/* when PROBE or DIP began, ns */
	u64			open_inflight;	/* in flight before PROBE or DIP, 1 / 1024 ... */
	u64			open_ratio;	/* ... and the ratio of latencies then, 1 / 1024 */
	unsigned int		chooses;	/* see ioband_depth_init() */
	unsigned int		pinned;		/* see ioband_depth_pin(); 0: not pinned */
	bool			few;		/* fewer than at_once were in flight before DIP */
	bool			crowded;	/* ... and many more waited when it began */
	u64			at_dip;		/* at_once after the last dip */
	u64			faster;		/* idle latency since then, 1 / 1024 of it */
	unsigned int		turn;		/* counts windows, see ioband_depth_tries() */
	s64			gains;		/* gain of depth with a few more, 1 / 1024 */
	u64			base_inflight;	/* in flight without a few more, 1 / 1024 ... */
	u64			base_work;	/* ... and their work, see struct ioband_sample */
	s64			elastic;	/* work gained over number gained, 1 / 1024 */
	s64			dip_at_ns;
	u64			last_ratio;	/* of the last window ... */
	bool			led;		/* ... and see struct ioband_sample */
	unsigned int		windows;	/* windows that have ended */
	unsigned int		few_windows;	/* the last of these, with one I/O at a time */
	unsigned int		ignore;		/* number of next windows to ignore */
	bool			late;		/* CPUs are busy, so I/Os take long also for that */
	u64			kept[IOBAND_DEPTH_KEPT];	/* see ioband_depth_keep() */
};

static inline bool ioband_depth_is_settled(const struct ioband_depth *d)
{
	return d->phase == IOBAND_SETTLED || d->phase == IOBAND_DIP;
}

/*
 * Do I/Os take hardly longer than on the idle device, or is there one at a time?  False if that is
 * not known.  If the depth is pinned it is enough that there is room.
 */
static inline bool ioband_depth_is_idle(const struct ioband_depth *d)
{
	if (d->phase == IOBAND_OPEN)
		return d->few_windows >= IOBAND_FEW_WINDOWS;
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
 * The depth while a group leads.  In one of 8 windows a few more I/Os are dispatched, to see
 * whether the device does more by now; in one of 64 if the device is serial, as others wait for
 * long then.  There are two more, as one may still be on its way to the device.
 */
static inline unsigned int ioband_depth_leading(const struct ioband_depth *d)
{
	/* round up small depths, as 1.1 would become 1; of larger ones a tenth may be noise */
	u64 more = d->at_once < 4 << 10 || d->gains > IOBAND_DEPTH_GAINS ? 922 : 256;
	u64 ios = d->at_once;

	/* with one I/O for each of several disks, some disks would have two and others none */
	if (d->chooses > 1 && d->at_once >= IOBAND_SEVERAL)
		ios *= 2;
	more += ios * IOBAND_DEPTH_MARGIN >> 10;
	if (!ioband_depth_tries(d))
		return ioband_depth_round(ios + more);
	return ioband_depth_round(ios + ios / 16) + 2;
}

/*
 * A group that leads none may have more in flight, since the device may do more at once of its kind
 * of I/O; but not so much that others wait for long behind it when they come.  A group that is
 * alone may have less than that.
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

/*
 * Nothing is known.  @tags: I/Os that the device accepts, 1 to IOBAND_DEPTH_MAX.  @chooses: the
 * number of I/Os among which it chooses the next one, as rotational disks do: its rate grows up to
 * that number; 1 for other devices.
 */
static inline void ioband_depth_init(struct ioband_depth *d, unsigned int tags,
				     unsigned int chooses)
{
	*d = (struct ioband_depth){
		.depth = tags, .most = tags, .alone = tags, .tags = tags,
		.ceiling = IOBAND_DEPTH_MAX, .at_once = 1024, .chooses = chooses,
	};
}

/* Change the number of I/Os that a device accepts, see ioband_depth_init(). */
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

/* Let @nr I/Os be in flight, whichever group dispatches one; 0: measure the depth anew. */
static inline void ioband_depth_pin(struct ioband_depth *d, unsigned int nr)
{
	unsigned int windows = d->windows;

	ioband_depth_init(d, d->tags, d->chooses);
	d->windows = windows;
	d->pinned = nr;
	if (!nr)
		return;
	d->phase = IOBAND_SETTLED;
	ioband_depth_set(d);
}

/*
 * Keep the depth for ioband_depth_undo(), each time that half of the time has passed after which a
 * group is found to hang.
 */
static inline void ioband_depth_keep(struct ioband_depth *d)
{
	for (int i = IOBAND_DEPTH_KEPT - 1; i > 0; i--)
		d->kept[i] = d->kept[i - 1];
	d->kept[0] = ioband_depth_is_settled(d) ? d->at_once : 0;
}

/*
 * Forget what I/Os that hang have taught.  Until now they counted as in flight.  Their number grew
 * while the I/Os of other groups took no longer, so the device seemed to do more and more at once.
 * The depth becomes what it was before that, but no greater than it is.
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

/*
 * How many I/Os should be on their way beside those, @depth, that the device does: as many as
 * complete during @lag, from the completion of an I/O to the submission of the one that it made
 * room for.  @latency: from there to its completion.  At most three times @depth.
 */
static inline unsigned int ioband_ahead(u64 lag, u64 latency, unsigned int depth)
{
	return mul_u64_u64_div_u64(min(lag, 3 * latency), depth, max(latency, 1ULL));
}

#endif /* IOBAND_DEPTH_H */
