// SPDX-License-Identifier: GPL-2.0
/*
 * What the share engine asks of the rest of ioband, and what the rest asks of it: groups,
 * the timer, and the way out of what has waited.
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

struct group {
	struct ioband_grp	grp;
	struct blkcg_gq		blkg;
	struct blkcg		blkcg;
};

/* bios on their way out, by the CPU that they came from */
static struct out {
	struct bio_list	bios;
	unsigned int	nr;
	bool		queued;
} outs[LAB_CPUS];

/* no device here has a scheduler */
bool ioband_has_bfq(void)
{
	return false;
}

void ioband_tell_bfq(struct blkcg_gq *blkg, u32 weight)
{
}

void lab_engine_init(void)
{
	dev = calloc(1, sizeof(*dev));
	dev->disk = &lab_disk;
	dev->q = &queue;
	dev->passed = alloc_percpu(struct ioband_passed);
	dev->timed = RB_ROOT_CACHED;
	dev->armed = S64_MAX;
	dev->ready = true;
	ioband_share_init(dev);
	/* there are weights: all that I/O meets the gate for */
	dev->share.nr_own = 1;
}

/* How many I/Os the device says that it takes; 0: it does not. */
void lab_engine_tags(unsigned int nr)
{
	tags.queue_depth = nr;
	queue.tag_set = nr ? &tags : NULL;
}

/* The device is a disk that turns. */
void lab_engine_turns(void)
{
	queue.rot = true;
}

void *lab_engine_group(const char *name, int weight, void *parent)
{
	struct group *up = parent, *new = aligned_alloc(64, sizeof(*new));

	memset(new, 0, sizeof(*new));
	new->blkcg.cpd = ioband_cpd_alloc(GFP_KERNEL);
	new->blkg.blkcg = &new->blkcg;
	new->blkg.parent = up ? &up->blkg : NULL;
	new->blkg.pd = &new->grp.pd;
	new->grp.pd.blkg = &new->blkg;
	new->grp.dev = dev;
	new->grp.lease = alloc_percpu(struct ioband_lease);
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
	ioband_set_own_weight(&to->grp, weight);
}

bool ioband_must_pass(struct bio *bio)
{
	return bio->must_pass;
}

void ioband_want(struct gendisk *disk)
{
}

static bool sooner(struct rb_node *a, const struct rb_node *b)
{
	return (s64)(rb_entry(a, struct ioband_ent, node)->key -
		     rb_entry(b, struct ioband_ent, node)->key) < 0;
}

void ioband_untime(struct ioband_dev *d, struct ioband_ent *ent)
{
	if (ent->state == IOBAND_TIMED)
		rb_erase_cached(&ent->node, &d->timed);
	ent->state = IOBAND_IDLE;
}

void ioband_time(struct ioband_dev *d, struct ioband_ent *ent, s64 when)
{
	ioband_untime(d, ent);
	ent->key = when;
	rb_add_cached(&ent->node, &d->timed, sooner);
	ent->state = IOBAND_TIMED;
}

/* The timer's work: as dispatch.c has it, and like all work it is queued once. */
static bool release_queued;

static void release(void *ctx)
{
	struct rb_node *first;
	struct ioband_ent *ent;

	release_queued = false;
	guard(spinlock_irqsave)(&dev->lock);
	dev->armed = S64_MAX;
	while ((first = rb_first_cached(&dev->timed))) {
		ent = rb_entry(first, struct ioband_ent, node);
		if ((s64)ent->key > lab_now)
			break;
		ioband_untime(dev, ent);
		ioband_share_pump(dev, NULL, lab_now);
	}
	ioband_kick(dev, lab_now);
}

static void timer(void *ctx)
{
	/* set anew since, if not */
	if (release_queued || dev->armed + lab_costs.timer > lab_now)
		return;
	release_queued = true;
	lab_at(lab_now + lab_costs.latency, lab_nr_cpus - 1, release, NULL);
}

void ioband_kick(struct ioband_dev *d, s64 now)
{
	struct rb_node *first = rb_first_cached(&d->timed);
	s64 when;

	if (!first)
		return;
	when = max((s64)rb_entry(first, struct ioband_ent, node)->key, now) + 5 * NSEC_PER_USEC;
	if (when >= d->armed)
		return;
	d->armed = when;
	lab_at(when + lab_costs.timer, -1, timer, NULL);
}

static void send_out(void *ctx)
{
	struct out *out = ctx;
	struct bio_list bios;
	struct bio *bio;

	scoped_guard(spinlock_irqsave, &dev->lock) {
		out->queued = false;
		bios = out->bios;
		bio_list_init(&out->bios);
		ioband_observe_sent(dev, bios.head, out->nr);
		out->nr = 0;
	}
	while ((bio = bio_list_pop(&bios))) {
		if (ioband_has_way(dev))
			bio->issue_time_ns = lab_now;
		lab_spend(lab_costs.submit);
		lab_device_submit(bio);
	}
}

void ioband_send_from(struct ioband_dev *d, struct bio *bio, unsigned int cpu)
{
	struct out *out = &outs[cpu];

	bio_list_add(&out->bios, bio);
	out->nr += !ioband_carry_passed(bio->bi_iocost_cost);
	if (out->queued)
		return;
	out->queued = true;
	lab_spend(lab_costs.wakeup);
	lab_at(lab_now + lab_costs.latency, cpu, send_out, out);
}

/* Returns true if the engine keeps a bio. */
bool lab_engine_submit(struct bio *bio, void *group)
{
	struct group *to = group;

	bio->bi_blkg = &to->blkg;
	if (!lab_gated)
		return false;
	if (ioband_share(bio))
		return true;
	if (bio->must_pass)
		lab_load_delay(bio, ioband_share_debt_ns(&to->grp));
	return false;
}

void lab_engine_done(struct bio *bio)
{
	if (bio->bi_iocost_cost)
		__ioband_share_done(bio);
}

/* What it has learnt, for people. */
void lab_engine_print(void)
{
	const struct ioband_sharer *sh = &dev->share;

	fprintf(stderr, "depth=%u most=%u at_once=%.1f passed=%u inflight=%u stuck=%u outstanding=%u active=%u%s%s",
		sh->depth.depth, sh->depth.most, sh->depth.at_once / 1024., ioband_passed_sum(dev), sh->infl, sh->stuck, sh->outstanding,
		sh->nr_active, dev->solo ? " solo" : "", dev->open ? " open" : dev->leasing ? " leasing" : "");
	for (int i = 0; i < IOBAND_COSTS; i++)
		fprintf(stderr, " %.2f", sh->cost.believed[i] / 256e3);
	fprintf(stderr, "\n");
}
