// SPDX-License-Identifier: GPL-2.0
/*
 * Where held bios wait: the fifos of the groups, and the trees that say whose
 * turn it is.
 *
 * For each direction the sources (fifos) and gates (rules) of a device form a
 * tree under the device's top.  An entity that could go, as far as it and those
 * below it know, is in the ready tree of its parent, sorted by start tag; a gate
 * whose own limits make its head wait is in dev->timed instead.  So an event
 * costs a few tree operations however many groups wait: a release moves only the
 * TATs on its own path, and passing time only makes more entities ready.
 *
 * Siblings that wait for the same gate take turns by start-time fair queueing:
 * the one with the least start tag goes and its tag advances by what it used of
 * the gate, in bytes.  A newcomer starts at the tag of the last that went, so that
 * a deep queue cannot keep a shallow one out.  What a group owes counts as well, and its
 * tasks stand in line until it is their turn, see ticket.c: otherwise they could take
 * again and again, as a debt, what the first in line has saved.
 *
 * Gates come and go under load, and then those who wait below them are not looked for:
 * whoever is next anyway finds its way anew before it goes, see I10.
 */
#include "ioband.h"

/**
 * ioband_dir_init - set up one direction of a group that has no limits and holds nothing
 * @grp:	the group
 * @dir:	the direction, all zero
 */
void ioband_dir_init(struct ioband_grp *grp, struct ioband_dir *dir)
{
	dir->grp = grp;
	dir->gate.kind = IOBAND_GATE;
	dir->gate.ready = RB_ROOT_CACHED;
	dir->source.kind = IOBAND_SOURCE;
	bio_list_init(&dir->fifo);
	INIT_LIST_HEAD(&dir->active);
	dir->limit[IOBAND_BYTES] = U64_MAX;
	dir->limit[IOBAND_IOS] = U64_MAX;
}

static struct ioband_dir *ent_to_gate(struct ioband_ent *ent)
{
	return container_of(ent, struct ioband_dir, gate);
}

static struct ioband_dir *ent_to_source(struct ioband_ent *ent)
{
	return container_of(ent, struct ioband_dir, source);
}

static int ioband_rw(const struct ioband_dir *dir)
{
	return dir - dir->grp->dir;
}

static struct ioband_ent *ioband_first(const struct rb_root_cached *root)
{
	return rb_entry_safe(rb_first_cached(root), struct ioband_ent, node);
}

static bool ioband_before(struct rb_node *a, const struct rb_node *b)
{
	return (s64)(rb_entry(a, struct ioband_ent, node)->key -
		     rb_entry(b, struct ioband_ent, node)->key) < 0;
}

static void ioband_remove(struct ioband_dev *dev, struct ioband_ent *ent)
{
	if (ent->state == IOBAND_READY)
		rb_erase_cached(&ent->node, &ent->parent->ready);
	else if (ent->state == IOBAND_TIMED)
		rb_erase_cached(&ent->node, &dev->timed);
	ent->state = IOBAND_IDLE;
}

static void ioband_ready(struct ioband_ent *ent, s64 now)
{
	struct ioband_ent *parent = ent->parent;

	/*
	 * Nobody has an advantage for having used less of a limit once that is idle.  Before,
	 * those who use it may be about to come back, though none of them waits.
	 */
	if (parent->kind == IOBAND_GATE && !ioband_first(&parent->ready) &&
	    now > parent->busy_until_ns)
		parent->vtime = parent->vlast;
	/* who was away claims nothing for that time */
	if ((s64)(parent->vtime - ent->tag) > 0)
		ent->tag = parent->vtime;
	ent->key = ent->tag;
	rb_add_cached(&ent->node, &parent->ready, ioband_before);
	ent->state = IOBAND_READY;
}

/**
 * ioband_time - have something happen at a time
 * @dev:	the device
 * @ent:	an entity that is in no tree, or in dev->timed
 * @when:	ns
 *
 * Context: dev->lock held; the caller arms the timer, see ioband_kick().
 */
void ioband_time(struct ioband_dev *dev, struct ioband_ent *ent, s64 when)
{
	ioband_remove(dev, ent);
	ent->key = when;
	rb_add_cached(&ent->node, &dev->timed, ioband_before);
	ent->state = IOBAND_TIMED;
}

/**
 * ioband_untime - undo ioband_time()
 * @dev:	the device
 * @ent:	the entity, wherever it is
 *
 * Context: dev->lock held.
 */
