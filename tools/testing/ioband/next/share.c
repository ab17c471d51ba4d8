// SPDX-License-Identifier: GPL-2.0
/*
 * Who is next: the share gate of a device.
 *
 * A bio that its caps let go waits here while as many are in flight as the device
 * does at once, see depth.h; then the group with the least start tag goes first,
 * see share.h.  Unless await.c knows somebody who is worth waiting for.  A group that leads
 * nobody goes in any case, see lead.c.
 *
 * What need not wait does not come here: see bypass.c.
 */
#include <linux/ktime.h>
#include <trace/events/ioband.h>

#include "ioband.h"

/* What one hold of dev->lock sends at most. */
#define IOBAND_SHARE_QUANTUM	64
/* A lead is forgotten after being away for so long. */
#define IOBAND_FORGET_NS	NSEC_PER_SEC
/* Device time that is owed at most for bios that had to pass. */
#define IOBAND_DEBT_NS		(100 * NSEC_PER_MSEC)

static bool ioband_before_node(struct rb_node *a, const struct rb_node *b)
{
	return ioband_tag_before(rb_entry(a, struct ioband_grp, share.node)->share.tag,
				 rb_entry(b, struct ioband_grp, share.node)->share.tag);
}

/**
 * ioband_move - move a group, I8
 * @dev:	its device
 * @grp:	the group, whose tag may change while it is away or awaited
 * @where:	where it belongs now
 *
 * Context: dev->lock held.
 */
void ioband_move(struct ioband_dev *dev, struct ioband_grp *grp,
		 enum ioband_where where)
{
	struct ioband_sharer *sh = &dev->share;
	struct ioband_share *g = &grp->share;

	if (g->where == IOBAND_QUEUED)
		rb_erase_cached(&g->node, &sh->queued);
	if (where == IOBAND_QUEUED)
		rb_add_cached(&g->node, &sh->queued, ioband_before_node);

	if (g->where == IOBAND_AWAY && where != IOBAND_AWAY)
		ioband_share_activate(grp);
	else if (g->where != IOBAND_AWAY && where == IOBAND_AWAY)
		ioband_share_deactivate(grp);
	g->where = where;
	if (where == IOBAND_FLYING || where == IOBAND_AWAITED)
		ioband_fly(sh, grp);
	else
		ioband_unfly(sh, grp);
}

/**
 * ioband_bio_cost - what a bio takes of a device
 * @sh:		the device
 * @bio:	the bio
 *
 * Context: dev->lock held.
 * Return: ns, << 8.
 */
u64 ioband_bio_cost(struct ioband_sharer *sh, const struct bio *bio)
{
	return ioband_cost_of(&sh->cost, bio_data_dir(bio), ioband_bio_length(bio));
}

/**
 * ioband_share_cost - what a bio takes of its group's part of the device
 * @grp:	the group
 * @bio:	the bio
 *
 * Context: dev->lock held.
 * Return: virtual ns, << 8.
 */
u64 ioband_share_cost(struct ioband_grp *grp, const struct bio *bio)
{
	return ioband_charge_tag(ioband_bio_cost(&grp->dev->share, bio),
				 ioband_share_inverse(grp));
}

/*
 * The device's virtual time is the greatest start tag of those whose turn it was.
 * Bios that went before their turn say nothing of it.
 */
static void ioband_advance(struct ioband_sharer *sh, u64 tag)
{
	if (!ioband_tag_before(sh->vtime, tag))
		return;
	sh->vstep = (7 * sh->vstep + (tag - sh->vtime)) / 8;
	sh->vtime = tag;
}

