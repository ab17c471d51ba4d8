// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of reserve.c.  No unit is lost or given twice, whatever tasks take, return and reclaim at
 * the same time; and in each window of time no more than the limit allows is dispatched.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/sched.h>

#include "../ioband.h"

#define TASKS		4
#define TRIES		20000
/* Each purchase is rounded up to a ns, and each return down. */
#define ROUNDED_NS	(6LL * TASKS * TRIES)

static struct ioband_rule *reserve_rule(struct kunit *test, u64 bps, u64 iops)
{
	const u64 limit[] = { [IOBAND_BYTES] = bps, [IOBAND_IOS] = iops };
	struct ioband_rule *rule = kzalloc_obj(*rule);

	KUNIT_ASSERT_NOT_NULL(test, rule);
	rule->reserve = alloc_percpu(struct ioband_reserve);
	KUNIT_ASSERT_TRUE(test, !!rule->reserve);
	ioband_rule_set(rule, limit, NULL, ktime_get_ns());
	return rule;
}

static void reserve_rule_free(struct ioband_rule *rule)
{
	free_percpu(rule->reserve);
	kfree(rule);
}

struct reserve_task {
	struct ioband_rule *rule;
	struct task_struct *task;
	bool returns;		/* returns one payment in four */
	atomic_t *running;	/* number of tasks that have not ended */
	u64 bytes, ios;		/* units that the task has used */
	int seed;
};

static int reserve_taskfn(void *data)
{
	struct reserve_task *t = data;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, t->seed);
	for (int i = 0; i < TRIES; i++) {
		u32 bytes = 512 * (1 + prandom_u32_state(&rnd) % 32);
		u64 units = ioband_owing(t->rule, bytes);

		if (!(i % 16))
			cond_resched();
		if (!ioband_reserve_pay(t->rule, units))
			continue;
		if (t->returns && !(prandom_u32_state(&rnd) % 4)) {
			ioband_reserve_return(t->rule, units);
			continue;
		}
		t->bytes += bytes;
		t->ios++;
	}
	atomic_dec(t->running);
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/* Several tasks pay at the same time.  Sets the units that they have used in all. */
static void reserve_run(struct kunit *test, struct ioband_rule *rule, bool returns,
			u64 used[IOBAND_NR_UNITS])
{
	struct reserve_task tasks[TASKS];
	atomic_t running = ATOMIC_INIT(TASKS);

	used[IOBAND_BYTES] = 0;
	used[IOBAND_IOS] = 0;
	for (int i = 0; i < TASKS; i++) {
		tasks[i] = (struct reserve_task){
			.rule = rule, .returns = returns, .running = &running, .seed = i + 1,
		};
		tasks[i].task = kthread_run(reserve_taskfn, &tasks[i], "ioband_kunit/%d", i);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tasks[i].task);
	}
	/* dev->lock would allow only one task at a time to reclaim: this is the only one */
	while (atomic_read(&running)) {
		ioband_reserve_reclaim(rule);
		usleep_range(50, 100);
	}
	for (int i = 0; i < TASKS; i++) {
		kthread_stop(tasks[i].task);
		used[IOBAND_BYTES] += tasks[i].bytes;
		used[IOBAND_IOS] += tasks[i].ios;
	}
}

/* The charges in the end equal the units used, except for the rounding of each purchase. */
static void reserve_conserves(struct kunit *test)
{
	struct ioband_rule *rule = reserve_rule(test, SZ_1G, 1000000);
	const s64 start = ktime_get_ns() + 3600 * (s64)NSEC_PER_SEC;
	u64 used[IOBAND_NR_UNITS];
	int cpu;

	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		/* the limit always has room, whatever the clock */
		rule->bucket[unit].rate.burst = 1000000 * (s64)NSEC_PER_SEC;
		atomic64_set(&rule->bucket[unit].tat, start);
	}
	reserve_run(test, rule, true, used);
	KUNIT_EXPECT_GT(test, used[IOBAND_IOS], TASKS * TRIES / 2);
	ioband_reserve_reclaim(rule);
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];
		u64 rem = 0;
		s64 cost = ioband_cost(b->rate.per_sec, used[unit], &rem);
		s64 charged = atomic64_read(&b->tat) - start;

		KUNIT_EXPECT_GE(test, charged, cost);
		KUNIT_EXPECT_LE(test, charged, cost + ROUNDED_NS);
	}
	for_each_possible_cpu(cpu)
		KUNIT_EXPECT_EQ(test, atomic64_read(&per_cpu_ptr(rule->reserve, cpu)->left), 0);
	reserve_rule_free(rule);
}

