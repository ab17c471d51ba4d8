/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_WORTH_H
#define IOBAND_WORTH_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * Does the share gate cost more than it is worth?
 *
 * An I/O that had to wait is submitted by a worker.  Where CPUs are short, as on a virtual machine
 * with more CPUs than its host has for them, the worker waits for a CPU while the device is idle,
 * and far more would be done if the gate were open.  How much more cannot be seen while it is
 * closed.  So in a trial the gate is opened for a moment, and the work that is done then is
 * compared with that before.  If half as much again is done, in two trials in a row, the gate stays
 * open for a second, and for longer each time that later trials show the same.  Otherwise the time
 * until the next trial becomes longer and longer.
 *
 * Work is counted in device time, since I/Os differ.  While the gate is closed, times without I/O
 * do not count.  Nothing here reads a clock or takes a lock.
 */

/* The time for which the gate is closed before a trial; and after a trial that gained. */
#define IOBAND_WORTH_CLOSED_NS	(250 * NSEC_PER_MSEC)
#define IOBAND_WORTH_AGAIN_NS	(50 * NSEC_PER_MSEC)
/* A trial takes this time, and longer if fewer I/Os than this are done, ... */
#define IOBAND_WORTH_TRIAL_NS	(25 * NSEC_PER_MSEC)
#define IOBAND_WORTH_IOS	256
/* ... but no longer than this time, and shows nothing then. */
#define IOBAND_WORTH_LONG_NS	(100 * NSEC_PER_MSEC)
/* If nothing was in flight for longer than this, there was nothing to do. */
#define IOBAND_WORTH_IDLE_NS	(5 * NSEC_PER_MSEC)
/* The number of trials in a row that have to agree. */
#define IOBAND_WORTH_TRIALS	2
/* After that the gate stays open, or there is no trial, for this time; twice as long each time. */
#define IOBAND_WORTH_NS		NSEC_PER_SEC
#define IOBAND_WORTH_MAX_NS	(8LL * NSEC_PER_SEC)

/* What is known of the cost of the gate. */
struct ioband_worth {
	bool			open;		/* for a trial, or since the gate costs too much */
	unsigned int		nr_costs;	/* how often it was found to cost too much */

	/* private: */
	bool			trial;
	s64			from_ns;	/* the next three count since then; 0: not yet */
	u64			done;		/* device time of I/Os, ns << 8 */
	unsigned int		nr;		/* I/Os */
	s64			idle_ns;	/* time with nothing to do */
	u64			rate;		/* while closed, see ioband_worth_rate() */
	unsigned int		worse;		/* trials in a row in which more was done */
	s64			until_ns;	/* until then: no trial, or the gate stays open */
	s64			stay_ns;	/* how long the gate stays open the next time */
	s64			pause_ns;	/* how long there is no trial the next time */
};

static inline void ioband_worth_start(struct ioband_worth *w, s64 now)
{
	w->from_ns = now;
	w->idle_ns = 0;
	w->done = 0;
	w->nr = 0;
}

static inline void ioband_worth_init(struct ioband_worth *w)
{
	*w = (struct ioband_worth){
		.stay_ns = IOBAND_WORTH_NS, .pause_ns = IOBAND_WORTH_NS,
	};
}

/* Begin to count anew, as I/Os were done that were not counted. */
static inline void ioband_worth_again(struct ioband_worth *w)
{
	w->from_ns = 0;
}

/* Account for I/Os that were done.  @cost: device time of all of them, ns << 8. */
static inline void ioband_worth_done(struct ioband_worth *w, unsigned int nr, u64 cost)
{
	w->nr += nr;
	w->done += cost;
}

/* Account for a time in which nothing was in flight. */
static inline void ioband_worth_idle(struct ioband_worth *w, s64 ns)
{
	if (ns > IOBAND_WORTH_IDLE_NS)
		w->idle_ns += ns;
}

/* The work done per time, in a unit for comparisons only.  The time may be almost 0. */
static inline u64 ioband_worth_rate(const struct ioband_worth *w, s64 ns)
{
	return div64_u64(min(w->done, U64_MAX >> 10) << 10, (max(ns, 0LL) >> 10) + 1);
}

/*
 * While the gate is closed, begin a trial if it is time for one, and set @w->open.  Returns true if
 * one has begun.  @late: are I/Os submitted late?  If not, the gate costs nothing.
 */
static inline bool ioband_worth_closed(struct ioband_worth *w, bool late, s64 now)
{
	s64 elapsed = now - w->from_ns;

	if (!w->from_ns || now < w->until_ns) {
		ioband_worth_start(w, now);
		return false;
	}
	if (elapsed < IOBAND_WORTH_AGAIN_NS ||
	    (elapsed < IOBAND_WORTH_CLOSED_NS && !(w->worse && w->nr >= IOBAND_WORTH_IOS)))
		return false;
	w->open = late && w->nr >= IOBAND_WORTH_IOS;
	w->trial = w->open;
	if (w->open)
		w->rate = ioband_worth_rate(w, elapsed - w->idle_ns);
	else
		w->worse = 0;
	ioband_worth_start(w, now);
	return w->open;
}

static inline void ioband_worth_judge(struct ioband_worth *w, unsigned int inflight, s64 now)
{
	unsigned int nr = w->nr - min(inflight, w->nr);
	bool better;

	/* I/Os that were counted and have not completed are no work done */
	w->done = mul_u64_u64_div_u64(w->done, nr, max(w->nr, 1U));
	better = w->nr >= IOBAND_WORTH_IOS &&
		 ioband_worth_rate(w, now - w->from_ns) > w->rate + w->rate / 2;
	w->trial = false;
	if (!better) {
		w->worse = 0;
		w->stay_ns = IOBAND_WORTH_NS;
		w->until_ns = now + w->pause_ns;
		w->pause_ns = min(2 * w->pause_ns, IOBAND_WORTH_MAX_NS);
		w->open = false;
		return;
	}
	w->pause_ns = IOBAND_WORTH_NS;
	if (++w->worse < IOBAND_WORTH_TRIALS) {
		w->open = false;
		return;
	}
	w->nr_costs++;
	w->until_ns = now + w->stay_ns;
	w->stay_ns = min(2 * w->stay_ns, IOBAND_WORTH_MAX_NS);
}

/* Does a gate that this has opened stay open?  @inflight: counted I/Os, not yet completed. */
static inline bool ioband_worth_open(struct ioband_worth *w, unsigned int inflight, s64 now)
{
	s64 elapsed = now - w->from_ns;

	if (!w->trial)
		w->open = now < w->until_ns;
	else if ((elapsed >= IOBAND_WORTH_TRIAL_NS && w->nr >= IOBAND_WORTH_IOS) ||
		 elapsed >= IOBAND_WORTH_LONG_NS)
		ioband_worth_judge(w, inflight, now);
	return w->open;
}

#endif /* IOBAND_WORTH_H */
