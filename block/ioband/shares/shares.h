/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_SHARES_H
#define IOBAND_SHARES_H

/*
 * Shares: what the files of this folder keep per group and device.
 *
 * A bio that has passed its limits comes to bypass.c, which lets it pass without dev->lock while
 * its group is alone or the device is not saturated (open.c), or if its group has bought device
 * time for it (lease.c).  bfq.c has the disks that BFQ shares instead.  gate.c decides on all other
 * bios.  tree.c knows which group is first and which groups have had more than others; owe.c, who
 * waits for bios that passed out of turn; await.c, for which groups others have to wait; hang.c,
 * whose I/Os hang.  give.c dispatches a bio, and those that continue it on the disk.  observe.c
 * learns from completions.  weight.c has the weights.  The arithmetic is in math/: share.h, cost.h
 * with cost_filter.h, depth.h with depth_done.h, window.h, worth.h and overdue.h.
 *
 * Invariants, all under dev->lock:
 *
 *  I7	Until it completes or returns to the share gate, a dispatched bio carries its group in
 *	bi_iocost_cost, and a reference on the blkg of that group: whatever device the bio is
 *	remapped to, it is taken off the account of that group, once.  A bio that passed
 *	without the lock carries the device instead, which exists while the disk is open.
 *  I8	Unless a group is stuck, its own node is QUEUED exactly while one of its fifos is
 *	not empty.  While both are empty the node is FLYING if the group has a bio in flight,
 *	is awaited, or has a lease (I14), else AWAY.  A node is in a tree of the node above
 *	exactly while it is QUEUED or FLYING.  A node with nodes below is QUEUED while one of
 *	these is, else FLYING while one of these is.
 *  I13	A group is stuck if none of its bios in flight has completed for too long.  These
 *	bios are counted in sharer->stuck, and take up no room in the device.  The group is in
 *	->hung, which alone decides when its next bio is dispatched.  The next completion of
 *	one of its bios ends this.
 *  I14	While dev->leasing is set, bios pass that are paid for by what their group has bought
 *	on their CPU: ioband_lease.left, valid for dev->lease_nr.  The group was charged for it
 *	under dev->lock, and then is FLYING for a while, in sharer->leased.  A group that is
 *	offline is not in that list.
 *  I9	While any bio is queued, a bio is in flight or the timer is set.  Bios that passed
 *	without the lock count as in flight: their completion reads dev->draining after it
 *	has updated dev->passed, and that flag is set before dev->passed is summed up.
 */

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#include "../../blk-cgroup.h"
#include "../math/depth.h"
#include "../ent.h"
#include "../math/overdue.h"
#include "../math/share.h"
#include "../math/worth.h"

struct ioband_dev;
struct ioband_grp;

enum ioband_where {
	IOBAND_AWAY,		/* not active */
	IOBAND_QUEUED,		/* bios wait here */
	IOBAND_FLYING,		/* no bio waits, but some are in flight, or the group is awaited */
	IOBAND_STUCK,		/* its bios in flight hang, I13 */
};

/*
 * A node in the tree of groups: a group among its siblings, or a group's own I/O among the groups
 * below it.  dev->lock.
 */
struct ioband_node {
	struct ioband_node	*above;		/* NULL for the root, which is the device */
	struct rb_node		node;		/* in ->queued or ->flying of @above */
	enum ioband_where	where;
	u64			tag;		/* start tag of the next I/O, ns << 8 */
	u64			due;		/* @tag without what is forgiven, see owe.c */
	s64			owed_until_ns;	/* @due does not count from then on */
	u32			weight;
	u64			inv;		/* inverse of the weight, see ioband_charge_tag() */
	s64			left_ns;	/* when the node was last active, ns */

	/* of the nodes below */
	struct rb_root_cached	queued;		/* by tag */
	struct rb_root_cached	flying;		/* by tag */
	u64			vtime;		/* virtual time, ns << 8, as their tags */
	u64			vstep;		/* average step of vtime, ns << 8 */
	u64			active_sum;	/* sum of the weights of active nodes */
};

