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
 * An I/O that had to wait is submitted by a worker.  Where CPUs are what is short, as on a virtual
 * machine with more CPUs than its host has for them, the worker waits for a CPU while the
 * device is idle, and a gate that is open would let far more be done.  Nothing that is seen
 * while the gate is closed tells how much more.  So it is tried: the gate is open for a moment,
 * and what is done then is compared with what was done before.  If that is half as much again,
 * twice in a row, the gate stays open for a second, and for longer each time that this turns out
 * again.  If it is not, a trial comes after a longer and longer while.
 *
 * What is done is counted in device time, as I/Os differ.  While the gate is closed, times in which
 * nothing was to be done do not count.  Nothing here reads a clock or takes a lock.
 */

/* Before a trial the gate is closed for so long; after one that showed that it costs, for less. */
#define IOBAND_WORTH_CLOSED_NS	(250 * NSEC_PER_MSEC)
#define IOBAND_WORTH_AGAIN_NS	(50 * NSEC_PER_MSEC)
/* A trial takes so long, and longer if fewer I/Os than these are done, ... */
#define IOBAND_WORTH_TRIAL_NS	(25 * NSEC_PER_MSEC)
#define IOBAND_WORTH_IOS	256
/* ... but no longer than this, and shows nothing then. */
#define IOBAND_WORTH_LONG_NS	(100 * NSEC_PER_MSEC)
/* If nothing was in flight for longer than this, nothing was to be done. */
#define IOBAND_WORTH_IDLE_NS	(5 * NSEC_PER_MSEC)
/* So many trials that agree. */
#define IOBAND_WORTH_TRIALS	2
/* What follows: the gate stays open, or is not tried, for so long; twice as long each time. */
#define IOBAND_WORTH_NS		NSEC_PER_SEC
#define IOBAND_WORTH_MAX_NS	(8LL * NSEC_PER_SEC)

/**
 * struct ioband_worth - what is known of what the gate costs
 * @open:	the gate is open for a trial, or because it costs too much
 * @nr_costs:	how often it was found to cost too much
 */
struct ioband_worth {
	bool			open;
	unsigned int		nr_costs;

	/* private: */
	bool			trial;
	s64			from_ns;	/* what follows is since then; 0: nothing yet */
	u64			done;		/* device time of I/Os, ns << 8 */
	unsigned int		nr;		/* I/Os */
	s64			idle_ns;	/* nothing was to be done */
	u64			rate;		/* see ioband_worth_rate(): while it was closed */
	unsigned int		worse;		/* trials in a row that were far better */
	s64			until_ns;	/* no trial before, or it stays open until then */
	s64			stay_ns;	/* open: for so long the next time */
	s64			pause_ns;	/* the same for not trying */
};

static inline void ioband_worth_start(struct ioband_worth *w, s64 now)
{
	w->from_ns = now;
	w->idle_ns = 0;
	w->done = 0;
	w->nr = 0;
}

/**
 * ioband_worth_init - nothing is known
 * @w:		what is to be known
 */
static inline void ioband_worth_init(struct ioband_worth *w)
{
	*w = (struct ioband_worth){
		.stay_ns = IOBAND_WORTH_NS, .pause_ns = IOBAND_WORTH_NS,
	};
}

/**
 * ioband_worth_again - I/Os were done that are not counted
 * @w:		what is known
 */
static inline void ioband_worth_again(struct ioband_worth *w)
{
	w->from_ns = 0;
}

/**
 * ioband_worth_done - I/Os were done
 * @w:		what is known
 * @nr:		how many
 * @cost:	device time of them, ns << 8
 */
static inline void ioband_worth_done(struct ioband_worth *w, unsigned int nr, u64 cost)
{
	w->nr += nr;
	w->done += cost;
}

/**
 * ioband_worth_idle - nothing was in flight
 * @w:		what is known
 * @ns:		for so long
 */
static inline void ioband_worth_idle(struct ioband_worth *w, s64 ns)
{
	if (ns > IOBAND_WORTH_IDLE_NS)
		w->idle_ns += ns;
}

/* What was done in a time; only compared.  The time may be almost none. */
static inline u64 ioband_worth_rate(const struct ioband_worth *w, s64 ns)
{
	return div64_u64(min(w->done, U64_MAX >> 10) << 10, (max(ns, 0LL) >> 10) + 1);
}

/**
 * ioband_worth_closed - the gate is closed: is it time for a trial?
 * @w:		what is known
 * @late:	do I/Os take long to be submitted? If not, the gate costs nothing
 * @now:	ns
 *
 * Return: true if @w->open is set: a trial begins.
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

	/* who only sends more has nothing done by that */
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

/**
 * ioband_worth_open - the gate is open on this account: does it stay so?
 * @w:		what is known
 * @inflight:	I/Os that were counted, but have not completed
 * @now:	ns
 *
 * Return: false if @w->open is not set any more.
 */
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
