#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A test whose points pass while the kernel warns. See harness_mustfail_point.sh.
# because: the kernel complained
# shellcheck source=../../../tools/testing/selftests/blkio/lib/stress_lib.sh
. "$(dirname "$0")/../../../tools/testing/selftests/blkio/lib/stress_lib.sh"

plan 3
check "the kernel has not warned before the fault" no_splat
echo WARNING >/sys/kernel/debug/provoke-crash/DIRECT
# Tests look at the log with no_splat, which must find the warning, too.
check "no_splat finds the kernel's warning" eval '! no_splat'
check "the test passes" true