/* The weights of a cgroup; each can be overridden for a device. */
enum ioband_weight {
	IOBAND_WEIGHT,		/* among its siblings */
	IOBAND_LEAF_WEIGHT,	/* of its own I/O among the groups below, v1 */
	IOBAND_WEIGHTS,
};

/* per group and device: its share; dev->lock */
struct ioband_share {
	struct ioband_node	own;		/* the group's own I/O */
	struct ioband_node	all;		/* own I/O and groups below; not of the root */
	u32			weight;		/* the weight in effect */
	u32			leaf;		/* weight of its own I/O; 0: the default */
	u32			own_weight[IOBAND_WEIGHTS];	/* set for this device; 0: none */

	struct bio_list		fifo[2];	/* waiting bios: sync, and writeback */
	unsigned int		turn;		/* of these two, see ioband_next_fifo() */
	unsigned int		infl;		/* bios in flight */
	struct list_head	busy;		/* in ->busy or ->hung of the sharer */
	s64			progress_ns;	/* since then no bio has completed, ns */
	s64			probe_ns;	/* if stuck: when one more bio may go, ns */
	struct ioband_overdue_io	overdue;	/* its I/O in flight */
	s64			owed_until_ns;	/* its tasks that made a debt wait until then */
	s64			hurry_until_ns;	/* its writeback passes until then */

	/* how long the group takes from a completion to its next bio */
	unsigned int		nr_back;	/* completions that no bio has followed yet */
	unsigned int		nr_think;
	s64			think;
	s64			think_dev;
	s64			last_done;
	s64			grace;		/* other groups wait until then, ns */
	bool			sync;		/* think is short, see ioband_is_sync() */
	struct list_head	awaited;	/* in ->awaited of the sharer */
	struct list_head	leased;		/* in ->leased of the sharer */
	s64			leased_ns;	/* when it last bought device time */

	u64			nr_waited;	/* bios that had to wait */
	s64			waited_ns;	/* sum of their waits */
	struct ioband_used	used;
};

/* per device: the groups that share it; dev->lock */
struct ioband_sharer {
	struct ioband_node	top;		/* root of the tree of groups, I8 */
	struct list_head	awaited;	/* groups without I/O that others wait for */
	struct list_head	busy;		/* groups by when a bio last completed */
	struct list_head	hung;		/* stuck groups, by ->probe_ns */
	struct list_head	leased;		/* groups by when they last bought device time */
	struct ioband_grp	*latest;	/* group of the last bio that came; only compared */
	s64			alone_since;	/* since then all bios were of ->latest, ns */
	s64			solo_after_ns;	/* how long a group is alone before it passes */
	s64			solo_since;	/* since when the group in dev->solo passes, ns */
	s64			last_wait_ns;	/* when a bio last had to wait, ns */
	s64			calm_ns;	/* the gate opens if no bio waited for this long */
	unsigned int		measured;	/* depth.windows once the device is measured */
	s64			open_since;
	s64			looked_ns;	/* when a bio last looked at the open gate, ns */
	unsigned int		looked_infl;	/* bios in flight then */
	s64			looked_mean;	/* average of these over a latency, 1 / 65536 */
	int			look_part;	/* bios that pass on a CPU between two looks */
	unsigned int		nr_opened;
	s64			closed_ns;	/* when bios last ceased to pass unlocked, ns */

	unsigned int		infl;
	unsigned int		excess;		/* bios of these for which there was no room */
	u64			credit;		/* ns << 8, see ioband_has_credit() */
	unsigned int		outstanding;	/* bios in flight or waiting here */
	unsigned int		nr_active;
	unsigned int		nr_own;		/* weights that are set for this device only */
	unsigned int		stuck;		/* bios in flight of stuck groups */
	s64			watch_ns;	/* when to look for groups that hang, ns */
	s64			hung_ns;	/* when a bio of a stuck group last completed, ns */

