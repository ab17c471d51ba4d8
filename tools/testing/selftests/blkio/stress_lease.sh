#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# As stress_weights, where groups buy device time in advance, as on a disk of hundreds of thousands of I/Os a second:
# each I/O ends once, all data is right, no bio waits in the end, and groups can be removed.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"
LOAD_SHIFT=0 LOAD_DEPTH=64 SECONDS_EACH=6
DISK_LIKE="hw_queue_depth=16 completion_nsec=8000000"
# shellcheck source=lib/stress_changes.sh
. "$HERE/lib/stress_changes.sh"

# Makes this disk count as such a disk, and gives how often groups began to buy device time; succeeds once they did.
lease() {
	local dir=/sys/kernel/debug/block/$DISK/ioband
	[ -d "$dir" ] || return 1
	echo 1000000000 >"$dir/lease_gap_ns"
	sed -n 's/.* leases=\([0-9]*\).*/\1/p' "$dir/share" >"$TMP/leases"
	[ "$(cat "$TMP/leases")" -gt 0 ]
}

leased() {
	rm -f "$TMP/leases"
	scenario "$@"
	echo "# leases began $(cat "$TMP/leases") times"
	check "$1: groups bought device time in advance" test "$(cat "$TMP/leases")" -gt 0
}

plan $((3 * 5 + 2))
leaks_begin
mount_cgroup v2
group a a/x a/y b b/z
ALL="a a/x a/y b b/z"
WHERE="a/x a/y b/z b/z"
leased "v2, weights" "$WHERE" "lease" "change_weight $ALL" "look $ALL"
leased "v2, groups and tasks" "$WHERE" "lease" "change_weight $ALL" "groups a/" "groups b/" "migrate a/x a/y b/z" "cpus"
leased "v2, limits, schedulers" "$WHERE" "lease" "change_weight $ALL" "rules $ALL" "elevator"
umount_cgroup
leak_point
check "the kernel log has no splats" no_splat
