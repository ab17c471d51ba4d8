// SPDX-License-Identifier: GPL-2.0
/*
 * Where a bio that passed its caps ends.  Caps need to know nothing of it; what
 * is in flight, latencies and depth find their place here.
 */
#include <linux/ktime.h>
#include <trace/events/ioband.h>

#include "ioband.h"

void __ioband_done_bio(struct bio *bio)
{
	if (bio->bi_blkg && bio->bi_bdev)
		trace_ioband_complete(bio, ktime_get_ns(),
				      blk_status_to_errno(bio->bi_status));
}
