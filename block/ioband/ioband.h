/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_H
#define IOBAND_H

#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/u64_stats_sync.h>
#include <linux/workqueue.h>

#include "../blk-cgroup-rwstat.h"
#include "bio.h"
#include "ent.h"
#include "limits/rule.h"
#include "shares/shares.h"

/*
 * policy.c describes the model, and which files a bio meets.
 *
 * Lock order, outermost first:
 *
 *	q->rq_qos_mutex		serialises writes to control files for one device
 *	ioband_ready_mutex	held while a device gets ready; nobody waits for I/O under it
 *	q->blkcg_mutex
 *	q->queue_lock		the blkg tree
 *	blkcg->lock
 *	dev->lock		irqs off: all that waits, and the gates; below it flow->lock only
 *
 * Invariants:
 *
 *  I1	A bio is in exactly one place: with its submitter, in one group's fifo, in one list
 *	of dispatched bios that a worker submits, or in a layer below ioband.  It moves
 *	between places of ioband under dev->lock.
 *  I2	A bio in a fifo or a list of dispatched bios keeps its reference on its blkg, and
 *	the blkg keeps references on its parents: every group that a waiting bio can meet
 *	exists.
 *  I3	No limit and no weight holds a bio on a device after dev->dead is set.  A disk that
 *	is being removed is marked first; then ioband_let_go() waits for ioband_ready_mutex
 *	and sets dev->dead.  A disk with the mark gets no device any more.
 *  I4	The rates of a gate change under dev->lock, rates first, the TAT next, the mask of limits
 *	last.  A bio that is charged without the lock may pay the old price, but compares
 *	with a burst that is no older than the TAT which it changes.
 *  I5	A non-empty fifo has its source in the ready tree of its gate.  A gate with an
 *	entity in its ready tree is itself in the ready tree of the gate above if its own
 *	limits let its first bio pass now; else it is in dev->timed, by the time when they
 *	will.
 *  I6	A bio pays at all its gates or at none.
 *  I7-I9, I13 and I14 are in shares.h, I15 is in saved.c.
 *  I10	While dir->gen equals dev->gen, dir->lim and the ->up of the gates above lead to
 *	all gates on the way to the root, and held bios of dir wait at those.  A gate that
 *	comes or goes changes dev->gen only; each group looks up its gates again before its
 *	next bio is admitted or dispatched.
 *  I11	No write to a sequential zone is held: another one could overtake it.
 *  I12	While a bio waits at a gate, no other passes it there, except one that was being charged
 *	when the first bio began to wait.
 *  I16	A limit is never in debt: its TAT is a burst from now at most.  What passes without being
 *	paid for is owed by a ticket in the fifo of its group, which pays when it is its turn.
 *  I17	While current->ioband_free equals ioband_epoch, no limit binds the current task on any
 *	disk, and it has no debt.  The epoch changes after a gate, or a limit for all disks, has
 *	come or gone, or a task has moved to another cgroup.
 */

struct ioband_dev;

/* The most bios or groups that are handled in one hold of dev->lock. */
#define IOBAND_QUANTUM		64
/*
 * The deepest level of a cgroup that can have limits: a bio is charged at each gate above its
 * group, and other CPUs wait for dev->lock meanwhile.
 */
#define IOBAND_MAX_LEVEL	64

/* per group, device and direction */
struct ioband_dir {
	struct ioband_grp	*grp;	/* the group that has this in its dir[] */

	/* every bio reads these, up to rule.bucket; they change under dev->lock */
	struct ioband_dir	*lim;	/* the nearest gate: this or one above */
	struct ioband_dir	*up;	/* if this is a gate: the next gate above */
	unsigned int		gen;	/* dev->gen when lim was looked up: I10 */
	struct ioband_rule	rule;	/* a gate has limits */

	/* held bios, and debts: dev->lock */
	struct ioband_ent	gate;
	struct ioband_ent	source;
	struct bio_list		fifo;
	struct list_head	active;	/* in dev->active[] while bios are held */
	unsigned int		held;	/* bios and tickets in fifo */
	u64			held_units[IOBAND_NR_UNITS];	/* what they are to pay */
	u64			owed_units[IOBAND_NR_UNITS];	/* of these, debts */
	u64			owed_below[IOBAND_NR_UNITS];	/* and those of groups below */
	s64			held_since;	/* ns, if held is not 0 */
	s64			held_ns;	/* ns with held bios, before held_since */
	u64			nr_throttled;	/* bios, and tickets but debts, ever held */
	u64			nr_owed;	/* bios ever passed as a debt */
	struct ioband_ticket	ghost;	/* the debt that is no task's, see debt.c */

