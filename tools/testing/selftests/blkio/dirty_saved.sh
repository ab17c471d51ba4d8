#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Buffered writes of a group that stays below its limit are as fast as without it: on a disk with a limit in bytes or in
# I/Os, and on dm and btrfs above such a disk. Time in which nothing was dirty counts for nothing.
# configs: uml-vt
# memory: 2048
# timeout: 600
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=12

# writer FILE SIZE THINK: a task of g1 writes SIZE bytes every THINK seconds for SEC seconds
writer() {
	note_all
	start_soon
	load g1 writer -f "$1" -b -o w -s "$2" -T "$3" -t $SEC -L 300M
	wait_loads
}

# below TEXT FILE BYTES THINK LIMIT...: a task that writes so much does as many writes under LIMIT on DEV as without it,
# but for the first 2 s, in which it is not known yet which disk the pages are on
below() {
	local text=$1 free
	writer "$2" "$3" "$4"
	free=$(seen writer "$3" $SEC)
	[ "$free" -gt 0 ] || bail "the writer has written nothing to $2"
	sync
	cap g1 "$DEV" "${@:5}"
	writer "$2" "$3" "$4"
	check "$text, ${*:5}: as many writes as without a limit" within "$(seen writer "$3" $SEC)" "$free" 10000
	sync
	unlimited
}

unlimited() { cap g1 "$DEV" wbps=max wiops=max; }

# 64 KiB every 8 ms are 7.7 MiB/s, and 1900 I/Os of 4 KiB a second
all_below() {
	below "$1" "$2" $((64 * KiB)) 0.008 wbps=$((10 * MiB))
	below "$1" "$2" $((64 * KiB)) 0.008 wbps=$((8 * MiB))
	below "$1" "$2" $((64 * KiB)) 0.008 wiops=2500
	below "$1" "$2" $((4 * KiB)) 0.002 wiops=600
	below "$1" "$2" $((4 * KiB)) 0.05 wiops=25
	below "$1" "$2" $((64 * KiB)) 0.5 wbps=$((160 * KiB))
}

# burst TEXT FILE: after time in which nothing was dirty, 8 MiB at 1 MiB/s take 8 s, and so do 8 more after them
burst() {
	local begin took
	cap g1 "$DEV" wbps=$MiB
	sleep 20
	begin=$(now_ms)
	in_group g1 dd if=/dev/zero of="$2" bs=1M count=8 conv=notrunc,fsync status=none
	in_group g1 dd if=/dev/zero of="$2" bs=1M count=8 conv=notrunc,fsync status=none
	in_group g1 dd if=/dev/zero of="$2" bs=4k count=1 conv=notrunc,fsync status=none
	took=$(($(now_ms) - begin))
	check "$1, 16 MiB after 20 s in which nothing was dirty: they take 16 s at 1 MiB/s" in_range $took 15700 18000
	unlimited
}

# direct TEXT FILE: dirty pages, and direct writes after them, get the limit together, though pages wait for the flusher
direct() {
	local total
	cap g1 "$DEV" wbps=$((4 * MiB))
	note_all
	start_soon
	load g1 writer -f "$2" -b -o w -s 64k -T 0.03 -t 10 -L 300M
	wait_loads
	start_soon
	load g1 direct -f "$DEV" -o w -s 64k -t 10 -O 900M
	wait_loads
	sync
	total=$(moved 1)
	check "$1: 20 s of writes, buffered and direct, get the limit" \
		in_range "$total" $((60 * MiB)) $((81 * MiB))
	unlimited
}

# large TEXT FILE: direct writes that cost more than a burst save up at the limit, while dirty pages need little of it
large() {
	cap g1 "$DEV" wbps=$((10 * MiB))
	start_soon
	load g1 writer -f "$2" -b -o w -s 4k -T 0.009 -t 10 -L 300M
	load g1 direct -f "$DEV" -o w -s 1M -t 10 -O 600M -L 300M
	wait_loads
	check "$1: direct writes of 1 MiB beside a little writeback get what is left of the limit" \
		in_range "$(val direct bytes)" $((85 * MiB)) $((101 * MiB))
	unlimited
}

# other TEXT FILE OTHER: pages that are dirty on another disk pay for nothing
other() {
	local begin i took expire
	expire=$(cat /proc/sys/vm/dirty_expire_centisecs)
	echo 100000 >/proc/sys/vm/dirty_expire_centisecs
	cap g1 "$DEV" wbps=$MiB
	in_group g1 dd if=/dev/zero of="$2" bs=64k count=1 conv=notrunc,fsync status=none
	in_group g1 dd if=/dev/zero of="$3" bs=1M count=64 conv=notrunc status=none
	start_soon
	load g1 dirty -f "$3" -b -o w -s 4k -T 0.02 -t 40 -L 1M
	wait_loads
	begin=$(now_ms)
	for i in 1 2 3; do
		in_group g1 dd if=/dev/zero of="$2" bs=1M count=8 conv=notrunc,fsync status=none
	done
	in_group g1 dd if=/dev/zero of="$2" bs=4k count=1 conv=notrunc,fsync status=none
	took=$(($(now_ms) - begin))
	check "$1, 24 MiB after 40 s in which pages of another disk were dirty: they take 22 s at least at 1 MiB/s" \
		in_range $took 22000 27000
	unlimited
	echo "$expire" >/proc/sys/vm/dirty_expire_centisecs
	sync
}

on_dm() {
	local disk=$DEV top apart
	dm_dev above "0 $(sectors "$disk") linear $disk 0" || bail "no dm"
	top=$DEV
	dm_dev apart "0 $(sectors /dev/nf) linear /dev/nf 0" || bail "no dm"
	apart=$DEV
	DEV=$disk
	all_below "dm" "$top"
	burst "dm" "$top"
	direct "dm" "$top"
	DEV=/dev/nf large "dm" "$apart"
	other "dm" "$top" "$apart"
	dmsetup --noudevsync --noudevrules remove --retry above
	dmsetup --noudevsync --noudevrules remove --retry apart
}

# one bio writes all that is dirty, which is more than what is saved
on_xfs() {
	local disk=$DEV
	dm_dev above "0 $(sectors "$disk") linear $disk 0" || bail "no dm"
	make_fs xfs "$DEV" -q -f
	DEV=$disk
	: >"$MNT/file"
	below "xfs on dm" "$MNT/file" $((64 * KiB)) 0.008 wbps=$((10 * MiB))
	below "xfs on dm" "$MNT/file" $((64 * KiB)) 0.008 wbps=$((9 * MiB))
	umount "$MNT"
	dmsetup --noudevsync --noudevrules remove --retry above
}

on_btrfs() {
	make_fs btrfs "$DEV" -q -f
	: >"$MNT/file"
	below "btrfs" "$MNT/file" $((64 * KiB)) 0.008 wbps=$((10 * MiB))
	below "btrfs" "$MNT/file" $((64 * KiB)) 0.008 wbps=$((9 * MiB))
	umount "$MNT"
}

all() {
	group g1 g2 g3
	all_below "disk" "$DEV"
	burst "disk" "$DEV"
	direct "disk" "$DEV"
	on_dm
	on_xfs
	on_btrfs
}

plan 44
null_dev nf memory_backed=1
# a disk of 20 MiB/s that does one I/O at a time
null_dev ns hw_queue_depth=1 completion_nsec=3100000 max_sectors=128 memory_backed=1
on_each all v1 v2
