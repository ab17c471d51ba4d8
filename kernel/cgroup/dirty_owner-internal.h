/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __DIRTY_OWNER_INTERNAL_H
#define __DIRTY_OWNER_INTERNAL_H

#include <linux/atomic.h>
#include <linux/backing-dev.h>
#include <linux/cgroup.h>
#include <linux/dirty_owner.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

/*
 * Lock order: i_pages and any lock that a filesystem holds when it dirties a page, then
 * the lock of the flows, a leaf.  flow->lock is another leaf, also below the locks under
 * which the controller calls dirty_owner_use().  The locks under which it calls
 * dirty_owner_enable() come before dirty_enable_mutex.  The controller's operations are
 * called with none of these locks held, except for ->rate: a caller may hold i_pages.
 *
 * Invariants:
 *
 *  O1	A page counts as dirty in the flow that its dirty word names, and as being written
 *	in the flow that its write word names, unless the write word is in transit.  The
 *	task whose cmpxchg or xchg changes a word changes the count, and no other task does.
 *  O2	The dirty word is set before the folio, which is locked, can be cleaned, and cleared
 *	after the folio is clean: then the word becomes the write word.  That is in transit
 *	until the folio, which stays locked, is under writeback, and is cleared when the
 *	write ends.
 *  O3	A flow that counts a page exists: a flow is freed only if both counts and
 *	flow->users are zero after a grace period in which nobody could find it.  A word
 *	and its count change within one RCU read side; a region under a spinlock or with
 *	preemption off is one.
 *  O4	A page that a filesystem cleans and then does not write keeps its write word in
 *	transit.  Such a word counts nowhere and need not name a flow that exists.
 *  O5	A hint is a flow that was found in a table, at most a grace period ago.  The hints
 *	to a flow are cleared a grace period after the flow has left the table; after one
 *	more grace period nobody can find the flow.
 *  O6	A task that has been promised pages has a struct dirty_part in current->dirty_part
 *	and in the flow's promises, from before it pays until it has dirtied the pages or
 *	given up.  It is one of flow->users meanwhile, and may wait for locks: for tasks
 *	that ask for more pages, promised bytes count as dirty.
 *  O7	The dirtier of a page without words is the group whose wb its inode has, the root group
 *	where groups have no wbs of their own.  A task leaves a page without words if no limit
 *	binds it, see dirty_owner_leaves().  Pages that are dirty when their inode gets another
 *	wb get words, under the i_pages lock.
 */

/* The largest id of a flow that a word can name; 0 names none. */
#define DIRTY_ID_MAX		(BIT(30) - 1)
/* Flag in a write word: the page was cleaned, and is not being written yet. */
#define DIRTY_TRANSIT		BIT(31)
/* log2 of the pages in a chunk of words; each folio is within one chunk. */
#define DIRTY_CHUNK_SHIFT	15

/* flow->chunk of a flow without limits, in bytes; a power of two. */
#define DIRTY_CHUNK_ANY		((size_t)1 << (BITS_PER_LONG - 2))

struct dirty_words {
	u32			dirty;
	u32			write;
};

/*
 * A dirtier and a place: the pages of one group on one backing device.  Fields that each
 * write() reads, fields that change with each page dirtied, and fields that change with each
 * page written have cache lines of their own.
 */
struct dirty_flow {
	u32			id;
	bool			limited;
	bool			owes;		/* to devices below */
	struct cgroup_subsys_state *css;	/* a reference */
	struct backing_dev_info	*bdi;		/* a reference */

	/* what dirty_look() in dirty_pace.c found last */
	unsigned long		looked_at;	/* jiffies */
	long			free_to;	/* pages: no other look until dirtied is this */
	size_t			chunk;		/* bytes of a write() at once, a power of two */
	long			refill;		/* pages: waiting tasks go on at so few */

	/* pages ever, O1: less those that will not be written */
	atomic_long_t		dirtied ____cacheline_aligned_in_smp;
	atomic_t		users;		/* tasks that keep it from being freed, O3 */
	/* see dirty_account.c */
	atomic64_t		promised;	/* bytes, O6 */
	atomic64_t		paid;		/* bytes ever */
	atomic64_t		claimed;	/* bytes that tasks are about to pay */

