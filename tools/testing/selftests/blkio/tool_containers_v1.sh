#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# crun and runc with config.json and update, podman with its options: limits and weights of containers, on v1.
# configs: uml-tools uml-tools-long
# root: bookworm
# args: systemd.unified_cgroup_hierarchy=0
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_tools.sh"
the_cgroup v1
# shellcheck source=lib/blkio_container.sh
. "$HERE/lib/blkio_container.sh"

plan 20
containers
# the leaf weight counts among the children of a container, and it has none
bundle leaf "{\"leafWeight\": 300, \"weightDevice\": [$(oci_device weight 300)]}" -f "$DEV" -s 4k -n 1000
runtime crun leaf &
sleep 1
check "crun, leafWeight: the file has it" equal "$(cat "$CG/leaf/blkio.leaf_weight")" 300
check "crun, weightDevice: the file has it" equal "$(cat "$CG/leaf/blkio.weight_device")" "$DISK 300"
wait