/* Give the first bio of a group to the device. */
static struct bio *ioband_give(struct ioband_dev *dev, struct ioband_grp *grp,
			       s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	struct ioband_share *g = &grp->share;
	struct bio *bio = bio_list_pop(&g->fifo);
	u64 cost = ioband_bio_cost(sh, bio);

	ioband_window_time(&sh->depth.window, sh->infl - sh->stuck, now);
	if (!sh->infl) {
		sh->idle_ns += now - sh->idle_since;
		sh->last = now;
	}
	sh->infl++;
	g->infl++;
	ioband_gave(sh, grp, now);
	ioband_used(grp, cost, now);
	/* the tag may only change outside of the tree */
	rb_erase_cached(&g->node, &sh->queued);
	g->tag += ioband_charge_tag(cost, ioband_share_inverse(grp));
	if (bio_list_empty(&g->fifo)) {
		g->where = IOBAND_FLYING;
		ioband_fly(sh, grp);
		ioband_all_sent(sh, grp);
	} else {
		rb_add_cached(&g->node, &sh->queued, ioband_before_node);
	}
	return bio;
}

/**
 * ioband_bound_lead - a group need not wait for longer than this for its turn
 * @grp:	the group
 * @ns:		device time that it may be ahead, at its present weight
 *
 * Context: dev->lock held.
 */
void ioband_bound_lead(struct ioband_grp *grp, s64 ns)
{
	struct ioband_sharer *sh = &grp->dev->share;
	struct ioband_share *g = &grp->share;
	u64 most = sh->vtime + ioband_charge_tag((u64)ns << 8, ioband_share_inverse(grp));
	bool queued = g->where == IOBAND_QUEUED, flying = g->in_flying;

	if (!ioband_tag_before(most, g->tag))
		return;
	ioband_unawait(sh, grp);
	ioband_unfly(sh, grp);
	if (queued)
		rb_erase_cached(&g->node, &sh->queued);
	g->tag = most;
	if (queued)
		rb_add_cached(&g->node, &sh->queued, ioband_before_node);
	if (flying)
		ioband_fly(sh, grp);
}

/* The bio is in flight from here on, I7.  It will have forgotten its size. */
static void ioband_carry(struct ioband_grp *grp, struct bio *bio, s64 now)
{
	unsigned int size = ioband_bio_size(bio);

	BUILD_BUG_ON(2 * IOBAND_WINDOW_SIZES + IOBAND_CARRY_PASSED > IOBAND_CARRY_MASK);
	blkg_get(pd_to_blkg(&grp->pd));
	ioband_observe_size(&grp->dev->share, bio);
	bio->issue_time_ns = now;
	bio->bi_iocost_cost = (uintptr_t)grp | ioband_carry_of(size % IOBAND_WINDOW_SIZES);
}

/* Places that are free, besides what had to pass and what is stuck; less than 0 if too many are taken. */
static int ioband_room(struct ioband_dev *dev, unsigned int depth)
{
	struct ioband_sharer *sh = &dev->share;

	return (int)depth - (int)(sh->infl - sh->excess - sh->stuck + ioband_uncounted(dev));
}

/*
 * What had to pass makes others wait for half of the time only: each that comes back
 * meanwhile gives them half of what it took.  One bio for two would be no measure, as
 * they may be of any length.
 */
static bool ioband_has_credit(struct ioband_sharer *sh, struct ioband_grp *grp)
{
	return sh->excess &&
	       sh->credit >= ioband_bio_cost(sh, bio_list_peek(&grp->share.fifo));
}

static void ioband_use_credit(struct ioband_sharer *sh, struct ioband_grp *grp)
{
	sh->credit -= ioband_bio_cost(sh, bio_list_peek(&grp->share.fifo));
	sh->excess++;
}

/* Who is first?  One whose I/Os hang is passed over. */
static struct ioband_grp *ioband_first(struct ioband_sharer *sh, s64 now)
{
	struct rb_node *node = rb_first_cached(&sh->queued);

	while (node && !ioband_may_probe(node_to_grp(node), now))
		node = rb_next(node);
	return node_to_grp(node);
}

/* Is it because enough is in flight that a group has to wait? */
static bool ioband_is_full(struct ioband_dev *dev, struct ioband_grp *grp, bool leads)
{
	struct ioband_sharer *sh = &dev->share;
	unsigned int depth = leads ? ioband_depth_now(sh) :
			     sh->nr_active == 1 ? sh->depth.alone + sh->ahead : IOBAND_DEPTH_MAX;

	return ioband_room(dev, min3(depth, sh->depth.ceiling, sh->tags)) <= 0;
}

