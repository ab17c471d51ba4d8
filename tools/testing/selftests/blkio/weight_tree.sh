#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 900
# Weights in a hierarchy, weights that change under load, weights together with limits, and weights that differ
# greatly.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

tree() {
	NAMES=(p p/a p/a/x p/a/y p/b q)
	group p p/a p/a/x p/a/y p/b q
	weight p $((2 * DFL))
	weight p/a $((3 * DFL / 2))
	weight p/a/x $((3 * DFL / 2))
	weight p/a/y $((DFL / 2))
	null_dev "tree$1" completion_nsec=1000000 hw_queue_depth=1
	know "$DEV"
	T=16
	if [ "$1" = v1 ]; then
		# a group's own I/O counts like that of a child with the default weight
		NAMES=(p p/a/x p/a/y p/b q)
		DEPTHS=(8 8 8 8 8)
		run -s 4k -p rand
		# p 2/3: itself 2/7, a 3/7 (x 3/4, y 1/4), b 2/7
		check "v1, three levels, the middle one with I/O of its own: groups get their shares" \
			shared 5000 0 $((2 * 2 * 4)) $((3 * 3 * 2)) $((3 * 1 * 2)) $((2 * 2 * 4)) $((7 * 4))
		echo $((2 * DFL)) >"$CG/p/blkio.leaf_weight"
		run -s 4k -p rand
		# p 2/3: itself 4/9, a 3/9, b 2/9
		check "v1, a leaf weight of the group in the middle: groups get their shares" shared 5000 0 16 9 3 8 18
		echo "$(devno "$DEV") $DFL" >"$CG/p/blkio.leaf_weight_device"
		run -s 4k -p rand
		check "v1, another leaf weight for this disk: groups get their shares" \
			shared 5000 0 $((2 * 2 * 4)) $((3 * 3 * 2)) $((3 * 1 * 2)) $((2 * 2 * 4)) $((7 * 4))
	else
		NAMES=(p/a/x p/a/y p/b q)
		DEPTHS=(8 8 8 8)
		run -s 4k -p rand
		# p 2/3: a 3/5 (x 3/4, y 1/4), b 2/5
		check "v2, three levels: groups get their shares" shared 5000 0 $((2 * 3 * 3)) $((2 * 3)) $((2 * 2 * 4)) $((5 * 4))
		NAMES=(p/a/y p/b)
		DEPTHS=(8 8)
		run -s 4k -p rand
		check "v2, a group is idle: its siblings get its share" shared 5000 0 3 2
	fi
}

live() {
	group a b
	NAMES=(a b)
	weights $DFL $((DFL / 2))
	null_dev "live$1" completion_nsec=100000 hw_queue_depth=1
	know "$DEV"
	start_soon
	load a a -f "$DEV" -s 4k -p rand -d 16 -t 1 -i 0.01
	load b b -f "$DEV" -s 4k -p rand -d 16 -t 1 -i 0.01 -S 2
	until_ns $((START + 500000000))
	weights $((DFL / 5)) $((DFL * 4 / 5))
	wait_loads
	check "$1: 2:1 before the change" bins a 5 50 64 69
	check "$1: 1:4 from 10 ms after it" bins a 51 99 18 22
	cap a "$DEV" riops=500
	DEPTHS=(8 8)
	weights $((DFL * 2)) $((DFL / 5))
	T=4
	run -s 4k -p rand
	check "$1: a group with a great weight and a limit gets its limit" in_range "$(counted a)" 1480 1505
	check "$1: the other group gets the rest" in_range "$(counted b)" $((30000 - 1505 - 300)) $((30000 - 1480))
	cap a "$DEV" riops=max
}

scenarios() {
	mount_cgroup "$1"
	case $1 in v1) DFL=500 ;; v2) DFL=100 ;; esac
	tree "$1"
	live "$1"
	umount_cgroup
}

# many NUMBER: this many active groups, every second one with half the weight; sets EVEN and ODD to the I/Os of the
# heavier and of the lighter groups
many() {
	local i
	null_dev many completion_nsec=1000000 hw_queue_depth=64
	NAMES=() DEPTHS=()
	EVEN=0 ODD=0
	for ((i = 0; i < $1; i++)); do
		NAMES+=("g$i")
		DEPTHS+=(1)
	done
	group "${NAMES[@]}"
	for ((i = 0; i < $1; i++)); do weight "g$i" $((i % 2 ? 100 : 200)); done
	know "$DEV"
	T=4
	run -s 4k -p rand
	for ((i = 0; i < $1; i += 2)); do
		EVEN=$((EVEN + $(counted "g$i")))
		ODD=$((ODD + $(counted "g$((i + 1))")))
	done
}

plan 16
scenarios v1
scenarios v2

mount_cgroup v2
group low high
NAMES=(low high)
DEPTHS=(8 8)
null_dev far completion_nsec=100000 hw_queue_depth=1
weights 1 10000
know "$DEV"
T=8
run -s 4k -p rand
check "weights 1 and 10000: neither group starves" in_range "$(counted low)" 3 12
many 200
check "200 groups: the device is busy" within $((EVEN + ODD)) 192000 100000
check "200 groups: heavier groups get twice as much" within $((1000 * EVEN / ODD)) 2000 10000
