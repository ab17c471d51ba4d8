#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Limits of a group for all devices, "default" in place of a device: on disks that the group has used and on new ones,
# beside limits for single disks, for dirty pages, while a disk hangs, and when the group is removed.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_abi.sh"
. "$HERE/lib/blkio_writeback.sh"

# rate DEVICE GROUP [OPTION...]: bytes a second of direct reads in the last two of three seconds
rate() {
	local device=$1 group=$2
	shift 2
	start_soon
	load "$group" one -f "$device" -s 64k -d 4 -t 3 "$@"
	wait_loads
	echo $(($(seen one $((64 * KiB)) 3 1) / 2))
}

# buffered_ms GROUP: the time for 8 MiB that the group writes to a file, its first dirty pages ever on that disk
buffered_ms() {
	local begin
	begin=$(now_ms)
	in_group "$1" dd if=/dev/zero of="$MNT/f" bs=64k count=128 status=none
	echo $(($(now_ms) - begin))
}

# on_disk DISK: mounts a file system on a new disk, which no group has used
on_disk() {
	null_dev "$1" size=100 memory_backed=1 completion_nsec=10000
	mkfs.ext4 -q -E lazy_itable_init=0 "$DEV"
	mount "$DEV" "$MNT"
}

# umount_ms: the time to unmount after a group with dirty pages was removed, and another group makes the disk ready
# for limits
umount_ms() {
	local begin
	in_group gone dd if=/dev/zero of="$MNT/f" bs=1M count=16 status=none
	cap_all gone wbps=$((64 * KiB))
	rmdir "$CG/gone"
	cap other "$DEV" wbps=$MiB
	begin=$(now_ms)
	umount "$MNT"
	echo $(($(now_ms) - begin))
}

# one_read DISK: a group reads once, in the background; sets ONE to the process
one_read() {
	in_group h dd if="$1" of=/dev/null bs=64k count=1 iflag=direct status=none 2>"$TMP/dd.err" &
	ONE=$!
	sleep 0.1
}

# a disk that takes a minute for an I/O has one before the limit is set, and one after that
hanging() {
	local begin hung ends
	group h
	null_dev hung completion_nsec=60000000000
	hung=$DEV
	null_dev open completion_nsec=1000000
	one_read "$hung"
	ends=("$ONE")
	begin=$(now_ms)
	# the disk is open while the limit is set
	cap_all h rbps=$MiB 3<"$DEV"
	check "a limit for all devices, while a disk hangs: it is set at once" in_range $(($(now_ms) - begin)) 0 100
	one_read "$hung"
	ends+=("$ONE")
	check "a limit for all devices, while a disk hangs: it applies on a disk that was open" \
		within "$(rate "$DEV" h)" $MiB 20000
	null_dev new completion_nsec=1000000
	check "a limit for all devices, while a disk hangs: it applies on a new disk" within "$(rate "$DEV" h)" $MiB 20000
	# the driver gives the reads up after 30 s
	wait "${ends[@]}" || true
	for dev in hung open new; do null_gone $dev; done
}

