#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# crun and runc with config.json and update, podman with its options: limits and weights of containers, on v2.
# configs: uml-tools uml-tools-long
# root: bookworm
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_tools.sh"
the_cgroup v2
# shellcheck source=lib/blkio_container.sh
. "$HERE/lib/blkio_container.sh"

plan 18
containers
