#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The controllers in two hierarchies of v1: a group with a limit and one without share 16 MiB of memory. The first one gets
# its limit, and the other one does not wait for it. Memory of this shell belongs to the groups for good, so the
# controllers do not go to another hierarchy.
# configs: uml-vt
# memory: 192
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_memcg.sh
. "$HERE/lib/blkio_memcg.sh"

# hierarchy CONTROLLERS DIR: mounts a hierarchy of v1
hierarchy() { mkdir -p "$2" && mount -t cgroup -o "$1" none "$2"; }

# apart: all groups have 16 MiB together
apart() {
	local shared=$TMP/memory/all
	mount_cgroup v1
	group slow free
	cap slow "$DEV" wbps=$MiB
	hierarchy memory "$TMP/memory"
	mkdir "$shared"
	limit_memory "$shared"
	# loads are made by this shell
	echo $$ >"$shared/cgroup.procs"
	phase "$1, v1, apart" "$shared"
	echo $$ >"$TMP/memory/cgroup.procs"
	rmdir "$shared"
	umount "$TMP/memory"
	forget
}

plan 14
null_dev data size=2048 mbps=100
DISK=$DEV
# the last close of a disk writes its pages back
exec 7<>"$DEV"
small_ext4 "$DEV"
apart ext4
umount "$MNT"
DEV=$DISK
apart raw
