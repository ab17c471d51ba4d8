#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# args: highres=off
# Timers that expire at ticks, as on machines without high-resolution clocks: I/O is dispatched up to a tick late,
# and a backlogged group still gets its limit.
. "$(dirname "$0")/lib/blkio_lib.sh"

SEC=20

# rates VERSION DEPTH SIZE_KIB RATE...: a group with each rate, all at once; one I/O after the other, or several
# outstanding
rates() {
	local version=$1 depth=$2 size=$(($3 * KiB)) i=0 rate burst
	shift 3
	for rate; do
		i=$((i + 1))
		cap "g$i" "$DEV" rbps="$rate"
	done
	start_soon
	for ((i = 1; i <= $#; i++)); do
		load "g$i" "$i" -f "$DEV" -s $size -d "$depth" -t $SEC -w 1 -O "$((i * 100))M" -L 100M
	done
	wait_loads
	i=0
	for rate; do
		i=$((i + 1))
		cap "g$i" "$DEV" rbps=max
		# 5 ms of the rate, or an I/O, and two ticks
		burst=$((rate / 200 > 64 * KiB ? rate / 200 : 64 * KiB))
		check "$version: depth $depth, $((size / KiB)) KiB: the group gets $rate B/s" in_range "$(val "$i" bytes)" \
			$((SEC * rate * 9975 / 10000 - burst)) $((SEC * rate + burst + 2 * TICK_MS * rate / 1000))
	done
}

# Measures the tick, with a task that sleeps for the shortest time.
tick_ms() {
	python3 -c '
import time
begin = time.monotonic()
for i in range(20):
    time.sleep(0.0001)
print(round((time.monotonic() - begin) * 50))'
}

plan 19
TICK_MS=$(tick_ms)
check "timers expire at ticks" in_range "$TICK_MS" 1 20
# the load's own timer would expire at ticks as well
null_dev nb0 irqmode=0
for version in v1 v2; do
	mount_cgroup $version
	group g1 g2 g3
	rates $version 1 64 $MiB $((2 * MiB)) $((3 * MiB))
	rates $version 8 64 $MiB $((10 * MiB)) $((100 * MiB))
	rates $version 1 4 $((64 * KiB)) $MiB $((10 * MiB))
	umount_cgroup
done