void ioband_untime(struct ioband_dev *dev, struct ioband_ent *ent)
{
	ioband_remove(dev, ent);
}

/*
 * The head of a gate starts to save up for more than a burst: from now on it is in
 * service, and who comes later lines up behind it at this gate and those below.
 * Otherwise small ones would take away, again and again, what it has saved.
 */
static void ioband_serve(struct ioband_ent *gate)
{
	while (gate->kind == IOBAND_GATE) {
		struct ioband_ent *head = ioband_first(&gate->ready);

		gate->vtime = head->tag;
		gate = head;
	}
}

static struct bio *ioband_ent_head(struct ioband_ent *ent)
{
	struct ioband_ent *first;

	if (ent->kind == IOBAND_SOURCE)
		return bio_list_peek(&ent_to_source(ent)->fifo);
	first = ioband_first(&ent->ready);
	return first ? first->head : NULL;
}

/* Put one entity where it belongs.  Returns true if that may concern its parent. */
static bool ioband_place_one(struct ioband_dev *dev, struct ioband_ent *ent, s64 now)
{
	struct ioband_ent *parent = ent->parent;
	struct ioband_ent *first = ioband_first(&parent->ready);
	s64 when = now;

	ioband_remove(dev, ent);
	ent->head = ioband_ent_head(ent);
	if (ent->kind == IOBAND_GATE && ent->head)
		when = ioband_bio_when(ent_to_gate(ent), ent->head);
	if (ent->head && when <= now) {
		ioband_ready(ent, now);
	} else if (ent->head) {
		if (ioband_bio_saves(ent_to_gate(ent), ent->head))
			ioband_serve(ent);
		ioband_time(dev, ent, when);
	}
	/* those above look at the head only */
	return first == ent || ioband_first(&parent->ready) != first ||
	       parent->state == IOBAND_IDLE;
}

/**
 * ioband_place - put an entity, and those above, where they belong
 * @dev:	the device
 * @ent:	a source or gate whose head or limits may have changed
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_place(struct ioband_dev *dev, struct ioband_ent *ent, s64 now)
{
	lockdep_assert_held(&dev->lock);
	while (ent->kind != IOBAND_TOP && ioband_place_one(dev, ent, now))
		ent = ent->parent;
}

static struct ioband_ent *ioband_adopt(struct ioband_dev *dev, struct ioband_ent *ent,
				       struct ioband_ent *parent, s64 now)
{
	struct ioband_ent *old = ent->parent;

	/* tags are those of one parent */
	if (old != parent) {
		if (old) {
			ioband_remove(dev, ent);
			ioband_place(dev, old, now);
		}
		ent->tag = parent->vtime;
		ent->parent = parent;
	}
	return parent;
}

/**
 * ioband_attach - let a group's held bios wait at the gates there are now
 * @dir:	the group and direction
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_attach(struct ioband_dir *dir, s64 now)
{
	struct ioband_dev *dev = dir->grp->dev;
	struct ioband_ent *ent = &dir->source;
	struct ioband_dir *gate;

	for (gate = dir->lim; gate; gate = gate->up) {
		struct ioband_rule *rule = ioband_gate_rule(gate);

		ent = ioband_adopt(dev, ent, &gate->gate, now);
		/* when the first leaves depends on all that can be had, I12 */
		if (rule)
			ioband_reserve_reclaim(rule);
	}
	ioband_adopt(dev, ent, &dev->top[ioband_rw(dir)], now);
	/* each of them may have moved */
	for (ent = &dir->source; ent->kind != IOBAND_TOP; ent = ent->parent)
		ioband_place_one(dev, ent, now);
}

/**
 * ioband_hold - keep a bio until its caps let it go
 * @dir:	its group and direction
 * @bio:	the bio, stamped
 * @now:	ns
 *
 * The rest of a split goes first: its bytes have been given, and its other half
 * waits for it.
 *
 * Context: dev->lock held.
 */
void ioband_hold(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	struct ioband_dev *dev = dir->grp->dev;
	bool first = !dir->held++;

	/* it has paid and will not be sent again: it must not fail for want of a tag */
	bio->bi_opf &= ~REQ_NOWAIT;
	ioband_lane_begin(dev, bio);
	dir->nr_throttled++;
	if (bio_flagged(bio, BIO_BPS_THROTTLED))
		bio_list_add_head(&dir->fifo, bio);
	else
		bio_list_add(&dir->fifo, bio);
	if (first) {
		dir->held_since = now;
		list_add_tail(&dir->active, &dev->active[ioband_rw(dir)]);
		ioband_attach(dir, now);
	} else if (bio == ioband_ent_head(&dir->source)) {
		ioband_place(dev, &dir->source, now);
	} else {
		return;
	}
	ioband_kick(dev, now);
}

