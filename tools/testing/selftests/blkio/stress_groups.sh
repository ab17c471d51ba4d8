#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt uml-debug
# timeout: 900
# Many groups with limits on one disk: created, used and removed, on v2 and v1. There are GROUPS_NR of them (10000; 1000
# on the debug kernel). The memory for a group on a device is printed, and not judged.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

case ${IOBAND_GUEST:-} in uml-debug) GROUPS_NR=${GROUPS_NR:-1000} ;; esac
GROUPS_NR=${GROUPS_NR:-10000}

all_groups() {
	python3 "$HERE/lib/stress_groups.py" --count "$GROUPS_NR" --dev "$(devno "$DEV")" \
		--node "$DEV" "$CG" >"$TMP/$CGV.cost"
}

# The parts of the memory that are worth printing.
tell() {
	note "$CGV, $GROUPS_NR groups: $(cat "$TMP/$CGV.cost")"
	note "$CGV: bytes of memory per (group, device) that a rule of four limits adds: $(
		sed -n 's/.*rules_all=\(-\?[0-9]*\) rules_slab=\(-\?[0-9]*\) rules_percpu=\(-\?[0-9]*\).*/\1 (slab \2, per-CPU \3)/p' \
			"$TMP/$CGV.cost")"
}

hierarchy() {
	mount_cgroup "$1"
	smp_null smpnull memory_backed=1 size=64
	check "$1: $GROUPS_NR groups are created, limited, used and removed" all_groups
	tell
	check "$1: no bio is held in the end" wait_for held holds_none "$DISK"
	check "$1: the memory of all groups is freed" wait_for "their end" none_dying
	null_end smpnull
	umount_cgroup
}

plan 8
leaks_begin
hierarchy v2
hierarchy v1
leak_point
check "the kernel log has no splats" no_splat
