#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A test that ends early because a command fails. See harness_mustfail_point.sh.
# because: exit status 1
# shellcheck source=../../../tools/testing/selftests/blkio/lib/blkio_lib.sh
. "$(dirname "$0")/../../../tools/testing/selftests/blkio/lib/blkio_lib.sh"

plan 2
check "a point that passes" true
false
check "a point that is not reached" true
