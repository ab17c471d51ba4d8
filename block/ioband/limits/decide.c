// SPDX-License-Identifier: GPL-2.0
/*
 * Decisions under dev->lock: is a bio dispatched or held, and which group is charged for it?
 *
 * A task does not wait for limits that do not apply to it.  What a gate does with a bio
 * depends on the task that asks for the bio: a task inside the gate's subtree pays or waits
 * there; for a task outside of it the bio passes, see debt.c.
 */
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/pagemap.h>
#include <trace/events/ioband.h>

#include "../ioband.h"

/*
 * The page cache of a block device that a filesystem is mounted from holds metadata, also
 * where REQ_META is not set: ext4, for example, reads inodes ahead.  Tasks of other groups
 * wait for the lock of such a buffer.
 */
static bool ioband_is_metadata(struct bio *bio)
{
	struct address_space *mapping;

	if (bio_issue_as_root_blkg(bio))
		return true;
	if (!bio_has_data(bio))
		return false;
	/* pages of direct I/O can lose their mapping at any time */
	guard(rcu)();
	mapping = folio_mapping(page_folio(bio_page(bio)));
	return mapping && mapping->host && S_ISBLK(mapping->host->i_mode) &&
	       READ_ONCE(I_BDEV(mapping->host)->bd_holder_ops);
}

/* The asker of a bio: the group on whose behalf it is submitted, which may not be the bio's. */
struct ioband_ask {
	/* the asker; NULL if the kernel asks on behalf of no group */
	struct cgroup_subsys_state *css;
	bool never_held;	/* metadata or swap: holders of locks and reclaim wait for it */
};

/* Context: the submitter of the bio, in an RCU read side. */
static struct ioband_ask ioband_ask(struct bio *bio)
{
	struct ioband_ask ask = { .never_held = ioband_is_metadata(bio) };

	ask.css = current->flags & PF_KTHREAD ? kthread_blkcg() :
						task_css(current, io_cgrp_id);
	return ask;
}

/**
 * ioband_must_pass - tell whether tasks of other groups wait for a bio
 * @bio:	the bio
 *
 * They wait for metadata and swap, and for dirty pages that a kernel thread or a task of
 * another group writes back for sync() or fsync().  A kernel thread that works for the bio's
 * group, see kthread_associate_blkcg(), counts as a task of that group.
 *
 * Context: the submitter of the bio.
 * Return: true if they do: weights do not hold the bio then.
 */
bool ioband_must_pass(struct bio *bio)
{
	struct ioband_ask ask;

	guard(rcu)();
	ask = ioband_ask(bio);
	if (ask.never_held)
		return true;
	return (bio->bi_opf & REQ_SYNC) && ioband_is_writeback(bio) &&
	       ask.css != bio_blkcg_css(bio);
}

/* The lowest gate of a group whose limits apply to the group @css, too; NULL if there is none. */
static struct ioband_dir *ioband_gate_of(struct ioband_dir *dir,
					 struct cgroup_subsys_state *css)
{
	struct ioband_dir *gate = dir->lim;

	if (!css)
		return NULL;
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
		return css == &pd_to_blkg(&dir->grp->pd)->blkcg->css ? gate : NULL;
	while (gate && !cgroup_is_descendant(css->cgroup,
					     pd_to_blkg(&gate->grp->pd)->blkcg->css.cgroup))
		gate = gate->up;
	return gate;
}

enum ioband_verdict {
	IOBAND_FREE,		/* no limit is set for its group or above */
	IOBAND_PASS,
	IOBAND_OWE,		/* it passes, and the group has a debt for it */
	IOBAND_KEEP,
	IOBAND_PAY,		/* it has to pay, or wait until it can */
	IOBAND_ASKER,		/* its asker has to be charged */
};

/* Does a bio pass without paying first, because of what it is or which group asks for it? */
static enum ioband_verdict ioband_decide_asked(struct ioband_dir *dir, struct bio *bio,
					       const struct ioband_ask *ask, s64 now)
{
	bool paced = ioband_is_paced(bio), nobodys;
	struct ioband_dir *asks = NULL;

	if (!paced && !ask->never_held)
		return IOBAND_PAY;
	/* unpaid pages: on v1 the bio is the group's that writes them, on v2 the inode's */
	nobodys = paced && ioband_is_nobodys(bio) && cgroup_subsys_on_dfl(io_cgrp_subsys);
	if (paced && !nobodys)
		return ioband_owe_paced(dir, bio, now) ? IOBAND_OWE : IOBAND_PASS;
	if (nobodys && !ioband_is_crowded(dir) && ioband_pay(dir, bio, now))
		return IOBAND_PASS;
	if (ask->never_held)
		asks = ioband_gate_of(dir, ask->css);
	if (ioband_may_owe_below(dir, bio, now, asks)) {
		ioband_owe(dir, bio, now, asks);
		/* a driver submits it for the group: tasks wait at the device above, see pace.c */
		if ((current->flags & PF_KTHREAD) && ask->css == bio_blkcg_css(bio))
			WRITE_ONCE(dir->grp->owed_at_ns, now);
		return IOBAND_OWE;
	}
	return ask->never_held ? IOBAND_ASKER : IOBAND_PASS;
}

