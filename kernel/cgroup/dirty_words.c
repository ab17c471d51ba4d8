// SPDX-License-Identifier: GPL-2.0
/*
 * The words of pages: two for each, in chunks beside the memory map.
 */
#include <linux/memblock.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/vmalloc.h>

#include "dirty_owner-internal.h"

DEFINE_STATIC_KEY_FALSE(dirty_owner_key);

#define DIRTY_CHUNK		BIT(DIRTY_CHUNK_SHIFT)

struct dirty_words **dirty_chunks __read_mostly;
unsigned long dirty_nr_chunks __read_mostly;
static DEFINE_MUTEX(dirty_enable_mutex);
const struct dirty_owner_ops *dirty_owner_ops __read_mostly;

static bool dirty_chunk_has_memory(unsigned long chunk)
{
	unsigned long pfn = chunk << DIRTY_CHUNK_SHIFT;

	for (unsigned long i = 0; i < DIRTY_CHUNK; i += pageblock_nr_pages)
		if (pfn_to_online_page(pfn + i))
			return true;
	return false;
}

static void dirty_chunks_free(struct dirty_words **chunks, unsigned long nr)
{
	for (unsigned long i = 0; i < nr; i++)
		vfree(chunks[i]);
	vfree(chunks);
}

static int dirty_chunks_alloc(void)
{
	unsigned long nr = DIV_ROUND_UP(max_pfn, DIRTY_CHUNK);
	struct dirty_words **chunks = vcalloc(nr, sizeof(*chunks));

	if (!chunks)
		return -ENOMEM;
	for (unsigned long i = 0; i < nr; i++) {
		if (!dirty_chunk_has_memory(i))
			continue;
		chunks[i] = vcalloc(DIRTY_CHUNK, sizeof(*chunks[i]));
		if (!chunks[i]) {
			dirty_chunks_free(chunks, nr);
			return -ENOMEM;
		}
		cond_resched();
	}
	dirty_chunks = chunks;
	dirty_nr_chunks = nr;
	return 0;
}

/**
 * dirty_owner_enable - let pages have owners from now on
 * @ops:	who limits writes, the same each time
 *
 * Eight bytes a page.  There is no way back.
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
	ret = dirty_chunks_alloc();
	if (ret)
		return ret;
	dirty_owner_ops = ops;
	static_branch_enable(&dirty_owner_key);
	return 0;
}
