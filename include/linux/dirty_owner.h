/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_DIRTY_OWNER_H
#define _LINUX_DIRTY_OWNER_H

#include <linux/backing-dev-defs.h>
#include <linux/cgroup.h>
#include <linux/fs.h>
#include <linux/ioband.h>
#include <linux/jump_label.h>
#include <linux/limits.h>
#include <linux/page-flags.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/types.h>

/*
 * Dirtiers: which cgroup dirtied a page of the page cache, and whose write of it is under way.
 *
 * On cgroup v1 neither an inode nor its writeback belongs to a group.  On v2 both belong to the
 * group that wrote to the inode first, or most.  The answer is kept for each page here; what is
 * done with it is the controller's business, see struct dirty_owner_ops.  Before
 * dirty_owner_enable() nothing is recorded, and no memory is used.  The model is described in
 * kernel/cgroup/dirty_owner.c.
 */

struct backing_dev_info;
struct bdi_writeback;
struct cgroup_subsys_state;
struct dirty_flow;
struct folio;
struct page;

/**
 * struct dirty_rate - how fast a group may write to a backing device
 * @limited:	a limit applies to the group's writes
 * @bps:	limit in bytes a second, 0 if there is none in bytes
 * @measured:	the writes may be slower than @bps: measure how fast they are
 * @probe:	devices below may have limits; which of them is not known before the group has
 *		written something
 * @shared:	limits of groups above this one apply, too
 * @owed_ns:	time in ns for which the group should not write: its debt to devices below
 * @turn_ns:	time in ns for which the group should not dirty more pages: others waited for its
 *		writes, so these were dispatched before their turn
 * @since:	changes whenever limits begin, that is when one is set where there was none
 */
struct dirty_rate {
	bool		limited;
	bool		measured;
	bool		probe;
	bool		shared;
	unsigned int	since;
	u64		bps;
	u64		owed_ns;
	u64		turn_ns;
};

/* What a task that pays does if the limits have no room now. */
enum dirty_how {
	DIRTY_WAIT,		/* it waits, killable, and holds no locks */
	DIRTY_TRY,		/* it pays nothing and goes on */
	DIRTY_OWE,		/* it pays at once: the group has a debt */
};

/**
 * struct dirty_owner_ops - what a controller knows of a group's writes to a backing device
 * @rate:	how fast a group may write to the device; all zero if nothing limits it.  RCU read
 *		side.
 * @save:	take note of the bytes of dirty pages that a group has: what its limits leave
 *		unused may pay for their writes.  RCU read side.
 * @bps:	bytes a second that the group's own limit allows on the device or on any device
 *		below it, 0 for no limit; sets *ahead to whether tasks pay for these bytes before
 *		they dirty pages.  RCU read side.
 * @pay:	charge a group's limits with bytes that it will write to the device; returns the
 *		number of bytes charged, which may be more, -EAGAIN or -EINTR
 * @free:	find out anew whether no limit binds the current task, I17; RCU read side, any locks
 * @settle_later: have the current task pay on its way to user space; returns false if it cannot
 * @hurry:	let writes of a group's pages to the device pass, if it holds any, since others
 *		wait for them.  RCU read side.
 */
struct dirty_owner_ops {
	struct dirty_rate (*rate)(struct cgroup_subsys_state *css,
				  struct backing_dev_info *bdi);
	void (*save)(struct cgroup_subsys_state *css, struct backing_dev_info *bdi, u64 bytes);
	u64 (*bps)(struct cgroup_subsys_state *css, struct backing_dev_info *bdi, bool *ahead);
	s64 (*pay)(struct cgroup_subsys_state *css, struct backing_dev_info *bdi,
		   s64 bytes, enum dirty_how how);
	bool (*free)(void);
	bool (*settle_later)(struct backing_dev_info *bdi);
	void (*hurry)(struct cgroup_subsys_state *css, struct backing_dev_info *bdi);
};

