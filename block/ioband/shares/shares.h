/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_SHARES_H
#define IOBAND_SHARES_H

/*
 * Shares: what is kept per group and device for them.
 *
 * A bio that its limits let go travels bypass.c, and gate.c unless it passes there, or bfq.c says
 * that the I/O scheduler shares the disk; open.c says when all pass, lease.c knows which bios of a
 * fast disk need not go one by one, give.c which ones go as one, tree.c who is first, and who leads
 * whom, await.c whom others wait for, and hang.c who hangs; observe.c sees it back.  weight.c has
 * the weights.  The arithmetic is in share.h, cost.h, depth.h, window.h and worth.h.
 *
 * Invariants, all under dev->lock:
 *
 *  I7	A bio that the share gate has let go and not seen back carries its group in
 *	bi_iocost_cost, and a reference on that group's blkg: whatever the bio is
 *	remapped to, the group gets it back, once.  One that passed without the lock
 *	carries the device, which stays as long as somebody has the disk open.
 *  I8	Unless a group is stuck, its own node is QUEUED exactly while one of its fifos is
 *	not empty, and FLYING while both are and something is in flight or the group is
 *	awaited.  A node is in a tree of the node above exactly while it is one of the two.
 *	A node with others below is QUEUED while one of these is, else FLYING while one of
 *	these is.
 *  I13	A group is stuck if none of what it has in flight has completed for too long.
 *	sharer->stuck counts that, and the depth does not.  The group is in ->hung then,
 *	which alone says when its next I/O goes.  With the next completion it is stuck no
 *	more.
 *  I14	While dev->leasing is set, bios pass that are paid for by what their group has bought
 *	on their CPU: ioband_lease.left, with dev->lease_nr.  The group was charged for that
 *	under dev->lock, and is FLYING for a while after, in sharer->leased.  A group that is
 *	offline is not in there.
 *  I9	While anything is queued, something is in flight, or the timer is set.  What
 *	passed without the lock counts as in flight: its completion looks at
 *	dev->draining after it left dev->passed, and that flag is set before they are
 *	summed up.
 */

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#include "../../blk-cgroup.h"
#include "../math/depth.h"
#include "../ent.h"
#include "../math/share.h"
#include "../math/worth.h"

struct ioband_dev;
struct ioband_grp;

enum ioband_where {
	IOBAND_AWAY,		/* not active */
	IOBAND_QUEUED,		/* something waits here */
	IOBAND_FLYING,		/* nothing does, but it has something in flight, or is awaited */
	IOBAND_STUCK,		/* what it has in flight hangs, I13 */
};

/*
 * In the tree of groups: a group among its siblings, or a group's own I/O among its children;
 * dev->lock.
 */
struct ioband_node {
	struct ioband_node	*above;		/* NULL for the device */
	struct rb_node		node;		/* in ->queued or ->flying of the one above */
	enum ioband_where	where;
	u64			tag;		/* start tag of the next I/O, ns << 8 */
	u32			weight;
	u64			inv;		/* of the weight, see ioband_charge_tag() */
	s64			left_ns;	/* when it was last active */

	/* of those below */
	struct rb_root_cached	queued;		/* by tag */
	struct rb_root_cached	flying;		/* by tag */
	u64			vtime;		/* ns << 8, as their tags */
	u64			vstep;		/* its average step */
	u64			active_sum;	/* weights of those that are active */
};

/* A cgroup's weights; each may be another one for a device. */
enum ioband_weight {
	IOBAND_WEIGHT,		/* among its siblings */
	IOBAND_LEAF_WEIGHT,	/* of its own I/O among that of the groups below, v1 */
	IOBAND_WEIGHTS,
};

/* per group and device: its share; dev->lock */
struct ioband_share {
	struct ioband_node	own;		/* its I/O */
	struct ioband_node	all;		/* and that of the groups below; not of the root */
	u32			weight;		/* the one that counts */
	u32			leaf;		/* of its own I/O; 0: the default */
	u32			own_weight[IOBAND_WEIGHTS];	/* for this device; 0: none */

