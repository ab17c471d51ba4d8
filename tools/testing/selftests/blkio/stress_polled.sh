#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# I/O for which io_uring polls, under limits and weights that change, also while it is held and not in flight yet: all
# I/O ends, and all data is right.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

SIZE=$((8 * MiB))

# polled GROUP NAME OFFSET: writes a part of the disk, twice, and reads it back each time
polled() {
	rm -f "$TMP/$2.pid"
	background "$2" polled_fn "$@"
	wait_for "$2" test -s "$TMP/$2.pid"
}
polled_fn() {
	(exec_in "$1" "$2" fio --name="$2" --filename="$DEV" --ioengine=io_uring --hipri --direct=1 --thread \
		--rw=randwrite --bsrange=4k-64k --iodepth=16 --offset="$3" --size=$SIZE --loops=2 --verify=crc32c \
		--verify_fatal=1 --randseed="${3}1" --output-format=terse --aux-path="$TMP")
}

# right NAME: the load ended without an error
right() {
	wait_for "$1" test -s "$TMP/$1.rc" || return 1
	cat "$TMP/$1.out"
	[ "$(cat "$TMP/$1.rc")" = 0 ]
}

# scenario TEXT CHANGE: three points
scenario() {
	local i
	polled a one 0
	polled b two $SIZE
	for ((i = 0; i < 200; i++)); do
		! [ -s "$TMP/one.rc" ] || ! [ -s "$TMP/two.rc" ] || break
		"$2" "$i"
		sleep 0.1
	done
	check "$1: the first load ended without an error" right one
	check "$1: the second load ended without an error" right two
	check "$1: no bio is held in the end" wait_for "nothing held" holds_none "$DISK"
}

limits() {
	cap a "$DEV" "wbps=$((($1 % 4 + 2) * MiB))" "riops=$((200 + $1 * 10))"
	cap b "$DEV" "wiops=$(($1 % 5 * 100 + 100))"
}
weights() {
	cap a "$DEV" wbps=max riops=max
	cap b "$DEV" wiops=max
	weight a $((100 + $1 % 7 * 100)) "$DEV"
}
both() {
	weights "$1"
	cap b "$DEV" "wbps=$((($1 % 4 + 2) * MiB))"
}

plan 12
leaks_begin
mount_cgroup v2
group a b
smp_null smppoll poll_queues=1
# allocates the disk's pages: null_blk would sleep for them while it is polled
dd if=/dev/zero "of=$DEV" bs=1M count=$((2 * SIZE / MiB)) oflag=direct status=none
check "the disk can be polled" grep -q 1 "/sys/block/$DISK/queue/io_poll"
scenario limits limits
scenario weights weights
scenario both both
null_end smppoll
umount_cgroup
leak_point
check "the kernel log has no splats" no_splat
