// SPDX-License-Identifier: GPL-2.0
/*
 * Dirtiers of pages: which group dirtied a page, and whose write of it is under way.
 *
 * Each page has two words beside the memory map, since a page that is being written can be
 * dirtied again, by another group.  Each word names a flow (one group's pages on one backing
 * device, see dirty_flow.c), and the flow counts its pages in either state.
 *
 *	write(), or a fault	sets the dirty word, unless the page has a dirtier already,
 *				or is a folio of its own that is dirty without a dirtier
 *	cleaned to be written	the dirty word becomes the write word, in transit
 *	the write begins	the write word counts
 *	the write has ended	clears the write word
 *	truncated, removed	clears both words
 *
 * Words are for pages and not for folios: a folio can be as large as a huge page, and
 * several groups may have written to it.
 *
 * Most pages need no words: those of tasks that no limit binds.  Where each group has a writeback
 * of its own (v2, with the memory controller), such pages have words all the same in files whose
 * writeback is another group's.  The hooks look at no words of a file in which no page has had
 * any, see AS_DIRTY_WORDS.
 *
 * Example: A and B have limits.  A writes 8 pages of a file: 8 dirty words name A's flow,
 * and A has dirtied 8.  The flusher cleans the first 4 of them: these words become write
 * words (4 sent), which count once the pages are under writeback (4 started): A has 4 dirty
 * pages and 4 that are being written.  B writes to one of those 4 again: its dirty word
 * names B's flow, which has dirtied 1, and its write word still names A's.  When the writes
 * end, the write words are cleared (4 written): A has 4 dirty pages, B has 1.  Then the file
 * is truncated: the words of those 5 pages are cleared, and A has dirtied 4 in all, B none.
 * A pays for its 4 pages, 16 KiB, and B pays nothing.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "dirty_leave.h"

/* Consecutive pages that the same flow gains or loses. */
struct dirty_run {
	u32			id;
	long			nr;
};

enum dirty_change {
	DIRTY_DROP,
	DIRTY_SEND,
	DIRTY_RESTORE,
	DIRTY_START,
	DIRTY_DONE,
};

static void dirty_run_end(const struct dirty_run *run, enum dirty_change change)
{
	struct dirty_flow *flow = run->id ? dirty_flow_by_id(run->id) : NULL;

	if (!flow)
		return;
	switch (change) {
	case DIRTY_DROP:
		/* pages that will not be written cost nothing */
		atomic_long_sub(run->nr, &flow->dirtied);
		dirty_flow_less(flow);
		break;
	case DIRTY_SEND:
		atomic_long_add(run->nr, &flow->sent);
		break;
	case DIRTY_RESTORE:
		atomic_long_sub(run->nr, &flow->sent);
		break;
	case DIRTY_START:
		atomic_long_add(run->nr, &flow->started);
		break;
	case DIRTY_DONE:
		atomic_long_add(run->nr, &flow->written);
		dirty_flow_less(flow);
		break;
	}
}

static void dirty_run_add(struct dirty_run *run, u32 id, enum dirty_change change)
{
	if (run->id != id) {
		dirty_run_end(run, change);
		*run = (struct dirty_run){ .id = id };
	}
	run->nr++;
}

static __always_inline u32 dirty_take(u32 *word)
{
	return READ_ONCE(*word) ? xchg(word, 0) : 0;
}

/* Clear the write words or the dirty words of all pages of a folio, and count them. */
static noinline void dirty_take_all(struct folio *folio, bool write,
				    enum dirty_change change)
{
	struct dirty_words *w = dirty_folio_words(folio);
	struct dirty_run run = { };

	if (!w)
		return;
	guard(rcu)();
	for (long i = 0; i < folio_nr_pages(folio); i++) {
		u32 id = dirty_take(write ? &w[i].write : &w[i].dirty);

		if (id && !(id & DIRTY_TRANSIT))
			dirty_run_add(&run, id, change);
	}
	dirty_run_end(&run, change);
}

/*
 * As dirty_owner_leaves(), for a task that may not know yet that no limit binds it: one that stores
 * through mappings, and seldom reads or writes.  RCU read side.
 */
static bool dirty_may_leave(const struct bdi_writeback *wb)
{
	return !current->dirty_part && (ioband_is_free() || dirty_owner_ops->free()) &&
	       dirty_owner_leaves(wb);
}

static noinline void dirty_write(struct folio *folio, struct address_space *mapping,
				 struct dirty_words *w, long nr)
{
	struct inode *inode = mapping->host;
	struct dirty_flow *flow;

	if (!mapping_can_writeback(mapping))
		return;
	guard(rcu)();
	/* the inode would get its wb when the folio becomes dirty: it is needed already */
	inode_attach_wb(inode, folio);
	if (dirty_may_leave(dirty_wb_of(inode)))
		return;
	flow = dirty_flow_of_current(inode);
	if (!flow)
		return;
	dirty_note_mapping(flow, mapping);
	dirty_own(w, nr, flow);
}

