/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LAB_KERNEL_WORK_H
#define LAB_KERNEL_WORK_H

/* Timers and work for kernel.h; clock.c has the functions. */

typedef s64 ktime_t;

#define ns_to_ktime(ns)		(ns)

enum hrtimer_restart { HRTIMER_NORESTART };
enum hrtimer_mode { HRTIMER_MODE_ABS };

struct hrtimer {
	enum hrtimer_restart	(*fn)(struct hrtimer *timer);
	s64			expires_ns;	/* S64_MAX: the timer is not set */
};

#define CLOCK_MONOTONIC		0

void hrtimer_start(struct hrtimer *timer, ktime_t when, enum hrtimer_mode mode);

static inline void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *timer),
				 int clock, enum hrtimer_mode mode)
{
	timer->fn = fn;
	timer->expires_ns = S64_MAX;
}

/* no task waits for a ticket */
typedef struct { int unused; } wait_queue_head_t;
typedef struct { int unused; } refcount_t;

struct work_struct {
	void	(*fn)(struct work_struct *work);
	bool	queued;
	bool	running;
};

/* all workqueues are the same: work runs on the CPU that it was queued for, or on an idle one */
struct workqueue_struct { int unused; };

#define WQ_MEM_RECLAIM		0
#define WQ_HIGHPRI		0
#define WQ_UNBOUND		0
#define WORK_CPU_UNBOUND	(-1)
#define INIT_WORK(work, f)	(*(work) = (struct work_struct){ .fn = (f) })
#define alloc_workqueue(...)	((struct workqueue_struct *)calloc(1, sizeof(struct workqueue_struct)))

bool queue_work_on(int cpu, struct workqueue_struct *wq, struct work_struct *work);

#define queue_work(wq, work)	queue_work_on(WORK_CPU_UNBOUND, wq, work)
#define cpu_online(cpu)		true
#define nr_cpu_ids		((unsigned int)lab_nr_cpus)
#define cond_resched()		((void)0)

/* no device of the lab is removed */
#define cancel_work_sync(work)	abort()
#define hrtimer_cancel(timer)	abort()
#define destroy_workqueue(wq)	abort()
#define flush_workqueue(wq)	abort()
#define GD_DEAD			0
#define test_bit(nr, p)		(*(p) >> (nr) & 1)
#define WARN_ON_ONCE(x)		((void)(x))
#define kref_init(ref)		((ref)->nr = 1)
#define kref_get(ref)		((void)(ref)->nr++)
#define kref_put(ref, fn)	((void)(fn))

/* statistics of v2, which the lab does not read */
struct u64_stats_sync { int unused; };
#define u64_stats_update_begin(s)	((void)(s))
#define u64_stats_update_end(s)		((void)(s))
#define u64_stats_add(p, n)		(*(p) += (n))
#define u64_stats_inc(p)		(*(p) += 1)

#endif /* LAB_KERNEL_WORK_H */
