// SPDX-License-Identifier: GPL-2.0
/*
 * The tree of groups: which group is first, and which group leads which.
 *
 * On each level the node with the least start tag is first, see share.h.  A node leads if its tag
 * is greater than that of a sibling that has nothing waiting, but bios in flight: the node has had
 * more of the device, for its weight, than the sibling, which does not want more.  As many I/Os may
 * be in flight as the device does at once; beyond that a group dispatches only while neither it nor
 * a group above it leads.  A group that lags behind is slowed down by the I/Os of groups that lead,
 * so only groups that lead have to wait.
 *
 * Example: A has weight 300 and B 100, and each has 64 I/Os outstanding, on a device that does 64
 * at once.  A has all of its I/Os in flight, so B waits as soon as it has had more than a third of
 * what A has had: 21 of its I/Os are in flight beside 64 of A's.
 *
 * All functions of this file are called with dev->lock held.
 */
#include "../ioband.h"

/* A group that was away for this long does not start ahead of others any more. */
#define IOBAND_FORGET_NS	NSEC_PER_SEC
/* The most I/Os that count as one turnover of the device, see ioband_catch_up(). */
#define IOBAND_LAG_IOS		256U
/* Four times this is less than half of the range of a tag. */
#define IOBAND_LAG_MAX		BIT_ULL(54)

static struct ioband_node *rb_to_node(struct rb_node *node)
{
	return rb_entry_safe(node, struct ioband_node, node);
}

static struct ioband_node *first_queued(const struct ioband_node *n)
{
	return rb_to_node(rb_first_cached(&n->queued));
}

static struct ioband_node *first_flying(const struct ioband_node *n)
{
	return rb_to_node(rb_first_cached(&n->flying));
}

static bool ioband_before_node(struct rb_node *a, const struct rb_node *b)
{
	return ioband_tag_before(rb_entry(a, struct ioband_node, node)->tag,
				 rb_entry(b, struct ioband_node, node)->tag);
}

static struct rb_root_cached *ioband_tree_of(struct ioband_node *n)
{
	switch (n->where) {
	case IOBAND_QUEUED:
		return &n->above->queued;
	case IOBAND_FLYING:
		return &n->above->flying;
	default:
		return NULL;
	}
}

static void ioband_node_out(struct ioband_node *n)
{
	struct rb_root_cached *tree = ioband_tree_of(n);

	if (tree)
		rb_erase_cached(&n->node, tree);
}

static void ioband_node_in(struct ioband_node *n)
{
	struct rb_root_cached *tree = ioband_tree_of(n);

	if (tree)
		rb_add_cached(&n->node, tree, ioband_before_node);
}

/* The state of a node that has nodes below. */
static enum ioband_where ioband_where_by_those_below(const struct ioband_node *n)
{
	if (first_queued(n))
		return IOBAND_QUEUED;
	return first_flying(n) ? IOBAND_FLYING : IOBAND_AWAY;
}

/* Set up a node, which is not active.  @above: NULL for the device.  @weight: at least 1. */
void ioband_node_init(struct ioband_node *n, struct ioband_node *above, u32 weight)
{
	n->above = above;
	n->queued = RB_ROOT_CACHED;
	n->flying = RB_ROOT_CACHED;
	ioband_node_weigh(n, weight);
}

/* Change the weight of a node, at least 1. */
void ioband_node_weigh(struct ioband_node *n, u32 weight)
{
	/* in unsigned arithmetic a difference below 0 comes out right, too */
	if (ioband_is_active(n->where))
		n->above->active_sum += (u64)weight - n->weight;
	n->weight = weight;
	n->inv = div_u64((u64)IOBAND_WEIGHT_UNIT << IOBAND_INV_SHIFT, weight);
}

