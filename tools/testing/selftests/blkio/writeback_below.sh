#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Buffered writes of capped groups on v1 to a file system on dm or loop, with the caps
# on that device and on the disk below: as fast as the cap, and nobody waits.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"
# shellcheck source=blkio_writeback.sh
. "$HERE/blkio_writeback.sh"

SEC=6
# should it not be paced, it ends after so many I/Os
MOST=800

# stacked TEXT TOP BELOW: a file system on TOP, caps on one, then on the other
stacked() {
	local i
	make_fs ext4 "$2" -q -E lazy_itable_init=0
	DEV=$2
	caps "$2"
	rates "$1, caps on it" $((64 * KiB))
	for i in 1 2 3; do cap "g$i" "$2" wbps=max; done
	umount "$MNT"
	make_fs ext4 "$2" -q -F -E lazy_itable_init=0
	DEV=$3
	caps "$3"
	BELOW=1 rates "$1, caps on the disk below" $((64 * KiB))
	umount "$MNT"
}

over_dm() {
	local below
	null_dev belowdm size=400 memory_backed=1
	below=$DEV
	dm_dev linear "0 600000 linear $below 0"
	stacked dm-linear "$DEV" "$below"
}

over_loop() {
	local below
	null_dev belowloop size=400 memory_backed=1
	below=$DEV
	DEV=$(losetup --find --show --direct-io=on "$below")
	undo+=("losetup -d $DEV")
	stacked loop "$DEV" "$below"
}

plan 32
mount_cgroup v1
group g1 g2 g3
over_dm
over_loop
