// SPDX-License-Identifier: GPL-2.0
/*
 * Queues: where held bios wait.  Each group has a fifo, and trees tell which group is next.
 *
 * For each direction the sources (the groups' fifos) and gates (the groups' limits) of a
 * device form a tree under the device's top.  An entity whose first bio its own limits, and
 * those of the gates below it, would let pass is in the ready tree of its parent, sorted by
 * start tag.  A gate whose own limits make its first bio wait is in dev->timed instead.  So
 * an event costs a few tree operations however many groups wait: a dispatch moves only the
 * TATs on its own path, and passing time only makes more entities ready.
 *
 * Siblings that wait at the same gate take turns by start-time fair queueing: the sibling
 * with the smallest start tag is dispatched, and its tag advances by the bytes that it used
 * of the gate.  A newcomer starts at the tag of the last sibling dispatched, so that a deep
 * queue cannot keep a shallow one out.  Debts wait in line as well, see ticket.c.
 *
 * When gates come and go under load, the groups that wait below them are not searched for:
 * each group looks up its gates again before its next bio is dispatched, see I10.
 */
#include "../ioband.h"

/* Set up one direction, all zero, of a group that has no limits and holds nothing. */
void ioband_dir_init(struct ioband_grp *grp, struct ioband_dir *dir)
{
	dir->grp = grp;
	dir->gate.kind = IOBAND_GATE;
	dir->gate.ready = RB_ROOT_CACHED;
	dir->source.kind = IOBAND_SOURCE;
	bio_list_init(&dir->fifo);
	INIT_LIST_HEAD(&dir->active);
	ioband_ticket_init(&dir->ghost);
	dir->ghost.debt = true;
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

/*
 * The first bio of a gate has saved up more than a burst.  It is in service: bios that come later
 * line up behind it at this gate and at those below.  Otherwise they would use what it has saved
 * up, or lose it, since only a bio that waits for it can have more than a burst in hand.
 */
static void ioband_serve(struct ioband_ent *gate)
{
	struct ioband_ent *head;

	while (gate->kind == IOBAND_GATE && (head = ioband_first(&gate->ready))) {
		gate->vtime = head->tag + 1;
		gate = head;
	}
}

/* Give an entity that had no bio for its parent a place among its siblings. */
static void ioband_line_up(struct ioband_ent *ent, s64 now)
{
	struct ioband_ent *parent = ent->parent;

	for (struct ioband_ent *gate = parent; gate->kind == IOBAND_GATE; gate = gate->parent)
		if (gate->head && ioband_bio_saves(ent_to_gate(gate), gate->head, now))
			ioband_serve(gate);
	/*
	 * When a limit has been idle, having used less of it is no advantage any more.  Before
	 * busy_until_ns its groups may be about to submit again, though none has a bio waiting.
	 */
	if (parent->kind == IOBAND_GATE && !ioband_first(&parent->ready) &&
	    now > parent->busy_until_ns)
		parent->vtime = parent->vlast;
	/* it has no claim for that time */
	if ((s64)(parent->vtime - ent->tag) > 0)
		ent->tag = parent->vtime;
}

static struct bio *ioband_ent_head(struct ioband_ent *ent)
{
	struct ioband_ent *first;

	if (ent->kind == IOBAND_SOURCE)
		return bio_list_peek(&ent_to_source(ent)->fifo);
	first = ioband_first(&ent->ready);
	return first ? first->head : NULL;
}

/* Put an entity into the tree where it belongs.  Returns true if its parent may have to move. */
static bool ioband_place_one(struct ioband_dev *dev, struct ioband_ent *ent, s64 now)
{
	struct ioband_ent *parent = ent->parent;
	struct ioband_ent *first = ioband_first(&parent->ready);
	bool ready = ent->state == IOBAND_READY;
	s64 when = now;

	ioband_untime(dev, ent);
	ent->head = ioband_ent_head(ent);
	if (ent->kind == IOBAND_GATE && ent->head)
		when = ioband_bio_when(ent_to_gate(ent), ent->head);
	if (ent->head && when <= now) {
		/* one that stays keeps its place, also among equals */
		if (!ready)
			ioband_line_up(ent, now);
		ent->key = ent->tag;
		rb_add_cached(&ent->node, &parent->ready, ioband_before);
		ent->state = IOBAND_READY;
	} else if (ent->head) {
		ioband_time(dev, ent, when);
	}
	/* the gates above look at the first bio only */
	return first == ent || ioband_first(&parent->ready) != first ||
	       parent->state == IOBAND_IDLE;
}

/* Put an entity whose first bio or limits may have changed, and those above, where they belong. */
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

	/* a tag is valid for one parent only */
	if (old != parent) {
		if (old) {
			ioband_untime(dev, ent);
			ioband_place(dev, old, now);
		}
		ent->tag = parent->vtime;
		ent->parent = parent;
	}
	return parent;
}

/* Have a group's held bios wait at the gates that exist now.  dev->lock held. */
void ioband_attach(struct ioband_dir *dir, s64 now)
{
	struct ioband_dev *dev = dir->grp->dev;
	struct ioband_ent *ent = &dir->source;
	struct ioband_dir *gate;

	for (gate = dir->lim; gate; gate = gate->up)
		ent = ioband_adopt(dev, ent, &gate->gate, now);
	ioband_adopt(dev, ent, &dev->top[ioband_rw(dir)], now);
	/* each of these entities may have moved */
	for (ent = &dir->source; ent->kind != IOBAND_TOP; ent = ent->parent)
		ioband_place_one(dev, ent, now);
}

