// SPDX-License-Identifier: GPL-2.0
/*
 * The clock: runs events in the order of their time, each on a CPU that runs one at a time.
 * An event takes only the time that it spends with lab_spend().
 */
#include <math.h>
#include <ucontext.h>

#include "lab.h"

#define WORKER_STACK	65536

struct event {
	s64	when;
	u64	seq;
	int	cpu;		/* -1: in the device */
	bool	task;		/* waits until work on its CPU has ended */
	lab_fn	fn;
	void	*ctx;
	struct event *next;	/* in the list of tasks that wait for work */
};

s64 lab_now = NSEC_PER_SEC;
int lab_cpu;
int lab_nr_cpus = 8;
u64 lab_moves;
struct lab_costs lab_costs = {
	.submit = 1000, .complete = 700, .lock = 150, .transfer = 80, .wakeup = 300,
	.latency = 3000, .timer = 2000, .queue = 100, .run = 1000000,
};

static struct event *heap;
static size_t nr, room;
static u64 seq;
static s64 busy_until[LAB_CPUS];
static unsigned int works[LAB_CPUS];	/* number of works that have begun and not ended */
static struct event *tasks[LAB_CPUS];	/* tasks that wait for these works */
static s64 later_ns;		/* time that the CPU needs at the end of the present event */
static u64 random_state = 88172645463325252ULL;

static bool before(const struct event *a, const struct event *b)
{
	return a->when != b->when ? a->when < b->when : a->seq < b->seq;
}