both() {
	local file=$1 first second
	group g other gone
	null_dev a completion_nsec=1000000
	first=$DEV
	null_dev b completion_nsec=1000000
	second=$DEV
	cap_all g rbps=$MiB
	check "a limit for all devices applies on a disk" within "$(rate "$first" g)" $MiB 20000
	check "a limit for all devices applies on another disk" within "$(rate "$second" g)" $MiB 20000
	check "a limit for all devices does not apply to another group" \
		in_range "$(rate "$first" other)" $((100 * MiB)) $((100000 * MiB))
	cap g "$first" rbps=$((2 * MiB))
	check "a limit for one disk overrides the one for all devices" within "$(rate "$first" g)" $((2 * MiB)) 20000
	check "a limit for one disk does not change that of another disk" within "$(rate "$second" g)" $MiB 20000
	cap g "$first" rbps=max
	check "no limit, set for one disk, overrides the limit for all devices" \
		in_range "$(rate "$first" g)" $((100 * MiB)) $((100000 * MiB))
	check "no limit, set for one disk, is shown in the file" \
		grep -q "^$(devno "$first") ${file:+rbps=max}" "$CG/g/${file:-blkio.throttle.read_bps_device}"
	cap g "$first" rbps=default
	check "default, set for one disk, restores the limit for all devices" within "$(rate "$first" g)" $MiB 20000
	start_soon
	load g one -f "$first" -s 64k -d 4 -t 3
	sleep 1.1
	cap_all g rbps=$((4 * MiB))
	wait_loads
	check "a limit for all devices that is changed applies to I/Os that are held" \
		within $(($(seen one $((64 * KiB)) 3 1) / 2)) $((4 * MiB)) 20000
	group late
	cap_all late rbps=$MiB
	check "a limit for all devices applies to a new group from its first I/O on" within "$(rate "$first" late)" $MiB 20000
	cap_all g rbps=max
	check "a limit for all devices that is removed applies no more" \
		in_range "$(rate "$first" g)" $((100 * MiB)) $((100000 * MiB))
	check "a limit for all devices that is removed is not shown any more" \
		equal "$(cat "$CG/g/${file:-blkio.throttle.read_bps_device}")" ""
	on_disk c
	cap other "$DEV" rbps=$MiB
	group writer
	cap_all writer wbps=$MiB
	check "a limit for all devices applies to the first pages that a group dirties on a disk" \
		in_range "$(buffered_ms writer)" 6900 8100
	umount "$MNT"
	on_disk d
	check "a removed group has no limit for all devices" in_range "$(umount_ms)" 0 1000
	for dev in a b c d; do null_gone $dev; done
	hanging
}

v1() { both ""; }
v2() {
	both io.max
	# the limits of a parent for all devices apply to all groups below it, on each disk
	null_dev e completion_nsec=1000000
	group P P/x P/y
	cap_all P rbps=$((2 * MiB))
	rate "$DEV" P/x >/dev/null
	start_soon
	load P/x x -f "$DEV" -s 64k -d 4 -t 3
	load P/y y -f "$DEV" -s 64k -d 4 -t 3
	wait_loads
	check "a parent's limit for all devices: all groups below it together get it" \
		within $((($(seen x $((64 * KiB)) 3 1) + $(seen y $((64 * KiB)) 3 1)) / 2)) $((2 * MiB)) 20000
	check "a parent's limit for all devices: the groups below it get equal parts" \
		within $(($(seen x $((64 * KiB)) 3 1) / 2)) $MiB 40000
	null_gone e
}

# what the files accept, refuse and show
formats() {
	local value
	mount_cgroup "$1"
	group g
	null_dev nb0
	DISK=$(devno "$DEV")
	if [ "$1" = v2 ]; then
		F=$CG/g/io.max
		taken "$F" "default rbps=1000 wiops=7\\n" "default rbps=1000 wbps=max riops=max wiops=7"
		taken "$F" "$DISK rbps=max wbps=5\\n" $'default rbps=1000 wbps=max riops=max wiops=7\n'"$DISK rbps=max wbps=5 riops=max wiops=default"
		taken "$F" "$DISK rbps=default wbps=max\\n" "default rbps=1000 wbps=max riops=max wiops=7"
		taken "$F" "  default	rbps=max wiops=max\\n" ""
		for value in "default rbps=default" "default 5" "default x=5" "default" "default8 rbps=5" "Default rbps=5"; do
			refused EINVAL "$F" "$value"
		done
		refused ERANGE "$F" "default rbps=0"
	else
		F=$CG/g/blkio.throttle.write_iops_device
		taken "$F" "default 7\\n" "default 7"
		taken "$F" "$DISK 5\\n" $'default 7\n'"$DISK 5"
		taken "$F" "$DISK 0\\n" $'default 7\n'"$DISK 0"
		taken "$F" "$DISK default\\n" "default 7"
		taken "$F" "default 0\\n" ""
		for value in "default default" "default x" "default" "default8 5" "default max"; do refused EINVAL "$F" "$value"; done
	fi
	umount_cgroup
	null_gone nb0
}

plan $((17 + 19 + 5 + 5 + 4 + 7))
on_each v1 v1
on_each v2 v2
formats v1
formats v2
