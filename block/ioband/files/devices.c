// SPDX-License-Identifier: GPL-2.0
/*
 * The file of device settings, in the root cgroup only: io.ioband, blkio.ioband.
 *
 *	MAJOR:MINOR [weights=on|off] [depth=auto|N]
 *
 * weights=off turns weights off on a device; limits still apply there.  depth=N sets the queue
 * depth, that is the number of I/Os in flight while groups compete, which otherwise depth.h finds.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "../ioband.h"

/* one write; settings that are not named do not change */
struct ioband_device_line {
	struct ioband_line	line;
	bool			sets_weights;
	bool			weights_off;
	bool			sets_depth;
	unsigned int		depth;		/* 0: auto */
};

static int ioband_device_pair(struct ioband_device_line *set, char *tok)
{
	char *val = tok;
	u64 depth;
	int ret;

	strsep(&val, "=");
	if (!val)
		return -EINVAL;
	if (!strcmp(tok, "weights")) {
		set->sets_weights = true;
		set->weights_off = !strcmp(val, "off");
		return set->weights_off || !strcmp(val, "on") ? 0 : -EINVAL;
	}
	if (strcmp(tok, "depth"))
		return -EINVAL;
	set->sets_depth = true;
	set->depth = 0;
	if (!strcmp(val, "auto"))
		return 0;
	ret = ioband_parse_u64(val, &depth);
	if (ret)
		return ret;
	set->depth = depth;
	return depth && depth <= IOBAND_DEPTH_MAX ? 0 : -ERANGE;
}

static int ioband_device_parse(struct ioband_line *line, char *body)
{
	struct ioband_device_line *set = container_of(line, struct ioband_device_line, line);
	char *tok;
	int ret;

	body = strim(body);
	if (!*body)
		return -EINVAL;
	while ((tok = strsep(&body, " \t"))) {
		ret = *tok ? ioband_device_pair(set, tok) : 0;
		if (ret)
			return ret;
	}
	line->wants = set->weights_off || set->depth;
	return 0;
}

static void ioband_device_apply(struct ioband_line *line, struct ioband_grp *grp)
{
	struct ioband_device_line *set = container_of(line, struct ioband_device_line, line);
	struct ioband_dev *dev = grp->dev;
	s64 now;

	guard(spinlock_irqsave)(&dev->lock);
	now = ktime_get_ns();
	if (set->sets_weights && set->weights_off != dev->weights_off) {
		WRITE_ONCE(dev->weights_off, set->weights_off);
		ioband_observe_anew(dev, now);
	}
	if (set->sets_depth && set->depth != dev->share.depth.pinned) {
		ioband_lease_end(dev, now);
		ioband_depth_pin(&dev->share.depth, set->depth);
	}
	/* bios that wait may not have to wait any more */
	if (!dev->dead)
		ioband_share_go(dev, NULL, now);
}

static ssize_t ioband_device_write(struct kernfs_open_file *of, char *buf, size_t nbytes,
				   loff_t off)
{
	struct ioband_device_line set = {
		.line = { .parse = ioband_device_parse, .apply = ioband_device_apply },
	};

	return ioband_write_line(css_to_blkcg(of_css(of)), buf, &set.line) ?: nbytes;
}

static u64 ioband_prfill_device(struct seq_file *sf, struct blkg_policy_data *pd, int unused)
{
	const char *dname = blkg_dev_name(pd_to_blkg(pd));
	struct ioband_dev *dev = pd_to_grp(pd)->dev;
	unsigned int depth = READ_ONCE(dev->share.depth.pinned);
	bool off = READ_ONCE(dev->weights_off);

	if (!dname || (!off && !depth))
		return 0;
	seq_printf(sf, "%s weights=%s depth=", dname, off ? "off" : "on");
	if (depth)
		seq_printf(sf, "%u\n", depth);
	else
		seq_puts(sf, "auto\n");
	return 0;
}

/* Show the devices whose settings are not the defaults. */
static int ioband_device_show(struct seq_file *sf, void *v)
{
	blkcg_print_blkgs(sf, css_to_blkcg(seq_css(sf)), ioband_prfill_device,
			  &blkcg_policy_ioband, 0, false);
	return 0;
}

#define IOBAND_DEVICE_FILE {						\
	.name = "ioband",						\
	.flags = CFTYPE_ONLY_ON_ROOT,					\
	.seq_show = ioband_device_show,					\
	.write = ioband_device_write,					\
}

struct cftype ioband_device_files[] = {
	IOBAND_DEVICE_FILE,
	{ }	/* terminate */
};

struct cftype ioband_legacy_device_files[] = {
	IOBAND_DEVICE_FILE,
	{ }	/* terminate */
};
