// SPDX-License-Identifier: GPL-2.0
/*
 * Buffered writes on v1: a bio of dirty pages is the group's that dirtied them.
 *
 * The pages know, see kernel/cgroup/dirty_owner.c.  A bio of pages that several groups
 * dirtied is split where the owner changes; so is a long one where there are weights,
 * on v2 too.
 */
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/dirty_owner.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/major.h>
#include <linux/pagemap.h>
#include <linux/sizes.h>

#include "ioband.h"

/* A group that has reached a disk from above is slowed by that disk for so long after. */
#define IOBAND_BELOW_NS		(10LL * NSEC_PER_SEC)

/*
 * Where there are weights, a bio is no longer than this.  One of all that a group may have
 * dirty would be all that it has at the gate: groups would take turns.
 */
#define IOBAND_PART_BYTES	SZ_1M

static struct bio_set ioband_owner_bios;

/* A group on the disk that a backing device is, NULL if it is none or has no group. */
static struct ioband_grp *ioband_bdi_grp(struct cgroup_subsys_state *css,
					 struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);
	struct blkcg_gq *blkg;
	struct ioband_grp *grp;

	/* only disks own any; on the default hierarchy inodes have owners */
	if (!owner || cgroup_subsys_on_dfl(io_cgrp_subsys))
		return NULL;
	blkg = blkg_lookup(css_to_blkcg(css), dev_to_disk(owner)->queue);
	grp = blkg ? blkg_to_grp(blkg) : NULL;
	return grp && ioband_is_ready(grp) ? grp : NULL;
}

/* Its writes may become writes of others: btrfs has no disk, some disks have several. */
static bool ioband_is_above(struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);

	return !owner || dev_to_disk(owner)->fops->submit_bio ||
	       dev_to_disk(owner)->major == LOOP_MAJOR;
}

/* Bytes a second that a group can write, 0 if nothing says so. */
static u64 ioband_write_bps(struct ioband_grp *grp)
{
	u64 bps = READ_ONCE(grp->dir[WRITE].limit[IOBAND_BYTES]);
	u64 ios = READ_ONCE(grp->dir[WRITE].limit[IOBAND_IOS]);

	/* twice, or one I/O a second would never become longer than it is */
	if (ios != U64_MAX && ios < U32_MAX)
		bps = min(bps, max(ios, 2) * READ_ONCE(grp->io_bytes));
	return bps == U64_MAX ? 0 : bps;
}

static bool ioband_is_limited(struct ioband_grp *grp)
{
	return rcu_access_pointer(grp->dir[WRITE].rule);
}

/* RCU read side. */
static bool ioband_owes_writes(struct ioband_grp *grp)
{
	return ioband_rule_debt(rcu_dereference(grp->dir[WRITE].rule), ktime_get_ns());
}

/*
 * A device can be above several disks, and nobody knows which of them a file is on.  A disk
 * counts if dirty pages of the group have reached it in the last IOBAND_BELOW_NS.
 */
static void ioband_rate_below(struct cgroup_subsys_state *css, struct ioband_grp *own,
			      struct dirty_rate *rate)
{
	s64 owed_at_ns, now = ktime_get_ns();
	struct blkcg_gq *blkg;
	struct ioband_grp *grp;
	u64 bps;

	hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
		grp = blkg_to_grp(blkg);
		if (!grp || grp == own || !ioband_is_ready(grp) || !ioband_is_limited(grp))
			continue;
		rate->probe = true;
		bps = ioband_write_bps(grp);
		if (bps)
			rate->bps = min(rate->bps ?: U64_MAX, bps);
		owed_at_ns = READ_ONCE(grp->owed_at_ns);
		if (!owed_at_ns || now - owed_at_ns > IOBAND_BELOW_NS)
			continue;
		rate->limited = true;
		rate->owed_ns = max_t(s64, rate->owed_ns, READ_ONCE(grp->owed_until_ns) - now);
	}
}

