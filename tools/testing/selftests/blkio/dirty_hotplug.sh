#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: qemu
# memory: 1024
# args: movablecore=512M cgroup_disable=memory
# Memory that is added after the first limit, and removed while pages in it are dirty: each page is paid for once, by
# the group that dirtied it. The memory controller is off; otherwise pages without a recorded dirtier would be that
# group's all the same.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

BLOCKS=()

# blocks_go: removes the blocks of memory that can be removed as a whole
blocks_go() {
	local block
	BLOCKS=()
	for block in /sys/devices/system/memory/memory[0-9]*; do
		grep -q Movable "$block/valid_zones" || continue
		echo offline >"$block/state" 2>/dev/null || continue
		BLOCKS+=("$block")
	done
	echo "${#BLOCKS[@]} blocks of memory gone"
	((${#BLOCKS[@]} >= 2))
}

blocks_come() {
	local block
	for block in "${BLOCKS[@]}"; do echo online_movable >"$block/state" || return 1; done
	grep MemFree /proc/meminfo
}

# dirtied MIB: g1 dirties this much page cache of a file, which may be in removable memory
dirtied() { in_group g1 dd if=/dev/zero "of=$MNT/file" bs=1M count="$1" conv=notrunc status=none; }

[ -e /sys/devices/system/memory/block_size_bytes ] || skip_all "the machine has no memory that can be removed"
plan 6
# pages are written only when the test demands it
for key in dirty_writeback_centisecs=0 dirty_background_ratio=80 dirty_ratio=90; do
	undo+=("sysctl -qw vm.${key%=*}=$(sysctl -n "vm.${key%=*}")")
	sysctl -qw "vm.$key"
done
mount_cgroup v2
group g1 g2 g3
null_dev nb0 size=400 memory_backed=1
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
dd if=/dev/zero "of=$MNT/file" bs=1M count=250 status=none
sync
echo 3 >/proc/sys/vm/drop_caches
check "memory is removed before the first limit" blocks_go
cap g1 "$DEV" wbps=$((10240 * MiB))
check "memory is added after the first limit" blocks_come

# more than what has room in the rest of the removable memory
note_all
dirtied 250
sync
check "pages of added memory are paid for" equal "$(moved 1)" $((250 * MiB))

echo 3 >/proc/sys/vm/drop_caches
note_all
dirtied 150
check "memory with dirty pages can be removed" blocks_go
sync
check "pages of removed memory are paid for once" equal "$(moved 1)" $((150 * MiB))
check "no page stays counted" none_left
blocks_come >/dev/null
umount "$MNT"
