#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# No other group waits for the dirty pages of a limited group: sync, fsync of the same file, truncation and journal
# commits by others are quick while its tasks wait for their limit; and the group gets its limit all the same, no more
# and no less.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_writeback.sh"

RATE=$((256 * KiB)) QUICK_MS=20

# quick COMMAND...: the command takes at most QUICK_MS of virtual time
quick() {
	local begin
	begin=$(now_ms)
	"$@" || return 1
	in_range $(($(now_ms) - begin)) 0 $QUICK_MS
}

# while_paced TEXT COMMAND...: two points
while_paced() {
	local text=$1
	shift
	check "$text: a task of the limited group waits for its limit" held
	check "$text: the operation is quick all the same" quick "$@"
}

sync_file() { sync "$MNT/slow"; }
commit() { mkdir "$MNT/dir.$RANDOM" && sync -f "$MNT"; }
shorten() { truncate -s "$(($(stat -c %s "$MNT/slow") / 2))" "$MNT/slow"; }

# owed: the number of writes that passed as a debt
owed() { sed -n 's/.*write: .* nr_owed=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/${DEV##*/}/ioband/groups"; }

# dirty_pages: the pages that all groups have dirty
dirty_pages() { awk -F'[= ]' '{ n += $6 } END { print n + 0 }' /sys/kernel/debug/dirty_owner; }

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
	while_paced "$text, sync" sync
	sleep 1
	while_paced "$text, fsync of its file" sync_file
	sleep 1
	while_paced "$text, a commit" commit
	sleep 1
	# the file is locked while a write to it is paced: one of 16 KiB and the next
	QUICK_MS=125
	while_paced "$text, truncation" shorten
	QUICK_MS=20
	sleep 2
	for i in {1..15}; do
		sleep 1
		sync
	done
	took=$(($(now_ms) - begin))
	# a window more or less at either end
	check "$text: the group's writes reach the disk at its limit" \
		in_range $(($(counted slow) - before)) $((RATE * (took - 1000) / 1000)) $((RATE * (took + 1000) / 1000))
	wait_loads
	check "$text: write() proceeds at the limit" within "$(val "$text" bytes)" $((RATE * 26)) 20000
	before=$(owed)
	begin=$(now_ms)
	(echo "$BASHPID" >"$CG/slow/cgroup.procs"
	 exec dd if=/dev/zero "of=$MNT/slow" bs=128k count=4 conv=fsync status=none)
	check "$text: the group's own fsync waits" in_range $(($(now_ms) - begin)) 1500 3500
	check "$text: the group's own fsync makes no debt" equal "$(owed)" "$before"
	umount "$MNT"
}

# long_dirty: 4 MiB that were dirtied fast and are to be written slowly, 16 s of the limit
long_dirty() {
	mount "$DEV" "$MNT"
	cap slow "$DEV" wbps=$((64 * MiB))
	in_group slow dd if=/dev/zero of="$MNT/slow" bs=4M count=1 conv=notrunc status=none
	cap slow "$DEV" wbps=$RATE
	check "many pages are dirty, $1: 4 MiB, in pages" in_range "$(dirty_pages)" 768 1024
	check "many pages are dirty, $1: the operation is quick" quick "$2"
	cap slow "$DEV" wbps=max
	umount "$MNT"
	cap slow "$DEV" wbps=$RATE
}

everywhere() {
	null_dev "nb$HIERARCHY" size=500 memory_backed=1
	mkfs.ext4 -q -F -E lazy_itable_init=0 "$DEV"
	group slow
	cap slow "$DEV" wbps=$RATE
	phase delayed defaults
	phase ordered nodelalloc,dioread_lock
	long_dirty sync sync
	long_dirty "fsync of its file" sync_file
	null_gone "nb$HIERARCHY"
}

plan 84
undo+=("! mountpoint -q $MNT || umount $MNT")
on_each everywhere v1 v2 memcg
