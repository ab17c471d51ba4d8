#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A disk whose scheduler is BFQ: containers of crun share it by their weights, to within 3 %, also beside a systemd unit
# that has a weight. The bounds are those of mainline's BFQ, see tool_containers_bfq_off.sh.
# configs: uml-tools-long
# root: bookworm
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_tools.sh"
the_cgroup v2
# shellcheck source=lib/blkio_container.sh
. "$HERE/lib/blkio_container.sh"
. "$HERE/lib/blkio_bfq.sh"

# both: the I/Os of the two containers together
both() { echo $(($(val light ios) + $(val heavy ios))); }

# at_least VALUE WANTED: VALUE is at least WANTED
at_least() { echo "got $1, want $2 or more"; (($1 >= $2)); }

# crun_shares TEXT: two containers with weights 100 and 300
crun_shares() { shared "$1" crun '{"weight": 100}' '{"weight": 300}'; }

plan 5
rootfs
bfq_on slow completion_nsec=100000 mbps=100
DISK=$(devno "$DEV")
TOLERANCE=30000
PERMILLE=500 shared "crun, weight 100 and 100: shares" crun '{"weight": 100}' '{"weight": 100}'
equal=$(both)
crun_shares "crun, weight 100 and 300: shares"
check "two containers together do as much as with equal weights" at_least "$(both)" $((equal * 99 / 100))
systemd-run -q --unit=unrelated -p IOWeight=200 sleep 1000
crun_shares "the same beside a unit with IOWeight=200: shares"
check "two containers beside a systemd unit together do as much as with equal weights" \
	at_least "$(both)" $((equal * 99 / 100))
