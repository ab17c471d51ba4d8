// SPDX-License-Identifier: GPL-2.0
/*
 * Admission: where a bio meets the limits of its group.
 *
 * The fast path charges the bio at each gate by a cmpxchg on the gate's TAT, and takes no lock.  If
 * a TAT does not allow that, or other bios wait at a gate, decide.c decides under dev->lock.
 */
#include <linux/compiler_attributes.h>
#include <trace/events/ioband.h>

#include "../ioband.h"

/* The most charges on the lockless path, one or two at a gate; a bio with more takes the lock. */
#define IOBAND_FAST_CHARGES	16

/* what has been charged: gates may come or go before it is undone */
struct ioband_charged {
	int		nr;
	atomic64_t	*tat[IOBAND_FAST_CHARGES];
	s64		cost[IOBAND_FAST_CHARGES];
};

/*
 * Charge units to a limit, if it has room: without the lock there is none for what costs more than
 * a burst.  The cost is rounded up.
 */
static __always_inline bool ioband_charge_now(struct ioband_bucket *b, u64 units, s64 now,
					      struct ioband_charged *charged)
{
	u64 rem = 0;
	s64 cost = ioband_price(b, units, &rem) + !!rem, tat, new;

	do {
		/* pairs with ioband_rule_set(): the burst is no older than the TAT */
		tat = atomic64_read_acquire(&b->tat);
		new = max(tat, now) + cost;
		if (new > now + READ_ONCE(b->rate.burst))
			return false;
		if (charged->nr == IOBAND_FAST_CHARGES)
			return false;
	} while (unlikely(atomic64_cmpxchg(&b->tat, tat, new) != tat));
	charged->tat[charged->nr] = &b->tat;
	charged->cost[charged->nr++] = cost;
	return true;
}

/*
 * Charge a bio at all its gates without the lock, or at none if a limit has no room, or bios wait
 * at a gate.  @bytes: 0 for the rest of a split.  RCU read side.
 */
noinline bool ioband_admit(struct ioband_dir *gate, u32 bytes)
{
	struct ioband_charged charged __uninitialized;
	s64 now;

	if (ioband_is_crowded(gate))
		return false;
	now = ktime_get_ns();
	charged.nr = 0;
	for (; gate; gate = READ_ONCE(gate->up)) {
		struct ioband_rule *rule = &gate->rule;
		unsigned int limited = ioband_limited(rule);

		if (((limited & BIT(IOBAND_BYTES)) && bytes &&
		     !ioband_charge_now(&rule->bucket[IOBAND_BYTES], bytes, now, &charged)) ||
		    ((limited & BIT(IOBAND_IOS)) &&
		     !ioband_charge_now(&rule->bucket[IOBAND_IOS], 1, now, &charged)))
			goto undo;
	}
	return true;
undo:
	while (charged.nr--)
		atomic64_sub(charged.cost[charged.nr], charged.tat[charged.nr]);
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
	unsigned int op = op_is_discard(opf) ? BLKG_RWSTAT_DISCARD :
			  op_is_write(opf) ? BLKG_RWSTAT_WRITE : BLKG_RWSTAT_READ;
	unsigned int sync = op_is_sync(opf) ? BLKG_RWSTAT_SYNC : BLKG_RWSTAT_ASYNC;

	u64_stats_update_begin(&stat->sync);
	u64_stats_add(&stat->cnt[op][IOBAND_BYTES], bytes);
	u64_stats_inc(&stat->cnt[op][IOBAND_IOS]);
	u64_stats_add(&stat->cnt[sync][IOBAND_BYTES], bytes);
	u64_stats_inc(&stat->cnt[sync][IOBAND_IOS]);
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

/* Returns false: @bio, which has paid, is not held. */
static __always_inline bool ioband_passed(struct bio *bio)
{
	/* trace first: the flag marks the bytes as charged, and the trace would show none */
	if (trace_ioband_admit_enabled())
		ioband_trace_admit(bio, false);
	bio_set_flag(bio, BIO_BPS_THROTTLED);
	if (ioband_may_owe_below())
		ioband_asked_above(bio->bi_bdev->bd_disk);
	return false;
}

/* Slow path of ioband_cap().  Returns true if @bio is held. */
static noinline bool ioband_admit_slow(struct bio *bio)
{
	/* a bio that may wait for its limits gives back its place in the device, or in one above */
	if (static_branch_unlikely(&ioband_share_key) && ioband_is_carried(bio) &&
	    !ioband_is_paced(bio))
		ioband_share_return(bio);
	return ioband_judge(bio);
}

/* A bio passes that meets no limit. */
static __always_inline bool ioband_unlimited(struct bio *bio)
{
	/* so that v1 counts bytes once */
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
		bio_set_flag(bio, BIO_BPS_THROTTLED);
	preempt_enable();
	if (ioband_may_owe_below())
		ioband_asked_above(bio->bi_bdev->bd_disk);
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
 * The fast path.  Functions are called at its end only, so that no registers need be saved.
 * @special is a constant.
 */
static __always_inline bool ioband_cap(struct bio *bio, bool special)
{
	u32 bytes = special ? ioband_units(bio, IOBAND_BYTES) : bio->bi_iter.bi_size;
	const blk_opf_t opf = bio->bi_opf;
	const unsigned int rw = op_is_write(opf);
	struct ioband_dir *dir, *lim;
	struct ioband_grp *grp;
	struct ioband_dev *dev;
	bool admitted;

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
	/* a flush without data is free */
	if (unlikely(!bytes) && op_is_flush(opf) && !bio_sectors(bio))
		return ioband_unlimited(bio);
	if (unlikely(ioband_is_older(dir, dev, rw)))
		goto slow;
	lim = READ_ONCE(dir->lim);
	if (!lim)
		return ioband_unlimited(bio);
	/* what writeback has to pay, ioband_decide_bound() knows: it may have been paid */
	if (unlikely(special && ioband_is_paced(bio)))
		goto slow;
	admitted = ioband_admit(lim, bytes);
	preempt_enable();
	return likely(admitted) ? ioband_passed(bio) : ioband_admit_slow(bio);
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
