#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Pages that are dirty before the first limit since boot have no recorded dirtier: the group of the inode has a debt of
# one second's worth for them at most.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

plan 1
mount_cgroup v2
grep -qw memory "$CG/cgroup.controllers" &&
	echo +memory >"$CG/cgroup.subtree_control"
group early
null_dev early size=400 memory_backed=1
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
in_group early dd if=/dev/zero of="$MNT/early" bs=1M count=32 status=none
cap early "$DEV" wbps=$MiB
sync
check "the first limit with dirty pages: the debt is one second's worth at most, us" \
	in_range "$(debt_usec early)" 0 1100000
umount "$MNT"
