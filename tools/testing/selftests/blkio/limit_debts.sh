#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A group that makes small debts again and again, by metadata that is never held, does not keep other
# groups from a limit that they share, and gets no more than the limit itself.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=20

# syncing FILE SECONDS: writes a page, and its metadata with it, as often as fsync() allows
syncing() {
	python3 - "$1" "$2" <<'EOF'
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    os.pwrite(fd, bytes(4096), 0)
    os.fsync(fd)
EOF
}

# chmoding FILE SECONDS: writes metadata alone, as often as fsync() allows
chmoding() {
	python3 - "$1" "$2" <<'EOF'
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
end = time.monotonic() + float(sys.argv[2])
mode = 0
while time.monotonic() < end:
    os.fchmod(fd, mode := 0o644 - mode)
    os.fsync(fd)
EOF
}

# shared TEXT GROUP OTHER LEAST RATE: OTHER does a direct write, and the next one 250 ms after its end,
# beside syncing in GROUP
shared() {
	local at
	at=$(charged)
	in_group "$2" dd if=/dev/zero of="$MNT/syncing" bs=4k count=1 conv=fsync status=none
	start_soon
	again_in "$2" syncing &
	loads+=($!)
	load "$3" honest -f "$MNT/honest" -o w -s 4k -T 0.25 -t $SEC -L 1M
	wait_loads
	note "$1: $(val honest ios) direct writes, the longest took $(($(val honest max_ns) / 1000000)) ms"
	check "$1: a group that asks for little gets all its writes" \
		in_range "$(val honest ios)" $((SEC * $4)) $((SEC * 4 + 1))
	check "$1: each of these writes takes 0.5 s at most" in_range "$(val honest max_ns)" 0 500000000
	check "$1: both groups together are at the limit" \
		in_range $(($(charged) - at)) $(($5 * SEC * 9 / 10)) $(($5 * (SEC + 2)))
}

# turns HOW GROUP OTHER RATE: OTHER does one direct write after the other, beside GROUP that does HOW again and again
turns() {
	start_soon
	again_in "$2" "$1" &
	loads+=($!)
	load "$3" honest -f "$MNT/honest" -o w -s 4k -t $SEC -L 1M
	wait_loads
	check "v2, beside $1: a group that asks for more than its part gets half" \
		within "$(val honest bytes)" $(($4 * SEC / 2)) 150000
}

# again_in GROUP HOW: runs HOW in GROUP, from START on
again_in() {
	until_ns "$START"
	in_group "$1" bash -c "$(declare -f "$2"); $2 '$MNT/syncing' $SEC"
}

# repaid GROUP OTHER RATE: debts that GROUP has repaid do not count when OTHER begins
repaid() {
	START=0
	again_in "$1" chmoding
	start_soon
	load "$1" debtor -f "$MNT/syncing" -o w -s 4k -t 5 -L 1M
	load "$2" honest -f "$MNT/honest" -o w -s 4k -t 5 -L 1M
	wait_loads
	check "v2, after a debt of one group is repaid: both groups get equal parts" \
		within "$(val debtor bytes)" $(($3 * 5 / 2)) 40000
}

# buffering FILE SECONDS: writes 64 KiB at a time, which the flusher writes to the disk
buffering() {
	python3 - "$1" "$2" <<'EOF'
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY)
end = time.monotonic() + float(sys.argv[2])
at = 0
while time.monotonic() < end:
    os.pwrite(fd, bytes(65536), (32 << 20) + at % (8 << 20))
    at += 65536
EOF
}

# below RATE: the limit is on a disk below dm, where dirty pages become debts; direct writes wait in line there
below() {
	local bottom
	mount_cgroup v2
	group p p/a p/b
	null_dev below size=400 memory_backed=1
	bottom=$DEV
	dm_dev above "0 $(sectors "$bottom") linear $bottom 0" || bail "no dm"
	cap p "$bottom" wbps="$1"
	start_soon
	(
		until_ns "$START"
		in_group p/b bash -c "$(declare -f buffering); buffering '$DEV' $SEC"
	) &
	loads+=($!)
	load p/a honest -f "$DEV" -o w -s 4k -t $SEC -L 1M
	wait_loads
	check "v2, beside buffered writes above the disk: a group that asks for more than its part gets half" \
		within "$(val honest bytes)" $(($1 * SEC / 2)) 150000
	umount_cgroup
}

