// SPDX-License-Identifier: GPL-2.0
/*
 * Debts: I/O that passes although the limits have no room for it, and how it is repaid.
 *
 * A debt is a place in line: a ticket in the fifo of the group, where a bio would wait that is
 * held.  It pays when it is its turn, in parts, so that no limit is ever in debt: groups that share
 * a limit take turns, whether they wait before their I/O or after it.  The task that made the debt
 * waits for its ticket on its way to user space; newer debts line up behind.  A task that is killed
 * leaves its debts in line.
 *
 * What no task waits for is owed by the ghost of the group: what drivers' threads do, and what
 * there was no memory for a ticket for.  What the kernel does of its own accord makes a debt of no
 * more than the limits allow in a second.
 */
#include <linux/ktime.h>
#include <linux/resume_user_mode.h>
#include <linux/sched/signal.h>

#include "../ioband.h"

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

/* Forget those of the current task's debts that are paid. */
static void ioband_debts_prune(void)
{
	struct ioband_ticket **at = &current->ioband_debts, *ticket;

	while ((ticket = *at)) {
		if (ioband_ticket_is_done(ticket)) {
			*at = ticket->next;
			ioband_ticket_put(ticket);
		} else {
			at = &ticket->next;
		}
	}
}

/* Has the current task a debt that it has not paid? */
bool ioband_in_debt(void)
{
	ioband_debts_prune();
	return current->ioband_debts;
}

/* Have the current task wait for a ticket on its way to user space, and at doors. */
static void ioband_debt_note(struct ioband_ticket *ticket)
{
	ticket->next = current->ioband_debts;
	current->ioband_debts = ticket;
	current->ioband_free = 0;
}

/*
 * The current task's debt in a direction of a group, for which it waits later: one that is still in
 * line, or a new one.  NULL for tasks that limits of the group do not bind, or without memory.
 */
static struct ioband_ticket *ioband_own_debt(struct ioband_dir *dir)
{
	struct blkcg_gq *blkg = pd_to_blkg(&dir->grp->pd);
	struct ioband_ticket *ticket;

	if (current->flags & (PF_KTHREAD | PF_EXITING))
		return NULL;
	scoped_guard(rcu)
		if (ioband_gate_of(dir, task_css(current, io_cgrp_id)) != dir->lim)
			return NULL;
	ioband_debts_prune();
	for (ticket = current->ioband_debts; ticket; ticket = ticket->next)
		if (ticket->bio.bi_blkg == blkg && ticket->held &&
		    &dir->grp->dir[bio_data_dir(&ticket->bio)] == dir)
			return ticket;
	/* accounted: a task can leave it in line */
	ticket = ioband_ticket_alloc(GFP_NOWAIT | __GFP_ACCOUNT) ?: ioband_ticket_alloc(GFP_NOWAIT);
	if (!ticket)
		return NULL;
	ticket->debt = true;
	ioband_ticket_give(ticket, dir);
	/* what a call did not pay for at its turn goes before those that have not had theirs */
	if (current->ioband_credit)
		bio_set_flag(&ticket->bio, BIO_BPS_THROTTLED);
	ioband_debt_note(ticket);
	return ticket;
}

/* Add units to a debt, and have it wait in line if it does not yet. */
static void ioband_debt_add(struct ioband_dir *dir, struct ioband_ticket *ticket,
			    const u64 units[IOBAND_NR_UNITS], s64 now)
{
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		ticket->units[unit] += units[unit];
		if (!ticket->held)
			continue;
		dir->held_units[unit] += units[unit];
		dir->owed_units[unit] += units[unit];
	}
	if (ticket->held) {
		/* the first in line may be due later now */
		ioband_place(dir->grp->dev, &dir->source, now);
		return;
	}
	if (!ticket->bio.bi_blkg)
		ioband_ticket_give(ticket, dir);
	ioband_ticket_hold(ticket, now);
}

/* Reduce units so that a group owes no more than what its limits allow in a second. */
static void ioband_debt_bound(struct ioband_dir *dir, u64 units[IOBAND_NR_UNITS])
{
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		u64 most = U64_MAX, owed = dir->owed_units[unit];

		for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up)
			most = min(most, gate->limit[unit]);
		units[unit] = min(units[unit], most > owed ? most - owed : 0);
	}
}

