#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Pages that are dirty before the first limit since boot have no recorded dirtier: the group of the inode has a debt of
# one second's worth for them at most. Dirtiers are recorded, which takes memory, from the first limit on writes on.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

free_kib() { awk '/^MemFree/ { print $2 }' /proc/meminfo; }

# costs LIMIT: the memory, in KiB, that is taken by setting this limit
costs() {
	local before
	before=$(free_kib)
	cap early "$DEV" "$1"
	echo $((before - $(free_kib)))
}

# reads COMMAND...: what a group with 1 MiB/s reads in 8 s in which COMMAND reads 64 MiB
reads() {
	local before
	echo 3 >/proc/sys/vm/drop_caches
	before=$(rbytes early)
	in_background early "$@"
	sleep 8
	end_loads
	echo $(($(rbytes early) - before))
}

plan 5
mount_cgroup v2
grep -qw memory "$CG/cgroup.controllers" &&
	echo +memory >"$CG/cgroup.subtree_control"
group early
null_dev early size=400 memory_backed=1
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
# 8 bytes for each page of memory
words=$(awk '/^MemTotal/ { print int($2 / 512) }' /proc/meminfo)
check "a limit on reads does not take memory for each page, KiB" in_range "$(costs rbps=$MiB)" 0 $((words / 2))
# before there is a limit on writes; 8 s, the burst, and one call with its readahead
dd if=/dev/zero of="$MNT/cold" bs=1M count=64 conv=fsync status=none
MOST=$((8 * MiB + 64 * KiB + 2 * MiB))
check "workers of io_uring read at the limit" in_range \
	"$(reads attack_uring reads "$MNT/cold" 0 $((64 * MiB)) 65536 $((64 * MiB)) 60000)" $((7 * MiB)) $MOST
check "sendfile() reads at the limit" in_range "$(reads python3 -c 'import os, sys
os.sendfile(os.open("/dev/null", os.O_WRONLY), os.open(sys.argv[1], os.O_RDONLY), 0, 64 << 20)' "$MNT/cold")" \
	$((7 * MiB)) $MOST
in_group early dd if=/dev/zero of="$MNT/early" bs=1M count=32 status=none
check "a limit on writes does" in_range "$(costs wbps=$MiB)" $((words / 2)) $((words * 2))
sync
check "the first limit with dirty pages: the debt is one second's worth at most, us" \
	in_range "$(debt_usec early)" 0 1100000
umount "$MNT"
