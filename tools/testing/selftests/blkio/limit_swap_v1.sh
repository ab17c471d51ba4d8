#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Swap on a disk with limits, on v1 with both controllers in one hierarchy: it is the group's whose memory it is. A test
# of its own, since Linux 6.12 warns of its counters when the memory controller was on v2 before (page_counter underflow).
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

# 96 MiB of pages that are filled, changed and looked at
HUNGRY='
pages = [bytearray([n % 251]) * 4096 for n in range(96 * 256)]
for n, page in enumerate(pages):
    page[7] = n % 249
for n, page in enumerate(pages):
    assert page[0] == n % 251 and page[7] == n % 249 and page[4095] == n % 251
'

# hungry: a task that may have 32 MiB, in a group of 3 MiB/s
hungry() {
	local begin swapped
	note_all
	begin=$(now_ms)
	swapped=$(sed -n 's/^pswpout //p' /proc/vmstat)
	in_group g3 timeout 300 python3 -c "$HUNGRY" || return 1
	swapped=$(($(sed -n 's/^pswpout //p' /proc/vmstat) - swapped))
	echo "$((swapped / 256)) MiB to swap, $(($(moved 3) / MiB)) of them charged, in $(($(now_ms) - begin)) ms"
	[ "$swapped" -gt $((64 * 256)) ]
}

plan 1
CG=$TMP/cgroup-both CGV=v1
mkdir "$CG"
mount -t cgroup -o blkio,memory none "$CG" || bail "no memory and blkio controllers in one hierarchy"
group g1 g2 g3
echo 32M >"$CG/g3/memory.limit_in_bytes"
null_dev swap size=300 memory_backed=1
mkswap "$DEV" >/dev/null
swapon "$DEV"
undo+=("swapoff $DEV")
caps "$DEV"
check "swap on a capped disk: no deadlock" hungry