/*
 * Have a group owe units of I/O that passes now.  @bounded: the kernel does it of its own accord.
 * dev->lock held.
 */
void ioband_debt(struct ioband_dir *dir, u64 units[IOBAND_NR_UNITS], s64 now, bool bounded)
{
	struct ioband_ticket *ticket = bounded ? NULL : ioband_own_debt(dir);

	dir->nr_owed++;
	if (bounded)
		ioband_debt_bound(dir, units);
	ioband_debt_add(dir, ticket ?: &dir->ghost, units, now);
}

/**
 * ioband_owe - pay for a bio that passes now, or have its group owe it
 * @dir:	the bio's group and direction
 * @bio:	the bio, stamped
 * @now:	ns
 * @bounded:	the kernel does it of its own accord
 *
 * Context: dev->lock held.
 * Return: true if the group owes it; false if the limits have room.
 */
bool ioband_owe(struct ioband_dir *dir, struct bio *bio, s64 now, bool bounded)
{
	u64 units[IOBAND_NR_UNITS] = {
		ioband_units(bio, IOBAND_BYTES), ioband_units(bio, IOBAND_IOS)
	};

	if (!ioband_is_crowded(dir) && ioband_pay(dir, bio, now))
		return false;
	ioband_debt(dir, units, now, bounded);
	return true;
}

/* May a group owe in a direction?  A group without limits need not take a lock to know. */
bool ioband_may_owe(struct ioband_dir *dir)
{
	return ioband_is_stale(dir) || READ_ONCE(dir->lim);
}

/* How long it takes to pay a gate and those above what groups below owe, ns.  dev->lock held. */
static s64 ioband_gate_owed_ns(struct ioband_dir *gate, s64 now)
{
	struct ioband_dev *dev = gate->grp->dev;
	u64 units[IOBAND_NR_UNITS] = { };
	struct ioband_dir *dir, *up;

	list_for_each_entry(dir, &dev->active[gate - gate->grp->dir], active) {
		for (up = dir->lim; up && up != gate; up = up->up)
			;
		for (int unit = 0; up && unit < IOBAND_NR_UNITS; unit++)
			units[unit] += dir->owed_units[unit];
	}
	return ioband_units_ns(gate, units, now);
}

/* Do groups below a gate owe more than a second's worth?  Returns the rest, ns.  dev->lock held. */
static s64 ioband_gate_deep_ns(struct ioband_dir *gate, s64 now)
{
	return ioband_gate_owed_ns(gate, now) - NSEC_PER_SEC;
}

/* Has a task whose ticket waits for others' debts at a gate to wait no more?  No locks held. */
static bool ioband_debts_are_paid(const struct ioband_ticket *ticket)
{
	struct ioband_dir *gate = ioband_ticket_dir(ticket);

	guard(spinlock_irqsave)(&gate->grp->dev->lock);
	return gate->grp->dev->dead || ioband_gate_deep_ns(gate, ktime_get_ns()) <= 0;
}

/* Have the current task look at its debts on its way to user space. */
static void ioband_wait_later(struct gendisk *disk)
{
	if (!current->throttle_disk)
		current->throttle_disk = ioband_get_disk(disk);
	set_notify_resume(current);
}

/* Have the current task wait for deep debts at a gate, as they are now.  dev->lock held. */
static void ioband_wait_at(struct ioband_dir *gate, s64 now)
{
	s64 ns = gate ? ioband_gate_deep_ns(gate, now) : 0;
	struct ioband_ticket *ticket;

	if (ns <= 0)
		return;
	ticket = ioband_ticket_alloc(GFP_NOWAIT | __GFP_ACCOUNT);
	if (!ticket)
		return;
	ioband_ticket_give(ticket, gate);
	ticket->until_ns = now + ns;
	ioband_debt_note(ticket);
	ioband_wait_later(gate->grp->dev->disk);
}

