// SPDX-License-Identifier: GPL-2.0
/*
 * Lines "MAJOR:MINOR BODY" that are written to control files.  Parsing is strict: a line that is
 * not valid as a whole changes nothing.
 */
#include <linux/blkdev.h>
#include <linux/ctype.h>
#include <linux/kstrtox.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../ioband.h"

/**
 * ioband_parse_u64 - parse a decimal number without a sign
 * @str:	the number, and nothing after it
 * @val:	set to the number
 *
 * Return: 0, -EINVAL, or -ERANGE from 2^64 on.
 */
int ioband_parse_u64(const char *str, u64 *val)
{
	/* kstrtou64() would accept a sign */
	return isdigit(*str) ? kstrtou64(str, 10, val) : -EINVAL;
}

/**
 * ioband_check_dev - check that "MAJOR:MINOR" is within the range of device numbers
 * @input:	a line that begins with "MAJOR:MINOR"
 * @body:	set to what follows
 *
 * blkg_conf_open_bdev() truncates numbers to 32 bits and lets a minor overflow into the
 * major.  A name that is out of range must not find another device.
 *
 * Return: 0, -EINVAL or -ENODEV.
 */
static int ioband_check_dev(char *input, char **body)
{
	char buf[sizeof("4294967295:4294967295")];
	char *name = skip_spaces(input);
	size_t len = strcspn(name, IOBAND_BLANKS);
	char *minor = buf, *major;
	unsigned int num;

	/* there has to be a separator after the name, even if only a newline */
	if (!len || len >= sizeof(buf) || !name[len])
		return -EINVAL;
	*body = name + len + 1;
	memcpy(buf, name, len);
	buf[len] = '\0';
	major = strsep(&minor, ":");
	if (!minor || !isdigit(*major) || !isdigit(*minor))
		return -EINVAL;
	if (kstrtouint(major, 10, &num))
		return -EINVAL;
	if (num >> (32 - MINORBITS))
		return -ENODEV;
	if (kstrtouint(minor, 10, &num))
		return -EINVAL;
	return num > MINORMASK ? -ENODEV : 0;
}

/**
 * ioband_is_too_deep - tell whether a cgroup is too deep in the hierarchy for limits
 * @blkcg:	the cgroup
 *
 * A bio is charged at each gate above its group while dev->lock is held.
 *
 * Return: true if the cgroup is below IOBAND_MAX_LEVEL.
 */
bool ioband_is_too_deep(struct blkcg *blkcg)
{
	return cgroup_subsys_on_dfl(io_cgrp_subsys) &&
	       blkcg->css.cgroup->level > IOBAND_MAX_LEVEL;
}

/* If this activates ioband on the disk, *@activated is set to it, with a reference. */
static int ioband_apply_line(struct blkcg *blkcg, struct blkg_conf_ctx *ctx,
			     struct ioband_line *line, struct gendisk **activated)
{
	struct gendisk *disk = ctx->bdev->bd_disk;
	int ret;

	/* a device that never had a limit or weight has none to remove */
	if (!disk->ioband && !line->wants)
		return 0;
	ret = ioband_activate(disk);
	if (ret < 0)
		return ret;
	if (ret) {
		get_device(disk_to_dev(disk));
		*activated = disk;
	}
	ret = blkg_conf_prep(blkcg, &blkcg_policy_ioband, ctx);
	/* the disk has just been removed from the queue, and all policies with it */
	if (ret == -EOPNOTSUPP)
		return -ENODEV;
	if (ret)
		return ret;
	line->apply(line, blkg_to_grp(ctx->blkg));
	blkg_conf_unprep(ctx);
	return 0;
}

/**
 * ioband_write_line - apply a line "MAJOR:MINOR BODY" to a cgroup on a device
 * @blkcg:	the cgroup
 * @buf:	the line; changed
 * @line:	how to parse BODY, and how to apply it to the group
 *
 * A line that is not valid activates nothing.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL, -ENODEV, -ENOMEM, -E2BIG for a cgroup below IOBAND_MAX_LEVEL, or
 *	   the error of @line->parse.
 */
int ioband_write_line(struct blkcg *blkcg, char *buf, struct ioband_line *line)
{
	struct gendisk *activated = NULL;
	struct blkg_conf_ctx ctx;
	unsigned int memflags;
	char *body;
	int ret;

	ret = ioband_check_dev(buf, &body);
	if (ret)
		return ret;
	blkg_conf_init(&ctx, buf);
	ret = blkg_conf_open_bdev(&ctx);
	if (ret)
		return ret;

	/* the mutex that blkg_conf_open_bdev() takes is also taken while a queue is frozen */
	memflags = memalloc_noio_save();
	ret = line->parse(line, body);
	if (!ret && line->wants && ioband_is_too_deep(blkcg))
		ret = -E2BIG;
	if (!ret && !line->check && line->owns)
		ret = ioband_own_pages(blkcg);
	if (!ret && !line->check)
		ret = ioband_apply_line(blkcg, &ctx, line, &activated);
	memalloc_noio_restore(memflags);
	blkg_conf_close_bdev(&ctx);
	if (activated) {
		ioband_activated(activated);
		put_disk(activated);
	}
	return ret;
}

/* Cut off the first line.  A line break is a blank, unless a device or "default" follows. */
static char *ioband_cut_line(char **rest)
{
	char *line = skip_spaces(*rest), *end = line;

	while ((end = strchr(end, '\n'))) {
		char *next = skip_spaces(end);

		if (next[strcspn(next, ":" IOBAND_BLANKS)] == ':' ||
		    str_has_prefix(next, "default")) {
			*end = '\0';
			*rest = next;
			return line;
		}
		end = next;
	}
	*rest = NULL;
	return line;
}

/**
 * ioband_write_lines - apply one line for each device to a cgroup, or none if one is not valid
 * @of:		a control file of the cgroup
 * @buf:	the lines; changed
 * @write:	how to apply a line
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, or the error of the first line that has one.
 */
int ioband_write_lines(struct kernfs_open_file *of, char *buf, ioband_write_fn *write)
{
	char *copy = kstrdup(buf, GFP_KERNEL), *rest = copy;
	int ret = copy ? 0 : -ENOMEM;

	while (!ret && rest)
		ret = write(of, ioband_cut_line(&rest), true);
	kfree(copy);
	while (!ret && buf)
		ret = write(of, ioband_cut_line(&buf), false);
	return ret;
}
