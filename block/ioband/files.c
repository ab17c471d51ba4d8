// SPDX-License-Identifier: GPL-2.0
/*
 * The control files: mainline's names and formats, parsed strictly.  Whatever
 * does not make sense as a whole changes nothing.
 */
#include <linux/blkdev.h>
#include <linux/ctype.h>
#include <linux/kstrtox.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "ioband.h"

/* a v1 file is one limit */
#define IOBAND_FILE(rw, unit)	((rw) * IOBAND_NR_UNITS + (unit))

struct ioband_conf;
typedef int (ioband_parse_fn)(char *body, int file, struct ioband_conf *conf);

/* one write: the limits it names, U64_MAX for none */
struct ioband_conf {
	struct ioband_line	line;
	ioband_parse_fn		*parse;
	int			file;
	struct ioband_rule	*spare[2];
	bool			set[2][IOBAND_NR_UNITS];
	u64			limit[2][IOBAND_NR_UNITS];
};

/**
 * ioband_parse_u64 - a decimal number without a sign
 * @str:	all of it
 * @val:	set to it
 *
 * Return: 0, -EINVAL, or -ERANGE from 2^64 on.
 */
int ioband_parse_u64(const char *str, u64 *val)
{
	/* kstrto*() takes a sign */
	return isdigit(*str) ? kstrtou64(str, 10, val) : -EINVAL;
}

/* "N", 0 for no limit */
static int ioband_parse_v1(char *body, int file, struct ioband_conf *conf)
{
	int rw = file / IOBAND_NR_UNITS, unit = file % IOBAND_NR_UNITS;
	u64 val;
	int ret;

	ret = ioband_parse_u64(strim(body), &val);
	if (ret)
		return ret;
	conf->set[rw][unit] = true;
	conf->limit[rw][unit] = val ?: U64_MAX;
	return 0;
}

static int ioband_parse_pair(char *tok, struct ioband_conf *conf)
{
	static const char * const keys[] = {
		[IOBAND_FILE(READ, IOBAND_BYTES)]	= "rbps",
		[IOBAND_FILE(WRITE, IOBAND_BYTES)]	= "wbps",
		[IOBAND_FILE(READ, IOBAND_IOS)]		= "riops",
		[IOBAND_FILE(WRITE, IOBAND_IOS)]	= "wiops",
	};
	static_assert(IOBAND_FILE(WRITE, IOBAND_IOS) == 3);
	char *key = strsep(&tok, "=");
	u64 val = U64_MAX;
	int file, ret;

	file = match_string(keys, ARRAY_SIZE(keys), key);
	if (file < 0 || !tok)
		return -EINVAL;
	if (strcmp(tok, "max")) {
		ret = ioband_parse_u64(tok, &val);
		if (ret)
			return ret;
		if (!val)
			return -ERANGE;
	}
	conf->set[file / IOBAND_NR_UNITS][file % IOBAND_NR_UNITS] = true;
	conf->limit[file / IOBAND_NR_UNITS][file % IOBAND_NR_UNITS] = val;
	return 0;
}

