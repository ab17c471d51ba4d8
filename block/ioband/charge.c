// SPDX-License-Identifier: GPL-2.0
/*
 * Where a bio meets its caps: what it costs, and whether it may go on.
 *
 * The fast path takes what the bio costs at each gate from this CPU's reserve of
 * that gate, refilled by cmpxchg on the gate's TAT: no lock, and mostly no line
 * that another CPU writes.  It gives up, and the slow path decides under
 * dev->lock, when a gate has not enough or has others waiting.
 */
#include <linux/ktime.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <trace/events/ioband.h>

#include "ioband.h"

static bool ioband_take(struct ioband_bucket *b, s64 cost, s64 arrival, s64 now)
{
	s64 tat = atomic64_read(&b->tat);

	do {
		if (ioband_when(tat, arrival, cost, b->rate.burst) > now)
			return false;
	} while (!atomic64_try_cmpxchg(&b->tat, &tat,
				       ioband_charge(tat, now, cost,
						     b->rate.burst)));
	return true;
}

static void ioband_take_anyway(struct ioband_bucket *b, s64 cost, s64 now)
{
	s64 tat = atomic64_read(&b->tat);

	while (!atomic64_try_cmpxchg(&b->tat, &tat,
				     ioband_charge(tat, now, cost,
						   b->rate.burst)))
		;
}

/* This CPU is short of @units: buy them, and a batch if there is enough. */
static noinline bool ioband_refill(struct ioband_bucket *b,
				   struct ioband_reserve *res,
				   enum ioband_unit unit, u32 units)
{
	u64 short_of = units - res->left[unit];
	u64 batch = b->rate.batch;
	s64 now = ktime_get_ns();

	for (;;) {
		u64 rem = res->rem[unit];
		s64 cost = ioband_cost(b->rate.per_sec, short_of + batch, &rem);

		if (ioband_take(b, cost, now, now)) {
			res->left[unit] = batch;
			res->rem[unit] = rem;
			return true;
		}
		if (!batch)
			return false;
		batch = 0;
	}
}

static bool ioband_reserve_take(struct ioband_rule *rule,
				struct ioband_reserve *res,
				enum ioband_unit unit, u32 units)
{
	struct ioband_bucket *b = &rule->bucket[unit];
	int mode = READ_ONCE(b->mode);

	if (mode != IOBAND_OPEN)
		return mode == IOBAND_NONE;
	if (likely(res->left[unit] >= units)) {
		res->left[unit] -= units;
		return true;
	}
	return ioband_refill(b, res, unit, units);
}

static void ioband_reserve_return(struct ioband_rule *rule,
				  struct ioband_reserve *res,
				  enum ioband_unit unit, u32 units)
{
	struct ioband_bucket *b = &rule->bucket[unit];
	u64 rem = 0;

	if (!b->rate.per_sec)
		return;
	res->left[unit] += units;
	if (res->left[unit] <= b->rate.batch)
		return;
	atomic64_sub(ioband_cost(b->rate.per_sec,
				 res->left[unit] - b->rate.batch, &rem), &b->tat);
	res->left[unit] = b->rate.batch;
}

static bool ioband_rule_admit(struct ioband_rule *rule, u32 bytes)
{
	struct ioband_reserve *res = this_cpu_ptr(rule->reserve);

	if (!ioband_reserve_take(rule, res, IOBAND_BYTES, bytes))
		return false;
	if (likely(ioband_reserve_take(rule, res, IOBAND_IOS, 1)))
		return true;
	ioband_reserve_return(rule, res, IOBAND_BYTES, bytes);
	return false;
}

/* Gates on the fast path; who has more takes the slow one. */
#define IOBAND_FAST_DEPTH	8

/*
 * Take from the reserves at all gates or at none.  The rules seen are kept for
 * the way back: a gate may come or go, or change its rule, meanwhile.
 */
static bool ioband_admit(struct ioband_grp *gate, int rw, u32 bytes)
{
	struct ioband_rule *rules[IOBAND_FAST_DEPTH];
	int nr = 0;

	guard(preempt)();
	for (; gate; gate = READ_ONCE(gate->dir[rw].up)) {
		struct ioband_dir *dir = &gate->dir[rw];
		struct ioband_rule *rule = rcu_dereference_sched(dir->rule);

		/* a rule that is being taken away binds nobody any more */
		if (unlikely(!rule))
			continue;
		/* where others wait, line up with them */
		if (unlikely(READ_ONCE(dir->gate.ready.rb_root.rb_node)) ||
		    nr == IOBAND_FAST_DEPTH ||
		    unlikely(!ioband_rule_admit(rule, bytes)))
			goto undo;
		rules[nr++] = rule;
	}
	return true;
undo:
	while (nr--) {
		struct ioband_reserve *res = this_cpu_ptr(rules[nr]->reserve);

		ioband_reserve_return(rules[nr], res, IOBAND_BYTES, bytes);
		ioband_reserve_return(rules[nr], res, IOBAND_IOS, 1);
	}
	return false;
}

