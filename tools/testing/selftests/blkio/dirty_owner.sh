#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Which group is charged for a buffered write: to files that groups share, and to pages that are rewritten, truncated
# and read back.
# configs: uml-vt uml-debug
. "$(dirname "$0")/lib/blkio_lib.sh"

# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

# put GROUP FILE FROM COUNT: writes MiB of zeros, buffered
put() { in_group "$1" dd if=/dev/zero "of=$2" bs=1M seek="$3" count="$4" conv=notrunc status=none; }

# shared FILE: three groups write 64 KiB in turn, 16 MiB each
shared() {
	local i file=$1
	note_all
	for i in 1 2 3; do
		in_group "g$i" python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
first = int(sys.argv[2]) - 1
for block in range(256):
    os.pwrite(fd, bytes([first]) * 65536, (3 * block + first) * 65536)
' "$file" "$i"
	done
	sync
	for i in 1 2 3; do
		check "$2: group $i is charged for its own 16 MiB" equal "$(moved $i Write)" $((16 * MiB))
	done
	check "$2: no page stays dirty" equal "$(pages_of dirty)/$(pages_of writing)" 0/0
}

# so few pages that the kernel does not write them back meanwhile
rewritten() {
	# the last close of a disk writes its pages back
	exec 9<"$DEV"
	note_all
	put g1 "$DEV" 100 4
	check "pages that write() dirties are counted" equal "$(pages_of dirty)" $((4 * MiB / 4096))
	put g2 "$DEV" 100 4
	check "rewriting dirty pages dirties none" equal "$(pages_of dirty)" $((4 * MiB / 4096))
	sync
	check "pages dirtied by two groups: the first is charged, once" equal "$(moved 1 Write)" $((4 * MiB))
	check "pages dirtied by two groups: the second pays nothing" equal "$(moved 2 Write)" 0
	put g2 "$DEV" 100 4
	sync
	check "pages that were clean: the next group that dirties them is charged" equal "$(moved 2 Write)" $((4 * MiB))
}

read_back() {
	echo 3 >/proc/sys/vm/drop_caches
	note_all
	in_group g3 dd "if=$DEV" of=/dev/null bs=1M skip=100 count=8 status=none
	check "a read of pages is charged to the reader" in_range "$(moved 3 Read)" $((8 * MiB)) $((9 * MiB))
	check "a read of pages is not charged to their writer" equal "$(moved 1 Read)/$(moved 2 Read)" 0/0
	exec 9<&-
}

truncated() {
	note_all
	put g1 "$MNT/gone" 0 4
	check "pages that will be truncated are counted" \
		in_range "$(pages_of dirty)" $((4 * MiB / 4096)) $((4 * MiB / 4096 + 8))
	truncate -s 0 "$MNT/gone"
	check "truncated pages are not counted any more" in_range "$(pages_of dirty)" 0 8
	sync
	check "truncated pages cost nothing" in_range "$(moved 1 Write)" 0 $((64 * KiB))
}

mapped() {
	note_all
	in_group g2 python3 -c '
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.truncate(fd, 4 << 20)
with mmap.mmap(fd, 4 << 20) as m:
    for page in range(1024):
        m[page * 4096] = 1
' "$MNT/mapped"
	sync
	check "mmap: the group that stores pays" in_range "$(moved 2 Write)" $((4 * MiB)) $((4 * MiB + 64 * KiB))
	check "mmap: no other group pays" equal "$(moved 1 Write)/$(moved 3 Write)" 0/0
	check "no page stays dirty" equal "$(pages_of dirty)/$(pages_of writing)" 0/0
}

# disk NAME: a disk with limits so high that no group waits: what counts here is which group is charged
disk() {
	local i
	null_dev "$1$HIERARCHY" size=1024 memory_backed=1
	for i in 1 2 3; do cap g$i "$DEV" wbps=$((1024 * MiB)); done
}

everywhere() {
	group g1 g2 g3
	disk raw
	shared "$DEV" "raw disk, blocks of 64 KiB in turn"
	rewritten
	read_back
	null_gone "raw$HIERARCHY"
	# a file whose inode belongs to none of the groups: on v2 that group would pay for metadata
	disk fs
	make_fs ext4 "$DEV" -q -E lazy_itable_init=0
	shared "$MNT/file" "ext4, blocks of 64 KiB in turn"
	truncated
	mapped
	umount "$MNT"
	null_gone "fs$HIERARCHY"
}

plan 63
# pages stay dirty until the test has them written, however long that takes
undo+=("sysctl -qw vm.dirty_writeback_centisecs=$(sysctl -n vm.dirty_writeback_centisecs)")
sysctl -qw vm.dirty_writeback_centisecs=0
on_each everywhere v1 v2 memcg
