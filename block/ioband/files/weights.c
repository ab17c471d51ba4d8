// SPDX-License-Identifier: GPL-2.0
/*
 * The files of weights: blkio.weight and blkio.weight_device on v1, io.weight on v2.  The same
 * weight is also in files with BFQ's names, since many programs know only these.  v1 also has
 * CFQ's leaf weight: the weight of a group's own I/O beside that of its children.
 */
#include <linux/blkdev.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "../ioband.h"

/* On v1; v2 has CGROUP_WEIGHT_MIN and _MAX. */
#define IOBAND_V1_WEIGHT_MIN	10
#define IOBAND_V1_WEIGHT_MAX	1000

/* flags in cft->private: which weights are in a file, and their format */
#define IOBAND_OF_GROUP		BIT(0)	/* the weight of the cgroup, "N" */
#define IOBAND_OF_DEVICES	BIT(1)	/* "M:m N"; with the above: "default N" */
#define IOBAND_BY_BFQ		BIT(2)	/* the range is BFQ's */
#define IOBAND_OF_LEAF		BIT(3)	/* the leaf weight */

static enum ioband_weight ioband_which(unsigned long kind)
{
	return kind & IOBAND_OF_LEAF ? IOBAND_LEAF_WEIGHT : IOBAND_WEIGHT;
}

/* Parse "N", in the range of the file; the errors are those of the file's earlier owners. */
static int ioband_parse_weight(const char *str, unsigned long kind, u32 *weight)
{
	u64 val, least = IOBAND_V1_WEIGHT_MIN, most = IOBAND_V1_WEIGHT_MAX;
	int bad = -ERANGE, ret = ioband_parse_u64(str, &val);

	if (ret)
		return ret;
	if (kind & IOBAND_BY_BFQ) {
		least = IOBAND_BFQ_WEIGHT_MIN;
		most = IOBAND_BFQ_WEIGHT_MAX;
	} else if (cgroup_subsys_on_dfl(io_cgrp_subsys)) {
		least = CGROUP_WEIGHT_MIN;
		most = CGROUP_WEIGHT_MAX;
		bad = -EINVAL;
	}
	*weight = val;
	return val < least || val > most ? bad : 0;
}

static int ioband_write_default(struct blkcg *blkcg, const char *str, unsigned long kind,
				bool check)
{
	u32 weight;
	int ret = ioband_parse_weight(str, kind, &weight);

	if (ret || check)
		return ret;
	if (weight == ioband_default_weight())
		weight = 0;
	if (weight) {
		ret = ioband_own_pages(blkcg) ?: ioband_ready_all(&ioband_nr_weights);
		if (ret)
			return ret;
	}
	ioband_set_blkcg_weight(blkcg, ioband_which(kind), weight);
	if (weight) {
		atomic_dec(&ioband_nr_weights);
		ioband_share_begin();
	}
	return 0;
}

/* one write of a weight for a device; 0 stands for the weight of the cgroup */
struct ioband_weight_line {
	struct ioband_line	line;
	unsigned long		kind;
	u32			weight;
};

/* Parse "N" or "default"; "0" is "default", too: libvirt and container runtimes write it. */
static int ioband_own_parse(struct ioband_line *line, char *body)
{
	struct ioband_weight_line *own = container_of(line, struct ioband_weight_line, line);

	body = strim(body);
	if (!strcmp(body, "default") || !strcmp(body, "0"))
		return 0;
	line->wants = true;
	line->owns = true;
	return ioband_parse_weight(body, own->kind, &own->weight);
}

static void ioband_own_apply(struct ioband_line *line, struct ioband_grp *grp)
{
	struct ioband_weight_line *own = container_of(line, struct ioband_weight_line, line);

	ioband_set_own_weight(grp, ioband_which(own->kind), own->weight);
}

static int ioband_write_own(struct blkcg *blkcg, char *buf, unsigned long kind, bool check)
{
	struct ioband_weight_line own = {
		.line = { .parse = ioband_own_parse, .apply = ioband_own_apply, .check = check },
		.kind = kind,
	};
	int ret = ioband_write_line(blkcg, buf, &own.line);

	if (!ret && !check && own.weight)
		ioband_share_begin();
	return ret;
}

