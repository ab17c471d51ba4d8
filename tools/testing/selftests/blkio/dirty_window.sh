#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Buffered writes where no limit in bytes tells how fast they are: a limit in IOPS beside it, a limit on a disk below.
# Few pages are dirty, and no other group waits for them or has its pages written early. And pages that are cleaned
# and never written.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_writeback.sh"

# the most that such a group may have dirty
WINDOW=$((16 * MiB))

# completed DISK: the bytes that the disk has written
completed() { awk '{ print $7 * 512 }' "/sys/block/${1##*/}/stat"; }

# written DISK: sets AT_MS and BYTES to the time and to what the disk has written after the next writes that come together
written() {
	local before
	before=$(completed "$1")
	while BYTES=$(completed "$1"); [ "$BYTES" = "$before" ]; do sleep 0.005; done
	while before=$BYTES; sleep 0.02; BYTES=$(completed "$1"); [ "$BYTES" != "$before" ]; do :; done
	AT_MS=$(now_ms)
}

# slow_below TEXT DISK: g1 writes to DEV, with a limit of 1 MiB/s on DISK
slow_below() {
	local text=$1 disk=$2 begin from most
	# a sync that was begun before has ended by then
	sleep 0.5
	cap g1 "$disk" wbps=$MiB
	start_soon
	load g1 below -f "$DEV" -b -o w -s 64k -t 20 -L 200M
	sleep 5
	written "$disk"
	from=$BYTES begin=$AT_MS
	most=$(($(most_pages 7) * 4096))
	written "$disk"
	check "$text: the disk gets the limit" within $((BYTES - from)) $(((AT_MS - begin) * MiB / 1000)) 20000
	check "$text: few pages are dirty" in_range "$most" 0 $((WINDOW * 5 / 4))
	begin=$(now_ms)
	sync
	check "$text: sync by another group does not wait" in_range $(($(now_ms) - begin)) 0 200
	wait_loads
	# what is dirty at the end, and the debt of the sync
	check "$text: write() is as fast as the disk, but for a window" \
		in_range "$(val below bytes)" $((20 * MiB)) $((20 * MiB + WINDOW * 9 / 4))
	cap g1 "$disk" wbps=max
}

# by_others: the bytes that groups other than g1 have written to DEV
by_others() { echo $(($(completed "$DEV") - $(counted g1 | grep . || echo 0))); }

# few: processes of g1, one after the other, write one page each, 1 MiB together
few() {
	local i
	for i in {1..256}; do
		(echo "$BASHPID" >"$CG/g1/cgroup.procs"; printf '%4096s' "" >"$MNT/few$i")
	done
}

both_limits() {
	null_dev "both$HIERARCHY" size=1024 memory_backed=1
	cap g1 "$DEV" wbps=$((100 * MiB)) wiops=200
	start_soon
	load g1 both -f "$DEV" -b -o w -s 64k -t 8 -L 900M
	sleep 2
	check "limits in bytes and in I/Os: few pages are dirty" in_range $(($(most_pages 5) * 4096)) 0 $((WINDOW * 5 / 4))
	wait_loads
	cap g1 "$DEV" wbps=max wiops=max
	sync
}

early_writes() {
	local early own begin
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0,lazy_journal_init=0
	cap g1 "$DEV" wbps=$MiB
	sync
	early=$(by_others) own=$(counted g1 | grep . || echo 0)
	dd if=/dev/zero "of=$MNT/others" bs=1M count=64 status=none
	in_group g1 touch "$MNT/slow"
	start_soon
	load g1 early -f "$MNT/slow" -b -o w -s 64k -t 3 -L 200M
	wait_loads
	check "a limited group's pages are written while it waits" in_range $(($(counted g1) - own)) $((2 * MiB)) $((4 * MiB))
	check "a limited group waits: other groups' pages are not written early" in_range $(($(by_others) - early)) 0 $MiB
	sync
	check "a limited group waits: sync writes other groups' pages" \
		in_range $(($(by_others) - early)) $((64 * MiB)) $((70 * MiB))
	sleep 0.5
	cap g1 "$DEV" wbps=$((256 * KiB))
	begin=$(now_ms)
	few
	# the first 64 KiB are free
	check "short-lived processes of a group that write a page each get its limit" within $(($(now_ms) - begin)) 3750 10000
	umount "$MNT"
	cap g1 "$DEV" wbps=max
}

below() {
	local disk=$DEV
	if dm_dev "below$HIERARCHY" "0 $(sectors "$disk") linear $disk 0"; then
		slow_below "dm-linear" "$disk"
	else
		for i in {1..4}; do skip "dm-linear" "no dmsetup"; done
	fi
}

# many small files on f2fs: their data is in the inode, and no page of it is written
inline_files() {
	mkfs.f2fs -q -f "$DEV" >/dev/null && mount -t f2fs -o inline_data "$DEV" "$MNT" || return 1
	undo+=("! mountpoint -q $MNT || umount $MNT")
	cap g1 "$DEV" wbps=$MiB
	(
		echo "$BASHPID" >"$CG/g1/cgroup.procs"
		for i in {1..400}; do echo "$i" >"$MNT/$i"; done
	)
	sync
}

in_inodes() {
	null_dev "f2fs$HIERARCHY" size=256 memory_backed=1
	if ! command -v mkfs.f2fs >/dev/null || ! grep -qw f2fs /proc/filesystems; then
		for i in {1..3}; do skip "f2fs, files in inodes: pages that are never written" "no f2fs"; done
		return
	fi
	check "f2fs, files in inodes: pages that are never written" inline_files
	check "f2fs, files in inodes: no page stays counted" equal "$(pages)" 0
	# the nodes that sync has written are a debt of a second at most
	check "f2fs, files in inodes: their writer goes on when the debt is repaid" timeout 1.1 \
		bash -c "echo \$\$ >$CG/g1/cgroup.procs; dd if=/dev/zero of=$MNT/next bs=64k count=1 status=none"
	umount "$MNT"
}

everywhere() {
	group g1
	both_limits
	early_writes
	below
	in_inodes
}

plan 36
on_each everywhere v1 v2 memcg
