// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics: what I/O a group did and how long it waited; in io.stat on v2, and in files of
 * blk-throttle's and CFQ's names on v1.
 */
#include <linux/percpu.h>
#include <linux/seq_file.h>

#include "../ioband.h"

/*
 * Print sums of both directions: bios held now, bios ever held, the time with at least one bio
 * held, and bios that ever passed as a debt.
 */
static void ioband_print_held(struct ioband_grp *grp, struct seq_file *sf)
{
	u64 held = 0, nr_throttled = 0, held_ns = 0, nr_owed = 0;
	s64 debt_ns = 0;

	scoped_guard(spinlock_irqsave, &grp->dev->lock)
		for (int rw = READ; rw <= WRITE; rw++) {
			struct ioband_dir *dir = &grp->dir[rw];

			held += dir->held;
			nr_throttled += dir->nr_throttled;
			nr_owed += dir->nr_owed;
			held_ns += dir->held_ns;
			debt_ns = max(debt_ns, ioband_units_ns(dir->lim, dir->owed_units,
							       ktime_get_ns()));
			if (dir->held)
				held_ns += ktime_get_ns() - dir->held_since;
		}
	if (nr_throttled)
		seq_printf(sf, " held=%llu nr_throttled=%llu throttled_usec=%llu",
			   held, nr_throttled, div_u64(held_ns, NSEC_PER_USEC));
	if (nr_owed)
		seq_printf(sf, " nr_owed=%llu debt_usec=%llu", nr_owed,
			   div_u64(debt_ns, NSEC_PER_USEC));
}

/*
 * Sets @asked to a group's share by weight among the groups that are active now, ppm, 0 if it is
 * not active, and @got to its part of the device time used in the last second.  dev->lock held.
 */
void ioband_share_parts(struct ioband_grp *grp, u64 *asked, u64 *got)
{
	struct ioband_sharer *sh = &grp->dev->share;
	unsigned int second = ioband_second(ktime_get_ns());

	lockdep_assert_held(&grp->dev->lock);
	ioband_use(&sh->used, second, 0);
	ioband_use(&grp->share.used, second, 0);
	*got = mul_u64_u64_div_u64(grp->share.used.before, USEC_PER_SEC,
				   max(sh->used.before, 1ULL));
	ioband_expire_awaited(grp->dev, ktime_get_ns());
	*asked = ioband_share_part(grp);
	if (grp->dev->solo == grp)
		*asked = *got = USEC_PER_SEC;
}

static void ioband_print_share(struct ioband_grp *grp, struct seq_file *sf)
{
	u64 asked, got, waits, wait_ns;
	u32 weight, infl;

	scoped_guard(spinlock_irqsave, &grp->dev->lock) {
		if (!grp->share.last_done && grp->share.own.where == IOBAND_AWAY &&
		    !grp->share.used.second)
			return;
		ioband_share_parts(grp, &asked, &got);
		weight = grp->share.weight;
		infl = grp->share.infl;
		waits = grp->share.nr_waited;
		wait_ns = grp->share.waited_ns;
	}
	seq_printf(sf, " weight=%u share_ppm=%llu got_ppm=%llu inflight=%u share_waits=%llu share_wait_usec=%llu",
		   weight, asked, got, infl, waits, div_u64(wait_ns, NSEC_PER_USEC));
}

/*
 * Append ioband's keys to a line of io.stat, but only if the line has some of mainline's keys: some
 * programs cannot parse a line that has only other keys.  blkcg->lock held, irqs off.
 */
void ioband_print_stat(struct blkg_policy_data *pd, struct seq_file *sf)
{
	struct blkg_iostat *cur = &pd_to_blkg(pd)->iostat.cur;
	struct ioband_grp *grp = pd_to_grp(pd);

	if (!(cur->ios[BLKG_IOSTAT_READ] || cur->ios[BLKG_IOSTAT_WRITE]))
		return;
	ioband_print_held(grp, sf);
	ioband_print_share(grp, sf);
}

static void ioband_add_cpu(const struct ioband_stat *stat, enum ioband_unit unit,
			   struct blkg_rwstat_sample *sum)
{
	u64 cnt[BLKG_RWSTAT_NR];
	unsigned int seq;

	do {
		seq = u64_stats_fetch_begin(&stat->sync);
		for (int kind = 0; kind < BLKG_RWSTAT_NR; kind++)
			cnt[kind] = u64_stats_read(&stat->cnt[kind][unit]);
	} while (u64_stats_fetch_retry(&stat->sync, seq));
	for (int kind = 0; kind < BLKG_RWSTAT_NR; kind++)
		sum->cnt[kind] += cnt[kind];
}

