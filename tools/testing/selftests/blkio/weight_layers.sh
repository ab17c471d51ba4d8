#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 900
# Weights on stacks above disks that do several I/Os at once: set for the top, for the disks, and as a default for
# both.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

# at NODE...: weights 100 and 300 for these devices, or for all devices if none is named
at() {
	local node
	[ $# -gt 0 ] || weights 100 300
	for node; do
		weight a 100 "$node"
		weight b 300 "$node"
	done
}
nowhere() {
	local node
	weights 100 100
	for node; do
		weight a default "$node"
		weight b default "$node"
	done
}

# shellcheck disable=SC2086 # words
# layers TEXT "DISK...": six points: shares to within a point, and the rate of all groups to within 3%
layers() {
	local text=$1 below=$2 before where node
	nowhere
	run "${LOAD[@]}"
	before=$(total)
	for where in top below both; do
		case $where in
		top) at "$DEV" ;;
		below) at $below ;;
		both) at ;;
		esac
		for node in $DEV $below; do know "$node"; done
		run "${LOAD[@]}"
		check "$text, weights at $where: groups get their shares" shared 10000 0 100 300
		check "$text, weights at $where: all groups together do as much as without weights" as_fast 970 "$before"
		nowhere "$DEV" $below
	done
}

mount_cgroup v2
group a b
NAMES=(a b) DEPTHS=(16 16) LOAD=(-p rand -s 4k)
plan $((6 * 6 + 1))
T=8
for ms in 20 5; do
	null_dev under$ms completion_nsec=${ms}000000 hw_queue_depth=8
	BELOW=$DEV
	dm_dev linear$ms "0 1000000 linear $BELOW 0"
	layers "dm-linear, 8 x $ms ms" "$BELOW"
	DEV=$(losetup --find --show --direct-io=on "$BELOW")
	undo+=("losetup -d $DEV")
	layers "loop, 8 x $ms ms" "$BELOW"
done
null_dev one completion_nsec=5000000 hw_queue_depth=8 memory_backed=1 size=64
ONE=$DEV
null_dev two completion_nsec=5000000 hw_queue_depth=8 memory_backed=1 size=64
TWO=$DEV
dm_dev striped "0 131072 striped 2 8 $ONE 0 $TWO 0"
# sometimes one disk has more I/Os than it can do at once: without a scheduler the task that submits the next I/O would
# wait for a tag, and could not submit to the other disk meanwhile
DEPTHS=(32 32)
for disk in one two; do echo mq-deadline >/sys/block/$disk/queue/scheduler; done
layers "dm-stripe, 2 x 8 x 5 ms" "$ONE $TWO"
for disk in one two; do echo none >/sys/block/$disk/queue/scheduler; done
dmsetup --noudevsync --noudevrules remove --retry striped
unset "undo[-1]"
LOAD=(-p rand -s 4k -o w)
BELOW=
md_dev md7 raid1 "$ONE" "$TWO" || bail "the kernel has no RAID1"
layers "md RAID1, 2 x 8 x 5 ms" "$ONE $TWO"

# found by stress_torture.sh: both groups together have fewer I/Os than the disks do at once
for name in three four; do
	null_dev $name completion_nsec=7840000 hw_queue_depth=15 memory_backed=1 size=64
	BELOW+=" $DEV"
done
# shellcheck disable=SC2086 # words
md_dev md8 raid0 $BELOW || bail "the kernel has no RAID0"
T=16 DEPTHS=(4 1) LOAD=(-p seq -s 4k -o w)
nowhere
run "${LOAD[@]}"
before=$(total)
weights 44 27
know "$DEV"
run "${LOAD[@]}"
check "md RAID0, five I/Os outstanding where thirty fit: groups do as much as without weights" as_fast 990 "$before"
