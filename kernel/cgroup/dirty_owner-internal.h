/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __DIRTY_OWNER_INTERNAL_H
#define __DIRTY_OWNER_INTERNAL_H

#include <linux/atomic.h>
#include <linux/backing-dev.h>
#include <linux/cgroup.h>
#include <linux/dirty_owner.h>
#include <linux/rculist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

/*
 * Lock order: i_pages and whatever a filesystem holds when it dirties a page, then
 * the lock of the flows, a leaf.  flow->lock is another leaf.  What the controller
 * calls dirty_owner_enable() under comes before its mutex; its ->rate() and ->boost()
 * are called with none of these held.
 *
 * Invariants:
 *
 *  O1	A page counts in dirty of the flow that its dirty word names, and in writing
 *	of the one that its write word names, unless that is in transit.  Who changes
 *	the word by cmpxchg or xchg changes the count, and nobody else.
 *  O2	The dirty word is set before the page is dirty, and cleared after it is
 *	clean: then it becomes the write word, in transit until the folio, which is
 *	locked so long, is under writeback, and then until the write has ended.
 *  O3	A flow that a page counts in exists: it is freed only if both counts and
 *	flow->users are zero after a grace period in which nobody could find it.
 *	A word and its count change within one RCU read side.
 *  O4	What a filesystem cleans and then does not write keeps its write word in
 *	transit, which counts nowhere and need not name a flow that exists.
 */

/* What a word can name; 0 is nobody. */
#define DIRTY_ID_MAX		(BIT(30) - 1)
/* In a write word: cleaned, and not yet being written. */
#define DIRTY_TRANSIT		BIT(31)
/* Pages of a chunk of words; no folio is in two. */
#define DIRTY_CHUNK_SHIFT	15

struct dirty_words {
	u32			dirty;
	u32			write;
};

/* dirtier and place: pages of one group on one backing device */
struct dirty_flow {
	u32			id;
	struct cgroup_subsys_state *css;	/* a reference */
	struct backing_dev_info	*bdi;		/* a reference */
	atomic_long_t		dirty;		/* pages, O1 */
	atomic_long_t		writing;	/* pages, O1 */
	atomic_long_t		dirtied;	/* pages ever, less those not written */
	atomic_long_t		written;	/* pages ever */
	atomic_t		users;		/* who waits here */
	wait_queue_head_t	wait;		/* for pages to go down to refill */
	long			refill;		/* pages */
	unsigned long		used;		/* jiffies */

	/* what it was seen to be free to do, and when: see dirty_is_free() */
	unsigned long		free_at;	/* jiffies */
	long			free_to;	/* of dirtied */
	size_t			chunk;		/* bytes */
	bool			limited;	/* as of the last look */

	/* the clock of dirty_pace.c */
	spinlock_t		lock;
	long			paced;		/* of dirtied */
	u64			rate;		/* bytes a second, 0 for none */
	s64			next;		/* ns */

	/* what dirty_pace.c has seen of written, and of the dirty limit: lock */
	long			most;		/* pages */
	long			learnt_from;
	s64			learnt_at;	/* ns */
	u64			drain;		/* pages a second */

	struct hlist_node	node;		/* lock of the flows, RCU */
	struct hlist_node	idle;		/* while it is being reaped */
};

static inline long dirty_flow_pages(const struct dirty_flow *flow)
{
	return max_t(long, atomic_long_read(&flow->dirty), 0) +
	       max_t(long, atomic_long_read(&flow->writing), 0);
}

/* dirty_flow.c */
struct cgroup_subsys_state *dirty_css_of_current(void);
struct dirty_flow *dirty_flow_of_current(struct inode *inode);
struct dirty_flow *dirty_flow_by_id(u32 id);

/* dirty_words.c */
extern const struct dirty_owner_ops *dirty_owner_ops;
struct dirty_words *dirty_words_of(unsigned long pfn);

#endif /* __DIRTY_OWNER_INTERNAL_H */
