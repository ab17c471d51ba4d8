// SPDX-License-Identifier: GPL-2.0
/*
 * Lines "MAJOR:MINOR BODY" that are written to control files.  Parsing is strict: a line that is
 * not valid as a whole changes nothing.
 */
#include <linux/ctype.h>
#include <linux/kstrtox.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../ioband.h"

/* Parse a decimal number without a sign and nothing after it.  Returns 0, -EINVAL or -ERANGE. */
int ioband_parse_u64(const char *str, u64 *val)
{
	/* kstrtou64() would accept a sign */
	return isdigit(*str) ? kstrtou64(str, 10, val) : -EINVAL;
}

/*
 * Check that a line begins with "MAJOR:MINOR", both in the range of device numbers, and a blank.
 * Sets @body to what follows.  blkg_conf_open_bdev() truncates numbers and lets a minor overflow
 * into the major: a name that is out of range must not find another device.
 */
static int ioband_check_dev(char *input, char **body)
{
	char *name = skip_spaces(input);
	u64 major, minor;
	int len;

	if (sscanf(name, "%19llu:%19llu%n", &major, &minor, &len) != 2 || !name[len] ||
	    strcspn(name, IOBAND_BLANKS) != len || major > U32_MAX || minor > U32_MAX)
		return -EINVAL;
	*body = name + len + 1;
	return major >> (32 - MINORBITS) || minor > MINORMASK ? -ENODEV : 0;
}

/*
 * Parse what follows the device in a line, and get ready for it.  -E2BIG: a bio would be charged at
 * too many gates while dev->lock is held.
 */
int ioband_parse_line(struct blkcg *blkcg, struct ioband_line *line, char *body)
{
	int ret = line->parse(line, body);

	if (!ret && line->wants && cgroup_subsys_on_dfl(io_cgrp_subsys) &&
	    blkcg->css.cgroup->level > IOBAND_MAX_LEVEL)
		ret = -E2BIG;
	if (!ret && !line->check && line->owns)
		ret = ioband_own_pages(blkcg);
	return ret;
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

/*
 * Apply a line "MAJOR:MINOR BODY" to a cgroup on a device.  A line that is not valid activates
 * nothing.  May sleep.  Returns 0, -EINVAL, -ENODEV, -ENOMEM, or the error of ioband_parse_line().
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
	ret = ioband_parse_line(blkcg, line, body);
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

/*
 * Apply one line for each device to a cgroup, or none if one is not valid.  May sleep.  Returns 0,
 * -ENOMEM, or the error of the first line that has one.
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