	/* set for this device, U64_MAX: no limit, 0: the cgroup's for all devices: queue_lock */
	u64			own[IOBAND_NR_UNITS];
	/* in effect, U64_MAX: no limit: dev->lock to write */
	u64			limit[IOBAND_NR_UNITS];
};

/* per CPU and group: the v1 statistics */
struct ioband_stat {
	struct u64_stats_sync	sync;
	u64_stats_t		cnt[BLKG_RWSTAT_NR][IOBAND_NR_UNITS];
};

/* per CPU and group: device time that it has bought, see lease.c: this CPU */
struct ioband_lease {
	s64			left;	/* ns << 8 */
	unsigned int		nr;	/* valid while dev->lease_nr is this */
};

/* per group, device and unit: what is saved for writes of dirty pages, I15; dev->lock */
struct ioband_saved {
	u64			units;		/* U64_MAX: there is no limit */
	s64			at_ns;		/* until when unused units have been saved */
	u64			need_bytes;	/* dirty pages whose writes are to be paid */
	s64			need_at_ns;	/* when need_bytes was found */
};

/* per group and device */
struct ioband_grp {
	struct blkg_policy_data	pd;	/* first */
	struct ioband_dev	*dev;	/* set before the group is published */
	struct ioband_stat __percpu *stat;	/* NULL on v2, which has its own */
	struct ioband_lease __percpu *lease;
	bool			offline;	/* dev->lock: the cgroup is removed */
	struct ioband_dir	dir[2];	/* READ, WRITE */

	/* for writes of dirty pages, see writeback.c: dev->lock to write */
	unsigned int		limits_nr;	/* how often limits of writes began */
	unsigned int		io_bytes;	/* average length of such a write */
	s64			owed_at_ns;	/* when one, or a driver's I/O, last was unpaid */
	struct ioband_saved	saved[IOBAND_NR_UNITS];
	unsigned int		saved_at;	/* when ioband_save() last did something; 2^20 ns */
	struct ioband_share	share;
} __aligned(IOBAND_CARRY_MASK + 1);

/* per device, direction and several CPUs: dispatched bios, which a worker submits */
struct ioband_out {
	struct ioband_dev	*dev;
	struct bio_list		bios;	/* dev->lock */
	unsigned int		carried;	/* how many the share gate dispatched */
	struct work_struct	work;
};

/* what is counted for a cgroup, on all disks and in both directions */
enum ioband_counter {
	IOBAND_LIMITED,		/* its limits; those for all devices count as one */
	IOBAND_SLOW,		/* of these, below IOBAND_DOOR_BYTES a second */
	IOBAND_LINES,		/* its fifos in which bios or tickets wait */
	IOBAND_NR_COUNTERS,
};

/* the index of a limit; each v1 file has one limit */
#define IOBAND_FILE(rw, unit)	((rw) * IOBAND_NR_UNITS + (unit))
#define IOBAND_NR_FILES		IOBAND_FILE(2, 0)

/* per cgroup: settings for all devices; blkcg->lock to write */
struct ioband_blkcg {
	struct blkcg_policy_data cpd;	/* first */
	u32			weight[IOBAND_WEIGHTS];	/* 0 for the default */
	u64			limit[IOBAND_NR_FILES];	/* 0 for none */
	atomic_t		nr[IOBAND_NR_COUNTERS];
};

/* the number of cgroups that have limits for all devices */
extern atomic_t ioband_nr_defaults;

/* Has a cgroup limits for all devices? */
static inline bool ioband_has_default(const struct ioband_blkcg *b)
{
	return b->limit[0] || b->limit[1] || b->limit[2] || b->limit[3];
}

/* per CPU and device: bios that passed the share gate without its lock */
struct ioband_passed {
	long			infl;	/* bios that passed here, less those that completed here */
	long			most;	/* from this infl on a bio has to look: dev->lock */
	unsigned int		nr;	/* bios that passed since the last look */
	unsigned long		look;	/* jiffies when a bio has to look again: this CPU */
};

/* per disk that has or had a setting of its own, or was open while some were for all disks */
struct ioband_dev {
	/* every bio reads these; they change under the lock */
	unsigned int		gen[2];	/* changes with the gates: I10; 0: no gate yet */
	bool			ready;	/* all its groups exist */
	bool			weights_off;	/* see files/devices.c */

	struct gendisk		*disk;
	struct request_queue	*q;
	/* one per device: its rescuer must not wait for a device above or below */
	struct workqueue_struct	*wq;
	struct ioband_out	*out;	/* see ioband_out_of() */

