#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# crun and runc by config.json and update, podman by its options: limits and weights of containers, on v2.
# configs: uml-tools
# root: bookworm
. "$(dirname "$0")/blkio_lib.sh"
. "$HERE/blkio_tools.sh"
the_cgroup v2
# shellcheck source=blkio_container.sh
. "$HERE/blkio_container.sh"

plan 18
null_dev fast memory_backed=1 size=256 completion_nsec=20000
DISK=$(devno "$DEV")
rootfs
limits crun
limits runc
podman_limits
null_dev slow completion_nsec=4000000 hw_queue_depth=8
DISK=$(devno "$DEV")
weights crun
weights runc
podman_shares "podman --blkio-weight 100 and 300: shares" --blkio-weight=100 --blkio-weight=300
podman_shares "podman --blkio-weight-device: shares" "--blkio-weight-device=$DEV:100" "--blkio-weight-device=$DEV:300"
