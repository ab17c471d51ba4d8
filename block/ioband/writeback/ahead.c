// SPDX-License-Identifier: GPL-2.0
/*
 * Buffered writes: a task that dirties pages pays for the bytes before they are written.
 *
 * It waits in line by a ticket, see limits/ticket.c, which pays for no I/O, but waits until there
 * is no debt in I/Os.  Then the task may dirty pages of that many bytes, and their writes pass.
 */
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sizes.h>

#include "../ioband.h"

/* The group owes what a ticket has not paid. */
static void ioband_ticket_owe(struct ioband_ticket *ticket)
{
	struct ioband_dir *dir = ioband_ticket_dir(ticket);

	guard(spinlock_irqsave)(&dir->grp->dev->lock);
	if (!dir->grp->dev->dead && dir->lim)
		ioband_debt(dir, ticket->units, ktime_get_ns(), false);
}

/* Pay for a ticket.  Returns 0, or -EAGAIN or -EINTR if not all of it is paid. */
static int ioband_pay_ticket(struct ioband_ticket *ticket, enum dirty_how how)
{
	/* a driver pays for the group: a device above writes to this device, see pace.c */
	if (current->flags & PF_KTHREAD)
		WRITE_ONCE(ioband_ticket_dir(ticket)->grp->owed_at_ns, ktime_get_ns());
	if (ioband_ticket_pay(ticket, how == DIRTY_WAIT))
		return 0;
	if (how == DIRTY_WAIT)
		return ioband_ticket_wait(ticket);
	if (how == DIRTY_TRY)
		return -EAGAIN;
	ioband_ticket_owe(ticket);
	return 0;
}

/* See struct dirty_owner_ops.  Without memory the group owes.  May sleep, unless DIRTY_TRY. */
s64 ioband_pay_ahead(struct cgroup_subsys_state *css, struct backing_dev_info *bdi,
		     s64 bytes, enum dirty_how how)
{
	struct device *owner = READ_ONCE(bdi->owner);
	struct ioband_ticket *ticket, spare = { };
	int ret = 0;

	if (!owner)
		return bytes;
	ticket = how == DIRTY_OWE ? NULL :
		 ioband_ticket_alloc((how == DIRTY_TRY ? GFP_NOWAIT : GFP_NOFS) | __GFP_ACCOUNT);
	if (!ticket && how == DIRTY_TRY)
		return -EAGAIN;
	if (!ticket) {
		how = DIRTY_OWE;
		ticket = &spare;
		ioband_ticket_init(ticket);
	}
	ticket->units[IOBAND_BYTES] = bytes;
	if (ioband_ticket_give_css(ticket, dev_to_disk(owner), WRITE, css))
		ret = ioband_pay_ticket(ticket, how);
	if (ret)
		bytes = ticket->paid[IOBAND_BYTES] ?: ret;
	if (ticket == &spare)
		bio_uninit(&spare.bio);
	else
		ioband_ticket_put(ticket);
	return bytes;
}
