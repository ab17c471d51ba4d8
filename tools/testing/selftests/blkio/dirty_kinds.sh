#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Buffered writes of groups with limits in several ways between write() and the disk: large folios, mappings, zones.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=8

# write_at GROUP FILE AT BYTES: the group writes so many bytes there
write_at() {
	in_group "$1" python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
os.pwrite(fd, bytes(int(sys.argv[3])), int(sys.argv[2]))
' "$2" "$3" "$4"
}

large_folios() {
	null_dev "large$HIERARCHY" size=400 memory_backed=1
	make_fs xfs "$DEV" -q
	caps "$DEV"
	rates "xfs, 1 MiB" $MiB
	note "a folio of several groups"
	dd if=/dev/zero "of=$MNT/all" bs=1M count=8 conv=fsync status=none
	note_all
	write_at g1 "$MNT/all" $MiB $((256 * KiB))
	write_at g2 "$MNT/all" $((MiB + 128 * KiB)) $((256 * KiB))
	write_at g3 "$MNT/all" $((MiB + 512 * KiB)) $((4 * KiB))
	sync
	check "the first group that writes to pages pays for them" equal "$(moved 1)" $((256 * KiB))
	check "a later group pays for pages that were clean" equal "$(moved 2)" $((128 * KiB))
	check "a group that writes one page of a large folio pays for one page" equal "$(moved 3)" $((4 * KiB))
	umount "$MNT"
}

# mapped FS: a group with a limit of 2 MiB/s dirties 12 MiB by stores, and root calls sync in between
mapped() {
	local begin
	truncate -s 12M "$MNT/mapped"
	sync
	note_all
	begin=$(now_ms)
	in_group g2 python3 -c '
import mmap, sys
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as area:
    for page in range(0, len(area), 4096):
        area[page] = 1
' "$MNT/mapped" &
	loads+=($!)
	sleep 3
	check "$1, stores through a mapping: root's sync is quick" quick_sync
	wait_loads
	# it may be ahead by a burst of the clock
	check "$1, stores through a mapping: they are as fast as the limit" within $(($(now_ms) - begin)) 6000 20000
	sync
	# a page that is written while the task waits in its fault is dirtied again
	check "$1, stores through a mapping: the group that stores pays" within "$(moved 2)" $((12 * MiB)) 10000
	check "$1, stores through a mapping: no other group pays" equal "$(moved 1)/$(moved 3)" 0/0
}

mappings() {
	null_dev "mapped$HIERARCHY" size=400 memory_backed=1
	make_fs ext4 "$DEV" -q -E lazy_itable_init=0
	caps "$DEV"
	mapped ext4
	umount "$MNT"
	make_fs xfs "$DEV" -q -f
	mapped xfs
	umount "$MNT"
}

# zones: buffered writes to a zoned disk, one zone of which may be written in any order
zones() {
	local zone begin seek=0
	null_dev "zoned$HIERARCHY" size=64 zoned=1 zone_size=16 zone_nr_conv=1 memory_backed=1 completion_nsec=10000
	cap g1 "$DEV" wbps=$((256 * KiB))
	for zone in conventional sequential; do
		note_all
		begin=$(now_ms)
		in_group g1 dd if=/dev/zero of="$DEV" bs=64k count=32 seek="$seek" \
			conv=notrunc status=none
		# 2 MiB; the burst of 64 KiB may have been used before
		check "a $zone zone: write() proceeds at the limit" in_range $(($(now_ms) - begin)) 7600 8100
		sync
		check "a $zone zone: the group pays for what is written" equal "$(moved 1)" $((2 * MiB))
		seek=256
	done
	cap g1 "$DEV" wbps=max
}

through_files() {
	local disk
	group g1 g2 g3
	large_folios
	mappings
	zones
	for disk in large mapped zoned; do
		null_gone "$disk$HIERARCHY"
	done
}

plan 69
on_each through_files v2 memcg v1
