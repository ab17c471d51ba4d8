#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Nobody waits for what a capped group has dirty, v1: others' sync, fsync of the very
# file, truncation and journal commits are quick while its writes are held, and it has
# its rate all the same, no more and no less.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"
. "$HERE/blkio_writeback.sh"

RATE=$((256 * KiB)) QUICK_MS=20

# quick COMMAND...: in QUICK_MS of virtual time
quick() {
	local begin
	begin=$(now_ms)
	"$@" || return 1
	in_range $(($(now_ms) - begin)) 0 $QUICK_MS
}

# while_held TEXT COMMAND...: two points
while_held() {
	local text=$1
	shift
	check "$text: writes are held" held
	check "$text: quick" quick "$@"
}

sync_file() { sync "$MNT/slow"; }
commit() { mkdir "$MNT/dir.$RANDOM" && sync -f "$MNT"; }
shorten() { truncate -s "$(($(stat -c %s "$MNT/slow") / 2))" "$MNT/slow"; }

# phase TEXT MOUNT_OPTIONS
phase() {
	local text=$1 before begin took
	mount -o "$2" "$DEV" "$MNT"
	: >"$MNT/slow"
	start_soon
	load slow "$text" -f "$MNT/slow" -b -o w -s 16k -t 26 -L 100M
	sleep 3
	before=$(counted slow)
	begin=$(now_ms)
	while_held "$text, sync" sync
	sleep 1
	while_held "$text, fsync of its file" sync_file
	sleep 1
	while_held "$text, a commit" commit
	sleep 1
	# the file is locked while a write to it is paced: one of 16 KiB and the next
	QUICK_MS=125
	while_held "$text, truncation" shorten
	QUICK_MS=20
	sleep 2
	for i in {1..15}; do
		sleep 1
		sync
	done
	took=$(($(now_ms) - begin))
	# a window more or less at either end
	check "$text: its writes are at its rate" \
		in_range $(($(counted slow) - before)) $((RATE * (took - 1000) / 1000)) $((RATE * (took + 1000) / 1000))
	wait_loads
	check "$text: write() is at its rate" within "$(val "$text" bytes)" $((RATE * 26)) 20000
	begin=$(now_ms)
	(echo "$BASHPID" >"$CG/slow/cgroup.procs"
	 exec dd if=/dev/zero "of=$MNT/slow" bs=128k count=4 conv=fsync status=none)
	check "$text: its own fsync waits" in_range $(($(now_ms) - begin)) 1500 3500
	umount "$MNT"
}

plan 22
null_dev nb0 size=500 memory_backed=1
mkfs.ext4 -q -F -E lazy_itable_init=0 "$DEV"
undo+=("! mountpoint -q $MNT || umount $MNT")
mount_cgroup v1
group slow
cap slow "$DEV" wbps=$RATE
phase delayed defaults
phase ordered nodelalloc,dioread_lock
