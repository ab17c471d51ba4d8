#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# Stacked and special devices under a load with limits: md RAID1 whose members fail and return, dm that is suspended,
# loop over a file system, and zoned disks, whose writes must keep their order. No I/O is lost and all data is right.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

SIZE=$((16 * MiB))
ROUNDS=${ROUNDS:-3}

md() { MDADM_NO_UDEV=1 mdadm --quiet "$@" >>"$TMP/mdadm.log" 2>&1; }
md_state() { cat "/sys/block/$DISK/md/$1"; }
md_whole() { [ "$(md_state degraded)" = 0 ] && [ "$(md_state sync_action)" = idle ]; }

# make_md: makes a RAID1 of two members, at DEV; each load gets half of it
make_md() {
	local m
	for m in smpm0 smpm1; do smp_null $m size=48; done
	md_dev md9 1 /dev/smpm0 /dev/smpm1
	DISK=md9
}

end_md() {
	md --stop /dev/md9 || { cat "$TMP/mdadm.log"; return 1; }
	null_end smpm0
	null_end smpm1
}

# A member fails, is removed and returns, with a limit on md, then on a member.
md_fail_and_return() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		md /dev/md9 --fail /dev/smpm1 && md /dev/md9 --remove /dev/smpm1 || return 1
		sleep 0.3
		md /dev/md9 --add /dev/smpm1 || return 1
		wait_for "resync" md_whole || return 1
	done
}

# The limit of a member holds bios of md; that member is pulled; md goes on with the other one.
md_member_pulled() {
	cap a /dev/smpm1 wbps=1
	cap b /dev/smpm1 wbps=1
	wait_for "bios held on a member" holds smpm1 2 || return 1
	null_off smpm1
	wait_for "md to notice" degraded
}
degraded() { [ "$(md_state degraded)" = 1 ]; }

md_tests() {
	make_md
	cap a "$DEV" "wbps=$((8 * MiB))" "rbps=$((16 * MiB))"
	cap b "$DEV" wiops=200
	two_loads
	check "md: members fail and return under load" md_fail_and_return
	check "md, members fail and return: no I/O is lost" end_two
	cap a "$DEV" wbps=max rbps=max
	cap b "$DEV" wiops=max
	two_loads
	check "md: a member that holds bios is pulled" md_member_pulled
	check "md, a member is pulled: no I/O is lost" end_two
	check "md: the RAID can be stopped" end_md
}

dm() { dmsetup --noudevsync --noudevrules "$@"; }

dm_suspend() {
	local i
	for ((i = 0; i < ROUNDS * 2; i++)); do
		dm suspend smpdm && cap a "$DEV" "wbps=$(((1 + i) * MiB))" && sleep 0.1 && dm resume smpdm ||
			return 1
		sleep 0.1
	done
}

dm_new_table() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		dm load smpdm --table "0 $(sectors /dev/smplow) linear /dev/smplow 0" && dm suspend smpdm &&
			dm resume smpdm || return 1
	done
}

dm_tests() {
	smp_null smplow
	dm_dev smpdm "0 $(sectors "$DEV") linear $DEV 0"
	smp_dm smpdm
	cap a "$DEV" "wbps=$((4 * MiB))" riops=500
	cap b "$DEV" wiops=100
	cap b /dev/smplow "wbps=$((4 * MiB))"
	two_loads
	check "dm: it is suspended and resumed under load" dm_suspend
	check "dm: its tables are replaced under load" dm_new_table
	check "dm: no I/O is lost" end_two
	dm remove smpdm
	null_end smplow
}

# loop over a file on ext4 on a disk, with limits on both
loop_tests() {
	local back=$TMP/back
	smp_null smplow size=128
	mkfs.ext4 -q -F "$DEV"
	mkdir "$back"
	mount "$DEV" "$back"
	undo+=("umount $back")
	truncate -s 40M "$back/file"
	cap a "$DEV" "wbps=$((8 * MiB))"
	DEV=$(losetup --find --show --direct-io=on "$back/file" 2>/dev/null || losetup --find --show "$back/file")
	undo+=("losetup -d $DEV")
	DISK=${DEV##*/}
	cap a "$DEV" "wbps=$((16 * MiB))" riops=1000
	cap b "$DEV" wiops=200
	two_loads
	sleep 3
	check "loop: no I/O is lost" end_two
	losetup -d "$DEV"
	wait_for umount umount "$back"
	null_end smplow
}

# zoned_write NAME GROUP OFFSET: writes each zone of a part from its start to its end
zoned_write() {
	verify "$2" "$1" -q -b 16384 -d 16 -o "$3" -s $SIZE -w "$TMP/$1.state" "$DEV"
}

wander() {
	local i
	for ((i = 0; i < ROUNDS * 4; i++)); do
		taskset -ap $((1 + i % 3)) "$(cat "$TMP/one.pid")"
		cap a "$DEV" "wbps=$(((4 + i % 5) * MiB))"
		sleep 0.1
	done >/dev/null 2>&1
}

zoned_done() {
	local name
	for name in one two; do
		intact $name && [ "${RESULT[completed]}" = $((SIZE / 16384)) ] || return 1
	done
	written one "$DEV" -b 16384 -s $SIZE && written two "$DEV" -b 16384 -o $SIZE -s $SIZE
}

zoned_tests() {
	smp_null smpzone zoned=1 zone_size=4 size=64
	[ "$(cat /sys/block/smpzone/queue/zoned)" = host-managed ] || bail "no zoned null_blk"
	cap a "$DEV" "wbps=$((4 * MiB))"
	cap b "$DEV" wiops=256
	weight a 600 "$DEV"
	zoned_write one a 0
	zoned_write two b $SIZE
	wander
	check "zoned: writes to a zone keep their order" zoned_done
	null_end smpzone
}

plan 12
leaks_begin
mount_cgroup v2
group a b
md_tests
dm_tests
loop_tests
zoned_tests
umount_cgroup
leak_point
check "the kernel log has no splats" no_splat
