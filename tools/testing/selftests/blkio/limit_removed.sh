#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# A group is removed while its writes are held: they wait for the limits that are left, so that umount does not
# wait for a limit that nobody can change any more.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_writeback.sh"

SIZE_MIB=48
DIRECT_MIB=16

# umount_ms GROUP: the time for umount with dirty pages of a removed group, which had no limit when it dirtied
# them
umount_ms() {
	local begin
	in_group "$1" dd if=/dev/zero of="$MNT/f" bs=1M count=$SIZE_MIB status=none
	cap "$1" "$DEV" wbps=$((64 * KiB))
	rmdir "$CG/$1"
	begin=$(now_ms)
	umount "$MNT"
	echo $(($(now_ms) - begin))
}

# direct_ms GROUP: the time until direct writes of 1 MiB end whose tasks waited for limits when their group was removed
direct_ms() {
	local writers=() pids begin pid i
	for ((i = 0; i < DIRECT_MIB; i++)); do
		in_group "$1" dd if=/dev/zero of="$MNT/direct" bs=1M count=1 seek=$i conv=notrunc oflag=direct status=none &
		writers+=($!)
	done
	for ((i = 0; i < 100; i++)); do
		! grep -q "^cg=$(cgid "$1") write: held=$DIRECT_MIB " "/sys/kernel/debug/block/${DEV##*/}/ioband/groups" || break
		sleep 0.02
	done
	((i < 100)) || { grep held "/sys/kernel/debug/block/${DEV##*/}/ioband/groups" >&2; echo 99999; return; }
	mapfile -t pids <"$CG/$1/cgroup.procs"
	for pid in "${pids[@]}"; do echo "$pid" >"$CG/cgroup.procs"; done
	begin=$(now_ms)
	rmdir "$CG/$1"
	wait "${writers[@]}"
	echo $(($(now_ms) - begin))
}

# killed_ms GROUP: the time until a killed task ends that waits for I/O that is held for it, and whose group is
# removed meanwhile; -1 if the group cannot be removed: older kernels have an exiting task (flag 4) in its
# cgroup.procs until the I/O has ended
killed_ms() {
	local pid begin flags i
	cap "$1" "$DEV" wbps=$KiB
	stress_verify -b 16384 -d 16 -s $((4 * MiB)) -S 1 "$DEV" >/dev/null &
	pid=$!
	echo $pid >"$CG/$1/cgroup.procs"
	held || { echo 99999; return; }
	kill -KILL $pid
	for ((i = 0; i < 100; i++)); do
		[ -n "$(cat "$CG/$1/cgroup.procs")" ] || break
		sleep 0.01
	done
	if ((i == 100)); then
		flags=$(cut -d ' ' -f 9 /proc/$pid/stat)
		cap "$1" "$DEV" wbps=max
		wait $pid
		echo $((flags & 4 ? -1 : 99999))
		return
	fi
	begin=$(now_ms)
	rmdir "$CG/$1"
	while [ -e /proc/$pid ] && ! grep -q "^State:.Z" /proc/$pid/status && [ $(($(now_ms) - begin)) -lt 10000 ]; do sleep 0.02; done
	echo $(($(now_ms) - begin))
}

# killed NAME GROUP: such a task does not wait for the limit
killed() {
	local ms
	ms=$(killed_ms "$2")
	if [ "$ms" = -1 ]; then
		skip "$1" "the kernel has exiting tasks in cgroup.procs"
	else
		check "$1" in_range "$ms" 0 500
	fi
}

mount_again() { mount "$DEV" "$MNT" && rm -f "$MNT/f" && sync; }

# Below the parent's limit it takes as long as that limit demands, except for the first I/Os (a burst and
# 1 MiB).
under_parent() {
	local ms
	cap P "$DEV" wbps=$((4 * MiB))
	cap P/c "$DEV" wbps=$((64 * KiB))
	ms=$(direct_ms P/c)
	cap P "$DEV" wbps=max
	in_range "$ms" $(((DIRECT_MIB - 2) * 1000 / 4)) $(((DIRECT_MIB + 1) * 1000 / 4))
}

plan 7
null_dev nb0 size=700 mbps=200 memory_backed=1
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
mount_cgroup v2
echo +memory >"$CG/cgroup.subtree_control"
group c d k P P/c
echo "+io +memory" >"$CG/P/cgroup.subtree_control"
check "v2: umount after rmdir does not wait for the removed limit" in_range "$(umount_ms c)" 0 1000
mount_again
cap d "$DEV" wbps=$KiB
check "v2: I/O that was held is dispatched when its group is removed" in_range "$(direct_ms d)" 0 1000
check "v2: the parent's limit applies to held I/O of a removed group" under_parent
umount "$MNT"
killed "v2: a killed task does not wait for the limit of its removed group" k
mount_again
umount_cgroup
mount_cgroup v1
group c k
cap c "$DEV" wiops=4
check "v1: I/O that was held is dispatched when its group is removed" in_range "$(direct_ms c)" 0 500
check "after all groups are removed nothing is held" \
	equal "$(grep -c 'held=[1-9]' /sys/kernel/debug/block/nb0/ioband/groups || true)" 0
umount "$MNT"
killed "v1: a killed task does not wait for the limit of its removed group" k
