#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 900
# A disk whose I/Os take a random time up to 10 ms, 64 at a time: latencies tell nothing about how many I/Os it needs to
# be busy, and the shares are right all the same.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

mount_cgroup v2
group a b c
plan 9

scsi_dev 10000000
WEIGHTS="100 300 600"
DEPTHS=(32 32 64)
FAST=970
T=4
for elevator in none mq-deadline kyber; do
	echo "$elevator" >"/sys/block/${DEV##*/}/queue/scheduler"
	compare "jitter, $elevator" 5000 64 "$WEIGHTS" -p rand -s 4k
	check "random latencies, $elevator: the measured queue depth is within bounds" in_range "$(depth_found "$DEV")" 52 70
done
