// SPDX-License-Identifier: GPL-2.0
/*
 * Where a bio meets its caps.
 *
 * The fast path takes what the bio costs at each gate from this CPU's reserve of
 * that gate: no lock, and no line that another CPU writes.  When a reserve runs
 * out it is refilled by cmpxchg on the gate's TAT.  Only when there is not enough
 * there either, or others wait, ioband_decide() decides under dev->lock.
 */
#include <linux/compiler_attributes.h>
#include <linux/ktime.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <trace/events/ioband.h>

#include "ioband.h"

/* Gates that the lockless path takes; who passes more takes the lock. */
#define IOBAND_FAST_DEPTH	8

/* This CPU is short of @units: buy them, and a batch if there is enough. */
static bool ioband_refill(struct ioband_rule *rule, struct ioband_reserve *res,
			  enum ioband_unit unit, u32 units)
{
	struct ioband_bucket *b = &rule->bucket[unit];
	u64 short_of = units - res->left[unit];
	u64 batch = b->rate.batch;
	s64 now;

	if (!b->rate.per_sec) {
		res->left[unit] = IOBAND_PLENTY;
		return true;
	}
	now = ktime_get_ns();
	for (;;) {
		u64 rem = res->rem[unit];
		s64 cost = ioband_cost(b->rate.per_sec, short_of + batch, &rem);

		if (ioband_take(b, cost, now, now)) {
			res->left[unit] = units + batch;
			res->rem[unit] = rem;
			return true;
		}
		if (!batch)
			return false;
		batch = 0;
	}
}

/* Give back what goes beyond a batch. */
static void ioband_trim(struct ioband_rule *rule, struct ioband_reserve *res,
			enum ioband_unit unit)
{
	struct ioband_bucket *b = &rule->bucket[unit];
	u64 rem = 0;

	if (!b->rate.per_sec || res->left[unit] <= b->rate.batch)
		return;
	atomic64_sub(ioband_cost(b->rate.per_sec,
				 res->left[unit] - b->rate.batch, &rem), &b->tat);
	res->left[unit] = b->rate.batch;
}

static __always_inline bool ioband_reserve_has(struct ioband_rule *rule,
					       const struct ioband_reserve *res,
					       u32 bytes)
{
	return likely(!READ_ONCE(rule->closed)) &&
	       likely(res->left[IOBAND_BYTES] >= bytes) &&
	       likely(res->left[IOBAND_IOS] >= 1);
}

static __always_inline void ioband_reserve_use(struct ioband_reserve *res,
					       u32 bytes)
{
	res->left[IOBAND_BYTES] -= bytes;
	res->left[IOBAND_IOS]--;
}

static bool ioband_reserve_take(struct ioband_rule *rule, u32 bytes)
{
	struct ioband_reserve *res = this_cpu_ptr(rule->reserve);

	if (!ioband_reserve_has(rule, res, bytes))
		return false;
	ioband_reserve_use(res, bytes);
	return true;
}

static void ioband_reserve_return(struct ioband_rule *rule, u32 bytes)
{
	struct ioband_reserve *res = this_cpu_ptr(rule->reserve);

	res->left[IOBAND_BYTES] += bytes;
	res->left[IOBAND_IOS]++;
	ioband_trim(rule, res, IOBAND_BYTES);
	ioband_trim(rule, res, IOBAND_IOS);
}

static bool ioband_reserve_fill(struct ioband_rule *rule, u32 bytes)
{
	struct ioband_reserve *res = this_cpu_ptr(rule->reserve);

	if (READ_ONCE(rule->closed))
		return false;
	if (res->left[IOBAND_BYTES] < bytes &&
	    !ioband_refill(rule, res, IOBAND_BYTES, bytes))
		return false;
	if (res->left[IOBAND_IOS] >= 1 ||
	    ioband_refill(rule, res, IOBAND_IOS, 1))
		return true;
	ioband_trim(rule, res, IOBAND_BYTES);
	return false;
}

/*
 * Take from the reserves at all gates or at none.  The rules seen are kept for
 * the way back: a gate may come or go, or change its rule, meanwhile.
 */