static void ioband_unheld(struct ioband_dir *dir, s64 now)
{
	dir->held_ns += now - dir->held_since;
	list_del_init(&dir->active);
}

/**
 * ioband_drain - take all bios of a group
 * @dir:	the group and direction, with held bios
 * @bios:	where to add them
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_drain(struct ioband_dir *dir, struct bio_list *bios, s64 now)
{
	bio_list_merge_init(bios, &dir->fifo);
	dir->held = 0;
	ioband_unheld(dir, now);
	ioband_place(dir->grp->dev, &dir->source, now);
}

/* Take the first bio of a group; the caller places dir->source afterwards. */
static void ioband_pop(struct ioband_dir *dir, s64 now)
{
	if (!--dir->held)
		ioband_unheld(dir, now);
	bio_list_pop(&dir->fifo);
}

/* Advance the start tags from a source up to the top by what @bio uses, and what was owed. */
static void ioband_advance(struct ioband_dev *dev, struct ioband_ent *ent,
			   struct bio *bio, s64 due)
{
	struct ioband_dir *dir = ent_to_source(ent);
	u64 owed = dir->owed_turn;

	dir->owed_turn = 0;
	for (; ent->kind != IOBAND_TOP; ent = ent->parent) {
		struct ioband_ent *parent = ent->parent;

		ioband_remove(dev, ent);
		ent->last_due = due;
		parent->vtime = ent->tag;
		if (parent->kind == IOBAND_GATE) {
			ent->tag += ioband_bio_turn(ent_to_gate(parent), bio) + owed;
			ioband_gate_used(ent_to_gate(parent));
		} else {
			ent->tag++;
		}
		if ((s64)(ent->tag - parent->vlast) > 0)
			parent->vlast = ent->tag;
	}
}

/* Who goes next, if anybody may, after finding its gates anew. */
static struct ioband_dir *ioband_next_dir(struct ioband_dev *dev, int rw, s64 now,
					  unsigned int *budget)
{
	struct ioband_ent *ent;
	struct ioband_dir *dir;

	while (*budget && (ent = ioband_first(&dev->top[rw].ready))) {
		while (ent->kind == IOBAND_GATE)
			ent = ioband_first(&ent->ready);
		dir = ent_to_source(ent);
		if (!ioband_is_stale(dir))
			return dir;
		ioband_relink(dir, now);
		(*budget)--;
	}
	return NULL;
}

/**
 * ioband_next - take the next bio that may go
 * @dev:	the device
 * @rw:		READ or WRITE
 * @now:	ns
 * @due:	set to when that bio was due, ns
 * @budget:	how many groups may be looked at; becomes what is left of it
 *
 * Context: dev->lock held.
 * Return: a bio that has paid at all its gates, or NULL.
 */
struct bio *ioband_next(struct ioband_dev *dev, int rw, s64 now, s64 *due,
			unsigned int *budget)
{
	struct ioband_dir *dir;

	while ((dir = ioband_next_dir(dev, rw, now, budget))) {
		struct ioband_ent *ent = &dir->source;
		struct bio *bio = ent->head;

		(*budget)--;
		/* debts and the fast path may have been here meanwhile */
		*due = ioband_due(dir, bio, now);
		if (*due > now || !ioband_pay(dir, bio, *due)) {
			ioband_place(dev, ent->parent, now);
			continue;
		}
		ioband_advance(dev, ent, bio, *due);
		ioband_pop(dir, now);
		ioband_place(dev, ent, now);
		return bio;
	}
	return NULL;
}

/**
 * ioband_expire - take an entity whose time has come
 * @dev:	the device
 * @now:	ns
 *
 * Context: dev->lock held.
 * Return: an entity that is in no tree any more, or NULL.
 */
struct ioband_ent *ioband_expire(struct ioband_dev *dev, s64 now)
{
	struct ioband_ent *ent = ioband_first(&dev->timed);

	if (!ent || (s64)ent->key > now)
		return NULL;
	ioband_remove(dev, ent);
	return ent;
}
