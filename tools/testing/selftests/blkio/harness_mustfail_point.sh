#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A test whose point fails. scripts/must-fail wants the run to fail, and this in
# what it prints:
# because: a point that fails
# shellcheck source=blkio_lib.sh
. "$(dirname "$0")/blkio_lib.sh"

plan 2
check "a point that passes" true
check "a point that fails" false