void __dirty_owner_write(struct folio *folio, size_t from, size_t len)
{
	struct address_space *mapping = READ_ONCE(folio->mapping);
	size_t first, end = from + len;
	struct dirty_words *w;
	unsigned int block;
	long nr;

	if (!mapping)
		return;
	w = dirty_folio_words(folio);
	if (unlikely(!w || !len))
		return;
	/* a block that is longer than a page is written as a whole */
	block = i_blocksize(mapping->host);
	if (unlikely(block > PAGE_SIZE)) {
		from = round_down(from, block);
		end = min(round_up(end, block), folio_size(folio));
	}
	first = from >> PAGE_SHIFT;
	nr = DIV_ROUND_UP(end, PAGE_SIZE) - first;
	w += first;
	/* an earlier call for a larger part may have set the word of this page */
	if (nr == 1 && READ_ONCE(w->dirty))
		return;
	dirty_write(folio, mapping, w, nr);
}
EXPORT_SYMBOL_GPL(__dirty_owner_write);

static noinline void dirty_dirtied(struct folio *folio, struct bdi_writeback *wb)
{
	struct dirty_words *w = dirty_folio_words(folio);
	long nr = folio_nr_pages(folio);
	struct dirty_flow *flow;

	if (!w)
		return;
	guard(rcu)();
	if (dirty_may_leave(wb))
		return;
	flow = dirty_flow_of_current(folio->mapping->host);
	if (!flow)
		return;
	dirty_note_mapping(flow, folio->mapping);
	/* __dirty_owner_write() has set the words of the parts that were written to */
	for (long i = 0; i < nr; i++)
		if (READ_ONCE(w[i].dirty))
			return;
	dirty_own(w, nr, flow);
}

/*
 * Fast path: the hooks that each page passes handle a folio of one page inline if its flow
 * is the one that this CPU saw last, without saving registers or calling a function.
 */
static __always_inline void dirty_own_page(struct folio *folio, struct dirty_flow *flow)
{
	struct dirty_words *w = dirty_folio_words(folio);

	if (unlikely(!w))
		return;
	dirty_note_mapping(flow, folio->mapping);
	dirty_own(w, 1, flow);
}

static noinline void dirty_dirtied_dev(struct folio *folio, struct dirty_flow *flow)
{
	if (dirty_is_data(folio->mapping->host))
		dirty_own_page(folio, flow);
}

void __dirty_owner_dirtied(struct folio *folio, struct bdi_writeback *wb)
{
	struct dirty_flow *flow = dirty_flow_promised(wb->bdi);
	struct inode *inode = folio->mapping->host;
	struct cgroup_subsys_state *css;

	if (unlikely(current->flags & PF_KTHREAD))
		return dirty_dirtied(folio, wb);
	if (!flow) {
		/* under the i_pages lock, O3 */
		css = task_css_check(current, io_cgrp_id, rcu_read_lock_any_held());
		if (!css->parent)
			return;
		flow = this_cpu_read(dirty_hints.by_css);
		if (unlikely(flow->css != css || flow->bdi != wb->bdi))
			return dirty_dirtied(folio, wb);
		if (dirty_may_leave(wb))
			return;
	}
	if (folio_test_large(folio))
		return dirty_dirtied(folio, wb);
	if (!S_ISREG(inode->i_mode))
		return dirty_dirtied_dev(folio, flow);
	if (dirty_is_file_data(inode))
		dirty_own_page(folio, flow);
}

void __dirty_owner_cancelled(struct folio *folio)
{
	dirty_take_all(folio, false, DIRTY_DROP);
}

/* Turn the dirty words of a folio's pages from @first to @end - 1 into write words. */
static noinline void dirty_clean(struct folio *folio, long first, long end)
{
	struct dirty_words *w = dirty_folio_words(folio);
	struct dirty_run sent = { }, started = { }, done = { };
	/* some filesystems clean and write one part of a folio after the other */
	bool writing = folio_test_writeback(folio);

	if (!w)
		return;
	guard(rcu)();
	for (long i = first; i < end; i++) {
		u32 id = dirty_take(&w[i].dirty), old = READ_ONCE(w[i].write);

		/* in transit and not dirtied since: an earlier write failed, this is a retry */
		if (!id && (writing || !old || (old & DIRTY_TRANSIT)))
			continue;
		old = xchg(&w[i].write, id && !writing ? id | DIRTY_TRANSIT : id);
		if (id)
			dirty_run_add(&sent, id, DIRTY_SEND);
		if (id && writing)
			dirty_run_add(&started, id, DIRTY_START);
		if (old && !(old & DIRTY_TRANSIT))
			dirty_run_add(&done, old, DIRTY_DONE);
	}
	dirty_run_end(&sent, DIRTY_SEND);
	dirty_run_end(&started, DIRTY_START);
	dirty_run_end(&done, DIRTY_DONE);
}

