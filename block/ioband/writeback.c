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

/* So long somebody may take to submit what others wait for already. */
#define IOBAND_BOOST_NS		(200 * NSEC_PER_MSEC)

/*
 * Where there are weights, a bio is no longer than this.  One of all that a group may have
 * dirty would be all that it has at the gate: groups would take turns.
 */
#define IOBAND_PART_BYTES	SZ_1M

static struct bio_set ioband_owner_bios;

/* On the default hierarchy inodes have. */
static bool ioband_pages_have_owners(void)
{
	return static_branch_unlikely(&dirty_owner_key) &&
	       !cgroup_subsys_on_dfl(io_cgrp_subsys);
}

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

/* Does anything but bytes a second limit writes? */
static bool ioband_is_measured(struct ioband_grp *grp)
{
	return READ_ONCE(grp->dir[WRITE].limit[IOBAND_IOS]) != U64_MAX ||
	       ioband_has_weights(grp->dev);
}

/* How long a group has to repay what ioband_boost() let go. */
static u64 ioband_owed_ns(struct ioband_grp *grp)
{
	s64 debt_ns, now = ktime_get_ns();

	if (READ_ONCE(grp->owed_until) <= now)
		return 0;
	/* limits may have changed meanwhile */
	guard(spinlock_irqsave)(&grp->dev->lock);
	ioband_relink(&grp->dir[WRITE], now);
	debt_ns = ioband_dir_debt_ns(&grp->dir[WRITE], now);
	WRITE_ONCE(grp->owed_until, now + debt_ns);
	return debt_ns;
}

/* A group has several disks below: the slowest counts. */
static void ioband_rate_below(struct cgroup_subsys_state *css, struct ioband_grp *own,
			      struct dirty_rate *rate)
{
	struct blkcg_gq *blkg;
	struct ioband_grp *grp;

	hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
		grp = blkg_to_grp(blkg);
		if (!grp || grp == own || !ioband_is_ready(grp))
			continue;
		if (READ_ONCE(grp->dir[WRITE].limit[IOBAND_BYTES]) == U64_MAX &&
		    !ioband_is_measured(grp))
			continue;
		rate->measured = true;
		rate->owed_ns = max(rate->owed_ns, ioband_owed_ns(grp));
	}
}

/* See struct dirty_owner_ops. */
static struct dirty_rate ioband_dirty_rate(struct cgroup_subsys_state *css,
					   struct backing_dev_info *bdi)
{
	struct ioband_grp *grp = ioband_bdi_grp(css, bdi);
	struct dirty_rate rate = { };
	u64 bps;

	if (cgroup_subsys_on_dfl(io_cgrp_subsys))
		return rate;
	if (grp) {
		bps = READ_ONCE(grp->dir[WRITE].limit[IOBAND_BYTES]);
		rate.bps = bps != U64_MAX ? bps : 0;
		rate.measured = ioband_is_measured(grp);
		if (rate.measured)
			rate.owed_ns = ioband_owed_ns(grp);
	} else {
		/* weights may be the group's, who has not met the disk yet */
		rate.measured = atomic_read(&ioband_nr_weights);
	}
	if (ioband_is_above(bdi))
		ioband_rate_below(css, grp, &rate);
	return rate;
}

/**
 * ioband_is_owned - is a bio the write of dirty pages that have an owner?
 * @bio:	the bio, not yet submitted
 *
 * Who dirties such pages is paced: a debt needs no other delay.
 *
 * Context: any.
 * Return: true if so.
 */
bool ioband_is_owned(struct bio *bio)
{
	return ioband_pages_have_owners() &&
	       ioband_is_writeback(bio) && dirty_owner_of_write(bio_page(bio));
}

/**
 * ioband_may_be_awaited - is a bio the write of pages that others may wait for?
 * @bio:	the bio, not yet submitted
 *
 * Owned pages, or those of a driver that writes copies of them.
 *
 * Context: any.
 * Return: true if so.
 */
bool ioband_may_be_awaited(struct bio *bio)
{
	return ioband_is_owned(bio) ||
	       (bio_op(bio) == REQ_OP_WRITE && bio_has_data(bio) &&
		!page_folio(bio_page(bio))->mapping);
}

/**
 * ioband_may_be_boosted - may ioband_boost() have to find a bio that is held?
 * @bio:	the bio
 *
 * Return: true if so.
 */
bool ioband_may_be_boosted(struct bio *bio)
{
	return !cgroup_subsys_on_dfl(io_cgrp_subsys) && ioband_may_be_awaited(bio);
}

/* Let some of a group's held pages go.  Returns true if there are more. */
static bool ioband_boost_some(struct ioband_grp *grp)
{
	struct ioband_dir *dir = &grp->dir[WRITE];
	unsigned int budget = IOBAND_QUANTUM;
	s64 now = ktime_get_ns();

	guard(spinlock_irqsave)(&grp->dev->lock);
	grp->boosted_until = now + IOBAND_BOOST_NS;
	ioband_relink(dir, now);
	while (!bio_list_empty(&dir->owned) && budget--) {
		struct bio *bio = ioband_pop(dir, &dir->owned, now);

		ioband_owe(dir, bio, now, dir->lim);
		ioband_send(grp->dev, bio, now, now);
		ioband_place(grp->dev, &dir->source, now);
	}
	ioband_kick(grp->dev, now);
	return !bio_list_empty(&dir->owned);
}

/*
 * Somebody else waits for what a group writes: a journal, sync, reclaim. What is held
 * of it, about a second's worth, goes at once, and the group owes. So does what is on
 * its way here: a page is under writeback before its bio is complete.
 */
static void ioband_boost_grp(struct ioband_grp *grp)
{
	while (ioband_boost_some(grp))
		;
}

/* On v1 a group has no gate but its own. */
static bool ioband_has_gates(struct ioband_grp *grp)
{
	return rcu_access_pointer(grp->dir[WRITE].rule) ||
	       !bio_list_empty(&grp->dir[WRITE].owned);
}

/* See struct dirty_owner_ops. */
static void ioband_boost(struct cgroup_subsys_state *css, struct backing_dev_info *bdi)
{
	struct ioband_grp *grp = ioband_bdi_grp(css, bdi);
	struct blkcg_gq *blkg;

	if (grp && ioband_has_gates(grp))
		ioband_boost_grp(grp);
	if (cgroup_subsys_on_dfl(io_cgrp_subsys) || !ioband_is_above(bdi))
		return;
	hlist_for_each_entry_rcu(blkg, &css_to_blkcg(css)->blkg_list, blkcg_node) {
		grp = blkg_to_grp(blkg);
		if (grp && ioband_is_ready(grp) && ioband_has_gates(grp))
			ioband_boost_grp(grp);
	}
}

static const struct dirty_owner_ops ioband_dirty_ops = {
	.rate	= ioband_dirty_rate,
	.boost	= ioband_boost,
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
