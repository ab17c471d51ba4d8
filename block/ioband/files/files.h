/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOBAND_FILES_H
#define IOBAND_FILES_H

/* Control files, and what is printed.  Included by ioband.h. */

/* What separates the words of a line, as in mainline. */
#define IOBAND_BLANKS	" \t\n\v\f\r"

/* parse.c */
int ioband_parse_u64(const char *str, u64 *val);
typedef int (ioband_write_fn)(struct kernfs_open_file *of, char *line, bool check);
int ioband_write_lines(struct kernfs_open_file *of, char *buf, ioband_write_fn *write);
int ioband_write_line(struct blkcg *blkcg, char *buf, struct ioband_line *line);
int ioband_parse_line(struct blkcg *blkcg, struct ioband_line *line, char *body);

/* limits.c */
extern struct cftype ioband_files[];
extern struct cftype ioband_legacy_files[];

/* weights.c */
extern struct cftype ioband_weight_files[];
extern struct cftype ioband_legacy_weight_files[];

/* devices.c */
extern struct cftype ioband_device_files[];
extern struct cftype ioband_legacy_device_files[];

/* stat.c */
void ioband_print_stat(struct blkg_policy_data *pd, struct seq_file *sf);
void ioband_reset_stats(struct blkg_policy_data *pd);
void ioband_share_parts(struct ioband_grp *grp, u64 *asked, u64 *got);
extern struct cftype ioband_legacy_stat_files[];

/* debugfs.c */
#ifdef CONFIG_BLK_DEBUG_FS
void ioband_debugfs_register(struct gendisk *disk);
#else
static inline void ioband_debugfs_register(struct gendisk *disk) { }
#endif

#endif /* IOBAND_FILES_H */
