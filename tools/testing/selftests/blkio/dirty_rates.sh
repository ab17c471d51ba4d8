#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Scenario "three limits", buffered writes: 1, 2 and 3 MiB/s on three groups that write to one raw disk at the same
# time, as write() and as the disk see it; and each write() of a group takes as long as its others.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=32

# phase TEXT SIZE OPTION...: three points about the disk, and three about write()
phase() {
	local text=$1 size=$2 i
	shift 2
	start_soon
	for i in 1 2 3; do
		load "g$i" "$i" -f "$DEV" -b -o w -s "$size" -t $SEC -O "$((i * 200))M" -L 200M "$@"
	done
	sleep 2.1
	note_all
	sleep $((SEC - 2))
	for i in 1 2 3; do
		check "$text, $i MiB/s: the disk gets the limit" within "$(moved "$i")" $((i * MiB * (SEC - 2))) 10000
	done
	wait_loads
	for i in 1 2 3; do
		check "$text, $i MiB/s: write() proceeds at the limit" \
			within "$(seen "$i" "$size" $SEC)" $((i * MiB * (SEC - 2))) 10000
		check "$text, $i MiB/s: write() is even, its p99 is the median" \
			within "$(val "$i" p99_ns)" "$(val "$i" p50_ns)" 50000
	done
}

# fast: a task that is slower than its limit pays for many writes at once
fast() {
	cap g1 "$DEV" wbps=$((64 * MiB))
	start_soon
	load g1 fast -f "$DEV" -b -o w -s 4k -t 4 -L 900M
	wait_loads
	check "4 KiB, 64 MiB/s: write() proceeds at the limit" within "$(seen fast $((4 * KiB)) 4)" $((64 * MiB * 2)) 10000
	check "4 KiB, 64 MiB/s: write() is even, its p99 is the median" \
		within "$(val fast p99_ns)" "$(val fast p50_ns)" 50000
}

s5() {
	group g1 g2 g3
	caps "$DEV"
	phase "64 KiB" $((64 * KiB))
	phase "4 KiB" $((4 * KiB))
	fast
}

plan 60
null_dev nb0
on_each s5 v1 v2 memcg