	struct bio_list		fifo[2];	/* what waits: sync, and writeback */
	unsigned int		turn;		/* of these two */
	unsigned int		infl;		/* bios in flight */
	struct list_head	busy;		/* in ->busy or ->stuck of the sharer */
	s64			progress_ns;	/* since then none of them has completed */
	s64			probe_ns;	/* when a stuck group may send one more */
	s64			owed_until_ns;	/* its tasks that made a debt wait until then */

	/* how long it takes to come back after its last completion */
	unsigned int		nr_back;	/* got back, none sent for since */
	unsigned int		nr_think;
	s64			think;
	s64			think_dev;
	s64			last_done;
	s64			grace;		/* waited for until then */
	bool			sync;		/* it comes back at once */
	struct list_head	awaited;	/* in ->awaited of the sharer */
	struct list_head	leased;		/* in ->leased of the sharer */
	s64			leased_ns;	/* when it last bought device time */

	u64			nr_waited;	/* bios that had to wait */
	s64			waited_ns;	/* for so long, together */
	struct ioband_used	used;
};

/* per device: who shares it; dev->lock */
struct ioband_sharer {
	struct ioband_node	top;		/* of the tree of groups, I8 */
	struct list_head	awaited;	/* groups that have nothing, but come back */
	struct list_head	busy;		/* groups by when an I/O last completed */
	struct list_head	hung;		/* stuck groups, by when they may send one more */
	struct list_head	leased;		/* groups by when they last bought device time */
	struct ioband_grp	*latest;	/* to come here; only compared */
	s64			alone_since;	/* only it has come */
	s64			solo_after_ns;	/* how long it has to be alone to pass */
	s64			solo_since;	/* it passes */
	s64			waited;		/* when somebody last did */
	s64			calm_ns;	/* it opens if nobody waited for so long */
	s64			open_since;
	unsigned int		nr_opened;
	s64			closed;		/* or that nobody is alone any more */

	unsigned int		infl;
	unsigned int		excess;		/* of those, beyond the depth */
	u64			credit;		/* ns << 8, see ioband_has_credit() */
	unsigned int		outstanding;	/* and those that wait here */
	unsigned int		nr_active;
	unsigned int		nr_own;		/* groups with a weight of their own */
	unsigned int		stuck;		/* in flight, of stuck groups */
	s64			watch_ns;	/* when it is looked for them */
	s64			hung_ns;	/* when one of them last completed */

	s64			gap;		/* average between completions */
	s64			latency;	/* average in flight */
	/* see lease.c */
	u64			lease_gap_ns;	/* I/Os complete as often */
	s64			lease_ns;	/* of the device, for all leases together */
	s64			lease_since_ns;
	s64			lease_until_ns;
	s64			lease_ended_ns;	/* the last time */
	s64			lease_watch_ns;	/* when it was looked whether it is busy */
	s64			lease_not_ns;	/* when an I/O was none for leases */
	unsigned int		lease_windows;	/* of depth, when leases ended */
	unsigned int		lease_blocks;	/* of cost, likewise */

	unsigned int		on_way;		/* in flight, but not yet submitted */
	s64			lag;		/* average until one that was let go is submitted */
	unsigned int		ahead;		/* I/Os beyond the depth, for that */
	s64			last;		/* completion, or start from idle */
	s64			idle_since;
	s64			idle_ns;
	struct ioband_used	used;
	u64			bytes[2 * IOBAND_WINDOW_SIZES];	/* average by class, << 8 */
	struct ioband_cost	cost;
	struct elevator_queue	*elevator;	/* that the depth was found with */
	struct ioband_depth	depth;
	struct ioband_worth	worth;		/* of the gate */
	struct ioband_ent	timer;		/* in dev->timed */
};

/*
 * What bi_iocost_cost has beside the group: the size class, in six bits of which the last three are
 * not IOBAND_CARRY_PASSED; those are it beside the device, if the bio passed without the lock
 * and is only counted, in dev->passed.
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

/* Has the share gate let a bio go that is not held?  I7 */
static inline bool ioband_is_carried(const struct bio *bio)
{
	return bio->bi_iocost_cost;
}

/* Is it writeback, which nobody waits for? */
static inline bool ioband_is_background(const struct bio *bio)
{
	return bio_op(bio) == REQ_OP_WRITE && !op_is_sync(bio->bi_opf);
}

