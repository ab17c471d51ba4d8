// SPDX-License-Identifier: GPL-2.0
/*
 * The files of limits, with mainline's names and formats, and one extension, "default".  In place
 * of a device it stands for all devices that have no limit of their own.  In place of a limit it
 * stands for the limit of all devices.
 */
#include <linux/ctype.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "../ioband.h"

/* the names of limits in io.max of v2 */
static const char * const ioband_keys[] = {
	[IOBAND_FILE(READ, IOBAND_BYTES)]	= "rbps",
	[IOBAND_FILE(WRITE, IOBAND_BYTES)]	= "wbps",
	[IOBAND_FILE(READ, IOBAND_IOS)]		= "riops",
	[IOBAND_FILE(WRITE, IOBAND_IOS)]	= "wiops",
};

/* one write to a file of limits */
struct ioband_conf {
	struct ioband_line	line;
	int			file;	/* v1: the limit */
	bool			all;	/* for all devices */
	struct ioband_limits	limits;
};

static void ioband_conf_set(struct ioband_conf *conf, int file, u64 val)
{
	/* mainline has 32 bits for I/Os, and programs write the greatest value for no limit */
	if (file % IOBAND_NR_UNITS == IOBAND_IOS && val == U32_MAX)
		val = U64_MAX;
	conf->limits.set[file] = true;
	conf->limits.limit[file] = val;
}

/* Is the value of a limit "default", the cgroup's limit for all devices? */
static bool ioband_is_cgroups(const char *str, const struct ioband_conf *conf)
{
	return !conf->all && !strcmp(str, "default");
}

/* "N", 0 for no limit, or "default" */
static int ioband_parse_v1(char *body, struct ioband_conf *conf)
{
	u64 val = 0;
	int ret;

	body = strim(body);
	if (ioband_is_cgroups(body, conf)) {
		ioband_conf_set(conf, conf->file, 0);
		return 0;
	}
	ret = ioband_parse_u64(body, &val);
	if (!ret)
		ioband_conf_set(conf, conf->file, val ?: U64_MAX);
	return ret;
}

static int ioband_parse_pair(char *tok, struct ioband_conf *conf)
{
	char *key = strsep(&tok, "=");
	u64 val = U64_MAX;
	int file, ret;

	file = match_string(ioband_keys, ARRAY_SIZE(ioband_keys), key);
	if (file < 0 || !tok)
		return -EINVAL;
	if (ioband_is_cgroups(tok, conf)) {
		val = 0;
	} else if (strcmp(tok, "max")) {
		ret = ioband_parse_u64(tok, &val);
		if (ret)
			return ret;
		if (!val)
			return -ERANGE;
	}
	ioband_conf_set(conf, file, val);
	return 0;
}

/* any of "rbps=N wbps=N riops=N wiops=N", N a number, "max" or "default"; or nothing */
static int ioband_parse_v2(char *body, struct ioband_conf *conf)
{
	char *tok;
	int ret;

	while ((tok = strsep(&body, IOBAND_BLANKS))) {
		if (!*tok)
			continue;
		ret = ioband_parse_pair(tok, conf);
		if (ret)
			return ret;
	}
	return 0;
}

static int ioband_conf_parse(struct ioband_line *line, char *body)
{
	struct ioband_conf *conf = container_of(line, struct ioband_conf, line);
	int ret = cgroup_subsys_on_dfl(io_cgrp_subsys) ? ioband_parse_v2(body, conf) :
							  ioband_parse_v1(body, conf);

	for (int file = 0; file < IOBAND_NR_FILES; file++) {
		u64 limit = conf->limits.limit[file];

		if (!conf->limits.set[file])
			continue;
		/* beside limits for all devices, "no limit" on one device is a setting */
		line->wants |= limit != U64_MAX || ioband_has_defaults();
		line->owns |= file >= IOBAND_FILE(WRITE, 0) && limit && limit != U64_MAX;
	}
	return ret;
}

static void ioband_conf_apply(struct ioband_line *line, struct ioband_grp *grp)
{
	struct ioband_conf *conf = container_of(line, struct ioband_conf, line);

	for (int rw = READ; rw <= WRITE; rw++) {
		u64 own[IOBAND_NR_UNITS];

		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
			int file = IOBAND_FILE(rw, unit);

			own[unit] = conf->limits.set[file] ?
				conf->limits.limit[file] : grp->dir[rw].own[unit];
			/* without a limit for all devices, "no limit" means nothing is set */
			if (own[unit] == U64_MAX && !ioband_default_limit(grp, rw, unit))
				own[unit] = 0;
		}
		ioband_set_limits(grp, rw, own);
	}
}

