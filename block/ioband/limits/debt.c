// SPDX-License-Identifier: GPL-2.0
/*
 * Debts: I/O that passes although the limits have no room for it, and how it is repaid.
 *
 * Some I/O is not held, since tasks of other groups wait for it: metadata and swap, and
 * writeback of dirty pages.  If it has not been paid in advance, it is charged to its group as
 * a debt.  The group's next I/O waits until the debt is repaid, and so do the tasks of the
 * group that made the debt, on their way back to user space.  If bios wait for the same
 * limits, these tasks wait in line with them until it is their turn, see ticket.c.
 *
 * A task to which a limit does not apply can make a debt of one second's worth there at
 * most, and of half the rate in the long run.  So tasks outside a group cannot make its tasks
 * wait for longer than that, or spend all of the group's limit.  The rest of their metadata
 * and swap is charged to their own group, see decide.c.
 *
 * Example: A has wbps=1048576, and B is outside of A and has no limits.  Memory is short, and
 * a task of B has 8 MiB of A's pages written to swap.  1 MiB passes as A's debt, and a write
 * of A waits for a second; the other 7 MiB are charged to B.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/resume_user_mode.h>
#include <linux/sched/signal.h>

#include "../ioband.h"

/* A task that waits for a debt looks again after this time, since limits can change. */
#define IOBAND_REPAY_NS		(250 * NSEC_PER_MSEC)
/* Tasks that repay go on all at once if no I/O of the debt took longer than this. */
#define IOBAND_SLOT_NS		NSEC_PER_MSEC

/**
 * ioband_rule_debt - return the time until the debt of one gate is repaid
 * @rule:	the gate's rule, NULL for none
 * @now:	ns
 *
 * Context: any, as long as the rule exists.
 * Return: ns, 0 if there is no debt.
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
 * ioband_dir_debt_ns - return the time until a group has repaid its debt in one direction
 * @dir:	the group and direction
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: ns until no gate of the group has a debt, 0 if none has one.
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
 * ioband_may_owe_below - tell whether a bio may pass as a debt at gates that do not bind its asker
 * @dir:	the bio's group and direction
 * @bio:	the bio
 * @now:	ns
 * @asks:	the lowest gate whose limits apply to the asker, too; NULL for none
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
 * ioband_owe - charge a bio that passes now as a debt of its group
 * @dir:	the bio's group and direction
 * @bio:	the bio
 * @now:	ns
 * @asks:	the lowest gate whose limits apply to the asker, too, NULL for none; debts at
 *		the gates below it are bounded
 *
 * If there are gates below @asks, the caller has asked ioband_may_owe_below().
 *
 * Context: dev->lock held.
 */
void ioband_owe(struct ioband_dir *dir, struct bio *bio, s64 now,
		struct ioband_dir *asks)
{
	enum ioband_terms terms = IOBAND_TERMS_BOUNDED;
	s64 debt_ns = ioband_dir_debt_ns(dir, now), added_ns;

	lockdep_assert_held(&dir->grp->dev->lock);
	/* earlier debts have been repaid: they count no more, neither for turns nor for slots */
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
 * ioband_grp_debt_ns - return the time until a group has repaid its debts in both directions
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

/* Has a group a debt above the bound, or a debt while bios wait for the same limits? */
static bool ioband_owes_much(struct ioband_grp *grp)
{
	return ioband_owes_turn(grp) &&
	       (ioband_grp_debt_ns(grp) > IOBAND_DEBT_MAX_NS || ioband_has_line(grp));
}

/* A disk, with a reference, on which ioband_owes_much() a group; NULL if none.  RCU read side. */
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
 * ioband_fork - have a new task wait if its group is deep in debt
 * @child:	the task, which does not run yet
 *
 * If the group's debt is more than a second's worth, or bios wait for the same limits, the
 * new task waits before it does anything.  Otherwise a group could leave its debts to tasks
 * that are killed, and go on with new ones.  There are three exceptions.  A task that a task
 * of another group starts in this group does not wait: its parent may wait for its execve(),
 * and has no part in the debt.  Tasks of the root group, which can have limits on v1, do not
 * wait: the kernel's threads in it make debts all the time, and an administrator has to be
 * able to change the limits.  And instead of a worker of io_uring the task waits that created
 * it, since the workers end at the execve() of that task, and their debts with them.
 *
 * Context: fork().
 */
void ioband_fork(struct task_struct *child)
{
	struct task_struct *task = child->flags & PF_USER_WORKER ? current : child;
	struct cgroup_subsys_state *css;

	/* neither kernel threads nor io_uring's polling threads return to user space */
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

/**
 * ioband_repay_debt - have the current task wait once for a debt
 * @debt_ns:	the time until the debt is repaid, ns; the wait is IOBAND_REPAY_NS at most
 *
 * Context: may sleep; no locks held.
 * Return: true if the task has slept; false if there is no debt, or the task is killed.
 */
bool ioband_repay_debt(s64 debt_ns)
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
 * When a debt is repaid, all tasks of the group find that at the same time.  They go on one
 * after the other, as far apart as one I/O of the debt took, so that each sees the new debts
 * of the tasks before it.  Otherwise many tasks would make many debts at once, and other
 * groups would wait for all of them.
 *
 * Returns the time that the current task still has to wait, ns.
 */
static s64 ioband_take_slot(struct ioband_grp *grp)
{
	s64 now, slot_ns, wait_ns = 0;

	guard(spinlock_irqsave)(&grp->dev->lock);
	now = ktime_get_ns();
	for (int rw = READ; rw <= WRITE; rw++) {
		struct ioband_dir *dir = &grp->dir[rw];

		/* no debt lately, or the limits have changed since the debt's end was computed */
		if (dir->owed_ns < IOBAND_SLOT_NS ||
		    abs(now - dir->owed_end_ns) > IOBAND_DEBT_MAX_NS)
			continue;
		slot_ns = max(dir->slot_ns, now);
		dir->slot_ns = min(slot_ns + dir->owed_ns, now + IOBAND_REPAY_NS);
		wait_ns = max(wait_ns, slot_ns - now);
	}
	return wait_ns;
}

/* Has a group a debt, or a debt that took no turn while bios wait for the same limits? */
static bool ioband_owes(struct ioband_grp *grp)
{
	return ioband_grp_debt_ns(grp) || ioband_has_line(grp);
}

/* Wait once for the debt of a group.  Returns true if the task has to wait again. */
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
 * Each call sleeps a few times at most; in between the task gets its signals, and may be
 * stopped or frozen.
 */
void __ioband_repay(struct blkcg_gq *blkg, struct gendisk *disk)
{
	struct ioband_grp *grp = blkg_to_grp(blkg);
	bool again;

	/* a device without limits may be above some that have them */
	again = dirty_owner_settle(&blkg->blkcg->css, disk->bdi);
	again |= ioband_repay_debt(ioband_owed_below_ns(&blkg->blkcg->css, disk));
	if (grp && ioband_is_ready(grp))
		/* do not come again for this: other tasks of the group wait for newer debts */
		ioband_repay_debt(ioband_share_debt_ns(grp));
	if (grp && ioband_is_ready(grp) && !fatal_signal_pending(current))
		again |= ioband_repay_grp(grp);
	if (again)
		blkcg_schedule_throttle(disk, false);
}
