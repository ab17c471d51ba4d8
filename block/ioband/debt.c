// SPDX-License-Identifier: GPL-2.0
/*
 * Debts: what passes although the limits say no, and who pays for it.
 *
 * Some I/O is not held since others wait for it: metadata and swap, and dirty pages
 * that a task writes back whom not all limits of their group bind.  It is charged all
 * the same.  The group's next I/O waits until that is repaid, and so do its tasks that
 * made the debt themselves, on their way back to user space.  If somebody waits for the
 * same limits they stand in line until it is their turn.
 *
 * A limit that does not bind who asks is overdrawn by a second at most, and by half of
 * its rate in the long run: nobody can make others wait for longer than that, or spend
 * what is theirs.  What goes beyond is charged to who asks.
 *
 * Example: A has wbps=1048576 and 8 MiB of dirty pages in a file.  B, outside of A and
 * without limits, calls fsync().  1 MiB passes as A's debt, 7 MiB are B's; a write of A
 * waits for a second.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/resume_user_mode.h>
#include <linux/sched/signal.h>

#include "ioband.h"

/* A task that repays looks this often whether there still is a debt: limits change. */
#define IOBAND_REPAY_NS		(250 * NSEC_PER_MSEC)
/* Tasks that repay do not go on one by one if an I/O of the debt took less than this. */
#define IOBAND_SLOT_NS		NSEC_PER_MSEC

/**
 * ioband_rule_debt - how long until a rule lets an I/O of no size go?
 * @rule:	the rule, NULL for none
 * @now:	ns
 *
 * Context: any, as long as the rule stays.
 * Return: ns.
 */
s64 ioband_rule_debt(struct ioband_rule *rule, s64 now)
{
	s64 debt_ns = 0;

	for (int unit = 0; rule && unit < IOBAND_NR_UNITS; unit++) {
		struct ioband_bucket *b = &rule->bucket[unit];
		s64 tat = atomic64_read(&b->tat);

		/* without the lock IOBAND_TIME_MOVED may be seen */
		if (b->rate.per_sec && tat <= IOBAND_TIME_MAX)
			debt_ns = max(debt_ns, ioband_debt(tat, now, b->rate.burst));
	}
	return debt_ns;
}

/**
 * ioband_dir_debt_ns - how long until a group has repaid what it owes?
 * @dir:	one direction of it
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: ns until all gates of the group let an I/O of no size go.
 */
s64 ioband_dir_debt_ns(struct ioband_dir *dir, s64 now)
{
	struct ioband_dir *gate;
	s64 debt_ns = 0;

	lockdep_assert_held(&dir->grp->dev->lock);
	for (gate = dir->lim; gate; gate = gate->up)
		debt_ns = max(debt_ns, ioband_rule_debt(ioband_gate_rule(gate), now));
	return debt_ns;
}

/**
 * ioband_may_owe_below - may a bio pass that is not charged to who asks for it?
 * @dir:	the bio's group and direction
 * @bio:	the bio
 * @now:	ns
 * @asks:	the first gate that also binds the one who asks, NULL for none
 *
 * Context: dev->lock held.
 * Return: true if the debts at the gates below @asks would stay within their bound.
 */
bool ioband_may_owe_below(struct ioband_dir *dir, const struct bio *bio, s64 now,
			  struct ioband_dir *asks)
{
	struct ioband_dir *gate;

	for (gate = dir->lim; gate != asks; gate = gate->up)
		if (!ioband_gate_may_owe(gate, bio, now))
			return false;
	return true;
}

/**
 * ioband_owe - a bio goes now and its group pays later
 * @dir:	the bio's group and direction
 * @bio:	the bio
 * @now:	ns
 * @asks:	the first gate that also binds who asks for the bio, NULL for none; the
 *		debts at the gates below it are bounded
 *
 * The caller has asked ioband_may_owe_below().
 *
 * Context: dev->lock held.
 */
