/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_IOBAND_H
#define _LINUX_IOBAND_H

#include <linux/fs.h>
#include <linux/jump_label.h>
#include <linux/sizes.h>

/* Calls of up to this length are not divided: what a group below small limits may owe for one. */
#define IOBAND_DOOR_BYTES	SZ_1M

#ifdef CONFIG_BLK_CGROUP_IOBAND

/* True while a device is ready for limits and weights. */
DECLARE_STATIC_KEY_FALSE(ioband_key);

ssize_t __ioband_vfs_read(struct file *file, char __user *buf, size_t count, loff_t *pos);

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
	if (static_branch_unlikely(&ioband_key) && count > IOBAND_DOOR_BYTES)
		return __ioband_vfs_read(file, buf, count, pos);
	return vfs_read(file, buf, count, pos);
}

#else
#define ioband_vfs_read	vfs_read
#endif

#endif /* _LINUX_IOBAND_H */
