#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug qemu
# timeout: 900
# A kernel thread submits what a task asks for through io_uring (SQPOLL): the task's group is charged for it, and gets
# no more than its limit.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

RATE=$MiB
# a burst, the largest debt, and a second's worth that may be dirty
MORE=$((64 * KiB + 2 * RATE))

# limited MODE FILE LENGTH MORE: for 6 s, as fast as the limit allows
limited() {
	local from begin bytes took_ms counted=wbytes
	[ "$1" != reads ] || counted=rbytes
	from=$($counted a) begin=$(now_ms)
	(exec_in a sqpoll attack_uring "sqpoll-$1" "$2" 0 "$3" 65536 $((64 * MiB)) 6000) || return 1
	bytes=$(($($counted a) - from)) took_ms=$(($(now_ms) - begin))
	echo "$bytes bytes in $took_ms ms"
	in_range "$bytes" $((64 * KiB)) $((RATE * took_ms / 1000 + $4))
}

plan 6
leaks_begin
mount_cgroup v2
group a
smp_null smpsqpoll memory_backed=1 size=200
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
cap a "$DEV" wbps=$RATE
dd if=/dev/zero of="$MNT/direct" bs=1M count=8 conv=fsync status=none
check "SQPOLL, direct writes: the group gets its limit" limited direct "$MNT/direct" $((8 * MiB)) $((64 * KiB + RATE))
check "SQPOLL, buffered writes: the group gets its limit" limited buffered "$MNT/buffered" $((8 * MiB)) $MORE
check "SQPOLL, buffered writes each with an fsync: the group gets its limit" limited fsync "$MNT/fsync" $((8 * MiB)) $MORE
dd if=/dev/zero of="$MNT/cold" bs=1M count=64 conv=fsync status=none
echo 3 >/proc/sys/vm/drop_caches
cap a "$DEV" rbps=$RATE wbps=max
# what is asked for before the first debt is seen, with its readahead
check "SQPOLL, buffered reads: the group gets its limit" limited reads "$MNT/cold" $((64 * MiB)) $((4 * MiB))
umount "$MNT"
null_end smpsqpoll
umount_cgroup
leak_point
check "the kernel log has no splats" no_splat
