// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of charges without the lock, and of limits that change meanwhile.  No charge is lost or
 * made twice, whatever tasks charge and take back at the same time; and in each window of time no
 * more than the limit allows is dispatched.
 */
#include <kunit/test.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/prandom.h>
#include <linux/sched.h>

#include "../ioband.h"

#define TASKS		4
#define TRIES		20000
/* A time that the clock does not reach during a test. */
#define FAR_NS		(3600 * (s64)NSEC_PER_SEC)

/* A gate of no group. */
static struct ioband_dir *admit_gate(struct kunit *test, u64 bps, u64 iops)
{
	const u64 limit[] = { [IOBAND_BYTES] = bps, [IOBAND_IOS] = iops };
	struct ioband_dir *gate = kunit_kzalloc(test, sizeof(*gate), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, gate);
	ioband_rule_set(&gate->rule, limit, NULL, ktime_get_ns());
	return gate;
}

/* A gate always has room in a unit, whatever the clock.  Returns its TAT. */
static s64 admit_widen(struct ioband_dir *gate, enum ioband_unit unit)
{
	s64 start = ktime_get_ns() + FAR_NS;

	gate->rule.bucket[unit].rate.burst = 1000 * FAR_NS;
	atomic64_set(&gate->rule.bucket[unit].tat, start);
	return start;
}

static s64 admit_tat(struct ioband_dir *gate, enum ioband_unit unit)
{
	return atomic64_read(&gate->rule.bucket[unit].tat);
}

struct admit_task {
	struct ioband_dir *gate;
	struct task_struct *task;
	atomic_t *running;	/* number of tasks that have not ended */
	u64 bytes, ios;		/* units that the task has used */
	int seed;
};

static int admit_taskfn(void *data)
{
	struct admit_task *t = data;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, t->seed);
	for (int i = 0; i < TRIES; i++) {
		u32 bytes = 512 * (1 + prandom_u32_state(&rnd) % 32);

		if (!(i % 16))
			cond_resched();
		if (!ioband_admit(t->gate, bytes))
			continue;
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

/* Several tasks charge at the same time.  Sets the units that they have used in all. */
static void admit_run(struct kunit *test, struct ioband_dir *gate, u64 used[IOBAND_NR_UNITS])
{
	struct admit_task tasks[TASKS];
	atomic_t running = ATOMIC_INIT(TASKS);

	used[IOBAND_BYTES] = 0;
	used[IOBAND_IOS] = 0;
	for (int i = 0; i < TASKS; i++) {
		tasks[i] = (struct admit_task){ .gate = gate, .running = &running, .seed = i + 1 };
		tasks[i].task = kthread_run(admit_taskfn, &tasks[i], "ioband_kunit/%d", i);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tasks[i].task);
	}
	while (atomic_read(&running))
		schedule_timeout_uninterruptible(1);
	for (int i = 0; i < TASKS; i++) {
		kthread_stop(tasks[i].task);
		used[IOBAND_BYTES] += tasks[i].bytes;
		used[IOBAND_IOS] += tasks[i].ios;
	}
}

/*
 * The charges in the end are those for the units used, each of them rounded up.  The gate above has
 * no room for many of them: then what was charged at the gate below is taken back.
 */
static void admit_conserves(struct kunit *test)
{
	struct ioband_dir *gate = admit_gate(test, SZ_1G + 1, 3000000);
	u64 used[IOBAND_NR_UNITS];
	s64 start[IOBAND_NR_UNITS];

	gate->up = admit_gate(test, SZ_8M, U64_MAX);
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		start[unit] = admit_widen(gate, unit);
	admit_run(test, gate, used);
	KUNIT_EXPECT_GT(test, used[IOBAND_IOS], 0);
	KUNIT_EXPECT_LT(test, used[IOBAND_IOS], TASKS * TRIES);
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		u64 rem = 0;
		s64 cost = ioband_cost(gate->rule.bucket[unit].rate.per_sec, used[unit], &rem);
		s64 charged = admit_tat(gate, unit) - start[unit];

		KUNIT_EXPECT_GE(test, charged, cost);
		KUNIT_EXPECT_LE(test, charged, cost + (s64)used[IOBAND_IOS]);
	}
}

/* A window has no more than the rate and a burst. */
static void admit_window(struct kunit *test)
{
	static const u64 rates[] = { SZ_1M, SZ_128M, SZ_1G };

	for (int i = 0; i < ARRAY_SIZE(rates); i++) {
		struct ioband_dir *gate = admit_gate(test, rates[i], U64_MAX);
		s64 burst = gate->rule.bucket[IOBAND_BYTES].rate.burst;
		s64 start = ktime_get_ns();
		u64 used[IOBAND_NR_UNITS];

		admit_run(test, gate, used);
		KUNIT_EXPECT_LE(test, used[IOBAND_BYTES],
				mul_u64_u64_div_u64(rates[i], ktime_get_ns() - start + burst,
						    NSEC_PER_SEC) + 1);
		KUNIT_EXPECT_GT(test, used[IOBAND_BYTES], 0);
	}
}