void ioband_owe(struct ioband_dir *dir, struct bio *bio, s64 now,
		struct ioband_dir *asks)
{
	enum ioband_terms terms = IOBAND_TERMS_BOUNDED;
	s64 debt_ns = ioband_dir_debt_ns(dir, now), added_ns;

	lockdep_assert_held(&dir->grp->dev->lock);
	/* what has been repaid is of no interest to others */
	if (!debt_ns) {
		dir->owed_turn = 0;
		dir->slot_ns = 0;
	}
	if (!dir->owed_turn)
		dir->owed_ns = 0;
	for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up) {
		if (gate == asks)
			terms = IOBAND_TERMS_DEBT;
		ioband_gate_pay(gate, bio, now, terms);
	}
	dir->nr_owed++;
	added_ns = ioband_dir_debt_ns(dir, now) - debt_ns;
	dir->owed_ns = max(dir->owed_ns, added_ns);
	dir->owed_end_ns = now + debt_ns + added_ns;
	if (dir->lim)
		dir->owed_turn += ioband_bio_turn(dir->lim, bio);
}

/**
 * ioband_grp_debt_ns - as ioband_dir_debt_ns(), for both directions
 * @grp:	the group
 *
 * Context: any; takes dev->lock.
 * Return: ns, 0 if the device is gone.
 */
s64 ioband_grp_debt_ns(struct ioband_grp *grp)
{
	s64 now;

	guard(spinlock_irqsave)(&grp->dev->lock);
	if (grp->dev->dead)
		return 0;
	now = ktime_get_ns();
	for (int rw = READ; rw <= WRITE; rw++)
		ioband_relink(&grp->dir[rw], now);
	return max(ioband_dir_debt_ns(&grp->dir[READ], now),
		   ioband_dir_debt_ns(&grp->dir[WRITE], now));
}

/* Has a group made a debt since it last took its turn? */
static bool ioband_owes_turn(const struct ioband_grp *grp)
{
	return READ_ONCE(grp->dir[READ].owed_turn) || READ_ONCE(grp->dir[WRITE].owed_turn);
}

/* Does a group owe more than it may, or while others wait? */
static bool ioband_owes_much(struct ioband_grp *grp)
{
	return ioband_owes_turn(grp) &&
	       (ioband_grp_debt_ns(grp) > IOBAND_DEBT_MAX_NS || ioband_has_line(grp));
}

/* What a group owes much on, with a reference, or NULL.  RCU read side. */
static struct gendisk *ioband_owed_disk(struct blkcg *blkcg)
{
	struct blkcg_gq *blkg;

	hlist_for_each_entry_rcu(blkg, &blkcg->blkg_list, blkcg_node) {
		struct ioband_grp *grp = blkg_to_grp(blkg);
		struct gendisk *disk;

		if (!grp || !ioband_is_ready(grp) || !ioband_owes_much(grp))
			continue;
		disk = ioband_get_disk(grp);
		if (disk)
			return disk;
	}
	return NULL;
}

/**
 * ioband_fork - a task is new in its group
 * @child:	the task, which does not run yet
 *
 * If the group owes more than a second's worth, or others wait for the same limits, the task
 * waits before it does anything.  A task that made a debt waits for that itself, but not one
 * that is killed meanwhile.  A task that another group starts in this one does not wait: the
 * one that starts it may wait for its execve(), and has no part in the debt.  Nor does one of
 * the root group, which has limits on v1: the kernel's own threads are in it, make debts
 * all the time, and somebody has to be able to change the limits.  In the stead of a worker
 * of io_uring the task waits that has it made: workers end at its execve(), and what they
 * owe with them.
 *
 * Context: fork().
 */