	/* pages ever, O1 */
	atomic_long_t		sent ____cacheline_aligned_in_smp; /* less those redirtied */
	atomic_long_t		started;
	atomic_long_t		written;
	wait_queue_head_t	wait;		/* until its pages are at most refill */

	spinlock_t		lock ____cacheline_aligned_in_smp;
	s64			used;		/* bytes ever */
	long			passed;		/* pages ever: see dirty_owner_passed() */
	unsigned int		since;		/* dirty_rate.since of its account */
	/* values of gone at which the flow is stuck, and all flows below; -1 for never */
	long			stuck_at;
	long			stuck_below;
	/* the last waits in a row in which no page went away, see dirty_has_searched() */
	long			tried_gone;	/* value of gone */
	unsigned long		tried_since;	/* value of bdi->owned_seq when they began */
	unsigned long		tried_from;	/* jiffies when they began */
	unsigned long		tried_at;	/* jiffies when the last of them ended */
	unsigned long		kick_next;	/* jiffies: do not ask all flushers before */
	unsigned long		idle_since;	/* jiffies */
	unsigned long		probe_until;	/* jiffies, 0 for never */
	long			probe_from;	/* value of written */

	/* dirty_learn() on written and on the global dirty limit; writers hold lock */
	long			most;		/* pages: an upper bound of the window */
	long			learnt_from;	/* value of written at learnt_at */
	s64			learnt_at;	/* ns of CLOCK_MONOTONIC */
	u64			drain;		/* pages written per second, measured */

	/* jiffies: the window of a limit of this flow's group, for all groups below, had room */
	unsigned long		roomy_at;

	struct hlist_node	node;		/* lock of the flows, RCU */
	struct hlist_node	on_bdi;		/* likewise */
	struct hlist_node	idle;		/* on a list of dirty_flow_reap() */
};

static inline long dirty_flow_dirty(const struct dirty_flow *flow)
{
	long sent = atomic_long_read(&flow->sent);

	return atomic_long_read(&flow->dirtied) - sent;
}

static inline long dirty_flow_writing(const struct dirty_flow *flow)
{
	long written = atomic_long_read(&flow->written);

	return atomic_long_read(&flow->started) - written;
}

/*
 * Pages ever that have left the windows: they were written, or their bios are paid and at the disk.
 * Of the latter no more are in the queues of disks than the largest window has: others count.
 */
static inline long dirty_flow_gone(const struct dirty_flow *flow)
{
	long written = atomic_long_read(&flow->written);

	return clamp(READ_ONCE(flow->passed), written,
		     written + (READ_ONCE(flow->most) ?: LONG_MAX / 2));
}

/* Pages that are being written and that no disk with limits has got yet. */
static inline long dirty_flow_on_way(const struct dirty_flow *flow)
{
	long gone = dirty_flow_gone(flow);

	return max(atomic_long_read(&flow->started) - gone, 0L);
}

/* The pages of a flow that its windows count, see dirty_window.c. */
static inline long dirty_flow_pages(const struct dirty_flow *flow)
{
	return max(dirty_flow_dirty(flow), 0L) + dirty_flow_on_way(flow);
}

/* Pages of one flow, or of all flows of a group and its descendants on a backing device. */
struct dirty_sum {
	struct cgroup_subsys_state *css;
	long			dirty;
	long			on_way;
	long			gone;		/* ever */
	long			promised;	/* of one flow */
	long			saved;		/* paid and not dirtied by the other flows */
	bool			crowded;	/* with these the window is full */
};

/* The flows that this CPU found last, O5; dirty_no_flow if none. */
struct dirty_hints {
	struct dirty_flow	*by_css;
	struct dirty_flow	*by_id;
};
DECLARE_PER_CPU(struct dirty_hints, dirty_hints);

/* dirty_flow.c */
struct dirty_flow *dirty_flow_of_current(struct inode *inode);
struct dirty_flow *dirty_flow_find(struct cgroup_subsys_state *css,
				   struct backing_dev_info *bdi);