/* A limit in one unit only charges nothing in the other, and no limit charges nothing. */
static void admit_one(struct kunit *test)
{
	struct ioband_dir *bytes = admit_gate(test, SZ_1G, U64_MAX);
	struct ioband_dir *ios = admit_gate(test, U64_MAX, 1000000);
	struct ioband_dir *none = admit_gate(test, U64_MAX, U64_MAX);

	for (int i = 0; i < 8; i++) {
		KUNIT_EXPECT_TRUE(test, ioband_admit(bytes, SZ_4K));
		KUNIT_EXPECT_TRUE(test, ioband_admit(ios, U32_MAX));
		KUNIT_EXPECT_TRUE(test, ioband_admit(none, U32_MAX));
	}
	KUNIT_EXPECT_GT(test, admit_tat(bytes, IOBAND_BYTES), 0);
	KUNIT_EXPECT_EQ(test, admit_tat(bytes, IOBAND_IOS), 0);
	KUNIT_EXPECT_EQ(test, admit_tat(ios, IOBAND_BYTES), 0);
	KUNIT_EXPECT_GT(test, admit_tat(ios, IOBAND_IOS), 0);
}

/* One I/O that costs a burst is admitted, whatever the rate, and the next one is not. */
static void admit_burst(struct kunit *test)
{
	static const u64 iops[] = { 1, 3, 7, 199 };

	for (int i = 0; i < ARRAY_SIZE(iops); i++) {
		struct ioband_dir *gate = admit_gate(test, U64_MAX, iops[i]);

		KUNIT_EXPECT_TRUE(test, ioband_admit(gate, SZ_4K));
		KUNIT_EXPECT_FALSE(test, ioband_admit(gate, SZ_4K));
	}
}

/* Nothing stays charged of a bio that one limit has no room for, or that waits behind others. */
static void admit_undo(struct kunit *test)
{
	struct ioband_dir *gate = admit_gate(test, SZ_1G, 1);
	s64 start = admit_widen(gate, IOBAND_BYTES);
	struct rb_node node = { };

	/* I/Os have no room */
	atomic64_set(&gate->rule.bucket[IOBAND_IOS].tat, ktime_get_ns() + FAR_NS);
	KUNIT_EXPECT_FALSE(test, ioband_admit(gate, SZ_1M));
	KUNIT_EXPECT_EQ(test, admit_tat(gate, IOBAND_BYTES), start);
	/* a bio waits at the gate above */
	admit_widen(gate, IOBAND_IOS);
	gate->up = admit_gate(test, SZ_1G, U64_MAX);
	gate->up->gate.ready.rb_root.rb_node = &node;
	KUNIT_EXPECT_FALSE(test, ioband_admit(gate, SZ_1M));
	KUNIT_EXPECT_EQ(test, admit_tat(gate, IOBAND_BYTES), start);
	gate->up->gate.ready.rb_root.rb_node = NULL;
	KUNIT_EXPECT_TRUE(test, ioband_admit(gate, SZ_1M));
	KUNIT_EXPECT_GT(test, admit_tat(gate, IOBAND_BYTES), start);
}

/* A bio that has more gates than the lockless path knows is charged at none of them. */
static void admit_deep(struct kunit *test)
{
	struct ioband_dir *gate = NULL, *up;
	s64 start = 0;

	for (int level = 0; level < 32; level++) {
		up = gate;
		gate = admit_gate(test, SZ_1G, 1000000);
		start = admit_widen(gate, IOBAND_BYTES);
		gate->up = up;
	}
	KUNIT_EXPECT_FALSE(test, ioband_admit(gate, SZ_4K));
	KUNIT_EXPECT_EQ(test, admit_tat(gate, IOBAND_BYTES), start);
}

/* A group without limits, on a device that is not in use. */
static struct ioband_grp *admit_grp(struct kunit *test)
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
	for (int rw = READ; rw <= WRITE; rw++) {
		grp->dir[rw].grp = grp;
		memset(grp->dir[rw].limit, 0xff, sizeof(grp->dir[rw].limit));
	}
	return grp;
}

