/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_DIRTY_OWNER_H
#define _LINUX_DIRTY_OWNER_H

#include <linux/fs.h>
#include <linux/jump_label.h>
#include <linux/limits.h>
#include <linux/page-flags.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/types.h>

/*
 * Which cgroup dirtied a page of the page cache, and whose write of it is under way.
 *
 * On v1 neither an inode nor its writeback belongs to a group; on v2 they are the group's
 * that wrote to the inode first, or most.  Knows nothing of what is done with the answer.
 * Off, and without memory, until dirty_owner_enable(); see kernel/cgroup/dirty_owner.c.
 */

struct backing_dev_info;
struct bdi_writeback;
struct cgroup_subsys_state;
struct dirty_flow;
struct folio;
struct page;

/**
 * struct dirty_rate - how fast a group may write to a backing device
 * @limited:	something limits it
 * @bps:	bytes a second that it can write, or 0 if no number says so
 * @measured:	it may be slower than that, as slow as its writes are seen to be
 * @probe:	devices below may have limits; nobody knows before something is written
 * @shared:	limits of groups above it are among them
 * @owes:	it owes there what its writes were charged later; who pays waits for that
 * @owed_ns:	so long it should not write at all: what it owes to devices below
 * @since:	another number whenever limits begin
 */
struct dirty_rate {
	bool		limited;
	bool		measured;
	bool		probe;
	bool		shared;
	bool		owes;
	unsigned int	since;
	u64		bps;
	u64		owed_ns;
};

/* If limits say no, a group that pays ... */
enum dirty_how {
	DIRTY_WAIT,		/* ... waits, killable, without locks */
	DIRTY_TRY,		/* ... does not, and nothing is paid */
	DIRTY_OWE,		/* ... owes */
};

/**
 * struct dirty_owner_ops - what a controller says of a group's writes
 * @rate:	how fast a group may write there; all zero if nothing limits it.  RCU read
 *		side.
 * @bps:	bytes a second that the group's own limit allows there or on any device below, 0
 *		for no limit.  RCU read side.
 * @pay:	a group pays for bytes that it will write there; returns how many, which may
 *		be more, -EAGAIN or -EINTR
 * @debt_ns:	how long until what a group owes there is repaid
 * @line_up_below: have the current task wait for the group's turn at a device below that it
 *		owes to; may sleep, no locks held
 * @settle_later: have the current task pay on its way to user space; false if it cannot
 */
struct dirty_owner_ops {
	struct dirty_rate (*rate)(struct cgroup_subsys_state *css,
				  struct backing_dev_info *bdi);
	u64 (*bps)(struct cgroup_subsys_state *css, struct backing_dev_info *bdi);
	s64 (*pay)(struct cgroup_subsys_state *css, struct backing_dev_info *bdi,
		   s64 bytes, enum dirty_how how);
	u64 (*debt_ns)(struct cgroup_subsys_state *css, struct backing_dev_info *bdi);
	void (*line_up_below)(struct cgroup_subsys_state *css);
	bool (*settle_later)(struct backing_dev_info *bdi);
};

/* A part of what a task writes in one call; all zero at first. */
struct dirty_part {
	bool		begun;
	size_t		len;		/* bytes of the part that is being written */
	size_t		rest;		/* bytes after it */
	ssize_t		done;		/* bytes written before it */
	struct dirty_flow *flow;	/* what may dirty pages, NULL if it may have any number */
	size_t		promised;	/* bytes of pages that it has not dirtied yet */
};

#ifdef CONFIG_CGROUP_DIRTY_OWNER

/* True once pages have owners. */
DECLARE_STATIC_KEY_FALSE(dirty_owner_key);

int dirty_owner_enable(const struct dirty_owner_ops *ops);
bool dirty_owner_is_inodes(struct page *page);
u32 dirty_owner_of_write(const struct page *page);
unsigned long dirty_owner_run(const struct page *page, unsigned long nr, u32 id);
struct cgroup_subsys_state *dirty_owner_css(u32 id);
struct cgroup_subsys_state *dirty_owner_css_of_write(const struct page *page);
bool dirty_owner_use(struct cgroup_subsys_state *css, struct backing_dev_info *bdi,
		     unsigned int bytes, unsigned int since);
bool dirty_owner_settle(struct cgroup_subsys_state *css, struct backing_dev_info *bdi);

