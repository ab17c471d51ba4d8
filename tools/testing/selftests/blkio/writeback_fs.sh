#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Buffered writes of capped groups on v1, on several file systems: each group has its
# rate, pays for its own bytes in files of its own and in one of all, others' sync does
# not wait, and nothing stays counted.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"
# shellcheck source=blkio_writeback.sh
. "$HERE/blkio_writeback.sh"

SEC=8

# 64 KiB of every 192
IN_TURN='
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
for block in range(64):
    os.pwrite(fd, bytes([int(sys.argv[2])]) * 65536, (3 * block + int(sys.argv[2]) - 1) * 65536)
'

# shared FS PPM: all to a file that is there
shared() {
	local i
	dd if=/dev/zero "of=$MNT/shared" bs=1M count=12 conv=fsync status=none
	note_all
	for i in 1 2 3; do
		in_group "g$i" python3 -c "$IN_TURN" "$MNT/shared" "$i" &
		loads+=($!)
	done
	wait_loads
	sync
	for i in 1 2 3; do
		check "$1, a file of all: group $i pays for its own" within "$(moved "$i")" $((4 * MiB)) "$2"
	done
}

# on FS PPM MKFS_ARGUMENT...: the bytes of a group are exact to PPM
on() {
	local fs=$1 ppm=$2
	shift 2
	null_dev "on$fs" size=800 memory_backed=1
	make_fs "$fs" "$DEV" "$@"
	caps "$DEV"
	rates "$fs" $((64 * KiB)) "$ppm"
	shared "$fs" "$ppm"
	sync
	check "$fs, a file of all: nothing stays counted" none_left
	umount "$MNT"
	null_off "on$fs"
}

plan 60
mount_cgroup v1
group g1 g2 g3
on ext4 0 -q -E lazy_itable_init=0
on xfs 0 -q
# it has no disk of its own
BELOW=1 on btrfs 0 -q
# the nodes it writes are pages of the group as well
on f2fs 10000 -q
on vfat 0