/* See struct dirty_owner_ops. */
static struct dirty_rate ioband_dirty_rate(struct cgroup_subsys_state *css,
					   struct backing_dev_info *bdi)
{
	struct ioband_grp *grp = ioband_bdi_grp(css, bdi);
	struct dirty_rate rate = { };

	if (cgroup_subsys_on_dfl(io_cgrp_subsys))
		return rate;
	if (grp && ioband_is_limited(grp)) {
		rate.limited = true;
		rate.bps = ioband_write_bps(grp);
		rate.owes = ioband_owes_writes(grp);
		rate.since = READ_ONCE(grp->limits_nr);
	}
	/* weights may be the group's, which has not met the disk yet */
	rate.measured = grp ? ioband_has_weights(grp->dev) : atomic_read(&ioband_nr_weights);
	rate.limited |= rate.measured;
	if (ioband_is_above(bdi))
		ioband_rate_below(css, grp, &rate);
	return rate;
}

/* See struct dirty_owner_ops. */
static u64 ioband_write_debt_ns(struct cgroup_subsys_state *css,
				struct backing_dev_info *bdi)
{
	struct ioband_grp *grp;

	guard(rcu)();
	grp = ioband_bdi_grp(css, bdi);
	return grp ? ioband_grp_debt_ns(grp) : 0;
}

/* See struct dirty_owner_ops. */
static bool ioband_settle_later(struct backing_dev_info *bdi)
{
	struct device *owner = READ_ONCE(bdi->owner);

	/* once for a disk: a task that comes again is in a long call */
	if (!owner || (current->flags & (PF_KTHREAD | PF_USER_WORKER)) ||
	    current->throttle_disk == dev_to_disk(owner))
		return false;
	/* it comes with the first I/O; before, nobody would have the task wait */
	scoped_guard(rcu)
		if (!blkg_lookup(css_to_blkcg(task_css(current, io_cgrp_id)),
				 dev_to_disk(owner)->queue))
			return false;
	blkcg_schedule_throttle(dev_to_disk(owner), false);
	return true;
}

/**
 * ioband_owe_paced - a bio that ioband_is_paced() goes now
 * @dir:	its group, direction WRITE
 * @bio:	the bio
 * @now:	ns
 *
 * Its bytes have been paid, or are owed, and so is the I/O.
 *
 * Context: dev->lock held.
 * Return: true if anything is owed.
 */
bool ioband_owe_paced(struct ioband_dir *dir, struct bio *bio, s64 now)
{
	u32 bytes = ioband_units(bio, IOBAND_BYTES);
	struct ioband_grp *grp = dir->grp;
	bool paid, owed;

	guard(rcu)();
	/* metadata that is written back has never been dirtied by anybody */
	paid = bytes && dirty_owner_of_write(bio_page(bio)) &&
	       dirty_owner_use(bio_blkcg_css(bio), grp->dev->disk->bdi, bytes,
			       grp->limits_nr);
	/* the rest of a split is an I/O of no bytes */
	WRITE_ONCE(grp->io_bytes, (7ULL * grp->io_bytes + bytes) / 8);
	/* its bytes have been counted: for a moment, as it is traced as what it is */
	if (paid)
		bio_set_flag(bio, BIO_BPS_THROTTLED);
	owed = ioband_is_bound(dir, bio);
	if (owed)
		ioband_owe(dir, bio, now, dir->lim);
	if (paid) {
		bio_clear_flag(bio, BIO_BPS_THROTTLED);
	} else {
		WRITE_ONCE(grp->owed_at_ns, now);
		WRITE_ONCE(grp->owed_until_ns, now + ioband_dir_debt_ns(dir, now));
	}
	return owed;
}

static const struct dirty_owner_ops ioband_dirty_ops = {
	.rate		= ioband_dirty_rate,
	.pay		= ioband_pay_ahead,
	.debt_ns	= ioband_write_debt_ns,
	.settle_later	= ioband_settle_later,
};

/**
 * ioband_own_pages - let pages have owners, if a group needs that
 * @blkcg:	the group that got a limit or weight
 *
 * On the default hierarchy inodes have owners.
 *
 * Context: may sleep.
 * Return: 0, or -ENOMEM.
 */
