/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_H
#define IOBAND_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/u64_stats_sync.h>
#include <linux/workqueue.h>

#include "../blk-cgroup.h"
#include "../blk-cgroup-rwstat.h"
#include "ent.h"
#include "hooks.h"
#include "rate.h"
#include "sharer.h"

/*
 * The map of ioband.  A bio travels admit.c, queue.c, dispatch.c,
 * complete.c and pays by charge.c;
 * rules come in through files.c and rule.c; policy.c has the essay.
 *
 * Lock order, outermost first:
 *
 *	q->rq_qos_mutex		serialises rule writes on one device
 *	q->blkcg_mutex
 *	q->queue_lock		the blkg tree: grp->dir[].lim and .up change here
 *	blkcg->lock
 *	dev->lock		leaf, irqs off: everything that waits
 *
 * Invariants:
 *
 *  I1	A bio is in exactly one place: with its submitter, in one group's fifo,
 *	in one CPU's released list, or below us.  All moves between ours are under
 *	dev->lock.
 *  I2	A bio in a fifo or a released list keeps its reference on its blkg, and
 *	that one on its parents: every group that a waiting bio can meet exists.
 *  I3	Nothing is held on a device once dev->dead is set.
 *  I4	A rule's rates never change; a new rule replaces it.  Its TAT is taken
 *	over by exchanging it for IOBAND_TIME_MAX, so that whoever still sees the
 *	old rule cannot charge it, and asks again under dev->lock.
 *  I5	A non-empty fifo has its source in the ready tree of its gate; a gate with
 *	something ready is in the ready tree of the gate above if its own limits
 *	let the head go now, else in dev->timed, keyed by when they will.
 *  I6	What a bio pays, it pays at all its gates or at none.
 *  I7-I9 are in sharer.h.
 */

struct ioband_dev;

enum ioband_unit {
	IOBAND_BYTES,
	IOBAND_IOS,
	IOBAND_NR_UNITS,
};

/* What a CPU has in hand of something without limit: for decades. */
#define IOBAND_PLENTY		(U64_MAX / 2)

/* per CPU and rule: what this CPU has paid for and not used yet */
struct ioband_reserve {
	u64			left[IOBAND_NR_UNITS];	/* units in hand */
	u64			rem[IOBAND_NR_UNITS];	/* see ioband_cost() */
};

struct ioband_bucket {
	struct ioband_rate	rate;
	atomic64_t		tat;
	u64			rem;	/* dev->lock, see ioband_cost() */
};

/* per group, device and direction: the limits of one gate; I4, RCU */
struct ioband_rule {
	struct ioband_reserve __percpu *reserve;
	bool			closed;	/* reserves are, see IOBAND_RESERVE_NS */
	struct ioband_bucket	bucket[IOBAND_NR_UNITS];
	s64			closed_until;	/* dev->lock */
	s64			since;	/* earlier arrivals: TAT knows of them */
	struct rcu_head		rcu;
};

/* per group, device and direction */
struct ioband_dir {
	struct ioband_grp	*grp;	/* whose dir[] we are in */

	/*
	 * What every bio reads.  Changes under queue_lock and dev->lock; only
	 * the first ioband_link() of a group needs just queue_lock.
	 */
	struct ioband_rule __rcu *rule;
	struct ioband_dir	*lim;	/* the nearest gate: us or above */
	struct ioband_dir	*up;	/* the next one above us */

	/* what waits: dev->lock */
	struct ioband_ent	gate;
	struct ioband_ent	source;
	struct bio_list		fifo;
	struct list_head	active;	/* in dev->active[] while fifo has bios */
	unsigned int		held;	/* bios in fifo */
	s64			held_since;
	s64			held_ns;	/* total, of earlier times */
	u64			nr_throttled;	/* bios ever held */

	/* what the bio being dispatched pays here: dev->lock */
	struct {
		s64		cost;
		u64		rem;
	} bill[IOBAND_NR_UNITS];

