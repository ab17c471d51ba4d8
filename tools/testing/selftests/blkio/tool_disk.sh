#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests tool_disk_check.sh, which is for disks of real machines: the disks that it refuses; that it runs to its end, and
# only reads unless ERASE=yes; that its report has all rows; and that limits and weights that have no effect are
# failures.
# configs: uml-tools-long
. "$(dirname "$0")/lib/blkio_lib.sh"

# on_disk VARIABLE=VALUE...: runs tool_disk_check.sh; sets RC to its status; its output is in out, its report in report
on_disk() {
	RC=0
	: >"$TMP/report"
	env EACH=3 DISK="$DEV" REPORT="$TMP/report" "$@" bash "$HERE/tool_disk_check.sh" >"$TMP/out" 2>&1 || RC=$?
}

# written: the sectors ever written to DEV
written() { awk '{ print $7 }' "/sys/block/${DEV##*/}/stat"; }

# refused TEXT PATTERN VARIABLE=VALUE...: refuses with a cause and a next step, without a report or a write
refused() {
	local text=$1 pattern=$2 before
	shift 2
	before=$(written)
	on_disk "$@"
	check "refused: $text" says_no "$pattern" "$(($(written) - before))"
}
says_no() {
	cat "$TMP/out"
	equal "$2 $RC" "0 1" && grep -q "^error: .*$1" "$TMP/out" && grep -q '^ next: .' "$TMP/out" && [ ! -s "$TMP/report" ]
}

# ended STATUS FAILED ROWS: the report has this many rows and failures, and no row is missing or empty
ended() {
	cp "$TMP/report" "$GUEST_OUT/report-$tap_nr.txt"
	echo "status $RC; $(grep ' FAILED$' "$TMP/report" || tail -n 3 "$TMP/out" "$TMP/report")"
	[ "$RC" = "$1" ] && [ "$(grep -c ' FAILED$' "$TMP/report")" = "$2" ] &&
		[ "$(sed -n '/^what /,$p' "$TMP/report" | grep -cE '^(no limit,|limit of|weights) .* (ok|FAILED|-)$')" = "$3" ]
}

# has KEY: the report has this entry
has() { grep -E "^$1  +[^ ?]" "$TMP/report"; }

refusals() {
	refused "no disk" "no block device" DISK=/dev/null
	mkfs.ext4 -q "$DEV"
	refused "a file system" "something on it: ext4"
	mount -o ro "$DEV" "$TMP/mnt"
	refused "mounted" "in use: $TMP/mnt"
	refused "mounted, to be written to" "in use: $TMP/mnt" ERASE=yes
	refused "mounted, to be written to or read" "in use: $TMP/mnt" ERASE=yes READ=yes
	umount "$TMP/mnt"
	mkswap "$DEV" >/dev/null
	refused "swap space that is not used" "something on it: swap"
	swapon "$DEV"
	refused "swap" "in use: .*SWAP" ERASE=yes
	swapoff "$DEV"
	wipefs -qa "$DEV"
	dm_dev upper "0 $(sectors "$DEV") linear $DEV 0"
	DEV=/dev/used refused "below dm" "in use: dm-" ERASE=yes
	dmsetup --noudevsync --noudevrules remove upper
	md_dev md7 raid1 /dev/used missing || bail "no md"
	DEV=/dev/used refused "below md" "in use: md7" ERASE=yes
	MDADM_NO_UDEV=1 mdadm --stop /dev/md7 2>/dev/null
	DEV=/dev/used
	refused "once of md" "something on it: linux_raid_member"
	wipefs -qa "$DEV"
	python3 -c 'import os, signal, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)
signal.pause()' "$DEV" &
	sleep 1
	refused "a program has it for itself" "in use: a program" ERASE=yes
	kill $!
	wait $! || true
	echo ',,L' | sfdisk -q --no-reread --no-tell-kernel "$DEV"
	refused "a table of partitions" "something on it: dos"
	blockdev --rereadpt "$DEV"
	DEV=/dev/used1
	[ -b "$DEV" ] || mknod "$DEV" b "$(sed s/:.*// /sys/class/block/used1/dev)" "$(sed s/.*:// /sys/class/block/used1/dev)"
	DEV=/dev/used refused "a partition" "is a partition" DISK=/dev/used1
	DEV=/dev/used
	wipefs -qa "$DEV"
	blockdev --rereadpt "$DEV"
}

# reads: a run on a disk that has data on it
reads() {
	local before
	before=$(written)
	on_disk READ=yes
	check "$CGV: a run without ERASE=yes succeeds, with all rows in its report" ended 0 0 14
	check "$CGV: a run without ERASE=yes writes nothing" equal "$(written)" "$before"
	check "$CGV: the report names the hierarchy" equal "$(sed -n 's/^hierarchy  *//p' "$TMP/report")" "cgroup $CGV"
	check "$CGV: a run leaves no group behind" equal "$(ls -d "$CG"/tool_disk_check* 2>/dev/null)" ""
}

# disobeyed: a task removes all limits as soon as they are set
disobeyed() {
	local pid
	(
		trap - EXIT
		while sleep 0.05; do
			for file in "$CG"/tool_disk_check*/a/io.max; do echo "$(devno "$DEV") rbps=max riops=max" >"$file" || true; done 2>/dev/null
		done
	) &
	pid=$!
	on_disk
	kill $pid
	wait $pid || true
	check "limits that another task removes: four rows are failures, no others" ended 1 4 14
	device weights=off
	on_disk
	check "weights that are off: the rows of 3:1 are failures, no others" ended 1 2 14
	check "the report tells that weights are off" grep -q '^set before .*weights=off' "$TMP/report"
	device weights=on
}

mkdir "$TMP/mnt"
plan 33
mount_cgroup v2
null_dev used memory_backed=1 size=256 completion_nsec=16000000 hw_queue_depth=8
refusals
on_disk ERASE=yes
check "ERASE=yes: the run succeeds, with all rows in its report" ended 0 0 28
check "ERASE=yes: the run writes to the disk" in_range "$(written)" 30000 100000000
for key in kernel CPUs disk scheduler queue hierarchy; do
	check "the report has: $key" has "$key"
done
disobeyed
mkfs.ext4 -q "$DEV"
reads
umount_cgroup
mount_cgroup v1
mount -o ro "$DEV" "$TMP/mnt"
reads
check "READ=yes on a mounted disk: the report tells that it was mounted" grep -q "^used by  *$TMP/mnt" "$TMP/report"
umount "$TMP/mnt"
