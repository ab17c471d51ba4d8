// SPDX-License-Identifier: GPL-2.0
/*
 * Loads: tasks that do one I/O after the other, or bursts of I/Os as a flusher submits them.
 */
#include "lab.h"

bool lab_measuring;
static struct bio *free_bios;
static struct block_device bdev;
extern struct gendisk lab_disk;

static struct bio *new_bio(void)
{
	struct bio *bio = free_bios;

	if (bio)
		free_bios = bio->bi_next;
	else
		bio = malloc(sizeof(*bio));
	memset(bio, 0, sizeof(*bio));
	return bio;
}

static void submit_one(void *ctx)
{
	struct lab_load *load = ctx;
	struct bio *bio;

	if (lab_now >= load->stop_ns)
		return;
	bdev.bd_disk = &lab_disk;
	bio = new_bio();
	bio->bi_bdev = &bdev;
	bio->load = load;
	bio->bi_opf = load->opf;
	bio->bi_iter.bi_size = load->bytes;
	bio->bi_iter.bi_sector = lab_random() * 1e9;
	bio->must_pass = load->must_pass;
	/* all else is direct I/O: its task has locked nothing */
	bio->bi_flags = load->must_pass ? 0 : 1 << BIO_UNLOCKED;
	bio->submitted_ns = lab_now;
	bio->cpu = lab_cpu;
	if (lab_engine_submit(bio, load->grp->engine))
		return;
	lab_spend(lab_costs.submit);
	lab_device_submit(bio);
}

static void burst(void *ctx)
{
	struct lab_load *load = ctx;
	s64 period = load->random ? (s64)lab_exponential(load->period_ns) : load->period_ns;

	/* an event for each, as an event must take locks before it spends time: see lab_lock() */
	for (unsigned int i = 0; i < load->depth; i++)
		lab_task_at(lab_now, lab_cpu, submit_one, load);
	if (lab_now < load->stop_ns)
		lab_task_at(lab_now + period, lab_cpu, burst, load);
}

/**
 * lab_load_start - start the tasks of a load, at the time of its start
 * @load:	the load; it must stay in memory
 */
void lab_load_start(struct lab_load *load)
{
	if (load->period_ns) {
		lab_task_at(load->start_ns, max(load->cpu, 0) % lab_nr_cpus, burst, load);
		return;
	}
	for (unsigned int i = 0; i < load->depth; i++)
		lab_task_at(load->start_ns + 100 * i,
			    (load->cpu >= 0 ? load->cpu : (int)i) % lab_nr_cpus, submit_one, load);
}

static void record(struct lab_group *grp, const struct bio *bio)
{
	if (grp->nr == grp->room) {
		grp->room = grp->room ? 2 * grp->room : 4096;
		grp->latency_ns = realloc(grp->latency_ns, grp->room * sizeof(u64));
	}
	grp->latency_ns[grp->nr++] = lab_now - bio->submitted_ns;
	grp->ios++;
	grp->bytes += bio->load->bytes;
	grp->device_ns += bio->device_ns;
}

/* Let the task that submitted an I/O wait for a time before its next I/O. */
void lab_load_delay(struct bio *bio, s64 ns)
{
	bio->delay_ns = ns;
}

/* End an I/O, on the CPU of its task, which then submits its next I/O. */
void lab_load_done(struct bio *bio)
{
	struct lab_load *load = bio->load;
	s64 think = load->random ? (s64)lab_exponential(load->think_ns) : load->think_ns;

	if (lab_measuring && !load->silent)
		record(load->grp, bio);
	if (!load->period_ns)
		lab_task_at(lab_now + max(think, bio->delay_ns - (lab_now - bio->submitted_ns)), bio->cpu, submit_one, load);
	bio->bi_next = free_bios;
	free_bios = bio;
}
