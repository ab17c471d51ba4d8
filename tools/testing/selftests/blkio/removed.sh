#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# A group is removed while its writes are held: they come under the limits that are
# left, so that umount does not wait for a limit that nobody can change any more.
. "$(dirname "$0")/blkio_lib.sh"
. "$HERE/blkio_writeback.sh"

SIZE_MIB=48

# leave_held GROUP: SIZE_MIB of its pages are held or dirty, and nobody is in it
leave_held() {
	in_group "$1" dd if=/dev/zero of="$MNT/f" bs=1M count=$SIZE_MIB status=none
	sleep 3
	held
}

# umount_ms GROUP: the time for umount once GROUP is gone
umount_ms() {
	local begin
	leave_held "$1" >/dev/null || { echo 0; return; }
	rmdir "$CG/$1"
	begin=$(now_ms)
	umount "$MNT"
	echo $(($(now_ms) - begin))
}

# let_go_ms GROUP: the time until nothing is held once GROUP is gone, whose held pages are
# dirty again: its part of the writeback cannot end before these are written.
let_go_ms() {
	local begin
	in_group "$1" dd if=/dev/zero of="$MNT/r" bs=1M count=16 status=none
	held || { echo 99999; return; }
	in_group "$1" dd if=/dev/zero of="$MNT/r" bs=1M count=16 conv=notrunc status=none
	rmdir "$CG/$1"
	begin=$(now_ms)
	while is_held && [ $(($(now_ms) - begin)) -lt 10000 ]; do sleep 0.1; done
	echo $(($(now_ms) - begin))
}

# killed_ms GROUP: the time until a task ends that was killed, waits for the I/O that is held
# for it, and whose group is removed meanwhile
killed_ms() {
	local pid begin
	cap "$1" "$DEV" wbps=$KiB
	smp_verify -b 16384 -d 16 -s $((4 * MiB)) -S 1 "$DEV" >/dev/null &
	pid=$!
	echo $pid >"$CG/$1/cgroup.procs"
	held || { echo 99999; return; }
	kill -KILL $pid
	while [ -n "$(cat "$CG/$1/cgroup.procs")" ]; do sleep 0.01; done
	begin=$(now_ms)
	rmdir "$CG/$1"
	while [ -e /proc/$pid ] && ! grep -q "^State:.Z" /proc/$pid/status && [ $(($(now_ms) - begin)) -lt 10000 ]; do sleep 0.02; done
	echo $(($(now_ms) - begin))
}

mount_again() { mount "$DEV" "$MNT" && rm -f "$MNT/f" && sync; }

# Under the parent's limit it takes as long as that says, but for what was written before
# (4 MiB at most), the first I/O (4 MiB) and what may be owed (1 s).
under_parent() {
	local ms
	cap P "$DEV" wbps=$((4 * MiB))
	cap P/c "$DEV" wbps=$((64 * KiB))
	ms=$(umount_ms P/c)
	cap P "$DEV" wbps=max
	in_range "$ms" $(((SIZE_MIB - 12) * 1000 / 4)) $(((SIZE_MIB + 1) * 1000 / 4))
}

plan 8
sysctl -qw vm.dirty_background_bytes=$MiB vm.dirty_writeback_centisecs=100
null_dev nb0 size=700 mbps=200 memory_backed=1
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
mount_cgroup v2
echo +memory >"$CG/cgroup.subtree_control"
group c d k P P/c
echo "+io +memory" >"$CG/P/cgroup.subtree_control"
cap c "$DEV" wbps=$((64 * KiB))
check "v2: umount after rmdir does not wait for the removed limit" in_range "$(umount_ms c)" 1 1000
mount_again
cap d "$DEV" wbps=$KiB
check "v2: what is held goes though its pages are dirty again" in_range "$(let_go_ms d)" 0 1000
umount "$MNT"
mount_again
check "v2: the parent's limit binds what is left" under_parent
check "v2: a killed task does not wait for its removed group's limit" in_range "$(killed_ms k)" 0 500
mount_again
umount_cgroup
mount_cgroup v1
group c k
cap c "$DEV" wiops=4
in_group c dd if=/dev/zero of="$MNT/d" bs=64k count=64 oflag=direct status=none &
writer=$!
sleep 1
check "v1: writes are held" held
while read -r pid; do echo "$pid" >"$CG/cgroup.procs"; done <"$CG/c/cgroup.procs"
begin=$(now_ms)
rmdir "$CG/c"
wait $writer
check "v1: they go when the group goes" in_range $(($(now_ms) - begin)) 0 500
check "nothing is held" equal "$(grep -c 'held=[1-9]' /sys/kernel/debug/block/nb0/ioband/groups || true)" 0
umount "$MNT"
check "v1: a killed task does not wait for its removed group's limit" in_range "$(killed_ms k)" 0 500
