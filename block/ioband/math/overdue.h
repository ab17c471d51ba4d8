/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_OVERDUE_H
#define IOBAND_OVERDUE_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * Does it help that no other I/O is dispatched while one is overdue?
 *
 * A disk that chooses the next I/O among those that it has does an old one sooner if it gets no
 * others.  But many virtual disks say that they rotate, and do many I/Os at the same time.  There
 * an I/O that takes longer than others is done no sooner, and what others could have done meanwhile
 * is lost.
 *
 * So the times that overdue I/Os take are measured, and how many I/Os the device does meanwhile:
 * first while others wait for them, then in a trial while others do not.  The means of the squares
 * of the times are compared, since waiting shortens the longest times above all.  If I/Os take no
 * longer in the trial, and far more are done, nobody waits for some time.  Otherwise others wait
 * again, and the time until the next trial becomes longer and longer.  A trial costs little: it
 * ends as soon as the answer is no, and others wait for an I/O that takes very long.
 *
 * Nothing here reads a clock or takes a lock.
 */

/* The number of overdue I/Os that are measured in each of the two ways, and in parts of a trial. */
#define IOBAND_OVERDUE_IOS	64
#define IOBAND_OVERDUE_PART_IOS	8
/* In a trial an I/O counts as LONGEST times the usual one at most; then others wait for it. */
#define IOBAND_OVERDUE_LONGEST	3
/* Squares may be larger by 1 / MORE than usual, and their sum by CHANCE times the usual one. */
#define IOBAND_OVERDUE_MORE	4
#define IOBAND_OVERDUE_CHANCE	8
/*
 * So many times the I/Os have to be done in a trial, 1 / 1024.  Disks that choose do somewhat more
 * as well if nobody waits, since they have more to choose from.
 */
#define IOBAND_OVERDUE_GAIN	1792
/* The time until the next trial, or without waiting; twice as long each time. */
#define IOBAND_OVERDUE_NS	(8LL * NSEC_PER_SEC)
#define IOBAND_OVERDUE_MAX_NS	(128LL * NSEC_PER_SEC)

enum ioband_overdue_way {
	IOBAND_OVERDUE_WAIT,	/* others wait for overdue I/Os */
	IOBAND_OVERDUE_TRIAL,	/* they do not, to see whether it makes a difference */
	IOBAND_OVERDUE_VAIN,	/* they do not, since it made none */
};

/* What is known of overdue I/Os of a device. */
struct ioband_overdue {
	unsigned int		phase;		/* another number each time @way changes; never 0 */
	enum ioband_overdue_way	way;		/* what others do */
	u64			done;		/* all I/Os that have completed */

	/* private: */
	unsigned int		nr;		/* I/Os of this phase, and the sum of ... */
	u64			sum;		/* ... the squares of their times, (1024 ns)^2 */
	s64			late_ns;	/* the sum of their times, ... */
	u64			late_done;	/* ... and the I/Os that were done in it */
	u64			usual;		/* mean of the squares while others waited, ... */
	u64			rate;		/* ... and I/Os per time, ioband_overdue_rate() */
	s64			until_ns;	/* until then: no trial, or no waiting */
	s64			pause_ns;	/* how long there is no trial the next time */
	s64			stay_ns;	/* how long nobody waits the next time */
};

/* An I/O in flight that may be overdue. */
struct ioband_overdue_io {
	unsigned int		phase;		/* the account's, if it was overdue, else 0 */
	u64			done;		/* the account's, when it began */
};

static inline void ioband_overdue_go(struct ioband_overdue *o, enum ioband_overdue_way way)
{
	o->way = way;
	o->nr = 0;
	o->sum = 0;
	o->late_ns = 0;
	o->late_done = 0;
	if (!++o->phase)
		o->phase = 1;
}

/* Nothing is known: others wait. */
static inline void ioband_overdue_init(struct ioband_overdue *o)
{
	*o = (struct ioband_overdue){
		.phase = 1, .pause_ns = IOBAND_OVERDUE_NS, .stay_ns = IOBAND_OVERDUE_NS,
	};
}

