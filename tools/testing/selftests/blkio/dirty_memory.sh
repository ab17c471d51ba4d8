#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A machine of 64 MiB in which a group with a limit writes 1 GiB, on v1 and on v2 with the memory controller, to a raw
# disk and in ext4. It gets its limit and has no more dirty pages than its window; a group without a limit and the root
# group beside it never wait for memory.
# configs: uml-vt
# memory: 64
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_memory.sh
. "$HERE/lib/blkio_memory.sh"

LIMIT=$(vmstat nr_dirty_threshold)
# less than the shortest wait of reclaim, a jiffy
NO_WAIT=$((1000 * 1000))

# phase NAME MIB_PER_S THINK_TIME: 8 points
phase() {
	local name=$1 rate=$2 took window=$(($2 * MiB / 4096)) stalls throttled
	# a second's worth of its limit, and 1/8 of the system's limit
	((window <= LIMIT / 8)) || window=$((LIMIT / 8))
	sync
	cap slow "$DEV" wbps=$((rate * MiB))
	stalls=$(vmstat allocstall) throttled=$(vmstat nr_throttled_written)
	sampler slow
	start_soon
	those_beside "$name" $((1024 / rate)) "$3"
	# shellcheck disable=SC2046 # words
	load slow slow $(place slow 0) -L "$PART" -b -o w -s 64k -n 16384
	wait_loads
	sampled
	show "$name"
	note "$name: direct reclaim $(($(vmstat allocstall) - stalls)) times"
	took=$((($(val slow end_ns) - $(val slow start_ns)) / 1000000))
	check "$name: 1 GiB takes as long as the limit demands" within $took $((1024 * 1000 / rate)) 10000
	check "$name: the group's dirty pages are within its window" in_range "$own" $((window / 8)) $((window * 5 / 4))
	check "$name: all dirty pages are within the system's limit" in_range "$all" 1 "$LIMIT"
	check "$name: no other task waits for memory" in_range "$(worst "$name" alloc max_ns)" 0 $NO_WAIT
	check "$name: no other task waits to write" in_range "$(worst "$name" write max_ns)" 0 $NO_WAIT
	check "$name: reads of other groups are as fast as without the writer" \
		in_range "$(worst "$name" read p99_ns)" 0 $(($(worst alone read p99_ns) * 3 / 2))
	check "$name: reclaim is not throttled" equal "$(vmstat nr_throttled_written)" "$throttled"
	check "$name: no task is killed because memory is short" equal "$(vmstat oom_kill)" 0
}

alone() {
	start_soon
	those_beside alone 60 0.2
	wait_loads
	note "direct reclaim $(vmstat allocstall) times so far"
	show alone
}

raw() {
	group slow free
	alone
	phase "raw, 1 MiB a second" 1 1
	phase "raw, 16 MiB a second" 16 0.2
	sync
}

in_ext4() {
	group slow free
	alone
	phase "ext4, 1 MiB a second" 1 1
	phase "ext4, 16 MiB a second" 16 0.2
	sync
	rm -f "$TMP"/*.json
	echo 3 >/proc/sys/vm/drop_caches
}

plan 48
note "of $(awk '/MemTotal/ { print $2 }' /proc/meminfo) KiB $LIMIT pages may be dirty"
# so fast that no read waits for pages of the groups beside that the kernel writes back at once
null_dev data size=2048 mbps=1000
# the last close of a disk writes its pages back
exec 7<>"$DEV"
# on v2 the kernel slows writers by what is written for their group, and the file of a disk belongs to one group
on_each raw v1
small_ext4 "$DEV"
on_each in_ext4 v1 memcg
