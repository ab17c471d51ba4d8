#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Scenario S5, buffered writes on v1: caps of 1, 2 and 3 MiB/s on three groups that
# write to one raw disk at once, as write() and as the disk see it.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"

SEC=32

# written NAME: bytes that a group has written to the disk
written() {
	awk -v "dev=$(devno "$DEV")" '$1 == dev && $2 == "Write" { print $3 }' \
		"$CG/$1/blkio.throttle.io_service_bytes"
}

# seen NAME: bytes of I/Os of a load that ended from 2 to SEC s
seen() {
	sed 's/.*\[//; s/\].*//; s/, /\n/g' "$TMP/$1.json" |
		awk -v "size=$SIZE" -v "sec=$SEC" 'NR > 2 && NR <= sec { n += $1 } END { print n * size }'
}

# phase TEXT SIZE OPTION...: three points for each of two ways to look
phase() {
	local text=$1 i first=()
	SIZE=$2
	shift 2
	start_soon
	for i in 1 2 3; do
		load "g$i" "$i" -f "$DEV" -b -o w -s "$SIZE" -t $SEC -O "$((i * 200))M" -L 200M "$@"
	done
	sleep 2.1
	for i in 1 2 3; do first[i]=$(written "g$i"); done
	sleep $((SEC - 2))
	for i in 1 2 3; do
		check "$text, $i MiB/s: the disk" within $(($(written "g$i") - first[i])) $((i * MiB * (SEC - 2))) 10000
	done
	wait_loads
	for i in 1 2 3; do
		check "$text, $i MiB/s: write()" within "$(seen "$i")" $((i * MiB * (SEC - 2))) 10000
	done
	sed 's/^/# /' "/sys/kernel/debug/block/${DEV##*/}/ioband/groups"
}

plan 12
null_dev nb0
mount_cgroup v1
group g1 g2 g3
for i in 1 2 3; do
	cap "g$i" "$DEV" wbps=$((i * MiB))
done
phase "64 KiB" $((64 * KiB))
phase "4 KiB" $((4 * KiB))
