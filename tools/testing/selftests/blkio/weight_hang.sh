#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Part of a disk hangs for two seconds: the group whose I/Os hang occupies no places of the other group, and has its
# share again as soon as they complete. Then the whole disk hangs: all I/O is dispatched to it.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

NAMES=(hung well)
DEPTHS=(64 64)

# state WORD: the number of I/Os for this word in the file share
state() { sed -n "s/.* $1=\([0-9]*\).*/\1/p" "/sys/kernel/debug/block/${TOP##*/}/ioband/share"; }

# hangs VOLUME FROM TO: a volume hangs in between, s after START; sets the state in the middle
hangs() {
	until_ns $((START + $2 * 1000000000))
	dmsetup --noudevsync suspend --noflush --nolockfs "$1"
	until_ns $((START + ($2 + $3) * 500000000))
	state stuck >"$TMP/stuck"
	state inflight >"$TMP/inflight"
	state outstanding >"$TMP/outstanding"
	until_ns $((START + $3 * 1000000000))
	dmsetup --noudevsync resume "$1"
}

# part NAME FROM TO: the I/Os of a load in 10 ms are, on average, half of what both disks do
part() {
	local mean
	mean=$(sed 's/.*\[//; s/\].*//; s/, /\n/g' "$TMP/$1.json" |
		awk -v "from=$2" -v "to=$3" 'NR > from && NR <= to { n += $1 } END { printf "%d", n / (to - from) }')
	in_range "$mean" 152 168
}

# Two parts of TOP, which is made of two disks; the first of them can be made to hang. The disks do 32 I/Os at a time,
# 1 ms each: 320 in 10 ms.
parts() {
	local half table one
	null_dev hungdisk completion_nsec=1000000 hw_queue_depth=16
	half=$(sectors "$DEV")
	dm_dev hangs "0 $half linear $DEV 0" || skip_all "the kernel has no device mapper"
	one=$DEV
	null_dev welldisk completion_nsec=1000000 hw_queue_depth=16
	table="0 $half linear $one 0
$half $half linear $DEV 0"
	dm_dev top "$table"
	TOP=$DEV
	dm_dev first "0 $half linear $TOP 0"
	DEVS=("$DEV")
	dm_dev second "0 $half linear $TOP $half"
	DEVS+=("$DEV")
}

mount_cgroup v2
group hung well
plan 9
parts
for name in "${NAMES[@]}"; do weight "$name" 200 "$TOP"; done
know "$TOP"
T=6
start_soon
for i in 0 1; do
	load "${NAMES[i]}" "${NAMES[i]}" -f "${DEVS[i]}" -s 4k -p rand -d 64 -t $T -i 0.01 -S $((i + 1))
done
hangs hangs 2 4
wait_loads
check "before a part of the disk hangs: half of the disk for the first group" part hung 150 198
check "before a part of the disk hangs: half of the disk for the second group" part well 150 198
check "a part of the disk hangs: the group that uses it gets nothing" bins hung 202 399 0 1
# it takes 100 ms until the hang is known
check "a part of the disk hangs: the other group gets all that its part does" part well 220 395
# and one more I/O each 100 ms
check "a part of the disk hangs: debugfs tells how many I/Os are stuck" in_range "$(cat "$TMP/stuck")" 1 64
check "after the hang: half of the disk for the first group" part hung 430 580
check "after the hang: half of the disk for the second group" part well 430 580
check "after the hang: no I/O is stuck" equal "$(state stuck)" 0

start_soon
for i in 0 1; do
	load "${NAMES[i]}" "${NAMES[i]}" -f "${DEVS[i]}" -s 4k -p rand -d 64 -t 4 -i 0.01 -S $((i + 1))
done
hangs top 1 3
wait_loads
check "the whole disk hangs: all I/O is dispatched to it" equal "$(cat "$TMP/inflight")" "$(cat "$TMP/outstanding")"
