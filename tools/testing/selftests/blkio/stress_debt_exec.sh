#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: qemu
# Workers of io_uring write metadata and end before they have repaid the debt, because their task executes another
# program. That task, which wrote no metadata itself, waits when it creates new workers. This is not run in virtual
# time: there io_uring, which asks again and again whether the workers have ended, would stop the clock.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

RATE=$((128 * KiB)) SEC=10

charged() { sed -n "s/^$(devno "$DEV") .*wbytes=\([0-9]*\).*/\1/p" "$CG/p/io.stat"; }

# A second's debt, and what the workers write at once at the end
at_the_limit() {
	local begin took
	begin=$(now_ms)
	in_group p attack_uring meta-exec "$MNT/meta" 0 4096 1 1000000000 $((SEC * 1000)) || return 1
	took=$(($(now_ms) - begin))
	echo "$(charged) bytes in $took ms"
	in_range "$(charged)" $((RATE / 2)) $((RATE * (took + 2000) / 1000 + 256 * KiB))
}

plan 2
null_dev nb0 size=400 memory_backed=1
make_fs btrfs "$DEV" -q
: >"$MNT/meta"
sync
mount_cgroup v2
group p
cap p "$DEV" wbps=$RATE
check "the debt of io_uring's workers does not end with them" at_the_limit
cap p "$DEV" wbps=max
umount "$MNT"
check "the kernel log has no splats" no_splat
