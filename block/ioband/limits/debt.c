// SPDX-License-Identifier: GPL-2.0
/*
 * Debts: I/O that passes although the limits have no room for it, and how it is repaid.
 *
 * Limits hold direct I/O only, see decide.c.  What else has not been paid in advance is owed in
 * full.  The group's next I/O waits until the debt is repaid, and so do the tasks that made it, on
 * their way to user space; if bios wait for the same limits, in line with them, see ticket.c.
 * What the kernel does of its own accord makes a debt of one second's worth at most.
 */
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
 * ioband_gates_debt_ns - return the time until a gate and those above it have no debt
 * @gate:	the gate, NULL for none
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: ns, 0 if none has a debt.
 */
s64 ioband_gates_debt_ns(struct ioband_dir *gate, s64 now)
{
	s64 debt_ns = 0;

	for (; gate; gate = gate->up)
		debt_ns = max(debt_ns, ioband_rule_debt(ioband_gate_rule(gate), now));
	return debt_ns;
}

/* The lowest gate of a group that binds the group @css, too; NULL if there is none. */
struct ioband_dir *ioband_gate_of(struct ioband_dir *dir, struct cgroup_subsys_state *css)
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

/**
 * ioband_owe - charge a bio that passes now as a debt of its group
 * @dir:	the bio's group and direction
 * @bio:	the bio
 * @now:	ns
 * @terms:	how much debt it may make
 *
 * Context: dev->lock held.
 */
void ioband_owe(struct ioband_dir *dir, struct bio *bio, s64 now, enum ioband_terms terms)
{
	s64 debt_ns = ioband_gates_debt_ns(dir->lim, now), added_ns;

	lockdep_assert_held(&dir->grp->dev->lock);
	/* earlier debts have been repaid: they count no more, neither for turns nor for slots */
	if (!debt_ns) {
		dir->owed_turn = 0;
		dir->slot_ns = 0;
	}
	if (!dir->owed_turn)
		dir->owed_ns = 0;
	for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up)
		ioband_gate_pay(gate, bio, now, terms);
	dir->nr_owed++;
	added_ns = ioband_gates_debt_ns(dir->lim, now) - debt_ns;
	dir->owed_ns = max(dir->owed_ns, added_ns);
	dir->owed_end_ns = now + debt_ns + added_ns;
	if (dir->lim)
		dir->owed_turn += ioband_bio_turn(dir->lim, bio);
}

/**
 * ioband_grp_debt_ns - return the time until a group has repaid its debts in both directions
 * @grp:	the group
 * @css:	another group, to leave out limits that do not bind it; NULL for all limits
 *
 * Context: any; takes dev->lock.
 * Return: ns, 0 if the device is gone.
 */
s64 ioband_grp_debt_ns(struct ioband_grp *grp, struct cgroup_subsys_state *css)
{
	s64 now, debt_ns = 0;

	guard(spinlock_irqsave)(&grp->dev->lock);
	if (grp->dev->dead)
		return 0;
	now = ktime_get_ns();
	for (int rw = READ; rw <= WRITE; rw++) {
		struct ioband_dir *dir = &grp->dir[rw];

		ioband_relink(dir, now);
		dir = css ? ioband_gate_of(dir, css) : dir->lim;
		debt_ns = max(debt_ns, ioband_gates_debt_ns(dir, now));
	}
	return debt_ns;
}

/* May a group owe in a direction?  A group without limits need not take a lock to know. */
static bool ioband_may_owe(struct ioband_dir *dir)
{
	return ioband_is_stale(dir) || READ_ONCE(dir->lim);
}

/* Create the group of a cgroup on a disk, if it has none, and there is memory.  RCU read side. */
void ioband_meet(struct cgroup_subsys_state *css, struct gendisk *disk)
{
	struct bio bio;

	bio_init(&bio, disk->part0, NULL, 0, REQ_OP_WRITE);
	bio_associate_blkg_from_css(&bio, css);
	bio_uninit(&bio);
}

/* Have the current task wait later if a group that it starts a task in is deep in debt. */
static void ioband_fork_grp(struct ioband_grp *grp, struct cgroup_subsys_state *child)
{
	if (!ioband_is_ready(grp) || current->throttle_disk ||
	    !(ioband_may_owe(&grp->dir[READ]) || ioband_may_owe(&grp->dir[WRITE])) ||
	    ioband_grp_debt_ns(grp, child) <= IOBAND_DEBT_MAX_NS)
		return;
	/* the current task may not have used the disk yet */
	ioband_meet(task_css(current, io_cgrp_id), grp->dev->disk);
	current->throttle_disk = ioband_get_disk(grp);
	set_notify_resume(current);
}

/**
 * ioband_fork - have a task that starts another one wait if the limits above both are deep in debt
 * @child:	the task, which does not run yet
 *
 * If they owe more than a second's worth, the current task waits on its way to user space: it
 * could leave its debts to tasks that are killed.  Tasks of the root group, which can have limits
 * on v1, do not, since an administrator has to be able to change these.
 *
 * Context: fork().
 */
void ioband_fork(struct task_struct *child)
{
	struct cgroup_subsys_state *css;
	struct ioband_grp *grp;
	struct blkcg_gq *blkg;

	/* workers of io_uring wait between two pieces of work */
	if (!static_branch_unlikely(&ioband_key) ||
	    (current->flags & (PF_KTHREAD | PF_USER_WORKER)))
		return;
	guard(rcu)();
	for (css = task_css(current, io_cgrp_id); css->parent; css = css->parent) {
		hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
			grp = blkg_to_grp(blkg);
			if (grp)
				ioband_fork_grp(grp, task_css(child, io_cgrp_id));
		}
		if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
			break;
	}
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
static bool ioband_grp_owes(struct ioband_grp *grp)
{
	return ioband_grp_debt_ns(grp, NULL) || ioband_has_line(grp);
}

/* Wait once for the debt of a group.  Returns true if the task has to wait again. */
static bool ioband_repay_grp(struct ioband_grp *grp)
{
	bool in_line = ioband_stand_in_line(grp);

	if (!in_line) {
		if (!ioband_repay_debt(ioband_grp_debt_ns(grp, NULL)))
			return false;
		if (ioband_grp_owes(grp))
			return true;
	}
	if (!ioband_repay_debt(ioband_take_slot(grp)))
		return false;
	/* after a turn, only new debts count */
	if (in_line)
		return READ_ONCE(grp->dir[READ].owed_turn) || READ_ONCE(grp->dir[WRITE].owed_turn);
	return ioband_grp_owes(grp);
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