/* The line "default BODY": set limits for all devices. */
static int ioband_write_all(struct blkcg *blkcg, char *body, struct ioband_conf *conf)
{
	int ret;

	conf->all = true;
	ret = ioband_parse_line(blkcg, &conf->line, body);
	return ret || conf->line.check ? ret : ioband_set_defaults(blkcg, &conf->limits);
}

static int ioband_write_limit(struct kernfs_open_file *of, char *line, bool check)
{
	struct blkcg *blkcg = css_to_blkcg(of_css(of));
	struct ioband_conf conf = {
		.line	= { .parse = ioband_conf_parse, .apply = ioband_conf_apply,
			    .check = check },
		.file	= of_cft(of)->private,
	};
	char *name = skip_spaces(line);
	size_t len = str_has_prefix(name, "default");

	if (len && isspace(name[len]))
		return ioband_write_all(blkcg, name + len, &conf);
	return ioband_write_line(blkcg, line, &conf.line);
}

static ssize_t ioband_write_limits(struct kernfs_open_file *of, char *buf, size_t nbytes,
				   loff_t off)
{
	return ioband_write_lines(of, buf, ioband_write_limit) ?: nbytes;
}

/* The limit to show for a device: a number, U64_MAX for no limit, 0 if nothing is set. */
static u64 ioband_own_limit(struct ioband_grp *grp, int file)
{
	int rw = file / IOBAND_NR_UNITS, unit = file % IOBAND_NR_UNITS;
	u64 own = READ_ONCE(grp->dir[rw].own[unit]);

	/* "no limit" is shown only if there is a limit for all devices */
	return own == U64_MAX && !ioband_default_limit(grp, rw, unit) ? 0 : own;
}

static u64 ioband_prfill_v1(struct seq_file *sf, struct blkg_policy_data *pd,
			    int file)
{
	u64 own = ioband_own_limit(pd_to_grp(pd), file);

	return own ? __blkg_prfill_u64(sf, pd, own == U64_MAX ? 0 : own) : 0;
}

static int ioband_show_v1(struct seq_file *sf, void *v)
{
	struct blkcg *blkcg = css_to_blkcg(seq_css(sf));
	int file = seq_cft(sf)->private;
	u64 all = READ_ONCE(ioband_blkcg(blkcg)->limit[file]);

	if (all)
		seq_printf(sf, "default %llu\n", all);
	blkcg_print_blkgs(sf, blkcg, ioband_prfill_v1, &blkcg_policy_ioband, file, false);
	return 0;
}

/*
 * Print limits as "NAME=VALUE".  VALUE is a number or "max"; for a device that has the limit for
 * all devices it is "default".
 */
static void ioband_show_limits(struct seq_file *sf, const char *dname,
			       const u64 limit[IOBAND_NR_FILES], struct ioband_grp *grp)
{
	seq_puts(sf, dname);
	for (int file = 0; file < ARRAY_SIZE(ioband_keys); file++) {
		/* mainline's order: bytes of both directions come first */
		int rw = file % 2, unit = file / 2;
		u64 val = limit[IOBAND_FILE(rw, unit)];

		seq_printf(sf, " %s=", ioband_keys[IOBAND_FILE(rw, unit)]);
		if (val && val != U64_MAX)
			seq_printf(sf, "%llu", val);
		else
			seq_puts(sf, !val && grp && ioband_default_limit(grp, rw, unit) ?
				 "default" : "max");
	}
	seq_putc(sf, '\n');
}

static u64 ioband_prfill_v2(struct seq_file *sf, struct blkg_policy_data *pd,
			    int unused)
{
	const char *dname = blkg_dev_name(pd_to_blkg(pd));
	struct ioband_grp *grp = pd_to_grp(pd);
	u64 own[IOBAND_NR_FILES];
	bool any = false;

	for (int file = 0; file < IOBAND_NR_FILES; file++) {
		own[file] = ioband_own_limit(grp, file);
		any |= own[file];
	}
	if (dname && any)
		ioband_show_limits(sf, dname, own, grp);
	return 0;
}

static int ioband_show_v2(struct seq_file *sf, void *v)
{
	struct blkcg *blkcg = css_to_blkcg(seq_css(sf));
	struct ioband_blkcg *b = ioband_blkcg(blkcg);

	if (ioband_has_default(b))
		ioband_show_limits(sf, "default", b->limit, NULL);
	blkcg_print_blkgs(sf, blkcg, ioband_prfill_v2, &blkcg_policy_ioband, 0, false);
	return 0;
}

#define IOBAND_V1_LIMIT(_name, rw, unit) {				\
	.name = "throttle." _name,					\
	.private = IOBAND_FILE(rw, unit),				\
	.seq_show = ioband_show_v1,					\
	.write = ioband_write_limits,					\
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
		.write = ioband_write_limits,
	},
	{ }	/* terminate */
};
