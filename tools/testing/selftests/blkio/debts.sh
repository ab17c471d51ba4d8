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

# shared TEXT GROUP OTHER LEAST RATE: a direct write of OTHER, and again 250 ms after its end,
# beside syncing in GROUP
shared() {
	local at
	at=$(charged)
	in_group "$2" dd if=/dev/zero of="$MNT/syncing" bs=4k count=1 conv=fsync status=none
	start_soon
	syncing_in "$2" &
	loads+=($!)
	load "$3" honest -f "$MNT/honest" -o w -s 4k -T 0.25 -t $SEC -L 1M
	wait_loads
	note "$1: $(val honest ios) direct writes, the longest took $(($(val honest max_ns) / 1000000)) ms"
	check "$1: whoever asks for little gets it" in_range "$(val honest ios)" $((SEC * $4)) $((SEC * 4 + 1))
	check "$1: and soon" in_range "$(val honest max_ns)" 0 500000000
	check "$1: both together are at the limit" in_range $(($(charged) - at)) $(($5 * SEC * 9 / 10)) $(($5 * (SEC + 2)))
}

syncing_in() {
	until_ns "$START"
	in_group "$1" bash -c "$(declare -f syncing); syncing '$MNT/syncing' $SEC"
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
	umount_cgroup
	mount_cgroup v1
	group g1 g2 g3
	cap g1 "$DEV" wbps=$((128 * KiB))
	shared "v1, a task of the same group that syncs" g1 g1 1 $((128 * KiB))
	umount "$MNT"
}

# rewriting FILE SECONDS: 64 KiB and the metadata of its blocks, of 1 KiB each
rewriting() {
	python3 - "$1" "$2" <<'EOF'
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    os.pwrite(fd, bytes(65536), 0)
    os.fsync(fd)
    os.ftruncate(fd, 0)
    os.sync()
EOF
}

# What metadata costs is not taken from what write() has paid.
metadata() {
	local before limit=$((256 * KiB))
	null_dev "$1" size=400 memory_backed=1
	make_fs "$1" "$DEV" "${@:2}"
	: >"$MNT/again"
	sync
	cap g1 "$DEV" wbps=$limit
	before=$(counted g1)
	in_group g1 bash -c "$(declare -f rewriting); rewriting '$MNT/again' $SEC"
	note "$1: $(($(counted g1) - before)) bytes"
	# a second's worth is the window
	check "$1: write() and sync() get no more than the limit" in_range \
		$(($(counted g1) - before)) $((limit * SEC / 2)) $((limit * (SEC + 2)))
	cap g1 "$DEV" wbps=max
	umount "$MNT"
}

plan 8
beside_siblings
metadata ext4 -q -F -b 1024 -E lazy_itable_init=0
metadata f2fs -q
