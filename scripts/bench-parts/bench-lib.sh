# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the bench-* scripts, which run in the guest: has the selftests' fixture, and keeps the results of a run.
# Raw output goes to $GUEST_OUT; $GUEST_OUT/spec says what each file is, and bench_rows.py makes rows of it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../guest/guard.sh"
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: >"$GUEST_OUT/spec"

# shellcheck source=../../tools/testing/selftests/blkio/lib/blkio_lib.sh
. "$top/tools/testing/selftests/blkio/lib/blkio_lib.sh"

# spec KIND SCENARIO CASE KEY=VALUE... FILE...: adds a line for bench_rows.py
spec() {
	printf '%q ' "$@" >>"$GUEST_OUT/spec"
	echo >>"$GUEST_OUT/spec"
}

# keep NAME...: copies the results of these loads to $GUEST_OUT, for the host
keep() {
	local name
	for name; do cp "$TMP/$name.json" "$GUEST_OUT/$name.json"; done
}

# run NAME...: waits for the loads and keeps these results
run() {
	wait_loads
	keep "$@"
}

# log NAME: prints the path of a load's list of I/Os
log() { echo "$GUEST_OUT/$1.log"; }
