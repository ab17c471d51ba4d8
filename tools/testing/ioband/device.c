// SPDX-License-Identifier: GPL-2.0
/*
 * Model devices.  A device accepts all bios, in the order in which they are submitted; a
 * scenario says how long I/Os take, and can change that while it runs.
 *
 *	servers	"disks" times "servers" channels, each of which does one I/O at a time, in the
 *		order of submission, or with "seek_us" the nearest of the first "ncq" first
 *	link	a link that transfers one I/O after the other; half of "rtt_us" passes before
 *		the transfer and half after it
 *	cache	a write ends "write_us" after one of "cache" slots is free, and is programmed then;
 *		a read waits for the channel that its data is on.  After each "gc_writes" writes
 *		one channel is occupied for "gc_us": garbage is collected
 *	token	"burst_iops" while there are credits, "base_iops" after that
 */
#include <math.h>

#include "lab.h"

enum kind { SERVERS, LINK, CACHE, TOKEN };
static const char *const kinds[] = { "servers", "link", "cache", "token" };

static enum kind kind;
static struct {
	double	disks, servers, ncq, seek_us;
	double	read_us, write_us, discard_us, ns_per_byte;
	double	jitter;			/* times vary by up to this part of themselves */
	double	tail_part, tail_times;	/* this part of I/Os takes so many times as long */
	double	rtt_us, link_ns_per_byte, link_us;
	double	cache, program_us, gc_writes, gc_us;
	double	burst_iops, base_iops, credits;
	double	irq_cpus;		/* I/Os of so many CPUs complete on the first of these */
	double	slow;			/* all I/Os take so many times as long */
	double	stall;			/* no I/O ends */
	double	hang;			/* no I/O of loads with "hangs" ends */
} dev = { .disks = 1, .servers = 1, .irq_cpus = 1, .slow = 1, .tail_times = 1 };

static const struct {
	const char *key;
	double *value;
} keys[] = {
#define KEY(name) { #name, &dev.name }
	KEY(disks), KEY(servers), KEY(ncq), KEY(seek_us), KEY(read_us), KEY(write_us),
	KEY(discard_us), KEY(ns_per_byte), KEY(jitter), KEY(tail_part), KEY(tail_times),
	KEY(rtt_us), KEY(link_ns_per_byte), KEY(link_us), KEY(cache), KEY(program_us),
	KEY(gc_writes), KEY(gc_us), KEY(irq_cpus),
	KEY(burst_iops), KEY(base_iops), KEY(credits), KEY(slow), KEY(stall), KEY(hang),
};

#define MAX_DISKS	1024
static struct disk {
	struct bio_list	queue;
	unsigned int	busy;
	double		head;		/* position of the head: 0 to 1 */
	s64		free_at;	/* cache: when the channel is free, ns */
} disks[MAX_DISKS];

static struct bio_list stuck, uncached;
static unsigned int cached, written;
static s64 link_free, token_at;
static double credit;

static void finish(void *ctx)
{
	struct bio *bio = ctx;

	lab_engine_done(bio);
	lab_spend(lab_costs.complete);
	lab_load_done(bio);
}

static bool is_stuck(const struct bio *bio)
{
	return dev.stall || (dev.hang && bio->load->hangs);
}

/* End an I/O in the device: its CPU, or the one that has its interrupts, gets an interrupt. */
static void completed(void *ctx)
{
	struct bio *bio = ctx;

	if (is_stuck(bio))
		bio_list_add(&stuck, bio);
	else
		lab_at(lab_now, bio->cpu - bio->cpu % (int)dev.irq_cpus, finish, bio);
}

static void release_stuck(void)
{
	struct bio_list list = stuck;
	struct bio *bio;

	bio_list_init(&stuck);
	while ((bio = bio_list_pop(&list)))
		completed(bio);
}

static double service_ns(const struct bio *bio)
{
	double us = bio_data_dir(bio) == WRITE ? dev.write_us : dev.read_us;
	double ns = us * 1e3 + dev.ns_per_byte * bio->bi_iter.bi_size;

	if (bio_op(bio) == REQ_OP_DISCARD)
		ns = dev.discard_us * 1e3;
	if (dev.jitter)
		ns *= 1 - dev.jitter + 2 * dev.jitter * lab_random();
	if (dev.tail_part && lab_random() < dev.tail_part)
		ns *= dev.tail_times;
	return ns * dev.slow;
}

static void disk_start(struct disk *disk);

static void disk_done(void *ctx)
{
	struct bio *bio = ctx;
	struct disk *disk = &disks[bio->disk];

	disk->busy--;
	completed(bio);
	disk_start(disk);
}

/* Take the nearest of the first "ncq" I/Os out of the queue. */
static struct bio *nearest(struct disk *disk, double *distance)
{
	struct bio_list rest = { };
	struct bio *bio, *best = NULL;
	int i = 0;