/* A part of what a task writes in one call, and the promise for it; all zero at first. */
struct dirty_part {
	bool		begun;
	size_t		len;		/* bytes of the part that is being written */
	size_t		rest;		/* bytes after the part */
	ssize_t		done;		/* bytes written before the part */
	struct dirty_flow *flow;	/* the flow that promised pages, NULL if none had to */
	size_t		promised;	/* bytes of them that the task has not dirtied yet */
};

#ifdef CONFIG_CGROUP_DIRTY_OWNER

/* True after dirty_owner_enable(). */
DECLARE_STATIC_KEY_FALSE(dirty_owner_key);

int dirty_owner_enable(const struct dirty_owner_ops *ops);
bool dirty_owner_is_inodes(struct page *page);
struct cgroup_subsys_state *dirty_owner_css_of_left(struct page *page);
u32 dirty_owner_of_write(const struct page *page);
unsigned long dirty_owner_run(const struct page *page, unsigned long nr, u32 id);
struct cgroup_subsys_state *dirty_owner_css(u32 id);
bool dirty_owner_use(struct cgroup_subsys_state *css, struct backing_dev_info *bdi,
		     unsigned int bytes, unsigned int since);
void dirty_owner_passed(const struct page *page, unsigned int bytes);
bool dirty_owner_settle(struct backing_dev_info *bdi);

void __dirty_owner_write(struct folio *folio, size_t from, size_t len);
void __dirty_owner_dirtied(struct folio *folio, struct bdi_writeback *wb);
void __dirty_owner_switched(struct folio *folio, struct bdi_writeback *wb);
int dirty_owner_queue(struct bdi_writeback *wb);
bool dirty_owner_is_next(const struct bdi_writeback *wb);
void __dirty_owner_cancelled(struct folio *folio);
void __dirty_owner_cleaned(struct folio *folio);
void __dirty_owner_writing(struct folio *folio, size_t from, size_t len);
void __dirty_owner_redirty(struct folio *folio);
void __dirty_owner_started(struct folio *folio);
void __dirty_owner_ended(struct folio *folio);
void __dirty_owner_removed(struct folio *folio);
void __dirty_owner_awaited(struct folio *folio);
void __dirty_owner_migrated(struct folio *dst, struct folio *src);
int __dirty_owner_pace(struct address_space *mapping, struct backing_dev_info *bdi,
		       unsigned int flags);
bool __dirty_owner_part(struct dirty_part *part, struct file *file, struct iov_iter *iter,
			__kernel_rwf_t flags, ssize_t *ret);
ssize_t __dirty_owner_write_iter(struct kiocb *iocb, struct iov_iter *iter);

#define DIRTY_OWNER_ON	static_branch_unlikely(&dirty_owner_key)

#else

static inline void __dirty_owner_write(struct folio *folio, size_t from, size_t len) { }
static inline void __dirty_owner_dirtied(struct folio *folio, struct bdi_writeback *wb) { }
static inline void __dirty_owner_switched(struct folio *folio, struct bdi_writeback *wb) { }
static inline int dirty_owner_queue(struct bdi_writeback *wb) { return 0; }
static inline bool dirty_owner_is_next(const struct bdi_writeback *wb) { return false; }
static inline void __dirty_owner_cancelled(struct folio *folio) { }
static inline void __dirty_owner_cleaned(struct folio *folio) { }
static inline void __dirty_owner_writing(struct folio *folio, size_t from, size_t len) { }
static inline void __dirty_owner_redirty(struct folio *folio) { }
static inline void __dirty_owner_started(struct folio *folio) { }
static inline void __dirty_owner_ended(struct folio *folio) { }
static inline void __dirty_owner_removed(struct folio *folio) { }
static inline void __dirty_owner_awaited(struct folio *folio) { }
static inline void __dirty_owner_migrated(struct folio *dst, struct folio *src) { }

static inline int __dirty_owner_pace(struct address_space *mapping,
				     struct backing_dev_info *bdi, unsigned int flags)
{
	return 0;
}

static inline bool __dirty_owner_part(struct dirty_part *part, struct file *file,
				      struct iov_iter *iter, __kernel_rwf_t flags,
				      ssize_t *ret)
{
	return false;
}

static inline ssize_t __dirty_owner_write_iter(struct kiocb *iocb, struct iov_iter *iter)
{
	return 0;
}

