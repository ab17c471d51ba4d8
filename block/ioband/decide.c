// SPDX-License-Identifier: GPL-2.0
/*
 * Under dev->lock: does a bio go, is it held, and who pays for it?
 *
 * Nobody is asked to wait for limits that are not theirs.  What a gate does with a bio
 * depends on who asks for it: a task inside the gate's subtree pays or waits there, a
 * task outside of it does not, see debt.c.
 */
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/pagemap.h>
#include <trace/events/ioband.h>

#include "ioband.h"

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

/* Who asks for a bio, and what that means for it. */
struct ioband_ask {
	/* the group of the task that asks, NULL for the kernel on behalf of nobody */
	struct cgroup_subsys_state *css;
	bool never_held;	/* metadata or swap: locks and memory wait for it */
};

/* In the context of the submitter, and an RCU read side. */
static struct ioband_ask ioband_ask(struct bio *bio)
{
	struct ioband_ask ask = { .never_held = ioband_is_metadata(bio) };

	ask.css = current->flags & PF_KTHREAD ? kthread_blkcg() :
						task_css(current, io_cgrp_id);
	return ask;
}

/**
 * ioband_must_pass - is a bio one that others wait for?
 * @bio:	the bio
 *
 * Metadata and swap, and dirty pages that a kernel thread or a task of another group
 * writes back because somebody waits for it (sync, fsync).  A kernel thread that works
 * for a group says so and is no exception.
 *
 * Context: that of the submitter.
 * Return: true if its share of the device does not hold it.
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

/* The first gate of a group that also binds another one, NULL if none does. */
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
	IOBAND_OWE,		/* it passes, and has not all been paid */
	IOBAND_KEEP,
	IOBAND_PAY,		/* it has to pay, or wait until it can */
	IOBAND_ASKER,		/* it is to be charged to who asks for it */
};

/* Does a bio go although its limits say no, because of who asks for it? */
static enum ioband_verdict ioband_decide_asked(struct ioband_dir *dir, struct bio *bio,
					       const struct ioband_ask *ask, s64 now)
{
	bool paced = ioband_is_paced(bio), nobodys;
	struct ioband_dir *asks = NULL;

	if (!paced && !ask->never_held)
		return IOBAND_PAY;
	/* on v1 they are whose task or flusher writes them, on v2 the inode's */
	nobodys = paced && ioband_is_nobodys(bio) && cgroup_subsys_on_dfl(io_cgrp_subsys);
	if (paced && !nobodys)
		return ioband_owe_paced(dir, bio, now) ? IOBAND_OWE : IOBAND_PASS;
	if (ask->never_held)
		asks = ioband_gate_of(dir, ask->css);
	if (ioband_may_owe_below(dir, bio, now, asks)) {
		ioband_owe(dir, bio, now, asks);
		/* a driver that works for the group: its tasks wait above */
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
	/* the rest of a split whose bytes are paid, and nothing counts pieces */
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
	/* traced in here, or the release could come first */
	trace_ioband_hold(bio, now, dir->held + 1);
	ioband_hold(dir, bio, now);
	return IOBAND_KEEP;
}

static enum ioband_verdict ioband_decide(struct ioband_grp *grp, struct bio *bio,
					 const struct ioband_ask *ask, bool in_lane)
{
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
	if (verdict != IOBAND_KEEP)
		ioband_unstamp(bio);
	return verdict;
}

/* As ioband_decide(); charges @bio to who asks for it if need be. */
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
		 * The kernel's own is the root's.  A group that goes away leaves it to its
		 * nearest ancestor: from now on that is the one who asks.
		 */
		bio_associate_blkg_from_css(bio, ask.css ?: &blkcg_root.css);
		ask.css = bio_blkcg_css(bio);
	}
}

/**
 * ioband_judge - what a bio meets that the lockless path did not let go
 * @bio:	the bio
 * @in_lane:	has it waited for those before it in its lane?
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
	/* v1 counts bytes once, and zones have to know the rest of a split */
	if (verdict != IOBAND_FREE || !cgroup_subsys_on_dfl(io_cgrp_subsys) ||
	    bdev_is_zoned(bio->bi_bdev))
		bio_set_flag(bio, BIO_BPS_THROTTLED);
	return false;
}
