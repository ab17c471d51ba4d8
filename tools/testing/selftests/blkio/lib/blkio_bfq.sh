# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # what blkio_share.sh wants
# Sourced by weight_bfq.sh and weight_bfq_off.sh: how BFQ shares two disks by weight. The shares have to be the same
# whichever controller has the files of weights, so both tests have the same bounds.

# bfq_on NAME KEY=VALUE...: sets DEV to a new disk whose scheduler is BFQ
bfq_on() {
	null_dev "$@"
	QUEUE=/sys/block/$1/queue
	echo bfq >"$QUEUE/scheduler"
	# without low_latency: BFQ would raise the weights of groups that it takes for interactive
	echo 0 >"$QUEUE/iosched/low_latency"
}

# bfq_shared FILE NAME KEY=VALUE...: two points: groups a and b get 1/4 and 3/4 of a disk, to within three points, and
# together do as much I/O as with equal weights
bfq_shared() {
	local file=$1 value equal
	shift
	bfq_on "$@"
	for value in 100 300; do
		echo 100 >"$CG/a/$file"
		echo $value >"$CG/b/$file"
		know "$DEV"
		[ $value = 100 ] || equal=$(total)
		run -p rand -s 4k
	done
	check "$1: groups with weights 1:3 get 1/4 and 3/4" shared 30000 0 100 300
	check "$1: the disk does as much as with equal weights" as_fast "$FAST" "$equal"
	null_off "$1"
}

# bfq_shares FILE: the four points of both disks
bfq_shares() {
	NAMES=(a b) DEPTHS=(8 8) T=4
	bfq_shared "$1" serial completion_nsec=100000 mbps=100
	bfq_shared "$1" flash completion_nsec=10000000
}
