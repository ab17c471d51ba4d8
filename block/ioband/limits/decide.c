// SPDX-License-Identifier: GPL-2.0
/*
 * Decisions under dev->lock: is a bio dispatched or held, and which group is charged for it?
 *
 * A bio passes that its task has paid for in advance, or that can pay.  Asynchronous direct I/O is
 * held, within bounds.  All else passes: as a debt of its group, or, if a task asks for it
 * that the group's limits do not bind, at the expense of that task's group.
 */
#include <trace/events/ioband.h>

#include "../ioband.h"

/*
 * May limits hold a bio?  Whoever waits for what its submitter has locked would wait, too.  So
 * limits hold asynchronous direct I/O that a task asks for before it takes a lock, and only as
 * much as they allow in a second, with the rest of what is split, but not what a credit was too
 * small for, and no write to a zone (I11).  On v1 the root group can have limits: they also hold
 * what threads of the kernel read and write in its name, but for metadata and swap, as a resync of
 * md does, since no task could wait instead.
 */
static bool ioband_may_hold(struct ioband_dir *dir, struct bio *bio)
{
	u32 bytes = ioband_units(bio, IOBAND_BYTES);

	if (ioband_in_order(bio))
		return false;
	if ((current->flags & PF_KTHREAD) && !bio_blkcg_css(bio)->parent)
		return !bio_issue_as_root_blkg(bio);
	return bio_flagged(bio, BIO_UNLOCKED) && !current->journal_info &&
	       !(current->flags & PF_MEMALLOC_NOFS) && !current->ioband_credit &&
	       (!bytes || ioband_may_line_up(dir, bytes));
}

enum ioband_verdict {
	IOBAND_FREE,		/* no limit is set for its group or above */
	IOBAND_PASS,
	IOBAND_OWE,		/* it passes, and the group has a debt for it */
	IOBAND_KEEP,
	IOBAND_ASKER,		/* its asker has to be charged */
};

/* Decide on a bio that limits bind. */
static enum ioband_verdict ioband_decide_bound(struct ioband_dir *dir, struct bio *bio,
					       struct cgroup_subsys_state *asker, s64 now)
{
	u64 units[] = { ioband_units(bio, IOBAND_BYTES), ioband_units(bio, IOBAND_IOS) };
	bool paced = ioband_is_paced(bio);
	/* a driver's thread does it for the group: tasks wait at the device above, see below.c */
	bool below = (current->flags & PF_KTHREAD) &&
		     (asker || !(paced || bio_issue_as_root_blkg(bio)));
	bool owed;

	/* unpaid pages: on v1 the bio is the group's that writes them, on v2 the inode's */
	if (paced && !(cgroup_subsys_on_dfl(io_cgrp_subsys) && ioband_is_nobodys(bio)))
		return ioband_owe_paced(dir, bio, now) ? IOBAND_OWE : IOBAND_PASS;
	if (!paced && ioband_credit_use(bio, now, &owed))
		return owed ? IOBAND_OWE : IOBAND_PASS;
	if (!ioband_is_crowded(dir->lim) && ioband_pay(dir, bio, now))
		return IOBAND_PASS;
	if (!paced && ioband_may_hold(dir, bio)) {
		/* trace before the lock is dropped, or the release could be traced first */
		trace_ioband_hold(bio, now, dir->held + 1);
		dir->nr_throttled++;
		ioband_hold(dir, bio, now);
		return IOBAND_KEEP;
	}
	/* tasks of another group pay themselves for what they ask for */
	if (asker && ioband_gate_of(dir, asker) != dir->lim)
		return IOBAND_ASKER;
	if (below)
		WRITE_ONCE(dir->grp->owed_at_ns, now);
	ioband_debt(dir, units, now, !asker && !below);
	return IOBAND_OWE;
}

static enum ioband_verdict ioband_decide(struct ioband_grp *grp, struct bio *bio,
					 struct cgroup_subsys_state *asker)
{
	u64 issue_time_ns = bio->issue_time_ns, carried = bio->bi_iocost_cost;
	struct ioband_dir *dir = &grp->dir[bio_data_dir(bio)];
	enum ioband_verdict verdict;
	s64 now;

	guard(spinlock_irqsave)(&grp->dev->lock);
	if (grp->dev->dead)
		return IOBAND_PASS;
	now = ktime_get_ns();
	ioband_relink(dir, now);
	if (!dir->lim)
		return IOBAND_FREE;
	/* nothing to pay: the bytes of a split have been paid, and I/Os are not limited */
	if (!ioband_is_bound(dir, bio))
		return IOBAND_PASS;
	ioband_stamp(bio, now, raw_smp_processor_id());
	verdict = ioband_decide_bound(dir, bio, asker, now);
	if (verdict != IOBAND_KEEP) {
		/* writeback may have a place in a device */
		bio->issue_time_ns = issue_time_ns;
		bio->bi_iocost_cost = carried;
	}
	return verdict;
}

/* As ioband_decide(), but moves @bio to its asker's group if that has to be charged. */
static enum ioband_verdict ioband_decide_payer(struct bio *bio)
{
	struct cgroup_subsys_state *asker;
	enum ioband_verdict verdict;
	struct ioband_grp *grp;

	guard(rcu)();
	asker = ioband_asker();
	for (;;) {
		grp = blkg_to_grp(bio->bi_blkg);
		if (!grp || !ioband_is_ready(grp))
			return IOBAND_PASS;
		verdict = ioband_decide(grp, bio, asker);
		if (verdict != IOBAND_ASKER)
			return verdict;
		/*
		 * If the asker is being removed, the bio gets its nearest ancestor that is not:
		 * that is the asker from now on.
		 */
		bio_associate_blkg_from_css(bio, asker);
		asker = bio_blkcg_css(bio);
	}
}

/*
 * Decide on a bio that the lockless path has not let pass.  Sleeps only to drop a disk, see
 * blkcg_schedule_throttle().  Returns true if ioband keeps @bio and submits it later.
 */
bool ioband_judge(struct bio *bio)
{
	enum ioband_verdict verdict = ioband_decide_payer(bio);

	if (verdict == IOBAND_KEEP)
		return true;
	if (verdict == IOBAND_OWE)
		blkcg_schedule_throttle(bio->bi_bdev->bd_disk, false);
	if (ioband_may_owe_below())
		ioband_asked_above(bio->bi_bdev->bd_disk);
	if (verdict != IOBAND_FREE && trace_ioband_admit_enabled())
		ioband_trace_admit(bio, verdict == IOBAND_OWE);
	/* so that v1 counts bytes once */
	if (verdict != IOBAND_FREE || !cgroup_subsys_on_dfl(io_cgrp_subsys))
		bio_set_flag(bio, BIO_BPS_THROTTLED);
	return false;
}
