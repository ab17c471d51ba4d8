// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of a cgroup for all devices: "default" in place of a device's number.
 *
 * They count on each device for which no limit of its own is set, direction by direction and unit
 * by unit.  A group gets them when it comes to a device, which is with its first bio or its first
 * dirty page there; the memory for that is got before, so that nobody escapes for want of it.
 *
 * blkcg->lock orders them against groups that come: a group that joins the list of its cgroup
 * under that lock finds them, and one that was there before is told.
 */
#include <linux/blkdev.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ioband.h"

atomic_t ioband_nr_defaults = ATOMIC_INIT(0);

/**
 * ioband_is_default - is a line for all devices?
 * @buf:	the line
 * @body:	set to what follows "default", if it is
 *
 * Return: true if it is.
 */
bool ioband_is_default(char *buf, char **body)
{
	static const char word[] = "default";
	char *name = skip_spaces(buf);
	size_t len = strcspn(name, " \t\n");

	if (len != sizeof(word) - 1 || memcmp(name, word, len) || !name[len])
		return false;
	*body = name + len + 1;
	return true;
}

/* Rules for groups that may get one each. */
struct ioband_spares {
	struct ioband_rule	**rules;
	unsigned int		nr;
};

static void ioband_spares_free(struct ioband_spares *spares)
{
	for (unsigned int i = 0; i < spares->nr; i++)
		ioband_rule_free(spares->rules[i]);
	kvfree(spares->rules);
	*spares = (struct ioband_spares){ };
}

static int ioband_spares_alloc(struct ioband_spares *spares, unsigned int nr)
{
	ioband_spares_free(spares);
	spares->rules = kvcalloc(nr, sizeof(*spares->rules), GFP_KERNEL);
	if (!spares->rules)
		return -ENOMEM;
	for (; spares->nr < nr; spares->nr++) {
		spares->rules[spares->nr] = ioband_rule_alloc(GFP_KERNEL);
		if (!spares->rules[spares->nr])
			return -ENOMEM;
	}
	return 0;
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
	atomic_add(ioband_has_default(b) - had, &ioband_nr_defaults);
}

static void ioband_tell_grp(struct ioband_grp *grp, struct ioband_rule **spares)
{
	guard(spinlock_irqsave)(&grp->dev->lock);
	for (int rw = READ; rw <= WRITE; rw++)
		ioband_update_limits(&grp->dir[rw], &spares[rw]);
}

/* Returns how many spares it takes, with nothing done if there are fewer. */
static unsigned int ioband_try_defaults(struct blkcg *blkcg, const struct ioband_limits *limits,
					struct ioband_spares *spares)
{
	struct blkcg_gq *blkg;
	unsigned int nr = 0;

	guard(spinlock_irq)(&blkcg->lock);
	hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node)
		nr += 2;
	if (nr > spares->nr)
		return nr;
	ioband_write_defaults(ioband_blkcg(blkcg), limits);
	nr = 0;
	hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node) {
		if (blkg_to_grp(blkg))
			ioband_tell_grp(blkg_to_grp(blkg), &spares->rules[nr]);
		nr += 2;
	}
	return nr;
}

/* Bios are to come by, on all devices. */
static void ioband_default_begin(void)
{
	static DEFINE_MUTEX(once);
	static bool begun;

	guard(mutex)(&once);
	if (!begun)
		static_branch_inc(&ioband_key);
	begun = true;
}

/**
 * ioband_set_defaults - set limits of a cgroup for all devices
 * @blkcg:	the cgroup
 * @limits:	those that are named; U64_MAX for none
 *
 * Either all of it is done, or nothing is.
 *
 * Context: may sleep; takes blkcg->lock.
 * Return: 0, or -ENOMEM.
 */
