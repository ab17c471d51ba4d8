/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LAB_KERNEL_BLOCK_H
#define LAB_KERNEL_BLOCK_H

/* The parts of the block layer and of cgroups for kernel.h. */

enum { REQ_OP_READ, REQ_OP_WRITE, REQ_OP_FLUSH, REQ_OP_DISCARD, REQ_OP_ZONE_APPEND = 7,
	REQ_OP_WRITE_ZEROES = 9 };
#define REQ_OP_MASK		0xff
#define REQ_SYNC		BIT(11)
#define REQ_META		BIT(12)
#define REQ_FUA			BIT(17)
#define REQ_PREFLUSH		BIT(18)
#define REQ_POLLED		BIT(20)
#define REQ_NOWAIT		BIT(21)
#define REQ_BACKGROUND		BIT(22)
#define READ			0
#define WRITE			1
#define BIO_BPS_THROTTLED	1
#define ARCH_KMALLOC_MINALIGN	8
#define BLK_STS_OK		0
enum { BLKG_IOSTAT_READ, BLKG_IOSTAT_WRITE, BLKG_IOSTAT_DISCARD };
enum { BLKG_RWSTAT_READ, BLKG_RWSTAT_WRITE, BLKG_RWSTAT_SYNC, BLKG_RWSTAT_ASYNC, BLKG_RWSTAT_DISCARD, BLKG_RWSTAT_NR };
enum { HCTX_TYPE_DEFAULT, HCTX_TYPE_READ, HCTX_TYPE_POLL };

struct ioband_dev;
struct blkcg_gq;
struct lab_load;

struct gendisk {
	const char		*disk_name;
	struct backing_dev_info	*bdi;
	struct request_queue	*queue;
	unsigned long		state;
	struct ioband_dev	*ioband;
};

struct block_device {
	struct gendisk		*bd_disk;
	const void		*bd_holder_ops;
};

struct elevator_queue { int unused; };

struct blk_mq_tag_set {
	unsigned int		queue_depth;
	unsigned int		reserved_tags;
	unsigned int		flags;
	struct {
		unsigned int	nr_queues;
	} map[3];
};

struct request_queue {
	bool			rot;
	unsigned int		queue_depth;
	struct elevator_queue	*elevator;
	struct blk_mq_tag_set	*tag_set;
	spinlock_t		queue_lock;
	int			node;
};

#define blk_queue_disable_wbt(q)	false
/* no I/Os of the lab are consecutive on the disk, so none are merged */
#define blk_queue_nomerges(q)		true
#define queue_max_bytes(q)		0U
#define queue_max_segments(q)		0U
#define queue_virt_boundary(q)		0UL
#define bio_iovec(bio)			((struct { unsigned int bv_offset; }){ 0 })
#define bio_integrity(bio)		false
#define bio_has_crypt_ctx(bio)		false
#define REQ_ATOMIC			0
#define REQ_SWAP			0
#define blk_queue_rot(q)		((q)->rot)
#define queue_is_mq(q)			((q)->tag_set)
#define blk_mq_is_shared_tags(flags)	((flags) & 1)

struct bio {
	struct bio		*bi_next;
	struct block_device	*bi_bdev;
	blk_opf_t		bi_opf;
	u16			bi_flags;
	u8			bi_status;
	struct {
		u32		bi_size;
		sector_t	bi_sector;
	} bi_iter;
	u16			bi_vcnt;
	u16			bi_ioprio;
	u8			bi_write_hint;
	u8			bi_write_stream;
	struct blkcg_gq		*bi_blkg;
	u64			issue_time_ns;
	u64			bi_iocost_cost;
	void			(*bi_end_io)(struct bio *bio);

	/* fields of the lab */
	struct lab_load		*load;
	s64			submitted_ns;
	s64			delay_ns;	/* that its task waits before the next I/O */
	s64			device_ns;	/* for which it occupies the device */
	int			cpu;		/* of its task */
	unsigned int		disk;		/* the disk of the device that has the I/O */
	bool			must_pass;
};

struct bio_list {
	struct bio *head, *tail;
};