static enum ioband_verdict ioband_decide_locked(struct ioband_grp *grp, struct bio *bio,
						const struct ioband_ask *ask, s64 now)
{
	struct ioband_dir *dir = &grp->dir[bio_data_dir(bio)];
	enum ioband_verdict verdict;

	ioband_relink(dir, now);
	if (!dir->lim)
		return IOBAND_FREE;
	/* nothing to pay: the bytes of a split have been paid, and I/Os are not limited */
	if (!ioband_is_bound(dir, bio))
		return IOBAND_PASS;
	if (unlikely(ioband_must_follow(bio))) {
		ioband_owe(dir, bio, now, dir->lim);
		return IOBAND_PASS;
	}
	verdict = ioband_decide_asked(dir, bio, ask, now);
	if (verdict != IOBAND_PAY)
		return verdict;
	if (!ioband_is_crowded(dir) && ioband_pay(dir, bio, now))
		return IOBAND_PASS;
	/* trace before the lock is dropped, or the release could be traced first */
	trace_ioband_hold(bio, now, dir->held + 1);
	ioband_hold(dir, bio, now);
	return IOBAND_KEEP;
}

static enum ioband_verdict ioband_decide(struct ioband_grp *grp, struct bio *bio,
					 const struct ioband_ask *ask, bool in_lane)
{
	u64 issue_time_ns = bio->issue_time_ns, carried = bio->bi_iocost_cost;
	struct ioband_dev *dev = grp->dev;
	enum ioband_verdict verdict;
	s64 now;

	guard(spinlock_irqsave)(&dev->lock);
	if (!in_lane && ioband_lane_wait(dev, bio))
		return IOBAND_KEEP;
	if (dev->dead)
		return IOBAND_PASS;
	now = ktime_get_ns();
	ioband_stamp(bio, now, raw_smp_processor_id());
	verdict = ioband_decide_locked(grp, bio, ask, now);
	if (verdict != IOBAND_KEEP) {
		/* writeback may have a place in a device */
		bio->issue_time_ns = issue_time_ns;
		bio->bi_iocost_cost = carried;
	}
	return verdict;
}

/* As ioband_decide(), but moves @bio to its asker's group if that has to be charged. */
static enum ioband_verdict ioband_decide_payer(struct bio *bio, bool in_lane)
{
	enum ioband_verdict verdict;
	struct ioband_grp *grp;
	struct ioband_ask ask;

	guard(rcu)();
	ask = ioband_ask(bio);
	for (;;) {
		grp = blkg_to_grp(bio->bi_blkg);
		if (!grp || !ioband_is_ready(grp))
			return IOBAND_PASS;
		verdict = ioband_decide(grp, bio, &ask, in_lane);
		if (verdict != IOBAND_ASKER)
			return verdict;
		/*
		 * Without an asker the root group is charged.  If the asker is being removed,
		 * the bio gets its nearest ancestor that is not: that is the asker from now on.
		 */
		bio_associate_blkg_from_css(bio, ask.css ?: &blkcg_root.css);
		ask.css = bio_blkcg_css(bio);
	}
}

/**
 * ioband_judge - decide on a bio that the lockless path has not let pass
 * @bio:	the bio
 * @in_lane:	has it waited for the writes before it in its lane?
 *
 * Context: process context; takes dev->lock.  Sleeps only to drop a disk, see
 *	    blkcg_schedule_throttle().
 * Return: true if ioband keeps @bio and submits it later.
 */
bool ioband_judge(struct bio *bio, bool in_lane)
{
	enum ioband_verdict verdict = ioband_decide_payer(bio, in_lane);

	if (verdict == IOBAND_KEEP)
		return true;
	if (verdict == IOBAND_OWE)
		blkcg_schedule_throttle(bio->bi_bdev->bd_disk, false);
	else if (bio_issue_as_root_blkg(bio))
		ioband_asked_above(bio);
	if (verdict != IOBAND_FREE && trace_ioband_admit_enabled())
		ioband_trace_admit(bio, verdict == IOBAND_OWE);
	/* so that v1 counts bytes once, and that lanes can tell the rest of a split */
	if (verdict != IOBAND_FREE || !cgroup_subsys_on_dfl(io_cgrp_subsys) ||
	    bdev_is_zoned(bio->bi_bdev))
		bio_set_flag(bio, BIO_BPS_THROTTLED);
	return false;
}