	*distance = 2;
	for (bio = disk->queue.head; bio && i < max(dev.ncq, 1.0); bio = bio->bi_next, i++) {
		double d = fabs(bio->bi_iter.bi_sector / 1e9 - disk->head);

		if (d < *distance) {
			*distance = d;
			best = bio;
		}
	}
	while ((bio = bio_list_pop(&disk->queue)))
		if (bio != best)
			bio_list_add(&rest, bio);
	disk->queue = rest;
	disk->head = best->bi_iter.bi_sector / 1e9;
	return best;
}

static void disk_start(struct disk *disk)
{
	double distance;
	struct bio *bio;
	double ns;

	while (disk->busy < dev.servers && !bio_list_empty(&disk->queue)) {
		disk->busy++;
		if (dev.seek_us) {
			bio = nearest(disk, &distance);
			/* half a millisecond to begin to move, and half a turn on average */
			ns = (0.5e6 + dev.seek_us * 1e3 * sqrt(distance) + 8.3e6 * lab_random()) *
			     dev.slow + dev.ns_per_byte * bio->bi_iter.bi_size;
		} else {
			bio = bio_list_pop(&disk->queue);
			ns = service_ns(bio);
		}
		bio->device_ns = (s64)ns;
		lab_at(lab_now + bio->device_ns, -1, disk_done, bio);
	}
}

static void servers_submit(struct bio *bio)
{
	unsigned int nr = dev.disks > 1 ? (unsigned int)(lab_random() * dev.disks) : 0;

	/* the number of the disk that has the I/O */
	bio->disk = nr;
	bio_list_add(&disks[nr].queue, bio);
	disk_start(&disks[nr]);
}

static void link_submit(struct bio *bio)
{
	double way = dev.rtt_us * 1e3 / 2 * dev.slow;
	s64 begin = max(lab_now + (s64)way, link_free);

	bio->device_ns = (s64)((dev.link_us * 1e3 + dev.link_ns_per_byte * bio->bi_iter.bi_size) *
			       dev.slow);
	link_free = begin + bio->device_ns;
	if (dev.jitter)
		way *= 1 - dev.jitter + 2 * dev.jitter * lab_random();
	lab_at(link_free + (s64)way, -1, completed, bio);
}

/* Let an I/O occupy a channel for a time, from when the channel is free.  Returns the end, ns. */
static s64 channel(struct bio *bio, double us)
{
	struct disk *disk = &disks[(unsigned int)(lab_random() * dev.servers)];

	bio->device_ns += (s64)(us * 1e3 * dev.slow);
	disk->free_at = max(disk->free_at, lab_now) + (s64)(us * 1e3 * dev.slow);
	return disk->free_at;
}

static void programmed(void *ctx);

static void cache_writes(void)
{
	struct bio *bio;

	while (cached < dev.cache && (bio = bio_list_pop(&uncached))) {
		cached++;
		lab_at(lab_now + (s64)(dev.write_us * 1e3), -1, completed, bio);
		lab_at(channel(bio, dev.program_us), -1, programmed, NULL);
		if (dev.gc_writes && ++written >= dev.gc_writes) {
			written = 0;
			channel(bio, dev.gc_us);
		}
	}
}

static void programmed(void *ctx)
{
	cached--;
	cache_writes();
}

static void cache_submit(struct bio *bio)
{
	if (bio_data_dir(bio) == WRITE) {
		bio_list_add(&uncached, bio);
		cache_writes();
		return;
	}
	lab_at(channel(bio, dev.read_us), -1, completed, bio);
}

static void token_submit(struct bio *bio)
{
	s64 begin = max(lab_now, link_free);
	double iops;

	credit = min(dev.credits, credit + (begin - token_at) / 1e9 * dev.base_iops);
	token_at = begin;
	iops = credit >= 1 ? dev.burst_iops : dev.base_iops;
	credit = max(credit - 1, 0.0);
	bio->device_ns = (s64)(1e9 / iops);
	link_free = begin + bio->device_ns;
	lab_at(begin + (s64)service_ns(bio), -1, completed, bio);
}

/**
 * lab_device_submit - give an I/O to the device
 * @bio:	the I/O
 */
void lab_device_submit(struct bio *bio)
{
	static void (*const submit[])(struct bio *) = {
		[SERVERS] = servers_submit, [LINK] = link_submit, [CACHE] = cache_submit,
		[TOKEN] = token_submit,
	};

	submit[kind](bio);
}

bool lab_device_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i], name)) {
			kind = i;
			return true;
		}
	return false;
}

/**
 * lab_device_set - change a property of the device
 * @key:	one of keys[]
 * @value:	new value
 *
 * Return: false if there is no such key.
 */
bool lab_device_set(const char *key, double value)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].key, key)) {
			*keys[i].value = value;
			if (!strcmp(key, "credits"))
				credit = value;
			release_stuck();
			return true;
		}
	return false;
}
