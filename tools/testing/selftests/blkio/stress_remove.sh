#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug qemu
# timeout: 900
# A disk is removed while bios are held on it: they end at once with an error, nothing leaks, and the group can be
# removed.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

# hold_some GROUP: 16 bios of 64 KiB wait under caps that let none go today
hold_some() {
	verify "$1" load -b 65536 -d 16 -s 33554432 "$DEV"
	# the first bio may pass on the burst
	wait_for "bios held on $DISK" holds "$DISK" 15
}

# the result of the held bios
failed_at_once() {
	conserved load && [ "${RESULT[eio]}" -ge 15 ]
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
	cap "$capped" "$DEV" wbps=1 rbps=1
	check "$text: bios are held" hold_some "$group"
	null_off "$DISK"
	check "$text: held bios fail when the disk is removed, and later ones, too" failed_at_once
	check "$text: the removed disk has no limits" no_rule_on_dead_disk "$capped" "$number"
	check "$text: the removed disk has no debugfs directory" no_trace_of_disk
	null_end "$DISK"
	smp_null "$DISK"
	verify "$group" load -b 65536 -d 16 -s 33554432 -n 64 "$DEV"
	check "$text: a new disk with the same name has no limits" intact load
	null_end "$DISK"
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

make_dm() {
	smp_null smplow
	LOWER=$DEV
	dm_dev smpdm "0 $(sectors "$DEV") linear $DEV 0"
	smp_dm smpdm
}

end_dm() {
	wait_for "dm is not in use" dmsetup --noudevsync --noudevrules remove smpdm
	null_end smplow
}

# Bios that are held above a table fail when the error target replaces it.
dm_table_replaced() {
	cap dm "$DEV" wbps=1 rbps=1
	hold_some dm || return 1
	# the device is in use, so it stays, but its target is the error target from now on
	dmsetup --noudevsync --noudevrules remove --force smpdm >"$TMP/dm.out" 2>&1 || true
	holds "$DISK" 15 || return 1
	cap dm "$DEV" wbps=max rbps=max
	failed_at_once
}

# Bios held on the disk below dm fail when that disk is removed.
dm_disk_below_gone() {
	cap dm "$LOWER" wbps=1 rbps=1
	DISK=smplow hold_some dm || return 1
	null_off smplow
	failed_at_once
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
check "dm: the disk below is removed while it holds bios: all bios fail" dm_disk_below_gone
end_dm
umount_cgroup

mount_cgroup v1
DISK=smpnull
group a
remove_disk "v1" a a
umount_cgroup

leak_point
check "the kernel log has no splats" no_splat
