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
 * Lock order: i_pages and whatever a filesystem holds when it dirties a page, then
 * the lock of the flows, a leaf.  flow->lock is another leaf, also below the locks that
 * the controller calls dirty_owner_use() under.  What it calls dirty_owner_enable() under
 * comes before its mutex; its operations are called with none of these held.
 *
 * Invariants:
 *
 *  O1	A page counts as dirty in the flow that its dirty word names, and as being
 *	written in the one that its write word names, unless that is in transit.  Who
 *	changes the word by cmpxchg or xchg changes the count, and nobody else.
 *  O2	The dirty word is set before the folio, which is locked, can be cleaned, and
 *	cleared after it is clean: then it becomes the write word, in transit until the
 *	folio, locked so long, is under writeback, and then until the write has ended.
 *  O3	A flow that a page counts in exists: it is freed only if both counts and
 *	flow->users are zero after a grace period in which nobody could find it.
 *	A word and its count change within one RCU read side, which a spinlock or
 *	preemption being off is.
 *  O4	What a filesystem cleans and then does not write keeps its write word in
 *	transit, which counts nowhere and need not name a flow that exists.
 *  O5	A hint is what somebody found in a table within the grace period before.  Those
 *	of a flow go a grace period after it has left the table, and only after another
 *	one can nobody find it.
 *  O6	A task that is let dirty pages has a part in current->dirty_part and in the
 *	flow's promises, from before it pays until it has dirtied them or given up, and
 *	is one of flow->users so long.  It may wait for locks meanwhile: what is promised
 *	counts as dirty for those who ask for more.
 *  O7	A page without words is that of the group whose wb its inode has.  A flow whose
 *	->words says no may leave a page so, if nothing limited its group in this jiffy, or
 *	when the task began to write at most DIRTY_WHOLE_BYTES, and that wb is its group's.
 *	For such a write() current->dirty_free is the wb.  Pages that are dirty when their
 *	inode gets another wb get words, under the i_pages lock.
 */

/* What a word can name; 0 is nobody. */
#define DIRTY_ID_MAX		(BIT(30) - 1)
/* In a write word: cleaned, and not yet being written. */
#define DIRTY_TRANSIT		BIT(31)
/* Pages of a chunk of words; no folio is in two. */
#define DIRTY_CHUNK_SHIFT	15

/* Of a flow that may dirty as much as it likes at once; a power of two. */
#define DIRTY_CHUNK_ANY		((size_t)1 << (BITS_PER_LONG - 2))

struct dirty_words {
	u32			dirty;
	u32			write;
};

/*
 * dirtier and place: pages of one group on one backing device.  What each write looks at is
 * apart from what each page changes, and those who dirty pages from those who write them.
 */
struct dirty_flow {
	u32			id;
	bool			limited;
	bool			words;		/* its pages have some, O7 */
	bool			owes;		/* to devices below */
	struct cgroup_subsys_state *css;	/* a reference */
	struct backing_dev_info	*bdi;		/* a reference */

	/* as of the last look of dirty_pace.c */
	unsigned long		looked_at;	/* jiffies */
	long			free_to;	/* of dirtied */
	size_t			chunk;		/* bytes, a power of two */
	long			refill;		/* pages */

	/* pages ever, O1: less those that will not be written */
	atomic_long_t		dirtied ____cacheline_aligned_in_smp;
	atomic_t		users;		/* who waits here */
	/* dirty_account.c: changes under the lock, but for what pays */
	atomic64_t		promised;	/* bytes, O6 */
	atomic64_t		paid;		/* bytes ever */
	atomic64_t		claimed;	/* bytes that tasks are about to pay */

	/* pages ever, O1 */
	atomic_long_t		sent ____cacheline_aligned_in_smp; /* less those put back */
	atomic_long_t		started;
	atomic_long_t		written;
	wait_queue_head_t	wait;		/* for pages to go down to refill */

