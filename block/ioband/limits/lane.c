// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes, for zoned disks: writes to a sequential zone have to reach the disk in the order in
 * which they were submitted, or they fail.
 *
 * As soon as a limit holds such a write, later writes to its zone line up behind it in a lane,
 * whatever their own limits allow and whichever group they belong to, and are charged to their
 * limits one at a time: I11.  Zones share lanes, since nothing can be allocated here.  A lane
 * is in use only while one of its writes is held or is being submitted.
 */
#include <linux/blkdev.h>
#include <linux/hash.h>
#include <linux/slab.h>

#include "../ioband.h"

#define IOBAND_LANES_SHIFT	6
/* Value of lane->first while the first write of a lane is being submitted. */
#define IOBAND_LANE_SERVED	((struct bio *)1)

/**
 * ioband_lanes_init - allocate the lanes of a device, if it is zoned
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

/* The lane of a bio, NULL if the bio need not stay in order. */
static struct ioband_lane *ioband_lane_of(struct ioband_dev *dev, const struct bio *bio)
{
	return dev->lanes && ioband_in_order(bio) ? ioband_lane_at(dev, bio) : NULL;
}

/**
 * ioband_lane_serve - find the lane, if any, in which writes wait until a bio is submitted
 * @dev:	the device of the bio
 * @bio:	the bio, which is about to be submitted
 *
 * Context: the submitter of @bio; nothing else changes the answer meanwhile.
 * Return: the lane, for ioband_lane_next(); NULL if @bio is not the first of a lane.
 */
struct ioband_lane *ioband_lane_serve(struct ioband_dev *dev, const struct bio *bio)
{
	struct ioband_lane *lane;

	if (!dev->lanes)
		return NULL;
	lane = ioband_lane_at(dev, bio);
	if (READ_ONCE(lane->first) != bio)
		return NULL;
	/* once submitted, the bio may be freed, and another bio may have its address */
	WRITE_ONCE(lane->first, IOBAND_LANE_SERVED);
	return lane;
}

/**
 * ioband_lane_wait - line up a bio behind a write that is held or is being submitted
 * @dev:	the device
 * @bio:	a bio that has just arrived
 *
 * Context: dev->lock held.
 * Return: true if @bio waits in a lane, until ioband_lane_next() takes it.
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
 * ioband_lane_begin - make later writes to a zone line up behind a bio that is held
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
	/* if the lane has a first write already, this is the next one in it */
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
 * ioband_lane_next - take the next write in the lane of a write that has been submitted
 * @dev:	the device
 * @lane:	the lane
 *
 * Context: process context.
 * Return: the next bio, to be submitted; NULL if there is none, or if a limit holds it.
 */
struct bio *ioband_lane_next(struct ioband_dev *dev, struct ioband_lane *lane)
{
	struct bio *bio = ioband_lane_pop(dev, lane);

	return bio && !ioband_judge(bio, true) ? bio : NULL;
}
