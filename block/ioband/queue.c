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
 * the gate's time.  A newcomer starts at the tag of the last that went, so that
 * a deep queue cannot keep a shallow one out.
 */
#include "ioband.h"

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

/* The bio that goes next from @ent, if any. */
static struct bio *ioband_head(struct ioband_ent *ent)
{
	while (ent && ent->kind != IOBAND_SOURCE)
		ent = ioband_first(&ent->ready);
	return ent ? bio_list_peek(&ent_to_source(ent)->fifo) : NULL;
}

static void ioband_remove(struct ioband_dev *dev, struct ioband_ent *ent)
{
	if (ent->state == IOBAND_READY)
		rb_erase_cached(&ent->node, &ent->parent->ready);
	else if (ent->state == IOBAND_TIMED)
		rb_erase_cached(&ent->node, &dev->timed);
	ent->state = IOBAND_IDLE;
}

static void ioband_ready(struct ioband_ent *ent)
{
	struct ioband_ent *parent = ent->parent;

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

	while (ent->kind != IOBAND_TOP) {
		struct ioband_ent *parent = ent->parent;
		struct ioband_ent *first = ioband_first(&parent->ready);
		struct bio *bio;
		s64 when = now;

		ioband_remove(dev, ent);
		bio = ioband_head(ent);
		if (bio && ent->kind == IOBAND_GATE)
			when = ioband_bio_when(ent_to_gate(ent), bio);
		/* nobody is left to be ahead of */
		if (!bio && ent->kind == IOBAND_GATE)
			ent->vtime = ent->vlast;
		if (bio && when <= now) {
			ioband_ready(ent);
		} else if (bio) {
			if (ioband_bio_saves(ent_to_gate(ent), bio))
				ioband_serve(ent);
			ioband_time(dev, ent, when);
		}

		/* those above look at the head only */
		if (first != ent && ioband_first(&parent->ready) == first &&
		    parent->state != IOBAND_IDLE)
			break;
		ent = parent;
	}
}

static struct ioband_ent *ioband_adopt(struct ioband_ent *ent,
				       struct ioband_ent *parent)
{
	/* tags count the time of one parent at one rate */
	if (ent->parent != parent || ent->tag_epoch != parent->epoch)
		ent->tag = parent->vtime;
	ent->parent = parent;
	ent->tag_epoch = parent->epoch;
	return parent;
}

/**
 * ioband_attach - let a group's held bios take part
 * @dir:	the group and direction
 * @now:	ns
 *
 * Finds the way up through the gates there are now.
 *
 * Context: dev->lock held.
 */
void ioband_attach(struct ioband_dir *dir, s64 now)
{
	struct ioband_dev *dev = dir->grp->dev;
	struct ioband_ent *ent = &dir->source;
	struct ioband_dir *gate;

	for (gate = dir->lim; gate; gate = gate->up)
		ent = ioband_adopt(ent, &gate->gate);
	ioband_adopt(ent, &dev->top[ioband_rw(dir)]);
	ioband_place(dev, &dir->source, now);
}

/**
 * ioband_detach - take a group's held bios, and the gates above, out of the trees
 * @dir:	the group and direction, with held bios
 *
 * Who else is below those gates gets them back with the next ioband_attach() from
 * below them: the caller detaches all that it is about to change, then attaches
 * them again.
 *
 * Context: dev->lock held.
 */
void ioband_detach(struct ioband_dir *dir)
{
	struct ioband_ent *ent = &dir->source;

	for (; ent->kind != IOBAND_TOP; ent = ent->parent)
		ioband_remove(dir->grp->dev, ent);
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

	dir->nr_throttled++;
	if (bio_flagged(bio, BIO_BPS_THROTTLED))
		bio_list_add_head(&dir->fifo, bio);
	else
		bio_list_add(&dir->fifo, bio);
	if (first) {
		dir->held_since = now;
		list_add_tail(&dir->active, &dev->active[ioband_rw(dir)]);
		ioband_attach(dir, now);
	} else if (bio == bio_list_peek(&dir->fifo)) {
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
	ioband_detach(dir);
	bio_list_merge_init(bios, &dir->fifo);
	dir->held = 0;
	ioband_unheld(dir, now);
}

/**
 * ioband_undrain - give back some of what ioband_drain() took
 * @dir:	the group and direction, drained
 * @bios:	in their order; empty afterwards
 * @now:	ns
 *
 * Context: dev->lock held.
 */
void ioband_undrain(struct ioband_dir *dir, struct bio_list *bios, s64 now)
{
	if (bio_list_empty(bios))
		return;
	dir->held = bio_list_size(bios);
	dir->held_since = now;
	bio_list_merge_init(&dir->fifo, bios);
	list_add_tail(&dir->active, &dir->grp->dev->active[ioband_rw(dir)]);
	ioband_attach(dir, now);
}

/* Advance the start tags from a source up to the top by what @bio uses. */
static void ioband_advance(struct ioband_dev *dev, struct ioband_ent *ent,
			   struct bio *bio, s64 due)
{
	for (; ent->kind != IOBAND_TOP; ent = ent->parent) {
		struct ioband_ent *parent = ent->parent;

		ioband_remove(dev, ent);
		ent->last_due = due;
		parent->vtime = ent->tag;
		if (parent->kind == IOBAND_GATE)
			ent->tag += ioband_bio_share(ent_to_gate(parent), bio);
		else
			ent->tag++;
		if ((s64)(ent->tag - parent->vlast) > 0)
			parent->vlast = ent->tag;
	}
}

/**
 * ioband_next - take the next bio that may go
 * @dev:	the device
 * @rw:		READ or WRITE
 * @now:	ns
 * @due:	set to when that bio was due, ns
 *
 * Context: dev->lock held.
 * Return: a bio that has paid at all its gates, or NULL.
 */
struct bio *ioband_next(struct ioband_dev *dev, int rw, s64 now, s64 *due)
{
	for (;;) {
		struct ioband_ent *ent = ioband_first(&dev->top[rw].ready);
		struct ioband_dir *dir;
		struct bio *bio;

		if (!ent)
			return NULL;
		while (ent->kind == IOBAND_GATE)
			ent = ioband_first(&ent->ready);
		dir = ent_to_source(ent);
		bio = bio_list_peek(&dir->fifo);

		/* debts and the fast path may have been here meanwhile */
		*due = ioband_due(dir, bio, now);
		if (*due > now || !ioband_pay(dir, bio, *due)) {
			ioband_place(dev, ent->parent, now);
			continue;
		}
		ioband_advance(dev, ent, bio, *due);
		bio_list_pop(&dir->fifo);
		if (!--dir->held)
			ioband_unheld(dir, now);
		ioband_place(dev, ent, now);
		return bio;
	}
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
