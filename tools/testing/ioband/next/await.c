// SPDX-License-Identifier: GPL-2.0
/*
 * Whom others wait for at the share gate.
 *
 * The least start tag goes first, of those that are seen waiting.  A group that does
 * one I/O after the other is never seen.  Two rules are for its sake:
 *
 * Anticipation, on devices that do one I/O at a time: when such a group is behind and
 * in flight, or about to come back, nobody else goes, for as long as it usually takes.
 * Only who takes less than an eighth of the time between two completions for that is
 * waited for.
 *
 * Kept places, on devices with a queue: what has just left the device and belongs to
 * a group that is behind and comes back at once leaves its place to that group, for as
 * long as this usually takes.  Others use the rest.  This matters where completions
 * come in bursts, and threads run only after them.
 *
 * And what a group has fallen behind while it had all it wants in flight it may claim when
 * it comes back, up to a few turnovers of the device.
 *
 * All functions here want dev->lock.
 */
#include <linux/ktime.h>

#include "ioband.h"

/* Nobody is waited for longer than this. */
#define IOBAND_GRACE_NS		(2 * NSEC_PER_MSEC)
#define IOBAND_GRACE_SLACK_NS	(10 * NSEC_PER_USEC)
/* Waiting for a group costs at most 1 / this of the device ... */
#define IOBAND_GRACE_PART	8
/* ... and keeping its place in the device 1 / this of that place. */
#define IOBAND_PLACE_PART	16
/* Groups whose places are kept at a time. */
#define IOBAND_PLACE_GROUPS	4
/* Four of it are no half of what a tag can express. */
#define IOBAND_LAG_MAX		BIT_ULL(54)
/* Completions that a think time is known from. */
#define IOBAND_MIN_THINK	4

static struct ioband_grp *sync_to_grp(struct rb_node *node)
{
	return rb_entry_safe(node, struct ioband_grp, share.sync_node);
}

static bool ioband_before_sync(struct rb_node *a, const struct rb_node *b)
{
	return ioband_tag_before(rb_entry(a, struct ioband_grp, share.sync_node)->share.tag,
				 rb_entry(b, struct ioband_grp, share.sync_node)->share.tag);
}

/**
 * ioband_is_serial - does a device do one I/O at a time?
 * @sh:	the device
 *
 * Return: false while that is not known.
 */
bool ioband_is_serial(const struct ioband_sharer *sh)
{
	return ioband_depth_is_settled(&sh->depth) && sh->depth.at_once < IOBAND_SERIAL;
}

/* Waiting for it costs no more than a part of what the device does meanwhile. */
static bool ioband_is_sync(const struct ioband_sharer *sh,
			   const struct ioband_share *g)
{
	if (g->nr_think < IOBAND_MIN_THINK)
		return false;
	return ioband_is_serial(sh) ? IOBAND_GRACE_PART * g->think <= sh->gap :
				      IOBAND_PLACE_PART * g->think <= sh->latency;
}

static void ioband_set_sync(struct ioband_sharer *sh, struct ioband_grp *grp,
			    bool sync)
{
	struct ioband_share *g = &grp->share;

	if (g->in_sync == sync)
		return;
	if (sync)
		rb_add_cached(&g->sync_node, &sh->sync, ioband_before_sync);
	else
		rb_erase_cached(&g->sync_node, &sh->sync);
	g->in_sync = sync;
}

/**
 * ioband_lag - two turnovers of the device, and an I/O
 * @grp:	a group
 * @bio:	its next bio
 *
 * Return: virtual ns, << 8.
 */
u64 ioband_lag(struct ioband_grp *grp, const struct bio *bio)
{
	struct ioband_sharer *sh = &grp->dev->share;

	return min(2 * min(sh->depth.depth, 256U) * min(sh->vstep, IOBAND_LAG_MAX) +
		   ioband_share_cost(grp, bio), IOBAND_LAG_MAX);
}

/* It was to come back by now.  It has to show again how quick it is. */
static void ioband_in_vain(struct ioband_dev *dev, struct ioband_grp *grp)
{
	grp->share.nr_think = 0;
	grp->share.nr_back = 0;
	ioband_set_sync(&dev->share, grp, false);
	if (grp->share.where == IOBAND_AWAITED)
		ioband_move(dev, grp, IOBAND_AWAY);
}

/* The first of those who come back at once, and did not fail to. */
static struct ioband_grp *ioband_first_sync(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	struct ioband_grp *grp;

	while ((grp = sync_to_grp(rb_first_cached(&sh->sync)))) {
		struct ioband_share *g = &grp->share;

		if (now < g->grace ||
		    (g->infl && (!g->nr_back || ioband_is_serial(sh))))
			break;
		ioband_in_vain(dev, grp);
	}
	return grp;
}