/* A task of a group starts one in the group @child. */
static void ioband_fork_below(struct ioband_grp *grp, struct cgroup_subsys_state *child)
{
	s64 now = ktime_get_ns();

	if (!ioband_is_ready(grp) ||
	    !(ioband_may_owe(&grp->dir[READ]) || ioband_may_owe(&grp->dir[WRITE])))
		return;
	guard(spinlock_irqsave)(&grp->dev->lock);
	for (int rw = READ; rw <= WRITE && !grp->dev->dead; rw++) {
		ioband_relink(&grp->dir[rw], now);
		ioband_wait_at(ioband_gate_of(&grp->dir[rw], child), now);
	}
}

/**
 * ioband_wait_for - have the current task wait for a time on its way to user space
 * @disk:	the disk in whose name it waits
 * @ns:		for how long; not added to what it is to wait for already
 *
 * Kernel threads do not wait, nor does a task that ends, or without memory.
 *
 * Context: any.
 */
void ioband_wait_for(struct gendisk *disk, s64 ns)
{
	struct ioband_ticket *ticket = current->ioband_debts;

	if (current->flags & (PF_KTHREAD | PF_EXITING))
		return;
	while (ticket && (!ticket->until_ns || ticket->bio.bi_blkg))
		ticket = ticket->next;
	if (!ticket) {
		ticket = ioband_ticket_alloc(GFP_NOWAIT | __GFP_ACCOUNT);
		if (!ticket)
			return;
		ioband_debt_note(ticket);
	}
	ticket->until_ns = max(ticket->until_ns, (s64)ktime_get_ns() + ns);
	ioband_wait_later(disk);
}

/*
 * The current task starts another one, which does not run yet.  If groups below the limits that
 * bind both owe more than a second's worth, it waits for the rest of that on its way to user space,
 * or until limits change: it could leave debts to tasks that are killed.  Tasks of the root group,
 * which can have limits on v1, do not wait, since an administrator has to be able to change these.
 */
void ioband_fork(struct task_struct *child)
{
	struct cgroup_subsys_state *css;
	struct blkcg_gq *blkg;

	/* the parent's tickets are its own */
	child->ioband_credit = NULL;
	child->ioband_debts = NULL;
	/* it may be in another cgroup */
	child->ioband_free = 0;
	/* workers of io_uring wait between two pieces of work */
	if (!static_branch_unlikely(&ioband_key) ||
	    (current->flags & (PF_KTHREAD | PF_USER_WORKER)))
		return;
	guard(rcu)();
	for (css = task_css(current, io_cgrp_id); css->parent; css = css->parent) {
		hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node)
			if (blkg_to_grp(blkg))
				ioband_fork_below(blkg_to_grp(blkg), task_css(child, io_cgrp_id));
		if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
			break;
	}
}

/*
 * Have the current task wait for its debts, for a limited time; no locks held.  Returns true if it
 * has to wait again; false if it has paid, or is killed.
 */
bool ioband_debts_wait(void)
{
	struct ioband_ticket *ticket;

	while ((ticket = current->ioband_debts)) {
		if (ticket->until_ns && ticket->bio.bi_blkg && ioband_debts_are_paid(ticket))
			ticket->done = true;
		if (!ioband_ticket_is_done(ticket) && !ioband_ticket_look(ticket))
			return !fatal_signal_pending(current);
		ioband_debts_prune();
	}
	return false;
}

/* The current task ends: its debts stay in line. */
void ioband_exit(void)
{
	struct ioband_ticket *ticket;

	ioband_credit_return();
	while ((ticket = current->ioband_debts)) {
		current->ioband_debts = ticket->next;
		ioband_ticket_put(ticket);
	}
}

/**
 * __ioband_repay - see ioband_repay()
 * @disk:	the disk
 *
 * Each call sleeps a few times at most; in between the task gets its signals, and may be
 * stopped or frozen.
 */
void __ioband_repay(struct gendisk *disk)
{
	bool again = dirty_owner_settle(disk->bdi);
	/* a device without limits may be above some that have them */
	s64 below_ns = ioband_owed_below_ns(disk);

	ioband_credit_return();
	if (below_ns > 0)
		ioband_wait_for(disk, min(below_ns, IOBAND_LOOK_NS));
	if (ioband_debts_wait() || again)
		blkcg_schedule_throttle(disk, false);
}