/* I/Os per time while I/Os were overdue, in a unit for comparisons only. */
static inline u64 ioband_overdue_rate(const struct ioband_overdue *o)
{
	return div64_u64(min(o->late_done, U64_MAX >> 20) << 20, (max(o->late_ns, 0LL) >> 10) + 1);
}

static inline u64 ioband_overdue_square(s64 took_ns)
{
	u64 took = clamp(took_ns, 0LL, (s64)U32_MAX) >> 10;

	return took * took;
}

/* Have others to wait for an I/O that is overdue, and has taken @took_ns so far? */
static inline bool ioband_overdue_waits(struct ioband_overdue *o, struct ioband_overdue_io *io,
					s64 took_ns, s64 now)
{
	if (o->way == IOBAND_OVERDUE_VAIN && now >= o->until_ns)
		ioband_overdue_go(o, IOBAND_OVERDUE_WAIT);
	if (!io->phase)
		io->phase = o->phase;
	if (o->way == IOBAND_OVERDUE_TRIAL)
		return ioband_overdue_square(took_ns) >
		       IOBAND_OVERDUE_LONGEST * IOBAND_OVERDUE_LONGEST * o->usual;
	return o->way == IOBAND_OVERDUE_WAIT;
}

static inline void ioband_overdue_waited(struct ioband_overdue *o, u64 square, s64 now)
{
	o->sum += square;
	if (++o->nr < IOBAND_OVERDUE_IOS)
		return;
	if (now >= o->until_ns) {
		o->usual = max(div_u64(o->sum, o->nr), 1ULL);
		o->rate = ioband_overdue_rate(o);
		ioband_overdue_go(o, IOBAND_OVERDUE_TRIAL);
	} else if (o->nr == 2 * IOBAND_OVERDUE_IOS) {
		o->nr /= 2;
		o->sum /= 2;
		o->late_ns /= 2;
		o->late_done /= 2;
	}
}

static inline void ioband_overdue_tried(struct ioband_overdue *o, u64 square, s64 now)
{
	u64 most = IOBAND_OVERDUE_LONGEST * IOBAND_OVERDUE_LONGEST * o->usual, allowed;
	bool helps;

	o->sum += min(square, most);
	o->nr++;
	allowed = o->nr * (o->usual + o->usual / IOBAND_OVERDUE_MORE);
	helps = o->sum > allowed + IOBAND_OVERDUE_CHANCE * o->usual;
	if (o->nr % IOBAND_OVERDUE_PART_IOS == 0)
		helps |= ioband_overdue_rate(o) < mul_u64_u64_shr(o->rate, IOBAND_OVERDUE_GAIN, 10);
	if (helps || (o->nr >= IOBAND_OVERDUE_IOS && o->sum > allowed)) {
		o->until_ns = now + o->pause_ns;
		o->pause_ns = min(2 * o->pause_ns, IOBAND_OVERDUE_MAX_NS);
		o->stay_ns = IOBAND_OVERDUE_NS;
		ioband_overdue_go(o, IOBAND_OVERDUE_WAIT);
	} else if (o->nr >= IOBAND_OVERDUE_IOS) {
		o->until_ns = now + o->stay_ns;
		o->stay_ns = min(2 * o->stay_ns, IOBAND_OVERDUE_MAX_NS);
		o->pause_ns = IOBAND_OVERDUE_NS;
		ioband_overdue_go(o, IOBAND_OVERDUE_VAIN);
	}
}

static inline void ioband_overdue_begin(const struct ioband_overdue *o,
					struct ioband_overdue_io *io)
{
	io->phase = 0;
	io->done = o->done;
}

/* An I/O has completed.  It counts if it was overdue, and @way has not changed since then. */
static inline void ioband_overdue_done(struct ioband_overdue *o,
				       const struct ioband_overdue_io *io, s64 took_ns, s64 now)
{
	if (io->phase != o->phase)
		return;
	o->late_ns += took_ns;
	o->late_done += o->done - io->done;
	if (o->way == IOBAND_OVERDUE_WAIT)
		ioband_overdue_waited(o, ioband_overdue_square(took_ns), now);
	else if (o->way == IOBAND_OVERDUE_TRIAL)
		ioband_overdue_tried(o, ioband_overdue_square(took_ns), now);
}

#endif /* IOBAND_OVERDUE_H */
