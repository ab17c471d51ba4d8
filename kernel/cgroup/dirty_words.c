// SPDX-License-Identifier: GPL-2.0
/*
 * The words of pages: two for each page, in chunks beside the memory map.  Each chunk is on
 * the NUMA node of its pages.  Memory that is added later gets its words before it comes
 * online.  Memory that goes offline keeps its words, since it may come back.
 */
#include <linux/init.h>
#include <linux/memblock.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/vmalloc.h>

#include "dirty_owner-internal.h"

#define DIRTY_CHUNK		BIT(DIRTY_CHUNK_SHIFT)

static struct dirty_table dirty_no_table;
struct dirty_table *dirty_table __read_mostly = &dirty_no_table;
static DEFINE_MUTEX(dirty_enable_mutex);
/* For changes of the table; within the locks of memory hotplug, and allocates under it. */
static DEFINE_MUTEX(dirty_table_mutex);
const struct dirty_owner_ops *dirty_owner_ops __read_mostly;
DEFINE_STATIC_KEY_FALSE(dirty_owner_key);
EXPORT_SYMBOL_GPL(dirty_owner_key);

/* An online page of a chunk, or NULL if there is none. */
static struct page *dirty_chunk_page(unsigned long chunk)
{
	unsigned long pfn = chunk << DIRTY_CHUNK_SHIFT;
	struct page *page = NULL;

	for (unsigned long i = 0; i < DIRTY_CHUNK && !page; i += pageblock_nr_pages)
		page = pfn_to_online_page(pfn + i);
	return page;
}

static int dirty_chunk_alloc(struct dirty_table *table, unsigned long chunk, int nid)
{
	struct dirty_words *words;

	if (table->chunks[chunk])
		return 0;
	words = vzalloc_node(DIRTY_CHUNK * sizeof(*words), nid);
	if (!words)
		return -ENOMEM;
	/* a reader that finds the chunk finds words of zero in it */
	smp_store_release(&table->chunks[chunk], words);
	return 0;
}

static void dirty_table_free(struct dirty_table *table)
{
	for (unsigned long i = 0; i < table->nr; i++)
		vfree(table->chunks[i]);
	kvfree(table);
}

/* A table of @nr chunks that has the chunks of the current table. */
static struct dirty_table *dirty_table_alloc(unsigned long nr)
{
	struct dirty_table *table = kvzalloc_flex(*table, chunks, nr), *old = dirty_table;

	if (!table)
		return NULL;
	table->nr = nr;
	table->old = old;
	memcpy(table->chunks, old->chunks, flex_array_size(old, chunks, old->nr));
	return table;
}

static int dirty_table_fill(struct dirty_table *table)
{
	struct page *page;
	int ret;

	for (unsigned long i = 0; i < table->nr; i++) {
		page = dirty_chunk_page(i);
		ret = page ? dirty_chunk_alloc(table, i, page_to_nid(page)) : 0;
		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
}

/* Allocate words for all memory that is online. */
static int dirty_table_begin(void)
{
	struct dirty_table *table;
	int ret;

	guard(mutex)(&dirty_table_mutex);
	table = dirty_table_alloc(DIV_ROUND_UP(max_pfn, DIRTY_CHUNK));
	if (!table)
		return -ENOMEM;
	ret = dirty_table_fill(table);
	if (ret)
		dirty_table_free(table);
	else
		smp_store_release(&dirty_table, table); /* after its contents */
	return ret;
}

/* Allocate words for memory that is about to come online. */
static int dirty_table_add(unsigned long pfn, unsigned long nr_pages)
{
	unsigned long first = pfn >> DIRTY_CHUNK_SHIFT;
	unsigned long end = DIV_ROUND_UP(pfn + nr_pages, DIRTY_CHUNK);
	struct dirty_table *table;
	int ret = 0;

	guard(mutex)(&dirty_table_mutex);
	/* without a table yet, dirty_table_begin() will include this memory */
	if (dirty_table == &dirty_no_table)
		return 0;
	if (end > dirty_table->nr) {
		table = dirty_table_alloc(end);
		if (!table)
			return -ENOMEM;
		smp_store_release(&dirty_table, table); /* after its contents */
	}
	for (unsigned long i = first; i < end && !ret; i++)
		ret = dirty_chunk_alloc(dirty_table, i, pfn_to_nid(pfn));
	return ret;
}

static int dirty_memory_notify(struct notifier_block *nb, unsigned long action, void *arg)
{
	const struct memory_notify *memory = arg;

	switch (action) {
	case MEM_GOING_ONLINE:
		return notifier_from_errno(dirty_table_add(memory->start_pfn,
							   memory->nr_pages));
	case MEM_ONLINE:
		/*
		 * dirty_table_begin() may have run after MEM_GOING_ONLINE, when the pages were
		 * not online yet.  It is too late to fail: without words pages have no dirtier.
		 */
		dirty_table_add(memory->start_pfn, memory->nr_pages);
		break;
	}
	return NOTIFY_OK;
}

static int __init dirty_words_init(void)
{
	return hotplug_memory_notifier(dirty_memory_notify, DEFAULT_CALLBACK_PRI);
}
subsys_initcall(dirty_words_init);

/**
 * dirty_owner_enable - record the dirtiers of pages from now on
 * @ops:	the controller that limits writes; the same in each call
 *
 * Takes eight bytes of memory per page, and cannot be undone.
 *
 * Context: may sleep.
 * Return: 0, or -ENOMEM.
 */
int dirty_owner_enable(const struct dirty_owner_ops *ops)
{
	int ret;

	if (static_key_enabled(&dirty_owner_key.key))
		return 0;
	guard(mutex)(&dirty_enable_mutex);
	if (static_key_enabled(&dirty_owner_key.key))
		return 0;
	ret = dirty_table_begin();
	if (ret)
		return ret;
	dirty_owner_ops = ops;
	/* takes the lock of CPU hotplug, which memory hotplug takes before dirty_table_mutex */
	static_branch_enable(&dirty_owner_key);
	return 0;
}