void ioband_fork(struct task_struct *child)
{
	struct task_struct *task = child->flags & PF_USER_WORKER ? current : child;
	struct cgroup_subsys_state *css;

	/* io_uring's kernel thread does not come by */
	if (!static_branch_unlikely(&ioband_key) || task->throttle_disk ||
	    (task->flags & (PF_KTHREAD | PF_USER_WORKER)))
		return;
	guard(rcu)();
	css = task_css(child, io_cgrp_id);
	if (css != task_css(current, io_cgrp_id))
		return;
	if (!css->parent)
		return;
	task->throttle_disk = ioband_owed_disk(css_to_blkcg(css));
	if (task->throttle_disk)
		set_notify_resume(task);
}

/* Wait for a while.  Returns true if there may still be a debt. */
static bool ioband_repay_debt(s64 debt_ns)
{
	ktime_t expires;
	int token;

	if (debt_ns <= 0 || fatal_signal_pending(current))
		return false;
	expires = ktime_add_ns(ktime_get(), min(debt_ns, IOBAND_REPAY_NS));
	token = io_schedule_prepare();
	__set_current_state(ioband_repay_state());
	schedule_hrtimeout(&expires, HRTIMER_MODE_ABS);
	io_schedule_finish(token);
	return true;
}

/*
 * All tasks of a group find at the same time that nothing is owed any more.  They go on as
 * far apart as one I/O of the debt took, so that each sees what those before it owe by then:
 * else many tasks would make many debts at once, and others wait for all of them.
 *
 * Returns how long the current task still waits, ns.
 */
static s64 ioband_take_slot(struct ioband_grp *grp)
{
	s64 now, slot_ns, wait_ns = 0;

	guard(spinlock_irqsave)(&grp->dev->lock);
	now = ktime_get_ns();
	for (int rw = READ; rw <= WRITE; rw++) {
		struct ioband_dir *dir = &grp->dir[rw];

		/* no debt of late; or it was to last longer, and the limits have changed */
		if (dir->owed_ns < IOBAND_SLOT_NS ||
		    abs(now - dir->owed_end_ns) > IOBAND_DEBT_MAX_NS)
			continue;
		slot_ns = max(dir->slot_ns, now);
		dir->slot_ns = min(slot_ns + dir->owed_ns, now + IOBAND_REPAY_NS);
		wait_ns = max(wait_ns, slot_ns - now);
	}
	return wait_ns;
}

/* Does a group owe anything, or have others waited since it made a debt? */
static bool ioband_owes(struct ioband_grp *grp)
{
	return ioband_grp_debt_ns(grp) || ioband_has_line(grp);
}

/* Wait for what a group owes.  Returns true if it owes again. */
static bool ioband_repay_grp(struct ioband_grp *grp)
{
	bool in_line = ioband_stand_in_line(grp);

	if (!in_line) {
		if (!ioband_repay_debt(ioband_grp_debt_ns(grp)))
			return false;
		if (ioband_owes(grp))
			return true;
	}
	if (!ioband_repay_debt(ioband_take_slot(grp)))
		return false;
	return in_line ? ioband_owes_turn(grp) : ioband_owes(grp);
}

/**
 * __ioband_repay - see ioband_repay()
 * @blkg:	the current task's group on @disk
 * @disk:	the disk
 *
 * One sleep at a time: in between the task gets its signals and may be stopped or
 * frozen.
 */
void __ioband_repay(struct blkcg_gq *blkg, struct gendisk *disk)
{
	struct ioband_grp *grp = blkg_to_grp(blkg);
	bool again;

	/* a device without limits may be above some that have them */
	again = dirty_owner_settle(&blkg->blkcg->css, disk->bdi);
	again |= ioband_repay_debt(ioband_owed_below_ns(&blkg->blkcg->css, disk));
	if (grp && ioband_is_ready(grp))
		/* once: meanwhile others of it owe more, which they wait for */
		ioband_repay_debt(ioband_share_debt_ns(grp));
	if (grp && ioband_is_ready(grp) && !fatal_signal_pending(current))
		again |= ioband_repay_grp(grp);
	if (again)
		blkcg_schedule_throttle(disk, false);
}
