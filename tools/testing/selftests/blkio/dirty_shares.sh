#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Scenario "10/30/60", buffered writes: weights of 100, 300 and 600 on three groups, on one raw disk and in three files
# of one ext4, as write() and as the disk see it.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=12 FROM=3

# shares TEXT A B C: three points
shares() {
	local text=$1 all=$(($2 + $3 + $4)) want
	shift
	echo "# $text: $((all / MiB / (SEC - FROM))) MiB/s"
	for want in 100000 300000 600000; do
		check "$text: the group's share is $((want / 10000)) %" \
			in_range $(($1 * 1000000 / all)) $((want - 10000)) $((want + 10000))
		shift
	done
}

# got N: the bytes that write() of group N took in that time
got() { seen "$1" "$size" $SEC $FROM; }

# phase TEXT SIZE FILE FILE FILE
phase() {
	local text=$1 size=$2 i
	shift 2
	start_soon
	for i in 1 2 3; do
		load "g$i" "$i" -f "${!i}" -b -o w -s "$size" -t $SEC -O "$(((i - 1) * OFFSET))M" -L "${LENGTH}M"
	done
	sleep $FROM.1
	note_all
	sleep $((SEC - FROM))
	shares "$text, the disk" "$(moved 1)" "$(moved 2)" "$(moved 3)"
	wait_loads
	shares "$text, write()" "$(got 1)" "$(got 2)" "$(got 3)"
	sed 's/^/# /' "/sys/kernel/debug/block/${DEV##*/}/ioband/share" /sys/kernel/debug/dirty_owner
}

# mixed FILE: three groups write 64 KiB in turn, then all is written at once
mixed() {
	local i
	note_all
	for i in 1 2 3; do
		in_group "g$i" python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for block in range(16):
    os.pwrite(fd, bytes(65536), (3 * block + int(sys.argv[2]) - 1) * 65536)
' "$1" "$i"
	done
	timeout 60 sync -f "$1" || return 1
	for i in 1 2 3; do
		equal "$(moved "$i")" "$MiB" || return 1
	done
}

# parts: a device that splits no bios itself gets bios of 1 MiB of dirty pages at most
parts() {
	dm_dev "whole$HIERARCHY" "0 400000 linear $DEV 0"
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
	note_all
	in_group g1 dd if=/dev/zero of="$MNT/1" bs=1M count=32 conv=fsync status=none
	check "32 MiB of one file: they are written in bios of 1 MiB" in_range "$(writes_of g1)" 32 40
	check "32 MiB of one file: all bios are charged to its group" equal "$(moved 1)" $((32 * MiB))
	umount "$MNT"
}

plain_disk() {
	null_dev "raw$HIERARCHY" size=4000 mbps=100
	OFFSET=1300 LENGTH=1200
	phase "one raw disk" $((64 * KiB)) "$DEV" "$DEV" "$DEV"
	null_off "raw$HIERARCHY"
}

three_files() {
	local i
	null_dev "files$HIERARCHY" size=400 completion_nsec=1280000 hw_queue_depth=1 max_sectors=256 memory_backed=1
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
	OFFSET=0 LENGTH=100
	for i in 1 2 3; do : >"$MNT/$i"; done
	# Every five seconds the journal writes many small bios, which pass: other groups may not have as many bios in flight
	# meanwhile, which are much larger.
	phase "ext4" $((64 * KiB)) "$MNT/1" "$MNT/2" "$MNT/3"
	umount "$MNT"
	null_gone "files$HIERARCHY"
}

# A part of a bio must not wait for a place that the rest of the same bio occupies.
one_tag() {
	null_dev "tag$HIERARCHY" size=200 completion_nsec=6600000 hw_queue_depth=1 memory_backed=1
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
	check "one tag, a file to which all groups have written: it can be written back" mixed "$MNT/file"
	umount "$MNT"
}

everywhere() {
	group g1 g2 g3
	weight g1 100
	weight g2 300
	weight g3 600
	plain_disk
	three_files
	one_tag
	parts
}

plan 45
on_each everywhere v1 v2 memcg
