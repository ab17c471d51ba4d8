/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_HOOKS_H
#define IOBAND_HOOKS_H

#include <linux/bio.h>
#include <linux/dirty_owner.h>
#include <linux/ioband.h>
#include <linux/jump_label.h>
#include <linux/sched.h>
#include <linux/tracepoint-defs.h>

/*
 * The functions that the rest of the block layer calls, in the order in which a bio and a disk
 * pass them.  Everything else is declared in ioband.h.
 */

struct blkcg_gq;
struct blkcg_policy;
struct blkg_policy_data;
struct cgroup_subsys_state;
struct cgroup_taskset;
struct gendisk;

#ifdef CONFIG_BLK_CGROUP_IOBAND

/* Set before ioband_share_key, so that each bio that is counted is also seen to complete. */
DECLARE_STATIC_KEY_FALSE(ioband_done_key);
DECLARE_TRACEPOINT(ioband_complete);

bool ioband_owns_limits(void);
bool ioband_owns_weights(void);
bool __ioband_own_bio(struct bio *bio);
bool __ioband_bio(struct bio *bio);
void __ioband_done_bio(struct bio *bio);
void __ioband_share_done(struct bio *bio);
void __ioband_repay(struct gendisk *disk);
void ioband_css_killed(struct cgroup_subsys_state *css);
void ioband_fork(struct task_struct *child);
int ioband_moves(struct cgroup_taskset *tset);
void ioband_moved(struct cgroup_taskset *tset);
void ioband_exit(void);
int ioband_open_disk(struct gendisk *disk);
void ioband_let_go(struct gendisk *disk);
void ioband_exit_disk(struct gendisk *disk);
int ioband_register_bfq(struct blkcg_policy *pol,
			void (*set)(struct blkg_policy_data *pd, u32 weight));
void ioband_unregister_bfq(struct blkcg_policy *pol);
u32 ioband_weight_for_bfq(struct blkcg_gq *blkg, u32 weight);

/**
 * ioband_own_bio - associate a bio of dirty pages with the group that dirtied them
 * @bio: bio that is about to be submitted for the first time
 *
 * Context: process context.
 * Return: true if clones of @bio have been submitted, and it ends with the last of them.  That
 *	   is so if several groups dirtied its pages; and, on a device with weights, if it is
 *	   long or other bios are chained to it.
 */
static inline bool ioband_own_bio(struct bio *bio)
{
	return (static_branch_unlikely(&dirty_owner_key) ||
		static_branch_unlikely(&ioband_share_key)) &&
	       ((bio->bi_flags & (BIT(BIO_WRITEBACK) | BIT(BIO_CHAIN))) ||
		current->in_writeback) &&
	       __ioband_own_bio(bio);
}

/**
 * ioband_bio - charge a bio to the limits of its group, and hold it if they have no room
 * @bio: bio that is about to enter the queue of its device, or the remainder of a split
 *
 * Context: process context; @bio holds no queue reference yet.  Sleeps only to drop a
 *	    reference on a disk, see blkcg_schedule_throttle().
 * Return: true if ioband holds @bio and submits it later; the caller must not touch it again.
 */
static inline bool ioband_bio(struct bio *bio)
{
	return static_branch_unlikely(&ioband_key) && __ioband_bio(bio);
}

/**
 * ioband_done_bio - note that a bio has completed
 * @bio: bio in bio_endio() that still has its blkg
 *
 * Context: any, hard interrupt included.
 */
static inline void ioband_done_bio(struct bio *bio)
{
	if (static_branch_unlikely(&ioband_done_key) && bio->bi_iocost_cost)
		__ioband_share_done(bio);
	if (tracepoint_enabled(ioband_complete) &&
	    static_branch_unlikely(&ioband_key) &&
	    bio_flagged(bio, BIO_BPS_THROTTLED))
		__ioband_done_bio(bio);
}

/**
 * ioband_repay - have the current task wait for what it owes
 * @disk:	the disk in whose name it is made to wait
 *
 * Sleeps for a limited time only; if there is still a debt, the task is made to call this again.
 *
 * Context: on the way to user space, no lock held.
 */
static inline void ioband_repay(struct gendisk *disk)
{
	if (static_branch_unlikely(&ioband_key))
		__ioband_repay(disk);
}

#else /* CONFIG_BLK_CGROUP_IOBAND */

static inline bool ioband_owns_limits(void) { return false; }
static inline bool ioband_owns_weights(void) { return false; }
static inline bool ioband_own_bio(struct bio *bio) { return false; }
static inline bool ioband_bio(struct bio *bio) { return false; }
static inline void ioband_done_bio(struct bio *bio) { }
static inline void ioband_repay(struct gendisk *disk) { }
static inline int ioband_open_disk(struct gendisk *disk) { return 0; }
static inline void ioband_let_go(struct gendisk *disk) { }
static inline void ioband_exit_disk(struct gendisk *disk) { }
#define ioband_register_bfq(pol, set)	((void)(set), blkcg_policy_register(pol))
#define ioband_unregister_bfq(pol)	blkcg_policy_unregister(pol)
static inline u32 ioband_weight_for_bfq(struct blkcg_gq *blkg, u32 weight) { return weight; }
static inline void ioband_exit(void) { }
#define ioband_css_killed	NULL
#define ioband_fork		NULL
#define ioband_moves		NULL
#define ioband_moved		NULL

#endif /* CONFIG_BLK_CGROUP_IOBAND */

#endif /* IOBAND_HOOKS_H */