#define bio_op(bio)		((bio)->bi_opf & REQ_OP_MASK)
#define op_is_write(op)		((op) & 1)
#define REQ_NOMERGE_FLAGS	REQ_PREFLUSH
#define bio_end_sector(bio)	((bio)->bi_iter.bi_sector + ((bio)->bi_iter.bi_size >> 9))
#define op_is_sync(opf)		(bio_op_is_read(opf) || ((opf) & (REQ_SYNC | REQ_FUA | REQ_PREFLUSH)))
#define bio_op_is_read(opf)	(((opf) & REQ_OP_MASK) == REQ_OP_READ)
#define bio_data_dir(bio)	(op_is_write(bio_op(bio)) ? WRITE : READ)
#define bio_sectors(bio)	((bio)->bi_iter.bi_size >> SECTOR_SHIFT)
#define bio_flagged(bio, flag)	((bio)->bi_flags >> (flag) & 1)
#define bdev_is_zoned(bdev)	false
#define bio_clear_polled(bio)	((bio)->bi_opf &= ~REQ_POLLED)
#define bio_set_flag(bio, flag)	((void)((bio)->bi_flags |= 1U << (flag)))
#define bio_issue_as_root_blkg(bio)	((bio)->must_pass)
#define op_is_flush(opf)	((opf) & (REQ_FUA | REQ_PREFLUSH))
#define blk_queue_is_zoned(q)	false
/* no disk is removed */
#define bio_io_error(bio)	abort()
/* no I/O of the lab is of the page cache */
#define bio_has_data(bio)	false
#define bio_page(bio)		NULL
#define page_folio(page)	(page)
#define folio_mapping(folio)	((struct address_space *)(folio))
#define I_BDEV(inode)		((struct block_device *)(inode))
struct inode { int i_mode; };
struct address_space { struct inode *host; };
#define S_ISBLK(mode)		(mode)

struct blk_plug { int unused; };
#define blk_start_plug(plug)	((void)(plug))
#define blk_finish_plug(plug)	((void)(plug))
void submit_bio_noacct_nocheck(struct bio *bio, bool split);

static inline bool bio_list_empty(const struct bio_list *list)
{
	return !list->head;
}

static inline void bio_list_init(struct bio_list *list)
{
	list->head = list->tail = NULL;
}

static inline void bio_list_add(struct bio_list *list, struct bio *bio)
{
	bio->bi_next = NULL;
	if (list->tail)
		list->tail->bi_next = bio;
	else
		list->head = bio;
	list->tail = bio;
}

static inline void bio_list_add_head(struct bio_list *list, struct bio *bio)
{
	bio->bi_next = list->head;
	list->head = bio;
	if (!list->tail)
		list->tail = bio;
}

#define BIO_EMPTY_LIST		((struct bio_list){ })

static inline void bio_list_merge_init(struct bio_list *list, struct bio_list *other)
{
	if (!other->head)
		return;
	if (list->tail)
		list->tail->bi_next = other->head;
	else
		list->head = other->head;
	list->tail = other->tail;
	bio_list_init(other);
}

static inline struct bio *bio_list_peek(struct bio_list *list)
{
	return list->head;
}

static inline struct bio *bio_list_pop(struct bio_list *list)
{
	struct bio *bio = list->head;

	if (!bio)
		return NULL;
	list->head = bio->bi_next;
	if (!list->head)
		list->tail = NULL;
	bio->bi_next = NULL;
	return bio;
}

/* cgroups */
struct cgroup_subsys { int unused; };
extern struct cgroup_subsys io_cgrp_subsys;
#define cgroup_subsys_on_dfl(subsys)	true
#define CGROUP_WEIGHT_DFL	100
#define CGROUP_WEIGHT_MIN	1
#define CGROUP_WEIGHT_MAX	10000

struct cgroup { struct cgroup *parent; };
struct cgroup_subsys_state { struct cgroup *cgroup; struct cgroup_subsys_state *parent; };
struct blkcg_policy { int unused; };
struct blkcg_policy_data { int unused; };

struct blkg_policy_data {
	struct blkcg_gq		*blkg;
};

