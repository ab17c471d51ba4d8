#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 900
# A disk of 320,000 I/Os a second: groups buy device time for some I/Os in advance, and get their shares all the same,
# also right after a weight changes, a group becomes idle, or one of three is removed.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

# leases: how often groups began to buy device time on DEV
leases() { sed -n 's/.* leases=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/${DEV##*/}/ioband/share"; }

# leased LEAST COMMAND...: groups begin to buy device time at least so often while the command runs
leased() {
	local before
	before=$(leases)
	"${@:2}"
	echo "leases began $(($(leases) - before)) times"
	[ $(($(leases) - before)) -ge "$1" ] || LEASED=not
}

# bins_of NAME: the I/Os that a load did in each 10 ms
bins_of() { sed 's/.*\[//; s/\].*//; s/, /\n/g' "$TMP/$1.json"; }

# halves NAME NAME FROM TO LEAST: two loads have half each of what they do in the bins of 10 ms from FROM to TO, and do
# LEAST I/Os or more. A load counts up to as many I/Os at once as it has in flight, 64: so much may be in the next bin.
halves() {
	paste <(bins_of "$1") <(bins_of "$2") | awk -v "from=$3" -v "to=$4" -v "least=$5" 'NR > from && NR <= to {
		printf "%d:%d ", $1, $2
		a += $1
		b += $2
		if ($1 - $2 > 128 || $2 - $1 > 128) bad = 1
	} END {
		printf "%d and %d I/Os, want %d or more\n", a, b, least
		exit bad || a + b < least || a < 0.495 * (a + b) || b < 0.495 * (a + b)
	}'
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
# the first 20 ms are for the measurement; then parts of 100 ms each
leased 2 run -s 4k -p rand
check "device time in advance, two groups at 300:100: groups get their shares" shared 10000 64 300 100
check "device time in advance, two groups at 300:100: they do as much as without weights" as_fast 980 "$before"
check "two groups at 300:100 buy device time in advance" test -z "${LEASED:-}"
weights 1 10000
leased 2 run -s 4k -p rand
check "device time in advance, two groups at 1:10000: groups get their shares" shared 10000 64 1 10000
check "two groups at 1:10000 buy device time in advance" test -z "${LEASED:-}"

# c gets half, and of that y 3/4
weights 100 100
weight c 200
weight c/x 100
weight c/y 300
NAMES=(a b c/x c/y) DEPTHS=(64 64 64 128)
leased 2 run -s 4k -p rand
check "device time in advance, two levels: groups get their shares" shared 10000 64 200 200 100 300
check "groups on two levels buy device time in advance" test -z "${LEASED:-}"

# a weight changes, and a group becomes idle: shares are right from the next 10 ms on
NAMES=(a b) DEPTHS=(128 128)
weights 300 100
start_soon
load a a -f "$DEV" -s 4k -p rand -d 128 -t 0.3 -i 0.01
load b b -f "$DEV" -s 4k -p rand -d 128 -t 0.4 -i 0.01 -S 2
until_ns $((START + 150000000))
weights 100 300
wait_loads
check "a weight changes: 3:1 before" bins a 5 14 2200 2500
check "a weight changes: 1:3 from 10 ms after" bins a 17 28 740 880
check "a group becomes idle: the other one gets all of the disk" bins b 32 39 3000 3210

# a removed group leaves nothing behind
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
check "a group that has bought device time can be removed" test ! -d "$CG/c"
wait_loads
check "one of three groups is removed: half for each of the others" halves a b 18 28 $((before * 98 / 300))
check "no I/O counts as passed in the end" grep -q 'inflight=0 outstanding=0 passed=0 ' \
	"/sys/kernel/debug/block/${DEV##*/}/ioband/share"
