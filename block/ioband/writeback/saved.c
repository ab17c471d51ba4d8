// SPDX-License-Identifier: GPL-2.0
/*
 * Savings: what limits leave unused while a group has dirty pages pays for their writes.
 *
 * Writes of dirty pages are dispatched together, some time after tasks dirtied the pages.  What
 * nobody has paid in advance is charged then: I/Os, and on disks below dm, md, loop and btrfs
 * bytes too.  As a debt alone that would make tasks wait although their group stays below its
 * limit.  A group that writes x bytes a second below a limit of R would wait for x / R of the
 * time, and get x / (1 + x / R).
 *
 * So the group saves.  While its tasks dirty pages, and when pages are written, it takes what
 * the limits have not used since it last looked, and uses that for the writes that follow.  The
 * rest of these is a debt.
 *
 * I15	What a group has saved on a disk has been charged to all its gates.  It is no more than
 *	the writes of its dirty pages are expected to need, and than a second's worth of each of
 *	its limits.  Nothing is saved while bios wait at a gate, since they earn the same time.
 *
 * Example: A has wbps=10485760 on a disk below btrfs, and writes 5 MiB/s into a file.  Every
 * half a second the flusher writes 2.5 MiB, and the limit has allowed 5 MiB since it last did.
 * A has saved 2.5 of them, and its tasks do not wait.
 */
#include <linux/ktime.h>

#include "../ioband.h"

/* A group looks once in 2^20 ns, which is about a millisecond. */
#define IOBAND_SAVE_SHIFT	20
/* If a group has not looked for this time, it begins anew. */
#define IOBAND_SAVE_NS		(60LL * NSEC_PER_SEC)
/* The largest need of the devices above a disk counts for this time. */
#define IOBAND_NEED_NS		(10LL * NSEC_PER_SEC)
/* The most units that a group saves. */
#define IOBAND_SAVE_UNITS	BIT_ULL(32)

/* The bucket of a gate, NULL without a limit in this unit. */
static struct ioband_bucket *ioband_bucket_of(struct ioband_dir *gate, enum ioband_unit unit)
{
	return ioband_limits(&gate->rule, unit) ? &gate->rule.bucket[unit] : NULL;
}

/* The units that all limits of a group have left unused since @since, at most @most. */
static u64 ioband_units_unused(struct ioband_dir *dir, enum ioband_unit unit, u64 most, s64 since,
			       s64 now)
{
	for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up) {
		struct ioband_bucket *b = ioband_bucket_of(gate, unit);
		s64 ns;

		if (!b)
			continue;
		ns = ioband_unused_ns(atomic64_read(&b->tat), since, now);
		most = min(most, ioband_units_in(b->rate.per_sec, ns));
	}
	return most;
}

/*
 * Charge units that ioband_units_unused() has found.  Returns the time until when nothing is left
 * to save: what is left is less than a unit if @units is all that there was.
 */
static s64 ioband_take_unused(struct ioband_dir *dir, enum ioband_unit unit, u64 units, s64 since,
			      s64 now)
{
	s64 until = since;

	for (struct ioband_dir *gate = dir->lim; gate; gate = gate->up) {
		struct ioband_bucket *b = ioband_bucket_of(gate, unit);
		s64 tat, cost;
		u64 rem = 0;

		if (!b)
			continue;
		tat = atomic64_read(&b->tat);
		cost = ioband_cost(b->rate.per_sec, units, &rem);
		cost += !!rem;
		while (cost && !atomic64_try_cmpxchg(&b->tat, &tat, max(tat, since) + cost))
			;
		until = max(until, max(tat, since) + cost);
	}
	return min(until, now);
}

