// SPDX-License-Identifier: GPL-2.0
/*
 * Owners of dirty pages: which group dirtied a page, and whose write is under way.
 *
 * Two words for each page, beside the memory map: a page that is being written can be
 * dirtied again, by another group.  Both name a flow, see dirty_flow.c, which counts
 * its pages in either state.
 *
 *	write(), or a fault	the dirty word, unless it has an owner already
 *	cleaned to be written	the dirty word becomes the write word, in transit
 *	write begins		the write word counts
 *	written			the write word goes
 *	truncated, removed	both go
 *
 * Words are for pages and not for folios: a folio can be as large as a huge page and
 * have been written to by many.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "dirty_owner-internal.h"

/* Pages that one flow gained or lost in a row. */
struct dirty_run {
	u32			id;
	long			nr;
};

static struct dirty_words *dirty_folio_words(struct folio *folio)
{
	BUILD_BUG_ON(MAX_PAGECACHE_ORDER > DIRTY_CHUNK_SHIFT);
	return dirty_words_of(folio_pfn(folio));
}

/* Pages of a flow are dirty no more, or written. */
static void dirty_flow_less(struct dirty_flow *flow, atomic_long_t *count, long nr)
{
	atomic_long_sub(nr, count);
	/* before waitqueue_active(): pairs with prepare_to_wait() in dirty_pace.c */
	smp_mb__after_atomic();
	if (waitqueue_active(&flow->wait) && /* after the barrier above */
	    dirty_flow_pages(flow) <= READ_ONCE(flow->refill))
		wake_up(&flow->wait);
}

enum dirty_change {
	DIRTY_DROP,
	DIRTY_SEND,
	DIRTY_RESTORE,
	DIRTY_START,
	DIRTY_DONE,
};

static void dirty_run_end(struct dirty_run *run, enum dirty_change change)
{
	struct dirty_flow *flow = run->id ? dirty_flow_by_id(run->id) : NULL;

	if (!flow || WARN_ON_ONCE(!run->nr))
		return;
	switch (change) {
	case DIRTY_DROP:
		/* it costs nothing after all */
		atomic_long_sub(run->nr, &flow->dirtied);
		dirty_flow_less(flow, &flow->dirty, run->nr);
		break;
	case DIRTY_SEND:
		atomic_long_sub(run->nr, &flow->dirty);
		break;
	case DIRTY_RESTORE:
		atomic_long_add(run->nr, &flow->dirty);
		break;
	case DIRTY_START:
		atomic_long_add(run->nr, &flow->writing);
		break;
	case DIRTY_DONE:
		atomic_long_add(run->nr, &flow->written);
		dirty_flow_less(flow, &flow->writing, run->nr);
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

/* 0 if none is under way. */
static u32 dirty_written_by(const struct dirty_words *w)
{
	u32 id = READ_ONCE(w->write);

	return id & DIRTY_TRANSIT ? 0 : id;
}

static u32 dirty_take(u32 *word)
{
	return READ_ONCE(*word) ? xchg(word, 0) : 0;
}

/* Take all that a folio has in one of its words. */
static void dirty_take_all(struct folio *folio, bool write, enum dirty_change change)
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

static void dirty_own(struct inode *inode, struct dirty_words *w, long nr)
{
	struct dirty_flow *flow;
	long owned = 0;

	guard(rcu)();
	flow = dirty_flow_of_current(inode);
	if (!flow)
		return;
	for (long i = 0; i < nr; i++)
		owned += !READ_ONCE(w[i].dirty) && !cmpxchg(&w[i].dirty, 0, flow->id);
	if (!owned)
		return;
	atomic_long_add(owned, &flow->dirty);
	atomic_long_add(owned, &flow->dirtied);
}

void __dirty_owner_write(struct folio *folio, size_t from, size_t len)
{
	struct dirty_words *w = dirty_folio_words(folio);
	size_t first = from >> PAGE_SHIFT;

	if (!w || !len || !mapping_can_writeback(folio->mapping))
		return;
	dirty_own(folio->mapping->host, w + first,
		  DIV_ROUND_UP(from + len, PAGE_SIZE) - first);
}

void __dirty_owner_dirtied(struct folio *folio)
{
	struct dirty_words *w = dirty_folio_words(folio);

	if (!w)
		return;
	for (long i = 0; i < folio_nr_pages(folio); i++)
		if (READ_ONCE(w[i].dirty))
			return;
	dirty_own(folio->mapping->host, w, folio_nr_pages(folio));
}

void __dirty_owner_cancelled(struct folio *folio)
{
	dirty_take_all(folio, false, DIRTY_DROP);
}

void __dirty_owner_cleaned(struct folio *folio)
{
	struct dirty_words *w = dirty_folio_words(folio);
	struct dirty_run sent = { }, started = { }, done = { };
	/* some filesystems begin to write before they clean the last part */
	bool writing = folio_test_writeback(folio);

	if (!w)
		return;
	guard(rcu)();
	for (long i = 0; i < folio_nr_pages(folio); i++) {
		u32 id = dirty_take(&w[i].dirty), old = READ_ONCE(w[i].write);

		/* in transit and not dirtied since: it failed before, and tries again */
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
		/* somebody else may have been faster */
		if (!cmpxchg(&w[i].dirty, 0, id))
			dirty_run_add(&back, id, DIRTY_RESTORE);
	}
	dirty_run_end(&back, DIRTY_RESTORE);
}

void __dirty_owner_started(struct folio *folio)
{
	struct dirty_words *w = dirty_folio_words(folio);
	struct dirty_run started = { };

	if (!w)
		return;
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

void __dirty_owner_ended(struct folio *folio)
{
	dirty_take_all(folio, true, DIRTY_DONE);
}

void __dirty_owner_removed(struct folio *folio)
{
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

void __dirty_owner_waited(struct folio *folio)
{
	struct dirty_words *w = dirty_folio_words(folio);
	struct cgroup_subsys_state *css;
	struct dirty_flow *flow;
	u32 last = 0;

	if (!w)
		return;
	guard(rcu)();
	css = dirty_css_of_current();
	for (long i = 0; i < folio_nr_pages(folio); i++) {
		u32 id = dirty_written_by(&w[i]);

		if (!id || id == last)
			continue;
		last = id;
		flow = dirty_flow_by_id(id);
		if (flow && flow->css != css)
			dirty_owner_ops->boost(flow->css, flow->bdi);
	}
}

/**
 * dirty_owner_of_write - whose write of a page is under way?
 * @page:	a page of the page cache that is being written
 *
 * Context: any.
 * Return: what dirty_owner_css() understands, or 0 for nobody's.
 */
u32 dirty_owner_of_write(const struct page *page)
{
	const struct dirty_words *w = dirty_words_of(page_to_pfn(page));

	return w ? dirty_written_by(w) : 0;
}

/**
 * dirty_owner_css - the group that an owner is
 * @id:		from dirty_owner_of_write()
 *
 * Context: RCU read side.
 * Return: the group; it may be offline.  NULL if it is gone.
 */
struct cgroup_subsys_state *dirty_owner_css(u32 id)
{
	struct dirty_flow *flow = dirty_flow_by_id(id);

	return flow ? flow->css : NULL;
}
