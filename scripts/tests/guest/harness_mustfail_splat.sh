#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A test whose points pass while the kernel warns. See harness_mustfail_point.sh.
# because: the kernel complained
# shellcheck source=../../../tools/testing/selftests/blkio/smp_lib.sh
. "$(dirname "$0")/../../../tools/testing/selftests/blkio/smp_lib.sh"

plan 3
check "the kernel keeps quiet, so far" no_splat
echo WARNING >/sys/kernel/debug/provoke-crash/DIRECT
# no_splat, with which tests look at the log themselves, finds the warning, too
check "the kernel does not keep quiet" eval '! no_splat'
check "the test passes" true
