#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The bytes of a bio are charged once, and I/Os once for each piece into which it is split: 64 KiB I/Os on a disk that
# takes 8 KiB at a time, that is 8 pieces each.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=10

# stat_v1 FILE: the reads of the device
stat_v1() {
	awk -v "dev=$(devno "$DEV")" '$1 == dev && $2 == "Read" { print $3 }' \
		"$CG/g/blkio.throttle.$1"
}
stat_v2() { sed -n "s/^$(devno "$DEV") .*$1=\([0-9]*\).*/\1/p" "$CG/g/io.stat"; }

# run CAP...: depth 1 for SEC seconds
run() {
	cap g "$DEV" "$@"
	start_soon
	load g r -f "$DEV" -s 64k -t $SEC -w 1
	wait_loads
	cap g "$DEV" rbps=max riops=max
}

plan 23
null_dev nb0 max_sectors=16
for version in v1 v2; do
	# I/O n is dispatched at n * 62.5 ms: 160 of them end within 10 s
	mount_cgroup $version
	group g
	run rbps=$MiB
	check "$version 1 MiB/s on a splitting disk: bytes are charged once" equal "$(val r ios)" 160
	check "$version 1 MiB/s on a splitting disk: the latency is that of 64 KiB" within "$(val r p99_ns)" 62500000 10000
	# and one more I/O, which was in flight when the time was over
	if [ $version = v1 ]; then
		check "v1 statistics count the bytes of a split bio once" equal "$(stat_v1 io_service_bytes)" $((161 * 64 * KiB))
		check "v1 statistics count the I/Os of a split bio by piece" equal "$(stat_v1 io_serviced)" $((161 * 8))
		echo 1 >"$CG/g/blkio.reset_stats"
		load g r -f "$DEV" -s 64k -n 10
		wait_loads
		check "v1 statistics count the bytes of a split bio once without a limit, too" \
			equal "$(stat_v1 io_service_bytes)" $((10 * 64 * KiB))
	else
		check "v2 statistics count the bytes of a split bio once" equal "$(stat_v2 rbytes)" $((161 * 64 * KiB))
		check "v2 statistics count the I/Os of a split bio by piece" equal "$(stat_v2 rios)" $((161 * 8))
	fi
	umount_cgroup

	# piece k is dispatched at k / 80 s, an I/O ends with its eighth piece: 100 in 10 s
	mount_cgroup $version
	group g
	run riops=80
	check "$version 80 IOPS on a splitting disk: each piece is charged" equal "$(val r ios)" 100
	check "$version 80 IOPS on a splitting disk: the latency is that of 8 pieces" \
		within "$(val r p99_ns)" 100000000 10000
	umount_cgroup

	# 2 MiB/s by itself would take 31.25 ms, 8 pieces take 100: the limit in I/Os is the tighter one
	mount_cgroup $version
	group g
	run rbps=$((2 * MiB)) riops=80
	check "$version 2 MiB/s and 80 IOPS on a splitting disk: the limit in I/Os applies" equal "$(val r ios)" 100
	# 1000 pieces a second would be 125 I/Os, 1 MiB/s is 16: the limit in bytes is the tighter one
	run rbps=$MiB riops=1000
	check "$version 1 MiB/s and 1000 IOPS on a splitting disk: the limit in bytes applies" within "$(val r ios)" 160 6250
	umount_cgroup
done

# the same for a large I/O: 4 MiB are 512 pieces
mount_cgroup v2
group g
cap g "$DEV" rbps=$((4 * MiB)) riops=1000000
start_soon
load g r -f "$DEV" -s 4M -n 4 -w 0.1
wait_loads
# B = 64 KiB are in hand at first; then each 4 MiB take 1 s at 4 MiB/s
check "4 MiB in 512 pieces at 4 MiB/s: bytes are charged once" within "$(val r p50_ns)" 1000000000 10000
cap g "$DEV" rbps=max riops=512
start_soon
load g r -f "$DEV" -s 4M -n 4 -w 0.1
wait_loads
check "4 MiB in 512 pieces at 512 IOPS: each piece is charged" within "$(val r p50_ns)" 1000000000 10000
if trace_start; then
	cap g "$DEV" rbps=$((64 * MiB)) riops=max
	start_soon
	load g r -f "$DEV" -s 64k -n 10
	wait_loads
	trace_stop "$TMP/trace"
	# without what tells when a task has paid
	grep -E 'ioband_(admit|release)' "$TMP/trace" | grep -v "sector=18446744073709551615 " >"$TMP/left"
	check "the trace of split bios has 80 pieces" equal "$(wc -l <"$TMP/left")" 80
	check "70 of the 80 pieces are charged no bytes" equal "$(grep -c ' bytes=0 ' "$TMP/left")" 70
else
	skip "the trace of split bios has 80 pieces" "no ioband tracepoints"
	skip "70 of the 80 pieces are charged no bytes" "no ioband tracepoints"
fi
umount_cgroup

# A bio to which others are chained ends with the last of those: blkdiscard --zeroout submits a long bio, then a short
# one that waits for the long one. The device has room for one I/O, and the pieces of the long bio wait for their limit:
# the short bio must not keep that room until it ends.
# chained LEAST MOST: the time of blkdiscard is within these bounds, in ms
chained() {
	local begin pid took
	(echo "$BASHPID" >"$CG/b/cgroup.procs"; exec blkio_load -f "$DEV" -s 4k -p rand -d 16 -t 30 >/dev/null) &
	pid=$!
	sleep 1
	begin=$(now_ms)
	(echo "$BASHPID" >"$CG/a/cgroup.procs"; exec blkdiscard --force --zeroout -o 0 -l $((MiB + 4 * KiB)) "$DEV") &
	while [ -d /proc/$! ] && ! grep -q '^State:.Z' /proc/$!/status && [ $(($(now_ms) - begin)) -lt 20000 ]; do sleep 0.1; done
	took=$(($(now_ms) - begin))
	kill $pid
	in_range $took "$1" "$2"
}
mount_cgroup v2
group a b c
null_dev nbchain size=64 completion_nsec=2000000 hw_queue_depth=1
echo 4 >"/sys/block/${DEV##*/}/queue/max_sectors_kb"
echo none >"/sys/block/${DEV##*/}/queue/scheduler"
echo 400 >"$CG/b/io.weight"
cap a "$DEV" wiops=400
# 257 I/Os at a fifth of the disk take 2.6 s. Between two pieces the group is not active and saves nothing up. What its
# limit has saved up is dispatched with a piece, two at most; while the cost of long I/Os is not known they count as
# one.
check "pieces of a chained bio, with a limit and weights: all end, and are charged" chained 1200 3600
# the cost of an I/O's length can be measured now, and each piece is charged for it
start_soon
load c short -f "$DEV" -o rw -s 4k -p rand -d 4 -t 8
load b long -f "$DEV" -o rw -s 64k -p rand -d 4 -t 8 -S 2
wait_loads
check "pieces of a chained bio when the cost of length is known: each is charged for itself only" chained 2000 3600
