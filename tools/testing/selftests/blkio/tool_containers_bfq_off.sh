#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tool_containers_bfq.sh without ioband: how mainline's BFQ shares by the same weights.
# configs: uml-tools-long
# root: bookworm
# args: ioband=off
. "$(dirname "$0")/tool_containers_bfq.sh"
