#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# A disk is written through the page cache, in bios of 4 KiB that are joined while they wait for their share, beside
# other groups that share it. All data is right and no bio waits in the end, also while weights, the scheduler and the
# merging of the queue change.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"
LOAD_SHIFT=1 SECONDS_EACH=8
DISK_LIKE="hw_queue_depth=8 completion_nsec=4000000"
# shellcheck source=lib/stress_changes.sh
. "$HERE/lib/stress_changes.sh"

# buffered GROUP MIB: 8 MiB of the disk, at MIB, are written and read again
buffered() {
	(exec_in "$1" "buf$2" dd if="$TMP/data$2" of="$DEV" bs=64k seek=$(($2 * 16)) conv=notrunc,fsync status=none) || return 1
	echo 1 >/proc/sys/vm/drop_caches
	cmp -s -n $((8 * MiB)) -i "0:$(($2 * MiB))" "$TMP/data$2" "$DEV" || echo "at $2 MiB" >>"$TMP/bad"
}

merges() {
	pick 0 0 2
	echo "$REPLY" >"/sys/block/$DISK/queue/nomerges"
}

plan $((2 * 4 + 3))
leaks_begin
mount_cgroup v2
group a b c
ALL="a b c"
for mib in 40 52; do head -c $((8 * MiB)) /dev/urandom >"$TMP/data$mib"; done
scenario "weights, merges" "b c" "change_weight $ALL" "buffered a 40" "buffered b 52" "merges"
scenario "schedulers, limits" "b c" "change_weight $ALL" "buffered a 40" "buffered b 52" "elevator" "rules $ALL"
umount_cgroup
check "buffered data is read as it was written" test ! -e "$TMP/bad"
leak_point
check "the kernel log has no splats" no_splat
