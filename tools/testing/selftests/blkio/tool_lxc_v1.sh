#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tool_lxc.sh on cgroup v1.
# configs: uml-tools-long
# root: bookworm
# args: systemd.unified_cgroup_hierarchy=0
set -- v1
. "$(dirname "$0")/tool_lxc.sh"