	/* as written by the user, U64_MAX for none: queue_lock */
	u64			limit[IOBAND_NR_UNITS];
};

/* per CPU and group: the v1 statistics, by ioband_stat_kind() */
#define IOBAND_STAT_KINDS	6

struct ioband_stat {
	struct u64_stats_sync	sync;
	u64_stats_t		cnt[IOBAND_STAT_KINDS][IOBAND_NR_UNITS];
};

/* per group and device */
struct ioband_grp {
	struct blkg_policy_data	pd;	/* first */
	struct ioband_dev	*dev;
	struct ioband_stat __percpu *stat;	/* NULL where v2 counts */
	bool			careful;	/* no fast path: zoned or offline */
	bool			offline;	/* dev->lock: the cgroup is removed */
	struct ioband_dir	dir[2];	/* READ, WRITE */

	struct ioband_ent	debt;	/* dev->lock: while user space is delayed */
	s64			boosted_until;	/* dev->lock, see ioband_boost() */
	s64			owed_until;	/* by owned bios: dev->lock to write */
	struct ioband_share	share;
};

/* per CPU and device: bios on their way out */
struct ioband_out {
	struct ioband_dev	*dev;
	struct bio_list		bios;	/* dev->lock */
	struct work_struct	work;
};

/* per CPU and device: bios that passed the share gate without its lock */
struct ioband_passed {
	long			infl;	/* those that came here less those that ended here */
	long			most;	/* of infl before it looks: dev->lock */
	unsigned int		nr;	/* passed since it looked: this CPU */
};

/* per device that has or had a rule */
struct ioband_dev {
	struct gendisk		*disk;
	struct request_queue	*q;
	/* our own: a rescuer must not wait for a device above or below */
	struct workqueue_struct	*wq;
	struct ioband_out __percpu *out;

	struct kref		ref;	/* one is the disk's, one each group's */
	bool			ready;	/* all its groups are there */

	/* who need not wait, see bypass.c: read by all, changes under the lock */
	struct ioband_grp	*solo;	/* alone for a while: passes */
	bool			open;	/* all pass */
	bool			draining;	/* see ioband_uncounted() */
	struct ioband_passed __percpu *passed;

	/* of what follows, and of what waits */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	bool			dead;
	unsigned int		zoned_out;	/* zone writes sent, not submitted */
	struct rb_root_cached	timed;	/* gates and debts by time */
	struct ioband_ent	top[2];
	struct list_head	active[2];	/* dirs with a non-empty fifo */
	s64			armed;	/* when the timer fires, else S64_MAX */
	struct hrtimer		timer;
	struct work_struct	work;
	struct ioband_sharer	share;
};

/* how to read "MAJOR:MINOR BODY", and what to do then */
struct ioband_line {
	int	(*parse)(struct ioband_line *line, char *body);
	void	(*apply)(struct ioband_line *line, struct ioband_grp *grp);
	bool	wants;	/* set by parse: more than who never had a rule has */
};

extern struct blkcg_policy blkcg_policy_ioband;

static inline struct ioband_grp *pd_to_grp(struct blkg_policy_data *pd)
{
	return pd ? container_of(pd, struct ioband_grp, pd) : NULL;
}

static inline struct ioband_grp *blkg_to_grp(struct blkcg_gq *blkg)
{
	return pd_to_grp(blkg_to_pd(blkg, &blkcg_policy_ioband));
}

/* of sharer->queued or ->flying */
static inline struct ioband_grp *node_to_grp(struct rb_node *node)
{
	return rb_entry_safe(node, struct ioband_grp, share.node);
}

/*
 * A device that is not ready may still fail to become so, and take its groups with
 * it: an RCU read side holds that off.  One that is stays while bios have its blkgs.
 */
static inline bool ioband_is_ready(struct ioband_grp *grp)
{
	/* pairs with ioband_pd_init() */
	struct ioband_dev *dev = smp_load_acquire(&grp->dev);

	return dev && READ_ONCE(dev->ready);
}

