// SPDX-License-Identifier: GPL-2.0
/*
 * Completion of a bio that passed its limits: only a tracepoint, since limits do not depend on
 * completions.  observe.c has what weights learn from completions.
 */
#include <linux/ktime.h>
#include <trace/events/ioband.h>

#include "../ioband.h"

void __ioband_done_bio(struct bio *bio)
{
	if (bio->bi_blkg && bio->bi_bdev)
		trace_ioband_complete(bio, ktime_get_ns(),
				      blk_status_to_errno(bio->bi_status));
}
