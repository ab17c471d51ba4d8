#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# A task that dirties pages of two disks by turns, in one system call, pays on both: here it reads into mappings of both.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_timed.sh
. "$HERE/lib/blkio_timed.sh"

BY_TURNS='
SIZE, CALL, PAGE = 8 << 20, 2 << 20, 4096
maps = [memoryview(mmap.mmap(os.open(disk, os.O_RDWR), SIZE)) for disk in sys.argv[1:]]
source = os.memfd_create("zeros")
os.ftruncate(source, 2 * CALL)
for at in range(0, SIZE, CALL):
    os.preadv(source, [disk[i:i + PAGE] for i in range(at, at + CALL, PAGE) for disk in maps], 0)'

two_disks() {
	group g
	cap g "$SLOW" wbps=$MiB
	cap g "$FAST" wbps=$((64 * MiB))
	timed_in g "$BY_TURNS" "$SLOW" "$FAST"
	# all but the burst
	check "8 MiB on a disk with a limit of 1 MiB/s, by turns with another disk" in_range "$TOOK_MS" 7900 9000
}

plan 2
null_dev slow size=100 memory_backed=1
SLOW=$DEV
null_dev fast size=100 memory_backed=1
FAST=$DEV
on_each two_disks v1 v2