void __dirty_owner_cleaned(struct folio *folio)
{
	struct dirty_words *w = dirty_folio_words(folio);
	struct dirty_flow *flow;
	u32 id;

	if (unlikely(!w))
		return;
	if (unlikely(folio_test_large(folio) || folio_test_writeback(folio) ||
		     READ_ONCE(w->write)))
		return dirty_clean(folio, 0, folio_nr_pages(folio));
	id = READ_ONCE(w->dirty);
	if (!id)
		return;
	scoped_guard(preempt) {
		flow = this_cpu_read(dirty_hints.by_id);
		if (likely(id == flow->id)) {
			/* the folio is locked: its write word does not change */
			if (cmpxchg(&w->dirty, id, 0) == id) {
				WRITE_ONCE(w->write, id | DIRTY_TRANSIT);
				atomic_long_inc(&flow->sent);
			}
			return;
		}
	}
	dirty_clean(folio, 0, 1);
}

void __dirty_owner_writing(struct folio *folio, size_t from, size_t len)
{
	dirty_clean(folio, from >> PAGE_SHIFT, DIV_ROUND_UP(from + len, PAGE_SIZE));
}
EXPORT_SYMBOL_GPL(__dirty_owner_writing);

void __dirty_owner_redirty(struct folio *folio)
{
	struct dirty_words *w = dirty_folio_words(folio);
	struct dirty_run back = { };

	if (!w || folio_test_writeback(folio))
		return;
	guard(rcu)();
	for (long i = 0; i < folio_nr_pages(folio); i++) {
		u32 id = READ_ONCE(w[i].write);

		if (!(id & DIRTY_TRANSIT) || !dirty_take(&w[i].write))
			continue;
		id &= ~DIRTY_TRANSIT;
		/* another task may have dirtied the page first: it is the dirtier then */
		if (!cmpxchg(&w[i].dirty, 0, id))
			dirty_run_add(&back, id, DIRTY_RESTORE);
	}
	dirty_run_end(&back, DIRTY_RESTORE);
}

static noinline void dirty_start(struct folio *folio, struct dirty_words *w)
{
	struct dirty_run started = { };

	guard(rcu)();
	for (long i = 0; i < folio_nr_pages(folio); i++) {
		u32 id = READ_ONCE(w[i].write);

		if (!(id & DIRTY_TRANSIT))
			continue;
		WRITE_ONCE(w[i].write, id & ~DIRTY_TRANSIT);
		dirty_run_add(&started, id & ~DIRTY_TRANSIT, DIRTY_START);
	}
	dirty_run_end(&started, DIRTY_START);
}

void __dirty_owner_started(struct folio *folio)
{
	struct dirty_words *w = dirty_folio_words(folio);
	struct dirty_flow *flow = this_cpu_read(dirty_hints.by_id);
	u32 id;

	if (unlikely(!w))
		return;
	/* under the i_pages lock, O3 */
	id = READ_ONCE(w->write);
	if (unlikely(folio_test_large(folio)))
		return dirty_start(folio, w);
	if (!id)
		return;
	if (unlikely(id != (flow->id | DIRTY_TRANSIT)))
		return dirty_start(folio, w);
	WRITE_ONCE(w->write, flow->id);
	atomic_long_inc(&flow->started);
}

void __dirty_owner_ended(struct folio *folio)
{
	struct dirty_words *w = dirty_folio_words(folio);
	struct dirty_flow *flow = this_cpu_read(dirty_hints.by_id);
	u32 id;

	if (unlikely(!w))
		return;
	/* under the i_pages lock, O3 */
	id = READ_ONCE(w->write);
	if (unlikely(folio_test_large(folio)))
		return dirty_take_all(folio, true, DIRTY_DONE);
	if (!id)
		return;
	if (unlikely(id != flow->id))
		return dirty_take_all(folio, true, DIRTY_DONE);
	/* the page may have been cleaned again meanwhile, see dirty_clean() */
	if (cmpxchg(&w->write, id, 0) != id)
		return dirty_take_all(folio, true, DIRTY_DONE);
	atomic_long_inc(&flow->written);
	dirty_flow_less(flow);
}

void __dirty_owner_removed(struct folio *folio)
{
	const struct dirty_words *w = dirty_folio_words(folio);

	if (!folio_test_large(folio) &&
	    (!w || !(READ_ONCE(w->dirty) | READ_ONCE(w->write))))
		return;
	dirty_take_all(folio, false, DIRTY_DROP);
	dirty_take_all(folio, true, DIRTY_DONE);
}

void __dirty_owner_migrated(struct folio *dst, struct folio *src)
{
	struct dirty_words *to = dirty_folio_words(dst);
	struct dirty_words *from = dirty_folio_words(src);

	if (!from)
		return;
	if (!to) {
		__dirty_owner_removed(src);
		return;
	}
	for (long i = 0; i < folio_nr_pages(src); i++) {
		WRITE_ONCE(to[i].dirty, dirty_take(&from[i].dirty));
		WRITE_ONCE(to[i].write, dirty_take(&from[i].write));
	}
}

#if IS_BUILTIN(CONFIG_BLK_CGROUP_IOBAND_KUNIT_TEST)
#include "dirty_owner_kunit.c"
#endif
