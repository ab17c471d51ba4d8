// SPDX-License-Identifier: GPL-2.0
/*
 * Queries for the code that submits writes: which group's write of a page is under way?
 */
#include <linux/backing-dev.h>
#include <linux/blk-cgroup.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "dirty_leave.h"

/* The id of the flow whose write is under way; 0 if there is none. */
static u32 dirty_written_by(const struct dirty_words *w)
{
	u32 id = READ_ONCE(w->write);

	return id & DIRTY_TRANSIT ? 0 : id;
}

/**
 * dirty_owner_is_inodes - do all pages of a bio belong to the group of their inode's wb?
 * @page:	the first page of the bio
 *
 * Context: any.
 * Return: true if they do; false if some may have a dirtier of their own.
 */
bool dirty_owner_is_inodes(struct page *page)
{
	const struct address_space *mapping;

	/* drivers may submit pages of direct I/O here, which can leave their file meanwhile */
	guard(rcu)();
	mapping = folio_mapping(page_folio(page));
	return mapping && mapping->host && !dirty_owner_has_words(mapping) &&
	       !dirty_shares_bios(mapping->host);
}

/**
 * dirty_owner_css_of_left - the group of a page of data that was left without a record, O7
 * @page:	the first page of a bio
 *
 * Context: RCU read side.
 * Return: the group of its inode's wb; NULL if the page has a dirtier, or is no data of a file.
 */
struct cgroup_subsys_state *dirty_owner_css_of_left(struct page *page)
{
	struct address_space *mapping = folio_mapping(page_folio(page));
	struct bdi_writeback *wb;

	if (!mapping || !mapping->host || !dirty_is_data(mapping->host) ||
	    dirty_owner_of_write(page))
		return NULL;
	wb = dirty_wb_of(mapping->host);
	return wb ? dirty_css_of_wb(wb) : NULL;
}

/**
 * dirty_owner_of_write - the dirtier whose write of a page is under way
 * @page:	a page of the page cache that is being written
 *
 * Context: any.
 * Return: an id for dirty_owner_css(), or 0 if the page has no write word that counts.
 */
u32 dirty_owner_of_write(const struct page *page)
{
	const struct dirty_words *w = dirty_words_of(page_to_pfn(page));

	return w ? dirty_written_by(w) : 0;
}

/**
 * dirty_owner_run - count the pages in a row that have the same dirtier
 * @page:	the first of several pages that are being written
 * @nr:		number of pages, consecutive in the memory map
 * @id:		the dirtier, from dirty_owner_of_write()
 *
 * Context: any.
 * Return: the number of pages from @page on that have this dirtier.
 */
unsigned long dirty_owner_run(const struct page *page, unsigned long nr, u32 id)
{
	unsigned long pfn = page_to_pfn(page), end = pfn + nr, next;
	const struct dirty_words *w;

	for (; pfn < end; pfn = next) {
		/* words of consecutive pages are consecutive within a chunk only */
		next = min(end, ALIGN(pfn + 1, BIT(DIRTY_CHUNK_SHIFT)));
		w = dirty_words_of(pfn);
		for (unsigned long i = pfn; i < next; i++)
			if ((w ? dirty_written_by(w++) : 0) != id)
				return i - (end - nr);
	}
	return nr;
}

/**
 * dirty_owner_css - the group of a dirtier
 * @id:		from dirty_owner_of_write()
 *
 * Context: RCU read side.
 * Return: the group, which may be offline; NULL if its flow has been freed.
 */
struct cgroup_subsys_state *dirty_owner_css(u32 id)
{
	struct dirty_flow *flow = dirty_flow_by_id(id);

	return flow ? flow->css : NULL;
}

/**
 * dirty_owner_passed - a bio of dirty pages, all of it paid, is at a disk that limits their dirtier
 * @page:	the first page of the bio
 * @bytes:	length of the bio
 *
 * Its pages leave the windows.  Pages that bios do not carry, such as those that a driver below
 * the file system encrypts, stay there until they are written.  A page that two disks get counts
 * twice, but never more than there are.
 *
 * Context: any; RCU read side.
 */
void dirty_owner_passed(const struct page *page, unsigned int bytes)
{
	u32 id = dirty_owner_of_write(page);
	struct dirty_flow *flow = id ? dirty_flow_by_id(id) : NULL;

	if (!flow)
		return;
	scoped_guard(spinlock_irqsave, &flow->lock) {
		long passed = max(flow->passed, atomic_long_read(&flow->written)) +
			      (bytes >> PAGE_SHIFT);

		WRITE_ONCE(flow->passed, min(passed, atomic_long_read(&flow->started)));
	}
	smp_mb();	/* as an atomic operation would be: for dirty_flow_less() */
	dirty_flow_less(flow);
}

/*
 * A task that waits for a write of its own group waits for that group's turn.  Others do not: they
 * may commit a journal, or sync a file system.
 */
void __dirty_owner_awaited(struct folio *folio)
{
	struct cgroup_subsys_state *css = NULL, *last = NULL, *own;
	unsigned long nr = folio_nr_pages(folio), run;
	struct page *page = &folio->page;
	struct address_space *mapping;
	struct bdi_writeback *wb;
	u32 id;

	guard(rcu)();
	mapping = folio_mapping(folio);
	if (!mapping || !mapping->host || !dirty_is_data(mapping->host))
		return;
	wb = dirty_wb_of(mapping->host);
	if (!wb)
		return;
	own = current->flags & PF_KTHREAD ? kthread_blkcg() : task_css(current, io_cgrp_id);
	for (; nr; nr -= run, page += run) {
		id = dirty_owner_of_write(page);
		run = max(dirty_owner_run(page, nr, id), 1UL);
		css = id ? dirty_owner_css(id) : NULL;
		if (css && css != own && css != last)
			dirty_owner_ops->hurry(css, wb->bdi);
		last = css ?: last;
	}
	/* without a dirtier of any page, all are those of the inode's group */
	css = dirty_css_of_wb(wb);
	if (!last && css != own)
		dirty_owner_ops->hurry(css, wb->bdi);
}
