#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# A disk that is not saturated: no I/O waits, the gate is open. The gate closes for a group that saturates the disk,
# before the other groups notice, and opens when that group ends.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

# state TIME: records whether the gate is open at TIME after START, and the I/Os that had waited until then
state() {
	sleep "$(awk "BEGIN { print 0.1 + $1 }")"
	sed -n "s/.* active=[0-9]* *\([a-z]*\) .*/\1/p" "/sys/kernel/debug/block/${DEV##*/}/ioband/share" >"$TMP/state.$1"
	sed 's/.*share_waits=//; s/ .*//' "/sys/kernel/debug/block/${DEV##*/}/ioband/groups" |
		awk '{ n += $1 } END { print n }' >"$TMP/waits.$1"
}

# is STATE TIME: the gate was in this state at that time
is() {
	echo "at $2 s: '$(cat "$TMP/state.$2")'"
	[ "$(cat "$TMP/state.$2")" = "$1" ]
}

# waited LEAST MOST FROM TO: this many I/Os waited in between
waited() { in_range $(($(cat "$TMP/waits.$4") - $(cat "$TMP/waits.$3"))) "$1" "$2"; }

mount_cgroup v2
group a b c
plan 12

# the disk does 16 I/Os at a time, 1 ms each: groups a and b need half of it, c all
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
check "two groups that need half of the disk: the gate is open at 0.8 s" is open 0.8
check "still" is open 1.9
check "two groups that need half of the disk: no I/O has waited" waited 0 0 0.8 1.9
check "a third group that saturates the disk: the gate is closed at 2.2 s" is "" 2.2
check "a third group that saturates the disk: that group's I/Os wait" waited 5000 5700 2.2 2.9
check "the third group has ended: the gate is open at 3.2 s" is open 3.2
check "the third group has ended: the gate is open at 3.9 s" is open 3.9
check "the third group has ended: no I/O waits" waited 0 0 3.2 3.9
# except for two turns of the disk, when the third group fills it: I/O that passed an open gate is not known by group
check "group a: 32 to 40 I/Os in each 10 ms throughout" bins a 50 399 32 40
check "group b: 32 to 40 I/Os in each 10 ms throughout" bins b 50 399 32 40
# At most 8 I/Os at once were seen before: it takes some windows of measuring to find that the disk does 16. Sometimes
# half as many are dispatched for some ms. I/Os at the end of 10 ms may count in either.
check "a third group that saturates the disk: it gets the rest of the disk" bins c 15 99 40 82
check "no I/O counts as passed in the end" grep -q 'inflight=0 outstanding=0 passed=0 ' \
	"/sys/kernel/debug/block/${DEV##*/}/ioband/share"
