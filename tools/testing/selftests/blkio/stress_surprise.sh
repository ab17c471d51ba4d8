#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: qemu
# qemu: -drive driver=null-co,size=64M,read-zeroes=on,snapshot=on,if=none,id=nv -device nvme,drive=nv,serial=nv
# A disk is gone before its driver notices, below a file system whose I/O a limit holds: the driver first tells the file
# system, which waits for held I/O, and then removes the disk.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

CTRL=/sys/class/nvme/nvme0
DEV=/dev/nvme0n1
MNT=$TMP/mnt

# A task was killed whose I/O is held for hours.
held_of_killed() {
	local pid
	echo 3 >/proc/sys/vm/drop_caches
	in_group g dd if="$MNT/file" of=/dev/null bs=256k status=none &
	pid=$!
	wait_for "reads that are held" holds "${DEV##*/}" 1 || return 1
	pkill -KILL -x dd
	wait $pid || true
	holds "${DEV##*/}" 1
}

# The registers are not where the driver looks for them: when it resets the controller it finds none, as if the device
# had been pulled out, and gives up.
pull() {
	printf '\0\0\0\xe0' | dd of="$CTRL/device/config" bs=4 seek=4 conv=notrunc status=none
	background reset bash -c "! echo 1 >$CTRL/reset_controller"
	ended reset
}

no_disk() { [ ! -e "/sys/block/${DEV##*/}" ]; }
goes() {
	background remove bash -c "echo 1 >$CTRL/device/remove"
	ended remove && wait_for "the disk to go" no_disk
}

[ -b "$DEV" ] || skip_all "the machine has no NVMe disk"
plan 6
mount_cgroup v2
group g
mkfs.ext4 -q -F -E lazy_itable_init=0 "$DEV"
mkdir "$MNT"
mount "$DEV" "$MNT"
undo+=("! mountpoint -q $MNT || umount $MNT")
dd if=/dev/zero of="$MNT/file" bs=1M count=8 status=none
sync
cap g "$DEV" rbps=1
check "a limit holds I/O of a killed task" held_of_killed
check "the controller is pulled: its driver gives up" pull
check "after the disk is pulled: the file system can be unmounted" umount "$MNT"
check "after the disk is pulled: the disk is removed" goes
check "after the disk is pulled: the group can be removed" removed g
check "the kernel log has no splats" no_splat