# chmoding_two FILE SECONDS: as chmoding, and also metadata on another disk, whose limit is never reached
chmoding_two() {
	python3 - "$1" "$2" <<'EOF'
import os, sys, time
files = [os.open(name, os.O_WRONLY | os.O_CREAT) for name in (sys.argv[1], os.environ['TWO'] + '/two')]
end = time.monotonic() + float(sys.argv[2])
mode = 0
while time.monotonic() < end:
    mode = 0o644 - mode
    for fd in files:
        os.fchmod(fd, mode)
    os.sync()
EOF
}

# two RATE: sets TWO to a btrfs on another disk, which has a limit
two() {
	export TWO=$TMP/two
	null_dev two size=400 memory_backed=1
	mkfs.btrfs -q "$DEV"
	mkdir "$TWO"
	mount "$DEV" "$TWO"
	undo+=("! mountpoint -q $TWO || umount $TWO")
	cap p "$DEV" wbps="$1"
}

# above RATE HOW [TOP]: HOW makes metadata of a btrfs on a loop device that has the limit TOP, beside direct writes
# to the rest of the disk
above() {
	local bottom top rest=$((400 * MiB / 512))
	mount_cgroup v2
	group p p/a p/b
	[ "$2" = chmoding ] || two $((1024 * MiB))
	null_dev "bottom$2$3" size=800 memory_backed=1
	bottom=$DEV
	top=$(losetup --find --show --direct-io=on --sizelimit $((400 * MiB)) "$bottom")
	undo+=("losetup -d $top")
	make_fs btrfs "$top" -q
	dm_dev "rest$2$3" "0 $rest linear $bottom $rest" || bail "no dm"
	cap p "$bottom" wbps="$1"
	[ -z "$3" ] || cap p "$top" wbps="$3"
	start_soon
	again_in p/b "$2" &
	loads+=($!)
	load p/a honest -f "$DEV" -o w -s 4k -t $SEC -L 1M
	wait_loads
	check "v2, beside metadata above the disk, $2${3:+, a limit there}: a group that asks for much gets half" \
		within "$(val honest bytes)" $(($1 * SEC / 2)) 150000
	umount "$MNT"
	[ "$2" = chmoding ] || umount "$TWO"
	umount_cgroup
}

# charged: the bytes that the groups of the test wrote
charged() {
	if [ "$CGV" = v1 ]; then
		counted g1
	else
		sed -n "s/^$(devno "$DEV") .*wbytes=\([0-9]*\).*/\1/p" "$CG/p/io.stat"
	fi
}

# nocow: on btrfs, makes a file whose direct writes write no metadata
nocow() {
	: >"$1"
	chattr +C "$1"
	dd if=/dev/zero of="$1" bs=1M count=1 conv=fsync status=none
}

beside_siblings() {
	null_dev nb0 size=400 memory_backed=1
	make_fs btrfs "$DEV" -q
	nocow "$MNT/honest"
	nocow "$MNT/syncing"
	mount_cgroup v2
	group p p/a p/b
	cap p "$DEV" wbps=$((128 * KiB))
	shared "v2, a sibling that syncs" p/b p/a 2 $((128 * KiB))
	turns syncing p/b p/a $((128 * KiB))
	turns chmoding p/b p/a $((128 * KiB))
	repaid p/b p/a $((128 * KiB))
	umount_cgroup
	mount_cgroup v1
	group g1 g2 g3
	cap g1 "$DEV" wbps=$((128 * KiB))
	shared "v1, a task of the same group that syncs" g1 g1 1 $((128 * KiB))
	umount "$MNT"
}

