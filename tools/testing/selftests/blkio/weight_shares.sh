#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 900
# Weights share a disk, on v1 and v2, by the weight of the cgroup and by that for the device; scenarios "10/30/60" and
# "threads". The rates are compared with those without control.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

ONE_TAG="completion_nsec=6600000 hw_queue_depth=1"
SERIAL="completion_nsec=100000 mbps=100"

# 10/30/60
s1() {
	local op where
	for op in r w; do
		for where in seq rand; do
			for depth in 4 8; do
				DEPTHS=("$depth" "$depth" "$depth")
				compare "$CGV, 10/30/60 $1, $op $where, depth $depth" 5000 0 "$W1" -o $op -p $where -s 64k
			done
		done
	done
}

# 50, 100 and 200 threads at 40/20/10, and at equal weights
s2() {
	DEPTHS=(50 100 200)
	compare "$CGV, threads $1" 3000 "$2" "800 400 200" -o rw -p rand -s 4k
	compare "$CGV, threads $1, equal weights" 3000 "$2" "300 300 300" -o rw -p rand -s 4k
}

# 10/30/60 with a device for each group: no group is slowed down
own_devices() {
	local i before
	DEVS=()
	for i in 1 2 3; do
		# shellcheck disable=SC2086 # words
		null_dev "own$CGV$i" $SERIAL
		DEVS+=("$DEV")
	done
	DEPTHS=(4 4 4)
	weights "$DFL" "$DFL" "$DFL"
	run -s 64k
	before=$(counted a)
	# shellcheck disable=SC2086 # words
	weights $W1
	for i in "${DEVS[@]}"; do know "$i"; done
	run -s 64k
	for i in a b c; do
		check "$CGV, a device for each group: group $i is not slowed down" \
			in_range "$(counted $i)" $((before * 99 / 100)) $((before * 101 / 100))
	done
	DEVS=()
}

# threads, with a partition for each group
partitions() {
	local i
	# shellcheck disable=SC2086 # words
	null_dev "part$CGV" $ONE_TAG
	for i in 1 2 3; do addpart "$DEV" $i $((i * 524288)) 524288; done
	DEVS=("${DEV}p1" "${DEV}p2" "${DEV}p3")
	DEPTHS=(50 100 200)
	compare "$CGV, threads on partitions" 3000 0 "800 400 200" -o rw -p rand -s 4k
	DEVS=()
}

scenarios() {
	mount_cgroup "$1"
	group a b c
	case $1 in v1) DFL=500 W1="100 300 600" ;; v2) DFL=100 W1="1000 3000 6000" ;; esac
	T=8
	# shellcheck disable=SC2086 # words
	null_dev "serial$1" $SERIAL
	s1 serial
	# shellcheck disable=SC2086 # words
	null_dev "onetag$1" $ONE_TAG
	T=60
	s2 "one tag" 0
	partitions
	null_dev "tags$1" completion_nsec=6600000 hw_queue_depth=64
	T=8
	s2 "64 tags" 64
	T=4
	own_devices
	umount_cgroup
}

plan $((2 * (16 + 4 + 2 + 4 + 3)))
scenarios v1
scenarios v2