int ioband_set_defaults(struct blkcg *blkcg, const struct ioband_limits *limits)
{
	struct ioband_spares spares = { };
	unsigned int nr;
	int ret = 0;

	ioband_default_begin();
	for (;;) {
		nr = ioband_try_defaults(blkcg, limits, &spares);
		if (nr <= spares.nr)
			break;
		ret = ioband_spares_alloc(&spares, nr);
		if (ret)
			break;
	}
	ioband_spares_free(&spares);
	return ret;
}

/**
 * ioband_drop_defaults - a cgroup is removed: who comes to a device from now on has no limits
 * @blkcg:	the cgroup
 *
 * Context: takes blkcg->lock.
 */
void ioband_drop_defaults(struct blkcg *blkcg)
{
	struct ioband_blkcg *b = ioband_blkcg(blkcg);

	guard(spinlock_irq)(&blkcg->lock);
	atomic_sub(ioband_has_default(b), &ioband_nr_defaults);
	memset(b->limit, 0, sizeof(b->limit));
}

/**
 * ioband_default_alloc - a group is to be made: memory for limits that it will have
 * @grp:	the group, of which nobody knows yet
 * @blkcg:	its cgroup
 * @gfp:	how
 *
 * Return: false if there is no memory; there may be some to free even so.
 */
bool ioband_default_alloc(struct ioband_grp *grp, struct blkcg *blkcg, gfp_t gfp)
{
	/* what is set from now on, ioband_default_online() may find without memory for it */
	if (!ioband_has_defaults() || !ioband_has_default(ioband_blkcg(blkcg)))
		return true;
	for (int rw = READ; rw <= WRITE; rw++) {
		grp->dir[rw].spare = ioband_rule_alloc(gfp);
		if (!grp->dir[rw].spare)
			return false;
	}
	return true;
}

/**
 * ioband_default_online - a group comes to a device
 * @grp:	the group
 *
 * Context: blkcg->lock held.
 */
void ioband_default_online(struct ioband_grp *grp)
{
	bool has = ioband_has_defaults() &&
		   ioband_has_default(ioband_blkcg(pd_to_blkg(&grp->pd)->blkcg));

	guard(spinlock_irqsave)(&grp->dev->lock);
	for (int rw = READ; rw <= WRITE; rw++) {
		struct ioband_dir *dir = &grp->dir[rw];

		/* they were set while it was made */
		if (has && !dir->spare)
			dir->spare = ioband_rule_alloc(GFP_ATOMIC);
		if (has && dir->spare)
			ioband_update_limits(dir, &dir->spare);
		else if (has)
			pr_warn_ratelimited("ioband: no memory for a limit of a new group\n");
		ioband_rule_free(dir->spare);
		dir->spare = NULL;
	}
}

/* Has a cgroup, or one above it that binds it, such limits? */
static bool ioband_wants_default(struct cgroup_subsys_state *css)
{
	for (; css; css = cgroup_subsys_on_dfl(io_cgrp_subsys) ? css->parent : NULL)
		if (ioband_has_default(ioband_blkcg(css_to_blkcg(css))))
			return true;
	return false;
}

/**
 * ioband_default_meet - a group is about to use a disk, for the first time perhaps
 * @css:	the group
 * @disk:	the disk
 *
 * If it has limits for all devices, a disk that had no rule yet is made ready for them, soon; on
 * one that is, the group comes to be.
 *
 * Context: any; takes queue_lock if the group has not met the disk.
 */
void ioband_default_meet(struct cgroup_subsys_state *css, struct gendisk *disk)
{
	struct bio bio;

	guard(rcu)();
	if (!ioband_has_defaults() || !ioband_wants_default(css))
		return;
	if (!disk->queue->ioband) {
		ioband_want(disk);
		return;
	}
	if (blkg_lookup(css_to_blkcg(css), disk->queue))
		return;
	bio_init(&bio, disk->part0, NULL, 0, REQ_OP_WRITE);
	bio_associate_blkg_from_css(&bio, css);
	bio_uninit(&bio);
}
