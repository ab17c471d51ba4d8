#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# memory: 144
# Memory is short, on two CPUs, while a group with a limit writes, on v1: the debug kernel and this script leave 40
# MiB of 144, for which page cache of 192 MiB and two tasks that allocate 6 MiB each compete. All tasks end, none is
# killed, and no page stays counted.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"
# shellcheck source=lib/blkio_memory.sh
. "$HERE/lib/blkio_memory.sh"

PART=$((64 * MiB))

# phase NAME: 3 points
phase() {
	start_soon
	those_beside "$1" 8 0.1
	# shellcheck disable=SC2046 # words
	load slow slow $(place slow 0) -L "$PART" -b -o w -s 64k -t 8
	wait_loads
	check "$1: all written bytes are charged" in_range "$(val slow bytes)" $MiB $((64 * MiB))
	check "$1: no task is killed because memory is short" equal "$(vmstat oom_kill)" 0
	sync
	check "$1: no page stays counted" wait_for "no owner is left" no_owners
}

plan 8
leaks_begin
mount_cgroup v1
group slow free
null_dev data size=2048 submit_queues=2
exec 7<>"$DEV"
cap slow "$DEV" wbps=$((4 * MiB))
phase raw
cap slow "$DEV" wbps=max
small_ext4 "$DEV"
cap slow "$DEV" wbps=$((4 * MiB))
phase ext4
leak_point
check "the kernel log has no splats" no_splat