	spinlock_t		lock ____cacheline_aligned_in_smp;
	s64			used;		/* bytes ever */
	unsigned int		since;		/* of its limits */
	long			stuck_at;	/* of written, -1 for never */
	unsigned long		idle_since;	/* jiffies */
	unsigned long		probe_until;	/* jiffies, 0 for never */
	long			probe_from;	/* of written */

	/* what dirty_window.c has seen of written, and of the dirty limit: lock */
	long			most;		/* pages */
	long			learnt_from;
	s64			learnt_at;	/* ns */
	u64			drain;		/* pages a second */

	struct hlist_node	node;		/* lock of the flows, RCU */
	struct hlist_node	idle;		/* while it is being reaped */
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

static inline long dirty_flow_pages(const struct dirty_flow *flow)
{
	return max(dirty_flow_dirty(flow), 0L) + max(dirty_flow_writing(flow), 0L);
}

/* Of one flow, or of all of a group and those below it on a backing device; pages */
struct dirty_sum {
	struct cgroup_subsys_state *css;
	long			dirty;
	long			writing;
	long			written;	/* ever */
	long			promised;	/* of one flow */
	long			saved;		/* paid and not dirtied, by others */
	bool			crowded;	/* that, and the other pages, are enough */
};

/* What this CPU found last, O5; an empty flow if nothing. */
struct dirty_hints {
	struct dirty_flow	*by_css;
	struct dirty_flow	*by_id;
};
DECLARE_PER_CPU(struct dirty_hints, dirty_hints);

/* dirty_flow.c */
struct dirty_flow *dirty_flow_of_current(struct inode *inode);
struct dirty_flow *dirty_flow_get(struct cgroup_subsys_state *css,
				  struct backing_dev_info *bdi);
struct dirty_flow *dirty_flow_load(u32 id);
struct dirty_flow *dirty_flow_peek(const struct cgroup_subsys_state *css,
				   const struct backing_dev_info *bdi);
struct dirty_sum dirty_flow_sum(struct cgroup_subsys_state *css,
				const struct dirty_flow *own);
void dirty_flow_forfeit(struct cgroup_subsys_state *css, const struct dirty_flow *own);
bool dirty_is_data(struct inode *inode);

/**
 * dirty_css_of_current - for which group is the current task at work?
 *
 * Context: RCU read side.
 * Return: the group; NULL for the root, and for a kernel thread unless it says for whom.
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

/* Is the current task one that nothing limits, as the root group's are? */
static __always_inline bool dirty_is_roots(void)
{
	if (unlikely((current->flags & PF_KTHREAD) || current->dirty_part))
		return false;
	guard(preempt)();
	return !task_css_check(current, io_cgrp_id, true)->parent;
}

/* See dirty_is_data(). */
static inline bool dirty_is_file_data(const struct inode *inode)
{
	return inode->i_sb->s_type->fs_flags & FS_REQUIRES_DEV;
}

/**
 * dirty_flow_of - the flow of a group
 * @css:	the group, not the root
 * @bdi:	where it dirties pages
 *
 * Context: RCU read side; any locks held.
 * Return: the flow, which may be new, NULL for want of memory.
 */
static __always_inline struct dirty_flow *dirty_flow_of(struct cgroup_subsys_state *css,
							struct backing_dev_info *bdi)
{
	struct dirty_flow *flow = this_cpu_read(dirty_hints.by_css);

