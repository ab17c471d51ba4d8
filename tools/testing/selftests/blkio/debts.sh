#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A group that makes a small debt again and again, by metadata that is never held, keeps
# nobody else from the limit and gets no more than the limit.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"
# shellcheck source=blkio_writeback.sh
. "$HERE/blkio_writeback.sh"

SEC=20

# syncing FILE SECONDS: a page is written, and its metadata with it, as often as fsync() lets it
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

# chmoding FILE SECONDS: metadata alone, as often as fsync() lets it
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

# shared TEXT GROUP OTHER LEAST RATE: a direct write of OTHER, and again 250 ms after its end,
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
	check "$1: whoever asks for little gets it" in_range "$(val honest ios)" $((SEC * $4)) $((SEC * 4 + 1))
	check "$1: and soon" in_range "$(val honest max_ns)" 0 500000000
	check "$1: both together are at the limit" in_range $(($(charged) - at)) $(($5 * SEC * 9 / 10)) $(($5 * (SEC + 2)))
}

# turns HOW GROUP OTHER RATE: one direct write of OTHER after the other, beside GROUP that does HOW again and again
turns() {
	start_soon
	again_in "$2" "$1" &
	loads+=($!)
	load "$3" honest -f "$MNT/honest" -o w -s 4k -t $SEC -L 1M
	wait_loads
	check "v2, beside $1: whoever asks for more than its part gets half" within "$(val honest bytes)" $(($4 * SEC / 2)) 150000
}

# again_in GROUP HOW: from START on
again_in() {
	until_ns "$START"
	in_group "$1" bash -c "$(declare -f "$2"); $2 '$MNT/syncing' $SEC"
}

# repaid GROUP OTHER RATE: what GROUP owed and has repaid is forgotten when OTHER comes
repaid() {
	START=0
	again_in "$1" chmoding
	start_soon
	load "$1" debtor -f "$MNT/syncing" -o w -s 4k -t 5 -L 1M
	load "$2" honest -f "$MNT/honest" -o w -s 4k -t 5 -L 1M
	wait_loads
	check "v2, a debt that is repaid: even parts afterwards" within "$(val debtor bytes)" $(($3 * 5 / 2)) 40000
}

# buffering FILE SECONDS: 64 KiB at a time, which the flusher writes
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

# below RATE: the limit is on a disk below dm, where dirty pages become debts; direct writes stand in line there
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
	check "v2, beside buffered writes above the disk: whoever asks for more than its part gets half" \
		within "$(val honest bytes)" $(($1 * SEC / 2)) 150000
	umount_cgroup
}

# chmoding_two FILE SECONDS: as chmoding, and then metadata on another disk, which has a limit that does not bite
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

# two RATE: TWO is btrfs on another disk with a limit
two() {
	export TWO=$TMP/two
	null_dev two size=400 memory_backed=1
	mkfs.btrfs -q "$DEV"
	mkdir "$TWO"
	mount "$DEV" "$TWO"
	undo+=("! mountpoint -q $TWO || umount $TWO")
	cap p "$DEV" wbps="$1"
}

# above RATE HOW [TOP]: the same with metadata of btrfs on a loop device that has the limit TOP, made
# by HOW, beside direct writes to the rest of the disk
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
	check "v2, beside metadata above the disk, $2${3:+, a limit there}: whoever asks for more than its part gets half" \
		within "$(val honest bytes)" $(($1 * SEC / 2)) 150000
	umount "$MNT"
	[ "$2" = chmoding ] || umount "$TWO"
	umount_cgroup
}

# charged: bytes that the groups of the test wrote
charged() {
	if [ "$CGV" = v1 ]; then
		counted g1
	else
		sed -n "s/^$(devno "$DEV") .*wbytes=\([0-9]*\).*/\1/p" "$CG/p/io.stat"
	fi
}

# nocow: with btrfs, a file whose direct writes are of data alone
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

# syncing_all FILE SECONDS: 64 KiB more, and syncfs(), which writes their metadata as well
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

# ios, owed: I/Os of g1, and those of them that passed as a debt
ios() { awk -v "dev=$(devno "$DEV")" '$1 == dev && $2 == "Write" { print $3 }' "$CG/g1/blkio.throttle.io_serviced"; }
owed() { sed -n 's/.*write: .* nr_owed=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/${DEV##*/}/ioband/groups"; }

# metadata FS HOW MKFS_ARGUMENT...: what metadata costs is not taken from what write() has paid
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
	check "$1, $2: write() and its metadata are at the limit" in_range $bytes $((limit * SEC * 19 / 20)) $((limit * (SEC + 1)))
	[ "$1" = ext4 ] ||
		check "$1, $2: what write() has paid is no debt" in_range "$(owed)" 0 $((nr * 3 / 5))
	cap g1 "$DEV" wbps=max
	umount "$MNT"
}

# Direct writes of io_uring that make a file of vfat longer go through the page cache.  Nobody
# asks before, and those who write never go to user space.
longer() {
	local nr
	null_dev vfat size=400 memory_backed=1
	make_fs vfat "$DEV"
	cap g1 "$DEV" wiops=12
	nr=$(ios)
	in_group g1 attack_uring direct "$MNT/longer" 0 $((64 * MiB)) 4096 $((64 * MiB)) 5000
	# 64 KiB of each I/O of a second may be dirty
	check "vfat, io_uring: what is owed is waited for" in_range $(($(ios) - nr)) 12 $((12 * 6 + 12 * 16))
	cap g1 "$DEV" wiops=max
	umount "$MNT"
}

# first_page RATE: the first page that a group dirties by a store costs as much as others
first_page() {
	local begin
	mount_cgroup v2
	group p p/a
	null_dev first size=400 memory_backed=1
	cap p/a "$DEV" wbps="$1"
	# the burst is used up
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
	check "v2, the first page of a group and a direct write: both are paid for, ms" in_range $(($(now_ms) - begin)) 1800 2300
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
