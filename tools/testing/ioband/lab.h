/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LAB_H
#define LAB_H

/*
 * The device lab: the engines of block/ioband on a virtual clock, with model devices at
 * their real speed.  README.rst says how to use it.
 *
 *	clock.c		events, in the order of their time, and CPUs
 *	device.c	model devices
 *	load.c		tasks of groups that do I/O
 *	engine.c	functions of ioband and of the kernel that the engines call
 *	sim.c		reads a scenario, runs it, prints what was measured
 */
#include "kernel.h"

/* clock.c */
typedef void (*lab_fn)(void *ctx);

void lab_at(s64 when_ns, int cpu, lab_fn fn, void *ctx);
void lab_task_at(s64 when_ns, int cpu, lab_fn fn, void *ctx);
void lab_spend(s64 ns);
void lab_interrupts(void);
bool lab_step(s64 until_ns);
double lab_random(void);
double lab_exponential(double mean);
void lab_seed(u64 seed);

/* Costs of computing, ns; see the scenario's line "cpus". */
struct lab_costs {
	s64	submit;		/* submit_bio() and the driver */
	s64	complete;	/* from the interrupt to the end of the bio */
	s64	lock;		/* a section under a lock */
	s64	transfer;	/* added to lock if another CPU had the lock last */
	s64	wakeup;		/* to queue work, for the CPU that queues it */
	s64	latency;	/* from then until the work begins */
	s64	timer;		/* how late a timer fires */
	s64	queue;		/* to put a bio into the queue of a limit, or to take it out */
	s64	run;		/* how long a virtual CPU runs ... */
	s64	gone;		/* ... and how long the host then runs others */
};

extern struct lab_costs lab_costs;
/* How often a CPU took a lock or wrote a variable that another CPU had last. */
extern u64 lab_moves;

/* device.c */
bool lab_device_set(const char *key, double value);
bool lab_device_kind(const char *kind);
void lab_device_submit(struct bio *bio);

/* load.c */
struct lab_group {
	const char	*name;
	void		*engine;	/* the group in engine.c */
	u64		ios;
	u64		bytes;
	u64		device_ns;	/* time for which its I/Os occupied the device */
	u64		*latency_ns;
	u64		nr;
	u64		room;
};

struct lab_load {
	struct lab_group *grp;
	blk_opf_t	opf;
	u32		bytes;
	unsigned int	depth;		/* tasks, or I/Os in a burst */
	s64		think_ns;	/* of a task between two I/Os */
	s64		period_ns;	/* of bursts; 0: tasks */
	bool		random;		/* think times and periods are exponential */
	bool		must_pass;	/* swap, metadata */
	bool		hangs;		/* its I/Os hang while the device's "hang" is set */
	bool		silent;		/* not measured */
	s64		start_ns;
	s64		stop_ns;
	int		cpu;		/* of the first task, -1: a CPU each */
};

void lab_load_start(struct lab_load *load);
void lab_load_done(struct bio *bio);
void lab_load_delay(struct bio *bio, s64 ns);
extern bool lab_measuring;

/* engine.c */
extern bool lab_gated;

void lab_engine_init(void);
void *lab_engine_group(const char *name, int weight, void *parent);
bool lab_engine_limit(void *group, const char *key, double value);
void lab_engine_weight(void *group, int weight);
bool lab_engine_submit(struct bio *bio, void *group);
void lab_engine_done(struct bio *bio);
void lab_engine_tags(unsigned int nr);
void lab_engine_pin(unsigned int nr);
void lab_engine_turns(void);
void lab_engine_print(void);

#endif /* LAB_H */