static void ioband_add_rwstat(struct ioband_grp *grp, enum ioband_unit unit,
			      struct blkg_rwstat_sample *sum)
{
	int cpu;

	if (!grp->stat)
		return;
	for_each_possible_cpu(cpu)
		ioband_add_cpu(per_cpu_ptr(grp->stat, cpu), unit, sum);
}

/* flags in cft->private beside the unit */
#define IOBAND_RECURSIVE	BIT(1)	/* with all groups below */
#define IOBAND_NOTHING		BIT(2)	/* ioband does not have this */

static u64 ioband_prfill_rwstat(struct seq_file *sf, struct blkg_policy_data *pd, int kind)
{
	enum ioband_unit unit = kind & ~IOBAND_RECURSIVE;
	struct blkg_rwstat_sample sum = { };
	struct cgroup_subsys_state *pos;
	struct blkcg_gq *blkg;

	if (!(kind & IOBAND_RECURSIVE)) {
		ioband_add_rwstat(pd_to_grp(pd), unit, &sum);
		return __blkg_prfill_rwstat(sf, pd, &sum);
	}
	blkg_for_each_descendant_pre(blkg, pos, pd_to_blkg(pd))
		/* a group that comes or goes meanwhile may count or not */
		if (data_race(blkg->online) && blkg_to_grp(blkg))
			ioband_add_rwstat(blkg_to_grp(blkg), unit, &sum);
	return __blkg_prfill_rwstat(sf, pd, &sum);
}

static int ioband_print_rwstat(struct seq_file *sf, void *v)
{
	int kind = seq_cft(sf)->private;

	if (!(kind & IOBAND_NOTHING))
		blkcg_print_blkgs(sf, css_to_blkcg(seq_css(sf)), ioband_prfill_rwstat,
				  &blkcg_policy_ioband, kind, true);
	return 0;
}

/* For blkio.reset_stats.  Counts that other CPUs add at this moment may survive, as in mainline. */
void ioband_reset_stats(struct blkg_policy_data *pd)
{
	struct ioband_grp *grp = pd_to_grp(pd);
	int cpu;

	if (!grp->stat)
		return;
	for_each_possible_cpu(cpu) {
		struct ioband_stat *stat = per_cpu_ptr(grp->stat, cpu);

		for (int kind = 0; kind < BLKG_RWSTAT_NR; kind++)
			for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
				u64_stats_set(&stat->cnt[kind][unit], 0);
	}
}

#define IOBAND_V1_STAT(_name, kind)					\
	{ .name = _name, .private = kind, .seq_show = ioband_print_rwstat }

/*
 * The statistics have CFQ's names, too.  Programs such as containerd and youki need all of CFQ's
 * files if they find one.  Files of statistics that ioband does not have are empty; runc then
 * reads the files with "throttle" in their names.
 */
struct cftype ioband_legacy_stat_files[] = {
	IOBAND_V1_STAT("throttle.io_service_bytes", IOBAND_BYTES),
	IOBAND_V1_STAT("throttle.io_serviced", IOBAND_IOS),
	IOBAND_V1_STAT("throttle.io_service_bytes_recursive", IOBAND_BYTES | IOBAND_RECURSIVE),
	IOBAND_V1_STAT("throttle.io_serviced_recursive", IOBAND_IOS | IOBAND_RECURSIVE),
	IOBAND_V1_STAT("io_service_bytes", IOBAND_BYTES),
	IOBAND_V1_STAT("io_serviced", IOBAND_IOS),
	IOBAND_V1_STAT("io_service_bytes_recursive", IOBAND_BYTES | IOBAND_RECURSIVE),
	IOBAND_V1_STAT("io_serviced_recursive", IOBAND_IOS | IOBAND_RECURSIVE),
	IOBAND_V1_STAT("sectors_recursive", IOBAND_NOTHING),
	IOBAND_V1_STAT("time_recursive", IOBAND_NOTHING),
	IOBAND_V1_STAT("io_queued_recursive", IOBAND_NOTHING),
	IOBAND_V1_STAT("io_merged_recursive", IOBAND_NOTHING),
	IOBAND_V1_STAT("io_service_time_recursive", IOBAND_NOTHING),
	IOBAND_V1_STAT("io_wait_time_recursive", IOBAND_NOTHING),
	{ }	/* terminate */
};
