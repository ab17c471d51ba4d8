// SPDX-License-Identifier: GPL-2.0
/*
 * Savings: what limits leave unused while a group has dirty pages pays for their writes.
 *
 * Writes of dirty pages are dispatched together, seconds after tasks dirtied the pages.  What
 * nobody has paid in advance is charged then: I/Os, and on disks below dm, md, loop and btrfs
 * bytes too.  As a debt alone that would make tasks wait although their group stays below its
 * limit.  A group that writes x bytes a second below a limit of R would wait for x / R of the
 * time, and get x / (1 + x / R).
 *
 * So the group saves.  While its tasks dirty pages, and when pages are written, it takes
 * what the limits have not used since it last saved, at all gates or at none, and uses it for
 * the writes that follow.  The rest of these is a debt.  Savings delay no other I/O: the burst
 * of each limit stays in hand.
 *
 * I15	What a group has saved on a disk has been charged to all its gates.  It is no more
 *	than its dirty pages are expected to need, and was unused while they were dirty: what
 *	was unused before does not count.
 *
 * Example: A has rbps=10485760 on a disk below btrfs, writes 5 MiB/s into a file, and the
 * flusher writes 25 MiB every 5 s.  In these 5 s the limit has allowed 50 MiB.  A has saved 25
 * of them, and its tasks do not wait.
 */
#include <linux/backing-dev.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "../ioband.h"

/* What has not been used for this time is lost, as pages are written sooner. */
#define IOBAND_SAVE_NS		(60LL * NSEC_PER_SEC)
/* The largest need of the devices above a disk counts for this time. */
#define IOBAND_NEED_NS		(10LL * NSEC_PER_SEC)
/* The most units that are saved at a time, see ioband_cost(). */
#define IOBAND_SAVE_UNITS	BIT_ULL(32)

/* The units that all gates of a group have left unused since @since, U64_MAX without a limit. */
static u64 ioband_units_unused(struct ioband_dir *dir, enum ioband_unit unit, s64 since, s64 now)
{
	u64 units = U64_MAX;

	for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up) {
		struct ioband_rule *rule = ioband_gate_rule(gate);
		struct ioband_bucket *b = &rule->bucket[unit];
		s64 ns;

		if (!rule || !b->rate.per_sec)
			continue;
		ns = ioband_unused_ns(atomic64_read(&b->tat), since, now);
		units = min(units, mul_u64_u64_div_u64(ns, b->rate.per_sec, NSEC_PER_SEC));
	}
	return units;
}

/* Charge units that ioband_units_unused() has found. */
static void ioband_take_unused(struct ioband_dir *dir, enum ioband_unit unit, u64 units, s64 since)
{
	for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up) {
		struct ioband_rule *rule = ioband_gate_rule(gate);
		struct ioband_bucket *b = &rule->bucket[unit];
		s64 tat, cost;
		u64 rem = 0;

		if (!rule || !b->rate.per_sec)
			continue;
		cost = ioband_cost(b->rate.per_sec, units, &rem);
		cost += !!rem;
		tat = atomic64_read(&b->tat);
		while (!atomic64_try_cmpxchg(&b->tat, &tat, max(tat, since) + cost))
			;
	}
}

/* Save what is needed for the dirty pages, as far as the limits have left it unused. */
static void ioband_save_units(struct ioband_grp *grp, enum ioband_unit unit, u64 need, s64 since,
			      s64 now)
{
	u64 units = ioband_units_unused(&grp->dir[WRITE], unit, since, now);
	u64 *saved = &grp->saved.units[unit];

	/* without a limit all is paid */
	if (units == U64_MAX) {
		*saved = U64_MAX;
		return;
	}
	*saved = *saved == U64_MAX ? 0 : min(*saved, need);
	units = min3(units, need - *saved, IOBAND_SAVE_UNITS);
	if (!units)
		return;
	ioband_take_unused(&grp->dir[WRITE], unit, units, since);
	*saved += units;
}

/* Use units for a write, all of them or none.  Returns true if it has used them. */
static bool ioband_use_units(struct ioband_grp *grp, enum ioband_unit unit, u32 units)
{
	u64 *saved = &grp->saved.units[unit];

	if (*saved < units)
		return false;
	if (*saved != U64_MAX)
		*saved -= units;
	return true;
}

static void ioband_save_locked(struct ioband_grp *grp, s64 now)
{
	struct ioband_saved *saved = &grp->saved;
	u32 io_bytes = max(grp->io_bytes, SECTOR_SIZE);
	s64 since = saved->at_ns;

	lockdep_assert_held(&grp->dev->lock);
	if (now - since > IOBAND_SAVE_NS) {
		memset(saved->units, 0, sizeof(saved->units));
		since = now;
	}
	ioband_relink(&grp->dir[WRITE], now);
	ioband_save_units(grp, IOBAND_BYTES, saved->below ? saved->need_bytes : 0, since, now);
	ioband_save_units(grp, IOBAND_IOS, DIV_ROUND_UP_ULL(saved->need_bytes, io_bytes), since,
			  now);
	saved->at_ns = now;
}

/**
 * ioband_save - save what limits leave unused for writes of dirty pages
 * @grp:	the group
 * @bytes:	dirty pages of the group that may be written to the disk, in bytes
 * @below:	does nobody pay for the bytes in advance, as on a disk below another device?
 *
 * Does nothing if it was called in this jiffy.
 *
 * Context: any; takes dev->lock.
 */
void ioband_save(struct ioband_grp *grp, u64 bytes, bool below)
{
	struct ioband_saved *saved = &grp->saved;
	bool latest;
	s64 now;

	if (!time_after(jiffies, READ_ONCE(saved->at_jiffies)))
		return;
	guard(spinlock_irqsave)(&grp->dev->lock);
	WRITE_ONCE(saved->at_jiffies, jiffies);
	now = ktime_get_ns();
	/* several devices above can be on the disk: the largest need counts, for some time */
	latest = bytes >= saved->need_bytes || now - saved->need_at_ns > IOBAND_NEED_NS;
	if (latest)
		saved->need_bytes = min(saved->need_bytes, bytes);
	/* pages that were not dirty before do not count for the time before */
	ioband_save_locked(grp, now);
	if (latest) {
		saved->need_bytes = bytes;
		saved->need_at_ns = now;
		saved->below = below;
	}
}

/**
 * ioband_use_saved - pay for a write of dirty pages from what its group has saved
 * @grp:	the group
 * @bytes:	length of the write
 * @paid:	have the bytes been paid in advance?
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: what remains to be paid.
 */
enum ioband_unpaid ioband_use_saved(struct ioband_grp *grp, u32 bytes, bool paid, s64 now)
{
	ioband_save_locked(grp, now);
	grp->saved.need_bytes -= min(grp->saved.need_bytes, bytes);
	if (!paid && !ioband_use_units(grp, IOBAND_BYTES, bytes))
		return IOBAND_UNPAID_ALL;
	return ioband_use_units(grp, IOBAND_IOS, 1) ? IOBAND_UNPAID_NONE : IOBAND_UNPAID_IO;
}
