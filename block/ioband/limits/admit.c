// SPDX-License-Identifier: GPL-2.0
/*
 * Admission: where a bio meets the limits of its group.
 *
 * The fast path takes the cost of the bio at each gate from the reserve that this CPU has
 * of that gate: it takes no lock, and writes no cache line that all CPUs write.  A reserve
 * that runs out is refilled by cmpxchg on the gate's TAT, see reserve.c.  If the TAT does
 * not allow that either, or other bios wait at a gate, decide.c decides under dev->lock.
 */
#include <linux/compiler_attributes.h>
#include <linux/ktime.h>
#include <linux/pagemap.h>
#include <trace/events/ioband.h>

#include "../ioband.h"

/* The most gates on the lockless path; a bio that has more takes the lock. */
#define IOBAND_FAST_DEPTH	8

/*
 * Pay at all gates, without the lock, or at none.  The gates that were charged are kept for
 * the undo path, since a gate may come or go meanwhile.
 */
static noinline bool ioband_admit(struct ioband_dir *gate, u32 bytes)
{
	struct ioband_rule *rules[IOBAND_FAST_DEPTH] __uninitialized;
	u64 paid[IOBAND_FAST_DEPTH] __uninitialized;
	int nr = 0;

	for (; gate; gate = READ_ONCE(gate->up)) {
		/* if other bios wait at the gate, this one has to wait behind them */
		if (ioband_crowded(gate) || nr == IOBAND_FAST_DEPTH)
			goto undo;
		rules[nr] = &gate->rule;
		paid[nr] = ioband_owing(rules[nr], bytes);
		if (!ioband_reserve_pay(rules[nr], paid[nr]))
			goto undo;
		nr++;
	}
	return true;
undo:
	while (nr--)
		ioband_reserve_return(rules[nr], paid[nr]);
	return false;
}

/*
 * Statistics of v1, which v2 takes in blk_cgroup_bio_start(): the number of pieces of a bio,
 * and the bytes of the first piece, which is as long as the whole bio.
 */
static __always_inline void ioband_account(struct ioband_stat __percpu *stats,
					   blk_opf_t opf, u32 bytes)
{
	struct ioband_stat *stat = this_cpu_ptr(stats);
	unsigned int kind = ioband_stat_kind(opf);

	u64_stats_update_begin(&stat->sync);
	u64_stats_add(&stat->cnt[kind][IOBAND_BYTES], bytes);
	u64_stats_inc(&stat->cnt[kind][IOBAND_IOS]);
	u64_stats_update_end(&stat->sync);
}

/* Out of line, so that the callers need not save registers. */
void ioband_trace_admit(struct bio *bio, bool debt)
{
	trace_ioband_admit(bio, ktime_get_ns(), debt);
}

/* Limits do not depend on completions: they are traced only. */
void __ioband_done_bio(struct bio *bio)
{
	if (bio->bi_blkg && bio->bi_bdev)
		trace_ioband_complete(bio, ktime_get_ns(), blk_status_to_errno(bio->bi_status));
}

/* A bio passes that is traced, or that is metadata or swap, see ioband_asked_above(). */
static noinline bool ioband_passed_slow(struct bio *bio)
{
	/* trace first: the flag marks the bytes as charged, and the trace would show none */
	if (trace_ioband_admit_enabled())
		ioband_trace_admit(bio, false);
	bio_set_flag(bio, BIO_BPS_THROTTLED);
	if (bio_issue_as_root_blkg(bio))
		ioband_asked_above(bio);
	return false;
}

/* Returns false: @bio, which has paid, is not held. */
static __always_inline bool ioband_passed(struct bio *bio)
{
	if (trace_ioband_admit_enabled() || unlikely(bio_issue_as_root_blkg(bio)))
		return ioband_passed_slow(bio);
	bio_set_flag(bio, BIO_BPS_THROTTLED);
	return false;
}

/* Slow path of ioband_cap().  Returns true if @bio is held. */
static noinline bool ioband_admit_slow(struct bio *bio)
{
	struct ioband_grp *grp = blkg_to_grp(bio->bi_blkg);
	struct ioband_dir *dir = &grp->dir[bio_data_dir(bio)];

	/* a flush without data is free */
	if (op_is_flush(bio->bi_opf) && !bio_sectors(bio))
		return false;

	/* what writeback has to pay, ioband_decide_bound() knows: it may have been paid */
	if (!ioband_is_paced(bio) && !ioband_is_stale(dir)) {
		bool admitted;

		scoped_guard(preempt)
			admitted = ioband_admit(READ_ONCE(dir->lim),
						ioband_units(bio, IOBAND_BYTES));
		if (admitted)
			return ioband_passed(bio);
	}
	/* a bio that may wait for its limits gives back its place in the device, or in one above */
	if (static_branch_unlikely(&ioband_share_key) && ioband_is_carried(bio) &&
	    !ioband_is_paced(bio))
		ioband_share_return(bio);
	return ioband_judge(bio);
}