/* any of "rbps=N wbps=N riops=N wiops=N", N a number or "max"; or nothing */
static int ioband_parse_v2(char *body, int file, struct ioband_conf *conf)
{
	char *tok;
	int ret;

	while ((tok = strsep(&body, " \t\n"))) {
		if (!*tok)
			continue;
		ret = ioband_parse_pair(tok, conf);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * ioband_check_dev - is the name of a device one that can be?
 * @input:	a line that begins with "M:m"
 * @body:	set to what follows
 *
 * blkg_conf_open_bdev() cuts numbers to 32 bits and lets a minor run over into
 * the major: a name that is out of range must not find another device.
 *
 * Return: 0, -EINVAL or -ENODEV.
 */
static int ioband_check_dev(char *input, char **body)
{
	char buf[sizeof("4294967295:4294967295")];
	char *name = skip_spaces(input);
	size_t len = strcspn(name, " \t\n");
	char *minor = buf, *major;
	unsigned int num;

	/* something has to be between it and what follows, if only a newline */
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

/*
 * Does a direction get a rule?  Not if no limit of it is named, nor if all are to go.
 * Where one goes and the other is not named there may be a rule for that.
 */
static bool ioband_wants_rule(const struct ioband_conf *conf, int rw)
{
	bool named = false, gone = true;

	for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
		named |= conf->set[rw][unit];
		gone &= conf->set[rw][unit] && conf->limit[rw][unit] == U64_MAX;
	}
	return named && !gone;
}

static bool ioband_wants_limit(const struct ioband_conf *conf)
{
	for (int rw = READ; rw <= WRITE; rw++)
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			if (conf->set[rw][unit] && conf->limit[rw][unit] != U64_MAX)
				return true;
	return false;
}

static int ioband_conf_parse(struct ioband_line *line, char *body)
{
	struct ioband_conf *conf = container_of(line, struct ioband_conf, line);
	int ret = conf->parse(body, conf->file, conf);

	if (ret)
		return ret;
	for (int rw = READ; rw <= WRITE; rw++) {
		if (!ioband_wants_rule(conf, rw))
			continue;
		conf->spare[rw] = ioband_rule_alloc();
		if (!conf->spare[rw])
			return -ENOMEM;
	}
	line->wants = ioband_wants_limit(conf);
	return 0;
}

static void ioband_conf_apply(struct ioband_line *line, struct ioband_grp *grp)
{
	struct ioband_conf *conf = container_of(line, struct ioband_conf, line);

	for (int rw = READ; rw <= WRITE; rw++) {
		u64 limit[IOBAND_NR_UNITS];

		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++)
			limit[unit] = conf->set[rw][unit] ?
				conf->limit[rw][unit] : grp->dir[rw].limit[unit];
		ioband_set_limits(grp, rw, limit, &conf->spare[rw]);
	}
}

/* *@activated is a reference on the disk if this write activated ioband on it. */
static int ioband_apply_line(struct blkcg *blkcg, struct blkg_conf_ctx *ctx,
			     struct ioband_line *line, struct gendisk **activated)
{
	struct gendisk *disk = ctx->bdev->bd_disk;
	int ret;

	/* a bio meets every limit above its group under dev->lock */
	if (line->wants && cgroup_subsys_on_dfl(io_cgrp_subsys) &&
	    blkcg->css.cgroup->level > IOBAND_MAX_LEVEL)
		return -E2BIG;
	/* nothing to take away from a device that never had a rule */
	if (!disk->queue->ioband && !line->wants)
		return 0;
	ret = ioband_activate(disk);
	if (ret < 0)
		return ret;
	if (ret) {
		get_device(disk_to_dev(disk));
		*activated = disk;
	}
	ret = blkg_conf_prep(blkcg, &blkcg_policy_ioband, ctx);
	/* the queue's previous disk has gone just now, and all policies with it */
	if (ret == -EOPNOTSUPP)
		return -ENODEV;
	if (ret)
		return ret;
	line->apply(line, blkg_to_grp(ctx->blkg));
	blkg_conf_unprep(ctx);
	return 0;
}

/**
 * ioband_write_line - what "MAJOR:MINOR BODY" says of a group on a device
 * @blkcg:	the cgroup
 * @buf:	the line; changed
 * @line:	how to read BODY, and what to do then
 *
 * Who has written nonsense has taken no lock and activated nothing.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL, -ENODEV, -ENOMEM, -E2BIG for a cgroup below IOBAND_MAX_LEVEL, or
 *	   what @line->parse has to say.
 */
int ioband_write_line(struct blkcg *blkcg, char *buf, struct ioband_line *line)
{
	struct gendisk *activated = NULL;
	struct blkg_conf_ctx ctx;
	unsigned int memflags;
	char *body;
	int ret;

	ret = ioband_check_dev(buf, &body);
	if (!ret)
		ret = line->parse(line, body);
	if (ret)
		return ret;
	blkg_conf_init(&ctx, buf);
	ret = blkg_conf_open_bdev(&ctx);
	if (ret)
		return ret;

	/* blkg_conf_prep() allocates under a mutex that is taken in a freeze */
	memflags = memalloc_noio_save();
	if (line->wants)
		ret = ioband_own_pages(blkcg);
	if (!ret)
		ret = ioband_apply_line(blkcg, &ctx, line, &activated);
	memalloc_noio_restore(memflags);
	blkg_conf_close_bdev(&ctx);
	if (activated) {
		ioband_activated(activated);
		put_disk(activated);
	}
	return ret;
}

static int ioband_write(struct kernfs_open_file *of, char *buf,
			ioband_parse_fn *parse)
{
	struct ioband_conf conf = {
		.line	= { .parse = ioband_conf_parse, .apply = ioband_conf_apply },
		.parse	= parse,
		.file	= of_cft(of)->private,
	};
	int ret = ioband_write_line(css_to_blkcg(of_css(of)), buf, &conf.line);

	ioband_rule_free(conf.spare[READ]);
	ioband_rule_free(conf.spare[WRITE]);
	return ret;
}

static ssize_t ioband_write_v1(struct kernfs_open_file *of, char *buf,
			       size_t nbytes, loff_t off)
{
	return ioband_write(of, buf, ioband_parse_v1) ?: nbytes;
}

static ssize_t ioband_write_v2(struct kernfs_open_file *of, char *buf,
			       size_t nbytes, loff_t off)
{
	return ioband_write(of, buf, ioband_parse_v2) ?: nbytes;
}

static u64 ioband_prfill_v1(struct seq_file *sf, struct blkg_policy_data *pd,
			    int file)
{
	struct ioband_dir *dir = &pd_to_grp(pd)->dir[file / IOBAND_NR_UNITS];
	u64 limit = READ_ONCE(dir->limit[file % IOBAND_NR_UNITS]);

	return limit == U64_MAX ? 0 : __blkg_prfill_u64(sf, pd, limit);
}

static int ioband_show_v1(struct seq_file *sf, void *v)
{
	blkcg_print_blkgs(sf, css_to_blkcg(seq_css(sf)), ioband_prfill_v1,
			  &blkcg_policy_ioband, seq_cft(sf)->private, false);
	return 0;
}

static void ioband_show_pair(struct seq_file *sf, const char *key, u64 limit)
{
	if (limit == U64_MAX)
		seq_printf(sf, " %s=max", key);
	else
		seq_printf(sf, " %s=%llu", key, limit);
}

static u64 ioband_prfill_v2(struct seq_file *sf, struct blkg_policy_data *pd,
			    int unused)
{
	const char *dname = blkg_dev_name(pd_to_blkg(pd));
	u64 limit[2][IOBAND_NR_UNITS];
	bool any = false;

	for (int rw = READ; rw <= WRITE; rw++) {
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
			limit[rw][unit] =
				READ_ONCE(pd_to_grp(pd)->dir[rw].limit[unit]);
			any |= limit[rw][unit] != U64_MAX;
		}
	}
	if (!dname || !any)
		return 0;
	seq_puts(sf, dname);
	ioband_show_pair(sf, "rbps", limit[READ][IOBAND_BYTES]);
	ioband_show_pair(sf, "wbps", limit[WRITE][IOBAND_BYTES]);
	ioband_show_pair(sf, "riops", limit[READ][IOBAND_IOS]);
	ioband_show_pair(sf, "wiops", limit[WRITE][IOBAND_IOS]);
	seq_putc(sf, '\n');
	return 0;
}

static int ioband_show_v2(struct seq_file *sf, void *v)
{
	blkcg_print_blkgs(sf, css_to_blkcg(seq_css(sf)), ioband_prfill_v2,
			  &blkcg_policy_ioband, 0, false);
	return 0;
}

#define IOBAND_V1_LIMIT(_name, rw, unit) {				\
	.name = "throttle." _name,					\
	.private = IOBAND_FILE(rw, unit),				\
	.seq_show = ioband_show_v1,					\
	.write = ioband_write_v1,					\
}

struct cftype ioband_legacy_files[] = {
	IOBAND_V1_LIMIT("read_bps_device", READ, IOBAND_BYTES),
	IOBAND_V1_LIMIT("write_bps_device", WRITE, IOBAND_BYTES),
	IOBAND_V1_LIMIT("read_iops_device", READ, IOBAND_IOS),
	IOBAND_V1_LIMIT("write_iops_device", WRITE, IOBAND_IOS),
	{ }	/* terminate */
};

struct cftype ioband_files[] = {
	{
		.name = "max",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = ioband_show_v2,
		.write = ioband_write_v2,
	},
	{ }	/* terminate */
};
