#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# crun and runc with config.json and update, podman with its options: limits and weights of containers, on v2.
# configs: uml-tools uml-tools-long
# root: bookworm
. "$(dirname "$0")/blkio_lib.sh"
. "$HERE/blkio_tools.sh"
the_cgroup v2
# shellcheck source=blkio_container.sh
. "$HERE/blkio_container.sh"

plan 18
containers