#define DIRTY_OWNER_ON	false

#endif

/**
 * dirty_owner_is_owned - has an inode had dirty pages of a limited group?
 * @inode:	the inode
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool dirty_owner_is_owned(const struct inode *inode)
{
	return test_bit(AS_DIRTY_OWNED, &inode->i_mapping->flags);
}

/**
 * dirty_owner_has_words - may pages of a file have a dirtier recorded for each page?
 * @mapping:	the file's mapping
 *
 * They may from the first such page on.  The dirtier of other pages is the group whose wb the
 * inode has.
 *
 * Context: any.
 * Return: false if no page of the file has had one recorded.
 */
static inline bool dirty_owner_has_words(const struct address_space *mapping)
{
	return DIRTY_OWNER_ON && test_bit(AS_DIRTY_WORDS, &mapping->flags);
}

/**
 * dirty_owner_leaves - may pages that the current task dirties go without a record?
 * @wb:		wb of the pages' inode
 *
 * They may if no limit binds the task on any disk, and there are no weights.  Where groups have
 * wbs of their own, the inode must also have that of the task's group.  Most pages are such.
 *
 * Context: RCU read side.
 * Return: true if they may.
 */
static inline bool dirty_owner_leaves(const struct bdi_writeback *wb)
{
#ifdef CONFIG_CGROUP_DIRTY_OWNER
	if (!ioband_writes_freely())
		return false;
	if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
		return true;
#ifdef CONFIG_CGROUP_WRITEBACK
	return wb->blkcg_css == task_css_check(current, io_cgrp_id, true);
#endif
#endif
	return false;
}

/**
 * dirty_owner_write - the current task is about to dirty a part of a folio
 * @folio:	the folio; locked, or a page of it mapped and the lock of its page table held
 * @from:	first byte of the part
 * @len:	length of the part in bytes; the task will dirty it without fail
 *
 * The folio may be dirty already.  A folio of one page has no parts: for it
 * dirty_owner_dirtied() is enough.
 *
 * Context: any but hard interrupts.
 */
static inline void dirty_owner_write(struct folio *folio, size_t from, size_t len)
{
	if (DIRTY_OWNER_ON && folio_test_large(folio))
		__dirty_owner_write(folio, from, len);
}

/**
 * dirty_owner_dirtied - a folio has become dirty
 * @folio:	the folio; the current task's group becomes the dirtier of all its pages, unless
 *		some of them have a dirtier already
 * @wb:		wb of its inode
 *
 * Context: i_pages lock held, irqs off.
 */
static inline void dirty_owner_dirtied(struct folio *folio, struct bdi_writeback *wb)
{
	if (DIRTY_OWNER_ON && !dirty_owner_leaves(wb))
		__dirty_owner_dirtied(folio, wb);
}

/**
 * dirty_owner_switched - the inode of a folio is about to get another wb
 * @folio:	the folio, dirty
 * @wb:		the wb that the inode has had
 *
 * Pages without a recorded dirtier get one: the group of @wb.
 *
 * Context: i_pages lock held, irqs off.
 */
static inline void dirty_owner_switched(struct folio *folio, struct bdi_writeback *wb)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_switched(folio, wb);
}

/**
 * dirty_owner_cancelled - a folio is no longer dirty, and will not be written
 * @folio:	the folio, its dirty flag cleared
 */
static inline void dirty_owner_cancelled(struct folio *folio)
{
	if (dirty_owner_has_words(folio->mapping))
		__dirty_owner_cancelled(folio);
}

/**
 * dirty_owner_cleaned - a folio is going to be written
 * @folio:	the folio, locked, its dirty flag cleared
 */
static inline void dirty_owner_cleaned(struct folio *folio)
{
	if (dirty_owner_has_words(folio->mapping))
		__dirty_owner_cleaned(folio);
}

/**
 * dirty_owner_writing - a part of a folio is being written, and other parts may stay dirty
 * @folio:	the folio, locked, its writeback flag set
 * @from:	first byte of the part
 * @len:	length of the part in bytes
 *
 * For filesystems that write parts of a folio before they have cleaned all of it.
 *
 * Context: any but hard interrupts.
 */
