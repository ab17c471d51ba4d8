#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Scenario "three limits": 1, 2 and 3 MiB/s on three groups at once, with one 64 KiB stream in each, for
# 30 s: direct read, direct write, buffered read.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

SEC=30 SIZE=$((64 * KiB)) DEVICE_NS=100000

# The ideal follows from the definition of limits. B is 64 KiB here, one I/O (5 ms of 3 MiB/s is less).
# I/O 0 is dispatched at once, I/O n of a backlogged group at n * c, where c = 64 KiB / R. With depth 1
# each I/O takes exactly c from the second on, and 1 + floor((t - device) / c) I/Os end within t
# seconds: 480, 960 and 1440. These are 30 s of R to the byte; what may come on top of it is B.
ideal_ios() { echo $((1 + (SEC * 1000000000 - DEVICE_NS) * $1 / SIZE / 1000000000)); }

# cell NAME RATE MODE: the points about one load
cell() {
	local name=$1 rate=$2 what="$3 at $(($2 / MiB)) MiB/s" bytes p50 p99
	local ideal=$((SIZE * 1000000000 / $2)) all=$((SEC * $2))
	bytes=$(val "$name" bytes)
	p50=$(val "$name" p50_ns)
	p99=$(val "$name" p99_ns)
	note "$what: $bytes bytes, p50 $p50 p99 $p99 max $(val "$name" max_ns) ns, ideal $ideal"
	check "$what: bytes are within 0.25% of R*t" within "$bytes" $all 2500
	if [ "$3" = "buffered read" ]; then
		# Read-ahead determines how large an I/O is and how much of it has been read at the end, so the bytes may
		# also be less by B.
		check "$what: bytes exceed R*t by no more than B and 0.02%" \
			in_range "$bytes" $((all - all / 5000 - SIZE)) $((all + all / 5000 + SIZE))
	else
		check "$what: the ideal number of I/Os" \
			equal "$(val "$name" ios)" "$(ideal_ios "$rate")"
	fi
	check "$what: latency p50 is within 1% of the ideal" within "$p50" "$ideal" 10000
	check "$what: latency p99 is within 1% of the ideal" within "$p99" "$ideal" 10000
}

# phase MODE OPTION...: three groups at once
phase() {
	local mode=$1 i
	shift
	drop_cache
	start_soon
	for i in 1 2 3; do
		load "g$i" "$i" -f "$DEV" -s $SIZE -t $SEC -w 1 -O "$((i * 200))M" -L 200M "$@"
	done
	wait_loads
	for i in 1 2 3; do
		cell "$i" $((i * MiB)) "$mode"
	done
}

plan $((2 * 9 * 4))
null_dev nb0
# With read-ahead of one I/O a buffered reader is a stream of depth 1, too.
echo $((SIZE / KiB)) >"/sys/block/${DEV##*/}/queue/read_ahead_kb"
for version in v1 v2; do
	note "cgroup $version"
	mount_cgroup $version
	group g1 g2 g3
	for i in 1 2 3; do
		cap "g$i" "$DEV" rbps=$((i * MiB)) wbps=$((i * MiB))
	done
	phase "direct read"
	phase "direct write" -o w
	phase "buffered read" -b
	umount_cgroup
done
