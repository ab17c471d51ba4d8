#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tool_containers.sh with Debian 13's crun, runc and podman.
# configs: uml-tools-long
# root: trixie
. "$(dirname "$0")/tool_containers.sh"
