#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: none, since it hangs at times; run it by name
# timeout: 900
# A device that does many I/Os at the same time, and says that it is rotational, as virtual disks do: I/Os of one group
# take longer than those of another one, as on tiers of a volume. The group with many I/Os in flight does as many as
# without weights, and so does the other one.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

GIB=$((1024 * MiB))

# volume NAME A_NSEC B_NSEC: sets DEV to a volume whose first GiB takes A_NSEC per I/O, the second B_NSEC
volume() {
	local name=$1 first second
	null_dev "${name}0" completion_nsec="$2" size=1024 hw_queue_depth=64 rotational=1
	first=$DEV
	null_dev "${name}1" completion_nsec="$3" size=1024 hw_queue_depth=64 rotational=1
	second=$DEV
	dm_dev "$name" "0 $((GIB / 512)) linear $first 0
$((GIB / 512)) $((GIB / 512)) linear $second 0"
}

# beside DEPTH DEPTH: a load of each group, a in the first GiB, b in the second
beside() {
	start_soon
	load a a -f "$DEV" -s 4k -p rand -d "$1" -t 4 -i 0.5 -L $GIB -S 1
	load b b -f "$DEV" -s 4k -p rand -d "$2" -t 4 -i 0.5 -O $GIB -L $GIB -S 2
	wait_loads
}

# kept NAME BEFORE: the load does 97 % of so many I/Os at least
kept() {
	echo "$1: $(counted "$1") I/Os, $2 without weights"
	(($(counted "$1") * 100 >= $2 * 97))
}

# uneven TEXT DEPTH DEPTH: two points; in the first part of both measurements the volume is learned
uneven() {
	local a b
	weights 100 100
	beside "$2" "$3"
	a=$(counted a) b=$(counted b)
	weights 200 200
	know "$DEV"
	beside "$2" "$3"
	check "$1: the group with few I/Os in flight does as many as without weights" kept a "$a"
	check "$1: the group with many I/Os in flight does as many as without weights" kept b "$b"
}

mount_cgroup v2
group a b
NAMES=(a b)
plan 6
for slow_ms in 2 4 8; do
	volume rot$slow_ms $((slow_ms * 1000000)) 1000000
	uneven "a parallel disk that says it is rotational, some I/Os take 1 ms, others $slow_ms ms" 1 64
done
