// SPDX-License-Identifier: GPL-2.0
/*
 * The functions that the engines of limits and weights call outside of their own files, and
 * functions with which the lab calls the engines: groups, weights, limits, submission of bios.
 */
#include <stdio.h>

#include "ioband.h"
#include "lab.h"

struct cgroup_subsys io_cgrp_subsys;
struct blkcg_policy blkcg_policy_ioband;
struct gendisk lab_disk = { .disk_name = "lab" };
bool lab_gated = true;

static struct blk_mq_tag_set tags = { .queue_depth = 1024, .map = { { 1 }, { 0 }, { 0 } } };
static struct request_queue queue = { .tag_set = &tags };
static struct ioband_dev *dev;

/* there are limits and weights, so all I/O passes through both engines */
int ioband_key = true, ioband_share_key = true, ioband_done_key = true, dirty_owner_key;
struct lab_task lab_task;
struct blkcg blkcg_root;

struct group {
	struct ioband_grp	grp;
	struct blkcg_gq		blkg;
	struct ioband_blkcg	settings;
	struct blkcg		blkcg;
	struct cgroup		cgroup;
};

void lab_engine_init(void)
{
	lab_disk.queue = &queue;
	if (ioband_timer_init())
		abort();
	dev = ioband_dev_alloc(&lab_disk);
	dev->ready = true;
	dev->share.nr_own = 1;
	lab_disk.ioband = dev;
}

/* Set the number of tags of the device; 0: it has none. */
void lab_engine_tags(unsigned int nr)
{
	tags.queue_depth = nr;
	queue.tag_set = nr ? &tags : NULL;
}

/* Set the number of I/Os in flight at most; 0: the engine measures it. */
void lab_engine_pin(unsigned int nr)
{
	guard(spinlock_irq)(&dev->lock);
	ioband_depth_pin(&dev->share.depth, nr);
}

/* Make the device a rotational disk. */
void lab_engine_turns(void)
{
	queue.rot = true;
}

void *lab_engine_group(const char *name, int weight, void *parent)
{
	struct group *up = parent, *new = aligned_alloc(64, sizeof(*new));

	memset(new, 0, sizeof(*new));
	new->cgroup.parent = up ? &up->cgroup : NULL;
	new->blkcg.css.cgroup = &new->cgroup;
	new->blkcg.cpd = &new->settings.cpd;
	new->blkg.blkcg = &new->blkcg;
	new->blkg.parent = up ? &up->blkg : NULL;
	new->blkg.pd = &new->grp.pd;
	new->grp.pd.blkg = &new->blkg;
	new->grp.dev = dev;
	new->grp.lease = alloc_percpu(struct ioband_lease);
	for (int rw = READ; rw <= WRITE; rw++)
		ioband_dir_init(&new->grp, &new->grp.dir[rw]);
	ioband_weight_init(&new->grp);
	if (weight != CGROUP_WEIGHT_DFL)
		lab_engine_weight(new, weight);
	return new;
}

void lab_engine_weight(void *group, int weight)
{
	struct group *to = group;

	to->blkcg.blkg = &to->blkg;
	guard(spinlock_irq)(&dev->lock);
	ioband_set_own_weight(&to->grp, IOBAND_WEIGHT, weight);
}

/* Set a limit, units a second; @key is a key of io.max.  Returns false if there is no such key. */
bool lab_engine_limit(void *group, const char *key, double value)
{
	static const char *const keys[2][IOBAND_NR_UNITS] = { { "rbps", "riops" }, { "wbps", "wiops" } };
	struct group *to = group;

	for (int rw = READ; rw <= WRITE; rw++) {
		for (int unit = 0; unit < IOBAND_NR_UNITS; unit++) {
			u64 limit[IOBAND_NR_UNITS];

			if (strcmp(key, keys[rw][unit]))
				continue;
			memcpy(limit, to->grp.dir[rw].own, sizeof(limit));
			limit[unit] = value;
			ioband_set_limits(&to->grp, rw, limit);
			return true;
		}
	}
	return false;
}

/* Submit a bio that has waited to the device. */
void submit_bio_noacct_nocheck(struct bio *bio, bool split)
{
	lab_spend(lab_costs.submit);
	lab_device_submit(bio);
	lab_interrupts();
}

/* No device of the lab has a scheduler, ... */
struct blkcg_policy __rcu *ioband_bfq;

void ioband_tell_bfq(struct blkcg_gq *blkg, u32 weight)
{
}

/* ... and I/O that must not be held is charged by weights, and has no limits. */
void ioband_debt(struct ioband_dir *dir, u64 units[IOBAND_NR_UNITS], s64 now, bool bounded)
{
	abort();
}

bool ioband_owe_paced(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	abort();
}

bool ioband_is_nobodys(struct bio *bio)
{
	abort();
}

void ioband_ticket_done(struct bio *bio)
{
	abort();
}

struct ioband_dir *ioband_gate_of(struct ioband_dir *dir, struct cgroup_subsys_state *css)
{
	abort();
}

void ioband_ticket_init(struct ioband_ticket *ticket)
{
}

u32 ioband_ticket_units(const struct ioband_ticket *ticket, enum ioband_unit unit)
{
	abort();
}

bool ioband_ticket_paid(struct ioband_ticket *ticket, struct ioband_dir *dir)
{
	abort();
}

bool ioband_credit_use(struct bio *bio, s64 now, bool *owed)
{
	return false;
}

void blkcg_schedule_throttle(struct gendisk *disk, bool use_memdelay)
{
}

atomic_t ioband_ghosts;

void ioband_asked_above(struct gendisk *disk)
{
}

/* the bio that the engine is given now */
static struct bio *given;

void ioband_wait_for(struct gendisk *disk, struct ioband_dir *gate, s64 ns)
{
	lab_load_delay(given, ns);
}

atomic_t ioband_nr_defaults;

/* Give a bio to the engine.  Returns true if the engine holds it. */
bool lab_engine_submit(struct bio *bio, void *group)
{
	struct group *to = group;

	bio->bi_blkg = &to->blkg;
	if (!lab_gated)
		return false;
	lab_task.css = &to->blkcg.css;
	given = bio;
	return __ioband_bio(bio);
}

void lab_engine_done(struct bio *bio)
{
	if (bio->bi_iocost_cost)
		__ioband_share_done(bio);
}

/* Print what the engine has measured. */
void lab_engine_print(void)
{
	const struct ioband_sharer *sh = &dev->share;

	fprintf(stderr, "depth=%u most=%u at_once=%.1f elastic=%.2f ahead=%u", sh->depth.depth,
		sh->depth.most, sh->depth.at_once / 1024., sh->depth.elastic / 1024., sh->ahead);
	fprintf(stderr, " passed=%u inflight=%u stuck=%u outstanding=%u active=%u%s%s",
		ioband_passed_sum(dev), sh->infl, sh->stuck, sh->outstanding, sh->nr_active,
		dev->solo ? " solo" : "",
		dev->open ? " open" : dev->leasing ? " leasing" : "");
	for (int i = 0; i < IOBAND_COSTS; i++)
		fprintf(stderr, " %.2f", sh->cost.believed[i] / 256e3);
	fprintf(stderr, "\n");
}