static inline void dirty_owner_writing(struct folio *folio, size_t from, size_t len)
{
	if (folio_test_large(folio) && dirty_owner_has_words(folio->mapping))
		__dirty_owner_writing(folio, from, len);
}

/**
 * dirty_owner_redirty - a folio is not going to be written after all
 * @folio:	the folio, locked, its dirty flag about to be set again
 */
static inline void dirty_owner_redirty(struct folio *folio)
{
	if (folio->mapping && dirty_owner_has_words(folio->mapping))
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
	if (dirty_owner_has_words(folio->mapping))
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
	if (dirty_owner_has_words(folio->mapping))
		__dirty_owner_ended(folio);
}

/**
 * dirty_owner_awaited - the current task is about to wait for the write of a folio
 * @folio:	the folio, under writeback or until just now; the caller has a reference
 *
 * Context: may sleep.
 */
static inline void dirty_owner_awaited(struct folio *folio)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_awaited(folio);
}

/**
 * dirty_owner_removed - a folio leaves the page cache
 * @folio:	the folio, locked
 */
static inline void dirty_owner_removed(struct folio *folio)
{
	if (dirty_owner_has_words(folio->mapping))
		__dirty_owner_removed(folio);
}

/**
 * dirty_owner_migrated - a folio replaces another one in the page cache
 * @dst:	the new folio
 * @src:	the old folio, not under writeback, its references frozen
 */
static inline void dirty_owner_migrated(struct folio *dst, struct folio *src)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_migrated(dst, src);
}

/**
 * dirty_owner_part - the next part of a write from an iterator, if there is one
 * @part:	state of the loop over the parts, all zero at first
 * @file:	the file
 * @iter:	truncated to the next part; only the first part can be empty
 * @flags:	RWF_*
 * @ret:	in: the result of writing the last part; out, if there is no next part: the result
 *		of the whole write
 *
 * Context: as vfs_writev(), no locks held.
 * Return: true if there is a next part.
 */
static inline bool dirty_owner_part(struct dirty_part *part, struct file *file,
				    struct iov_iter *iter, __kernel_rwf_t flags,
				    ssize_t *ret)
{
	bool first = !part->begun;

	part->begun = true;
	if ((DIRTY_OWNER_ON && first && !ioband_writes_freely()) || part->len)
		return __dirty_owner_part(part, file, iter, flags, ret);
	return first;
}

/**
 * dirty_owner_write_iter - ->write_iter() in parts, between which the task waits for its limits
 * @iocb:	the write; of a regular file after kiocb_start_write(), unless IOCB_NOWAIT
 * @iter:	data to write
 *
 * Context: as ->write_iter(), no other locks held.
 * Return: as ->write_iter(); fewer bytes, or -EAGAIN, if the task would have to wait and must
 *	   not; -EINTR if the task is killed.
 */
static inline ssize_t dirty_owner_write_iter(struct kiocb *iocb, struct iov_iter *iter)
{
	/* direct I/O dirties no pages that have to be promised */
	if (DIRTY_OWNER_ON && !(iocb->ki_flags & IOCB_DIRECT))
		return __dirty_owner_write_iter(iocb, iter);
	return iocb->ki_filp->f_op->write_iter(iocb, iter);
}

/**
 * dirty_owner_pace - make a task that dirties pages as slow as its group's writes may be
 * @mapping:	the file that the task dirties
 * @bdi:	the backing device of the file
 * @flags:	BDP_ASYNC if the task must not wait
 *
 * Does nothing unless current->dirty_due is set: since the last call the task has dirtied pages
 * without a promise, and a limit applies to its group, or its limits have to be looked up again.
 *
 * Context: may sleep.
 * Return: 0, or -EAGAIN if the task would have to wait and must not.
 */
static inline int dirty_owner_pace(struct address_space *mapping,
				   struct backing_dev_info *bdi, unsigned int flags)
{
	return DIRTY_OWNER_ON && current->dirty_due ? __dirty_owner_pace(mapping, bdi, flags) : 0;
}

#endif /* _LINUX_DIRTY_OWNER_H */
