/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_WRITEBACK_H
#define IOBAND_WRITEBACK_H

/* Buffered writes: what the files of this folder offer to others.  Included by ioband.h. */

/* pace.c */
#define IOBAND_IO_BYTES	SZ_64K	/* assumed length of the first write of dirty pages */
int ioband_own_pages(struct blkcg *blkcg);
unsigned int ioband_limits_since(struct ioband_dir *dir);

/* writeback.c */
bool ioband_is_nobodys(struct bio *bio);
bool ioband_owe_paced(struct ioband_dir *dir, struct bio *bio, s64 now);

/* saved.c */
void ioband_save(struct ioband_grp *grp, u64 bytes, bool below, s64 now);
bool ioband_use_saved(struct ioband_grp *grp, u32 bytes, u32 *unpaid, s64 now);

/* ahead.c */
s64 ioband_pay_ahead(struct cgroup_subsys_state *css, struct backing_dev_info *bdi,
		     s64 bytes, enum dirty_how how);

#endif /* IOBAND_WRITEBACK_H */
