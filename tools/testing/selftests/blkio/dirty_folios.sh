#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: qemu
# timeout: 900
# Large folios: a group is charged for the pages of a folio that it dirtied, and for no others, whatever dirtied them;
# all data that is written is paid for by some group.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

# a file, and what a file system may write for itself without marking it as metadata
SIZE=$((16 * MiB)) MORE=4096

folios() { python3 "$HERE/lib/dirty_folios.py" "$1" "$MNT/file" "${@:2}"; }

# all_written: the bytes of bios of data that were written to the disk
all_written() {
	! grep -hE '^(overrun|dropped events): [1-9]' "$TRACE"/per_cpu/cpu*/stats || return 1
	awk -v "dev=$(devno "$DEV" | tr : ,)" '$5 == "block_bio_queue:" && $6 == dev && $7 ~ /^F?W/ && $7 !~ /M/ {
		n += $10 * 512 } END { print n + 0 }' "$TRACE/trace"
}

# fresh: a file of the root group, clean, in the page cache, in large folios
fresh() {
	rm -f "$MNT/file"
	dd if=/dev/zero "of=$MNT/file" bs=1M count=$((SIZE / MiB)) status=none
	sync
	echo >"$TRACE/trace"
	note_all
}

# paid TEXT BYTES...: g1 and g2 have been charged these BYTES exactly, and nothing else is written except what a file
# system needs for itself
paid() {
	local text=$1 i=0 bytes sum=0
	shift
	sync
	for bytes; do
		i=$((i + 1))
		sum=$((sum + bytes))
		check "$fs, $text: group $i pays for its pages" equal "$(moved $i)" "$bytes"
	done
	check "$fs, $text: no bytes are written that no group paid for" in_range $(($(all_written) - sum)) 0 "$MORE"
}

# on FS MKFS_ARGUMENT...: 13 points
on() {
	fs=$1
	shift
	null_dev "nf$fs" size=400 memory_backed=1
	make_fs "$fs" "$DEV" "$@"
	cap g1 "$DEV" wbps=$((1024 * MiB))
	cap g2 "$DEV" wbps=$((1024 * MiB))

	fresh
	check "$fs: the file is in large folios" in_range "$(folios large)" $((SIZE / 4096 / 2)) $((SIZE / 4096))
	in_group g1 python3 "$HERE/lib/dirty_folios.py" parts "$MNT/file" 0 16384
	in_group g2 python3 "$HERE/lib/dirty_folios.py" parts "$MNT/file" 8192 32768
	paid "every fourth and eighth page" $((SIZE / 4)) $((SIZE / 8))

	fresh
	in_group g1 python3 "$HERE/lib/dirty_folios.py" parts "$MNT/file" 0 4096
	paid "every page" $SIZE 0

	# a store dirties all of its folio, however large that is
	fresh
	in_group g1 python3 "$HERE/lib/dirty_folios.py" stores "$MNT/file" $((1024 * KiB))
	sync
	check "$fs, a byte by write() and one by a store: the group pays for folios" in_range "$(moved 1)" $((4 * MiB)) $SIZE
	check "$fs, a byte by write() and one by a store: no bytes are written that no group paid for" \
		in_range $(($(all_written) - $(moved 1))) 0 "$MORE"

	# a group does not pay for stores of the root group when its task writes them back
	fresh
	folios synced $((64 * KiB)) "$CG/g1/cgroup.procs"
	check "$fs, root's stores and a group's fsync: the group pays for no data" in_range "$(moved 1)" 0 $((128 * KiB))

	fresh
	in_group g1 python3 "$HERE/lib/dirty_folios.py" resize "$MNT/file"
	sync
	check "$fs, resized file: the group pays for a page" in_range "$(moved 1)" 0 $((64 * KiB))
	check "$fs, resized file: no bytes are written that no group paid for" in_range "$(all_written)" 0 "$MORE"
	check "$fs: no page stays counted" none_left
	umount "$MNT"
	null_off "nf$fs"
}

# blocks FS MKFS_ARGUMENT...: with blocks of four pages, all of which are written
blocks() {
	fs="$1, blocks of 16 KiB"
	null_dev "nb$1" size=400 memory_backed=1
	make_fs "$1" "$DEV" "${@:2}"
	cap g1 "$DEV" wbps=$((1024 * MiB))
	fresh
	in_group g1 python3 "$HERE/lib/dirty_folios.py" parts "$MNT/file" 0 16384
	paid "a page of each block" $SIZE 0
	umount "$MNT"
	null_off "nb$1"
}

grep -q . /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null || skip_all "the kernel has no large folios"
plan 42
# pages are written only when the test demands it, or a folio could be written between write() and the store
undo+=("sysctl -qw vm.dirty_writeback_centisecs=$(sysctl -n vm.dirty_writeback_centisecs)")
sysctl -qw vm.dirty_writeback_centisecs=0
mount_cgroup v2
group g1 g2 g3
fs=''
trace_start admit || skip_all "the kernel has no tracepoints"
echo 0 >"$TRACE/events/enable"
echo 1 >"$TRACE/events/block/block_bio_queue/enable"
on ext4 -q -F -E lazy_itable_init=0
on xfs -q
on btrfs -q
blocks xfs -q -f -b size=16384