struct blkcg {
	struct cgroup_subsys_state css;
	spinlock_t		lock;
	struct blkcg_policy_data *cpd;
	struct blkcg_gq		*blkg;		/* of the only disk */
};

struct blkcg_gq {
	struct blkcg		*blkcg;
	struct blkcg_gq		*parent;
	struct blkg_policy_data	*pd;
	int			refs;
};

#define hlist_for_each_entry(pos, head, member) \
	for ((pos) = blkcg->blkg; (pos); (pos) = NULL)

static inline struct blkcg_policy_data *blkcg_to_cpd(struct blkcg *blkcg, struct blkcg_policy *pol)
{
	return blkcg->cpd;
}

static inline struct blkg_policy_data *blkg_to_pd(struct blkcg_gq *blkg, struct blkcg_policy *pol)
{
	return blkg ? blkg->pd : NULL;
}

static inline struct blkcg_gq *pd_to_blkg(struct blkg_policy_data *pd)
{
	return pd ? pd->blkg : NULL;
}

static inline void blkg_get(struct blkcg_gq *blkg)
{
	blkg->refs++;
}

static inline void blkg_put(struct blkcg_gq *blkg)
{
	blkg->refs--;
}

#define GFP_KERNEL		0
#define kzalloc(size, gfp)	calloc(1, size)
#define kzalloc_obj(obj, ...)	((__typeof__(obj) *)calloc(1, sizeof(obj)))
#define kzalloc_node(size, gfp, node)	calloc(1, size)
#define kcalloc(n, size, gfp)	aligned_alloc_zero((n) * (size))
#define kvcalloc(n, size, gfp)	kcalloc(n, size, gfp)
#define kfree(p)		free(p)
#define kvfree(p)		free(p)

static inline void *aligned_alloc_zero(size_t size)
{
	void *p = aligned_alloc(64, (size + 63) / 64 * 64);

	return p ? memset(p, 0, size) : NULL;
}

/* set by load.c: limits hold such bios */
enum { BIO_UNLOCKED = 15 };

/* no task of the lab and no bio has one of these, nor a transaction (journal_info) */
enum { BIO_WRITEBACK = 14, BIO_CHAIN = 2 };
enum { PF_IO_WORKER = 1, PF_KTHREAD = 2, PF_MEMALLOC_NOFS = 4 };
enum { TASK_INTERRUPTIBLE, TASK_KILLABLE, TASK_FREEZABLE_UNSAFE };
struct lab_task {
	unsigned int		flags;
	bool			in_writeback;
	void			*journal_info;
	void			*ioband_credit;
	struct cgroup_subsys_state *css;
};

/* tasks wait in lab_engine_submit() */
void blkcg_schedule_throttle(struct gendisk *disk, bool use_memdelay);
extern struct lab_task lab_task;	/* the task that submits */
#define current			(&lab_task)
#define task_css(task, id)	((task)->css)
#define kthread_blkcg()		NULL
#define kthread_associate_blkcg(css)	((void)(css))
#define bio_blkcg_css(bio)	(&(bio)->bi_blkg->blkcg->css)
/* each bio belongs to the group of its task */
#define bio_associate_blkg_from_css(bio, css)	abort()
extern struct blkcg blkcg_root;

static inline bool cgroup_is_descendant(const struct cgroup *cgroup, const struct cgroup *of)
{
	while (cgroup && cgroup != of)
		cgroup = cgroup->parent;
	return cgroup;
}

#define signal_pending(task)	false
#define hrtimer_resolution	1
#define static_branch_unlikely(key)	(*(key))
#define static_branch_likely(key)	(*(key))
#define DECLARE_STATIC_KEY_FALSE(name)	extern int name
#define DECLARE_TRACEPOINT(name)	extern int name
#define tracepoint_enabled(name)	false
#define trace_ioband_admit_enabled()	false
#define trace_ioband_admit(...)		((void)0)
#define trace_ioband_complete(...)	((void)0)
#define trace_ioband_hold(...)		lab_queued()
#define trace_ioband_release(...)	lab_queued()
#define bdev_zone_is_seq(bdev, sector)	false
extern int ioband_key, ioband_share_key, dirty_owner_key;

#endif /* LAB_KERNEL_BLOCK_H */