/* v1 counts here what v2 counts in blk_cgroup_bio_start() */
static void ioband_account(struct ioband_grp *grp, struct bio *bio)
{
	int sync = op_is_sync(bio->bi_opf) ? BLKG_RWSTAT_SYNC : BLKG_RWSTAT_ASYNC;
	int op = op_is_discard(bio->bi_opf) ? BLKG_RWSTAT_DISCARD :
		 op_is_write(bio->bi_opf) ? BLKG_RWSTAT_WRITE : BLKG_RWSTAT_READ;
	struct ioband_stat *stat;

	guard(preempt)();
	stat = this_cpu_ptr(grp->stat);
	u64_stats_update_begin(&stat->sync);
	if (!bio_flagged(bio, BIO_CGROUP_ACCT)) {
		bio_set_flag(bio, BIO_CGROUP_ACCT);
		u64_stats_add(&stat->cnt[IOBAND_BYTES][op], bio->bi_iter.bi_size);
		u64_stats_add(&stat->cnt[IOBAND_BYTES][sync], bio->bi_iter.bi_size);
	}
	u64_stats_inc(&stat->cnt[IOBAND_IOS][op]);
	u64_stats_inc(&stat->cnt[IOBAND_IOS][sync]);
	u64_stats_update_end(&stat->sync);
}

/* What a bio costs at a limit, also noted for ioband_gate_unpay(). */
static s64 ioband_bill(struct ioband_dir *gate, struct ioband_rule *rule,
		       const struct bio *bio, enum ioband_unit unit)
{
	struct ioband_bucket *b = &rule->bucket[unit];

	gate->bill[unit].rem = b->rem;
	gate->bill[unit].cost = ioband_cost(b->rate.per_sec,
					    ioband_units(bio, unit),
					    &gate->bill[unit].rem);
	return gate->bill[unit].cost;
}

/*
 * When a bio arrived at a gate.  The TAT of a rule that came later knows what it
 * had earned by then, see ioband_inherit(): no clock starts anew for it.
 */
static s64 ioband_arrival_at(const struct ioband_rule *rule,
			     const struct bio *bio)
{
	s64 arrival = ioband_arrival(bio);

	return rule && arrival > rule->since ? arrival : S64_MIN;
}

/* A removed group may know a gate whose rule has gone since: @rule can be NULL. */
static bool ioband_binds(const struct ioband_rule *rule, const struct bio *bio,
			 enum ioband_unit unit)
{
	return rule && rule->bucket[unit].rate.per_sec && ioband_units(bio, unit);
}

static void ioband_gate_unpay(struct ioband_dir *gate, const struct bio *bio,
			      enum ioband_unit end)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);

	for (enum ioband_unit unit = 0; unit < end; unit++) {
		if (!ioband_binds(rule, bio, unit))
			continue;
		atomic64_sub(gate->bill[unit].cost, &rule->bucket[unit].tat);
		swap(rule->bucket[unit].rem, gate->bill[unit].rem);
	}
}

static bool ioband_gate_pay(struct ioband_dir *gate, const struct bio *bio,
			    s64 now, bool anyway)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);
	s64 arrival = ioband_arrival_at(rule, bio);

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];
		s64 cost;

		if (!ioband_binds(rule, bio, unit))
			continue;
		cost = ioband_bill(gate, rule, bio, unit);
		if (anyway) {
			ioband_take_anyway(b, cost, now);
		} else if (!ioband_take(b, cost, arrival, now)) {
			ioband_gate_unpay(gate, bio, unit);
			return false;
		}
		swap(b->rem, gate->bill[unit].rem);
		/* see IOBAND_RESERVE_NS */
		if (b->rate.batch && cost > b->rate.burst) {
			b->closed_until = now + IOBAND_RESERVE_NS;
			WRITE_ONCE(b->mode, IOBAND_CLOSED);
		}
	}
	return true;
}

/**
 * ioband_pay - take what a bio costs at all its gates, or nothing
 * @grp:	the bio's group
 * @bio:	the bio, with its arrival stamped
 * @now:	ns, or when it was due
 *
 * Context: dev->lock held.
 * Return: false if some gate does not let it go yet.
 */
