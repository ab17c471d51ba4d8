#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A test that ends before its plan. See harness_mustfail_point.sh.
# because: 1 points of 2 planned
# shellcheck source=blkio_lib.sh
. "$(dirname "$0")/blkio_lib.sh"

plan 2
check "a point that passes" true
false
check "a point that is not reached" true