	struct kref		ref;	/* one for the disk, and one for each group */

	/*
	 * bios that need not wait, see bypass.c: each bio reads these; they change under the lock
	 */
	struct ioband_grp	*solo;	/* the group that is alone: its bios pass ... */
	bool			solo_all;	/* ... and its writeback as well */
	bool			open;	/* all bios pass */
	bool			leasing;	/* bios pass for which device time was bought */
	unsigned int		lease_nr;	/* how often leases began */
	bool			draining;	/* see ioband_uncounted() */
	struct ioband_passed __percpu *passed;

	/* protects what follows, and everything that waits */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	bool			dead;
	struct rb_root_cached	timed;	/* gates by time */
	struct ioband_ent	top[2];
	struct list_head	active[2];	/* dirs with a non-empty fifo */
	s64			changed;	/* when limits last changed: no bio is due before */
	s64			armed;	/* when the timer fires, S64_MAX if it is not set */
	s64			slack_ns;	/* by which the timer is set late */
	struct hrtimer		timer;
	struct work_struct	work;
	struct ioband_sharer	share;
};

/* the limits in one write to a control file: U64_MAX: no limit, 0: that for all devices */
struct ioband_limits {
	bool	set[IOBAND_NR_FILES];
	u64	limit[IOBAND_NR_FILES];
};

/* how to parse a line "MAJOR:MINOR BODY", and how to apply it */
struct ioband_line {
	int	(*parse)(struct ioband_line *line, char *body);
	void	(*apply)(struct ioband_line *line, struct ioband_grp *grp);
	bool	check;	/* find out whether the line is valid, and change nothing */
	bool	wants;	/* set by parse: the line sets something, and not only removes it */
	bool	owns;	/* set by parse: the dirtiers of pages have to be known for that */
};

/*
 * Does the share gate stand aside, because weights are off for the disk, or because BFQ shares it?
 * Only BFQ sets this flag of the queue, while it is the scheduler, to keep wbt out of its way.
 */
static inline bool ioband_is_aside(const struct ioband_dev *dev)
{
	return unlikely(READ_ONCE(dev->weights_off)) ||
	       (unlikely(blk_queue_disable_wbt(dev->q)) && rcu_access_pointer(ioband_bfq));
}

/*
 * Between dispatch and submission, is a bio only on its way, and not in the device yet?  If
 * submission may wait for devices below, it counts as in the device.
 */
static inline bool ioband_has_way(const struct ioband_dev *dev)
{
	return queue_is_mq(dev->q);
}

extern struct blkcg_policy blkcg_policy_ioband;

static inline struct ioband_grp *pd_to_grp(struct blkg_policy_data *pd)
{
	return pd ? container_of(pd, struct ioband_grp, pd) : NULL;
}

static inline struct ioband_grp *blkg_to_grp(struct blkcg_gq *blkg)
{
	return pd_to_grp(blkg_to_pd(blkg, &blkcg_policy_ioband));
}

/*
 * While a device is not ready, its activation may fail, and its groups are freed after an RCU
 * grace period.  The groups of a ready device exist while bios have references on their blkgs.
 */
static inline bool ioband_is_ready(const struct ioband_grp *grp)
{
	return READ_ONCE(grp->dev->ready);
}

/* Does any weight apply to this device? */
static inline bool ioband_has_weights(const struct ioband_dev *dev)
{
	return atomic_read(&ioband_nr_weights) || READ_ONCE(dev->share.nr_own);
}

/* The cgroup whose limits also apply to a cgroup: on the default hierarchy its parent. */
static inline struct cgroup_subsys_state *ioband_css_above(struct cgroup_subsys_state *css)
{
	return cgroup_subsys_on_dfl(io_cgrp_subsys) ? css->parent : NULL;
}

/* Does any cgroup have limits for all devices? */
static inline bool ioband_has_defaults(void)
{
	return atomic_read(&ioband_nr_defaults);
}

static inline struct ioband_blkcg *ioband_blkcg(struct blkcg *blkcg)
{
	return container_of(blkcg_to_cpd(blkcg, &blkcg_policy_ioband),
			    struct ioband_blkcg, cpd);
}

/* Count something of a group for its cgroup; groups of KUnit tests have none. */
static inline void ioband_count(struct ioband_dir *dir, enum ioband_counter what, int change)
{
	struct blkcg_gq *blkg = pd_to_blkg(&dir->grp->pd);

	if (blkg)
		atomic_add(change, &ioband_blkcg(blkg->blkcg)->nr[what]);
}

