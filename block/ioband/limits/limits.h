/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_LIMITS_H
#define IOBAND_LIMITS_H

/* What the files of limits call of each other, and what others call.  Included by ioband.h. */

/* charge.c */
enum ioband_terms {
	IOBAND_TERMS_NOW,	/* no debt: pay only if the limits have room */
	IOBAND_TERMS_BOUNDED,	/* a debt, of IOBAND_DEBT_MAX_NS at most */
	IOBAND_TERMS_DEBT,	/* a debt */
};

bool ioband_take(struct ioband_bucket *b, s64 cost, s64 arrival, s64 now);
bool ioband_gate_pay(struct ioband_dir *gate, const struct bio *bio, s64 now,
		     enum ioband_terms terms);
bool ioband_pay(struct ioband_dir *dir, struct bio *bio, s64 now);
s64 ioband_due(struct ioband_dir *dir, struct bio *bio, s64 now);
s64 ioband_bio_when(struct ioband_dir *gate, struct bio *bio);
bool ioband_bio_saves(struct ioband_dir *gate, struct bio *bio, s64 now);
u64 ioband_bio_turn(struct ioband_dir *gate, struct bio *bio);
bool ioband_is_bound(struct ioband_dir *dir, const struct bio *bio);
void ioband_gate_used(struct ioband_dir *gate);
bool ioband_is_crowded(struct ioband_dir *dir);

/* debt.c */
s64 ioband_gates_debt_ns(struct ioband_dir *gate, s64 now);
s64 ioband_rule_debt(struct ioband_rule *rule, s64 now);
s64 ioband_grp_debt_ns(struct ioband_grp *grp, struct cgroup_subsys_state *css);
bool ioband_repay_debt(s64 debt_ns);
void ioband_meet(struct cgroup_subsys_state *css, struct gendisk *disk);
struct ioband_dir *ioband_gate_of(struct ioband_dir *dir, struct cgroup_subsys_state *css);
void ioband_owe(struct ioband_dir *dir, struct bio *bio, s64 now, enum ioband_terms terms);

/* door.c */
struct ioband_grp *ioband_bdi_grp(struct cgroup_subsys_state *css, struct backing_dev_info *bdi);
u64 ioband_bdi_debt_ns(struct cgroup_subsys_state *css, struct backing_dev_info *bdi);
void ioband_wait_later(struct gendisk *disk);

/* admit.c */
void ioband_trace_admit(struct bio *bio, bool debt);

/* decide.c */
/* On whose behalf a bio is submitted; NULL for none, if the kernel asks.  RCU read side. */
static inline struct cgroup_subsys_state *ioband_asker(void)
{
	return current->flags & PF_KTHREAD ? kthread_blkcg() : task_css(current, io_cgrp_id);
}

bool ioband_judge(struct bio *bio, bool in_lane);

/* lane.c */
int ioband_lanes_init(struct ioband_dev *dev);
struct ioband_lane *ioband_lane_serve(struct ioband_dev *dev, const struct bio *bio);
bool ioband_lane_wait(struct ioband_dev *dev, struct bio *bio);
void ioband_lane_begin(struct ioband_dev *dev, struct bio *bio);
struct bio *ioband_lane_next(struct ioband_dev *dev, struct ioband_lane *lane);

/* queue.c */
void ioband_dir_init(struct ioband_grp *grp, struct ioband_dir *dir);
void ioband_hold(struct ioband_dir *dir, struct bio *bio, s64 now);
struct bio *ioband_next(struct ioband_dev *dev, int rw, s64 now, s64 *due,
			unsigned int *budget);
void ioband_drain(struct ioband_dir *dir, struct bio_list *bios, s64 now);
void ioband_attach(struct ioband_dir *dir, s64 now);
void ioband_place(struct ioband_dev *dev, struct ioband_ent *ent, s64 now);

/* rule.c */
struct ioband_rule *ioband_rule_alloc(gfp_t gfp);
void ioband_rule_free(struct ioband_rule *rule);
void ioband_set_limits(struct ioband_grp *grp, int rw,
		       const u64 own[IOBAND_NR_UNITS],
		       struct ioband_rule **spare);
void ioband_update_limits(struct ioband_dir *dir, struct ioband_rule **spare);
void ioband_relink(struct ioband_dir *dir, s64 now);
void ioband_removed(struct ioband_grp *grp);

/* default.c */
struct blkcg_policy_data *ioband_cpd_alloc(gfp_t gfp);
void ioband_cpd_free(struct blkcg_policy_data *cpd);
bool ioband_is_default(char *buf, char **body);
int ioband_set_defaults(struct blkcg *blkcg, const struct ioband_limits *limits);
void ioband_drop_defaults(struct blkcg *blkcg);
bool ioband_default_alloc(struct ioband_grp *grp, struct blkcg *blkcg, gfp_t gfp);
void ioband_default_online(struct ioband_grp *grp);
void ioband_default_meet(struct cgroup_subsys_state *css, struct gendisk *disk);

#endif /* IOBAND_LIMITS_H */
