// SPDX-License-Identifier: GPL-2.0
/*
 * Long writes in parts: between two parts a task waits for its group's limits, and holds no
 * lock of the file.
 */
#include <linux/fs.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "dirty_leave.h"

static noinline ssize_t dirty_vfs_write(struct file *file, const char __user *buf,
					size_t count, loff_t *pos)
{
	struct dirty_part part = { };
	ssize_t len, ret, done = 0;
	struct iov_iter from;

	do {
		iov_iter_ubuf(&from, ITER_SOURCE, (void __user *)buf + done, count - done);
		len = dirty_admit(&part, file, &from, count - done, 0);
		ret = len < 0 ? len : vfs_write(file, buf + done, len, pos);
		dirty_admitted(&part);
		done += max(ret, 0);
	} while (len > 0 && ret == len && done < count);
	return done ?: ret;
}

/* Would vfs_write() refuse a write for its length?  If not, it writes MAX_RW_COUNT at most. */
static bool dirty_is_too_long(const char __user *buf, size_t count, const loff_t *pos)
{
	return (ssize_t)count < 0 || !access_ok(buf, count) ||
	       (pos && (*pos < 0 || count > LLONG_MAX - *pos));
}

ssize_t __dirty_owner_vfs_write(struct file *file, const char __user *buf, size_t count,
				loff_t *pos)
{
	if (unlikely(count > MAX_RW_COUNT) && !dirty_is_too_long(buf, count, pos))
		count = MAX_RW_COUNT;
	return DIRTY_OWNER_ON && count <= MAX_RW_COUNT ?
	       dirty_vfs_write(file, buf, count, pos) : vfs_write(file, buf, count, pos);
}

/* Truncate the iterator to the next part.  Returns the part's length, or an error. */
static ssize_t dirty_part_begin(struct dirty_part *part, struct file *file,
				struct iov_iter *iter, unsigned int flags)
{
	ssize_t len;

	part->rest = iov_iter_count(iter);
	len = dirty_admit(part, file, iter, part->rest, flags);
	if (len < 0)
		return len;
	iov_iter_truncate(iter, len);
	part->len = len;
	part->rest -= len;
	return len;
}

/* @last: bytes written of a part, or an error.  Returns true if another part is to follow. */
static bool dirty_part_end(struct dirty_part *part, struct iov_iter *iter, ssize_t last)
{
	dirty_admitted(part);
	iov_iter_reexpand(iter, iov_iter_count(iter) + part->rest);
	part->done += max(last, 0);
	return last == part->len && part->rest;
}

bool __dirty_owner_part(struct dirty_part *part, struct file *file, struct iov_iter *iter,
			__kernel_rwf_t flags, ssize_t *ret)
{
	ssize_t last = *ret;

	if (!part->len || dirty_part_end(part, iter, last)) {
		last = dirty_part_begin(part, file, iter,
					(flags & RWF_NOWAIT ? DIRTY_NOWAIT : 0) |
					(flags & RWF_APPEND ? DIRTY_WHOLE : 0));
		if (last >= 0)
			return true;
	}
	*ret = part->done ?: last;
	return false;
}

/* While a task waits for its group's limits, the filesystem can be frozen. */
static ssize_t dirty_part_begin_thawed(struct dirty_part *part, struct kiocb *iocb,
				       struct iov_iter *iter)
{
	unsigned int flags = iocb->ki_flags & IOCB_APPEND ? DIRTY_WHOLE : 0;
	bool regular = S_ISREG(file_inode(iocb->ki_filp)->i_mode);
	ssize_t len;

	len = dirty_part_begin(part, iocb->ki_filp, iter, flags | DIRTY_NOWAIT);
	if (len != -EAGAIN || (iocb->ki_flags & IOCB_NOWAIT))
		return len;
	if (regular)
		kiocb_end_write(iocb);
	len = dirty_part_begin(part, iocb->ki_filp, iter, flags);
	if (regular)
		kiocb_start_write(iocb);
	return len;
}

ssize_t __dirty_owner_write_iter(struct kiocb *iocb, struct iov_iter *iter)
{
	struct file *file = iocb->ki_filp;
	struct dirty_part part = { };
	ssize_t ret;

	if (ioband_writes_freely())
		return file->f_op->write_iter(iocb, iter);
	do {
		ret = dirty_part_begin_thawed(&part, iocb, iter);
		if (ret < 0)
			break;
		ret = file->f_op->write_iter(iocb, iter);
		/* not a file on a disk; the write may have ended and freed the iterator */
		if (ret == -EIOCBQUEUED) {
			dirty_admitted(&part);
			return ret;
		}
	} while (dirty_part_end(&part, iter, ret));
	return part.done ?: ret;
}