/* Is there any weight that concerns this device? */
static inline bool ioband_has_weights(const struct ioband_dev *dev)
{
	return atomic_read(&ioband_nr_weights) || READ_ONCE(dev->share.nr_own);
}

/* dev->lock held */
static inline void ioband_used(struct ioband_grp *grp, u64 cost, s64 now)
{
	ioband_use(&grp->dev->share.used, ioband_second(now), cost);
	ioband_use(&grp->share.used, ioband_second(now), cost);
}

/*
 * The group whose limits bind this one too: on the default hierarchy its parent
 * if that has our data yet, on v1 none.
 */
static inline struct ioband_grp *ioband_parent(struct ioband_grp *grp)
{
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
		return NULL;
	return blkg_to_grp(pd_to_blkg(&grp->pd)->parent);
}

static inline struct ioband_rule *ioband_gate_rule(struct ioband_dir *gate)
{
	return rcu_dereference_protected(gate->rule,
					 lockdep_is_held(&gate->grp->dev->lock));
}

/* Does anybody wait at a gate?  dev->lock for a lasting answer. */
static inline bool ioband_crowded(const struct ioband_dir *gate)
{
	return READ_ONCE(gate->gate.ready.rb_root.rb_node);
}

/* {read, write, discard} x {async, sync}; reads are all sync, see the reader */
static inline unsigned int ioband_stat_kind(blk_opf_t opf)
{
	unsigned int op = (__force unsigned int)(opf & REQ_OP_MASK);
	unsigned int sync = !!(opf & (REQ_SYNC | REQ_FUA | REQ_PREFLUSH));
	unsigned int kind = op & 1 ? BLKG_IOSTAT_WRITE : BLKG_IOSTAT_READ;

	if (unlikely(op == (__force unsigned int)REQ_OP_DISCARD))
		kind = BLKG_IOSTAT_DISCARD;
	return kind * 2 + sync;
}

/*
 * While it is held a bio says here when it came and on which CPU, to go out
 * from there: nobody below has seen it yet.
 */
static inline void ioband_stamp(struct bio *bio, s64 now, unsigned int cpu)
{
	bio->issue_time_ns = now;
	bio->bi_iocost_cost = cpu;
}

static inline void ioband_unstamp(struct bio *bio)
{
	bio->bi_iocost_cost = 0;
}

static inline unsigned int ioband_cpu(const struct bio *bio)
{
	return bio->bi_iocost_cost;
}

static inline s64 ioband_arrival(const struct bio *bio)
{
	return bio->issue_time_ns;
}

/* Writes to a zone must stay in order, until they are submitted. */
static inline bool ioband_in_order(const struct bio *bio)
{
	return bdev_is_zoned(bio->bi_bdev) && op_is_write(bio->bi_opf);
}

/**
 * ioband_units - what a bio counts for
 * @bio:	the bio
 * @unit:	bytes or I/Os
 *
 * Bytes count once for a bio, however it is split, I/Os for each piece.
 *
 * Return: units, 0 if this limit does not concern @bio.
 */
static inline u32 ioband_units(const struct bio *bio, enum ioband_unit unit)
{
	if (unit == IOBAND_IOS)
		return 1;
	if (bio_flagged(bio, BIO_BPS_THROTTLED))
		return 0;
	/* no data moves: count the command as a sector, as mainline does */
	if (bio_op(bio) == REQ_OP_DISCARD)
		return SECTOR_SIZE;
	return bio->bi_iter.bi_size;
}

