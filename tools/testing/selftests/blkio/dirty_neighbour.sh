#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A group whose buffered writes are limited to 1 MiB/s, and which writes as much as it can, beside a neighbour on the
# same ext4: the time of the neighbour's write() and fsync() with and without the writer, and the memory that the
# writer has dirty.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

# writes 64 KiB and syncs, 200 times, 50 ms apart: prints the 99th percentiles and the maxima in ns
NEIGHBOUR='
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
writes, syncs = [], []
for i in range(200):
    begin = time.monotonic_ns()
    os.pwrite(fd, bytes(65536), i * 65536)
    middle = time.monotonic_ns()
    os.fsync(fd)
    end = time.monotonic_ns()
    writes.append(middle - begin)
    syncs.append(end - middle)
    time.sleep(0.05)
print(sorted(writes)[197], sorted(syncs)[197], max(writes), max(syncs))
'

neighbour() {
	(echo "$BASHPID" >"$CG/free/cgroup.procs"; exec python3 -c "$NEIGHBOUR" "$MNT/neighbour")
}

# every_pages: the pages that the writer has dirty or being written, while the neighbour works
every_pages() {
	while sleep 0.1; do pages; done
}

beside() {
	local alone
	null_dev "nb$HIERARCHY" size=900 mbps=100 memory_backed=1
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
	group slow free
	alone=$(neighbour)
	read -r write_alone sync_alone _ <<<"$alone"
	: >"$MNT/slow"
	cap slow "$DEV" wbps=$MiB
	start_soon
	load slow slow -f "$MNT/slow" -b -o w -s 1M -t 30 -L 400M
	sleep 3
	every_pages >"$TMP/most" &
	watcher=$!
	undo+=("kill $watcher")
	read -r write_beside sync_beside write_max sync_max <<<"$(neighbour)"
	note "write(): $write_alone ns alone, $write_beside beside, $write_max at most"
	note "fsync(): $sync_alone ns alone, $sync_beside beside, $sync_max at most"
	check "beside a limited writer, the neighbour's write(): p99 is at most 1.5 times that alone" \
		in_range "$write_beside" 0 $((write_alone * 3 / 2))
	check "beside a limited writer, the neighbour's fsync(): p99 is at most twice that alone" \
		in_range "$sync_beside" 0 $((sync_alone * 2))
	check "a limited writer's dirty pages are within a window of 1 s" \
		in_range "$(sort -n "$TMP/most" | tail -n 1)" 1 $((5 * MiB / 4 / 4096))
	wait_loads
	check "a limited writer's write() proceeds at its limit" within "$(val slow bytes)" $((30 * MiB)) 40000
	kill "$watcher"
	check "a limited writer's load with a sync ends in time" timeout 3 sync
	umount "$MNT"
	null_gone "nb$HIERARCHY"
}

plan 15
on_each beside v1 v2 memcg
