#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug qemu
# timeout: 900
# A disk is removed while bios are held on it, and while tasks wait for its limits before they submit I/O: bios and I/O
# end at once with an error, nothing leaks, and the group can be removed.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

# so many bios are held at least: two of the 32 places in line can be those of tickets
HELD=30

# hold_some GROUP CAPPED DEVICE: bios, tasks that write and a task that reads wait for limits of CAPPED for DEVICE that
# let none go today
hold_some() {
	local before
	cap "$2" "$3" rbps=1
	hold_bios "$1" "$2" "$3" && wait_at_door "$1" || return 1
	before=$(held "$DISK")
	# the first read passes on the burst
	background reader in_group "$1" dd if="$DEV" of=/dev/null bs=64k iflag=direct
	wait_for "a read that waits" holds "$DISK" $((before + 1))
}

# failed_at_once LEAST [IOS]: so many bios of the load at least have failed with EIO, and so has an I/O of each task: the
# only one, if IOS is 1
failed_at_once() {
	local name
	conserved load && [ "${RESULT[eio]}" -ge "$1" ] || return 1
	for name in "${DOOR[@]}"; do
		conserved "$name" && [ "${RESULT[eio]}" = 1 ] && [ "${RESULT[completed]}" = "${2:-${RESULT[completed]}}" ] ||
			return 1
	done
	wait_for "the end of the reader" test -s "$TMP/reader.rc" && grep 'Input/output error' "$TMP/reader.out"
}

# all_fail GROUP: all that waited has failed, and a write to the disk, which is open, fails now
all_fail() {
	failed_at_once $HELD 1 && ! in_group "$1" dd if=/dev/zero bs=64k count=1 oflag=direct status=none >&9
}

no_rule_on_dead_disk() {
	local file=$CG/$1/io.max body="$2 wbps=4096"
	[ "$CGV" = v2 ] || { file=$CG/$1/blkio.throttle.write_bps_device body="$2 4096"; }
	# shellcheck disable=SC2016 # expanded by the inner shell
	! bash -c 'echo "$1" >"$2"' - "$body" "$file" 2>"$TMP/err" && grep 'No such device' "$TMP/err"
}

no_trace_of_disk() {
	[ ! -e "/sys/kernel/debug/block/$DISK" ] && [ ! -e "/sys/block/$DISK" ]
}

# remove_disk TEXT CAPPED GROUP: limits of CAPPED hold what GROUP submits
remove_disk() {
	local text=$1 capped=$2 group=$3 number
	smp_null "$DISK"
	number=$(devno "$DEV")
	check "$text: bios are held" hold_some "$group" "$capped" "$DEV"
	exec 9>"$DEV"
	null_off "$DISK"
	check "$text: held bios fail when the disk is removed, and later ones, too" all_fail "$group"
	exec 9>&-
	check "$text: the removed disk has no limits" no_rule_on_dead_disk "$capped" "$number"
	check "$text: the removed disk has no debugfs directory" no_trace_of_disk
	null_end "$DISK"
	smp_null "$DISK"
	verify "$group" load -b 65536 -d 16 -s 33554432 -n 64 "$DEV"
	check "$text: a new disk with the same name has no limits" intact load
	null_end "$DISK"
	forget load reader "${DOOR[@]}"
	[ "$group" = "$capped" ] || rmdir "$CG/$group"
	check "$text: the group can be removed" removed "$capped"
}

# The disk is removed at any moment of a load at full speed.
remove_race() {
	local i
	for ((i = 1; i <= ${ROUNDS:-10}; i++)); do
		smp_null "$DISK"
		cap race "$DEV" "wbps=$((i * MiB))" riops=500
		verify race load -b 16384 -d 64 -s 33554432 -S "$i" "$DEV"
		wait_for "a load that is held" holds "$DISK" 1 || return 1
		sleep "0.$((i % 10))"
		null_end "$DISK"
		conserved load || return 1
	done
}

# make_dm: the first half of dm submits bios in the task's name, the second half by a thread
make_dm() {
	local half
	smp_null smplow
	LOWER=$DEV
	half=$(($(sectors "$DEV") / 2))
	dm_dev smpdm "0 $half linear $DEV 0
$half $half delay $DEV $half 1"
	smp_dm smpdm
}

end_dm() {
	wait_for "dm is not in use" dmsetup --noudevsync --noudevrules remove smpdm
	null_end smplow
}

# Bios that are held above a table fail when the error target replaces it.
dm_table_replaced() {
	local before
	hold_some dm dm "$DEV" || return 1
	before=$(held "$DISK")
	# the device is in use, so it stays, but its target is the error target from now on
	dmsetup --noudevsync --noudevrules remove --force smpdm >"$TMP/dm.out" 2>&1 || true
	holds "$DISK" "$before" || return 1
	cap dm "$DEV" wbps=max rbps=max
	failed_at_once $HELD 1
}

# The disk below dm is removed while it holds bios that a thread of dm has submitted: they are submitted to it, and end,
# and later ones fail. Tasks that use dm wait for what its thread owes on that disk before they submit; their I/O fails.
dm_disk_below_gone() {
	cap dm "$LOWER" rbps=1
	DISK=smplow hold_bios dm dm "$LOWER" || return 1
	# what dm's thread could not leave in line is owed, and tasks wait for that with no place in line
	go_to_door dm
	background reader in_group dm dd if="$DEV" of=/dev/null bs=64k iflag=direct
	sleep 2
	null_off smplow
	failed_at_once 1
}

plan 23
leaks_begin
DISK=smpnull

mount_cgroup v2
group a
remove_disk "v2" a a
group a a/b
remove_disk "v2, rule above" a a/b
group race dm
check "v2: a disk is removed at any moment of a load: all I/O ends" remove_race
make_dm
check "dm: the table is replaced while bios are held: all bios end" dm_table_replaced
end_dm
make_dm
check "dm: the disk below is removed while it holds bios: all bios end, and later ones fail" dm_disk_below_gone
end_dm
umount_cgroup

mount_cgroup v1
DISK=smpnull
group a
remove_disk "v1" a a
umount_cgroup

leak_point
check "the kernel log has no splats" no_splat
