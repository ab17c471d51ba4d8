#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# args: log_buf_len=1M
# timeout: 900
# Each allocation fails in turn: when groups are made and removed, when limits and weights are set, at the first I/O of
# a group, and when the files are read. The operation gives ENOMEM and changes nothing, or goes on without the memory;
# the next try works. Covered are slab and page allocations of the calling task (fail-nth), and per-CPU memory that
# needs pages.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

if [ ! -e /proc/self/fail-nth ] || [ ! -d /sys/kernel/debug/failslab ]; then
	skip_all "no failslab in this kernel"
fi
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing

passed() { grep -qx "PASS $1" "$2"; }

hierarchy() {
	local rc=0 name
	mount_cgroup "$1"
	undo+=("echo 0 >$NULLB/smpslab/power; rmdir $NULLB/smpslab")
	python3 "$HERE/lib/stress_failslab.py" "$CG" >"$TMP/$1.out" 2>&1 || rc=$?
	grep -v '^PASS\|^FAIL' "$TMP/$1.out" | sed 's/^#* */# /'
	for name in "${NAMES[@]}"; do
		check "$1: $name" passed "$name" "$TMP/$1.out"
	done
	check "$1: all allocations have failed once" equal "$rc" 0
	check "$1: all groups can be removed" wait_for "their end" none_dying
	umount_cgroup
}

NAMES=("make a group" "the first rule on a disk" "the first rule of a group" "change a rule" "take a rule away"
	"the first write in a group" "the first read in a group" "a write under a cap" "read the files"
	"remove a group with a rule" "the first weight for a disk" "change a weight" "take a weight away"
	"a weight for all disks" "a write by weight" "read the files of weights" "remove a group with a weight"
	"per-CPU memory runs short")
plan $((2 * (${#NAMES[@]} + 2) + 2))
leaks_begin
hierarchy v2
hierarchy v1
leak_point
check "the kernel log has no splats" no_splat