/* The upper of two gates has not enough in reserve: undo the payment at the lower gate. */
static noinline bool ioband_admit_undo(struct bio *bio, struct ioband_rule *rule, u64 paid)
{
	ioband_reserve_return(rule, paid);
	preempt_enable();
	return ioband_admit_slow(bio);
}

/* A bio passes that meets no limit. */
static __always_inline bool ioband_unlimited(struct bio *bio)
{
	/* so that v1 counts bytes once */
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
		bio_set_flag(bio, BIO_BPS_THROTTLED);
	preempt_enable();
	if (unlikely(bio_issue_as_root_blkg(bio)))
		ioband_asked_above(bio);
	return false;
}

/* Is a bio a discard, writeback or the rest of a split?  Most bios are none of these. */
static __always_inline bool ioband_is_special(const struct bio *bio, blk_opf_t opf)
{
	return unlikely(bio->bi_flags & (BIT(BIO_BPS_THROTTLED) | BIT(BIO_WRITEBACK))) ||
	       unlikely((opf & REQ_OP_MASK) == REQ_OP_DISCARD);
}

/* A discard is charged for less than its length; its length is what counts in statistics. */
static __always_inline u32 ioband_bytes_done(const struct bio *bio, u32 bytes)
{
	return bytes ? bio->bi_iter.bi_size : 0;
}

/*
 * The fast path: no gates, or one or two gates with enough in reserve.  Functions are called
 * at its end only, so that no registers need be saved.  @special is a constant.
 */
static __always_inline bool ioband_cap(struct bio *bio, bool special)
{
	u32 bytes = special ? ioband_units(bio, IOBAND_BYTES) : bio->bi_iter.bi_size;
	const blk_opf_t opf = bio->bi_opf;
	const unsigned int rw = op_is_write(opf);
	struct ioband_dir *dir, *lim, *up;
	struct ioband_grp *grp;
	struct ioband_dev *dev;
	u64 units;

	/*
	 * This is an RCU read side, too: a group whose activation fails is freed while its
	 * blkg still exists.  From its first gate on the reference on the blkg is enough; a
	 * device that is not ready has no gates.
	 */
	preempt_disable();
	grp = blkg_to_grp(bio->bi_blkg);
	/* the blkg is older than the policy on this device: there are no limits yet */
	if (unlikely(!grp))
		return ioband_unlimited(bio);
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys) && grp->stat)
		ioband_account(grp->stat, opf, special ? ioband_bytes_done(bio, bytes) : bytes);
	dev = grp->dev;
	dir = &grp->dir[rw];
	/* calculate it once */
	OPTIMIZER_HIDE_VAR(dir);
	if (unlikely(ioband_is_older(dir, dev, rw)))
		goto slow;
	lim = READ_ONCE(dir->lim);
	if (!lim)
		return ioband_unlimited(bio);
	if (unlikely(!bytes || (special && ioband_is_paced(bio))))
		goto slow;
	/* while bios wait at a gate, its reserve is empty: I12 */
	units = ioband_owing(&lim->rule, bytes);
	up = READ_ONCE(lim->up);
	if (!up) {
		if (unlikely(!ioband_reserve_take(&lim->rule, units)))
			goto slow;
		preempt_enable();
		return ioband_passed(bio);
	}
	if (unlikely(READ_ONCE(up->up)) || unlikely(!ioband_reserve_take(&lim->rule, units)))
		goto slow;
	if (unlikely(!ioband_reserve_take(&up->rule, ioband_owing(&up->rule, bytes))))
		return ioband_admit_undo(bio, &lim->rule, units);
	preempt_enable();
	return ioband_passed(bio);
slow:
	preempt_enable();
	return ioband_admit_slow(bio);
}

static noinline bool ioband_cap_special(struct bio *bio)
{
	return ioband_cap(bio, true);
}

static __always_inline bool ioband_cap_any(struct bio *bio)
{
	if (ioband_is_special(bio, bio->bi_opf))
		return ioband_cap_special(bio);
	return ioband_cap(bio, false);
}

static noinline bool ioband_cap_and_share(struct bio *bio)
{
	return ioband_cap_any(bio) || ioband_share(bio);
}

bool __ioband_bio(struct bio *bio)
{
	if (static_branch_unlikely(&ioband_share_key))
		return ioband_cap_and_share(bio);
	return ioband_cap_any(bio);
}