static noinline bool ioband_admit(struct ioband_dir *gate, u32 bytes)
{
	struct ioband_rule *rules[IOBAND_FAST_DEPTH] __uninitialized;
	int nr = 0;

	for (; gate; gate = READ_ONCE(gate->up)) {
		struct ioband_rule *rule = rcu_dereference_sched(gate->rule);

		/* a rule that is being taken away binds nobody any more */
		if (!rule)
			continue;
		/* where others wait, line up with them */
		if (ioband_crowded(gate) || nr == IOBAND_FAST_DEPTH ||
		    !(ioband_reserve_take(rule, bytes) ||
		      (ioband_reserve_fill(rule, bytes) &&
		       ioband_reserve_take(rule, bytes))))
			goto undo;
		rules[nr++] = rule;
	}
	return true;
undo:
	while (nr--)
		ioband_reserve_return(rules[nr], bytes);
	return false;
}

/*
 * v1 counts here what v2 counts in blk_cgroup_bio_start(): each piece of a bio, and
 * the bytes of the first, which is all of them.
 */
static __always_inline void ioband_account(struct ioband_stat __percpu *stats,
					   const struct bio *bio, u32 bytes)
{
	struct ioband_stat *stat = this_cpu_ptr(stats);
	unsigned int kind = ioband_stat_kind(bio->bi_opf);

	/* pays for a sector, and yet is as long as it is */
	if (unlikely(bio_op(bio) == REQ_OP_DISCARD) && bytes)
		bytes = bio->bi_iter.bi_size;
	u64_stats_update_begin(&stat->sync);
	u64_stats_add(&stat->cnt[kind][IOBAND_BYTES], bytes);
	u64_stats_inc(&stat->cnt[kind][IOBAND_IOS]);
	u64_stats_update_end(&stat->sync);
}

/*
 * The page cache of a block device that a filesystem is on holds metadata, also
 * where REQ_META does not say so: ext4 reads inodes ahead.  Others wait for the
 * lock of such a buffer.
 */
static bool ioband_is_metadata(struct bio *bio)
{
	struct address_space *mapping;

	if (bio_issue_as_root_blkg(bio))
		return true;
	if (!bio_has_data(bio))
		return false;
	/* pages of direct I/O can lose their mapping meanwhile */
	guard(rcu)();
	mapping = folio_mapping(page_folio(bio_page(bio)));
	return mapping && mapping->host && S_ISBLK(mapping->host->i_mode) &&
	       READ_ONCE(I_BDEV(mapping->host)->bd_holder_ops);
}

/* Is the current task of the group that pays for a bio, or at work for it? */
static bool ioband_works_for(struct bio *bio)
{
	if (current->flags & PF_KTHREAD)
		return kthread_blkcg();
	guard(rcu)();
	return task_css(current, io_cgrp_id) == bio_blkcg_css(bio);
}

/**
 * ioband_must_pass - is a bio one that others wait for?
 * @bio:	the bio
 *
 * Those are never held: metadata and swap, and data that a kernel thread or a task of
 * another group writes back because somebody waits for it (jbd2, sync, fsync).  A
 * kernel thread that works for a group says so and is no exception.
 *
 * Context: that of the submitter.
 * Return: true if it goes at once, and its group owes.
 */
bool ioband_must_pass(struct bio *bio)
{
	if (ioband_is_metadata(bio))
		return true;
	return bio_op(bio) == REQ_OP_WRITE && (bio->bi_opf & REQ_SYNC) &&
	       bio_has_data(bio) && folio_test_writeback(page_folio(bio_page(bio))) &&
	       !ioband_works_for(bio);
}

enum ioband_verdict { IOBAND_PASS, IOBAND_OWE, IOBAND_KEEP };

static enum ioband_verdict ioband_decide_locked(struct ioband_grp *grp,
						struct bio *bio, bool must_pass,
						s64 now)
{
	struct ioband_dir *dir = &grp->dir[bio_data_dir(bio)];

	if (unlikely(grp->offline))
		ioband_link_removed(grp);
	ioband_reopen(dir, now);
	/* the rest of a split whose bytes are paid, and nothing counts pieces */
	if (!ioband_is_bound(dir, bio))
		return IOBAND_PASS;
	if (must_pass || (now < grp->boosted_until && ioband_may_be_awaited(bio))) {
		ioband_owe(grp, bio, now);
		return IOBAND_OWE;
	}
	if (ioband_is_crowded(dir) || !ioband_pay(dir, bio, now)) {
		/* traced in here, or the release could come first */
		trace_ioband_hold(bio, now, dir->held + 1);
		ioband_hold(dir, bio, now);
		return IOBAND_KEEP;
	}
	if (unlikely(grp->dev->zoned_out) && ioband_in_order(bio)) {
		ioband_send(grp->dev, bio, now, now);
		return IOBAND_KEEP;
	}
	return IOBAND_PASS;
}

