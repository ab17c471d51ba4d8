#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Groups with a limit and 16 MiB of memory: both controllers in one hierarchy, v1 and v2; and on v1, in two hierarchies,
# where a group with and one without a limit share a group of the other hierarchy. Groups get their limits, and a group
# that shares the memory of a limited writer does not wait for it.
# configs: uml-vt
# memory: 192
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_memory.sh
. "$HERE/lib/blkio_memory.sh"

NO_WAIT=$((1000 * 1000))
SEC=100

# memory_file NAME_V1 NAME_V2: the name in this hierarchy
memory_file() { if [ "$CGV" = v1 ]; then echo "memory.$1"; else echo "memory.$2"; fi; }
# functions of a memory group DIR: give it 16 MiB; how often that was too little; how many tasks were killed for that
limit_memory() { echo $((16 * MiB)) >"$1/$(memory_file limit_in_bytes max)"; }
memory_was_full() { awk 'NF == 1 { print $1 } $1 == "max" { print $2 }' "$1/$(memory_file failcnt events)"; }
memory_failed() { awk '$1 == "oom_kill" { print $2 }' "$1/$(memory_file oom_control events)"; }

# hierarchy CONTROLLERS DIR: mounts a hierarchy of v1
hierarchy() { mkdir -p "$2" && mount -t cgroup -o "$1" none "$2"; }

# phase NAME MEMORY_GROUP: 7 points
phase() {
	local name=$1 window=$((MiB / 4096)) before
	sync
	before=$(charged)
	sampler slow
	start_soon
	those_beside "$name" $SEC 0.2
	# shellcheck disable=SC2046 # words
	load slow slow $(place slow 0) -L "$PART" -b -o w -s 64k -t $SEC
	wait_loads
	sampled
	show "$name"
	note "$name: $(awk '$1 ~ /^(cache|file|rss|anon|dirty|file_dirty|writeback|file_writeback)$/' "$2/memory.stat" | xargs)"
	check "$name: write() proceeds at the limit" within "$(val slow bytes)" $((SEC * MiB)) 10000
	check "$name: the disk gets the limit" in_range $(($(charged) - before)) $(((SEC - 1) * MiB)) $((SEC * MiB + MiB / 4))
	check "$name: the group's dirty pages are within its window" in_range "$own" 1 $((window * 5 / 4))
	# in a full memory group of v1 reclaim may wait for a page that is being written
	check "$name: no other task waits for memory" in_range "$(worst "$name" alloc p99_ns)" 0 $NO_WAIT
	check "$name: no other task waits to write" in_range "$(worst "$name" write max_ns)" 0 $NO_WAIT
	check "$name: the memory of the group was full" in_range "$(memory_was_full "$2")" 1 1000000000
	check "$name: no task is killed because memory is short" equal "$(memory_failed "$2")/$(vmstat oom_kill)" 0/0
}

charged() { counted slow; }

# forget: whatever keeps groups from being freed goes, and then the hierarchy
forget() {
	sync
	find "$TMP" -maxdepth 1 -type f -delete
	echo 3 >/proc/sys/vm/drop_caches
	umount_cgroup
}

# together NAME v1|memcg: the limited group has 16 MiB of its own
together() {
	mount_cgroup "$2" blkio,memory
	group slow free
	cap slow "$DEV" wbps=$MiB
	limit_memory "$CG/slow"
	phase "$1, $CGV, together" "$CG/slow"
	forget
}

# apart: all groups have 16 MiB together
apart() {
	local shared=$TMP/memory/all
	mount_cgroup v1
	group slow free
	cap slow "$DEV" wbps=$MiB
	hierarchy memory "$TMP/memory"
	mkdir "$shared"
	limit_memory "$shared"
	# loads are made by this shell
	echo $$ >"$shared/cgroup.procs"
	phase "$1, v1, apart" "$shared"
	echo $$ >"$TMP/memory/cgroup.procs"
	rmdir "$shared"
	umount "$TMP/memory"
	forget
}

plan 42
null_dev data size=2048 mbps=100
DISK=$DEV
# the last close of a disk writes its pages back
exec 7<>"$DEV"
together raw v1
together raw memcg
small_ext4 "$DEV"
together ext4 v1
together ext4 memcg
# Memory of this shell belongs to the groups of apart() for good. On Linux 6.18 such a group is not freed, and v2 does
# not get the controller back.
apart ext4
umount "$MNT"
DEV=$DISK
apart raw
