#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Weights on a disk that accepts many I/Os and does one after the other, in proportion to their length. It needs two
# I/Os,
# because of the time that they are on their way. Groups share its time.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

NAMES=(short long)
DEPTHS=(32 32)
SIZES=(4k 256k)

# by_time WEIGHT WEIGHT SHARE SHARE: shares of all I/Os, by number
by_time() {
	weights "$1" "$2"
	know "$DEV"
	start_soon
	for i in 0 1; do
		load "${NAMES[i]}" "${NAMES[i]}" -f "$DEV" -s "${SIZES[i]}" -p rand -d 32 -t $T -i 1 -S "$i"
	done
	wait_loads
	shared 20000 0 "$3" "$4"
}

plan 6
# 1 ms for 4 KiB, 4.2 ms for 256 KiB
serial_dev 0 64 950000 13000000 400000
mount_cgroup v2
group short long third
# the times of an I/O of the two groups are 1 : 4.2
check "equal weights, I/Os of 4 KiB and 256 KiB: equal times" by_time 200 200 42 10
check "300:100" by_time 300 100 126 10
check "100:300" by_time 100 300 14 10

# opened: how often the gate has opened
opened() { sed -n 's/.* opened=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/${DEV##*/}/ioband/share"; }

# one_by_one: three groups have one I/O each, and the disk does one after the other
one_by_one() {
	local name before
	weights 200 200
	before=$(opened)
	start_soon
	for name in short long third; do
		load $name $name -f "$DEV" -s 4k -p rand -t 1
	done
	wait_loads
	check "three groups with one I/O each: the gate does not open while the disk is busy" equal "$(opened)" "$before"
}
one_by_one

# The rest of a read that the disk takes in pieces waits for the limit of its group, and occupies no place in the disk
# meanwhile.
weights 200 200
echo 4 >"/sys/block/${DEV##*/}/queue/max_sectors_kb"
cap long "$DEV" riops=16
start_soon
load long long -f "$DEV" -s 256k -p rand -d 8 -t 4
load short short -f "$DEV" -s 4k -p rand -d 32 -t 4 -a $((START + 1000000))
wait_loads
check "a read of 64 pieces at 16 pieces a second: it is complete after 4 s" equal "$(val long ios)" 1
check "beside a read in pieces that waits for its limit: the other group gets the rest of the disk" \
	in_range "$(val short ios)" 3850 4000