int ioband_own_pages(struct blkcg *blkcg)
{
	if (cgroup_subsys_on_dfl(io_cgrp_subsys) || !blkcg->css.parent)
		return 0;
	return dirty_owner_enable(&ioband_dirty_ops);
}

static unsigned int ioband_most_bytes(struct bio *bio)
{
	struct ioband_grp *grp;

	guard(rcu)();
	grp = bio->bi_blkg ? blkg_to_grp(bio->bi_blkg) : NULL;
	return grp && ioband_is_ready(grp) && ioband_has_weights(grp->dev) ?
	       IOBAND_PART_BYTES : UINT_MAX;
}

/* Bytes at the start of a bio that have one owner, at most @most, and who that is. */
static unsigned int ioband_owned_bytes(struct bio *bio, unsigned int most, u32 *owner)
{
	unsigned int bytes = 0;
	struct bvec_iter iter;
	struct bio_vec bv;

	*owner = 0;
	if (!ioband_pages_have_owners())
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

/* RCU read side. */
static void ioband_give_css(struct bio *bio, struct cgroup_subsys_state *css)
{
	struct blkcg_gq *blkg = bio->bi_blkg;

	if (!css || (blkg && &blkg->blkcg->css == css &&
		     blkg->q == bdev_get_queue(bio->bi_bdev)))
		return;
	bio_associate_blkg_from_css(bio, css);
}

static void ioband_give_owner(struct bio *bio, u32 owner)
{
	guard(rcu)();
	ioband_give_css(bio, owner ? dirty_owner_css(owner) : NULL);
}

/*
 * Submit the parts of a bio, each as its owner's.  They are clones, and the bio itself
 * only waits for them: in flight, it would keep the place in the device that one of
 * its own parts waits for.
 *
 * Returns false if there is no memory; the bio has to go as it is.
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
	if (unlikely(bytes && bytes < bio->bi_iter.bi_size) && !(bio->bi_opf & REQ_ATOMIC) &&
	    ioband_submit_owned(bio, bytes, owner, most))
		return true;
	ioband_give_owner(bio, owner);
	return false;
}

/*
 * Submit a clone of a bio that others are chained to.  In flight itself, the bio would keep
 * its place in the device until the last of those has ended, and they may wait for that
 * place.
 *
 * Returns false if there is no need, or no memory: the bio has to go as it is.
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

/**
 * __ioband_own_bio - see ioband_own_bio()
 * @bio:	one of writeback, or that others are chained to, or any that a driver makes
 *		while it does writeback
 *
 * Return: true if clones of it have been submitted, and it ends with the last of them.
 */
bool __ioband_own_bio(struct bio *bio)
{
	if (static_branch_unlikely(&ioband_share_key) && bio_flagged(bio, BIO_CHAIN) &&
	    ioband_submit_unchained(bio))
		return true;
	if (!bio_flagged(bio, BIO_WRITEBACK) && !current->in_writeback)
		return false;
	/* by a driver that writes what a device above it was told to */
	if (!bio_flagged(bio, BIO_WRITEBACK)) {
		if (bio_op(bio) != REQ_OP_WRITE || !bio_has_data(bio))
			return false;
		bio_set_flag(bio, BIO_WRITEBACK);
	}
	/* a zone is written in order, whoever's it is */
	if (bdev_is_zoned(bio->bi_bdev))
		return false;
	if (bio->bi_iter.bi_size > bio_iter_len(bio, bio->bi_iter))
		return ioband_own_many(bio);
	if (!ioband_pages_have_owners())
		return false;
	guard(rcu)();
	ioband_give_css(bio, dirty_owner_css_of_write(bio_page(bio)));
	return false;
}

static int __init ioband_writeback_init(void)
{
	return bioset_init(&ioband_owner_bios, BIO_POOL_SIZE, 0, BIOSET_NEED_BVECS);
}
subsys_initcall(ioband_writeback_init);
