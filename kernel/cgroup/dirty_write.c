// SPDX-License-Identifier: GPL-2.0
/*
 * Whose writes are under way: for those who submit them.
 */
#include <linux/mm.h>

#include "dirty_leave.h"

/* 0 if none is under way. */
static u32 dirty_written_by(const struct dirty_words *w)
{
	u32 id = READ_ONCE(w->write);

	return id & DIRTY_TRANSIT ? 0 : id;
}

/**
 * dirty_owner_is_inodes - has no page of a bio an owner other than its inode's?
 * @page:	the first page of the bio
 *
 * Context: any.
 * Return: true if none has; false if pages may.
 */
bool dirty_owner_is_inodes(struct page *page)
{
	const struct address_space *mapping;

	/* of direct I/O, which a driver may pass on, it may leave its file */
	guard(rcu)();
	mapping = folio_mapping(page_folio(page));
	return mapping && mapping->host && !dirty_owner_has_words(mapping) &&
	       !dirty_shares_bios(mapping->host);
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
 * dirty_owner_run - how many pages are of the same owner?
 * @page:	the first of some that are being written
 * @nr:		how many follow each other in the memory map
 * @id:		what dirty_owner_of_write() said of the one before
 *
 * Context: any.
 * Return: the number of pages at the beginning that have this owner.
 */
unsigned long dirty_owner_run(const struct page *page, unsigned long nr, u32 id)
{
	unsigned long pfn = page_to_pfn(page), end = pfn + nr, next;
	const struct dirty_words *w;

	for (; pfn < end; pfn = next) {
		/* words follow each other within a chunk */
		next = min(end, ALIGN(pfn + 1, BIT(DIRTY_CHUNK_SHIFT)));
		w = dirty_words_of(pfn);
		for (unsigned long i = pfn; i < next; i++)
			if ((w ? dirty_written_by(w++) : 0) != id)
				return i - (end - nr);
	}
	return nr;
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

/**
 * dirty_owner_css_of_write - the group whose write of a page is under way
 * @page:	a page of the page cache that is being written
 *
 * Context: RCU read side.
 * Return: the group; it may be offline.  NULL if it is nobody's, or gone.
 */
struct cgroup_subsys_state *dirty_owner_css_of_write(const struct page *page)
{
	u32 id = dirty_owner_of_write(page);

	return id ? dirty_owner_css(id) : NULL;
}