struct dirty_flow *dirty_flow_get(struct cgroup_subsys_state *css,
				  struct backing_dev_info *bdi);
struct dirty_flow *dirty_flow_load(u32 id);
struct dirty_flow *dirty_flow_peek(const struct cgroup_subsys_state *css,
				   const struct backing_dev_info *bdi);
struct dirty_sum dirty_flow_sum(struct cgroup_subsys_state *css,
				const struct dirty_flow *own);
void dirty_flow_forfeit(struct cgroup_subsys_state *css, const struct dirty_flow *own);
bool dirty_is_data(struct inode *inode);

/*
 * The group on whose behalf the current task dirties pages; NULL for the root group, and for a
 * kernel thread that has no group, see kthread_associate_blkcg().  RCU read side.
 */
static inline struct cgroup_subsys_state *dirty_css_of_current(void)
{
	struct cgroup_subsys_state *css;

	if (unlikely(current->flags & PF_KTHREAD)) {
		css = kthread_blkcg();
		return css && css->parent ? css : NULL;
	}
	css = task_css_check(current, io_cgrp_id, rcu_read_lock_any_held());
	return css->parent ? css : NULL;
}

/* See dirty_is_data(). */
static inline bool dirty_is_file_data(const struct inode *inode)
{
	return inode->i_sb->s_type->fs_flags & FS_REQUIRES_DEV;
}

/*
 * The flow of a group, which is not the root, on a backing device.  It may be new; NULL if memory
 * is short.  RCU read side; any locks held.
 */
static __always_inline struct dirty_flow *dirty_flow_of(struct cgroup_subsys_state *css,
							struct backing_dev_info *bdi)
{
	struct dirty_flow *flow = this_cpu_read(dirty_hints.by_css);

	return likely(flow->css == css && flow->bdi == bdi) ? flow : dirty_flow_get(css, bdi);
}

/* The flow that a word names, NULL if it has been freed.  @id: not 0.  RCU read side. */
static inline struct dirty_flow *dirty_flow_by_id(u32 id)
{
	struct dirty_flow *flow = this_cpu_read(dirty_hints.by_id);

	return likely(flow->id == id) ? flow : dirty_flow_load(id);
}

/*
 * Mark a file that has pages with words, for the hooks, and one that has pages of a limited
 * group, for the flusher, which writes such pages first when the group waits.
 */
static inline void dirty_note_mapping(struct dirty_flow *flow, struct address_space *mapping)
{
	if (!test_bit(AS_DIRTY_WORDS, &mapping->flags))
		set_bit(AS_DIRTY_WORDS, &mapping->flags);
	if (READ_ONCE(flow->limited) && !test_bit(AS_DIRTY_OWNED, &mapping->flags))
		set_bit(AS_DIRTY_OWNED, &mapping->flags);
}

/* Bytes that were dirtied and not paid; negative if the flow has paid in advance. */
static inline s64 dirty_unpaid(const struct dirty_flow *flow)
{
	return ((s64)atomic_long_read(&flow->dirtied) << PAGE_SHIFT) -
	       atomic64_read(&flow->paid);
}

/* Bytes that were dirtied or promised, and that no task has paid or is about to pay. */
static inline s64 dirty_due(const struct dirty_flow *flow)
{
	return dirty_unpaid(flow) + atomic64_read(&flow->promised) -
	       atomic64_read(&flow->claimed);
}

/*
 * Pages that a task has been promised belong to the flow that promised them, even if the task
 * has moved to another group since.  NULL without a promise on @bdi.
 */
static __always_inline struct dirty_flow *dirty_flow_promised(struct backing_dev_info *bdi)
{
	struct dirty_part *part = current->dirty_part;

	return unlikely(part) && part->flow->bdi == bdi ? part->flow : NULL;
}

/*
 * The current task has dirtied pages: take them from what it was promised.  Returns true if it has
 * a promise of this flow, even one that it has used up.
 */
