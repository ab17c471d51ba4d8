/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LAB_LEAD_H
#define LAB_LEAD_H

/*
 * A candidate for the second share engine, in floating point: what is settled here is to be
 * written for the kernel, in whole numbers, with locks.  The lab runs it beside the present one.
 *
 *	lead.c		who goes next: tags in a tree of groups, and how far one may lead
 *	lead_depth.c	how many I/Os a device does at once, by latencies
 *	lead_cost.c	what an I/O takes of the device, by the time that completions take
 *
 * A group leads if it has had more of the device, for its weight, than another one that has all
 * it wants in flight.  As many I/Os may be in flight as the device does at once; beyond that a
 * group goes only while it does not lead.  So it costs shares nothing if that number is too low,
 * and costs the rate nothing as long as those who lag behind have enough to do.
 */
#include "lab.h"

/* lead_depth.c */
struct lead_depth {
	double	depth;		/* I/Os in flight; more only for those who do not lead */
	double	alone;		/* of a group that nobody else is here beside */
	double	ceiling;	/* for a window that measures: for all */
	double	at_once;	/* I/Os that the device does at once */
	bool	settled;	/* that is known */
};

extern struct lead_depth lead_depth;
extern double lead_latency_ns, lead_gap_ns;

void lead_depth_time(unsigned int inflight);
void lead_depth_held(void);
void lead_depth_lagged(void);
void lead_depth_done(const struct bio *bio, unsigned int inflight);

/* lead_cost.c */
double lead_cost_ns(const struct bio *bio);
void lead_cost_done(const struct bio *bio, s64 idle_ns, bool waiting);

#endif /* LAB_LEAD_H */
