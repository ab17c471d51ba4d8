#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Blocks of data that are stale, misplaced or torn. See harness_mustfail_point.sh.
# because: the data is right
# shellcheck source=../../../tools/testing/selftests/blkio/lib/stress_lib.sh
. "$(dirname "$0")/../../../tools/testing/selftests/blkio/lib/stress_lib.sh"

plan 5
mount_cgroup v2
group a
smp_null smpnull

# tampered BLOCK_TO BLOCK_FROM BYTES: copies data over other data; fails if stress_verify notices that
tampered() {
	verify a load -q -n 64 -s $MiB -w "$TMP/load.state" "$DEV"
	intact load && written load "$DEV" -s $MiB || return 0
	dd if="$DEV" of="$DEV" bs="$3" seek=$(($1 * 4096 / $3)) skip=$(($2 * 4096 / $3)) count=1 conv=notrunc status=none
	sync
	written load "$DEV" -s $MiB
}

check "stress_verify notices a misplaced block" eval '! tampered 3 7 4096'
check "stress_verify notices a sector of another block" eval '! tampered 5 6 512'
check "stress_verify notices a block of zeroes" eval '! tampered 9 200 4096'
verify a load -q -n 64 -s $MiB -w "$TMP/load.state" "$DEV"
check "data that was not changed is right" written load "$DEV" -s $MiB
dd if=/dev/zero of="$DEV" bs=4096 count=1 oflag=direct status=none
check "the data is right" written load "$DEV" -s $MiB