/* May @grp send one more now? */
static bool ioband_may_go(struct ioband_dev *dev, struct ioband_grp *grp, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	bool leads, full;

	if (ioband_is_dead(sh, now))
		return true;
	leads = ioband_leads(sh, grp);
	full = ioband_is_full(dev, grp, leads);
	if (full && !ioband_has_credit(sh, grp)) {
		sh->depth.window.held++;
		return false;
	}
	if (ioband_bend(dev, grp, now))
		return false;
	if (full)
		ioband_use_credit(sh, grp);
	sh->depth.window.led += leads;
	return true;
}

static void ioband_send_waited(struct ioband_dev *dev, struct ioband_grp *grp, struct bio *bio,
			       s64 now)
{
	unsigned int cpu = ioband_cpu(bio);

	grp->share.waited_ns += now - ioband_arrival(bio);
	grp->share.nr_waited++;
	ioband_carry(grp, bio, now);
	ioband_send_from(dev, bio, cpu);
}

/**
 * ioband_share_pump - let go who may
 * @dev:	the device
 * @own:	a bio that the caller submits, or NULL
 * @now:	ns
 *
 * Context: dev->lock held; ioband_kick() has to follow.
 * Return: true if @own is among those that go; it was not sent.
 */
bool ioband_share_pump(struct ioband_dev *dev, struct bio *own, s64 now)
{
	unsigned int quantum = IOBAND_SHARE_QUANTUM;
	struct ioband_sharer *sh = &dev->share;
	bool own_goes = false;
	struct ioband_grp *grp;
	struct bio *bio;

	lockdep_assert_held(&dev->lock);
	while ((grp = ioband_first(sh, now))) {
		if (!ioband_may_go(dev, grp, now)) {
			if (sh->infl && ioband_watch(dev, now))
				continue;
			break;
		}
		if (!quantum--) {
			ioband_time(dev, &sh->timer, now);
			break;
		}
		ioband_advance(sh, grp->share.tag);
		bio = ioband_give(dev, grp, now);
		if (bio == own) {
			own_goes = true;
			ioband_carry(grp, bio, now);
		} else {
			ioband_send_waited(dev, grp, bio, now);
		}
	}
	if (!RB_EMPTY_ROOT(&sh->queued.rb_root))
		sh->waited = now;
	return own_goes;
}

/**
 * ioband_share_go - let go who may, and see to it that the others go in time
 * @dev:	the device
 * @own:	a bio that the caller submits, or NULL
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: as ioband_share_pump().
 */
bool ioband_share_go(struct ioband_dev *dev, struct bio *own, s64 now)
{
	bool own_goes = ioband_share_pump(dev, own, now);

	ioband_kick(dev, now);
	return own_goes;
}

/* The first bio of a group that had none waiting. */
static void ioband_arrive(struct ioband_dev *dev, struct ioband_grp *grp,
			  struct bio *bio, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	struct ioband_share *g = &grp->share;
	u64 from = sh->vtime;

	/* what passed meanwhile is not known here */
	if (g->last_done < sh->closed)
		g->nr_back = 0;
	if (g->nr_back)
		ioband_think(g, now);
	if (g->where != IOBAND_AWAY)
		from -= 4 * ioband_lag(grp, bio);
	else if (!g->last_done || now - g->last_done > IOBAND_FORGET_NS)
		g->tag = from;	/* an old tag may seem to be ahead */
	ioband_unawait(sh, grp);
	if (g->where == IOBAND_FLYING)
		ioband_move(dev, grp, IOBAND_AWAITED);
	ioband_unfly(sh, grp);
	g->tag = ioband_tag_max(g->tag, from);
	ioband_move(dev, grp, IOBAND_QUEUED);
}