# syncing_all FILE SECONDS: appends 64 KiB and calls syncfs(), which writes their metadata as well, again and again
syncing_all() {
	python3 - "$1" "$2" <<'EOF'
import ctypes, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
end = time.monotonic() + float(sys.argv[2])
at = 0
while time.monotonic() < end:
    os.pwrite(fd, bytes(65536), at % (8 << 20))
    ctypes.CDLL(None).syncfs(fd)
    at += 65536
EOF
}

# ios, owed: the number of I/Os of g1, and of those that passed as a debt
ios() { awk -v "dev=$(devno "$DEV")" '$1 == dev && $2 == "Write" { print $3 }' "$CG/g1/blkio.throttle.io_serviced"; }
owed() { sed -n 's/.*write: .* nr_owed=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/${DEV##*/}/ioband/groups"; }

# metadata FS HOW MKFS_ARGUMENT...: metadata is not paid for with what write() has paid
metadata() {
	local bytes nr limit=$((256 * KiB))
	null_dev "$1" size=400 memory_backed=1
	make_fs "$1" "$DEV" "${@:3}"
	: >"$MNT/data"
	sync
	cap g1 "$DEV" wbps=$limit
	bytes=$(counted g1)
	nr=$(ios)
	in_group g1 bash -c "$(declare -f "$2"); $2 '$MNT/data' $SEC"
	bytes=$(($(counted g1) - bytes))
	nr=$(($(ios) - nr))
	check "$1, $2: write() and its metadata together are at the limit" \
		in_range $bytes $((limit * SEC * 19 / 20)) $((limit * (SEC + 1)))
	[ "$1" = ext4 ] ||
		check "$1, $2: data that write() has paid for does not pass as a debt" in_range "$(owed)" 0 $((nr * 3 / 5))
	cap g1 "$DEV" wbps=max
	umount "$MNT"
}

# Direct writes by io_uring that extend a file of vfat go through the page cache. No task asks before it dirties
# pages there, and the workers that write never return to user space.
longer() {
	local nr
	null_dev vfat size=400 memory_backed=1
	make_fs vfat "$DEV"
	cap g1 "$DEV" wiops=12
	nr=$(ios)
	in_group g1 attack_uring direct "$MNT/longer" 0 $((64 * MiB)) 4096 $((64 * MiB)) 5000
	# 64 KiB of each I/O of a second may be dirty
	check "vfat, direct writes by io_uring: workers wait for the debt" in_range $(($(ios) - nr)) 12 $((12 * 6 + 12 * 16))
	cap g1 "$DEV" wiops=max
	umount "$MNT"
}

# first_page RATE: the first page that a group dirties by a store costs as much as any other
first_page() {
	local begin
	mount_cgroup v2
	group p p/a
	null_dev first size=400 memory_backed=1
	cap p/a "$DEV" wbps="$1"
	# the burst is used up before
	in_group p/a dd if=/dev/zero of="$DEV" bs=64k count=1 oflag=direct status=none
	in_group p/a dd if=/dev/zero of="$DEV" bs=4k count=1 oflag=direct status=none
	begin=$(now_ms)
	in_group p/a python3 - "$DEV" <<'EOF'
import mmap, os, sys
pages = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 8192)
pages[4096] = 1
EOF
	sync
	in_group p/a dd if=/dev/zero of="$DEV" bs=4k count=1 seek=16 oflag=direct status=none
	check "v2, the first page that a group dirties, and a direct write: both are paid for, ms" \
		in_range $(($(now_ms) - begin)) 1800 2300
	umount_cgroup
}

plan 18
first_page $((4 * KiB))
below $((128 * KiB))
above $((128 * KiB)) chmoding ''
above $((128 * KiB)) chmoding $((1024 * MiB))
above $((128 * KiB)) chmoding_two ''
beside_siblings
metadata ext4 syncing_all -q -F -b 1024 -E lazy_itable_init=0
metadata f2fs syncing -q
longer
