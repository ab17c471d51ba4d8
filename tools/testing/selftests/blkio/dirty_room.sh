#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Groups below one limit have no more than its window dirty, also in ways by which they could fill it at once: where a
# disk below has the limit or the limit is in I/Os, which are paid afterwards; as groups that have not used the disk yet;
# while the flusher pauses, having looked at many inodes, and while it writes others' pages.  The window does not hold a
# group whose pages cannot be written.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

# the window of 1 MiB/s, or 16 I/Os of 64 KiB a second, and a page for each task that has just dirtied one
WINDOW=$((MiB / 4096 + 4))

# stored FILE FIFO BYTES [S]: dirties a page, so that its group is known to write to the disk, and notes that in
# FIFO.ready; then dirties so many bytes through a mapping as soon as somebody opens FIFO, with S seconds of rest after a
# quarter of the window
stored() {
	python3 - "$1" "$2" "$3" "${4:-0}" <<'EOF'
import mmap, os, sys, time
fd, size = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), int(sys.argv[3])
os.ftruncate(fd, size)
pages = mmap.mmap(fd, size)
pages[0] = 1
os.fsync(fd)
with open(sys.argv[2] + ".ready", "a") as ready:
    ready.write("x")
os.open(sys.argv[2], os.O_RDONLY)
for at in range(0, size, 4096):
    pages[at] = 1
    if at == 58 * 4096:
        time.sleep(float(sys.argv[4]))
EOF
}