/* The limit of a group's cgroup for all devices, units a second; 0 for no limit. */
static inline u64 ioband_default_limit(const struct ioband_grp *grp, int rw, int unit)
{
	/* groups of KUnit tests have no cgroup */
	if (!ioband_has_defaults())
		return 0;
	return READ_ONCE(ioband_blkcg(pd_to_blkg((void *)&grp->pd)->blkcg)
			 ->limit[IOBAND_FILE(rw, unit)]);
}

/* Let a bio pass without the lock.  It is only counted, I7. */
static __always_inline void ioband_pass(struct ioband_dev *dev, struct bio *bio)
{
	this_cpu_inc(dev->passed->infl);
	bio->bi_iocost_cost = (uintptr_t)dev | IOBAND_CARRY_PASSED;
}

/* Account for device time that a group uses, ns << 8.  dev->lock held. */
static inline void ioband_used(struct ioband_grp *grp, u64 cost, s64 now)
{
	ioband_use(&grp->dev->share.used, ioband_second(now), cost);
	ioband_use(&grp->share.used, ioband_second(now), cost);
}

/*
 * The next group whose limits apply to this one, too: on the default hierarchy its parent, if
 * that has a group on the device yet; on v1 none.
 */
static inline struct ioband_grp *ioband_parent(struct ioband_grp *grp)
{
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
		return NULL;
	return blkg_to_grp(pd_to_blkg(&grp->pd)->parent);
}

/*
 * How late a held bio may be dispatched where timers expire at ticks, as with highres=off: one
 * tick, and one more until the woken worker has run.  The burst of each limit is larger by this
 * much there; otherwise each I/O would lose the time that the ticks take.
 */
static inline s64 ioband_ticks_ns(void)
{
	return hrtimer_resolution >= IOBAND_LATE_NS ? 2 * (s64)hrtimer_resolution : 0;
}

/*
 * The state in which a task waits for a debt.  A worker of io_uring wakes up if it is asked to
 * end, since other tasks wait for that; if a signal is pending already, it sleeps on.  The position
 * of a file that tasks have open together may be locked, see door.c.
 */
static inline unsigned int ioband_repay_state(void)
{
	bool worker = (current->flags & PF_IO_WORKER) && !signal_pending(current);

	return (worker ? TASK_INTERRUPTIBLE : TASK_KILLABLE) | TASK_FREEZABLE_UNSAFE;
}

/* Do bios wait at a gate or at one above?  Without dev->lock the answer may change at any time. */
static __always_inline bool ioband_is_crowded(const struct ioband_dir *gate)
{
	for (; gate; gate = READ_ONCE(gate->up))
		if (READ_ONCE(gate->gate.ready.rb_root.rb_node))
			return true;
	return false;
}

static inline int ioband_rw(const struct ioband_dir *dir)
{
	return dir - dir->grp->dir;
}

/* As ioband_is_stale(), for a caller that knows the device and the direction. */
static __always_inline bool ioband_is_older(const struct ioband_dir *dir,
					    const struct ioband_dev *dev, unsigned int rw)
{
	/* pairs with ioband_link() */
	return smp_load_acquire(&dir->gen) != READ_ONCE(dev->gen[rw]);
}

/* Have gates come or gone since a group looked up its gates?  I10 */
static inline bool ioband_is_stale(const struct ioband_dir *dir)
{
	return ioband_is_older(dir, dir->grp->dev, ioband_rw(dir));
}

/* dispatch.c */
int ioband_timer_init(void);
void ioband_time(struct ioband_dev *dev, struct ioband_ent *ent, s64 when);
void ioband_untime(struct ioband_dev *dev, struct ioband_ent *ent);
void ioband_kick(struct ioband_dev *dev, s64 now);
extern struct mutex ioband_ready_mutex;
struct ioband_dev *ioband_dev_alloc(struct gendisk *disk);
void ioband_dev_free(struct ioband_dev *dev);
void ioband_dev_put(struct ioband_dev *dev);

/* submit.c */
void ioband_send(struct ioband_dev *dev, struct bio *bio, s64 now, s64 due);
void ioband_send_from(struct ioband_dev *dev, struct bio *bio, unsigned int cpu, int rw);
void ioband_submit(struct ioband_dev *dev, struct bio *bio, bool fail);
bool ioband_outs_init(struct ioband_dev *dev);

/* policy.c */
int ioband_activate(struct gendisk *disk);
void ioband_activated(struct gendisk *disk);

/* ready.c */
int ioband_ready_all(atomic_t *nr);
void ioband_share_begin(void);

#include "files/files.h"
#include "limits/limits.h"
#include "writeback/writeback.h"

#endif /* IOBAND_H */
