// SPDX-License-Identifier: GPL-2.0
/*
 * Long writes in parts: between two of them a task waits for its group's limits, and
 * holds no lock of the file.
 */
#include <linux/dirty_owner.h>
#include <linux/fs.h>
#include <linux/uio.h>

ssize_t __dirty_owner_vfs_write(struct file *file, const char __user *buf, size_t count,
				loff_t *pos)
{
	ssize_t part, ret, done = 0;

	if (count > MAX_RW_COUNT)
		return vfs_write(file, buf, count, pos);
	do {
		part = dirty_owner_admit(file, count - done, 0);
		ret = part < 0 ? part : vfs_write(file, buf + done, part, pos);
		done += max(ret, 0);
	} while (part > 0 && ret == part && done < count);
	return done ?: ret;
}

static unsigned int dirty_flags(__kernel_rwf_t flags)
{
	return (flags & RWF_NOWAIT ? DIRTY_NOWAIT : 0) |
	       (flags & (RWF_APPEND | RWF_ATOMIC) ? DIRTY_WHOLE : 0);
}

bool __dirty_owner_part(struct dirty_part *part, struct file *file, struct iov_iter *iter,
			__kernel_rwf_t flags, ssize_t *ret)
{
	ssize_t last = *ret, len;

	if (part->len) {
		iov_iter_reexpand(iter, iov_iter_count(iter) + part->rest);
		part->done += max(last, 0);
		*ret = part->done ?: last;
		if (last != part->len || !part->rest)
			return false;
	}
	part->rest = iov_iter_count(iter);
	len = dirty_owner_admit(file, part->rest, dirty_flags(flags));
	if (len < 0) {
		*ret = part->done ?: len;
		return false;
	}
	iov_iter_truncate(iter, len);
	part->len = len;
	part->rest -= len;
	return true;
}