# stores TEXT LIMIT BYTES GROUP...: a task of each group stores through a mapping, all at once
stores() {
	local i most task tasks=()
	cap "${4%/*}" "$DEV" "$2"
	rm -f "$TMP/begin"
	mkfifo "$TMP/begin"
	: >"$TMP/begin.ready"
	for i in "${@:4}"; do
		in_group "$i" bash -c "$(declare -f stored); stored '$MNT/${i##*/}' '$TMP/begin' $3 ${REST:-}" &
		tasks+=($!)
	done
	until [ "$(stat -c %s "$TMP/begin.ready")" = ${#tasks[@]} ]; do sleep 0.1; done
	: >"$TMP/begin"
	# a second after the first window the limit lets them fill it again
	most=$(most_pages 2 0.005)
	for task in "${tasks[@]}"; do wait "$task"; done
	echo "# most $most pages"
	check "$1: no more pages than its window are dirty" in_range "$most" $((WINDOW / 2)) $WINDOW
	cap "${4%/*}" "$DEV" "${2%=*}=max"
	sync
}

# slow_disk NAME MIB: a disk of so many MiB/s, so that pages stay dirty for a moment; null_blk passes no longer I/O at
# these rates.  Within a fiftieth of a second it does as much as it can do in that time at once.
slow_disk() { null_dev "$1" size=200 mbps="$2" max_sectors=128 memory_backed=1; }

# fresh: 30 groups write for the first time, one after the other, 128 KiB each
fresh() {
	local i nr
	cap p "$DEV" wbps=$MiB
	for ((i = 0; i < 30; i++)); do
		group "p/new$i"
		in_group "p/new$i" dd if=/dev/zero of="$MNT/new" bs=128k seek="$i" count=1 conv=notrunc status=none
	done
	nr=$(pages)
	check "30 groups that write for the first time, below one limit: no more pages than its window are dirty" \
		in_range "$nr" 32 $((WINDOW + 32))
	cap p "$DEV" wbps=max
	sync
}

# inodes: a group has 66,000 dirty inodes
inodes() {
	in_group other python3 -c '
import fcntl, os, sys
for i in range(66000):
    fd = os.open(f"{sys.argv[1]}/{i}", os.O_CREAT | os.O_WRONLY)
    os.fchmod(fd, 0o600)
    # EXT4_IOC_CHECKPOINT: the journal is empty in the end, and the inodes are dirty
    if i == 65999:
        fcntl.ioctl(fd, 0x4004662b, bytes(4))
    os.close(fd)
' "$MNT"
}

# paused: the flusher has just looked at all inodes
paused() {
	inodes
	REST=0.01 stores "after the flusher has looked at many inodes, a limit of the disk below" wbps=$MiB $((8 * MiB)) g1
}

# busy: the flusher writes a large file of root
busy() {
	dirty_limit $((600 * MiB))
	sysctl -qw vm.dirty_background_bytes=$((4 * MiB))
	(sleep 1; dd if=/dev/zero of="$MNT/big" bs=1M count=100 status=none) &
	stores "while the flusher writes a large file of root, a limit of the disk below" wbps=$MiB $((16 * MiB)) g1
	wait $!
	rm "$MNT/big"
	sysctl -qw vm.dirty_background_ratio=60 vm.dirty_ratio=80
}

# overwrite FILE: dirties the same 300 pages again and again, so that the flusher is asked to write them
overwrite() {
	exec timeout 14 python3 -c '
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
while True:
    for i in range(300):
        os.pwrite(fd, bytes(4096), i << 12)
        time.sleep(0.004)
' "$1"
}

# stuck: with data=journal pages cannot be written until the next commit, which comes each 5 s.  Another group asks for
# writeback as soon as the flusher has paused.
stuck() {
	local other
	inodes
	cap g1 "$DEV" wbps=$((512 * KiB))
	cap other "$DEV" wbps=$((2 * MiB))
	: >"$MNT/g1"
	in_group other bash -c "$(declare -f overwrite); overwrite '$MNT/other'" &
	other=$!
	start_soon
	load g1 stuck -f "$MNT/g1" -b -o w -s 64k -t 12 -L 100M
	wait_loads
	wait "$other" || true
	echo "# stuck: $(val stuck bytes) of $((12 * 512 * KiB)) bytes"
	check "pages that cannot be written, and a flusher that another group has pause: the longest wait" \
		in_range "$(val stuck max_ns)" 100000000 800000000
}

# two_levels: the same for the window of a limit above.  It takes 0.4 s of each 5 s to find out.
two_levels() {
	local i bytes=0
	group p p/a p/b
	cap p "$DEV" wbps=$((512 * KiB))
	start_soon
	for i in a b; do
		: >"$MNT/$i"
		load "p/$i" "$i" -f "$MNT/$i" -b -o w -s 64k -t 20 -L 100M
	done
	wait_loads
	for i in a b; do bytes=$((bytes + $(val "$i" bytes))); done
	check "pages that cannot be written, two groups below one limit: they write at the limit but for the time of two waits" \
		in_range "$bytes" $((20 * 512 * KiB * 90 / 100)) $((20 * 512 * KiB * 102 / 100))
}

plan 7
sysctl -qw vm.dirty_writeback_centisecs=0 vm.dirty_background_ratio=60 vm.dirty_ratio=80
mount_cgroup v2
group p p/a p/b p/c p/d
slow_disk room 4
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
stores "four groups, a limit in I/Os" wiops=16 $((2 * MiB)) p/a p/b p/c p/d
fresh
umount "$MNT"

slow_disk below 20
below=$DEV
dm_dev room "0 400000 linear $DEV 0"
make_fs ext4 "$DEV" -q -F -N 80000 -E lazy_itable_init=0
DEV=$below
stores "four groups, a limit of the disk below" wbps=$MiB $((2 * MiB)) p/a p/b p/c p/d
sync
umount_cgroup

# on v2 the inodes of each group are in lists of their own
mount_cgroup v1
group g1 other
busy
paused
umount "$MNT"

null_dev stuck size=400 mbps=200 memory_backed=1
OPTIONS=data=journal make_fs ext4 "$DEV" -q -F -N 80000 -J size=128 -E lazy_itable_init=0
stuck
umount "$MNT"
umount_cgroup
mount_cgroup v2
mount -o data=journal "$DEV" "$MNT"
two_levels
umount "$MNT"