void __dirty_owner_write(struct folio *folio, size_t from, size_t len);
void __dirty_owner_dirtied(struct folio *folio, struct bdi_writeback *wb);
void __dirty_owner_switched(struct folio *folio, struct bdi_writeback *wb);
void __dirty_owner_cancelled(struct folio *folio);
void __dirty_owner_cleaned(struct folio *folio);
void __dirty_owner_writing(struct folio *folio, size_t from, size_t len);
void __dirty_owner_redirty(struct folio *folio);
void __dirty_owner_started(struct folio *folio);
void __dirty_owner_ended(struct folio *folio);
void __dirty_owner_removed(struct folio *folio);
void __dirty_owner_migrated(struct folio *dst, struct folio *src);
int __dirty_owner_pace(struct address_space *mapping, struct backing_dev_info *bdi,
		       unsigned int flags);
ssize_t __dirty_owner_vfs_write(struct file *file, const char __user *buf, size_t count,
				loff_t *pos);
bool __dirty_owner_part(struct dirty_part *part, struct file *file, struct iov_iter *iter,
			__kernel_rwf_t flags, ssize_t *ret);
ssize_t __dirty_owner_write_iter(struct kiocb *iocb, struct iov_iter *iter);

#define DIRTY_OWNER_ON	static_branch_unlikely(&dirty_owner_key)

#else

static inline void __dirty_owner_write(struct folio *folio, size_t from, size_t len) { }
static inline void __dirty_owner_dirtied(struct folio *folio, struct bdi_writeback *wb) { }
static inline void __dirty_owner_switched(struct folio *folio, struct bdi_writeback *wb) { }
static inline void __dirty_owner_cancelled(struct folio *folio) { }
static inline void __dirty_owner_cleaned(struct folio *folio) { }
static inline void __dirty_owner_writing(struct folio *folio, size_t from, size_t len) { }
static inline void __dirty_owner_redirty(struct folio *folio) { }
static inline void __dirty_owner_started(struct folio *folio) { }
static inline void __dirty_owner_ended(struct folio *folio) { }
static inline void __dirty_owner_removed(struct folio *folio) { }
static inline void __dirty_owner_migrated(struct folio *dst, struct folio *src) { }

static inline int __dirty_owner_pace(struct address_space *mapping,
				     struct backing_dev_info *bdi, unsigned int flags)
{
	return 0;
}

static inline ssize_t __dirty_owner_vfs_write(struct file *file, const char __user *buf,
					      size_t count, loff_t *pos)
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
 * dirty_owner_has_words - may pages of a file have owners of their own?
 * @mapping:	the file's
 *
 * That is so from the first such page on.  Others are the inode's.
 *
 * Context: any.
 * Return: false if no page has had one.
 */
static inline bool dirty_owner_has_words(const struct address_space *mapping)
{
	return DIRTY_OWNER_ON && test_bit(AS_DIRTY_WORDS, &mapping->flags);
}

/**
 * dirty_owner_is_free - do pages that the current task dirties need nothing of what is here?
 * @wb:		that of their inode, not NULL
 *
 * In a write() of the root group, or of a group that nothing limits to a file whose writeback
 * is its own; most are.
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool dirty_owner_is_free(const struct bdi_writeback *wb)
{
#ifdef CONFIG_CGROUP_WRITEBACK
	return wb == current->dirty_free;
#else
	return false;
#endif
}

/**
 * dirty_owner_is_free_inode - as dirty_owner_is_free()
 * @inode:	theirs
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool dirty_owner_is_free_inode(const struct inode *inode)
{
#ifdef CONFIG_CGROUP_WRITEBACK
	const struct bdi_writeback *wb = READ_ONCE(inode->i_wb);

	return wb && dirty_owner_is_free(wb);
#else
	return false;
#endif
}

/**
 * dirty_owner_write - the current task is about to dirty a part of a folio
 * @folio:	the folio; locked, or a page of it mapped and the lock of its page table held
 * @from:	first byte
 * @len:	how many; it will be dirtied without fail
 *
 * Also of a folio that is dirty already.  A folio of one page has no parts:
 * dirty_owner_dirtied() says all of it.
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
 * @folio:	the folio; all its pages get an owner, unless some have one already
 * @wb:		that of its inode
 *
 * Context: i_pages lock held, irqs off.
 */
static inline void dirty_owner_dirtied(struct folio *folio, struct bdi_writeback *wb)
{
	if (DIRTY_OWNER_ON && !dirty_owner_is_free(wb))
		__dirty_owner_dirtied(folio, wb);
}

