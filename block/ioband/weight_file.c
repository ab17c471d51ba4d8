// SPDX-License-Identifier: GPL-2.0
/*
 * The files of weights: blkio.weight and blkio.weight_device, io.weight.
 */
#include <linux/blkdev.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "ioband.h"

/* On v1; v2 has CGROUP_WEIGHT_MIN and _MAX. */
#define IOBAND_V1_WEIGHT_MIN	10
#define IOBAND_V1_WEIGHT_MAX	1000

/* "N"; 0 is "default" */
static int ioband_parse_weight(const char *str, u32 *weight)
{
	bool v2 = cgroup_subsys_on_dfl(io_cgrp_subsys);
	u64 val;
	int ret;

	ret = ioband_parse_u64(str, &val);
	if (ret)
		return ret;
	/* each as BFQ on v1 and iocost on v2 do */
	if (v2 && (val < CGROUP_WEIGHT_MIN || val > CGROUP_WEIGHT_MAX))
		return -EINVAL;
	if (!v2 && (val < IOBAND_V1_WEIGHT_MIN || val > IOBAND_V1_WEIGHT_MAX))
		return -ERANGE;
	*weight = val;
	return 0;
}

static int ioband_write_default(struct blkcg *blkcg, const char *str)
{
	u32 weight;
	int ret;

	ret = ioband_parse_weight(str, &weight);
	if (ret)
		return ret;
	if (weight == ioband_default_weight())
		weight = 0;
	if (weight) {
		ret = ioband_own_pages(blkcg);
		if (ret)
			return ret;
	}
	ioband_set_blkcg_weight(blkcg, weight);
	if (weight)
		ioband_share_begin();
	return 0;
}

/* one write of a weight for a device; 0 is that of the cgroup */
struct ioband_weight_line {
	struct ioband_line	line;
	u32			weight;
};

/* "N", "default", on v1 also "0" */
static int ioband_own_parse(struct ioband_line *line, char *body)
{
	struct ioband_weight_line *own =
		container_of(line, struct ioband_weight_line, line);
	int ret;

	body = strim(body);
	if (!strcmp(body, "default") ||
	    (!cgroup_subsys_on_dfl(io_cgrp_subsys) && !strcmp(body, "0")))
		return 0;
	ret = ioband_parse_weight(body, &own->weight);
	if (ret)
		return ret;
	line->wants = true;
	return 0;
}

static void ioband_own_apply(struct ioband_line *line, struct ioband_grp *grp)
{
	struct ioband_weight_line *own =
		container_of(line, struct ioband_weight_line, line);

	ioband_set_own_weight(grp, own->weight);
}

static int ioband_write_own(struct blkcg *blkcg, char *buf)
{
	struct ioband_weight_line own = {
		.line = { .parse = ioband_own_parse, .apply = ioband_own_apply },
	};
	int ret = ioband_write_line(blkcg, buf, &own.line);

	if (!ret && own.weight)
		ioband_share_begin();
	return ret;
}

/*
 * "N", "default N", "M:m N" or "M:m default"; private is true for
 * blkio.weight_device.
 */
static ssize_t ioband_weight_write(struct kernfs_open_file *of, char *buf,
				   size_t nbytes, loff_t off)
{
	struct blkcg *blkcg = css_to_blkcg(of_css(of));
	bool v2 = cgroup_subsys_on_dfl(io_cgrp_subsys);
	size_t len;
	int ret;

	if (strchr(buf, ':') && (v2 || of_cft(of)->private))
		return ioband_write_own(blkcg, buf) ?: nbytes;
	if (!v2 && of_cft(of)->private)
		return -EINVAL;
	buf = strim(buf);
	len = v2 ? str_has_prefix(buf, "default") : 0;
	ret = ioband_write_default(blkcg, skip_spaces(buf + len));
	return ret ?: nbytes;
}

static u64 ioband_prfill_weight(struct seq_file *sf, struct blkg_policy_data *pd,
				int unused)
{
	u32 own = READ_ONCE(pd_to_grp(pd)->share.own_weight);

	return own ? __blkg_prfill_u64(sf, pd, own) : 0;
}

static int ioband_weight_show(struct seq_file *sf, void *v)
{
	struct blkcg *blkcg = css_to_blkcg(seq_css(sf));
	bool v2 = cgroup_subsys_on_dfl(io_cgrp_subsys);

	if (!v2 && !seq_cft(sf)->private) {
		seq_printf(sf, "%u\n", ioband_blkcg_weight(blkcg));
		return 0;
	}
	if (v2)
		seq_printf(sf, "default %u\n", ioband_blkcg_weight(blkcg));
	blkcg_print_blkgs(sf, blkcg, ioband_prfill_weight, &blkcg_policy_ioband,
			  0, false);
	return 0;
}

struct cftype ioband_legacy_weight_files[] = {
	{
		.name = "weight",
		.seq_show = ioband_weight_show,
		.write = ioband_weight_write,
	},
	{
		.name = "weight_device",
		.private = true,
		.seq_show = ioband_weight_show,
		.write = ioband_weight_write,
	},
	{ }	/* terminate */
};

struct cftype ioband_weight_files[] = {
	{
		.name = "weight",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = ioband_weight_show,
		.write = ioband_weight_write,
	},
	{ }	/* terminate */
};