static inline bool ioband_is_active(enum ioband_where where)
{
	return where == IOBAND_QUEUED || where == IOBAND_FLYING;
}

/* What the device has, but for what is stuck there. */
static inline unsigned int ioband_in_device(const struct ioband_sharer *sh)
{
	unsigned int elsewhere = sh->stuck + sh->on_way;

	return sh->infl - min(elsewhere, sh->infl);
}

/* In flight, but for what had to pass, and what is stuck. */
static inline unsigned int ioband_counted(const struct ioband_sharer *sh)
{
	unsigned int counted = sh->infl - sh->stuck;

	return counted - min(sh->excess, counted);
}

static inline bool ioband_has_waiting(const struct ioband_share *g)
{
	return !bio_list_empty(&g->fifo[0]) || !bio_list_empty(&g->fifo[1]);
}

/* I/Os in flight at most, of which somebody who leads sends the last. */
static inline unsigned int ioband_depth_now(const struct ioband_sharer *sh)
{
	return sh->depth.depth + sh->ahead;
}

/* That much longer it takes to pass without the lock if that ended soon the last time. */
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
s64 ioband_node_bound(struct ioband_node *n, s64 ns);
void ioband_move(struct ioband_grp *grp, enum ioband_where where, s64 now);
void ioband_queue(struct ioband_grp *grp, u64 cost, s64 now);
void ioband_charge_io(struct ioband_grp *grp, u64 cost, bool turn);
void ioband_refund(struct ioband_grp *grp, u64 cost);
struct ioband_grp *ioband_first_grp(const struct ioband_sharer *sh);
struct ioband_grp *ioband_behind(const struct ioband_node *n);
bool ioband_leads(const struct ioband_grp *grp, s64 by_ns);
s64 ioband_lead_ns(const struct ioband_grp *grp);

/* give.c: what is done while dev->lock is held once */
struct ioband_round {
	struct bio	*own;		/* which the caller submits, or NULL */
	bool		own_goes;
	int		quantum;	/* bios that may go */
};

struct bio_list *ioband_next_fifo(struct ioband_share *g);
void ioband_give(struct ioband_grp *grp, struct bio *bio, u32 bytes, bool turn, s64 now);
void ioband_send_next(struct ioband_dev *dev, struct ioband_grp *grp,
		      struct ioband_round *round, s64 now);
bool ioband_is_joined(const struct bio *bio, sector_t sector);

/* gate.c */
bool ioband_share_slow(struct ioband_grp *grp, struct bio *bio);
u64 ioband_bio_cost(struct ioband_sharer *sh, const struct bio *bio);
bool ioband_share_pump(struct ioband_dev *dev, struct bio *own, s64 now);
bool ioband_share_go(struct ioband_dev *dev, struct bio *own, s64 now);
void ioband_share_init(struct ioband_dev *dev);
void ioband_share_removed(struct ioband_grp *grp);
bool ioband_share_drain(struct ioband_dev *dev, struct bio_list *bios,
			unsigned int *budget);
s64 ioband_share_debt_ns(struct ioband_grp *grp);

/* hang.c */
void ioband_hope(struct ioband_sharer *sh, s64 now);
bool ioband_is_dead(const struct ioband_sharer *sh, s64 now);
bool ioband_has_hung(struct ioband_grp *grp, const struct bio *bio, s64 now);
void ioband_unstick(struct ioband_grp *grp, s64 now);
void ioband_unstick_all(struct ioband_sharer *sh, s64 now);
void ioband_gave(struct ioband_grp *grp, s64 now);
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
bool ioband_bend(struct ioband_dev *dev, struct ioband_grp *next, s64 now);
void ioband_all_sent(struct ioband_grp *grp);
void ioband_came(struct ioband_grp *grp, s64 now);
void ioband_got_back(struct ioband_grp *grp, s64 now);
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
bool ioband_has_bfq(void);
u32 ioband_bfq_weight(u32 weight);
void ioband_tell_bfq(struct blkcg_gq *blkg, u32 weight);

#endif /* IOBAND_SHARES_H */