/* "N" or "default N", "M:m N" or "M:m default" */
static int ioband_write_weight(struct kernfs_open_file *of, char *line, bool check)
{
	struct blkcg *blkcg = css_to_blkcg(of_css(of));
	unsigned long kind = of_cft(of)->private;

	if ((kind & IOBAND_OF_DEVICES) && strchr(line, ':'))
		return ioband_write_own(blkcg, line, kind, check);
	if (!(kind & IOBAND_OF_GROUP))
		return -EINVAL;
	line = strim(line);
	if (kind & IOBAND_OF_DEVICES)
		line += str_has_prefix(line, "default");
	return ioband_write_default(blkcg, skip_spaces(line), kind, check);
}

static ssize_t ioband_write_weights(struct kernfs_open_file *of, char *buf, size_t nbytes,
				    loff_t off)
{
	return ioband_write_lines(of, buf, ioband_write_weight) ?: nbytes;
}

/* Print weights in a format in which they can be written again. */
static u32 ioband_weight_shown(u32 weight, unsigned long kind)
{
	return kind & IOBAND_BY_BFQ ? ioband_bfq_weight(weight) : weight;
}

static u64 ioband_prfill_weight(struct seq_file *sf, struct blkg_policy_data *pd, int kind)
{
	u32 own = READ_ONCE(pd_to_grp(pd)->share.own_weight[ioband_which(kind)]);

	return own ? __blkg_prfill_u64(sf, pd, ioband_weight_shown(own, kind)) : 0;
}

static int ioband_weight_show(struct seq_file *sf, void *v)
{
	struct blkcg *blkcg = css_to_blkcg(seq_css(sf));
	unsigned long kind = seq_cft(sf)->private;
	u32 weight = ioband_blkcg_weight(blkcg, ioband_which(kind));

	if (kind & IOBAND_OF_GROUP)
		seq_printf(sf, "%s%u\n", kind & IOBAND_OF_DEVICES ? "default " : "",
			   ioband_weight_shown(weight, kind));
	if (kind & IOBAND_OF_DEVICES)
		blkcg_print_blkgs(sf, blkcg, ioband_prfill_weight, &blkcg_policy_ioband,
				  kind, false);
	return 0;
}

#define IOBAND_WEIGHT_FILE(_name, kind, _flags) {			\
	.name = _name,							\
	.private = kind,						\
	.flags = _flags,						\
	.seq_show = ioband_weight_show,					\
	.write = ioband_write_weights,					\
}

struct cftype ioband_legacy_weight_files[] = {
	IOBAND_WEIGHT_FILE("weight", IOBAND_OF_GROUP, 0),
	IOBAND_WEIGHT_FILE("weight_device", IOBAND_OF_DEVICES, 0),
	IOBAND_WEIGHT_FILE("leaf_weight", IOBAND_OF_GROUP | IOBAND_OF_LEAF, CFTYPE_NOT_ON_ROOT),
	IOBAND_WEIGHT_FILE("leaf_weight_device", IOBAND_OF_DEVICES | IOBAND_OF_LEAF,
			   CFTYPE_NOT_ON_ROOT),
	IOBAND_WEIGHT_FILE("bfq.weight", IOBAND_OF_GROUP | IOBAND_BY_BFQ, CFTYPE_NOT_ON_ROOT),
	IOBAND_WEIGHT_FILE("bfq.weight_device",
			   IOBAND_OF_GROUP | IOBAND_OF_DEVICES | IOBAND_BY_BFQ, CFTYPE_NOT_ON_ROOT),
	{ }	/* terminate */
};

struct cftype ioband_weight_files[] = {
	IOBAND_WEIGHT_FILE("weight", IOBAND_OF_GROUP | IOBAND_OF_DEVICES, CFTYPE_NOT_ON_ROOT),
	IOBAND_WEIGHT_FILE("bfq.weight", IOBAND_OF_GROUP | IOBAND_OF_DEVICES | IOBAND_BY_BFQ,
			   CFTYPE_NOT_ON_ROOT),
	{ }	/* terminate */
};
