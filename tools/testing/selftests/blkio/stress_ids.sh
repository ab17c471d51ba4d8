#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# Dirtiers of pages on v1 come and go by thousands, on two CPUs: with blkio in a hierarchy of its own and together with
# memory; tasks are moved from group to group while they write. All bytes are charged once, and no page stays counted.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

SEC=${SEC:-5} ROUNDS=${ROUNDS:-4} NR=${NR:-40} DISKS=${DISKS:-8}

settled() { sync; echo 3 >/proc/sys/vm/drop_caches; no_owners && [ "$(dying)" -le 0 ]; }
# on_disk: the bytes that the disk got; charged: the bytes charged to all groups, including the root group
on_disk() { awk '{ print $7 * 512 }' "/sys/block/$DISK/stat"; }
charged() {
	awk -v "dev=$(devno "$DEV")" '$1 == dev && $2 == "Write" { n += $3 } END { print n + 0 }' \
		"$CG/blkio.throttle.io_service_bytes_recursive"
}

come_and_go() { python3 "$HERE/lib/dirty_ids.py" "$CG/top" "$ROUNDS" "$NR" "${disks[@]}"; }

# writer GROUP FILE: writes 64 KiB at a time
writer() {
	local n=0
	echo "$BASHPID" >"$CG/$1/cgroup.procs"
	while [ -e "$TMP/go" ]; do
		dd if=/dev/zero "of=$2" bs=64k seek=$((n++ % 256)) count=1 conv=notrunc status=none || return 1
	done
}

# mover: moves all writers, each to any group, all the time
mover() {
	local pid end=$((SECONDS + SEC))
	while [ $SECONDS -lt $end ]; do
		while read -r pid; do
			echo "$pid" >"$CG/top/m$((RANDOM % 3))/cgroup.procs"
		done < <(cat "$CG"/top/m?/cgroup.procs)
		sleep 0.0$((RANDOM % 5))
	done 2>/dev/null
	rm "$TMP/go"
}

# migrate: every byte that the disk got is charged to a group, once
migrate() {
	local i before
	sync
	before=$(($(on_disk) - $(charged)))
	: >"$TMP/go"
	for i in 0 1 2; do
		background "writer$i" writer "top/m$i" "$DEV"
	done
	mover
	ended writer0 writer1 writer2 || return 1
	sync
	in_range "$(charged)" $((64 * KiB)) $((1 << 40)) && equal $(($(on_disk) - $(charged))) "$before"
}

# all_of TEXT CONTROLLERS: the 4 points of a hierarchy
all_of() {
	local i
	mount_cgroup v1 "$2"
	group top top/m0 top/m1 top/m2
	for i in "${disks[@]}"; do cap top "$i" wbps=$((1024 * MiB)); done
	check "$1: groups with dirty pages come and go" come_and_go
	check "$1: the groups that came and went are freed" wait_for "no owner and no group" settled
	for i in 0 1 2; do cap top/m$i "$DEV" wbps=$(((i + 1) * MiB)); done
	check "$1: tasks that are moved while they write: each byte is charged once" migrate
	check "$1: the groups of moved tasks are freed" wait_for "no owner and no group" settled
	umount_cgroup
}

plan 10
leaks_begin
disks=()
for ((i = 0; i < DISKS; i++)); do
	smp_null "nb$i"
	disks+=("$DEV")
done
# the last close of a disk writes its pages back
exec 9<"$DEV"
all_of "blkio" blkio
all_of "blkio and memory" blkio,memory
exec 9<&-
leak_point
check "the kernel log has no splats" no_splat