bool ioband_pay(struct ioband_grp *grp, struct bio *bio, s64 now)
{
	int rw = bio_data_dir(bio);
	struct ioband_grp *gate, *paid;

	lockdep_assert_held(&grp->dev->lock);
	ioband_for_each_gate(gate, grp, rw) {
		if (!ioband_gate_pay(&gate->dir[rw], bio, now, false))
			break;
	}
	if (!gate)
		return true;
	ioband_for_each_gate(paid, grp, rw) {
		if (paid == gate)
			break;
		ioband_gate_unpay(&paid->dir[rw], bio, IOBAND_NR_UNITS);
	}
	return false;
}

/**
 * ioband_bio_when - when do the limits of one gate let a bio go?
 * @gate:	the gate
 * @bio:	a held bio
 *
 * Context: dev->lock held.
 * Return: time in ns; it may have passed.
 */
s64 ioband_bio_when(struct ioband_dir *gate, struct bio *bio)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);
	s64 arrival = ioband_arrival_at(rule, bio);
	s64 when = S64_MIN;

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];

		if (!ioband_binds(rule, bio, unit))
			continue;
		when = max(when, ioband_when(atomic64_read(&b->tat), arrival,
					     ioband_bill(gate, rule, bio, unit),
					     b->rate.burst));
	}
	return when;
}

/**
 * ioband_due - when should a held bio leave?
 * @grp:	the bio's group
 * @bio:	the bio
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: the time in ns that it is to be charged for, no more than
 *	   IOBAND_LATE_NS before @now; after @now if it may not leave yet.
 */
s64 ioband_due(struct ioband_grp *grp, struct bio *bio, s64 now)
{
	s64 due = max(ioband_arrival(bio), now - IOBAND_LATE_NS);
	int rw = bio_data_dir(bio);
	struct ioband_grp *gate;

	/* nobody is due before it is its turn */
	due = max(due, grp->dir[rw].source.last_due);
	ioband_for_each_gate(gate, grp, rw) {
		due = max(due, gate->dir[rw].gate.last_due);
		due = max(due, ioband_bio_when(&gate->dir[rw], bio));
	}
	return due;
}

/**
 * ioband_bio_share - how much of a gate's time a bio uses up
 * @gate:	the gate
 * @bio:	the bio
 *
 * Context: dev->lock held.
 * Return: ns by the limit that binds tightest.
 */
s64 ioband_bio_share(struct ioband_dir *gate, struct bio *bio)
{
	struct ioband_rule *rule = ioband_gate_rule(gate);
	s64 share = 0;

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++)
		if (ioband_binds(rule, bio, unit))
			share = max(share, ioband_bill(gate, rule, bio, unit));
	return share;
}

/*
 * Bios that others wait for are never held: metadata and swap, and data that a
 * kernel thread writes back because somebody waits for it (jbd2, sync).  A
 * kernel thread that works for a group says so and is no exception.
 */
static bool ioband_must_pass(struct bio *bio)
{
	if (bio_issue_as_root_blkg(bio))
		return true;
	return (current->flags & PF_KTHREAD) && !kthread_blkcg() &&
	       bio_op(bio) == REQ_OP_WRITE && (bio->bi_opf & REQ_SYNC) &&
	       bio_has_data(bio) && folio_test_writeback(page_folio(bio_page(bio)));
}

/**
 * ioband_debt_end - until when has a group been given more than it may have?
 * @grp:	the group
 *
 * Context: dev->lock held.
 * Return: the time in ns when all its gates let an I/O of no size go.
 */
s64 ioband_debt_end(struct ioband_grp *grp)
{
	s64 end = 0;

	for (int rw = READ; rw <= WRITE; rw++) {
		struct ioband_grp *gate;

		ioband_for_each_gate(gate, grp, rw) {
			struct ioband_rule *rule = ioband_gate_rule(&gate->dir[rw]);

			for (int unit = 0; rule && unit < IOBAND_NR_UNITS; unit++) {
				struct ioband_bucket *b = &rule->bucket[unit];

				if (b->rate.per_sec)
					end = max(end, atomic64_read(&b->tat) -
						       b->rate.burst);
			}
		}
	}
	return end;
}

/* It goes now and the group pays later. */
static void ioband_owe(struct ioband_grp *grp, struct bio *bio, s64 now)
{
	int rw = bio_data_dir(bio);
	struct ioband_grp *gate;
	s64 cost = 0;

	ioband_for_each_gate(gate, grp, rw) {
		cost = max(cost, ioband_bio_share(&gate->dir[rw], bio));
		ioband_gate_pay(&gate->dir[rw], bio, now, true);
	}
	ioband_delay(grp, cost, now);
}

