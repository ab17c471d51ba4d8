#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A hundred thousand owners of dirty pages come and go on v1, each a group on a disk;
# half of them are removed with dirty pages. Each is charged its own, and nothing stays.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"

# kept: KiB of objects in use, but for those of names, inodes and vmalloc(), which are freed
# late; and of what is for each CPU. Pages of slabs would not do: how full these are changes by hundreds.
kept() {
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^Percpu:/ { n += $2 }
		FILENAME ~ /slabinfo/ && FNR > 2 && !/^dentry|inode|^radix_tree_node|^vmap_area/ { n += $2 * $4 / 1024 }
		END { print int(n) }' /proc/meminfo /proc/slabinfo
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
	before=$(kept)
	check "owners come and go, $turn" come_and_go
	check "as many as there should be, $turn" equal "$(owners)" 35000
	check "their groups go, too, $turn" none_left
done
# of the smallest there are, a group's pages of a disk, one in 500 that stays is more
check "nothing of them stays" in_range $(($(kept) - before)) -1000 12
