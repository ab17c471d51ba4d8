/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_IOBAND_H
#define _LINUX_IOBAND_H

#include <linux/blk-cgroup.h>
#include <linux/fs.h>
#include <linux/jump_label.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sizes.h>

/*
 * Calls of more than this are divided into parts: what a group below small limits may get at once.
 * At half of it, readahead of fast arrays would be divided; at twice of it, a call of a group with
 * 1 MiB/s would take two seconds to begin.
 */
#define IOBAND_DOOR_BYTES	SZ_1M

#ifdef CONFIG_BLK_CGROUP_IOBAND

/* True while a device is ready for limits and weights. */
DECLARE_STATIC_KEY_FALSE(ioband_key);
/* True from the first weight that is not the default on. */
DECLARE_STATIC_KEY_FALSE(ioband_share_key);

/* Changes whenever a limit may begin to bind a task that none has bound. */
extern atomic_long_t ioband_epoch;

ssize_t __ioband_vfs_rw(struct file *file, char __user *buf, size_t count, loff_t *pos, int rw);
ssize_t __dirty_owner_vfs_write(struct file *file, const char __user *buf, size_t count,
				loff_t *pos);
int __ioband_settle(void);
int __ioband_door(struct file *file, int rw, loff_t pos, size_t count, bool async, bool nowait);

/* Is the current task bound by no limit, and without a debt?  If not sure, no. */
static inline bool ioband_is_free(void)
{
	return current->ioband_free == atomic_long_read(&ioband_epoch);
}

/* As ioband_is_free(); and there are no weights, for which what it writes would be measured. */
static inline bool ioband_writes_freely(void)
{
	return ioband_is_free() && !static_branch_unlikely(&ioband_share_key);
}

/**
 * ioband_vfs_read - vfs_read() in parts, between which the task waits for its limits
 * @file:	the file
 * @buf:	where the data goes
 * @count:	length of the data in bytes
 * @pos:	position in the file, or NULL
 *
 * Context: as vfs_read(), no locks held but that of the position of @file.
 * Return: as vfs_read(); fewer bytes if the task is killed.
 */
static inline ssize_t ioband_vfs_read(struct file *file, char __user *buf, size_t count,
				      loff_t *pos)
{
	if (static_branch_unlikely(&ioband_key) && count > IOBAND_DOOR_BYTES && !ioband_is_free())
		return __ioband_vfs_rw(file, buf, count, pos, READ);
	return vfs_read(file, buf, count, pos);
}

/* As ioband_vfs_read(); but a direct write that appends has to be whole. */
static inline ssize_t ioband_vfs_write(struct file *file, const char __user *buf, size_t count,
				       loff_t *pos)
{
	if (!static_branch_unlikely(&ioband_key) || ioband_writes_freely())
		return vfs_write(file, buf, count, pos);
	if (count > IOBAND_DOOR_BYTES && (file->f_flags & (O_DIRECT | O_APPEND)) == O_DIRECT)
		return __ioband_vfs_rw(file, (char __user *)buf, count, pos, WRITE);
	return __dirty_owner_vfs_write(file, buf, count, pos);
}

/**
 * ioband_door - have the current task pay its debts, and for what it is about to read or write
 * @file:	the file
 * @rw:		READ or WRITE
 * @pos:	where the I/O begins, or NULL
 * @count:	its length in bytes
 * @flags:	RWF_NOWAIT: do not wait
 *
 * Context: may sleep; no locks held but that of the position of @file.
 * Return: 0, -EAGAIN if the limits have no room and the task must not wait, -EINTR if it is killed,
 *	   -EIO if the disk is removed.
 */
static inline int ioband_door(struct file *file, int rw, const loff_t *pos, size_t count,
			      rwf_t flags)
{
	if (static_branch_unlikely(&ioband_key) && !ioband_is_free())
		return __ioband_door(file, rw, pos ? *pos : 0, count, false,
				     flags & RWF_NOWAIT);
	return 0;
}

/* As ioband_door(), for I/O that need not wait for its end: it goes on if it may be held. */
static inline int ioband_door_iocb(struct kiocb *iocb, int rw, size_t count)
{
	if (static_branch_unlikely(&ioband_key) && !ioband_is_free())
		return __ioband_door(iocb->ki_filp, rw, iocb->ki_pos, count, true,
				     iocb->ki_flags & IOCB_NOWAIT);
	return 0;
}

/**
 * ioband_owes - does the current task have to wait for a debt?
 *
 * Most tasks wait on their way to user space, where workers of io_uring never get.
 *
 * Context: a worker of io_uring, between two pieces of work, no locks held.
 * Return: true if the worker has to wait, by io_run_task_work(), and then has to ask again.
 */
static inline bool ioband_owes(void)
{
	return static_branch_unlikely(&ioband_key) && current->throttle_disk;
}

/*
 * Have a task in a long call wait for the debts that it has made so far, between two pieces of
 * data, no locks held.  Returns 0, or -EINTR if it is killed.
 */
static inline int ioband_settle(void)
{
	return ioband_owes() ? __ioband_settle() : 0;
}

/**
 * ioband_poller_owes - have the thread that polls for requests of io_uring wait once for a debt
 * @lock:	a mutex, which is released meanwhile
 *
 * Return: true if the thread has waited, and has to ask again before it submits anything.
 */
static inline bool ioband_poller_owes(struct mutex *lock)
{
	if (!ioband_owes())
		return false;
	mutex_unlock(lock);
	blkcg_maybe_throttle_current();
	mutex_lock(lock);
	return true;
}

#else
static inline bool ioband_writes_freely(void) { return true; }
#define ioband_vfs_read	vfs_read
#define ioband_vfs_write	vfs_write
#define ioband_door(file, rw, pos, count, flags)	0
static inline int ioband_door_iocb(struct kiocb *iocb, int rw, size_t count) { return 0; }
static inline bool ioband_owes(void) { return false; }
static inline int ioband_settle(void) { return 0; }
static inline bool ioband_poller_owes(struct mutex *lock) { return false; }
#endif

#endif /* _LINUX_IOBAND_H */
