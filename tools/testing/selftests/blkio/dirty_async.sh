#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tasks that must not wait to dirty pages do not wait: a write with RWF_NOWAIT gets EAGAIN at once, and when repeated
# the rate of its group; a write() that waits can be killed; a write by io_uring is divided into parts.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

RATE=$((256 * KiB)) SEC=20

# Writes with RWF_NOWAIT, as io_uring does, again after 1 ms if refused. Prints the bytes after 2 s, the bytes of the
# rest, how often a write was refused, and the longest call in us.
ASYNC='
import os, sys, time
fd, size, sec = os.open(sys.argv[1], os.O_WRONLY), int(sys.argv[2]), int(sys.argv[3])
block, refused, longest, done = bytes(16384), 0, 0, [0, 0]
begin = time.monotonic()
while (now := time.monotonic()) < begin + 2 + sec:
    try:
        got = os.pwritev(fd, [block], sum(done) % size, os.RWF_NOWAIT)
    except BlockingIOError:
        got = 0
    longest = max(longest, time.monotonic() - now)
    if got:
        done[now > begin + 2] += got
    else:
        refused += 1
        time.sleep(0.001)
print(*done, refused, round(longest * 1e6))
'

# Does a write of root's to the file that asks not to be kept pass when the file's time changes with it?
passes() {
	python3 -c 'import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY)
time.sleep(0.1)
try:
    os.pwritev(fd, [bytes(16384)], 0, os.RWF_NOWAIT)
except BlockingIOError:
    sys.exit(1)' "$1"
}

# async FS: five points
async() {
	local first rest refused longest
	make_fs "$1" "$DEV" -q
	# otherwise each write is refused while the inode has a new time that has to be written
	mount -o remount,lazytime "$MNT"
	dd if=/dev/zero "of=$MNT/file" bs=1M count=64 conv=fsync status=none
	if ! passes "$MNT/file"; then
		for first in {1..5}; do skip "$1, RWF_NOWAIT" "the kernel refuses what changes the time of a file"; done
		umount "$MNT"
		return
	fi
	sync
	note_all
	in_group g1 python3 -c "$ASYNC" "$MNT/file" $((64 * MiB)) $SEC >"$TMP/async" || true
	cat "$TMP/async"
	read -r first rest refused longest <"$TMP/async" || true
	check "$1, RWF_NOWAIT: the group gets its limit" within "${rest:-0}" $((RATE * SEC)) 10000
	check "$1, RWF_NOWAIT: writes are refused while the limit has no room" \
		in_range "${refused:-0}" $((SEC * 10)) $((SEC * 1100))
	check "$1, RWF_NOWAIT: no call waits, us" in_range "${longest:-1000000}" 0 100
	sync
	check "$1, RWF_NOWAIT: the writes are paid for" equal "$(moved 1)" $((first + rest))
	check "$1, RWF_NOWAIT: no page stays counted" none_left
	umount "$MNT"
}

# waits PID: the task is asleep, in the kernel
waits() { grep -q ' (dd) D ' "/proc/$1/stat"; }

# killed FS MKFS_ARGUMENT: a writer that waits for its own dirty pages is killed; three points
killed() {
	local begin writer
	make_fs "$1" "$DEV" -q "$2"
	(echo "$BASHPID" >"$CG/g2/cgroup.procs"
	 exec dd if=/dev/zero "of=$MNT/file" bs=16M count=4 status=none) &
	writer=$!
	sleep 3
	check "$1, write() of 16 MiB under a limit: the task waits" waits "$writer"
	begin=$(now_ms)
	kill -KILL "$writer"
	wait "$writer" 2>/dev/null || true
	check "$1, write() of 16 MiB under a limit: the task can be killed at once, ms" in_range $(($(now_ms) - begin)) 0 20
	sync
	check "$1, write() of 16 MiB under a limit: no page stays counted" none_left
	umount "$MNT"
}

# apart: while a write of 2 MiB by io_uring waits, others can use the file
apart() {
	local begin ring
	make_fs ext4 "$DEV" -q -F
	in_group g1 attack_uring buffered "$MNT/ring" 0 $((2 * MiB)) $((2 * MiB)) $((2 * MiB)) 100000 &
	ring=$!
	sleep 2
	begin=$(now_ms)
	echo >>"$MNT/ring"
	check "while a write of 2 MiB by io_uring waits another group appends to the file, ms" \
		in_range $(($(now_ms) - begin)) 0 200
	wait "$ring"
	umount "$MNT"
}

everywhere() {
	null_dev "nb$HIERARCHY" size=800 memory_backed=1
	group g1 g2 g3
	cap g1 "$DEV" wbps=$RATE
	cap g2 "$DEV" wbps=$((4 * KiB))
	async xfs
	killed ext4 -F
	killed xfs -f
	apart
	null_gone "nb$HIERARCHY"
}

plan 36
on_each everywhere v1 v2 memcg