static __always_inline bool dirty_redeem(struct dirty_flow *flow, long nr)
{
	struct dirty_part *part = current->dirty_part;
	s64 bytes;

	if (likely(!part || part->flow != flow))
		return false;
	bytes = min((size_t)nr << PAGE_SHIFT, part->promised);
	part->promised -= bytes;
	atomic64_sub(bytes, &flow->promised);
	return true;
}

/* dirty_account.c */
void dirty_begin(struct dirty_flow *flow, unsigned int since);
void dirty_forfeit(struct dirty_flow *flow, s64 most);
int dirty_pay(struct dirty_flow *flow, s64 promised, enum dirty_how how, s64 ahead);

/* dirty_pace.c */
/* Flags of dirty_admit(): the task must not sleep; DIRTY_WHOLE_BYTES are not divided. */
#define DIRTY_NOWAIT	1U
#define DIRTY_WHOLE	2U
/* A write() that appends is not divided up to this length. */
#define DIRTY_WHOLE_BYTES	((size_t)SZ_1M)
ssize_t dirty_admit(struct dirty_part *part, struct file *file, const struct iov_iter *from,
		    size_t len, unsigned int flags);
void dirty_admitted(struct dirty_part *part);

/* dirty_window.c */
/* The longest single sleep; after it the task looks at limits and window again. */
#define DIRTY_WAIT_NS		(200 * NSEC_PER_MSEC)
void dirty_learn(struct dirty_flow *flow, const struct dirty_rate *rate);
long dirty_window(struct dirty_flow *flow, const struct dirty_rate *rate);
size_t dirty_chunk_of(long window);
bool dirty_is_full(struct dirty_flow *flow, struct address_space *mapping,
		   const struct dirty_rate *rate, const struct dirty_part *part,
		   struct dirty_sum *sum);
bool dirty_is_crowded(struct dirty_flow *flow, const struct dirty_rate *rate,
		      const struct dirty_part *part);
void dirty_flow_wake(struct dirty_flow *flow);

/* A flow has fewer pages or promises: wake a task that waits for its window. */
static __always_inline void dirty_flow_less(struct dirty_flow *flow)
{
	/* before waitqueue_active(): pairs with prepare_to_wait() in dirty_window.c */
	smp_mb__after_atomic();
	if (unlikely(waitqueue_active(&flow->wait))) /* after the barrier above */
		dirty_flow_wake(flow);
}

bool dirty_sleep(s64 ns);
void dirty_wait_for_window(struct dirty_flow *flow, const struct dirty_rate *rate,
			   const struct dirty_part *part, unsigned int state);

/* dirty_words.c */
extern const struct dirty_owner_ops *dirty_owner_ops;

/*
 * Chunks of words.  When memory is added beyond the end of the table, a larger table replaces
 * it.  Readers of the old table are in no RCU read side that could be waited for, so the old
 * table is never freed; that costs 8 bytes for each 128 MiB.
 */
struct dirty_table {
	unsigned long		nr;
	struct dirty_table	*old;
	struct dirty_words	*chunks[] __counted_by(nr);
};

extern struct dirty_table *dirty_table;

/*
 * The words of a page, followed by those of the next pages of its chunk; NULL if no memory could be
 * had for them when its memory came online.
 */
static inline struct dirty_words *dirty_words_of(unsigned long pfn)
{
	/* address dependencies: these pair with the releases in dirty_words.c */
	const struct dirty_table *table = READ_ONCE(dirty_table);
	unsigned long chunk = pfn >> DIRTY_CHUNK_SHIFT;
	struct dirty_words *words;

	if (unlikely(chunk >= table->nr))
		return NULL;
	words = READ_ONCE(table->chunks[chunk]);
	return likely(words) ? words + (pfn & (BIT(DIRTY_CHUNK_SHIFT) - 1)) : NULL;
}

static inline struct dirty_words *dirty_folio_words(const struct folio *folio)
{
	BUILD_BUG_ON(MAX_PAGECACHE_ORDER > DIRTY_CHUNK_SHIFT);
	return dirty_words_of(folio_pfn(folio));
}

#endif /* __DIRTY_OWNER_INTERNAL_H */