/* A window has no more than the rate and a burst, even with what was in reserve before. */
static void reserve_window(struct kunit *test)
{
	static const u64 rates[] = { SZ_32M, SZ_128M, SZ_1G };

	for (int i = 0; i < ARRAY_SIZE(rates); i++) {
		u64 bps = rates[i] * num_possible_cpus();
		struct ioband_rule *rule = reserve_rule(test, bps, U64_MAX);
		s64 start = ktime_get_ns();
		u64 used[IOBAND_NR_UNITS];
		u64 ns;

		KUNIT_EXPECT_GT(test, rule->bucket[IOBAND_BYTES].rate.batch, 0);
		reserve_run(test, rule, false, used);
		ns = ktime_get_ns() - start + IOBAND_BURST_NS + ioband_ticks_ns();
		KUNIT_EXPECT_LE(test, used[IOBAND_BYTES],
				mul_u64_u64_div_u64(bps, ns, NSEC_PER_SEC) + 1);
		KUNIT_EXPECT_GT(test, used[IOBAND_BYTES], 0);
		reserve_rule_free(rule);
	}
}

/* A limit that is too low for a batch on each CPU has no reserves. */
static void reserve_parts(struct kunit *test)
{
	static const struct {
		u64 bps, iops;
		u64 batch[IOBAND_NR_UNITS];	/* if there is one CPU */
	} cases[] = {
		{ SZ_1M, 100, { 0, 0 } },
		{ 32768000 - 2000, 7999, { 0, 0 } },
		{ 32768000, 8000, { 16384, 4 } },
		{ U64_MAX, SZ_1M, { 0, SZ_1M / 2000 } },
		{ 1000ULL * SZ_1G, U64_MAX, { IOBAND_BATCH_MAX, 0 } },
	};

	for (int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ioband_rule *rule = reserve_rule(test, cases[i].bps, cases[i].iops);
		const u64 limit[] = { cases[i].bps, cases[i].iops };

		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
			u32 least = unit == IOBAND_BYTES ? SZ_16K : 4;
			u64 batch = div_u64(cases[i].batch[unit], num_possible_cpus());

			if (cases[i].batch[unit] == IOBAND_BATCH_MAX)
				batch = min(div_u64(cases[i].bps, 2000 * num_possible_cpus()),
					    IOBAND_BATCH_MAX);
			KUNIT_EXPECT_EQ_MSG(test, rule->bucket[unit].rate.batch,
					    batch < least ? 0 : batch, "case %d", i);
			KUNIT_EXPECT_EQ(test, ioband_limits(rule, unit), limit[unit] != U64_MAX);
		}
		reserve_rule_free(rule);
	}
}

/* A bio takes bytes and I/Os from a reserve together; if either is short, it takes neither. */
static void reserve_both(struct kunit *test)
{
	static const struct {
		u64 bytes, ios;		/* units in reserve */
		u32 wants;		/* bytes of the bio, which is one I/O */
		bool enough;
	} cases[] = {
		{ 4096, 1, 4096, true },
		{ 4096, 1, 4097, false },
		{ 4095, 2, 4096, false },
		{ 4096, 0, 4096, false },
		{ IOBAND_BATCH_MAX, 0, 512, false },
		{ 0, IOBAND_BATCH_MAX, 512, false },
		{ 0, IOBAND_BATCH_MAX, U32_MAX, false },
		{ IOBAND_BATCH_MAX, IOBAND_BATCH_MAX, U32_MAX, false },
		{ IOBAND_BATCH_MAX, IOBAND_BATCH_MAX, BIT(31), false },
		{ IOBAND_BATCH_MAX, IOBAND_BATCH_MAX, IOBAND_BATCH_MAX, true },
		{ 0, 0, U32_MAX, false },
		{ 0, 0, 1, false },
		{ 0, 1, 0, true },
	};
	struct ioband_rule *rule = reserve_rule(test, SZ_1G, 1000000);
	atomic64_t *left;
	bool paid;

	for (int i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 had = ioband_pack(cases[i].bytes, cases[i].ios);
		u64 wants = ioband_pack(cases[i].wants, 1);
		u64 rest = had;

		if (cases[i].enough)
			rest -= wants;
		scoped_guard(preempt) {
			left = &raw_cpu_ptr(rule->reserve)->left;
			atomic64_set(left, had);
			paid = ioband_reserve_take(rule, wants);
		}
		KUNIT_EXPECT_EQ_MSG(test, paid, cases[i].enough, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, atomic64_read(left), rest, "case %d", i);
	}
	reserve_rule_free(rule);
}

