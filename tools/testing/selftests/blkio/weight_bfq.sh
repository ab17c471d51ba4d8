#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A disk whose scheduler is BFQ: ioband's share gate holds no bios, and BFQ shares by the weights in ioband's files, as
# well as by its own, see weight_bfq_off.sh. When the scheduler is switched under load no I/O is lost.
# configs: uml-vt
# timeout: 900
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"
. "$HERE/lib/blkio_bfq.sh"

# waits NAME: how many I/Os of a group the gate has held, if any
waits() { sed -n "s/^$(devno "$DEV") .* share_waits=\([0-9]*\).*/\1/p" "$CG/$1/io.stat"; }

# a_quarter POINTS FROM TO: in these eighths of the time group a got a quarter, to within POINTS
a_quarter() {
	local a b
	a=$(in_eighths a "$2" "$3")
	b=$(in_eighths b "$2" "$3")
	echo "a $a, b $b"
	((100 * a >= (25 - $1) * (a + b) && 100 * a <= (25 + $1) * (a + b)))
}

# in_eighths NAME FROM TO: the I/Os of a load in these eighths of its time
in_eighths() {
	sed 's/.*\[//; s/\].*//; s/, /\n/g' "$TMP/$1.json" |
		awk -v "from=$2" -v "to=$3" 'NR >= from && NR <= to { n += $1 } END { print n + 0 }'
}

# switched FROM TO: a load during which the scheduler is changed
switched() {
	echo "$1" >"$QUEUE/scheduler"
	know "$DEV"
	T=8
	start_soon
	load a a -f "$DEV" -d 8 -t $T -i 1 -s 64k -p rand -S 1
	load b b -f "$DEV" -d 8 -t $T -i 1 -s 64k -p rand -S 2
	sleep 4
	echo "$2" >"$QUEUE/scheduler"
	check "$1, then $2: both loads go on" kill -0 "${loads[0]}" "${loads[1]}"
	wait_loads
	for name in a b; do
		check "$1, then $2: no I/O of $name is lost" equal "$(val $name errors)" 0
	done
}

plan $((4 + 3 + 2 * 3 + 4 + 1))
mount_cgroup v2
group a b
bfq_shares io.weight

bfq_on aside completion_nsec=100000 mbps=100
weights 100 300
weight b 300 "$DEV"
weight b 100
run -p rand -s 64k
check "BFQ with a weight for the device: groups get their shares" shared 30000 0 100 300
weight b default "$DEV"
run -p rand -s 64k
check "BFQ after the weight for the device is removed: groups get their shares" shared 30000 0 100 100
weight b 300
run -p rand -s 64k
check "BFQ: the gate has held no I/O" equal "$(waits b)" ""

weights 100 300
switched none bfq
check "none, then bfq: a quarter for the lighter group before the switch" a_quarter 1 2 4
check "none, then bfq: a quarter for the lighter group after the switch" a_quarter 5 6 8
switched bfq none
check "bfq, then none: a quarter for the lighter group before the switch" a_quarter 5 2 4
check "bfq, then none: a quarter for the lighter group after the switch" a_quarter 1 6 8
group late
echo bfq >"$QUEUE/scheduler"
NAMES=(a late)
weight a 300
run -p rand -s 64k
check "BFQ: a new group has the default weight" shared 30000 0 300 100
null_off aside
