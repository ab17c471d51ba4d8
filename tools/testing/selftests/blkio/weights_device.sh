#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Weights that are off on one device, and a queue depth that is given.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"
. "$HERE/blkio_share.sh"

T=4
DEPTHS=(32 32)
NAMES=(a b)

share_says() { grep -q "$1" "/sys/kernel/debug/block/${DEV##*/}/ioband/share"; }

# waits: I/Os of both groups that ever waited for their share
waits() { sed -n "s/^$(devno "$DEV") .*share_waits=\([0-9]*\).*/\1/p" "$CG/a/io.stat" "$CG/b/io.stat"; }

# most_inflight: of 100 looks while the loads run, the most I/Os that the device had at a time
most_inflight() {
	local most=0 now
	for _ in {1..100}; do
		now=$(awk '{ print $1 + $2 }' "/sys/block/${DEV##*/}/inflight")
		((now <= most)) || most=$now
		sleep 0.013
	done
	echo "$most"
}

# held_at LEAST MOST: so many are in flight at most
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
check "weights act: shares" shared 10000 32 300 100
device weights=off
check "off: debugfs says so" share_says aside
before=$(waits)
run -p rand -s 4k
check "off: no I/O waits for its share" equal "$(waits)" "$before"
check "off: nothing lost" as_fast 990 "$free"
cap a "$DEV" riops=100
run -p rand -s 4k
check "off: limits act all the same" in_range "$(counted a)" $((3 * 99)) $((3 * 101))
cap a "$DEV" riops=max

# what waits when they are turned off goes at once
device weights=on
null_dev nb1 completion_nsec=20000000 hw_queue_depth=1
know "$DEV"
start_soon
load a a -f "$DEV" -d 4 -t 1 -p rand -s 4k
load b b -f "$DEV" -d 32 -t 1 -p rand -s 4k
sleep 0.5
device weights=off
sleep 0.1
check "off under load: none waits for its share" share_says 'inflight=\([0-9]*\) outstanding=\1 '
wait_loads

DEV=/dev/nb0
run -p rand -s 4k
check "on again: shares" shared 10000 32 300 100
device depth=8
check "depth=8: debugfs says so" share_says "^depth=8 .*leading=8 most=8 "
check "depth=8: so many are in flight" held_at 8 9
run -p rand -s 4k
check "depth=8: shares" shared 10000 8 300 100
device depth=auto
check "depth=auto: what the device does at once is found" held_at 28 32