/* charge.c */
bool ioband_take(struct ioband_bucket *b, s64 cost, s64 arrival, s64 now);
bool ioband_pay(struct ioband_dir *dir, struct bio *bio, s64 now);
void ioband_owe(struct ioband_grp *grp, struct bio *bio, s64 now);
s64 ioband_due(struct ioband_dir *dir, struct bio *bio, s64 now);
s64 ioband_bio_when(struct ioband_dir *gate, struct bio *bio);
bool ioband_bio_saves(struct ioband_dir *gate, struct bio *bio);
s64 ioband_bio_share(struct ioband_dir *gate, struct bio *bio);
s64 ioband_debt_end(struct ioband_grp *grp);
s64 ioband_dir_debt_end(struct ioband_dir *dir);
bool ioband_is_bound(struct ioband_dir *dir, const struct bio *bio);
bool ioband_is_crowded(struct ioband_dir *dir);
void ioband_reopen(struct ioband_dir *dir, s64 now);

/* admit.c */
bool ioband_must_pass(struct bio *bio);

/* queue.c */
void ioband_hold(struct ioband_dir *dir, struct bio *bio, s64 now);
struct bio *ioband_next(struct ioband_dev *dev, int rw, s64 now, s64 *due);
void ioband_drain(struct ioband_dir *dir, struct bio_list *bios, s64 now);
void ioband_undrain(struct ioband_dir *dir, struct bio_list *bios, s64 now);
void ioband_attach(struct ioband_dir *dir, s64 now);
void ioband_detach(struct ioband_dir *dir);
void ioband_place(struct ioband_dev *dev, struct ioband_ent *ent, s64 now);
void ioband_time(struct ioband_dev *dev, struct ioband_ent *ent, s64 when);
void ioband_untime(struct ioband_dev *dev, struct ioband_ent *ent);
struct ioband_ent *ioband_expire(struct ioband_dev *dev, s64 now);

/* dispatch.c */
void ioband_kick(struct ioband_dev *dev, s64 now);
void ioband_send(struct ioband_dev *dev, struct bio *bio, s64 now, s64 due);
void ioband_send_from(struct ioband_dev *dev, struct bio *bio, unsigned int cpu);
void ioband_delay(struct ioband_grp *grp, s64 cost, s64 now);
void ioband_removed(struct ioband_grp *grp);
struct ioband_dev *ioband_dev_alloc(struct gendisk *disk);
void ioband_dev_free(struct ioband_dev *dev);
void ioband_dev_get(struct ioband_dev *dev);
void ioband_dev_put(struct ioband_dev *dev);

/* rule.c */
struct ioband_rule *ioband_rule_alloc(void);
void ioband_rule_free(struct ioband_rule *rule);
void ioband_set_limits(struct ioband_grp *grp, int rw,
		       const u64 limit[IOBAND_NR_UNITS],
		       struct ioband_rule **spare);
void ioband_link(struct ioband_grp *grp, int rw);
void ioband_link_removed(struct ioband_grp *grp);

/* policy.c */
int ioband_activate(struct gendisk *disk);
void ioband_activated(struct gendisk *disk);

/* writeback.c */
int ioband_own_pages(struct blkcg *blkcg);
bool ioband_is_owned(struct bio *bio);
bool ioband_may_be_awaited(struct bio *bio);

/* files.c */
int ioband_parse_u64(const char *str, u64 *val);
int ioband_write_line(struct blkcg *blkcg, char *buf, struct ioband_line *line);
extern struct cftype ioband_files[];
extern struct cftype ioband_legacy_files[];

/* stat.c */
void ioband_print_stat(struct blkg_policy_data *pd, struct seq_file *sf);
void ioband_reset_stats(struct blkg_policy_data *pd);
void ioband_share_parts(struct ioband_grp *grp, u64 *asked, u64 *got);
int ioband_print_rwstat(struct seq_file *sf, void *v);
int ioband_print_rwstat_recursive(struct seq_file *sf, void *v);

/* debugfs.c */
#ifdef CONFIG_BLK_DEBUG_FS
void ioband_debugfs_register(struct gendisk *disk);
#else
static inline void ioband_debugfs_register(struct gendisk *disk) { }
#endif

#endif /* IOBAND_H */
