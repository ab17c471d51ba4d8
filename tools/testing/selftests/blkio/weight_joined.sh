#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# A disk without a file system is written back in bios of 4 KiB, which are merged into much larger requests. Bios that
# wait for their share are merged, too, so that a writer beside a reader gets all that the reader leaves.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

# written: the requests and sectors that DEV has written
written() { awk '{ print $5, $7 }' "/sys/block/${DEV##*/}/stat"; }

# writes_beside WRITER READER: seconds 3 to 8 of a writer's 8, in a group, beside a reader in another group, if one is
# named; sets BPS, REQUEST and READS per second
writes_beside() {
	local before after
	start_soon
	load "$1" w -f "$DEV" -b -o w -s 64k -t 8 -O 0 -L 3000M
	[ -z "${2:-}" ] || load "$2" r -f "$DEV" -s 4k -p rand -t 8 -i 1 -O 3000M -L 1000M
	until_ns $((START + 3000000000))
	read -r -a before < <(written)
	until_ns $((START + 8000000000))
	read -r -a after < <(written)
	wait_loads
	BPS=$(((after[1] - before[1]) * 512 / 5))
	REQUEST=$(((after[1] - before[1]) * 512 / (after[0] - before[0])))
	READS=0
	[ -z "${2:-}" ] || READS=$(sed 's/.*"intervals": \[//; s/\].*//; s/,//g' "$TMP/r.json" | awk '{ printf "%d", ($4 + $5 + $6 + $7 + $8) / 5 }')
	echo "# $BPS B/s in requests of $REQUEST, $READS reads a second"
	sync
}

# wbytes GROUP: the bytes that the group has written to DEV
wbytes() { sed -n "s/^$(devno "$DEV") .*wbytes=\([0-9]*\).*/\1/p" "$CG/$1/io.stat"; }

mount_cgroup v2
group a b
plan 12
# eight requests at a time
null_dev joined completion_nsec=5000000 hw_queue_depth=8 size=6000
writes_beside a
free=$BPS request=$REQUEST
check "a writer without weights: requests of 64 KiB or more" test "$request" -ge 65536
NAMES=(a b)
weights 100 300
know "$DEV"
writes_beside a b
check "a writer beside a reader: requests as large as without weights" \
	in_range "$REQUEST" $((request * 9 / 10)) $((request * 11 / 10))
check "a writer beside a reader: it gets all that the reader leaves" test "$BPS" -ge $((free * 7 * 95 / 800))
check "a writer beside a reader: the reader gets what one I/O after the other gets" in_range "$READS" 190 200
# alone, but the device has been measured by now
writes_beside a a
check "a reader in the writer's group: its reads are dispatched before writeback" test "$READS" -ge 90
check "a reader in the writer's group: the writer loses no more than the reads" test "$BPS" -ge $((free * 7 * 90 / 800))
# as many 4 KiB as there are I/Os
echo 2 >"/sys/block/${DEV##*/}/queue/nomerges"
writes_beside a b
check "nomerges: waiting bios are not merged" equal "$REQUEST" 4096
check "nomerges: the writer gets no more than its share" in_range "$READS" 190 200
echo 0 >"/sys/block/${DEV##*/}/queue/nomerges"
null_off joined

# both writers wait, and one is ahead
null_dev shared completion_nsec=1000000 hw_queue_depth=4 size=1000
know "$DEV"
DEPTHS=(8 8)
start_soon
for ((i = 0; i < 2; i++)); do
	load "${NAMES[i]}" "${NAMES[i]}" -f "$DEV" -b -o w -s 64k -t 6 -O $((i * 400))M -L 400M -i 1
done
until_ns $((START + 2000000000))
from_a=$(wbytes a) from_b=$(wbytes b)
until_ns $((START + 6000000000))
got_a=$(($(wbytes a) - from_a)) got_b=$(($(wbytes b) - from_b))
wait_loads
echo "# $got_a, $got_b bytes"
check "two writers at 100:300: they write bytes by weight" in_range $((got_a * 1000 / (got_a + got_b))) 240 260
null_off shared

# the data is what was written
null_dev kept completion_nsec=500000 hw_queue_depth=2 size=64 memory_backed=1
know "$DEV"
head -c $((24 * 1048576)) /dev/urandom >"$TMP/data"
start_soon
load b r -f "$DEV" -s 4k -p rand -d 4 -t 6 -O 56M -L 8M
in_group a dd if="$TMP/data" of="$DEV" bs=64k conv=notrunc,fsync status=none
in_group a dd if="$TMP/data" of="$DEV" bs=4k seek=7000 conv=notrunc,fsync status=none
wait_loads
echo 3 >/proc/sys/vm/drop_caches
check "24 MiB in blocks of 64 KiB are right" cmp -s -n $((24 * 1048576)) "$TMP/data" "$DEV"
check "24 MiB in blocks of 4 KiB are right" cmp -s -i "0:$((7000 * 4096))" -n $((24 * 1048576)) "$TMP/data" "$DEV"
check "no bio waits in the end" \
	grep -q 'inflight=0 outstanding=0 passed=0 ' "/sys/kernel/debug/block/${DEV##*/}/ioband/share"