/* A limit in one unit only takes nothing from the reserve of the other unit. */
static void reserve_one(struct kunit *test)
{
	struct ioband_rule *bytes = reserve_rule(test, SZ_1G, U64_MAX);
	struct ioband_rule *ios = reserve_rule(test, U64_MAX, 1000000);
	struct ioband_rule *none = reserve_rule(test, U64_MAX, U64_MAX);

	KUNIT_EXPECT_EQ(test, ioband_owing(bytes, 4096), ioband_pack(4096, 0));
	KUNIT_EXPECT_EQ(test, ioband_owing(bytes, U32_MAX), ioband_pack(U32_MAX, 0));
	KUNIT_EXPECT_EQ(test, ioband_owing(ios, U32_MAX), ioband_pack(0, 1));
	KUNIT_EXPECT_EQ(test, ioband_owing(none, U32_MAX), 0);
	KUNIT_EXPECT_TRUE(test, ioband_reserve_pay(none, ioband_owing(none, U32_MAX)));
	reserve_rule_free(bytes);
	reserve_rule_free(ios);
	reserve_rule_free(none);
}

/* The bytes that all CPUs have in reserve together. */
static u64 reserve_bytes(struct ioband_rule *rule)
{
	u64 bytes = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		bytes += ioband_unpack(atomic64_read(&per_cpu_ptr(rule->reserve, cpu)->left),
				       IOBAND_BYTES);
	return bytes;
}

/* Bytes that were charged are returned if the limit in I/Os has no room. */
static void reserve_undo(struct kunit *test)
{
	struct ioband_rule *rule = reserve_rule(test, SZ_1G, 1);
	atomic64_t *tat = &rule->bucket[IOBAND_BYTES].tat;
	s64 start = ktime_get_ns() + 3600 * (s64)NSEC_PER_SEC;

	rule->bucket[IOBAND_BYTES].rate.burst = 2 * 3600 * (s64)NSEC_PER_SEC;
	atomic64_set(tat, start);
	atomic64_set(&rule->bucket[IOBAND_IOS].tat, start);
	KUNIT_EXPECT_FALSE(test, ioband_reserve_pay(rule, ioband_owing(rule, SZ_1M)));
	/* and no more than a batch stays in reserve */
	KUNIT_EXPECT_LE(test, reserve_bytes(rule), rule->bucket[IOBAND_BYTES].rate.batch);
	ioband_reserve_reclaim(rule);
	KUNIT_EXPECT_GE(test, atomic64_read(tat), start);
	KUNIT_EXPECT_LE(test, atomic64_read(tat), start + 2);
	reserve_rule_free(rule);
}

/* A group without limits, on a device that is not in use. */
static struct ioband_grp *reserve_grp(struct kunit *test)
{
	struct request_queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct ioband_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct ioband_grp *grp = kunit_kzalloc(test, sizeof(*grp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, q);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, grp);
	spin_lock_init(&q->queue_lock);
	spin_lock_init(&dev->lock);
	dev->q = q;
	/* no timer, and no work */
	dev->dead = true;
	grp->dev = dev;
	grp->bought = alloc_percpu(struct ioband_bought);
	KUNIT_ASSERT_TRUE(test, !!grp->bought);
	for (int rw = READ; rw <= WRITE; rw++) {
		grp->dir[rw].grp = grp;
		grp->dir[rw].rule.reserve = &grp->bought->reserve[rw];
		memset(grp->dir[rw].limit, 0xff, sizeof(grp->dir[rw].limit));
	}
	return grp;
}

/*
 * A bio that waited at a gate below is larger than the burst of this gate.  When it has been
 * charged here, no CPU has anything in reserve to use on top of it.
 */
