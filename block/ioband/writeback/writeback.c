// SPDX-License-Identifier: GPL-2.0
/*
 * Writeback: a bio of dirty pages is charged to the group that dirtied them.
 *
 * kernel/cgroup/dirty_owner.c records the dirtier of each page.  A bio of pages that several
 * groups dirtied is split where the dirtier changes.  On a device with weights long bios are
 * split, too.
 */
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/dirty_owner.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/pagemap.h>
#include <linux/sizes.h>

#include "../ioband.h"

/*
 * The longest bio of writeback on a device with weights.  One bio of all pages that a group may
 * have dirty would leave the group with nothing else at the share gate: groups would get the
 * device in turns of one bio, and not by their weights.
 */
#define IOBAND_PART_BYTES	SZ_1M

static struct bio_set ioband_owner_bios;

/*
 * Has no task paid for the pages of a bio of writeback?  They became dirty before there were
 * limits, or the kernel dirtied them, as it does with metadata.  Pages that are in no file do not
 * count as such: they hold data that a filesystem has compressed or encrypted, for which the
 * dirtier of the original pages has paid.
 */
bool ioband_is_nobodys(struct bio *bio)
{
	return !dirty_owner_of_write(bio_page(bio)) && folio_mapping(page_folio(bio_page(bio)));
}

/* Charge a bio with so many of its bytes.  Returns true if any limit was charged with a debt. */
static bool ioband_owe_bytes(struct ioband_dir *dir, struct bio *bio, u32 bytes, s64 now)
{
	unsigned int length = bio->bi_iter.bi_size;
	u64 units[] = { bytes, 1 };
	bool owed;

	/* limits charge the length; it is the old one again when the bio is traced */
	bio->bi_iter.bi_size = bytes;
	owed = ioband_is_bound(dir, bio) &&
	       (ioband_is_crowded(dir->lim) || !ioband_pay(dir, bio, now));
	bio->bi_iter.bi_size = length;
	if (owed)
		ioband_debt(dir, units, now, false);
	return owed;
}

/*
 * Charge a bio that ioband_is_paced(), which is dispatched now.  Bytes that have not been paid in
 * advance, and the I/O, are paid from what the group has saved, or become a debt.  Returns true if
 * any limit was charged with a debt.  dev->lock held.
 */
bool ioband_owe_paced(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	u32 bytes = ioband_units(bio, IOBAND_BYTES), unpaid = 0;
	struct ioband_grp *grp = dir->grp;
	bool owed;

	guard(rcu)();
	if (!bytes || ioband_is_nobodys(bio) ||
	    !dirty_owner_use(bio_blkcg_css(bio), grp->dev->disk->bdi, bytes,
			     ioband_limits_since(dir))) {
		unpaid = bytes;
		WRITE_ONCE(grp->owed_at_ns, now);
	}
	/* a moving average; the rest of a split counts as an I/O of no bytes */
	WRITE_ONCE(grp->io_bytes, (7ULL * grp->io_bytes + bytes) / 8);
	owed = !ioband_use_saved(grp, bytes, &unpaid, now) &&
	       ioband_owe_bytes(dir, bio, unpaid, now);
	/* where there are weights the share gate may hold it: it counts until it is written */
	if (bytes && !owed && !ioband_has_weights(grp->dev))
		dirty_owner_passed(bio_page(bio), bytes);
	return owed;
}

/* May pages of a bio have a dirtier recorded?  If not, there is no need to look at each page. */
static bool ioband_has_owners(struct bio *bio)
{
	return ioband_pages_have_owners() && !dirty_owner_is_inodes(bio_page(bio));
}

static unsigned int ioband_most_bytes(struct bio *bio)
{
	struct ioband_grp *grp;

	guard(rcu)();
	grp = bio->bi_blkg ? blkg_to_grp(bio->bi_blkg) : NULL;
	return grp && ioband_is_ready(grp) && ioband_has_weights(grp->dev) ?
	       IOBAND_PART_BYTES : UINT_MAX;
}

/* The number of bytes, at most @most, at the start of a bio that have one dirtier, @owner. */
static unsigned int ioband_owned_bytes(struct bio *bio, unsigned int most, u32 *owner)
{
	unsigned int bytes = 0;
	struct bvec_iter iter;
	struct bio_vec bv;

	*owner = 0;
	if (!ioband_has_owners(bio))
		return min(bio->bi_iter.bi_size, most);
	*owner = dirty_owner_of_write(bio_page(bio));
	bio_for_each_bvec(bv, bio, iter) {
		unsigned int skip = offset_in_page(bv.bv_offset);
		struct page *page = bv.bv_page + PHYS_PFN(bv.bv_offset);
		unsigned long nr = PFN_UP(skip + bv.bv_len), same;

		same = dirty_owner_run(page, nr, *owner);
		bytes += same < nr ? (same ? PFN_PHYS(same) - skip : 0) : bv.bv_len;
		if (same < nr || bytes >= most)
			break;
	}
	return min(bytes, most);
}