/* Save what is needed for the dirty pages, as far as the limits have left it unused. */
static void ioband_save_units(struct ioband_grp *grp, enum ioband_unit unit, u64 need, s64 now)
{
	struct ioband_saved *saved = &grp->saved[unit];
	struct ioband_dir *dir = &grp->dir[WRITE];
	u64 most = ioband_lowest(dir, unit), units;
	s64 since = saved->at_ns;

	saved->at_ns = now;
	/* without a limit all is paid */
	if (most == U64_MAX) {
		saved->units = U64_MAX;
		return;
	}
	if (saved->units == U64_MAX || now - since > IOBAND_SAVE_NS) {
		saved->units = 0;
		return;
	}
	need = min3(need, most, IOBAND_SAVE_UNITS);
	saved->units = min(saved->units, need);
	if (saved->units == need || ioband_is_crowded(dir->lim))
		return;
	units = ioband_units_unused(dir, unit, need - saved->units, since, now);
	since = ioband_take_unused(dir, unit, units, since, now);
	saved->units += units;
	if (saved->units < need)
		saved->at_ns = since;
}

static void ioband_save_locked(struct ioband_grp *grp, s64 now)
{
	u32 io_bytes = max(grp->io_bytes, SECTOR_SIZE);

	lockdep_assert_held(&grp->dev->lock);
	ioband_relink(&grp->dir[WRITE], now);
	ioband_save_units(grp, IOBAND_BYTES, grp->saved[IOBAND_BYTES].need_bytes, now);
	ioband_save_units(grp, IOBAND_IOS,
			  DIV_ROUND_UP_ULL(grp->saved[IOBAND_IOS].need_bytes, io_bytes), now);
}

/* Several devices above can be on the disk: the largest need counts, for some time. */
static bool ioband_is_need(const struct ioband_saved *saved, u64 bytes, s64 now)
{
	return bytes >= saved->need_bytes || now - saved->need_at_ns > IOBAND_NEED_NS;
}

/*
 * Save what limits leave unused, if this was not called within the same millisecond.  @bytes: dirty
 * pages of the group that may be written to the disk.  @below: does nobody pay for the bytes in
 * advance, as on a disk below another device?  Takes dev->lock.
 */
void ioband_save(struct ioband_grp *grp, u64 bytes, bool below, s64 now)
{
	const u64 need_bytes[] = {
		[IOBAND_BYTES]	= below ? bytes : 0,
		[IOBAND_IOS]	= bytes,
	};
	unsigned int at = now >> IOBAND_SAVE_SHIFT;

	if (READ_ONCE(grp->saved_at) == at)
		return;
	guard(spinlock_irqsave)(&grp->dev->lock);
	if (grp->saved_at == at)
		return;
	WRITE_ONCE(grp->saved_at, at);
	now = ktime_get_ns();
	/* pages that were not dirty before do not count for the time before */
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		if (ioband_is_need(&grp->saved[unit], need_bytes[unit], now))
			grp->saved[unit].need_bytes = min(grp->saved[unit].need_bytes,
							  need_bytes[unit]);
	ioband_save_locked(grp, now);
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		if (!ioband_is_need(&grp->saved[unit], need_bytes[unit], now))
			continue;
		grp->saved[unit].need_bytes = need_bytes[unit];
		grp->saved[unit].need_at_ns = now;
	}
}

/* Use what is saved for a write of so many units.  Returns the units that remain to be paid. */
static u32 ioband_use_units(struct ioband_grp *grp, enum ioband_unit unit, u32 units)
{
	struct ioband_saved *saved = &grp->saved[unit];
	u32 used = min(saved->units, units);

	if (saved->units != U64_MAX)
		saved->units -= used;
	return units - used;
}

/*
 * Pay for a write of dirty pages from what its group has saved.  @unpaid: bytes of it that have not
 * been paid in advance; reduced by what is paid now.  The I/O is paid only if all bytes are.
 * Returns true if nothing remains to be paid.  dev->lock held.
 */
bool ioband_use_saved(struct ioband_grp *grp, u32 bytes, u32 *unpaid, s64 now)
{
	ioband_save_locked(grp, now);
	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
		grp->saved[unit].need_bytes -= min(grp->saved[unit].need_bytes, bytes);
	*unpaid = ioband_use_units(grp, IOBAND_BYTES, *unpaid);
	return !*unpaid && !ioband_use_units(grp, IOBAND_IOS, 1);
}
