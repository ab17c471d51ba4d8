#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 600
. "$(dirname "$0")/blkio_lib.sh"
. "$HERE/blkio_share.sh"
report() { echo "# $1: $(total) = $(for g in a b c; do counted $g; done | tr '\n' ' ')"; }
mount_cgroup v2
group a b c
plan 1
two() {
	null_dev $1one $2; ONE=$DEV
	null_dev $1two $2; TWO=$DEV
}
go() {
	local text=$1; shift
	for d in "8 8 8" "32 32 32"; do
	DEPTHS=($d)
	run "$@"; report "$text $d none $*"
	for g in "a 100" "b 300" "c 600"; do set -- $g "$@"; weight $1 $2 $DEV; shift 2; done
	know "$DEV"
	run "$@"; report "$text $d weights $*"
	sed -n 1,2p /sys/kernel/debug/block/${DEV#/dev/}/ioband/share
	for g in a b c; do weight $g default $DEV; done
	done
}
T=4
two s "completion_nsec=1000000 hw_queue_depth=4"
size=$(($(sectors $ONE) / 128 * 128))
dm_dev striped "0 $((2*size)) striped 2 128 $ONE 0 $TWO 0"
go striped -s 64k -p rand -o r
go striped -s 64k -p seq -o r
two m "completion_nsec=100000 mbps=100 memory_backed=1 size=192"
md_dev md0 raid1 $ONE $TWO
go raid1serial -s 64k -p seq -o r
go raid1serial -s 64k -p rand -o r
two n "completion_nsec=1000000 hw_queue_depth=4 memory_backed=1 size=192"
md_dev md1 raid1 $ONE $TWO
go raid1tags -s 64k -p seq -o r
go raid1tags -s 64k -p rand -o r
check x true
