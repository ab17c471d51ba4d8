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
#include "../ioband.h"

atomic_t ioband_nr_defaults = ATOMIC_INIT(0);

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

	for (int file = 0; file < IOBAND_NR_FILES; file++)
		if (limits->set[file])
			WRITE_ONCE(b->limit[file],
				   limits->limit[file] == U64_MAX ? 0 : limits->limit[file]);
	ioband_count_default(b, ioband_has_default(b) - had);
}

/* Have the limits of a group's cgroup for all devices apply to the group.  blkcg->lock held. */
void ioband_apply_defaults(struct ioband_grp *grp)
{
	guard(spinlock_irqsave)(&grp->dev->lock);
	for (int rw = READ; rw <= WRITE; rw++)
		ioband_update_limits(&grp->dir[rw]);
}

/*
 * Set limits of a cgroup for all devices, all or none; U64_MAX removes one.  May sleep.  Returns 0
 * or -ENOMEM.
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

/*
 * A cgroup is being removed: so are its limits for all devices, for groups that
 * are created later.
 */
void ioband_drop_defaults(struct blkcg *blkcg)
{
	struct ioband_blkcg *b = ioband_blkcg(blkcg);

	guard(spinlock_irq)(&blkcg->lock);
	ioband_count_default(b, -ioband_has_default(b));
	memset(b->limit, 0, sizeof(b->limit));
}

/*
 * Create the group of a cgroup that is about to use a disk, if it has none, and there is memory:
 * limits for all devices may apply to it.  RCU read side.
 */
void ioband_default_meet(struct cgroup_subsys_state *css, struct gendisk *disk)
{
	struct bio bio;

	if (blkg_lookup(css_to_blkcg(css), disk->queue))
		return;
	bio_init(&bio, disk->part0, NULL, 0, REQ_OP_WRITE);
	bio_associate_blkg_from_css(&bio, css);
	bio_uninit(&bio);
}
