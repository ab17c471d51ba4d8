# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # blkio_lib.sh has the units, blkio_memory.sh counts pages
# Sourced by tests of groups with a limit and 16 MiB of memory.
# shellcheck source=blkio_memory.sh
. "$HERE/lib/blkio_memory.sh"

NO_WAIT=$((1000 * 1000))
SEC=100

# memory_file NAME_V1 NAME_V2: the name in this hierarchy
memory_file() { if [ "$CGV" = v1 ]; then echo "memory.$1"; else echo "memory.$2"; fi; }
# functions of a memory group DIR: give it 16 MiB; how often that was too little; how many tasks were killed for that
limit_memory() { echo $((16 * MiB)) >"$1/$(memory_file limit_in_bytes max)"; }
memory_was_full() { awk 'NF == 1 { print $1 } $1 == "max" { print $2 }' "$1/$(memory_file failcnt events)"; }
memory_failed() { awk '$1 == "oom_kill" { print $2 }' "$1/$(memory_file oom_control events)"; }

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
	cap slow "$DEV" "wbps=$MiB"
	limit_memory "$CG/slow"
	phase "$1, $CGV, together" "$CG/slow"
	forget
}
