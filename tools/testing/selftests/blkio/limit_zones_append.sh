#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# memory: 1024
# Zone appends: the disk decides where in the zone they go, so their order does not matter, and none waits for another
# group's. btrfs writes data by zone appends.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_writeback.sh"

RATE=$((256 * KiB))

# direct GROUP FILE KIB: direct writes of 64 KiB; prints the time they take, ms
direct() {
	local begin
	begin=$(now_ms)
	in_group "$1" dd if=/dev/zero of="$2" bs=64k count=$(($3 / 64)) oflag=direct conv=notrunc status=none || return 1
	echo $(($(now_ms) - begin))
}

# The file system asks the disk for appends: ZA in the trace, or, on older kernels, N, as of all that is neither a
# read nor a write; of these only appends have data.
appends() {
	local events=/sys/kernel/tracing/events/block/block_rq_issue
	mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
	echo 1 >$events/enable
	direct b "$MNT/b" 256 || return 1
	echo 0 >$events/enable
	in_range "$(grep -cE ' (ZA|N)[A-Z]* [1-9]' /sys/kernel/tracing/trace)" 4 8
}

# A limited group waits for its limit; a group without one writes to the same zone meanwhile.
others_free() {
	local first took
	direct a "$MNT/a" 1024 >"$TMP/took" &
	first=$!
	held
	took=$(direct b "$MNT/b" 1024) || return 1
	wait $first || return 1
	in_range "$took" 0 50 && within "$(cat "$TMP/took")" $((15 * 64 * KiB * 1000 / RATE)) 20000
}

# The same for two limited groups, each of which waits for its own limit.
both_limited() {
	local first took
	cap b "$DEV" wbps=$((8 * RATE))
	direct a "$MNT/a" 1024 >"$TMP/took" &
	first=$!
	held
	took=$(direct b "$MNT/b" 1024) || return 1
	wait $first || return 1
	within "$took" $((15 * 64 * KiB * 1000 / RATE / 8)) 20000 &&
		within "$(cat "$TMP/took")" $((15 * 64 * KiB * 1000 / RATE)) 20000
}

mount_cgroup v2
group a b
null_dev nb0 size=1024 zoned=1 zone_size=64 zone_nr_conv=0 memory_backed=1
if ! mkfs.btrfs -q -O zoned -m single -d single "$DEV" >"$TMP/mkfs.log" 2>&1 || ! mount -t btrfs "$DEV" "$MNT"; then
	skip_all "the kernel has no btrfs on zoned disks"
fi
plan 4
undo+=("! mountpoint -q $MNT || umount $MNT")
check "btrfs writes data by zone appends" appends
cap a "$DEV" wbps=$RATE
check "zone appends: a group without limits does not wait for a limited group" others_free
sleep 1
check "zone appends: a group with a higher limit does not wait for one with a lower limit" both_limited
check "zone appends: no write was lost" equal "$(dmesg | grep -cE 'I/O error|BTRFS (error|warning)' || true)" 0
