#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Groups of v1 with a limit and 16 MiB of memory, both controllers in one hierarchy: they get their limits, and nobody
# else waits.
# configs: uml-vt
# memory: 192
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_memcg.sh
. "$HERE/lib/blkio_memcg.sh"

plan 14
null_dev data size=2048 mbps=100
# the last close of a disk writes its pages back
exec 7<>"$DEV"
together raw v1
small_ext4 "$DEV"
together ext4 v1