	s64			gap;		/* average time between completions, ns */
	s64			latency;	/* average latency, ns */
	/* see lease.c */
	u64			lease_gap_ns;	/* leases begin if ->gap is no longer than this */
	s64			lease_ns;	/* device time of all leases together, at most */
	s64			lease_since_ns;
	s64			lease_until_ns;
	s64			lease_ended_ns;	/* when leases last ended */
	s64			lease_watch_ns;	/* when the device was last found busy or not */
	s64			lease_not_ns;	/* when an I/O last did not suit leases */
	unsigned int		lease_windows;	/* depth.windows when leases last ended */
	unsigned int		lease_blocks;	/* cost.turn, likewise */

	unsigned int		on_way;		/* bios dispatched, but not yet submitted */
	s64			lag;		/* average time from dispatch to submission, ns */
	unsigned int		ahead;		/* I/Os beyond the depth, to make up for ->lag */
	s64			progress_ns;	/* last completion, or dispatch when idle, ns */
	s64			idle_since;
	s64			idle_ns;
	struct ioband_used	used;
	u64			bytes[2 * IOBAND_WINDOW_SIZES];	/* average by class, bytes << 8 */
	struct ioband_cost	cost;
	struct elevator_queue	*elevator;	/* the scheduler with which the depth was found */
	struct ioband_depth	depth;
	struct ioband_worth	worth;		/* what the gate costs */
	struct ioband_overdue	overdue;	/* what waiting for overdue I/Os does */
	struct ioband_ent	timer;		/* in dev->timed */
	s64			owed_until_ns;	/* no group owes from then on; 0: none has yet */
};

/*
 * The low six bits of bi_iocost_cost of a dispatched bio.  Beside a group they are the size class,
 * coded so that the last three bits are never IOBAND_CARRY_PASSED.  Beside a device the last three
 * bits are IOBAND_CARRY_PASSED: the bio passed without the lock, and is only counted in
 * dev->passed.
 */
#define IOBAND_CARRY_MASK	63
#define IOBAND_CARRY_PASSED	7

static inline unsigned int ioband_carry_of(unsigned int size)
{
	return size / IOBAND_CARRY_PASSED * (IOBAND_CARRY_PASSED + 1) + size % IOBAND_CARRY_PASSED;
}

static inline unsigned int ioband_carried_size(unsigned int carry)
{
	return carry / (IOBAND_CARRY_PASSED + 1) * IOBAND_CARRY_PASSED +
	       carry % (IOBAND_CARRY_PASSED + 1);
}

/* Did a bio pass without the lock? */
static inline bool ioband_carry_passed(uintptr_t carried)
{
	return carried % (IOBAND_CARRY_PASSED + 1) == IOBAND_CARRY_PASSED;
}

/* Has the share gate dispatched a bio, which its limits do not hold?  I7 */
static inline bool ioband_is_carried(const struct bio *bio)
{
	return bio->bi_iocost_cost;
}

/* Is a bio writeback, which no task waits for? */
static inline bool ioband_is_background(const struct bio *bio)
{
	return bio_op(bio) == REQ_OP_WRITE && !op_is_sync(bio->bi_opf);
}

static inline bool ioband_is_active(enum ioband_where where)
{
	return where == IOBAND_QUEUED || where == IOBAND_FLYING;
}

/* I/Os that the device has: in flight, submitted, and not stuck. */
static inline unsigned int ioband_in_device(const struct ioband_sharer *sh)
{
	unsigned int elsewhere = sh->stuck + sh->on_way;

	return sh->infl - min(elsewhere, sh->infl);
}

/* I/Os in flight that take up room: without those for which there was none, and those stuck. */
static inline unsigned int ioband_counted(const struct ioband_sharer *sh)
{
	unsigned int counted = sh->infl - sh->stuck;

	return counted - min(sh->excess, counted);
}

