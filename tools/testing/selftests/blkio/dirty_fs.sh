#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Buffered writes of groups with limits, on several file systems, on v1 and on v2 with and without the memory
# controller: each group gets its limit and pays for its own bytes, in files of its own and in a common one; other
# groups do not wait, and no page stays counted.
# configs: uml-vt
# timeout: 600
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=8
EXT4=(ext4 -q -F -E "lazy_itable_init=0,lazy_journal_init=0")

# 64 KiB of every 192 KiB
IN_TURN='
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
for block in range(64):
    os.pwrite(fd, bytes([int(sys.argv[2])]) * 65536, (3 * block + int(sys.argv[2]) - 1) * 65536)
'

# shared NAME PPM: all groups write to a file that exists
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
		check "$1, a common file: group $i pays for its pages" within "$(moved "$i")" $((4 * MiB)) "$2"
	done
}

# took COMMAND...: the longest of three times, ms
took() {
	local i begin most=0
	for i in 1 2 3; do
		begin=$(now_ms)
		"$@" >/dev/null || return 1
		begin=$(($(now_ms) - begin))
		((begin <= most)) || most=$begin
		sleep 0.1
	done
	echo $most
}

append() { echo x >>"$MNT/own" && sync "$MNT/own"; }
append_theirs() { echo x >>"$MNT/busy"; }
name() { mkdir "$MNT/dir" && mv "$MNT/dir" "$MNT/dir2" && rmdir "$MNT/dir2" && sync -f "$MNT"; }
look() { head -c 1 "$MNT/busy"; }
# not every file system can be frozen
freeze() { ! fsfreeze -f "$MNT" 2>/dev/null || fsfreeze -u "$MNT"; }

# for 6 s at least: small writes anywhere, and now and then a long one
BUSY='
import os, random, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY)
random.seed(1)
end = time.monotonic() + 6
while time.monotonic() < end:
    os.pwrite(fd, bytes(4096), random.randrange(4096) * 4096)
    if random.random() < 0.05:
        os.pwrite(fd, bytes(1 << 20), 0)
'

# beside NAME: operations of others beside a group that writes at its limit take no longer than alone
beside() {
	local what writer alone=()
	dd if=/dev/zero "of=$MNT/busy" bs=1M count=16 conv=fsync status=none
	for what in append append_theirs name look freeze; do alone+=("$(took $what)"); done
	cap g1 "$DEV" wbps=$((256 * KiB))
	in_group g1 python3 -c "$BUSY" "$MNT/busy" &
	writer=$!
	loads+=("$writer")
	sleep 2
	for what in append append_theirs name look freeze; do
		check "$1, beside a group at its limit: $what, ms" in_range "$(took $what)" 0 $((alone[0] + 200))
		alone=("${alone[@]:1}")
	done
	check "$1, beside a group at its limit: that group is still at work" kill -0 "$writer"
	wait_loads
	cap g1 "$DEV" wbps=$MiB
}

# on NAME PPM FS MKFS_ARGUMENT...: bytes of a group are exact to PPM; the file system is mounted with OPTIONS
on() {
	local name=$1 ppm=$2
	nr=$((nr + 1))
	null_dev "fs$nr" size=800 memory_backed=1
	make_fs "$3" "$DEV" "${@:4}"
	caps "$DEV"
	rates "$name" $((64 * KiB)) "$ppm"
	shared "$name" "$ppm"
	beside "$name"
	sync
	check "$name, a common file: no page stays counted" none_left
	umount "$MNT"
	null_gone "fs$nr"
}

everywhere() {
	group g1 g2 g3
	on ext4 0 "${EXT4[@]}"
	OPTIONS=data=writeback on "ext4 data=writeback" 0 "${EXT4[@]}"
	on "ext4 fast_commit" 0 "${EXT4[@]}" -O fast_commit
	on "ext4, a journal of 4 MiB" 0 "${EXT4[@]}" -J size=4
	on "ext4, no journal" 0 "${EXT4[@]}" -O ^has_journal
	on xfs 0 xfs -q
	# this file system has no disk of its own
	BELOW=1 on btrfs 0 btrfs -q
	# the nodes that it writes are pages of the group as well
	on f2fs 10000 f2fs -q
	on vfat 0 vfat
}

nr=0 OPTIONS=''
plan 486
on_each everywhere v1 v2 memcg