/* The device time, ns, after which the siblings of a node have advanced by a tag, ns << 8. */
s64 ioband_tag_ns(const struct ioband_node *n, u64 tag)
{
	u64 sum = n->above->active_sum, most = div64_u64(U64_MAX, max(sum, 1ULL));

	return div_u64(min(tag >> 8, most) * sum, IOBAND_WEIGHT_UNIT);
}

/*
 * Let a node be ahead of its siblings by @ns of device time at most, at its weight.  Returns the ns
 * for which it would have waited beyond that.
 */
s64 ioband_node_bound(struct ioband_node *n, s64 ns)
{
	u64 most = n->above->vtime + ioband_charge_tag((u64)ns << 8, n->inv);
	s64 beyond = n->tag - most;

	if (beyond <= 0)
		return 0;
	ioband_node_out(n);
	n->tag = most;
	ioband_node_in(n);
	return ioband_tag_ns(n, beyond);
}

static void ioband_node_move(struct ioband_node *n, enum ioband_where where, s64 now)
{
	int more = ioband_is_active(where) - ioband_is_active(n->where);

	ioband_node_out(n);
	n->where = where;
	ioband_node_in(n);
	n->above->active_sum += (s64)more * n->weight;
	if (more < 0)
		n->left_ns = now;
}

/* As ioband_node_move() for a group's own I/O, which counts in ->nr_active while active. */
static void ioband_leaf_move(struct ioband_grp *grp, enum ioband_where where, s64 now)
{
	struct ioband_node *n = &grp->share.own;

	grp->dev->share.nr_active += ioband_is_active(where) - ioband_is_active(n->where);
	ioband_node_move(n, where, now);
}

/* Change the state of a group's own I/O, I8; for IOBAND_QUEUED there is ioband_queue(). */
void ioband_move(struct ioband_grp *grp, enum ioband_where where, s64 now)
{
	struct ioband_node *n = &grp->share.own;

	if (n->where == where)
		return;
	ioband_leaf_move(grp, where, now);
	for (n = n->above; n->above; n = n->above) {
		where = ioband_where_by_those_below(n);
		if (n->where == where)
			break;
		ioband_node_move(n, where, now);
	}
}

/* How far the tags of a node's level advance in @ns of device time, ns << 8. */
static u64 ioband_slack_of(const struct ioband_node *n, s64 ns)
{
	return ns ? div64_u64(((u64)ns << 8) * IOBAND_WEIGHT_UNIT, n->above->active_sum) : 0;
}

/*
 * A node that becomes active starts at the virtual time.  If it has fallen behind while all its
 * I/Os were in flight, it may claim that, up to a few turnovers of the device: a program that does
 * one I/O at a time cannot ask for more.
 */
static void ioband_catch_up(struct ioband_node *n, const struct ioband_sharer *sh, u64 cost,
			    s64 now)
{
	u64 from = n->above->vtime;

	if (n->where == IOBAND_FLYING)
		from -= max(4 * min(2 * min(sh->depth.depth, IOBAND_LAG_IOS) *
				    min(n->above->vstep, IOBAND_LAG_MAX) +
				    ioband_charge_tag(cost, n->inv), IOBAND_LAG_MAX),
			    2 * ioband_slack_of(n, sh->lease_ns));
	else if (now - n->left_ns > IOBAND_FORGET_NS)
		n->tag = from;	/* an old tag may have wrapped, and seem to be ahead */
	n->tag = ioband_tag_max(n->tag, from);
}

/* A group has a bio waiting.  @cost: device time of its first bio, ns << 8. */
void ioband_queue(struct ioband_grp *grp, u64 cost, s64 now)
{
	struct ioband_sharer *sh = &grp->dev->share;
	struct ioband_node *n = &grp->share.own;
	u32 weight = ioband_leaf_weight(grp);

	if (n->weight != weight)
		ioband_node_weigh(n, weight);
	for (; n->above && n->where != IOBAND_QUEUED; n = n->above) {
		/* a node in a tree may get another tag here, since it leaves that tree next */
		ioband_catch_up(n, sh, cost, now);
		if (n == &grp->share.own)
			ioband_leaf_move(grp, IOBAND_QUEUED, now);
		else
			ioband_node_move(n, IOBAND_QUEUED, now);
	}
}