static inline bool ioband_has_waiting(const struct ioband_share *g)
{
	return !bio_list_empty(&g->fifo[0]) || !bio_list_empty(&g->fifo[1]);
}

/* The most I/Os in flight if the last one is of a group that leads, see tree.c. */
static inline unsigned int ioband_depth_now(const struct ioband_sharer *sh)
{
	return sh->depth.depth + sh->ahead;
}

/*
 * If bios ceased to pass without the lock soon, it takes this many times longer until they do
 * again.
 */
#define IOBAND_BYPASS_TIMES	4

/* bypass.c */
bool ioband_share(struct bio *bio);
bool ioband_bypass(struct ioband_grp *grp, struct bio *bio, s64 now);
unsigned int ioband_uncounted(struct ioband_dev *dev);
unsigned int ioband_passed_sum(struct ioband_dev *dev);
void ioband_passed_done(struct ioband_dev *dev);
void ioband_bypass_init(struct ioband_dev *dev, s64 now);
void ioband_bypass_removed(struct ioband_grp *grp);
void ioband_drain_passed(struct ioband_dev *dev, s64 now);

/* open.c */
void ioband_try_open(struct ioband_dev *dev, s64 now);
bool ioband_stays_open(struct ioband_dev *dev, s64 now);
void ioband_open_init(struct ioband_sharer *sh, s64 now);

/* lease.c */
void ioband_lease_init(struct ioband_sharer *sh);
void ioband_lease_try(struct ioband_dev *dev, s64 now);
void ioband_lease_look(struct ioband_dev *dev, s64 now);
void ioband_lease_end(struct ioband_dev *dev, s64 now);
void ioband_lease_gone(struct ioband_grp *grp, s64 now);
void ioband_lease_wait(struct ioband_dev *dev, s64 now);
void ioband_lease_suits(struct ioband_sharer *sh, const struct bio *bio, u64 cost, u64 charged,
			s64 now);
void ioband_lease_give(struct ioband_grp *grp, struct bio *bio, bool buys, s64 now);

/* tree.c */
void ioband_node_init(struct ioband_node *n, struct ioband_node *above, u32 weight);
void ioband_node_weigh(struct ioband_node *n, u32 weight);
s64 ioband_tag_ns(const struct ioband_node *n, u64 tag);
s64 ioband_node_bound(struct ioband_node *n, s64 ns);
void ioband_move(struct ioband_grp *grp, enum ioband_where where, s64 now);
void ioband_queue(struct ioband_grp *grp, u64 cost, s64 now);
void ioband_charge_io(struct ioband_grp *grp, u64 cost, bool turn);
void ioband_refund(struct ioband_grp *grp, u64 cost);
struct ioband_grp *ioband_first_grp(const struct ioband_sharer *sh);
struct ioband_grp *ioband_behind(const struct ioband_node *n);
bool ioband_leads(const struct ioband_grp *grp, s64 by_ns);
s64 ioband_lead_ns(const struct ioband_grp *grp);

/* give.c: what is dispatched in one hold of dev->lock */
struct ioband_round {
	struct bio	*own;		/* the bio that the caller submits, or NULL */
	bool		own_goes;
	int		quantum;	/* bios that may still be dispatched */
};

struct bio_list *ioband_next_fifo(struct ioband_share *g);
void ioband_give(struct ioband_grp *grp, struct bio *bio, u32 bytes, bool turn, s64 now);
bool ioband_must_pass(struct bio *bio);
void ioband_send_first(struct ioband_grp *grp, struct bio_list *fifo, struct ioband_round *round,
		       bool turn, s64 now);
void ioband_send_next(struct ioband_grp *grp, struct ioband_round *round, s64 now);
bool ioband_is_joined(const struct bio *bio, sector_t sector);

