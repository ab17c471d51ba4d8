#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Groups with a limit and 16 MiB of memory: where both are one hierarchy, v1 and v2, and where, on v1, those with and
# without a limit share a group of the other one. They have their rates; who shares the memory of a limited
# writer does not wait for it.
# configs: uml-vt
# memory: 192
. "$(dirname "$0")/blkio_lib.sh"
# shellcheck source=blkio_memory.sh
. "$HERE/blkio_memory.sh"

NO_WAIT=$((1000 * 1000))
SEC=100

# memory_file NAME_V1 NAME_V2
memory_file() { if [ "$CGV" = v1 ]; then echo "memory.$1"; else echo "memory.$2"; fi; }
# of a DIR: it gets 16 MiB; how often that was too little; how many tasks were killed for that
limit_memory() { echo $((16 * MiB)) >"$1/$(memory_file limit_in_bytes max)"; }
memory_was_full() { awk 'NF == 1 { print $1 } $1 == "max" { print $2 }' "$1/$(memory_file failcnt events)"; }
memory_failed() { awk '$1 == "oom_kill" { print $2 }' "$1/$(memory_file oom_control events)"; }

# hierarchy CONTROLLERS DIR
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
	check "$name: write() has its rate" within "$(val slow bytes)" $((SEC * MiB)) 10000
	check "$name: the disk gets it" in_range $(($(charged) - before)) $(((SEC - 1) * MiB)) $((SEC * MiB + MiB / 4))
	check "$name: its dirty pages are within its window" in_range "$own" 1 $((window * 5 / 4))
	# in a full group of v1 reclaim may wait for a page that is being written
	check "$name: nobody waits for memory" in_range "$(worst "$name" alloc p99_ns)" 0 $NO_WAIT
	check "$name: nor to write" in_range "$(worst "$name" write max_ns)" 0 $NO_WAIT
	check "$name: its memory was full" in_range "$(memory_was_full "$2")" 1 1000000000
	check "$name: no task is killed for its memory" equal "$(memory_failed "$2")/$(vmstat oom_kill)" 0/0
}

charged() { counted slow; }

# forget: what holds on to a group goes, and the hierarchy
forget() {
	sync
	rm -f "$TMP"/*.json
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

# apart: all have 16 MiB between them
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
# the last to close a disk writes it back
exec 7<>"$DEV"
together raw v1
apart raw
together raw memcg
small_ext4 "$DEV"
together ext4 v1
apart ext4
together ext4 memcg