static bool ioband_share_locked(struct ioband_grp *grp, struct bio *bio,
				bool must_pass)
{
	struct ioband_dev *dev = grp->dev;
	struct ioband_sharer *sh = &dev->share;
	s64 now = ktime_get_ns();

	if (ioband_bypass(grp, bio, now))
		return false;
	sh->outstanding++;
	ioband_stamp(bio, now, raw_smp_processor_id());
	if (grp->share.where != IOBAND_QUEUED)
		ioband_arrive(dev, grp, bio, now);
	if (grp->share.nr_back)
		grp->share.nr_back--;
	if (must_pass) {
		/* at once, and yet its group's */
		bio_list_add_head(&grp->share.fifo, bio);
		sh->excess += ioband_room(dev, ioband_depth_now(sh)) <= 0;
		ioband_carry(grp, ioband_give(dev, grp, now), now);
		ioband_bound_lead(grp, IOBAND_DEBT_NS);
		return false;
	}
	bio_list_add(&grp->share.fifo, bio);
	if (ioband_share_go(dev, bio, now))
		return false;
	/* it has waited: see ioband_hold() */
	bio->bi_opf &= ~REQ_NOWAIT;
	return true;
}

/**
 * ioband_share_slow - pass a bio through the gate, or keep it there
 * @grp:	its group
 * @bio:	the bio
 *
 * Context: as ioband_bio().
 * Return: true if it is kept, and submitted later.
 */
bool ioband_share_slow(struct ioband_grp *grp, struct bio *bio)
{
	struct ioband_dev *dev = grp->dev;
	bool must_pass;

	must_pass = ioband_must_pass(bio);
	/* who polls does not have to; who stops to would keep its place */
	if (bio->bi_opf & REQ_POLLED)
		bio_clear_polled(bio);
	guard(spinlock_irqsave)(&dev->lock);
	return !dev->dead && ioband_share_locked(grp, bio, must_pass);
}

/**
 * ioband_share_init - nobody shares a device yet
 * @dev:	the device
 */
void ioband_share_init(struct ioband_dev *dev)
{
	struct ioband_sharer *sh = &dev->share;
	s64 now = ktime_get_ns();

	sh->queued = RB_ROOT_CACHED;
	sh->sync = RB_ROOT_CACHED;
	sh->flying = RB_ROOT_CACHED;
	sh->timer.kind = IOBAND_GRACE;
	sh->gen = 1;	/* no group has its inverse */
	sh->idle_since = now;
	ioband_cost_init(&sh->cost);
	ioband_depth_init(&sh->depth);
	sh->tags = IOBAND_DEPTH_MAX;
	ioband_bypass_init(dev, now);
}

/**
 * ioband_share_removed - a group goes offline
 * @grp:	the group
 *
 * Nobody waits for it any more; what it has waiting goes on as it is.
 *
 * Context: dev->lock held.
 */
void ioband_share_removed(struct ioband_grp *grp)
{
	lockdep_assert_held(&grp->dev->lock);
	ioband_bypass_removed(grp);
	if (grp->share.where != IOBAND_AWAITED)
		return;
	ioband_unawait(&grp->dev->share, grp);
	ioband_move(grp->dev, grp, IOBAND_AWAY);
	ioband_share_go(grp->dev, NULL, ktime_get_ns());
}

/**
 * ioband_share_drain - take bios that wait for their share
 * @dev:	the device
 * @bios:	where to add them
 * @budget:	how many at most; becomes what is left of it
 *
 * Context: dev->lock held.
 * Return: true if there are more.
 */
bool ioband_share_drain(struct ioband_dev *dev, struct bio_list *bios,
			unsigned int *budget)
{
	struct ioband_sharer *sh = &dev->share;
	struct ioband_grp *grp;

	while ((grp = node_to_grp(rb_first_cached(&sh->queued)))) {
		struct bio_list *fifo = &grp->share.fifo;

		for (; *budget && !bio_list_empty(fifo); (*budget)--) {
			bio_list_add(bios, bio_list_pop(fifo));
			sh->outstanding--;
		}
		if (!bio_list_empty(fifo))
			return true;
		ioband_move(dev, grp, grp->share.infl ? IOBAND_FLYING : IOBAND_AWAY);
	}
	return false;
}
