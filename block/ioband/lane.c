// SPDX-License-Identifier: GPL-2.0
/*
 * Zoned disks: writes to a sequential zone reach the disk in the order in which they
 * were submitted, or fail.
 *
 * As soon as a limit holds one, those that follow it into its zone line up behind it,
 * whatever their own limits say and whoever's they are, and meet their limits one at a
 * time: I11.  Zones share lanes, since nothing can be allocated here; a lane is in use
 * only while one of its writes is held or on its way out.
 */
#include <linux/blkdev.h>
#include <linux/hash.h>
#include <linux/slab.h>

#include "ioband.h"

#define IOBAND_LANES_SHIFT	6
/* The first of a lane is being submitted. */
#define IOBAND_LANE_SERVED	((struct bio *)1)

/**
 * ioband_lanes_init - get a device ready to keep writes in order
 * @dev:	the device
 *
 * Context: may sleep.
 * Return: 0, or -ENOMEM.
 */
int ioband_lanes_init(struct ioband_dev *dev)
{
	if (!blk_queue_is_zoned(dev->q))
		return 0;
	dev->lanes = kcalloc(1 << IOBAND_LANES_SHIFT, sizeof(*dev->lanes), GFP_KERNEL);
	return dev->lanes ? 0 : -ENOMEM;
}

static struct ioband_lane *ioband_lane_at(struct ioband_dev *dev, const struct bio *bio)
{
	return &dev->lanes[hash_32(bio_zone_no((struct bio *)bio), IOBAND_LANES_SHIFT)];
}

/* Where a write lines up, NULL if it may overtake others. */
static struct ioband_lane *ioband_lane_of(struct ioband_dev *dev, const struct bio *bio)
{
	return dev->lanes && ioband_in_order(bio) ? ioband_lane_at(dev, bio) : NULL;
}

/**
 * ioband_lane_serve - a bio is about to be submitted: do others wait for it in a lane?
 * @dev:	its device
 * @bio:	the bio
 *
 * Context: the one who submits it; only @bio's own way through ioband changes the
 *	    answer.
 * Return: the lane, for ioband_lane_next(); NULL if there is none.
 */
struct ioband_lane *ioband_lane_serve(struct ioband_dev *dev, const struct bio *bio)
{
	struct ioband_lane *lane;

	if (!dev->lanes)
		return NULL;
	lane = ioband_lane_at(dev, bio);
	if (READ_ONCE(lane->first) != bio)
		return NULL;
	/* it may be freed, and another bio be where it was */
	WRITE_ONCE(lane->first, IOBAND_LANE_SERVED);
	return lane;
}

/**
 * ioband_lane_wait - line up behind a write that is held or on its way out
 * @dev:	the device
 * @bio:	a bio that has just come
 *
 * Context: dev->lock held.
 * Return: true if @bio is kept: ioband_lane_next() brings it back.
 */
bool ioband_lane_wait(struct ioband_dev *dev, struct bio *bio)
{
	struct ioband_lane *lane;

	lockdep_assert_held(&dev->lock);
	if (!dev->lanes_busy || ioband_must_follow(bio))
		return false;
	lane = ioband_lane_of(dev, bio);
	if (!lane || !lane->first)
		return false;
	bio->bi_opf &= ~REQ_NOWAIT;
	bio_list_add(&lane->bios, bio);
	return true;
}

/**
 * ioband_lane_begin - a bio is held: others line up behind it
 * @dev:	the device
 * @bio:	the bio
 *
 * Context: dev->lock held.
 */
void ioband_lane_begin(struct ioband_dev *dev, struct bio *bio)
{
	struct ioband_lane *lane = ioband_lane_of(dev, bio);

	lockdep_assert_held(&dev->lock);
	if (!lane)
		return;
	/* else it is the next in its lane */
	if (!lane->first)
		WRITE_ONCE(dev->lanes_busy, dev->lanes_busy + 1);
	WRITE_ONCE(lane->first, bio);
}

static struct bio *ioband_lane_pop(struct ioband_dev *dev, struct ioband_lane *lane)
{
	struct bio *bio;

	guard(spinlock_irqsave)(&dev->lock);
	bio = bio_list_pop(&lane->bios);
	if (!bio) {
		WRITE_ONCE(lane->first, NULL);
		WRITE_ONCE(dev->lanes_busy, dev->lanes_busy - 1);
	}
	return bio;
}

/**
 * ioband_lane_next - a write has been submitted: who follows it?
 * @dev:	the device
 * @lane:	its lane
 *
 * Context: process context.
 * Return: the next one, to be submitted, or NULL if there is none or a limit holds it.
 */
struct bio *ioband_lane_next(struct ioband_dev *dev, struct ioband_lane *lane)
{
	struct bio *bio = ioband_lane_pop(dev, lane);

	return bio && !ioband_judge(bio, true) ? bio : NULL;
}
