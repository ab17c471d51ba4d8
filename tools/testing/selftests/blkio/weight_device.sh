#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Devices for which weights are off, and devices whose queue depth is set.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

T=4
DEPTHS=(32 32)
NAMES=(a b)

share_says() { grep -q "$1" "/sys/kernel/debug/block/${DEV##*/}/ioband/share"; }

# waits: the I/Os of both groups that ever waited for their share
waits() { sed -n "s/^$(devno "$DEV") .*share_waits=\([0-9]*\).*/\1/p" "$CG/a/io.stat" "$CG/b/io.stat"; }

# most_inflight: the most I/Os in flight at a time, of 100 samples while the loads run
most_inflight() {
	local most=0 now
	for _ in {1..100}; do
		now=$(awk '{ print $1 + $2 }' "/sys/block/${DEV##*/}/inflight")
		((now <= most)) || most=$now
		sleep 0.013
	done
	echo "$most"
}

# held_at LEAST MOST: at most this many I/Os are in flight
held_at() {
	local most
	start_soon
	load a a -f "$DEV" -d 32 -t 2 -p rand -s 4k -S 1
	load b b -f "$DEV" -d 32 -t 2 -p rand -s 4k -S 2
	sleep 0.5
	most=$(most_inflight)
	wait_loads
	in_range "$most" "$1" "$2"
}

plan 11
mount_cgroup v2
group a b
null_dev nb0 completion_nsec=10000000 hw_queue_depth=32
run -p rand -s 4k
free=$(total)
weights 300 100
know "$DEV"
run -p rand -s 4k
check "weights=on: groups get their shares" shared 10000 32 300 100
device weights=off
check "weights=off: debugfs tells so" share_says aside
before=$(waits)
run -p rand -s 4k
check "weights=off: no I/O waits for its share" equal "$(waits)" "$before"
check "weights=off: all groups together do as much as without weights" as_fast 990 "$free"
cap a "$DEV" riops=100
run -p rand -s 4k
check "weights=off: limits still apply" in_range "$(counted a)" $((3 * 99)) $((3 * 101))
cap a "$DEV" riops=max

# I/Os that wait when weights are turned off are dispatched at once
device weights=on
null_dev nb1 completion_nsec=20000000 hw_queue_depth=1
know "$DEV"
start_soon
load a a -f "$DEV" -d 4 -t 1 -p rand -s 4k
load b b -f "$DEV" -d 32 -t 1 -p rand -s 4k
sleep 0.5
device weights=off
sleep 0.1
check "weights=off under load: no I/O waits for its share any more" share_says 'inflight=\([0-9]*\) outstanding=\1 '
wait_loads

DEV=/dev/nb0
run -p rand -s 4k
check "weights=on again: groups get their shares" shared 10000 32 300 100
device depth=8
check "depth=8: debugfs says so" share_says "^depth=8 .*leading=8 most=8 "
check "depth=8: at most 8 I/Os are in flight" held_at 8 9
run -p rand -s 4k
check "depth=8: groups get their shares" shared 10000 8 300 100
device depth=auto
check "depth=auto: the queue depth is measured" held_at 28 32