static enum ioband_verdict ioband_decide(struct ioband_grp *grp, struct bio *bio)
{
	struct ioband_dev *dev = grp->dev;
	bool must_pass = ioband_must_pass(bio);
	enum ioband_verdict verdict;
	s64 now;

	/* what waits here keeps no place in the device, nor in one above */
	if (unlikely(ioband_is_carried(bio)))
		ioband_share_return(bio);
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

static noinline void ioband_trace_admit(struct bio *bio, bool debt)
{
	trace_ioband_admit(bio, ktime_get_ns(), debt);
}

static __always_inline void ioband_passed(struct bio *bio, bool debt)
{
	if (trace_ioband_admit_enabled())
		ioband_trace_admit(bio, debt);
	bio_set_flag(bio, BIO_BPS_THROTTLED);
}

/* Whatever is not the common case.  Returns true if @bio is kept. */
static noinline bool ioband_admit_slow(struct ioband_grp *grp, struct bio *bio)
{
	struct ioband_dir *dir = &grp->dir[bio_data_dir(bio)];
	enum ioband_verdict verdict = IOBAND_PASS;
	bool admitted = false;

	/* a flush without data is free */
	if (op_is_flush(bio->bi_opf) && !bio_sectors(bio))
		return false;

	if (!READ_ONCE(grp->careful)) {
		guard(preempt)();
		admitted = ioband_admit(READ_ONCE(dir->lim),
					ioband_units(bio, IOBAND_BYTES));
	}
	if (!admitted)
		verdict = ioband_decide(grp, bio);
	if (verdict == IOBAND_KEEP)
		return true;
	if (verdict == IOBAND_OWE)
		blkcg_schedule_throttle(bio->bi_bdev->bd_disk, false);
	ioband_passed(bio, verdict == IOBAND_OWE);
	return false;
}

/*
 * Sets *@res to what to pay from at a gate on this CPU; false if there is not enough
 * in it or the matter is not so simple.
 */
static __always_inline bool ioband_fast_gate(struct ioband_dir *gate, u32 bytes,
					     struct ioband_reserve **res)
{
	struct ioband_rule *rule = rcu_dereference_sched(gate->rule);

	if (unlikely(!rule) || unlikely(ioband_crowded(gate)))
		return false;
	*res = this_cpu_ptr(rule->reserve);
	return ioband_reserve_has(rule, *res, bytes);
}

/*
 * One gate or two, and enough in hand at each.  Nothing is called in the middle
 * of it, to save the registers for nobody.
 */
static __always_inline bool ioband_cap(struct bio *bio)
{
	u32 bytes = ioband_units(bio, IOBAND_BYTES);
	struct ioband_reserve *res, *above;
	struct ioband_dir *lim, *up;
	struct ioband_grp *grp;

	/*
	 * Also an RCU read side: a group whose activation fails is freed with
	 * its blkg still there.  That one never had a gate, so from then on the
	 * reference on the blkg is enough; see ioband_is_ready() for others.
	 */
	preempt_disable();
	grp = blkg_to_grp(bio->bi_blkg);
	/* a blkg from before the policy was activated: no rule yet */
	if (unlikely(!grp))
		goto pass;
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys) && grp->stat)
		ioband_account(grp->stat, bio, bytes);
	if (unlikely(READ_ONCE(grp->careful))) {
		if (ioband_is_ready(grp))
			goto slow;
		goto pass;
	}
	/* pairs with __ioband_link() */
	lim = smp_load_acquire(&grp->dir[bio_data_dir(bio)].lim);
	if (!lim)
		goto pass;
	if (unlikely(!bytes))
		goto slow;
	if (!ioband_fast_gate(lim, bytes, &res))
		goto slow;
	up = READ_ONCE(lim->up);
	if (up) {
		if (unlikely(READ_ONCE(up->up)))
			goto slow;
		if (!ioband_fast_gate(up, bytes, &above))
			goto slow;
		ioband_reserve_use(above, bytes);
	}
	ioband_reserve_use(res, bytes);
	preempt_enable();
	ioband_passed(bio, false);
	return false;
pass:
	preempt_enable();
	/* for the counters of v1: its bytes have been seen */
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
		bio_set_flag(bio, BIO_BPS_THROTTLED);
	return false;
slow:
	preempt_enable();
	return ioband_admit_slow(grp, bio);
}

bool __ioband_bio(struct bio *bio)
{
	if (static_branch_unlikely(&ioband_share_key))
		return ioband_cap(bio) || ioband_share(bio);
	return ioband_cap(bio);
}
