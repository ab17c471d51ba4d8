// SPDX-License-Identifier: GPL-2.0
/*
 * Submission: work items that submit held bios, near the CPUs where the bios came from.  Several
 * CPUs share a work item, so that a task that hogs one CPU does not delay the bios of other
 * tasks.  Reads and writes have work items of their own, because reads need not wait for what
 * makes writes wait.
 */
#include <linux/cpumask.h>
#include <trace/events/ioband.h>

#include "ioband.h"

/* The number of CPUs that share a work item. */
#define IOBAND_OUT_CPUS		8

static struct ioband_out *ioband_out_of(struct ioband_dev *dev, unsigned int cpu, int rw)
{
	return &dev->out[cpu / IOBAND_OUT_CPUS * 2 + rw];
}

static unsigned int ioband_nr_outs(void)
{
	return DIV_ROUND_UP(nr_cpu_ids, IOBAND_OUT_CPUS) * 2;
}

/*
 * Have a bio, which may go now, submitted near the CPU that it came from.  @rw: READ, or WRITE for
 * a bio for which no reads should have to wait.  dev->lock held.
 */
void ioband_send_from(struct ioband_dev *dev, struct bio *bio, unsigned int cpu, int rw)
{
	struct ioband_out *out = ioband_out_of(dev, cpu, rw);

	lockdep_assert_held(&dev->lock);
	out->carried += ioband_is_carried(bio) && !ioband_carry_passed(bio->bi_iocost_cost);
	bio_list_add(&out->bios, bio);
	queue_work_on(cpu_online(cpu) ? cpu : WORK_CPU_UNBOUND, dev->wq,
		      &out->work);
}

/* Have a stamped bio submitted that its limits held; it was @due then, ns.  dev->lock held. */
void ioband_send(struct ioband_dev *dev, struct bio *bio, s64 now, s64 due)
{
	unsigned int cpu = ioband_cpu(bio);

	if (!ioband_is_debt(bio))
		trace_ioband_release(bio, now, now - due);
	if (ioband_is_ticket(bio)) {
		ioband_ticket_done(bio);
		return;
	}
	bio_set_flag(bio, BIO_BPS_THROTTLED);
	ioband_unstamp(bio);
	ioband_send_from(dev, bio, cpu, bio_data_dir(bio));
}

static void ioband_submit_one(struct bio *bio)
{
	/* so that splits and lower devices see for which group this kernel thread works */
	kthread_associate_blkcg(bio_blkcg_css(bio));
	if (!static_branch_unlikely(&ioband_share_key) || !ioband_share(bio))
		submit_bio_noacct_nocheck(bio, false);
	kthread_associate_blkcg(NULL);
}

/* Submit a bio that was held.  @fail: end direct I/O of tasks with an error instead. */
void ioband_submit(struct ioband_dev *dev, struct bio *bio, bool fail)
{
	/*
	 * The device has the bio from here on, so its latency starts here.  But a device that does
	 * one I/O at a time has been idle since its last one: time spent on the way counts there.
	 */
	if (ioband_is_carried(bio) && ioband_has_way(dev) &&
	    READ_ONCE(dev->share.depth.tags) > 1)
		bio->issue_time_ns = ktime_get_ns();
	if (fail && bio_flagged(bio, BIO_UNLOCKED))
		bio_io_error(bio);
	else
		ioband_submit_one(bio);
	cond_resched();
}

/* Submit a bio and those joined to it in one plug, so that they are merged. */
static void ioband_submit_run(struct ioband_dev *dev, struct bio *bio, struct bio_list *bios)
{
	sector_t sector = bio_end_sector(bio);
	struct blk_plug plug;

	if (!ioband_is_joined(bio_list_peek(bios), sector)) {
		ioband_submit(dev, bio, false);
		return;
	}
	blk_start_plug(&plug);
	ioband_submit(dev, bio, false);
	while (ioband_is_joined(bio = bio_list_peek(bios), sector)) {
		sector = bio_end_sector(bio);
		ioband_submit(dev, bio_list_pop(bios), false);
	}
	blk_finish_plug(&plug);
}

static void ioband_out_workfn(struct work_struct *work)
{
	struct ioband_out *out = container_of(work, struct ioband_out, work);
	struct bio_list bios = BIO_EMPTY_LIST;
	struct blk_plug plug;
	struct bio *bio;
	bool plugged;

	scoped_guard(spinlock_irqsave, &out->dev->lock) {
		bio_list_merge_init(&bios, &out->bios);
		ioband_observe_sent(out->dev, bios.head, out->carried);
		out->carried = 0;
	}

	/* without a scheduler, an I/O in a plug would occupy a tag and leave the device idle */
	plugged = bios.head && (!ioband_is_carried(bios.head) ||
				READ_ONCE(out->dev->q->elevator));
	if (plugged)
		blk_start_plug(&plug);
	while ((bio = bio_list_pop(&bios)))
		ioband_submit_run(out->dev, bio, &bios);
	if (plugged)
		blk_finish_plug(&plug);
}

/* Allocate what a device needs to submit held bios.  Returns false if there is no memory. */
bool ioband_outs_init(struct ioband_dev *dev)
{
	dev->out = kvcalloc(ioband_nr_outs(), sizeof(*dev->out), GFP_KERNEL);
	if (!dev->out)
		return false;
	for (unsigned int i = 0; i < ioband_nr_outs(); i++) {
		dev->out[i].dev = dev;
		bio_list_init(&dev->out[i].bios);
		INIT_WORK(&dev->out[i].work, ioband_out_workfn);
	}
	/* high priority: the device is idle until the work runs */
	dev->wq = alloc_workqueue("ioband/%s",
				  WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_UNBOUND, 0,
				  dev->disk->disk_name);
	return dev->wq;
}