static void push(struct event e)
{
	size_t i;

	if (nr == room) {
		room = room ? 2 * room : 1024;
		heap = realloc(heap, room * sizeof(*heap));
	}
	for (i = nr++; i && before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
}

static struct event pop(void)
{
	struct event first = heap[0], last = heap[--nr];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < nr) {
		if (child + 1 < nr && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/**
 * lab_at - call a function at a time
 * @when_ns:	time of the call, ns; the call is later if the CPU is busy then
 * @cpu:	CPU of the call, -1: in the device
 * @fn:		function
 * @ctx:	argument of @fn
 */
void lab_at(s64 when_ns, int cpu, lab_fn fn, void *ctx)
{
	push((struct event){ .when = max(when_ns, lab_now), .seq = seq++, .cpu = cpu, .fn = fn, .ctx = ctx });
}

/**
 * lab_task_at - call a function at a time, in a task
 * @when_ns:	time of the call, ns; the call is later if the CPU is busy then, also with work
 * @cpu:	CPU of the task
 * @fn:		function
 * @ctx:	argument of @fn
 */
void lab_task_at(s64 when_ns, int cpu, lab_fn fn, void *ctx)
{
	struct event e = { .when = max(when_ns, lab_now), .seq = seq++, .cpu = cpu, .fn = fn, .ctx = ctx };

	e.task = true;
	push(e);
}

/* Let time pass for the present event, which keeps its CPU busy. */
void lab_spend(s64 ns)
{
	lab_now += ns;
}

/* Return when a virtual CPU runs again: the host's CPUs run the virtual ones in turns. */
static s64 there_ns(int cpu, s64 when_ns)
{
	s64 period_ns = lab_costs.run + lab_costs.gone, part_ns;

	part_ns = (when_ns + period_ns * cpu / lab_nr_cpus) % period_ns;
	return part_ns < lab_costs.run ? when_ns : when_ns + period_ns - part_ns;
}

/* Run the next event if it is due by a time.  Returns false if it is not. */
bool lab_step(s64 until_ns)
{
	struct event e;

	if (!nr || heap[0].when > until_ns) {
		lab_now = until_ns;
		return false;
	}
	e = pop();
	if (e.cpu >= 0) {
		s64 free_ns = there_ns(e.cpu, max(busy_until[e.cpu], e.when));

		if (e.task && works[e.cpu]) {
			e.next = tasks[e.cpu];
			tasks[e.cpu] = memcpy(malloc(sizeof(e)), &e, sizeof(e));
			return true;
		}
		if (free_ns > e.when) {
			e.when = free_ns;
			push(e);
			return true;
		}
	}
	lab_now = e.when;
	if (e.cpu >= 0)
		lab_cpu = e.cpu;
	e.fn(e.ctx);
	if (e.cpu >= 0)
		busy_until[e.cpu] = lab_now + later_ns;
	later_ns = 0;
	return true;
}

/* Spend the time to put a bio into the queue of a limit, or to take it out, under the lock. */
void lab_queued(void)
{
	lab_spend(lab_costs.queue);
}

/* Note that this CPU has written a variable; if another CPU wrote it last, this CPU is delayed. */
void lab_wrote(atomic64_t *v)
{
	if (v->owner != lab_cpu) {
		later_ns += lab_costs.transfer;
		lab_moves++;
	}
	v->owner = lab_cpu;
}

/*
 * Work runs on a stack of its own.  Interrupts that come between two bios of the work are served
 * first, and tasks of its CPU wait until the work ends.  A work runs on one CPU at a time, and runs
 * again if it is queued while it runs.
 */
struct worker {
	ucontext_t		context;
	struct work_struct	*work;
	struct worker		*next;
	int			cpu;
};

static struct worker *idle_workers, *worker;
static ucontext_t clock_context;

static void work_ends(int cpu)
{
	struct event *e;

	if (--works[cpu])
		return;
	while ((e = tasks[cpu])) {
		tasks[cpu] = e->next;
		e->when = max(e->when, lab_now);
		push(*e);
		free(e);
	}
}

static void work_loop(void)
{
	struct worker *self = worker;

	for (;;) {
		struct work_struct *work = self->work;

		work->queued = false;
		work->running = true;
		work->fn(work);
		work->running = false;
		if (work->queued) {
			lab_interrupts();
			continue;
		}
		work_ends(self->cpu);
		self->next = idle_workers;
		idle_workers = self;
		swapcontext(&self->context, &clock_context);
	}
}

static struct worker *new_worker(void)
{
	struct worker *new = calloc(1, sizeof(*new));

	getcontext(&new->context);
	new->context.uc_stack.ss_size = WORKER_STACK;
	new->context.uc_stack.ss_sp = malloc(WORKER_STACK);
	makecontext(&new->context, work_loop, 0);
	return new;
}

static void run_worker(void *ctx)
{
	worker = ctx;
	swapcontext(&clock_context, &worker->context);
	worker = NULL;
}

static void run_work(void *ctx)
{
	struct worker *first = idle_workers ?: new_worker();

	if (first == idle_workers)
		idle_workers = first->next;
	first->work = ctx;
	first->cpu = lab_cpu;
	works[lab_cpu]++;
	run_worker(first);
}

/* Let work pause, so that events that are due on its CPU run first. */
void lab_interrupts(void)
{
	struct worker *self = worker;

	if (!self)
		return;
	lab_at(lab_now, self->cpu, run_worker, self);
	swapcontext(&self->context, &clock_context);
}

/* Return the CPU that is idle first. */
static int idle_cpu(void)
{
	int best = lab_nr_cpus - 1;

	for (int cpu = best - 1; cpu >= 0; cpu--)
		if (busy_until[cpu] < busy_until[best])
			best = cpu;
	return best;
}

bool queue_work_on(int cpu, struct workqueue_struct *wq, struct work_struct *work)
{
	if (work->queued)
		return false;
	work->queued = true;
	if (work->running)
		return true;
	lab_spend(lab_costs.wakeup);
	lab_at(lab_now + lab_costs.latency, cpu < 0 ? idle_cpu() : cpu, run_work, work);
	return true;
}

static void fire(void *ctx)
{
	struct hrtimer *timer = ctx;

	/* if it is not due, the timer has been set again since */
	if (timer->expires_ns + lab_costs.timer > lab_now)
		return;
	timer->expires_ns = S64_MAX;
	timer->fn(timer);
}

void hrtimer_start(struct hrtimer *timer, ktime_t when, enum hrtimer_mode mode)
{
	timer->expires_ns = when;
	lab_at(when + lab_costs.timer, -1, fire, timer);
}

/*
 * Take a lock.  Events begin in the order of their time, and each is done before the next one
 * begins.  So an event that locks must do that before it spends time: else events that begin
 * later would wait for a lock that is not held yet.
 */
void lab_lock(spinlock_t *lock)
{
	lab_now = max(lab_now, lock->free_at);
	lab_moves += lock->owner != lab_cpu;
	lab_spend(lab_costs.lock + (lock->owner != lab_cpu ? lab_costs.transfer : 0));
	lock->owner = lab_cpu;
}

void lab_unlock(spinlock_t *lock)
{
	lock->free_at = lab_now;
}

void lab_seed(u64 seed)
{
	random_state ^= seed * 0x9e3779b97f4a7c15ULL;
}

/* Return a random number from 0 to less than 1. */
double lab_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (double)(random_state >> 11) / 9007199254740992.0;
}

double lab_exponential(double mean)
{
	return -mean * log(1 - lab_random());
}