/*
 * The virtual time is the greatest start tag of nodes whose turn it was.  I/Os dispatched before
 * their turn do not advance it.
 */
static void ioband_advance_tag(struct ioband_node *above, u64 tag)
{
	if (!ioband_tag_before(above->vtime, tag))
		return;
	above->vstep = (7 * above->vstep + (tag - above->vtime)) / 8;
	above->vtime = tag;
}

/* The state of a group's own I/O after one of its bios has been dispatched. */
static enum ioband_where ioband_where_after(const struct ioband_share *g)
{
	if (g->own.where == IOBAND_STUCK)
		return IOBAND_STUCK;
	return ioband_has_waiting(g) ? IOBAND_QUEUED : IOBAND_FLYING;
}

/* Charge a group for an I/O, ns << 8, that its fifos have no more.  @turn: was it its turn? */
void ioband_charge_io(struct ioband_grp *grp, u64 cost, bool turn)
{
	for (struct ioband_node *n = &grp->share.own; n->above; n = n->above) {
		u64 charge = ioband_charge_tag(cost, n->inv);

		ioband_node_out(n);
		if (turn)
			ioband_advance_tag(n->above, n->tag);
		n->tag += charge;
		n->due += charge;
		n->where = n == &grp->share.own ? ioband_where_after(&grp->share) :
						  ioband_where_by_those_below(n);
		ioband_node_in(n);
	}
}

/* Give back a part of a charge that is not used, or not yet; ns << 8. */
void ioband_refund(struct ioband_grp *grp, u64 cost)
{
	for (struct ioband_node *n = &grp->share.own; n->above; n = n->above) {
		u64 charge = ioband_charge_tag(cost, n->inv);

		ioband_node_out(n);
		n->tag -= charge;
		n->due -= charge;
		ioband_node_in(n);
	}
}

/* The group whose turn it is; NULL if only stuck groups, or none, have bios waiting. */
struct ioband_grp *ioband_first_grp(const struct ioband_sharer *sh)
{
	const struct ioband_node *n = &sh->top, *next;

	while ((next = first_queued(n)))
		n = next;
	return n == &sh->top ? NULL : container_of(n, struct ioband_grp, share.own);
}

/* The group that lags behind most, of the flying groups below a flying node. */
struct ioband_grp *ioband_behind(const struct ioband_node *n)
{
	const struct ioband_node *next;

	while ((next = first_flying(n)))
		n = next;
	return container_of(n, struct ioband_grp, share.own);
}

/* Does a group, or one above it, lead one whose I/O is all in flight by @by_ns at least? */
bool ioband_leads(const struct ioband_grp *grp, s64 by_ns)
{
	for (const struct ioband_node *n = &grp->share.own; n->above; n = n->above) {
		struct ioband_node *behind = first_flying(n->above);

		if (behind && ioband_tag_before(behind->tag + ioband_slack_of(n, by_ns), n->tag))
			return true;
	}
	return false;
}

/*
 * The device time, ns, until others have had as much as a group, for its weight; less than 0 if the
 * group lags behind, 0 if no other is active.
 */
s64 ioband_lead_ns(const struct ioband_grp *grp)
{
	s64 most_ns = S64_MIN;

	for (const struct ioband_node *n = &grp->share.own; n->above; n = n->above) {
		s64 lead = n->tag - n->above->vtime, ns;

		if (n->above->active_sum <= n->weight)
			continue;
		ns = ioband_tag_ns(n, abs(lead));
		most_ns = max(most_ns, lead < 0 ? -ns : ns);
	}
	return most_ns == S64_MIN ? 0 : most_ns;
}
