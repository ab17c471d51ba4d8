# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # what blkio_share.sh wants
# Sourced by weights_bfq.sh and weights_bfq_off.sh: what BFQ makes of weights on two disks.
# It has to be the same whoever has the files of weights, so the bounds are the same too.

# bfq_on NAME KEY=VALUE...: a disk DEV whose scheduler is BFQ
bfq_on() {
	null_dev "$@"
	QUEUE=/sys/block/$1/queue
	echo bfq >"$QUEUE/scheduler"
	# BFQ raises the weights of what it takes for interactive
	echo 0 >"$QUEUE/iosched/low_latency"
}

# bfq_shared FILE NAME KEY=VALUE...: two points; a and b get a quarter and the rest of a disk,
# within three points, and together as much as with equal weights
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
	check "$1: shares" shared 30000 0 100 300
	check "$1: nothing lost" as_fast "$FAST" "$equal"
	null_off "$1"
}

# bfq_shares FILE: four points
bfq_shares() {
	NAMES=(a b) DEPTHS=(8 8) T=4
	bfq_shared "$1" serial completion_nsec=100000 mbps=100
	bfq_shared "$1" flash completion_nsec=10000000
}
