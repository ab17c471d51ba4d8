#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# With ioband=off BFQ has its own weights, as in mainline: the shares with which those of weight_bfq.sh are compared.
# configs: uml-vt
# args: ioband=off
# timeout: 600
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"
. "$HERE/lib/blkio_bfq.sh"

grep -qw ioband=off /proc/cmdline || skip_all "not booted with ioband=off"
plan 4
mount_cgroup v2
group a b
bfq_shares io.bfq.weight
