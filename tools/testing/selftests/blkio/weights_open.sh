#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# A disk that can take all it is given: nobody waits, the gate is open. It closes for
# one who wants more than that, before the others notice, and opens when he has left.
. "$(dirname "$0")/blkio_lib.sh"
. "$HERE/blkio_share.sh"

# state TIME: whether the gate is open so long after START, and I/Os that had waited until then
state() {
	sleep "$(awk "BEGIN { print 0.1 + $1 }")"
	sed -n "s/.* active=[0-9]* *\([a-z]*\) .*/\1/p" "/sys/kernel/debug/block/${DEV##*/}/ioband/share" >"$TMP/state.$1"
	sed 's/.*share_waits=//; s/ .*//' "/sys/kernel/debug/block/${DEV##*/}/ioband/groups" |
		awk '{ n += $1 } END { print n }' >"$TMP/waits.$1"
}

# is STATE TIME
is() {
	echo "at $2 s: '$(cat "$TMP/state.$2")'"
	[ "$(cat "$TMP/state.$2")" = "$1" ]
}

# waited LEAST MOST FROM TO: I/Os
waited() { in_range $(($(cat "$TMP/waits.$4") - $(cat "$TMP/waits.$3"))) "$1" "$2"; }

mount_cgroup v2
group a b c
plan 12

# 16 at a time, 1 ms each: a and b want half of it, c all
null_dev open completion_nsec=1000000 hw_queue_depth=16
weights 600 300 100
know "$DEV"
start_soon
load a a -f "$DEV" -s 4k -p rand -d 4 -t 4 -i 0.01
load b b -f "$DEV" -s 4k -p rand -d 4 -t 4 -i 0.01 -S 2
load c c -f "$DEV" -s 4k -p rand -d 128 -t 1 -i 0.01 -S 3 -a $((START + 2000000000))
for t in 0.8 1.9 2.2 2.9 3.2 3.9; do
	state $t &
done
wait_loads
wait
check "two who want half of the disk: the gate is open" is open 0.8
check "still" is open 1.9
check "nobody has waited meanwhile" waited 0 0 0.8 1.9
check "one who wants all of it: the gate is closed" is "" 2.2
check "it is he who waits" waited 5000 5700 2.2 2.9
check "he has left: open again" is open 3.2
check "and it stays so" is open 3.9
check "nobody has waited meanwhile" waited 0 0 3.2 3.9
# but for two turns of the disk, when the third fills it: what passed an open gate is of nobody
check "the first has not noticed anything" bins a 50 399 32 40
check "nor has the second" bins b 50 399 32 40
# Not more than 8 at once had been seen: that the disk does 16 takes some windows of measuring to see.
# Now and then half as many are let go for some ms. Those at the end of 10 ms count here or there.
check "the third got the rest of it" bins c 15 99 40 82
check "in the end nothing is left that passed" grep -q 'inflight=0 outstanding=0 passed=0 ' \
	"/sys/kernel/debug/block/${DEV##*/}/ioband/share"