/* gate.c */
bool ioband_share_slow(struct ioband_grp *grp, struct bio *bio);
u64 ioband_bio_cost(struct ioband_sharer *sh, const struct bio *bio);
bool ioband_share_pump(struct ioband_dev *dev, struct bio *own, s64 now);
bool ioband_share_go(struct ioband_dev *dev, struct bio *own, s64 now);
void ioband_share_hurry(struct ioband_grp *grp);
void ioband_share_init(struct ioband_dev *dev);
void ioband_share_removed(struct ioband_grp *grp);
bool ioband_share_drain(struct ioband_dev *dev, struct bio_list *bios,
			unsigned int *budget);
bool ioband_is_moot(const struct ioband_dev *dev, s64 now);

/* owe.c */
void ioband_owe_begin(struct ioband_grp *grp, s64 now);
void ioband_owe_share(struct ioband_grp *grp, bool writeback, s64 now);
bool ioband_is_owed(const struct ioband_sharer *sh, s64 now);
void ioband_share_wait(struct ioband_grp *grp);
s64 ioband_share_owed_ns(struct ioband_grp *grp, bool below);

/* hang.c */
void ioband_hang_arrived(struct ioband_sharer *sh, s64 now);
bool ioband_is_dead(const struct ioband_sharer *sh, s64 now);
bool ioband_has_hung(struct ioband_grp *grp, const struct bio *bio, s64 now);
void ioband_unstick(struct ioband_grp *grp, s64 now);
void ioband_unstick_all(struct ioband_sharer *sh, s64 now);
void ioband_hang_dispatched(struct ioband_grp *grp, s64 now);
struct ioband_grp *ioband_probes(struct ioband_sharer *sh, s64 now);
bool ioband_watch(struct ioband_dev *dev, s64 now);

/* observe.c */
u32 ioband_bio_length(const struct bio *bio);
void ioband_observe_size(struct ioband_sharer *sh, unsigned int size, u32 bytes);
void ioband_observe_anew(struct ioband_dev *dev, s64 now);
void ioband_observe_elevator(struct ioband_dev *dev);
void ioband_observe_sent(struct ioband_dev *dev, const struct bio *bio, unsigned int nr);
void ioband_share_return(struct bio *bio);

/* await.c */
bool ioband_is_serial(const struct ioband_sharer *sh);
void ioband_expire_awaited(struct ioband_dev *dev, s64 now);
bool ioband_must_await(struct ioband_dev *dev, struct ioband_grp *next, s64 now);
void ioband_await_all_sent(struct ioband_grp *grp);
void ioband_await_arrived(struct ioband_grp *grp, s64 now);
void ioband_await_returned(struct ioband_grp *grp, s64 now);
void ioband_unawait(struct ioband_grp *grp, s64 now);

/* weight.c */
extern atomic_t ioband_nr_weights;
u32 ioband_default_weight(void);
u32 ioband_leaf_weight(struct ioband_grp *grp);
u64 ioband_share_part(struct ioband_grp *grp);
void ioband_weight_online(struct ioband_grp *grp);
void ioband_weight_offline(struct ioband_grp *grp);
void ioband_set_blkcg_weight(struct blkcg *blkcg, enum ioband_weight which, u32 weight);
void ioband_set_own_weight(struct ioband_grp *grp, enum ioband_weight which, u32 weight);
u32 ioband_blkcg_weight(struct blkcg *blkcg, enum ioband_weight which);
void ioband_weight_init(struct ioband_grp *grp);

/* bfq.c */
#define IOBAND_BFQ_WEIGHT_MIN	1
#define IOBAND_BFQ_WEIGHT_MAX	1000
extern struct blkcg_policy __rcu *ioband_bfq;
u32 ioband_bfq_weight(u32 weight);
void ioband_tell_bfq(struct blkcg_gq *blkg, u32 weight);

#endif /* IOBAND_SHARES_H */
