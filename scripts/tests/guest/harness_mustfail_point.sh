#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A test with a point that fails. scripts/must-fail expects the run to fail, and its output to have
# the text in the next line:
# because: a point that fails
# shellcheck source=../../../tools/testing/selftests/blkio/lib/blkio_lib.sh
. "$(dirname "$0")/../../../tools/testing/selftests/blkio/lib/blkio_lib.sh"

plan 2
check "a point that passes" true
check "a point that fails" false
