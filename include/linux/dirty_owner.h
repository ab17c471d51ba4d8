/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_DIRTY_OWNER_H
#define _LINUX_DIRTY_OWNER_H

#include <linux/jump_label.h>
#include <linux/limits.h>
#include <linux/page-flags.h>
#include <linux/types.h>

/*
 * Which cgroup dirtied a page of the page cache, and whose write of it is under way.
 *
 * For cgroup v1, where neither an inode nor its writeback belongs to a group.  Knows
 * nothing of what is done with the answer.  Off, and without memory, until
 * dirty_owner_enable(); see kernel/cgroup/dirty_owner.c.
 */

struct address_space;
struct backing_dev_info;
struct cgroup_subsys_state;
struct folio;
struct page;

/**
 * struct dirty_rate - how fast a group may write to a backing device
 * @bps:	bytes a second, or 0 if no number says so
 * @measured:	it may be slower than that, as slow as its writes are seen to be
 * @owed_ns:	so long it should not write at all, since others had it write more
 */
struct dirty_rate {
	u64	bps;
	bool	measured;
	u64	owed_ns;
};

/**
 * struct dirty_owner_ops - what a controller says of a group's writes
 * @rate:	how fast a group may write there; all zero if nothing limits it
 * @boost:	somebody else waits for what a group writes there: let it go
 *
 * Context: RCU read side.
 */
struct dirty_owner_ops {
	struct dirty_rate (*rate)(struct cgroup_subsys_state *css,
				  struct backing_dev_info *bdi);
	void (*boost)(struct cgroup_subsys_state *css, struct backing_dev_info *bdi);
};

#ifdef CONFIG_CGROUP_DIRTY_OWNER

/* True once pages have owners. */
DECLARE_STATIC_KEY_FALSE(dirty_owner_key);

int dirty_owner_enable(const struct dirty_owner_ops *ops);
u32 dirty_owner_of_write(const struct page *page);
unsigned long dirty_owner_run(const struct page *page, unsigned long nr, u32 id);
struct cgroup_subsys_state *dirty_owner_css(u32 id);
struct cgroup_subsys_state *dirty_owner_css_of_write(const struct page *page);

void __dirty_owner_write(struct folio *folio, size_t from, size_t len);
void __dirty_owner_dirtied(struct folio *folio, struct backing_dev_info *bdi);
void __dirty_owner_cancelled(struct folio *folio);
void __dirty_owner_cleaned(struct folio *folio);
void __dirty_owner_redirty(struct folio *folio);
void __dirty_owner_started(struct folio *folio);
void __dirty_owner_ended(struct folio *folio);
void __dirty_owner_removed(struct folio *folio);
void __dirty_owner_waited(struct folio *folio);
void __dirty_owner_migrated(struct folio *dst, struct folio *src);
int __dirty_owner_pace(struct address_space *mapping, struct backing_dev_info *bdi,
		       unsigned int flags);
size_t __dirty_owner_chunk(struct address_space *mapping, size_t chunk, size_t len);

#define DIRTY_OWNER_ON	static_branch_unlikely(&dirty_owner_key)

#else

static inline void __dirty_owner_write(struct folio *folio, size_t from, size_t len) { }
static inline void __dirty_owner_dirtied(struct folio *folio,
					 struct backing_dev_info *bdi) { }
static inline void __dirty_owner_cancelled(struct folio *folio) { }
static inline void __dirty_owner_cleaned(struct folio *folio) { }
static inline void __dirty_owner_redirty(struct folio *folio) { }
static inline void __dirty_owner_started(struct folio *folio) { }
static inline void __dirty_owner_ended(struct folio *folio) { }
static inline void __dirty_owner_removed(struct folio *folio) { }
static inline void __dirty_owner_waited(struct folio *folio) { }
static inline void __dirty_owner_migrated(struct folio *dst, struct folio *src) { }

static inline int __dirty_owner_pace(struct address_space *mapping,
				     struct backing_dev_info *bdi, unsigned int flags)
{
	return 0;
}

static inline size_t __dirty_owner_chunk(struct address_space *mapping, size_t chunk,
					 size_t len)
{
	return chunk;
}