/* Change what a group owes in its line, and so what groups above have below.  dev->lock held. */
void ioband_owed(struct ioband_dir *dir, enum ioband_unit unit, s64 units)
{
	dir->owed_units[unit] += units;
	for (struct ioband_grp *grp = dir->grp; grp && units; grp = ioband_parent(grp))
		grp->dir[ioband_rw(dir)].owed_below[unit] += units;
}

/* Count what a bio or ticket has to pay in the line of its group, or count it no more. */
static void ioband_in_line(struct ioband_dir *dir, struct bio *bio, int sign)
{
	struct ioband_ticket *ticket = container_of(bio, struct ioband_ticket, bio);
	bool is_ticket = ioband_is_ticket(bio), is_debt = ioband_is_debt(bio);

	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		u64 units = is_ticket ? ticket->units[unit] : ioband_units(bio, unit);

		dir->held_units[unit] += sign * units;
		ioband_owed(dir, unit, sign * units * is_debt);
	}
}

/*
 * Hold a stamped bio until its limits have room for it.  The rest of a split goes to the head of
 * the fifo: its bytes have been charged, and the completion of the whole bio waits for it.  So does
 * the debt of a call that has paid for less than it did.  dev->lock held.
 */
void ioband_hold(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	struct ioband_dev *dev = dir->grp->dev;
	bool first = !dir->held++;

	/* I2: a held bio keeps its group from being freed; bios of KUnit tests have no group */
	WARN_ON_ONCE(bio->bi_blkg && blkg_to_grp(bio->bi_blkg) != dir->grp);
	/* a bio that has paid would not be submitted again: it must not fail with -EAGAIN */
	bio->bi_opf &= ~REQ_NOWAIT;
	ioband_in_line(dir, bio, 1);
	if (bio_flagged(bio, BIO_BPS_THROTTLED))
		bio_list_add_head(&dir->fifo, bio);
	else
		bio_list_add(&dir->fifo, bio);
	if (first) {
		dir->held_since = now;
		ioband_count(dir, IOBAND_LINES, 1);
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
	ioband_count(dir, IOBAND_LINES, -1);
	list_del_init(&dir->active);
}

/* Move all held bios of a group that has some to a list.  dev->lock held. */
void ioband_drain(struct ioband_dir *dir, struct bio_list *bios, s64 now)
{
	bio_list_merge_init(bios, &dir->fifo);
	dir->held = 0;
	memset(dir->held_units, 0, sizeof(dir->held_units));
	for (enum ioband_unit unit = 0; unit < IOBAND_NR_UNITS; unit++)
		ioband_owed(dir, unit, -dir->owed_units[unit]);
	ioband_unheld(dir, now);
	ioband_place(dir->grp->dev, &dir->source, now);
}

/* Take the first bio of a group from its fifo; the caller places dir->source afterwards. */
static void ioband_pop(struct ioband_dir *dir, s64 now)
{
	if (!--dir->held)
		ioband_unheld(dir, now);
	ioband_in_line(dir, bio_list_pop(&dir->fifo), -1);
}

/* Advance the start tags from a source up to the top, by what @bio uses. */
static void ioband_advance(struct ioband_dev *dev, struct ioband_ent *ent,
			   struct bio *bio, s64 due)
{
	for (; ent->kind != IOBAND_TOP; ent = ent->parent) {
		struct ioband_ent *parent = ent->parent;

		ioband_untime(dev, ent);
		ent->last_due = due;
		parent->vtime = ent->tag;
		if (parent->kind == IOBAND_GATE) {
			ent->tag += ioband_bio_turn(ent_to_gate(parent), bio);
			ioband_gate_used(ent_to_gate(parent));
		} else {
			ent->tag++;
		}
		if ((s64)(ent->tag - parent->vlast) > 0)
			parent->vlast = ent->tag;
	}
}

/* The group whose bio is next, with its gates up to date; NULL if no group may dispatch. */
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

/*
 * Take the next held bio that may be dispatched and has paid at all its gates, NULL if there is
 * none.  Sets @due to the time when it was due.  @budget: the number of groups that may be looked
 * at, reduced by those that were.  dev->lock held.
 */
struct bio *ioband_next(struct ioband_dev *dev, int rw, s64 now, s64 *due,
			unsigned int *budget)
{
	struct ioband_dir *dir;

	while ((dir = ioband_next_dir(dev, rw, now, budget))) {
		struct ioband_ent *ent = &dir->source;
		struct bio *bio = ent->head;

		(*budget)--;
		/* bios on the fast path may have used the limits meanwhile */
		*due = ioband_due(dir, bio, now);
		if (*due > now || !ioband_pay(dir, bio, *due)) {
			ioband_place(dev, ent->parent, now);
			continue;
		}
		/* what pays nothing takes no turn from others */
		if (ioband_is_bound(dir, bio))
			ioband_advance(dev, ent, bio, *due);
		/* a ticket that has paid a part waits for the next one */
		if (ioband_is_ticket(bio) &&
		    ioband_ticket_paid(container_of(bio, struct ioband_ticket, bio), dir)) {
			ioband_place(dev, ent, now);
			continue;
		}
		ioband_pop(dir, now);
		ioband_place(dev, ent, now);
		return bio;
	}
	return NULL;
}
