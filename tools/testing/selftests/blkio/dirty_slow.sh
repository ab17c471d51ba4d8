#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Buffered writes on v2 to a disk that is slower than the limits: tasks wait for the window of pages. And overwriting
# dirty pages is free, and what other groups have saved up delays no group.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

LIMIT=$((20 * MiB))
# flushers write 1 MB of pages at a time
SLACK=$MiB

# overwritten GROUP: the time to write 400 times 64 KiB to one page after the other, ms
overwritten() {
	in_group "$1" python3 - "$DEV" <<'EOF'
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
begin = time.monotonic()
for _ in range(400):
    os.pwrite(fd, bytes(65536), 300 << 20)
print(round((time.monotonic() - begin) * 1000))
EOF
}

# stored GROUP FILE: the time of 64 stores, to a page each, ms
stored() {
	in_group "$1" python3 - "$2" <<'EOF'
import mmap, os, sys, time
pages = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 64 << 12)
begin = time.monotonic()
for at in range(0, len(pages), 4096):
    pages[at] = 1
print(round((time.monotonic() - begin) * 1000))
EOF
}

# beside_saved: bytes that seven groups have paid and not dirtied hold no store of another group
beside_saved() {
	local i
	cap p "$DEV" wbps=$((2 * MiB))
	for i in {1..7}; do
		: >"$MNT/$i"
		in_group "p/$i" bash -c "$(declare -f failing); failing '$MNT/$i' 8" &
		loads+=($!)
	done
	truncate -s 1M "$MNT/stored"
	sleep 7
	check "seven other groups have saved up: 64 stores do not wait, ms" in_range "$(stored p/8 "$MNT/stored")" 0 400
	wait_loads
	umount "$MNT"
}

# a window of 2 MiB, which becomes free by a 16th in 25 ms
one_group() {
	null_dev "slow$HIERARCHY" size=400 mbps=5 max_sectors=128 memory_backed=1
	dirty_limit $((16 * MiB))
	cap p "$DEV" wbps=$LIMIT
	start_soon
	load p/1 alone -f "$DEV" -b -o w -s 64k -t 10 -L 200M
	wait_loads
	check "one group on a slow disk: write() goes on as soon as pages are written" \
		in_range "$(val alone max_ns)" 0 120000000
	# one I/O of 64 KiB in each 20 ms, and what is dirty at the end
	check "one group on a slow disk: the disk is busy" in_range "$(counted p/1)" 32000000 $((33000000 + 4 * MiB))
	sync
}

# the limit is for all groups together: a second's worth
eight_groups() {
	local i
	dirty_limit $((400 * MiB))
	start_soon
	for i in {1..8}; do
		load "p/$i" "g$i" -f "$DEV" -b -o w -s 64k -t 8 -O "$((i * 40))M" -L 40M
	done
	check "eight groups below one limit: their pages are within its window" \
		in_range $(($(most_pages 7) * 4096)) $((LIMIT / 2)) $((LIMIT + SLACK))
	wait_loads
	sync
}

everywhere() {
	group p p/{1..8}
	null_dev "saved$HIERARCHY" size=400 memory_backed=1
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
	beside_saved
	one_group
	eight_groups
	cap p "$DEV" wbps=$MiB
	check "overwriting dirty pages is free" in_range "$(overwritten p/1)" 0 200
	sync
	check "no page stays counted" none_left
	cap p "$DEV" wbps=max
}

plan 12
on_each everywhere v2 memcg
