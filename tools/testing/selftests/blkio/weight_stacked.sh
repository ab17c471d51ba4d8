#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 900
# Weights on disks that are made of others, or that have no queue: two striped volumes; and 10/30/60 on md, dm, loop and
# brd. A weight for one device applies on that layer and on no other.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

ONE_TAG="completion_nsec=6600000 hw_queue_depth=1"
SERIAL="completion_nsec=100000 mbps=100"

# controlled TEXT TOLERANCE "NODE..." "WEIGHT..." OPTION...: weights for these devices
controlled() {
	local text=$1 tolerance=$2 nodes=$3 list=$4 before i w node
	shift 4
	run "$@"
	before=$(total)
	read -ra w <<<"$list"
	for node in $nodes; do
		for i in "${!NAMES[@]}"; do weight "${NAMES[i]}" "${w[i]}" "$node"; done
		know "$node"
	done
	run "$@"
	# shellcheck disable=SC2086 # words
	check "$text: groups get their shares" shared "$tolerance" 0 $list
	check "$text: all groups together do as much as without weights" as_fast "$FAST" "$before"
	for node in $nodes; do
		for i in "${!NAMES[@]}"; do weight "${NAMES[i]}" default "$node"; done
	done
}

# disk NAME KEY=VALUE...: the disk below
disk() {
	null_dev "$@"
	BELOW=$DEV
}

# two striped volumes on two disks, weights 20/10, 128 threads each
s3() {
	local one two half node
	NAMES=(a b)
	DEPTHS=(128 128)
	T=60
	# shellcheck disable=SC2086 # words
	disk s3one $ONE_TAG
	one=$BELOW
	# shellcheck disable=SC2086 # words
	disk s3two $ONE_TAG
	two=$BELOW
	# shares are by I/Os here: no two I/Os may be consecutive and joined to one
	for node in $one $two; do echo 2 >"/sys/block/${node##*/}/queue/nomerges"; done
	half=$(($(sectors "$one") / 2))
	dm_dev lv1 "0 $((2 * half)) striped 2 8 $one 0 $two 0"
	DEVS=("$DEV")
	dm_dev lv2 "0 $((2 * half)) striped 2 8 $one $half $two $half"
	DEVS+=("$DEV")
	controlled "striped volumes, one for each group, weights at the disks" 3000 "$one $two" "200 100" -o rw -p seq -s 4k
	# The I/Os of a group walk between the two disks at random. A group that has none at one disk can not use its share
	# there, and with 128 I/Os that happens for a part of a minute that no scheduler can know: a perfect one gives group b
	# 33.4 % with a standard deviation of 0.24. In half a minute the walk is 55 wide (1 sigma), so that 512 never all meet.
	DEPTHS=(512 512)
	T=30
	controlled "striped volumes, one for each group, random I/O, weights at the disks" 3000 \
		"$one $two" "200 100" -o rw -p rand -s 4k
	DEPTHS=(128 128)
	T=60
	DEVS[1]=${DEVS[0]}
	controlled "both groups on one striped volume, weights there" 3000 "${DEVS[0]}" "200 100" -o rw -p seq -s 4k
	DEVS=()
	NAMES=(a b c)
}

# s1 TEXT [OPTION...]: 10/30/60 by weights for the top and for the disk below
s1() {
	local text=$1
	shift
	DEPTHS=(8 8 8)
	T=8
	controlled "$text, weights at the top" 5000 "$DEV" "100 300 600" -p rand -s 64k "$@"
	controlled "$text, weights below" 5000 "$BELOW" "100 300 600" -p rand -s 64k "$@"
}

mount_cgroup v2
group a b c
plan 19
s3

# shellcheck disable=SC2086 # words
disk underdm $SERIAL
dm_dev linear "0 1000000 linear $BELOW 0"
s1 "dm-linear"

# shellcheck disable=SC2086 # words
disk underloop $SERIAL
DEV=$(losetup --find --show --direct-io=on "$BELOW")
undo+=("losetup -d $DEV")
s1 "loop"

# shellcheck disable=SC2086 # words
disk undermd1 $SERIAL memory_backed=1 size=64
FIRST=$BELOW
# shellcheck disable=SC2086 # words
disk undermd2 $SERIAL memory_backed=1 size=64
md_dev md0 raid1 "$FIRST" "$BELOW" || bail "the kernel has no RAID1"
BELOW="$FIRST $BELOW"
s1 "md RAID1" -o w

# a disk that takes no time has nothing to share
[ -e /dev/ram0 ] || modprobe brd 2>/dev/null || true
DEV=/dev/ram0
T=0.1
DEPTHS=(8 8 8)
weights 100 300 600
know "$DEV"
run -p rand -s 64k
check "brd with weights: all groups go on" test "$(counted a)" -gt 100 -a "$(counted c)" -gt 100
