// SPDX-License-Identifier: GPL-2.0
/*
 * Groups that have all they want in flight, and whether others lead them.
 *
 * A group leads if its tag is greater than that of one that has nothing waiting, but something in
 * flight: it has had more of the device, for its weight, than that one, which only wants no
 * more.  So many I/Os may be in flight as the device does at once; beyond that a group goes only
 * while it does not lead.  Who lags behind is slowed down by those who lead, and not by others.
 *
 * Example: A has weight 300 and B 100, each 64 I/Os at a time, on a device that does 64 at once.
 * A has all of its I/Os in flight, so B waits as soon as it has had more than a third of what A
 * has had: 21 of its I/Os are in flight beside 64 of A's.
 *
 * What hangs must not keep the places of others.  A group is stuck if none of what it has in
 * flight has completed for long; it counts as soon as one does.
 *
 * All functions here want dev->lock.
 */
#include "ioband.h"

/* Without a completion for so long, and for so many latencies: a group is stuck ... */
#define IOBAND_STUCK_NS		(100 * NSEC_PER_MSEC)
#define IOBAND_STUCK_LATENCIES	50
/* ... or the device is, and gets all that there is. */
#define IOBAND_DEAD_NS		(250 * NSEC_PER_MSEC)
#define IOBAND_DEAD_LATENCIES	8
/* A group that is stuck has not moved its tag: it is among the first. */
#define IOBAND_STUCK_GROUPS	8

static struct ioband_grp *flying_to_grp(struct rb_node *node)
{
	return rb_entry_safe(node, struct ioband_grp, share.flying_node);
}

static bool ioband_before_flying(struct rb_node *a, const struct rb_node *b)
{
	return ioband_tag_before(rb_entry(a, struct ioband_grp, share.flying_node)->share.tag,
				 rb_entry(b, struct ioband_grp, share.flying_node)->share.tag);
}

/**
 * ioband_fly - others lead a group from now on if its tag is less
 * @sh:		the device
 * @grp:	the group, whose tag does not change any more
 */
void ioband_fly(struct ioband_sharer *sh, struct ioband_grp *grp)
{
	struct ioband_share *g = &grp->share;

	if (g->in_flying || g->stuck)
		return;
	rb_add_cached(&g->flying_node, &sh->flying, ioband_before_flying);
	g->in_flying = true;
}

/**
 * ioband_unfly - nobody leads a group any more
 * @sh:		the device
 * @grp:	the group
 */
void ioband_unfly(struct ioband_sharer *sh, struct ioband_grp *grp)
{
	struct ioband_share *g = &grp->share;

	if (!g->in_flying)
		return;
	rb_erase_cached(&g->flying_node, &sh->flying);
	g->in_flying = false;
}

/**
 * ioband_leads - does a group lead another one that has all it wants in flight?
 * @sh:		the device
 * @grp:	the group, which has something waiting
 */
bool ioband_leads(const struct ioband_sharer *sh, const struct ioband_grp *grp)
{
	struct ioband_grp *behind = flying_to_grp(rb_first_cached(&sh->flying));

	return behind && ioband_tag_before(behind->share.tag, grp->share.tag);
}

/**
 * ioband_may_probe - may a group send something, or is it stuck?
 * @grp:	the group
 * @now:	ns
 *
 * A stuck one sends one I/O now and then.
 */
bool ioband_may_probe(const struct ioband_grp *grp, s64 now)
{
	return !grp->share.stuck || now >= grp->share.probe_ns;
}

/**
 * ioband_is_dead - has nothing completed for so long that the gate is of no use?
 * @sh:		the device
 * @now:	ns
 */
bool ioband_is_dead(const struct ioband_sharer *sh, s64 now)
{
	return sh->infl && now - sh->last > IOBAND_DEAD_NS &&
	       now - sh->last > IOBAND_DEAD_LATENCIES * sh->latency;
}

static s64 ioband_stuck_ns(const struct ioband_sharer *sh)
{
	return max(IOBAND_STUCK_NS, IOBAND_STUCK_LATENCIES * sh->latency);
}

static void ioband_try_stick(struct ioband_sharer *sh, struct ioband_grp *grp, s64 now)
{
	struct ioband_share *g = &grp->share;

	if (g->stuck || !g->infl || now - g->progress_ns < ioband_stuck_ns(sh))
		return;
	ioband_unfly(sh, grp);
	ioband_unawait(sh, grp);
	g->stuck = true;
	g->probe_ns = now + IOBAND_STUCK_NS;
	sh->stuck += g->infl;
}

/**
 * ioband_unstick - something of a group has completed
 * @sh:		the device
 * @grp:	the group
 */
void ioband_unstick(struct ioband_sharer *sh, struct ioband_grp *grp)
{
	struct ioband_share *g = &grp->share;

	if (!g->stuck)
		return;
	sh->stuck -= g->infl;
	g->stuck = false;
	if (g->where == IOBAND_FLYING)
		ioband_fly(sh, grp);
}

/**
 * ioband_gave - a group's I/O has been given to the device
 * @sh:		the device
 * @grp:	the group
 * @now:	ns
 */
void ioband_gave(struct ioband_sharer *sh, struct ioband_grp *grp, s64 now)
{
	struct ioband_share *g = &grp->share;

	if (g->infl == 1)
		g->progress_ns = now;
	if (!g->stuck)
		return;
	sh->stuck++;
	g->probe_ns = now + IOBAND_STUCK_NS;
}

/**
 * ioband_watch - look whether something hangs, now and then, while groups wait
 * @dev:	the device, on which something waits and something is in flight
 * @now:	ns
 *
 * Sets dev->share.timer.
 *
 * Return: true if places have become free.
 */
bool ioband_watch(struct ioband_dev *dev, s64 now)
{
	struct ioband_sharer *sh = &dev->share;
	unsigned int before = sh->stuck;
	struct ioband_grp *grp;
	struct rb_node *node;

	if (now >= sh->watch_ns) {
		sh->watch_ns = now + ioband_stuck_ns(sh) / 2;
		for (int i = 0; i < IOBAND_STUCK_GROUPS; i++) {
			grp = flying_to_grp(rb_first_cached(&sh->flying));
			if (!grp)
				break;
			ioband_try_stick(sh, grp, now);
			if (!grp->share.stuck)
				break;
		}
		node = rb_first_cached(&sh->queued);
		for (int i = 0; node && i < IOBAND_STUCK_GROUPS; i++, node = rb_next(node))
			ioband_try_stick(sh, node_to_grp(node), now);
	}
	if (sh->timer.state != IOBAND_TIMED)
		ioband_time(dev, &sh->timer, sh->watch_ns);
	return sh->stuck != before;
}
