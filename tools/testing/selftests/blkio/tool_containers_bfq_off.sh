#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tool_containers_bfq.sh without ioband: what mainline's BFQ makes of the same weights.
# configs: uml-tools-long
# root: bookworm
# args: ioband=off
. "$(dirname "$0")/tool_containers_bfq.sh"