#define DIRTY_OWNER_ON	false

#endif

/**
 * dirty_owner_write - the current task is about to dirty a part of a folio
 * @folio:	the folio, locked
 * @from:	first byte
 * @len:	how many; it will be dirtied without fail
 *
 * A folio of one page has no parts: dirty_owner_dirtied() says all of it.
 */
static inline void dirty_owner_write(struct folio *folio, size_t from, size_t len)
{
	if (DIRTY_OWNER_ON && folio_test_large(folio))
		__dirty_owner_write(folio, from, len);
}

/**
 * dirty_owner_dirtied - a folio has become dirty
 * @folio:	the folio; all its pages get an owner, unless some have one already
 * @bdi:	where it will be written
 *
 * Context: i_pages lock held, irqs off.
 */
static inline void dirty_owner_dirtied(struct folio *folio, struct backing_dev_info *bdi)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_dirtied(folio, bdi);
}

/**
 * dirty_owner_cancelled - a folio is not dirty any more, and will not be written
 * @folio:	the folio, its dirty flag cleared
 */
static inline void dirty_owner_cancelled(struct folio *folio)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_cancelled(folio);
}

/**
 * dirty_owner_cleaned - a folio is going to be written
 * @folio:	the folio, locked, its dirty flag cleared
 */
static inline void dirty_owner_cleaned(struct folio *folio)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_cleaned(folio);
}

/**
 * dirty_owner_redirty - a folio is not going to be written after all
 * @folio:	the folio, locked, its dirty flag about to be set again
 */
static inline void dirty_owner_redirty(struct folio *folio)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_redirty(folio);
}

/**
 * dirty_owner_started - a folio that was cleaned is being written
 * @folio:	the folio, locked, its writeback flag set
 *
 * Context: i_pages lock held, irqs off.
 */
static inline void dirty_owner_started(struct folio *folio)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_started(folio);
}

/**
 * dirty_owner_ended - a folio has been written
 * @folio:	the folio, its writeback flag about to be cleared
 *
 * Context: i_pages lock held, irqs off.
 */
static inline void dirty_owner_ended(struct folio *folio)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_ended(folio);
}

/**
 * dirty_owner_removed - a folio leaves the page cache
 * @folio:	the folio, locked
 */
static inline void dirty_owner_removed(struct folio *folio)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_removed(folio);
}

/**
 * dirty_owner_waited - the current task is going to wait until a folio is written
 * @folio:	the folio, with a reference
 *
 * Groups whose pages it has let their writes go unless the task is theirs.
 */
static inline void dirty_owner_waited(struct folio *folio)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_waited(folio);
}

/**
 * dirty_owner_migrated - a folio takes the place of another
 * @dst:	the new one
 * @src:	the old one, not under writeback, its references frozen
 */
static inline void dirty_owner_migrated(struct folio *dst, struct folio *src)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_migrated(dst, src);
}

/**
 * dirty_owner_pace - make a task that dirties pages as slow as its group's writes
 * @mapping:	what it dirties
 * @bdi:	where that is written
 * @flags:	BDP_ASYNC not to wait
 *
 * Context: may sleep.
 * Return: 0, -EAGAIN if it would have to wait and must not, -EINTR if it is killed.
 */
static inline int dirty_owner_pace(struct address_space *mapping,
				   struct backing_dev_info *bdi, unsigned int flags)
{
	return DIRTY_OWNER_ON ? __dirty_owner_pace(mapping, bdi, flags) : 0;
}

/**
 * dirty_owner_chunk - how much to write between two calls of dirty_owner_pace()
 * @mapping:	what is written to
 * @chunk:	bytes at most, a power of two
 * @len:	bytes there are to write
 *
 * Return: bytes, a power of two, at least PAGE_SIZE.
 */
static inline size_t dirty_owner_chunk(struct address_space *mapping, size_t chunk,
				       size_t len)
{
	return DIRTY_OWNER_ON && len > PAGE_SIZE ?
	       __dirty_owner_chunk(mapping, chunk, len) : chunk;
}

#endif /* _LINUX_DIRTY_OWNER_H */
