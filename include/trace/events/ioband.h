/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ioband

#if !defined(_TRACE_IOBAND_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_IOBAND_H

#include <linux/bio.h>
#include <linux/cgroup.h>
#include <linux/tracepoint.h>

/*
 * One event for each stage of a bio.  A bio is admitted at once, or held and released
 * later; when all its pieces are done, it completes.  The events "admit" and "release"
 * together are all bios of a group that the limits let pass: each has the time of the
 * decision in ns of CLOCK_MONOTONIC, and the bytes that the limits were charged, which are
 * 0 for a piece of a bio whose bytes were charged before.  A task that waits before it reads,
 * submits direct I/O, or dirties pages, is held and released like a bio, at the sector U64_MAX and
 * without bytes in "release": its bios are admitted later, until "return".
 */
DECLARE_EVENT_CLASS(ioband_bio,
		    TP_PROTO(struct bio *bio, s64 now, s64 arg),
		    TP_ARGS(bio, now, arg),
		    TP_STRUCT__entry(__field(dev_t, dev)
				     __field(u64, cg)
				     __field(char, op)
				     __field(bool, piece)
				     __field(sector_t, sector)
				     __field(unsigned int, bytes)
				     __field(s64, now)
				     __field(s64, waited)
				     __field(s64, arg)),
		    TP_fast_assign(__entry->dev = bio_dev(bio);
				   __entry->cg = cgroup_id(bio_blkcg_css(bio)->cgroup);
				   __entry->op = op_is_discard(bio->bi_opf) ? 'D' :
						 op_is_write(bio->bi_opf) ? 'W' : 'R';
				   __entry->piece = bio_flagged(bio, BIO_BPS_THROTTLED);
				   __entry->sector = ioband_is_ticket(bio) ?
						     U64_MAX : bio->bi_iter.bi_sector;
				   __entry->bytes = ioband_units(bio, IOBAND_BYTES);
				   __entry->now = now;
				   __entry->waited = now - (s64)bio->issue_time_ns;
				   __entry->arg = arg;),
		    TP_printk("dev=%d,%d cg=%llu op=%c sector=%llu bytes=%u ns=%lld piece=%d waited=%lld late=%lld",
			      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cg,
			      __entry->op, (unsigned long long)__entry->sector,
			      __entry->bytes, __entry->now, __entry->piece,
			      __entry->waited, __entry->arg)
);

#define IOBAND_EVENT(name, fmt, ...)						\
	DEFINE_EVENT_PRINT(ioband_bio, name,					\
			   TP_PROTO(struct bio *bio, s64 now, s64 arg),		\
			   TP_ARGS(bio, now, arg),				\
			   TP_printk("dev=%d,%d cg=%llu op=%c sector=%llu " fmt,	\
				     MAJOR(__entry->dev), MINOR(__entry->dev),	\
				     __entry->cg, __entry->op,			\
				     (unsigned long long)__entry->sector, __VA_ARGS__))

/* A bio passes without waiting.  debt: 1 if the limits had no room, and the group owes. */
IOBAND_EVENT(ioband_admit, "bytes=%u ns=%lld piece=%d debt=%lld", __entry->bytes, __entry->now,
	     __entry->piece, __entry->arg);

/* A bio starts to wait.  held: the number of held bios of its group and direction now. */
IOBAND_EVENT(ioband_hold, "bytes=%u ns=%lld piece=%d held=%lld", __entry->bytes, __entry->now,
	     __entry->piece, __entry->arg);

/* A held bio is dispatched.  late: ns after it was due, see IOBAND_LATE_NS. */
DEFINE_EVENT(ioband_bio, ioband_release,
	     TP_PROTO(struct bio *bio, s64 now, s64 arg), TP_ARGS(bio, now, arg));

/* A call ends for which its task had paid in advance.  bytes: what is given back. */
IOBAND_EVENT(ioband_return, "bytes=%lld ns=%lld", __entry->arg, __entry->now);

/* A bio that was admitted or released has completed.  error: its blk_status_t as an errno. */
IOBAND_EVENT(ioband_complete, "ns=%lld error=%lld", __entry->now, __entry->arg);

#endif /* _TRACE_IOBAND_H */

#include <trace/define_trace.h>
