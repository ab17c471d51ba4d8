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
 * What is no task's debt is owed by the ghost of the group: what drivers' threads do, see below.c,
 * and what there was no memory for a ticket for.  What the kernel does of its own accord makes a
 * debt of no more than the limits allow in a second.
 */
#include <linux/resume_user_mode.h>
#include <trace/events/ioband.h>

#include "../ioband.h"

/* The lowest gate of a group that binds the group @css, too; NULL if there is none. */
struct ioband_dir *ioband_gate_of(struct ioband_dir *dir, struct cgroup_subsys_state *css)
{
	struct ioband_dir *gate = dir->lim;

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
		ioband_owed(dir, unit, units[unit]);
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

/*
 * Have a group owe units of I/O that passes now.  @bounded: the kernel does it of its own accord,
 * and the group owes no more than what its limits allow in a second.  dev->lock held.
 */
void ioband_debt(struct ioband_dir *dir, u64 units[IOBAND_NR_UNITS], s64 now, bool bounded)
{
	struct ioband_ticket *ticket = bounded ? NULL : ioband_own_debt(dir);

	dir->nr_owed++;
	for (int unit = 0; bounded && unit < IOBAND_NR_UNITS; unit++) {
		u64 most = ioband_lowest(dir, unit), owed = dir->owed_units[unit];

		units[unit] = min(units[unit], most > owed ? most - owed : 0);
	}
	ioband_debt_add(dir, ticket ?: &dir->ghost, units, now);
}

/* Has a task whose ticket waits for others' debts at a gate to wait no more?  No locks held. */
static bool ioband_debts_are_paid(const struct ioband_ticket *ticket)
{
	struct ioband_dir *gate = ioband_ticket_dir(ticket);

	guard(spinlock_irqsave)(&gate->grp->dev->lock);
	return gate->grp->dev->dead ||
	       ioband_units_ns(gate->lim, gate->owed_below, ktime_get_ns()) <= 0;
}

/*
 * Have the current task wait for a time: not added to what it is to wait for already.  With @gate,
 * for which dev->lock is held, the wait ends when nothing is owed there.  With @disk the task waits
 * on its way to user space; else where it pays its debts next, for what the ghost of the group owes
 * by now.  Kernel threads do not wait, nor does a task that ends, or without memory.
 */
void ioband_wait_for(struct gendisk *disk, struct ioband_dir *gate, s64 ns)
{
	struct ioband_ticket *ticket = current->ioband_debts;

	if (ns <= 0 || (current->flags & (PF_KTHREAD | PF_EXITING)))
		return;
	while (ticket && (!ticket->until_ns || ticket->below != (gate && !disk) ||
			  (ticket->bio.bi_blkg ? ioband_ticket_dir(ticket) : NULL) != gate))
		ticket = ticket->next;
	if (ticket && !disk)
		return;
	if (!ticket) {
		ticket = ioband_ticket_alloc(GFP_NOWAIT | __GFP_ACCOUNT) ?:
			 ioband_ticket_alloc(GFP_NOWAIT);
		if (!ticket)
			return;
		if (gate)
			ioband_ticket_give(ticket, gate);
		/* others may take turns with the ghost, so that this takes longer than @ns */
		ticket->below = gate && !disk;
		for (int unit = 0; ticket->below && unit < IOBAND_NR_UNITS; unit++)
			if (ioband_lowest(gate, unit) != U64_MAX)
				ticket->paid[unit] = gate->ghost.paid[unit] +
						     gate->ghost.units[unit];
		ioband_debt_note(ticket);
	}
	ticket->until_ns = max(ticket->until_ns, (s64)ktime_get_ns() + ns);
	if (!disk)
		return;
	/* a disk of a group that was found in a list of blkgs may be about to be freed */
	if (!current->throttle_disk && kobject_get_unless_zero(&disk_to_dev(disk)->kobj))
		current->throttle_disk = disk;
	set_notify_resume(current);
}

/* See ioband_share_debts(), on one disk. */
static void ioband_share_debts_of(struct ioband_grp *grp, struct cgroup_subsys_state *other)
{
	struct ioband_dev *dev = grp->dev;
	s64 now = ktime_get_ns();

	for (int rw = READ; rw <= WRITE && ioband_is_ready(grp); rw++) {
		struct ioband_dir *dir = &grp->dir[rw], *gate;

		/* a group without limits need not take the lock to know */
		if (!ioband_is_stale(dir) && !READ_ONCE(dir->lim))
			continue;
		guard(spinlock_irqsave)(&dev->lock);
		ioband_relink(dir, now);
		gate = dev->dead ? NULL : ioband_gate_of(dir, other);
		if (gate)
			ioband_wait_for(dev->disk, gate, -NSEC_PER_SEC +
					ioband_units_ns(gate->lim, gate->owed_below, now));
	}
}

/*
 * The current task starts a task in a cgroup, or moves one there, perhaps itself.  If groups below
 * the limits that bind both owe more than a second's worth, it waits for the rest of that on its
 * way to user space, or until limits change: it could leave debts to tasks that are killed, or to
 * groups that it leaves.  Tasks of the root group, which can have limits on v1, do not wait, since
 * an administrator has to be able to change these.  RCU read side.
 */
void ioband_share_debts(struct cgroup_subsys_state *other)
{
	struct cgroup_subsys_state *css;
	struct blkcg_gq *blkg;

	/* workers of io_uring wait between two pieces of work */
	if (!static_branch_unlikely(&ioband_key) ||
	    (current->flags & (PF_KTHREAD | PF_USER_WORKER)))
		return;
	for (css = task_css(current, io_cgrp_id); css && css->parent; css = ioband_css_above(css))
		hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node)
			if (blkg_to_grp(blkg))
				ioband_share_debts_of(blkg_to_grp(blkg), other);
}

/* The current task starts another one, which does not run yet. */
void ioband_fork(struct task_struct *child)
{
	/* the parent's tickets are its own */
	child->ioband_credit = NULL;
	child->ioband_debts = NULL;
	/* it may be in another cgroup */
	child->ioband_free = 0;
	scoped_guard(rcu)
		ioband_share_debts(task_css(child, io_cgrp_id));
}

/*
 * Have the current task wait for its debts, for a limited time; no locks held.  Returns true if it
 * has to wait again; false if it has paid, or is killed.
 */
bool ioband_debts_wait(void)
{
	struct ioband_ticket *ticket = current->ioband_debts;

	/* a disk is freed a grace period after its tickets are done */
	scoped_guard(rcu)
		if (ticket && ticket->debt && !ioband_ticket_is_done(ticket))
			trace_ioband_return(&ticket->bio, ktime_get_ns(), 0);
	while ((ticket = current->ioband_debts)) {
		if (ticket->until_ns && !ticket->below && ticket->bio.bi_blkg &&
		    ioband_debts_are_paid(ticket))
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

/*
 * See ioband_repay().  Each call sleeps a few times at most; in between the task gets its signals,
 * and may be stopped or frozen.
 */
void __ioband_repay(struct gendisk *disk)
{
	bool again = dirty_owner_settle(disk->bdi);

	ioband_credit_return();
	if (ioband_debts_wait() || again)
		blkcg_schedule_throttle(disk, false);
}