/* A bio larger than the burst is never charged without the lock, and once it has earned that. */
static void admit_large(struct kunit *test)
{
	const u64 limit[] = { [IOBAND_BYTES] = SZ_64M, [IOBAND_IOS] = U64_MAX };
	struct ioband_grp *grp = admit_grp(test);
	struct ioband_dir *gate = &grp->dir[READ];
	s64 now = ktime_get_ns() + NSEC_PER_SEC;
	struct bio bio;

	ioband_rule_set(&gate->rule, limit, NULL, ktime_get_ns());
	bio_init(&bio, NULL, NULL, 0, REQ_OP_READ);
	/* twice the burst */
	bio.bi_iter.bi_size = ioband_units_in(limit[IOBAND_BYTES],
					      2 * gate->rule.bucket[IOBAND_BYTES].rate.burst);
	bio.issue_time_ns = now - NSEC_PER_SEC;
	gate->lim = gate;
	KUNIT_EXPECT_FALSE(test, ioband_admit(gate, bio.bi_iter.bi_size));
	scoped_guard(spinlock_irqsave, &grp->dev->lock) {
		KUNIT_EXPECT_TRUE(test, ioband_pay(gate, &bio, now));
		KUNIT_EXPECT_FALSE(test, ioband_pay(gate, &bio, now));
	}
}

/*
 * A task pays for two bursts, of which one has been earned for that.  If it uses one and gives back
 * the other, nothing is in hand; if it uses none, a burst is.
 */
static void admit_return(struct kunit *test)
{
	const u64 limit[] = { [IOBAND_BYTES] = SZ_1M, [IOBAND_IOS] = U64_MAX };
	struct ioband_grp *grp = admit_grp(test);
	struct ioband_dir *dir = &grp->dir[READ];
	struct ioband_bucket *b = &dir->rule.bucket[IOBAND_BYTES];

	ioband_rule_set(&dir->rule, limit, NULL, ktime_get_ns());
	dir->lim = dir;
	for (u64 used = 0; used <= SZ_64K; used += SZ_32K) {
		struct ioband_ticket credit = {
			.bio.issue_time_ns = ktime_get_ns(),
			.units[IOBAND_BYTES] = used,
			.paid[IOBAND_BYTES] = SZ_128K - used,
		};
		s64 now = ioband_arrival(&credit.bio);

		atomic64_set(&b->tat, now + b->rate.burst);
		scoped_guard(spinlock_irqsave, &grp->dev->lock)
			ioband_unpay(dir, &credit, now);
		KUNIT_EXPECT_EQ(test, atomic64_read(&b->tat) - now, b->rate.burst * used / SZ_64K);
		/* the payment is forgotten, and another one has been made since */
		credit.paid[IOBAND_BYTES] = SZ_128K - used;
		atomic64_set(&b->tat, now + 2 * b->rate.burst);
		scoped_guard(spinlock_irqsave, &grp->dev->lock)
			ioband_unpay(dir, &credit, now + b->rate.burst);
		KUNIT_EXPECT_EQ(test, atomic64_read(&b->tat), now + 2 * b->rate.burst);
	}
}

/*
 * When a limit changes, a group that has used up its burst has used up the new one.  Groups look up
 * their gates again if one has come or gone.
 */
static void admit_change(struct kunit *test)
{
	static const u64 bps[] = { SZ_64M, SZ_1M, SZ_32M, U64_MAX };
	struct ioband_grp *grp = admit_grp(test);
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
		atomic64_set(&b->tat, ktime_get_ns() + FAR_NS);
	}
}

/* A rate that changes while a task is charged leaves no TAT beyond the burst, I16. */
static void admit_change_paid(struct kunit *test)
{
	static const u64 limits[][IOBAND_NR_UNITS] = {
		{ SZ_1K, U64_MAX }, { SZ_1G, U64_MAX }, { SZ_2G, 1000000 }, { U64_MAX, 10 },
	};
	struct ioband_dir *gate = admit_gate(test, SZ_1G, U64_MAX);
	struct ioband_rule *rule = &gate->rule;
	struct admit_task task = { .gate = gate, .seed = 1 };
	atomic_t running = ATOMIC_INIT(1);

	task.running = &running;
	task.task = kthread_run(admit_taskfn, &task, "ioband_kunit");
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
}

static struct kunit_case admit_cases[] = {
	KUNIT_CASE(admit_change),
	KUNIT_CASE(admit_change_paid),
	KUNIT_CASE(admit_one),
	KUNIT_CASE(admit_burst),
	KUNIT_CASE(admit_undo),
	KUNIT_CASE(admit_deep),
	KUNIT_CASE(admit_large),
	KUNIT_CASE(admit_return),
	KUNIT_CASE(admit_conserves),
	KUNIT_CASE(admit_window),
	{ }
};

static struct kunit_suite admit_suite = {
	.name = "ioband_admit",
	.test_cases = admit_cases,
};

kunit_test_suite(admit_suite);