/**
 * dirty_owner_switched - the inode of a folio is about to get another wb
 * @folio:	the folio, dirty
 * @wb:		the one that it had
 *
 * Those of its pages that have no owner get one: the group of that wb.
 *
 * Context: i_pages lock held, irqs off.
 */
static inline void dirty_owner_switched(struct folio *folio, struct bdi_writeback *wb)
{
	if (DIRTY_OWNER_ON)
		__dirty_owner_switched(folio, wb);
}

/**
 * dirty_owner_cancelled - a folio is not dirty any more, and will not be written
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
 * dirty_owner_writing - a part of a folio is being written, and others may stay dirty
 * @folio:	the folio, locked, its writeback flag set
 * @from:	first byte
 * @len:	how many
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
 * dirty_owner_removed - a folio leaves the page cache
 * @folio:	the folio, locked
 */
static inline void dirty_owner_removed(struct folio *folio)
{
	if (dirty_owner_has_words(folio->mapping))
		__dirty_owner_removed(folio);
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
 * dirty_owner_vfs_write - vfs_write() in parts, between which the task waits for its limits
 * @file:	the file
 * @buf:	what to write
 * @count:	bytes
 * @pos:	where, or NULL
 *
 * Context: as vfs_write(), no locks held.
 * Return: as vfs_write(); also -EINTR if the task is killed.
 */
static inline ssize_t dirty_owner_vfs_write(struct file *file, const char __user *buf,
					    size_t count, loff_t *pos)
{
	return DIRTY_OWNER_ON ? __dirty_owner_vfs_write(file, buf, count, pos) :
				vfs_write(file, buf, count, pos);
}

/**
 * dirty_owner_part - the next part of a write from an iterator, if there is one
 * @part:	where we are
 * @file:	the file
 * @iter:	truncated to the part, which is not empty but for the first
 * @flags:	RWF_*
 * @ret:	what became of the last part; what became of all, if there is no next one
 *
 * Context: as vfs_writev(), no locks held.
 * Return: true if there is one.
 */
static inline bool dirty_owner_part(struct dirty_part *part, struct file *file,
				    struct iov_iter *iter, __kernel_rwf_t flags,
				    ssize_t *ret)
{
	bool first = !part->begun;

	part->begun = true;
	if ((DIRTY_OWNER_ON && first) || part->len)
		return __dirty_owner_part(part, file, iter, flags, ret);
	return first;
}

/**
 * dirty_owner_write_iter - ->write_iter() in parts, between which the task waits for its limits
 * @iocb:	the write; of a regular file after kiocb_start_write(), unless IOCB_NOWAIT
 * @iter:	what to write
 *
 * Context: as ->write_iter(), no other locks held.
 * Return: as ->write_iter(); fewer bytes, or -EAGAIN, if it would have to wait and must not;
 *	   -EINTR if the task is killed.
 */
static inline ssize_t dirty_owner_write_iter(struct kiocb *iocb, struct iov_iter *iter)
{
	return DIRTY_OWNER_ON ? __dirty_owner_write_iter(iocb, iter) :
				iocb->ki_filp->f_op->write_iter(iocb, iter);
}

/**
 * dirty_owner_pace - make a task that dirties pages as slow as its group's writes
 * @mapping:	what it dirties
 * @bdi:	where that is written
 * @flags:	BDP_ASYNC not to wait
 *
 * Does nothing unless pages have become the task's group's, which something limits, without
 * a promise, since it was last asked: current->dirty_due.
 *
 * Context: may sleep.
 * Return: 0, or -EAGAIN if it would have to wait and must not.
 */
static inline int dirty_owner_pace(struct address_space *mapping,
				   struct backing_dev_info *bdi, unsigned int flags)
{
	return DIRTY_OWNER_ON && current->dirty_due ? __dirty_owner_pace(mapping, bdi, flags) : 0;
}

/**
 * dirty_owner_worker_owes - does a worker of io_uring wait for what its group owes?
 *
 * A worker does not come to user space, where other tasks wait.
 *
 * Context: the worker, between two pieces of work, no locks held.
 * Return: true if io_run_task_work() is to wait for a while, and then to ask again.
 */
static inline bool dirty_owner_worker_owes(void)
{
	return DIRTY_OWNER_ON && test_thread_flag(TIF_NOTIFY_RESUME);
}

#endif /* _LINUX_DIRTY_OWNER_H */
