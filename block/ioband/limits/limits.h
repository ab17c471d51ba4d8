/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_LIMITS_H
#define IOBAND_LIMITS_H

/* What the files of limits call of each other, and what others call.  Included by ioband.h. */

/* charge.c */
bool ioband_pay(struct ioband_dir *dir, struct bio *bio, s64 now);
s64 ioband_due(struct ioband_dir *dir, struct bio *bio, s64 now);
s64 ioband_bio_when(struct ioband_dir *gate, struct bio *bio);
bool ioband_bio_saves(struct ioband_dir *gate, struct bio *bio, s64 now);
u64 ioband_bio_turn(const struct ioband_dir *gate, const struct bio *bio);
bool ioband_is_bound(struct ioband_dir *dir, const struct bio *bio);
void ioband_gate_used(struct ioband_dir *gate);
void ioband_unpay(struct ioband_dir *dir, const struct ioband_ticket *credit, s64 now);
s64 ioband_units_ns(const struct ioband_dir *gate, const u64 units[IOBAND_NR_UNITS], s64 now);

/* The lowest limit of a group, units a second, U64_MAX for none.  dev->lock, or RCU read side. */
static inline u64 ioband_lowest(const struct ioband_dir *dir, enum ioband_unit unit)
{
	u64 lowest = U64_MAX;

	for (struct ioband_dir *gate = READ_ONCE(dir->lim); gate; gate = READ_ONCE(gate->up))
		lowest = min(lowest, READ_ONCE(gate->limit[unit]));
	return lowest;
}

/*
 * May one more bio be held?  Others may wait for what limits hold: for the end of a file's direct
 * I/O, or for the end of a task.  dev->lock held, or RCU read side: then the answer may change.
 */
static inline bool ioband_may_line_up(const struct ioband_dir *dir, u64 bytes)
{
	return READ_ONCE(dir->held) < IOBAND_HELD &&
	       READ_ONCE(dir->held_units[IOBAND_BYTES]) + bytes <=
			ioband_lowest(dir, IOBAND_BYTES) &&
	       READ_ONCE(dir->held_units[IOBAND_IOS]) < ioband_lowest(dir, IOBAND_IOS);
}

/* debt.c */
bool ioband_debts_wait(void);
bool ioband_in_debt(void);
void ioband_wait_for(struct gendisk *disk, struct ioband_dir *gate, s64 ns);
struct ioband_dir *ioband_gate_of(struct ioband_dir *dir, struct cgroup_subsys_state *css);
void ioband_debt(struct ioband_dir *dir, u64 units[IOBAND_NR_UNITS], s64 now, bool bounded);
void ioband_share_debts(struct cgroup_subsys_state *other);

/* below.c */
bool ioband_is_above(struct backing_dev_info *bdi);
void ioband_asked_above(struct gendisk *disk);
int ioband_door_below(struct inode *inode, bool nowait);

/* ticket.c */
/* A task that waits looks again after this time, since limits can change, and it may be stopped. */
#define IOBAND_LOOK_NS		(250 * NSEC_PER_MSEC)

extern atomic_t ioband_ghosts;

/* May any group owe what drivers' threads have done for it? */
static inline bool ioband_may_owe_below(void)
{
	return unlikely(atomic_read(&ioband_ghosts));
}

void ioband_ticket_init(struct ioband_ticket *ticket);
struct ioband_ticket *ioband_ticket_alloc(gfp_t gfp);
void ioband_ticket_give(struct ioband_ticket *ticket, struct ioband_dir *dir);
bool ioband_ticket_give_css(struct ioband_ticket *ticket, struct gendisk *disk, int rw,
			    struct cgroup_subsys_state *css);
struct ioband_dir *ioband_ticket_dir(const struct ioband_ticket *ticket);
void ioband_ticket_put(struct ioband_ticket *ticket);
void ioband_ticket_hold(struct ioband_ticket *ticket, s64 now);
bool ioband_ticket_is_done(const struct ioband_ticket *ticket);
bool ioband_ticket_look(struct ioband_ticket *ticket);
bool ioband_ticket_pay(struct ioband_ticket *ticket, bool wait);
int ioband_ticket_wait(struct ioband_ticket *ticket);
bool ioband_ticket_paid(struct ioband_ticket *ticket, struct ioband_dir *dir);
int ioband_prepay(struct gendisk *disk, int rw, u64 bytes);
bool ioband_credit_use(struct bio *bio, s64 now, bool *owed);
void ioband_credit_return(void);

/* door.c */
struct ioband_grp *ioband_bdi_grp(struct cgroup_subsys_state *css, struct backing_dev_info *bdi);
bool ioband_find_free(void);

/* admit.c */
bool ioband_admit(struct ioband_dir *gate, u32 bytes);
void ioband_trace_admit(struct bio *bio, bool debt);

/* decide.c */
/* On whose behalf a bio is submitted; NULL for none, if the kernel asks.  RCU read side. */
static inline struct cgroup_subsys_state *ioband_asker(void)
{
	return current->flags & PF_KTHREAD ? kthread_blkcg() : task_css(current, io_cgrp_id);
}

bool ioband_judge(struct bio *bio);

/* queue.c */
void ioband_dir_init(struct ioband_grp *grp, struct ioband_dir *dir);
void ioband_owed(struct ioband_dir *dir, enum ioband_unit unit, s64 units);
void ioband_hold(struct ioband_dir *dir, struct bio *bio, s64 now);
struct bio *ioband_next(struct ioband_dev *dev, int rw, s64 now, s64 *due,
			unsigned int *budget);
void ioband_drain(struct ioband_dir *dir, struct bio_list *bios, s64 now);
void ioband_attach(struct ioband_dir *dir, s64 now);
void ioband_place(struct ioband_dev *dev, struct ioband_ent *ent, s64 now);

/* rule.c */
void ioband_bound_anew(void);
void ioband_rule_set(struct ioband_rule *rule, const u64 limit[IOBAND_NR_UNITS],
		     const struct bio *head, s64 now);
void ioband_set_limits(struct ioband_grp *grp, int rw, const u64 own[IOBAND_NR_UNITS]);
void ioband_update_limits(struct ioband_dir *dir);
void ioband_relink(struct ioband_dir *dir, s64 now);
void ioband_removed(struct ioband_grp *grp);

/* default.c */
int ioband_set_defaults(struct blkcg *blkcg, const struct ioband_limits *limits);
void ioband_drop_defaults(struct blkcg *blkcg);
void ioband_apply_defaults(struct ioband_grp *grp);
void ioband_default_meet(struct cgroup_subsys_state *css, struct gendisk *disk);

#endif /* IOBAND_LIMITS_H */
