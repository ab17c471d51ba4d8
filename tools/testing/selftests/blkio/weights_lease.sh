#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 900
# A disk of 320,000 I/Os a second: groups buy device time for some I/Os ahead, and are shared all the
# same, also right after a weight changes, a group goes, or one of three is removed.
. "$(dirname "$0")/blkio_lib.sh"
. "$HERE/blkio_share.sh"

# leases: how often they have begun on DEV
leases() { sed -n 's/.* leases=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/${DEV##*/}/ioband/share"; }

# leased LEAST COMMAND...: they begin so often meanwhile
leased() {
	local before
	before=$(leases)
	"${@:2}"
	echo "leases began $(($(leases) - before)) times"
	[ $(($(leases) - before)) -ge "$1" ] || LEASED=not
}

mount_cgroup v2
group a b c c/x c/y
NAMES=(a b) DEPTHS=(128 128)
plan 13
T=0.4
null_dev lease completion_nsec=200000 hw_queue_depth=64
run -s 4k -p rand
before=$(total)
weights 300 100
know "$DEV"
# the first 20 ms are for the search; then 100 ms each
leased 2 run -s 4k -p rand
check "two groups at 300:100: shares" shared 10000 64 300 100
check "nothing lost" as_fast 980 "$before"
check "by leases" test -z "${LEASED:-}"
weights 1 10000
leased 2 run -s 4k -p rand
check "1 against 10000: shares" shared 10000 64 1 10000
check "1 against 10000: by leases" test -z "${LEASED:-}"

# c has half, and of that y 3/4
weights 100 100
weight c 200
weight c/x 100
weight c/y 300
NAMES=(a b c/x c/y) DEPTHS=(64 64 64 128)
leased 2 run -s 4k -p rand
check "two levels: shares" shared 10000 64 200 200 100 300
check "two levels: by leases" test -z "${LEASED:-}"

# a change, and one that goes: from the next 10 ms on
NAMES=(a b) DEPTHS=(128 128)
weights 300 100
start_soon
load a a -f "$DEV" -s 4k -p rand -d 128 -t 0.3 -i 0.01
load b b -f "$DEV" -s 4k -p rand -d 128 -t 0.4 -i 0.01 -S 2
until_ns $((START + 150000000))
weights 100 300
wait_loads
check "3:1 before the change" bins a 5 14 2200 2500
check "1:3 from 10 ms after it" bins a 17 28 740 880
check "and b has all of it once a has gone" bins b 32 39 3000 3210

# who is removed leaves nothing behind
weights 200 200
start_soon
load a a -f "$DEV" -s 4k -p rand -d 64 -t 0.3 -i 0.01
load b b -f "$DEV" -s 4k -p rand -d 64 -t 0.3 -i 0.01 -S 2
load c/x x -f "$DEV" -s 4k -p rand -d 64 -t 0.1 -i 0.01 -S 3
until_ns $((START + 100000000))
for name in c/x c/y c; do
	for ((i = 0; i < 100; i++)); do
		! rmdir "$CG/$name" 2>/dev/null || break
		sleep 0.001
	done
done
check "it can be removed" test ! -d "$CG/c"
wait_loads
check "a third that is removed: half each then" bins a 18 28 1500 1700
check "in the end nothing is left that passed" grep -q 'inflight=0 outstanding=0 passed=0 ' \
	"/sys/kernel/debug/block/${DEV##*/}/ioband/share"