/**
 * ioband_expire_awaited - nobody waits for those who did not come back
 * @dev:	the device
 * @now:	ns
 */
void ioband_expire_awaited(struct ioband_dev *dev, s64 now)
{
	struct rb_node *node, *next;

	for (node = rb_first_cached(&dev->share.sync); node; node = next) {
		struct ioband_grp *grp = sync_to_grp(node);

		next = rb_next(node);
		if (grp->share.where == IOBAND_AWAITED && now >= grp->share.grace)
			ioband_in_vain(dev, grp);
	}
}

/* Serial devices: is there somebody to wait for before @next may go? */
static bool ioband_await(struct ioband_dev *dev, struct ioband_grp *next, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	struct ioband_grp *grp = ioband_first_sync(dev, now);

	if (!grp || !ioband_tag_before(grp->share.tag, next->share.tag))
		return false;
	if (grp->share.infl)
		return true;
	ioband_time(dev, &sh->timer, grp->share.grace);
	return true;
}

/*
 * The others: are the free places in the device those of groups that fell behind
 * and come back at once?  There may be none, where one goes on credit.
 */
static bool ioband_keep_places(struct ioband_dev *dev, struct ioband_grp *next,
			       s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	struct ioband_grp *grp = ioband_first_sync(dev, now);
	unsigned int kept = 0;

	for (int i = 0; grp && i < IOBAND_PLACE_GROUPS; i++) {
		struct ioband_share *g = &grp->share;

		if (!ioband_tag_before(g->tag, next->share.tag))
			break;
		if (now < g->grace)
			kept += g->nr_back;
		if (kept && sh->infl - sh->excess - sh->stuck + kept >= ioband_depth_now(sh)) {
			ioband_time(dev, &sh->timer, g->grace);
			return true;
		}
		grp = sync_to_grp(rb_next(&g->sync_node));
	}
	return false;
}

/**
 * ioband_bend - is it not the turn of a group, although its tag is the least?
 * @dev:	the device
 * @next:	the group, which has something waiting
 * @now:	ns
 *
 * If only time is awaited, dev->share.timer is set; else something is in flight.
 *
 * Return: true if nobody may go now.
 */
bool ioband_bend(struct ioband_dev *dev, struct ioband_grp *next, s64 now)
{
	if (ioband_is_serial(&dev->share))
		return ioband_await(dev, next, now);
	return ioband_keep_places(dev, next, now);
}

/**
 * ioband_unawait - nobody waits for a group any more
 * @sh:	the device
 * @grp:	the group
 */
void ioband_unawait(struct ioband_sharer *sh, struct ioband_grp *grp)
{
	ioband_set_sync(sh, grp, false);
}

/**
 * ioband_all_sent - all that a group had waiting is in flight
 * @sh:	the device
 * @grp:	the group
 */
void ioband_all_sent(struct ioband_sharer *sh, struct ioband_grp *grp)
{
	ioband_set_sync(sh, grp, ioband_is_sync(sh, &grp->share));
}

/**
 * ioband_think - a group has come back
 * @g:		its share
 * @now:	ns
 *
 * Learns how long that took, on average, and the deviation from it.
 */
void ioband_think(struct ioband_share *g, s64 now)
{
	s64 t = min(now - g->last_done,
		    max((s64)IOBAND_GRACE_NS, IOBAND_GRACE_PART * g->think));

	if (g->nr_think) {
		g->think_dev += (abs(t - g->think) - g->think_dev) / 4;
		g->think += (t - g->think) / 8;
	} else {
		g->think_dev = t / 2;
		g->think = t;
	}
	g->nr_think++;
}

/**
 * ioband_got_back - a bio of a group has completed
 * @dev:	the device
 * @grp:	the group
 * @now:	ns
 *
 * If it has nothing waiting: is it about to send more?
 */
void ioband_got_back(struct ioband_dev *dev, struct ioband_grp *grp, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	struct ioband_share *g = &grp->share;
	bool sync = ioband_is_sync(sh, g) && !grp->offline && !dev->dead &&
		    sh->nr_active > 1;

	g->last_done = now;
	g->grace = now + min(g->think + 4 * g->think_dev + IOBAND_GRACE_SLACK_NS,
			     IOBAND_GRACE_NS);
	g->nr_back++;
	if (g->where != IOBAND_FLYING)
		return;
	ioband_set_sync(sh, grp, sync);
	if (!sync)
		g->nr_back = min(g->nr_back, 1U);
	if (!g->infl)
		ioband_move(dev, grp, sync ? IOBAND_AWAITED : IOBAND_AWAY);
}
