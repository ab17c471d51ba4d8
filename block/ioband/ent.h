/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_ENT_H
#define IOBAND_ENT_H

#include <linux/rbtree.h>
#include <linux/types.h>

enum ioband_kind {
	IOBAND_SOURCE,		/* the fifo of a group */
	IOBAND_GATE,		/* the limits of a group */
	IOBAND_TOP,		/* the device */
	IOBAND_GRACE,		/* when the share gate is looked at again */
};

enum ioband_state {
	IOBAND_IDLE,		/* in no tree */
	IOBAND_READY,		/* in parent->ready */
	IOBAND_TIMED,		/* in dev->timed */
};

/* an entity that waits in a tree: see I5 */
struct ioband_ent {
	struct rb_node		node;	/* in parent->ready or in dev->timed */
	u64			key;	/* in parent->ready: start tag; in dev->timed: ns */
	u64			tag;	/* start tag of the next I/O, in bytes of parent */
	struct ioband_ent	*parent;
	struct bio		*head;	/* the next bio from here, NULL if none waits */
	struct rb_root_cached	ready;	/* gates: entities below that may dispatch */
	u64			vtime;	/* gates: start tag of the last dispatch */
	u64			vlast;	/* gates: the greatest tag handed out */
	s64			busy_until_ns;	/* gates: when a small I/O has room again */
	s64			last_due;	/* ns, of the last dispatch, see ioband_due() */
	enum ioband_kind	kind;
	enum ioband_state	state;
};

/* The first entity of a tree, NULL if the tree is empty. */
static inline struct ioband_ent *ioband_first(const struct rb_root_cached *root)
{
	return rb_entry_safe(rb_first_cached(root), struct ioband_ent, node);
}

/* For rb_add_cached(). */
static inline bool ioband_before(struct rb_node *a, const struct rb_node *b)
{
	return (s64)(rb_entry(a, struct ioband_ent, node)->key -
		     rb_entry(b, struct ioband_ent, node)->key) < 0;
}

#endif /* IOBAND_ENT_H */