static bool ioband_contended(struct ioband_grp *grp, int rw)
{
	struct ioband_grp *gate;

	ioband_for_each_gate(gate, grp, rw)
		if (!RB_EMPTY_ROOT(&gate->dir[rw].gate.ready.rb_root))
			return true;
	return false;
}

/* Reserves that were closed, and are due to be used again. */
static void ioband_reopen(struct ioband_grp *grp, int rw, s64 now)
{
	struct ioband_grp *gate;

	ioband_for_each_gate(gate, grp, rw) {
		struct ioband_rule *rule = ioband_gate_rule(&gate->dir[rw]);

		for (int unit = 0; rule && unit < IOBAND_NR_UNITS; unit++) {
			struct ioband_bucket *b = &rule->bucket[unit];

			if (b->mode == IOBAND_CLOSED && b->closed_until <= now)
				WRITE_ONCE(b->mode, IOBAND_OPEN);
		}
	}
}

enum ioband_verdict { IOBAND_PASS, IOBAND_OWE, IOBAND_KEEP };

static enum ioband_verdict ioband_decide_locked(struct ioband_grp *grp,
						struct bio *bio, bool must_pass,
						s64 now)
{
	struct ioband_dev *dev = grp->dev;
	int rw = bio_data_dir(bio);

	if (unlikely(grp->offline))
		ioband_link_removed(grp);
	ioband_reopen(grp, rw, now);
	if (must_pass) {
		ioband_owe(grp, bio, now);
		return IOBAND_OWE;
	}
	if (ioband_contended(grp, rw) || !ioband_pay(grp, bio, now)) {
		/* traced in here, or the release could come first */
		trace_ioband_hold(bio, now, grp->dir[rw].held + 1);
		ioband_hold(grp, bio, now);
		return IOBAND_KEEP;
	}
	if (unlikely(atomic_read(&dev->zoned_out))) {
		ioband_send(dev, bio, now, now);
		return IOBAND_KEEP;
	}
	return IOBAND_PASS;
}

static noinline enum ioband_verdict ioband_decide(struct ioband_grp *grp,
						  struct bio *bio)
{
	struct ioband_dev *dev = grp->dev;
	bool must_pass = ioband_must_pass(bio);
	enum ioband_verdict verdict;
	s64 now;

	guard(spinlock_irqsave)(&dev->lock);
	if (dev->dead)
		return IOBAND_PASS;
	now = ktime_get_ns();
	ioband_stamp(bio, now, raw_smp_processor_id());
	verdict = ioband_decide_locked(grp, bio, must_pass, now);
	if (verdict != IOBAND_KEEP)
		ioband_unstamp(bio);
	return verdict;
}

/*
 * The group of a bio, and its first gate in @lim.  A group whose activation fails
 * goes away with its blkg still there, but then it never had a gate.
 */
static struct ioband_grp *ioband_lookup(struct bio *bio, struct ioband_grp **lim)
{
	struct ioband_grp *grp;

	guard(rcu)();
	grp = blkg_to_grp(bio->bi_blkg);
	/* a blkg from before the policy was activated: no rule yet */
	if (unlikely(!grp))
		return NULL;
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys) && grp->stat)
		ioband_account(grp, bio);
	/* pairs with ioband_link() */
	*lim = smp_load_acquire(&grp->dir[bio_data_dir(bio)].lim);
	return *lim || READ_ONCE(grp->offline) ? grp : NULL;
}

bool __ioband_bio(struct bio *bio)
{
	enum ioband_verdict verdict = IOBAND_PASS;
	struct ioband_grp *grp, *lim;

	grp = ioband_lookup(bio, &lim);
	if (!grp)
		return false;
	/* a flush without data is free */
	if (unlikely(op_is_flush(bio->bi_opf) && !bio_sectors(bio)))
		return false;

	if (unlikely(READ_ONCE(grp->offline) || atomic_read(&grp->dev->zoned_out)) ||
	    unlikely(!ioband_admit(lim, bio_data_dir(bio),
				   ioband_units(bio, IOBAND_BYTES)))) {
		verdict = ioband_decide(grp, bio);
		if (verdict == IOBAND_KEEP)
			return true;
		if (verdict == IOBAND_OWE)
			blkcg_schedule_throttle(bio->bi_bdev->bd_disk, false);
	}
	if (trace_ioband_admit_enabled())
		trace_ioband_admit(bio, ktime_get_ns(), verdict == IOBAND_OWE);
	bio_set_flag(bio, BIO_BPS_THROTTLED);
	return false;
}
