#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# Weights are set, changed and removed under load, with groups, tasks, limits, schedulers and disks: each I/O ends once,
# all data is right, no bio waits in the end, and groups can be removed.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"
# shellcheck source=lib/stress_changes.sh
. "$HERE/lib/stress_changes.sh"

# queued DISK: the bios that wait for their share or are in flight, and those in flight that passed without waiting
queued() {
	sed -n 's/.*outstanding=\([0-9]*\) passed=\([0-9]*\).*/\1 \2/p' "/sys/kernel/debug/block/$1/ioband/share"
}
nobody_waits() { [ "$(queued "$1")" = "0 0" ]; }

# flood GROUP: saturates the disk for a while; without this no I/O would have to wait.
flood() {
	(exec_in "$1" flood blkio_load -f "$DEV" -s 4k -p rand -d 64 -n 400)
}

# gate: notes how often the gate has opened
gate() {
	sed -n 's/.*opened=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/$DISK/ioband/share" >"$TMP/opened"
}

# The disk is removed at any moment of a load that shares it.
remove_race() {
	local i
	group ra rb
	for ((i = 1; i <= ${ROUNDS:-6}; i++)); do
		smp_null smpnull hw_queue_depth=4
		weight ra $((100 * i))
		verify ra load0 -b 65536 -d 16 -o 0 -s $PART -S "$i" "$DEV"
		verify rb load1 -b 4096 -d 64 -o $PART -s $PART -S "$i" "$DEV"
		sleep "0.$((i % 10))"
		null_off smpnull
		conserved load0 load1 || return 1
		null_end smpnull
	done
}

# Weights above, limits below: a bio keeps its place above only while it is in flight. md raid0 passes the bio itself
# on, dm a copy. Each piece of a large bio is charged to the limit in I/Os.
stacked() {
	local i top
	smp_null below1 hw_queue_depth=8 max_sectors=64
	smp_null below2 hw_queue_depth=8 max_sectors=64
	if [ "$1" = md ]; then
		md_dev md9 raid0 /dev/below1 /dev/below2 || bail "the kernel has no RAID0"
		top=/dev/md9
	else
		dm_dev top "0 $(sectors /dev/below1) linear /dev/below1 0"
		top=$DEV
	fi
	weight a 500
	weight b 100
	for i in 1 2; do
		cap a "/dev/below$i" wbps=$((2 * MiB)) wiops=300 riops=1000
		cap b "/dev/below$i" wiops=200
	done
	verify a load0 -b 262144 -d 8 -o 0 -s $PART -S 1 -w "$TMP/load0.state" "$top"
	verify b load1 -b 131072 -d 16 -o $PART -s $PART -S 2 -w "$TMP/load1.state" "$top"
	sleep "$SECONDS_EACH"
	for i in 1 2; do
		cap a "/dev/below$i" rbps=max wbps=max riops=max wiops=max
		cap b "/dev/below$i" rbps=max wbps=max riops=max wiops=max
	done
	stop load0 load1
	intact load0 load1 || return 1
	for i in below1 below2 "${top##*/}"; do
		wait_for "outstanding on $i" nobody_waits "$i" || return 1
	done
	written load0 "$top" -b 262144 -o 0 -s $PART && written load1 "$top" -b 131072 -o $PART -s $PART || return 1
	if [ "$1" = md ]; then MDADM_NO_UDEV=1 mdadm --stop "$top"; else dmsetup --noudevsync remove --retry top; fi
	null_end below1
	null_end below2
}

went_on() { [ "$(completions below2)" -gt "$1" ]; }

# Half of a disk hangs from time to time, for longer than the gate waits for it, and then fails its I/Os for a while.
# The group on the other half goes on meanwhile, and all data is right afterwards.
partly_hung() {
	local half i leg before rc=0
	smp_null below1 hw_queue_depth=8
	smp_null below2 hw_queue_depth=8
	half=$(($(sectors /dev/below1) / 2))
	dm_dev leg "0 $half flakey /dev/below1 0 2 1 1 error_writes" || bail "the kernel has no dm-flakey"
	leg=$DEV
	dm_dev halves "0 $half linear $leg 0
$half $half linear /dev/below2 0"
	weight a 100
	weight b 300
	verify a load0 -b 65536 -d 16 -o 0 -s $PART -S 1 "$DEV"
	verify b load1 -b 4096 -d 16 -o $((half * 512)) -s $PART -S 2 -w "$TMP/load1.state" "$DEV"
	for ((i = 0; i < ${ROUNDS:-6}; i++)); do
		sleep 0.3
		dmsetup --noudevsync suspend --noflush --nolockfs leg
		sleep 0.3
		before=$(completions below2)
		HANG_S=60 wait_for "I/O on below2 after $before" went_on "$before" || rc=1
		dmsetup --noudevsync resume leg
		[ $rc = 0 ] || return 1
	done
	stop load0 load1
	conserved load0 && intact load1 || return 1
	for i in below1 below2 "${leg##*/}" "${DEV##*/}"; do
		wait_for "outstanding on $i" nobody_waits "$i" || return 1
	done
	written load1 "$DEV" -b 4096 -o $((half * 512)) -s $PART || return 1
	dmsetup --noudevsync remove --retry halves
	dmsetup --noudevsync remove --retry leg
	null_end below1
	null_end below2
}

# completions DISK: the number of reads and writes that the disk has completed
completions() { awk '{ print $1 + $5 }' "/sys/block/$1/stat"; }

plan $((6 * 4 + 6))
leaks_begin

mount_cgroup v2
group a a/x a/y b b/z
ALL="a a/x a/y b b/z"
WHERE="a/x a/y b/z b/z"
scenario "v2, weights" "$WHERE" "change_weight $ALL" "look $ALL"
scenario "v2, weights and limits" "$WHERE" "change_weight $ALL" "rules $ALL" "queue"
scenario "v2, weights, groups and tasks" "$WHERE" "change_weight $ALL" "groups a/" "groups b/" "migrate a/x a/y b/z" "cpus" "elevator"
LOAD_DEPTH=2
scenario "v2, a gate that opens and closes" "$WHERE" "change_weight $ALL" "flood b" "gate"
# How often the gate opens depends on the machine: weight_open asserts it in virtual time.
echo "# the gate opened $(cat "$TMP/opened") times"
LOAD_DEPTH=16
umount_cgroup
mount_cgroup v2
check "v2: the disk is removed while it is shared: all I/O ends" remove_race
group a b
check "weights on dm, limits below: all I/O ends and the data is right" stacked dm
check "weights on md, limits below: all I/O ends and the data is right" stacked md
check "half of a disk hangs, then fails its I/Os: the other half goes on" partly_hung
umount_cgroup

mount_cgroup v1
group a b a/x
ALL="a b a/x /"
WHERE="a b a/x /"
scenario "v1, weights" "$WHERE" "change_weight $ALL" "look $ALL"
scenario "v1, weights, groups and tasks" "$WHERE" "change_weight $ALL" "rules a b" "groups a/" "migrate $ALL" "cpus" "elevator"
umount_cgroup

leak_point
check "the kernel log has no splats" no_splat
