#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 600
# Tasks that pay before they dirty pages, or wait in line with a debt: their groups lose the controller meanwhile, and
# they are killed; or there is no memory to wait with. No group is freed that something still waits in, and a task
# without memory waits all the same.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

ROUNDS=${ROUNDS:-10}

# stores FILE: eight tasks dirty pages through mappings, and make a debt with each page
stores() {
	exec python3 -c '
import mmap, os, sys
for i in range(7):
    if not os.fork():
        break
else:
    i = 7
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 8 << 20, offset=i * 8 << 20) as area:
    while True:
        for page in range(0, len(area), 4096):
            area[page] = 1' "$@"
}

# directly FILE: eight tasks whose direct writes wait for the limit above
directly() {
	local i
	for i in {1..8}; do
		dd if=/dev/zero of="$1" bs=16k count=1024 seek=$(((i + 4) * 1024)) oflag=direct conv=notrunc status=none &
	done
	wait
}

in_child() {
	echo "$BASHPID" >"$CG/$1/cgroup.procs"
	shift
	"$@"
}

# released: without a limit nothing stays held
released() {
	cap p "$DEV" wbps=max
	wait_for "held bios" holds_none "$DISK" && return
	cat "/sys/kernel/debug/block/$DISK/ioband/groups"
	return 1
}

no_tasks() { grep -qx "populated 0" "$CG/p/cgroup.events"; }

# all_killed PID...: those children that moved into groups, and all that they forked: nobody forks once they have ended
all_killed() {
	kill -KILL "$@"
	wait "$@" 2>/dev/null
	echo 1 >"$CG/p/cgroup.kill"
	wait_for "end of the killed tasks" no_tasks
}

# Groups below a limit lose the controller while a task of one of them owes and the other has bios that wait.
lose() {
	local i storing writing
	for ((i = 0; i < ROUNDS; i++)); do
		echo +io >"$CG/p/cgroup.subtree_control"
		in_child p/owes stores "$DEV" &
		storing=$!
		in_child p/waits directly "$DEV" 2>/dev/null &
		writing=$!
		sleep "0.$((i % 5 + 3))"
		echo -io >"$CG/p/cgroup.subtree_control"
		sleep "0.$((i % 4 + 1))"
		all_killed "$storing" "$writing" || return 1
		[ $((i % 4)) = 3 ] || continue
		released || return 1
		cap p "$DEV" wbps=$((128 * KiB))
	done
	released
}

# no_memory: the time that 1 MiB of write() takes, in ms, while there is no memory to wait in line with
no_memory() {
	local slab=/sys/kernel/debug/failslab cache
	echo Y >$slab/task-filter
	echo Y >$slab/cache-filter
	echo N >$slab/ignore-gfp-wait
	echo 0 >$slab/verbose
	echo -1 >$slab/times
	echo 100 >$slab/probability
	for cache in "${CACHES[@]}"; do echo 1 >"$cache/failslab"; done
	in_child p/owes python3 -c '
import os, sys, time
fd, block = os.open(sys.argv[1], os.O_WRONLY), bytes(16384)
with open("/proc/self/make-it-fail", "w") as switch:
    switch.write("1")
begin = time.monotonic()
for i in range(64):
    os.pwrite(fd, block, i * len(block))
print(int((time.monotonic() - begin) * 1000))' "$MNT/file"
	for cache in "${CACHES[@]}"; do echo 0 >"$cache/failslab"; done
	echo 0 >$slab/probability
}

# The limit allows it in 7 s. On a busy machine it can take longer.
slowed() {
	local took_ms
	took_ms=$(no_memory)
	echo "1 MiB in $took_ms ms"
	in_range "${took_ms:-0}" 5000 60000
}

plan 5
# a ticket is in one of these, see ioband_ticket_alloc()
CACHES=(/sys/kernel/slab/kmalloc-cg-{256,512})
[ -w "${CACHES[0]}/failslab" ] || bail "no failslab in this kernel"
leaks_begin
mount_cgroup v2
group p p/owes p/waits
smp_null smpticket size=256
cap p "$DEV" wbps=$((128 * KiB))
check "groups lose the controller while tasks owe and wait: all held bios end" lose
check "groups that have lost the controller can be removed" removed p/waits
echo +io >"$CG/p/cgroup.subtree_control"
MNT=$TMP/mnt
mkdir "$MNT"
undo+=("umount $MNT")
mkfs.ext4 -q -F -E lazy_itable_init=0 "$DEV"
mount "$DEV" "$MNT"
dd if=/dev/zero of="$MNT/file" bs=1M count=1 conv=fsync status=none
cap p/owes "$DEV" wbps=$((128 * KiB))
check "write() for which there is no memory to wait with is as slow as the limit" slowed
leak_point
check "the kernel log has no splats" no_splat
