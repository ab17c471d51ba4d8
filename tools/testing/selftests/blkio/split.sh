#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Bytes are charged once for a bio, I/Os once for each piece that it is split
# into: 64 KiB I/Os on a disk that takes 8 KiB at a time, 8 pieces each.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"
# shellcheck source=blkio_writeback.sh
. "$HERE/blkio_writeback.sh"

SEC=10

# stat_v1 FILE: the device's reads
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
	# I/O n leaves at n * 62.5 ms: 160 of them end within 10 s
	mount_cgroup $version
	group g
	run rbps=$MiB
	check "$version 1 MiB/s: bytes are charged once" equal "$(val r ios)" 160
	check "$version 1 MiB/s: latency is that of 64 KiB" within "$(val r p99_ns)" 62500000 10000
	# and one more, under way when time was up
	if [ $version = v1 ]; then
		check "v1 counts bytes once" equal "$(stat_v1 io_service_bytes)" $((161 * 64 * KiB))
		check "v1 counts I/Os by piece" equal "$(stat_v1 io_serviced)" $((161 * 8))
		echo 1 >"$CG/g/blkio.reset_stats"
		load g r -f "$DEV" -s 64k -n 10
		wait_loads
		check "v1 counts bytes once without a limit, too" equal "$(stat_v1 io_service_bytes)" $((10 * 64 * KiB))
	else
		check "v2 counts bytes once" equal "$(stat_v2 rbytes)" $((161 * 64 * KiB))
		check "v2 counts I/Os by piece" equal "$(stat_v2 rios)" $((161 * 8))
	fi
	umount_cgroup

	# piece k leaves at k / 80 s, an I/O ends with its eighth piece: 100 in 10 s
	mount_cgroup $version
	group g
	run riops=80
	check "$version 80 IOPS: I/Os are charged by piece" equal "$(val r ios)" 100
	check "$version 80 IOPS: latency is that of 8 pieces" \
		within "$(val r p99_ns)" 100000000 10000
	umount_cgroup

	# 2 MiB/s by itself would take 31.25 ms, 8 pieces take 100: the latter binds
	mount_cgroup $version
	group g
	run rbps=$((2 * MiB)) riops=80
	check "$version 2 MiB/s and 80 IOPS: the pieces bind" equal "$(val r ios)" 100
	# 1000 pieces a second would be 125 I/Os, 1 MiB/s is 16: the bytes bind
	run rbps=$MiB riops=1000
	check "$version 1 MiB/s and 1000 IOPS: the bytes bind" within "$(val r ios)" 160 6250
	umount_cgroup
done

# the same for a large I/O: 4 MiB are 512 pieces
mount_cgroup v2
group g
cap g "$DEV" rbps=$((4 * MiB)) riops=1000000
start_soon
load g r -f "$DEV" -s 4M -n 4 -w 0.1
wait_loads
# B = 64 KiB are in hand at first; then 4 MiB at 4 MiB/s each
check "4 MiB in 512 pieces at 4 MiB/s" within "$(val r p50_ns)" 1000000000 10000
cap g "$DEV" rbps=max riops=512
start_soon
load g r -f "$DEV" -s 4M -n 4 -w 0.1
wait_loads
check "4 MiB in 512 pieces at 512 IOPS" within "$(val r p50_ns)" 1000000000 10000
if trace_start; then
	cap g "$DEV" rbps=$((64 * MiB)) riops=max
	start_soon
	load g r -f "$DEV" -s 64k -n 10
	wait_loads
	trace_stop "$TMP/trace"
	grep -E 'ioband_(admit|release)' "$TMP/trace" >"$TMP/left"
	check "the trace has 80 pieces" equal "$(wc -l <"$TMP/left")" 80
	check "70 of them cost no bytes" equal "$(grep -c ' bytes=0 ' "$TMP/left")" 70
else
	skip "the trace has 80 pieces" "no ioband tracepoints"
	skip "70 of them cost no bytes" "no ioband tracepoints"
fi
umount_cgroup

# A bio that others are chained to ends with the last of those: blkdiscard --zeroout submits a
# long one, then a short one that waits for it. The device has room for one I/O, and the pieces
# of the long one wait for their limit: the short one may not keep that room until it ends.
# chained LEAST MOST: in ms
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
# 257 I/Os at a fifth of the disk take 2.6 s; between two pieces the group is away, and saves nothing up. What its limit has
# saved for goes with a piece, two at most, and as nothing is known of long I/Os these count as one.
check "pieces of a bio in a chain, under a limit and weights: all end, and are charged for" chained 1200 3600
# what the length of an I/O costs can be seen now, and each piece counts
start_soon
load c short -f "$DEV" -o rw -s 4k -p rand -d 4 -t 8
load b long -f "$DEV" -o rw -s 64k -p rand -d 4 -t 8 -S 2
wait_loads
check "the same once it is known what length costs: none is charged for what is yet to come" chained 2000 3600
