#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A hundred thousand dirtiers of pages come and go on v1, each a group on a disk; half of them are removed with dirty
# pages. Each is charged for its pages, and nothing stays allocated.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

# keep TURN: the bytes of slab objects in use by kind, without those of names, inodes and vmalloc(), which are freed
# late; and the per-CPU memory. Pages of slabs would not do: how full these are changes by hundreds.
keep() {
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^Percpu:/ { print "percpu", $2 * 1024 }
		FILENAME ~ /slabinfo/ && FNR > 2 && !/^dentry|inode|^radix_tree_node|^vmap_area/ { print $1, $2 * $4 }' \
		/proc/meminfo /proc/slabinfo >"$TMP/kept.$1"
}

# grown: KiB by which the objects of a kind have grown in the last turn and in the one before. A leak is in each turn;
# one more slab in one of them is none.
grown() {
	awk 'FILENAME != file { file = FILENAME; nr++ }
		{ bytes[nr, $1] = $2; kinds[$1] }
		END {
			for (kind in kinds) {
				once = bytes[2, kind] - bytes[1, kind]
				again = bytes[3, kind] - bytes[2, kind]
				least = once < again ? once : again
				if (least > 0) { sum += least; print kind, once, again >"/dev/stderr" }
			}
			print int(sum / 1024)
		}' "$TMP"/kept.{2,3,4}
}
nr_cgroups() { awk '$1 == "blkio" { print $3 }' /proc/cgroups; }
# come_and_go: 35,000 groups
come_and_go() {
	python3 "$HERE/lib/dirty_ids.py" "$CG/top" 7 125 "${disks[@]}" >"$TMP/ids" && return
	cat "$TMP/ids"
	return 1
}
owners() { head -n 1 "$TMP/ids"; }

# none_left: no group is left but the root and those of the test
none_left() {
	local i
	for ((i = 0; i < 100; i++)); do
		[ "$(nr_cgroups)" != 2 ] || return 0
		echo 3 >/proc/sys/vm/drop_caches
		sleep 0.25
	done
	return 1
}

plan 10
disks=()
mount_cgroup v1
group top
for ((i = 0; i < 40; i++)); do
	null_dev "nb$i" size=8
	disks+=("$DEV")
	cap top "$DEV" wbps=$((1024 * MiB))
done
for turn in 1 2 3; do
	# the first groups fill caches, which stay
	keep $turn
	check "turn $turn: groups with dirty pages come and go" come_and_go
	check "turn $turn: the number of groups is right" equal "$(owners)" 35000
	check "turn $turn: all groups are freed" none_left
done
# of the smallest objects, a group's pages on a disk, one in 500 that stays is more than this
keep 4
check "no kind of object has grown in each turn" in_range "$(grown)" 0 12