static void reserve_large(struct kunit *test)
{
	const u64 limit[] = {
		[IOBAND_BYTES] = (u64)SZ_64M * num_possible_cpus(), [IOBAND_IOS] = U64_MAX
	};
	struct ioband_grp *grp = reserve_grp(test);
	struct ioband_dir *gate = &grp->dir[READ];
	s64 now = ktime_get_ns() + NSEC_PER_SEC;
	struct bio bio;
	bool paid;

	ioband_rule_set(&gate->rule, limit, NULL, ktime_get_ns());
	bio_init(&bio, NULL, NULL, 0, REQ_OP_READ);
	/* twice the burst */
	bio.bi_iter.bi_size = ioband_units_in(limit[IOBAND_BYTES],
					      2 * gate->rule.bucket[IOBAND_BYTES].rate.burst);
	bio.issue_time_ns = now - NSEC_PER_SEC;

	gate->lim = gate;
	KUNIT_EXPECT_TRUE(test, ioband_reserve_pay(&gate->rule, ioband_pack(SZ_4K, 0)));
	KUNIT_EXPECT_GT(test, reserve_bytes(&gate->rule), 0);
	scoped_guard(spinlock_irqsave, &grp->dev->lock)
		paid = ioband_pay(gate, &bio, now);
	KUNIT_EXPECT_TRUE(test, paid);
	KUNIT_EXPECT_EQ(test, reserve_bytes(&gate->rule), 0);
	free_percpu(grp->bought);
}

/*
 * When a limit changes, a group that has used up its burst has used up the new one.  Groups look up
 * their gates again if one has come or gone.
 */
static void reserve_change(struct kunit *test)
{
	static const u64 bps[] = { SZ_64M, SZ_1M, SZ_32M, U64_MAX };
	struct ioband_grp *grp = reserve_grp(test);
	struct ioband_dir *dir = &grp->dir[WRITE];
	struct ioband_bucket *b = &dir->rule.bucket[IOBAND_BYTES];

	for (int i = 0; i < ARRAY_SIZE(bps); i++) {
		const u64 limit[] = { [IOBAND_BYTES] = bps[i], [IOBAND_IOS] = U64_MAX };
		unsigned int gen = grp->dev->gen[WRITE];
		s64 before = ktime_get_ns();

		scoped_guard(spinlock_irqsave, &grp->dev->q->queue_lock)
			ioband_set_limits(grp, WRITE, limit);
		KUNIT_EXPECT_EQ(test, grp->dev->gen[WRITE] != gen, i == 0 || i == 3);
		KUNIT_EXPECT_EQ(test, !dir->rule.limited, bps[i] == U64_MAX);
		if (i)
			KUNIT_EXPECT_GE(test, atomic64_read(&b->tat), before + b->rate.burst);
		atomic64_set(&b->tat, ktime_get_ns() + 3600 * (s64)NSEC_PER_SEC);
	}
	free_percpu(grp->bought);
}

/* A rate that changes while a task pays without the lock leaves no TAT beyond the burst, I16. */
static void reserve_change_paid(struct kunit *test)
{
	static const u64 limits[][IOBAND_NR_UNITS] = {
		{ SZ_1K, U64_MAX }, { SZ_1G, U64_MAX }, { SZ_2G, 1000000 }, { U64_MAX, 10 },
	};
	struct ioband_rule *rule = reserve_rule(test, SZ_1G, U64_MAX);
	struct reserve_task task = { .rule = rule, .seed = 1 };
	atomic_t running = ATOMIC_INIT(1);

	task.running = &running;
	task.task = kthread_run(reserve_taskfn, &task, "ioband_kunit");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task.task);
	for (int i = 0; i < TRIES; i++) {
		ioband_rule_set(rule, limits[i % ARRAY_SIZE(limits)], NULL, ktime_get_ns());
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			if (ioband_limits(rule, unit))
				KUNIT_EXPECT_LE(test, atomic64_read(&rule->bucket[unit].tat),
						rule->bucket[unit].rate.burst + 1 +
						(s64)ktime_get_ns());
		cond_resched();
	}
	kthread_stop(task.task);
	reserve_rule_free(rule);
}

static struct kunit_case reserve_cases[] = {
	KUNIT_CASE(reserve_change),
	KUNIT_CASE(reserve_change_paid),
	KUNIT_CASE(reserve_both),
	KUNIT_CASE(reserve_one),
	KUNIT_CASE(reserve_undo),
	KUNIT_CASE(reserve_large),
	KUNIT_CASE(reserve_parts),
	KUNIT_CASE(reserve_conserves),
	KUNIT_CASE(reserve_window),
	{ }
};

static struct kunit_suite reserve_suite = {
	.name = "ioband_reserve",
	.test_cases = reserve_cases,
};

kunit_test_suite(reserve_suite);