	return likely(flow->css == css && flow->bdi == bdi) ? flow : dirty_flow_get(css, bdi);
}

/**
 * dirty_flow_by_id - the flow that a word names
 * @id:		its id, not 0
 *
 * Context: RCU read side.
 * Return: the flow, or NULL if it is gone.
 */
static inline struct dirty_flow *dirty_flow_by_id(u32 id)
{
	struct dirty_flow *flow = this_cpu_read(dirty_hints.by_id);

	return likely(flow->id == id) ? flow : dirty_flow_load(id);
}

/* The flusher has to look here when a limited group waits, and who removes pages always. */
static inline void dirty_note_mapping(struct dirty_flow *flow, struct address_space *mapping)
{
	if (!test_bit(AS_DIRTY_WORDS, &mapping->flags))
		set_bit(AS_DIRTY_WORDS, &mapping->flags);
	if (READ_ONCE(flow->limited) && !test_bit(AS_DIRTY_OWNED, &mapping->flags))
		set_bit(AS_DIRTY_OWNED, &mapping->flags);
}

/* Bytes that are dirty and have not been paid; less than 0 if paid in advance. */
static inline s64 dirty_unpaid(const struct dirty_flow *flow)
{
	return ((s64)atomic_long_read(&flow->dirtied) << PAGE_SHIFT) -
	       atomic64_read(&flow->paid);
}

/* Bytes that are dirty or promised, and that nobody has paid or is about to pay. */
static inline s64 dirty_due(const struct dirty_flow *flow)
{
	return dirty_unpaid(flow) + atomic64_read(&flow->promised) -
	       atomic64_read(&flow->claimed);
}

/* What a task has been promised is its flow's that it asked, wherever the task is by now. */
static __always_inline struct dirty_flow *dirty_flow_promised(struct backing_dev_info *bdi)
{
	struct dirty_part *part = current->dirty_part;

	return unlikely(part) && part->flow->bdi == bdi ? part->flow : NULL;
}

/**
 * dirty_redeem - a task has dirtied pages: as many are promised no more
 * @flow:	theirs
 * @nr:		how many
 *
 * Return: false if none of that flow had been promised to the task.
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
int dirty_pay(struct dirty_flow *flow, enum dirty_how how, bool owes, s64 ahead);

/* dirty_pace.c */
/* dirty_admit(): must not sleep; DIRTY_WHOLE_BYTES go at once */
#define DIRTY_NOWAIT	1U
#define DIRTY_WHOLE	2U
/* So long a write() that appends is not divided. */
#define DIRTY_WHOLE_BYTES	((size_t)SZ_1M)
ssize_t dirty_admit(struct dirty_part *part, struct file *file, size_t len,
		    unsigned int flags);
void dirty_admitted(struct dirty_part *part);

/* dirty_window.c */
/* One wait; then all is looked at again. */
#define DIRTY_WAIT_NS		(200 * NSEC_PER_MSEC)
void dirty_learn(struct dirty_flow *flow, const struct dirty_rate *rate);
long dirty_window(struct dirty_flow *flow, const struct dirty_rate *rate);
size_t dirty_chunk_of(long window);
bool dirty_is_full(struct dirty_flow *flow, struct address_space *mapping,
		   const struct dirty_rate *rate, const struct dirty_part *part,
		   struct dirty_sum *sum);
bool dirty_is_crowded(struct dirty_flow *flow, const struct dirty_rate *rate);
void dirty_flow_wake(struct dirty_flow *flow);

/* Pages of a flow are dirty no more, or written, or promised no more. */
static __always_inline void dirty_flow_less(struct dirty_flow *flow)
{
	/* before waitqueue_active(): pairs with prepare_to_wait() in dirty_window.c */
	smp_mb__after_atomic();
	if (unlikely(waitqueue_active(&flow->wait))) /* after the barrier above */
		dirty_flow_wake(flow);
}

void dirty_sleep(s64 ns);
void dirty_wait_for_window(struct dirty_flow *flow, const struct dirty_rate *rate,
			   const struct dirty_part *part);

/* dirty_words.c */
extern const struct dirty_owner_ops *dirty_owner_ops;

/*
 * Chunks of words.  When memory is added beyond its end a larger table takes its place;
 * who reads the old one is nowhere to be waited for, so it stays, at 8 bytes for 128 MiB.
 */
struct dirty_table {
	unsigned long		nr;
	struct dirty_table	*old;
	struct dirty_words	*chunks[] __counted_by(nr);
};

extern struct dirty_table *dirty_table;

/**
 * dirty_words_of - the words of a page
 * @pfn:	the page
 *
 * Context: any.
 * Return: its words, followed by those of the next pages of its chunk; NULL if there are
 *	   none, as for memory that came when there was none for them.
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
