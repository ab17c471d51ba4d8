#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt uml-debug
# args: scsi_debug.add_host=0 log_buf_len=4M
# environment: ROUNDS
# A SCSI disk is unbound from its driver and bound again, while its queue stays: no disk takes part in what its
# predecessor leaves behind, and each has the weights and limits that apply to all devices when it is opened.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

# in real time a round takes a second
uname -v | grep -q SMP && ROUNDS=${ROUNDS:-20} || ROUNDS=${ROUNDS:-250}

rebinds() { in_group g python3 "$HERE/lib/stress_rebind.py" "$DEV" "$ROUNDS" "$@"; }

# the disk of the last round has the limit of a group
limited() {
	cap_all g rbps=1
	background read in_group g dd if="$DEV" of=/dev/null bs=64k count=4 iflag=direct
	wait_for "I/O that is held" holds "${DEV##*/}" 1 || return 1
	cap_all g rbps=max
	ended read
}

plan 6
scsi_dev 1000
mount_cgroup v2
group g
check "a limit for the disk: it is bound $ROUNDS times" rebinds --limit "$CG/g/io.max"
echo 50 >"$CG/g/io.weight"
check "a weight for all devices: a disk is bound $ROUNDS times" rebinds
cap_all g rbps=$((1024 * MiB))
check "a weight and a limit for all devices: a disk is bound $ROUNDS times" rebinds
echo 100 >"$CG/g/io.weight"
check "a limit for all devices: a disk is bound $ROUNDS times" rebinds
check "a limit for all devices holds on the last of the disks" limited
check "the kernel log has no splats" no_splat
