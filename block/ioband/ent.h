/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_ENT_H
#define IOBAND_ENT_H

#include <linux/rbtree.h>
#include <linux/types.h>

enum ioband_kind {
	IOBAND_SOURCE,		/* the fifo of a group */
	IOBAND_GATE,		/* the rule of a group */
	IOBAND_TOP,		/* the device */
	IOBAND_GRACE,		/* the end of waiting for a reader */
};

enum ioband_state {
	IOBAND_IDLE,		/* in no tree */
	IOBAND_READY,		/* in parent->ready */
	IOBAND_TIMED,		/* in dev->timed */
};

/* something that waits in a tree: see I5 */
struct ioband_ent {
	struct rb_node		node;	/* in parent->ready or in dev->timed */
	u64			key;	/* start tag there, or time here */
	u64			tag;	/* start tag of the next I/O, bytes at parent */
	struct ioband_ent	*parent;
	struct bio		*head;	/* that goes next from here, NULL if none waits */
	struct rb_root_cached	ready;	/* gates: who may go, as far as we know */
	u64			vtime;	/* gates: start tag of the last to go */
	u64			vlast;	/* gates: the greatest tag handed out */
	s64			busy_until_ns;	/* gates: from then on a small I/O can go */
	s64			last_due;	/* of the last to go, see ioband_due() */
	enum ioband_kind	kind;
	enum ioband_state	state;
};

#endif /* IOBAND_ENT_H */
