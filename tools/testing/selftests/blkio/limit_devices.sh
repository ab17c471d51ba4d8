#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Limits on each kind of device: request-based and bio-based ones, several at once, with separate limits
# for reads and writes, with limits in bytes and in I/Os together, and for the root group on v1.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

SEC=10

# holds DESCRIPTION GROUP: 1 MiB/s for reads and 2 MiB/s for writes, with 64 KiB I/Os on DEV. I/O n is
# dispatched at n * c: 160 reads and 320 writes in 10 s; on a slow device the last I/O may end after
# that.
holds() {
	cap "$2" "$DEV" rbps=$MiB wbps=$((2 * MiB))
	start_soon
	load "$2" r -f "$DEV" -s 64k -t $SEC -w 1
	load "$2" w -f "$DEV" -s 64k -t $SEC -w 1 -o w
	wait_loads
	cap "$2" "$DEV" rbps=max wbps=max
	check "$CGV $1: number of reads in 10 s at the limit" in_range "$(val r ios)" 159 160
	check "$CGV $1: number of writes in 10 s at the limit" in_range "$(val w ios)" 319 320
	check "$CGV $1: latency of reads at the limit" within "$(val r p99_ns)" 62500000 10000
	check "$CGV $1: latency of writes at the limit" within "$(val w p99_ns)" 31250000 10000
}

# unlimited DESCRIPTION GROUP: without limits the device is as fast as before
unlimited() {
	start_soon
	load "$2" r -f "$DEV" -s 64k -n 200
	wait_loads
	check "$1" in_range $(($(val r end_ns) - $(val r start_ns))) 0 100000000
}

# several: three devices at once, each with its own limit
several() {
	local i
	for i in 1 2 3; do
		cap g "/dev/nb$i" rbps=$((i * MiB)) wbps=$((i * MiB))
		[ $i != 1 ] || start_soon
		load g "$i" -f "/dev/nb$i" -s 64k -t $SEC
	done
	wait_loads
	for i in 1 2 3; do
		cap g "/dev/nb$i" rbps=max wbps=max
		check "$CGV three devices at once: device $i has its own limit" equal "$(val $i ios)" $((160 * i))
	done
}

# goes OPTION...: the time, in ms, to remove a disk below a file system, when a task was killed and its I/O is held
# for hours
goes() {
	local begin pid
	echo 3 >/proc/sys/vm/drop_caches
	(in_group g dd "$@" bs=256k status=none) 2>/dev/null &
	pid=$!
	sleep 1
	pkill -KILL -x dd
	wait $pid || true
	begin=$(awk '{ printf "%d", $1 * 1000 }' /proc/uptime)
	null_off going
	echo $(($(awk '{ printf "%d", $1 * 1000 }' /proc/uptime) - begin))
}

# going LIMIT OPTION...: a point about the removal of a disk with this limit
going() {
	mount_cgroup v2
	group g
	null_dev going memory_backed=1 size=64
	mkfs.ext4 -q -F -E lazy_itable_init=0 "$DEV"
	mkdir -p "$TMP/going"
	mount "$DEV" "$TMP/going"
	undo+=("! mountpoint -q $TMP/going || umount $TMP/going")
	dd if=/dev/zero of="$TMP/going/file" bs=1M count=8 status=none
	sync
	cap g "$DEV" "$1"
	check "a disk is removed while $1 holds I/O of a killed task: the removal does not wait" \
		in_range "$(goes "${@:2}")" 0 500
	umount "$TMP/going"
	rmdir "$NULLB/going"
	umount_cgroup
}

plan 65
going rbps=1 if="$TMP/going/file" of=/dev/null
going wbps=1 if=/dev/zero of="$TMP/going/file" oflag=direct conv=notrunc
null_dev nb1 memory_backed=1 size=64
null_dev nb2 memory_backed=1 size=64
null_dev nb3
for tool in mdadm dmsetup; do
	command -v $tool >/dev/null || skip_all "needs $tool"
done
dm_dev bklinear "0 131072 linear /dev/nb3 2048"
linear=$DEV
null_dev nb4
addpart /dev/nb4 1 2048 131072
dm_dev bkpart "0 131072 linear /dev/nb4p1 0"
part=$DEV
dm_dev bkstripe "0 262144 striped 2 128 /dev/nb3 524288 /dev/nb3 1048576"
stripe=$DEV
md_dev md7 raid1 /dev/nb1 /dev/nb2 || bail "no RAID1"
md=$DEV

# root_group: the limit of the root group, on v1 only
root_group() {
	DEV=/dev/nb3
	cap / "$DEV" rbps=$MiB
	start_soon
	load / r -f "$DEV" -s 64k -t $SEC -w 1
	wait_loads
	check "root group: a stream at 1048576 B/s does the ideal number of I/Os" equal "$(val r ios)" 160
	check "root group: latency at the limit" within "$(val r p99_ns)" 62500000 10000
	unlimited "root group: not those below" g
	cap / "$DEV" rbps=max
	unlimited "root group: limit removed" /
}

for version in v1 v2; do
	mount_cgroup $version
	group g
	for DEV in /dev/nb3 /dev/ram0 "$linear" "$part" "$stripe" "$md"; do
		[ -b "$DEV" ] || bail "no $DEV"
		holds "$(basename "$DEV")" g
	done
	several
	[ $version = v2 ] || root_group
	# loop devices are last, since their workers keep references on groups of the hierarchy
	if [ $version = v2 ]; then
		loop_dev 64
		holds "$(basename "$DEV")" g
	fi
	umount_cgroup
done
md_end() { MDADM_NO_UDEV=1 mdadm --stop "$md" 2>/dev/null; }
check "the RAID can be stopped" md_end
