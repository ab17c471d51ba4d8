// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of a cgroup for all devices: "default" in place of a device's number.
 *
 * Such a limit applies on each device for which the cgroup has no limit of its own in that
 * direction and unit.  A group gets it when it is created on a device, that is with its first bio
 * or its first dirty page there.
 *
 * blkcg->lock orders changes of these limits against new groups: a group that joins the list of
 * its cgroup under that lock finds the limits, and a group that is in the list already is updated.
 */
#include <linux/blkdev.h>
#include <linux/ctype.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../ioband.h"

atomic_t ioband_nr_defaults = ATOMIC_INIT(0);

/**
 * ioband_is_default - tell whether a line begins with "default", for all devices
 * @buf:	the line
 * @body:	set to what follows "default"
 *
 * Return: true if it does.
 */
bool ioband_is_default(char *buf, char **body)
{
	char *name = skip_spaces(buf);
	size_t len = str_has_prefix(name, "default");

	*body = name + len;
	return len && isspace(**body);
}

/* A cgroup begins or ends to have such limits; they count as slow, whatever they are. */
static void ioband_count_default(struct ioband_blkcg *b, int change)
{
	atomic_add(change, &ioband_nr_defaults);
	atomic_add(change, &b->nr[IOBAND_LIMITED]);
	atomic_add(change, &b->nr[IOBAND_SLOW]);
	ioband_bound_anew();
}

static void ioband_write_defaults(struct ioband_blkcg *b, const struct ioband_limits *limits)
{
	bool had = ioband_has_default(b);

	for (int rw = READ; rw <= WRITE; rw++) {
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
			u64 limit = limits->limit[rw][unit];

			if (limits->set[rw][unit])
				WRITE_ONCE(b->limit[rw][unit], limit == U64_MAX ? 0 : limit);
		}
	}
	ioband_count_default(b, ioband_has_default(b) - had);
}

/* Have the limits of a group's cgroup for all devices apply to the group. */
static void ioband_apply_defaults(struct ioband_grp *grp)
{
	guard(spinlock_irqsave)(&grp->dev->lock);
	for (int rw = READ; rw <= WRITE; rw++)
		ioband_update_limits(&grp->dir[rw]);
}

/**
 * ioband_set_defaults - set limits of a cgroup for all devices
 * @blkcg:	the cgroup
 * @limits:	the limits to set; U64_MAX removes one
 *
 * Either all limits are set, or none is changed.
 *
 * Context: may sleep; takes blkcg->lock.
 * Return: 0, or -ENOMEM.
 */
int ioband_set_defaults(struct blkcg *blkcg, const struct ioband_limits *limits)
{
	int ret = ioband_ready_all(&ioband_nr_defaults);
	struct blkcg_gq *blkg;

	if (ret)
		return ret;
	scoped_guard(spinlock_irq, &blkcg->lock) {
		ioband_write_defaults(ioband_blkcg(blkcg), limits);
		hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node)
			if (blkg_to_grp(blkg))
				ioband_apply_defaults(blkg_to_grp(blkg));
	}
	atomic_dec(&ioband_nr_defaults);
	return 0;
}

/**
 * ioband_drop_defaults - remove the limits for all devices of a cgroup that is being removed
 * @blkcg:	the cgroup
 *
 * Groups that are created on a device from now on have no such limits.
 *
 * Context: takes blkcg->lock.
 */
void ioband_drop_defaults(struct blkcg *blkcg)
{
	struct ioband_blkcg *b = ioband_blkcg(blkcg);

	guard(spinlock_irq)(&blkcg->lock);
	ioband_count_default(b, -ioband_has_default(b));
	memset(b->limit, 0, sizeof(b->limit));
}

/**
 * ioband_default_online - give a new group the limits of its cgroup for all devices
 * @grp:	the group
 *
 * Context: blkcg->lock held.
 */
void ioband_default_online(struct ioband_grp *grp)
{
	if (ioband_has_defaults() &&
	    ioband_has_default(ioband_blkcg(pd_to_blkg(&grp->pd)->blkcg)))
		ioband_apply_defaults(grp);
}

/* Do such limits of a cgroup, or of a cgroup above it, apply to it? */
static bool ioband_wants_default(struct cgroup_subsys_state *css)
{
	for (; css; css = ioband_css_above(css))
		if (ioband_has_default(ioband_blkcg(css_to_blkcg(css))))
			return true;
	return false;
}

/* Create the group of a cgroup on a disk, if it has none, and there is memory.  RCU read side. */
static void ioband_meet(struct cgroup_subsys_state *css, struct gendisk *disk)
{
	struct bio bio;

	bio_init(&bio, disk->part0, NULL, 0, REQ_OP_WRITE);
	bio_associate_blkg_from_css(&bio, css);
	bio_uninit(&bio);
}

/**
 * ioband_default_meet - create the group of a cgroup that is about to use a disk
 * @css:	the cgroup
 * @disk:	the disk
 *
 * Does so if limits for all devices apply to the cgroup.
 *
 * Context: any; takes queue_lock if the cgroup has no group on the disk yet.
 */
void ioband_default_meet(struct cgroup_subsys_state *css, struct gendisk *disk)
{
	guard(rcu)();
	if (ioband_has_defaults() && ioband_wants_default(css) &&
	    !blkg_lookup(css_to_blkcg(css), disk->queue))
		ioband_meet(css, disk);
}

/**
 * ioband_cpd_alloc - allocate what a cgroup has for all devices: weights and limits
 * @gfp:	allocation flags
 *
 * Return: a cgroup without settings, NULL if there is no memory.
 */
struct blkcg_policy_data *ioband_cpd_alloc(gfp_t gfp)
{
	struct ioband_blkcg *blkcg = kzalloc(sizeof(*blkcg), gfp);

	return blkcg ? &blkcg->cpd : NULL;
}

/**
 * ioband_cpd_free - undo ioband_cpd_alloc()
 * @cpd:	a cgroup that is gone
 */
void ioband_cpd_free(struct blkcg_policy_data *cpd)
{
	struct ioband_blkcg *blkcg = container_of(cpd, struct ioband_blkcg, cpd);

	for (int which = 0; which < IOBAND_WEIGHTS; which++)
		atomic_sub(!!blkcg->weight[which], &ioband_nr_weights);
	/* a task that had a file open may have set limits after the cgroup was removed */
	atomic_sub(ioband_has_default(blkcg), &ioband_nr_defaults);
	kfree(blkcg);
}