/* Associate a bio with a group, unless @css is NULL.  RCU read side. */
static void ioband_give_css(struct bio *bio, struct cgroup_subsys_state *css)
{
	struct blkcg_gq *blkg = bio->bi_blkg;

	if (!css || (blkg && &blkg->blkcg->css == css &&
		     blkg->q == bdev_get_queue(bio->bi_bdev)))
		return;
	bio_associate_blkg_from_css(bio, css);
}

/*
 * Pages without a dirtier are their inode's group's, on v1 the root group's, whoever has them
 * written: a task that a limit binds has not to pay for them.  RCU read side.
 */
static struct cgroup_subsys_state *ioband_css_of_left(struct bio *bio)
{
	/* most often the task submits what it has dirtied itself */
	if (ioband_is_free() && bio_blkcg_css(bio) == task_css(current, io_cgrp_id))
		return NULL;
	return dirty_owner_css_of_left(bio_page(bio));
}

static void ioband_give_owner(struct bio *bio, u32 owner)
{
	guard(rcu)();
	ioband_give_css(bio, owner ? dirty_owner_css(owner) : ioband_css_of_left(bio));
}

/*
 * Submit each part of a bio for its dirtier's group.  The parts are clones, and the bio itself
 * only waits for them: if it were in flight, it would occupy the place in the device that one
 * of its own parts waits for.
 *
 * Returns false if there is no memory: the bio has to be submitted as it is.
 */
static bool ioband_submit_owned(struct bio *bio, unsigned int bytes, u32 owner,
				unsigned int most)
{
	unsigned int align = bdev_logical_block_size(bio->bi_bdev);
	struct bio *rest, *part;

	rest = bio_alloc_clone(bio->bi_bdev, bio, GFP_NOWAIT, &ioband_owner_bios);
	if (!rest)
		return false;
	bio_chain(rest, bio);
	while (bytes && bytes < rest->bi_iter.bi_size && IS_ALIGNED(bytes, align)) {
		part = bio_split(rest, bytes >> SECTOR_SHIFT, GFP_NOWAIT,
				 &ioband_owner_bios);
		if (IS_ERR_OR_NULL(part))
			break;
		bio_chain(part, bio);
		ioband_give_owner(part, owner);
		submit_bio_noacct(part);
		bytes = ioband_owned_bytes(rest, most, &owner);
	}
	ioband_give_owner(rest, owner);
	submit_bio_noacct(rest);
	bio_endio(bio);
	return true;
}

static noinline bool ioband_own_many(struct bio *bio)
{
	unsigned int most = ioband_most_bytes(bio), bytes;
	u32 owner;

	bytes = ioband_owned_bytes(bio, most, &owner);
	if (unlikely(bytes && bytes < bio->bi_iter.bi_size)) {
		/* writes of a zone stay whole and in order: these remain with whom they are */
		if (bdev_is_zoned(bio->bi_bdev))
			return false;
		if (!(bio->bi_opf & REQ_ATOMIC) && ioband_submit_owned(bio, bytes, owner, most))
			return true;
	}
	ioband_give_owner(bio, owner);
	return false;
}

/*
 * Submit a clone of a bio to which other bios are chained.  If the bio itself were in flight, it
 * would occupy its place in the device until the last of these has ended, and they may wait for
 * that place.
 *
 * Returns false if there is no need, or no memory: the bio has to be submitted as it is.
 */
static noinline bool ioband_submit_unchained(struct bio *bio)
{
	struct bio *clone;

	if (!bio_sectors(bio) || bdev_is_zoned(bio->bi_bdev))
		return false;
	clone = bio_alloc_clone(bio->bi_bdev, bio, GFP_NOWAIT, &ioband_owner_bios);
	if (!clone)
		return false;
	bio_chain(clone, bio);
	if (!ioband_own_bio(clone))
		submit_bio_noacct(clone);
	bio_endio(bio);
	return true;
}

/*
 * See ioband_own_bio(): for bios of writeback, those to which other bios are chained, and any that
 * a driver submits while it does writeback.
 */
bool __ioband_own_bio(struct bio *bio)
{
	if (static_branch_unlikely(&ioband_share_key) && bio_flagged(bio, BIO_CHAIN) &&
	    ioband_submit_unchained(bio))
		return true;
	if (!bio_flagged(bio, BIO_WRITEBACK) && !current->in_writeback)
		return false;
	/* a driver writes to a disk below what was written to its device */
	if (!bio_flagged(bio, BIO_WRITEBACK)) {
		if (bio_op(bio) != REQ_OP_WRITE || !bio_has_data(bio))
			return false;
		bio_set_flag(bio, BIO_WRITEBACK);
	}
	if (bio->bi_iter.bi_size > bio_iter_len(bio, bio->bi_iter))
		return ioband_own_many(bio);
	ioband_give_owner(bio, ioband_has_owners(bio) ? dirty_owner_of_write(bio_page(bio)) : 0);
	return false;
}

static int __init ioband_writeback_init(void)
{
	return bioset_init(&ioband_owner_bios, BIO_POOL_SIZE, 0, BIOSET_NEED_BVECS);
}
subsys_initcall(ioband_writeback_init);
