#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A hundred thousand owners of dirty pages come and go on v1, each a group on a disk;
# half of them are removed with dirty pages. Each is charged its own, and nothing stays.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"

# keep TURN: bytes of objects in use by kind, but for those of names, inodes and vmalloc(), which are
# freed late; and of what is for each CPU. Pages of slabs would not do: how full these are changes by hundreds.
keep() {
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^Percpu:/ { print "percpu", $2 * 1024 }
		FILENAME ~ /slabinfo/ && FNR > 2 && !/^dentry|inode|^radix_tree_node|^vmap_area/ { print $1, $2 * $4 }' \
		/proc/meminfo /proc/slabinfo >"$TMP/kept.$1"
}

# grown: KiB by which objects of a kind have become more in the last turn and in the one before.
# What is lost is lost in each; a slab more in one of them is none.
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
# come_and_go: 35,000 of them
come_and_go() {
	python3 "$HERE/writeback_ids.py" "$CG/top" 7 125 "${disks[@]}" >"$TMP/ids" && return
	cat "$TMP/ids"
	return 1
}
owners() { head -n 1 "$TMP/ids"; }

# none_left: no group but the root and ours
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
	# what the first ones leave are caches
	keep $turn
	check "owners come and go, $turn" come_and_go
	check "as many as there should be, $turn" equal "$(owners)" 35000
	check "their groups go, too, $turn" none_left
done
# of the smallest there are, a group's pages of a disk, one in 500 that stays is more
keep 4
check "nothing of them stays" in_range "$(grown)" 0 12
