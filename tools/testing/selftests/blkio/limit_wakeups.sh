#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# The number of work items, each of which is a wakeup, for the dispatch of held I/O. At a low rate each I/O is
# dispatched at its own time; at a high rate many are dispatched together, and no group waits for longer than it takes
# to collect them.
. "$(dirname "$0")/lib/blkio_lib.sh"

TRACING=/sys/kernel/tracing

ran() { grep -c 'function ioband_' $TRACING/trace || true; }

# works IOPS DEPTH SECONDS: the number of work items of ioband that ran, and of I/Os; IOS is the latter
works() {
	local before
	cap g "$DEV" riops="$1"
	before=$(ran)
	START=0
	load g r -f "$DEV" -s 4k -d "$2" -t "$3"
	wait_loads
	cap g "$DEV" riops=max
	IOS=$(val r ios)
	WORKS=$(($(ran) - before))
	echo "$1 IOPS asked, $IOS I/Os, $WORKS work items"
}

# together: at most one work item for ten I/Os, at the exact rate
together() {
	works 400000 1024 1
	((WORKS > 0 && WORKS * 10 <= IOS)) && within "$IOS" 400000 6000
}

# alone: two work items for each I/O, one that takes it and one that submits it. The I/Os that are held when the load
# ends are dispatched, too, and are not among its I/Os.
alone() {
	local depth=16

	works 1000 $depth 2
	within "$IOS" 2000 3000 && in_range "$WORKS" $((IOS * 19 / 10)) $(((IOS + depth) * 2))
}

[ -e $TRACING/events/workqueue/workqueue_execute_start ] || mount -t tracefs none $TRACING 2>/dev/null ||
	skip_all "the kernel has no trace events"
plan 2
echo 65536 >$TRACING/buffer_size_kb
echo 1 >$TRACING/events/workqueue/workqueue_execute_start/enable
mount_cgroup v2
group g
null_dev nb0 size=64 hw_queue_depth=1024 completion_nsec=10000
check "at 400,000 IOPS ten or more I/Os are dispatched together" together
check "at 1,000 IOPS each I/O is dispatched at its own time" alone
