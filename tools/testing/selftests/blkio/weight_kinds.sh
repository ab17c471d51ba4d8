#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 900
# Four kinds of disk with each scheduler, and disks that are made of disks or have no queue: shares and rate, without
# tuning.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

# kind NAME LEAST MOST SLOTS SIZE KEY=VALUE...: the measured queue depth is within LEAST .. MOST
kind() {
	local name=$1 least=$2 most=$3 slots=$4 size=$5 elevator
	shift 5
	null_dev "$name" "$@"
	for elevator in $ELEVATORS; do
		echo "$elevator" >"/sys/block/$name/queue/scheduler"
		compare "$name, $elevator" 5000 "$slots" "$WEIGHTS" -p rand -s "$size"
		check "$name, $elevator: the measured queue depth is within bounds" in_range "$(depth_found "$DEV")" "$least" "$most"
	done
	null_off "$name"
}

mount_cgroup v2
group a b c
WEIGHTS="100 300 600"
plan $((4 * 3 * 3))
# BFQ is tested in weight_bfq.sh
ELEVATORS="none mq-deadline kyber"

T=20
kind onetag 1 1 0 4k completion_nsec=6600000 hw_queue_depth=1
T=4
kind serial 1 32 0 64k completion_nsec=100000 mbps=100
# Disks a hundred and three thousand times as slow as real ones: in virtual time a look at the clock takes 256 ns, and
# the looks for many I/Os at once must not be what is measured.
T=8
DEPTHS=(32 32 64)
kind flash 60 64 64 4k completion_nsec=10000000
T=12
DEPTHS=(128 128 256)
kind nvme 240 256 256 4k completion_nsec=30000000 hw_queue_depth=256
