#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Buffered writes on v2: limits, and weights, of three groups that each write to a file of one ext4, as seen by write(),
# fsync() and the disk.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=24 FROM=8

# to_disk GROUP: the bytes that the group has written to the disk
to_disk() { sed -n "s/^$(devno "$DEV") .*wbytes=\([0-9]*\).*/\1/p" "$CG/$1/io.stat"; }

# phase: sets part[] to the bytes that each group wrote to the disk from FROM to SEC
phase() {
	local i first=()
	for i in 1 2 3; do : >"$MNT/$i"; done
	sync
	start_soon
	for i in 1 2 3; do
		load "g$i" "$i" -f "$MNT/$i" -b -o w -s 64k -t $SEC -L 100M
	done
	sleep $FROM.1
	for i in 1 2 3; do first[i]=$(to_disk "g$i"); done
	sleep $((SEC - FROM))
	for i in 1 2 3; do part[i]=$(($(to_disk "g$i") - first[i])); done
	wait_loads
}

# the time for so many MiB by write(), then fsync()
SYNC='
import os, sys, time
begin = time.monotonic()
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(int(sys.argv[2])):
    os.write(fd, bytes(1 << 20))
os.fsync(fd)
print(round((time.monotonic() - begin) * 1000))
'

# shares TEXT A B C: 10, 30 and 60 % of all, to within a point
shares() {
	local text=$1 all=$(($2 + $3 + $4)) want
	shift
	for want in 10 30 60; do
		check "weights, $text: the group's share is $want %" \
			in_range $(($1 * 10000 / all)) $((want * 100 - 100)) $((want * 100 + 100))
		shift
	done
}

plan 10
# less than a file: dirtying pages that are dirty takes no virtual time
dirty_limit $((90 * MiB))
mount_cgroup v2
grep -qw memory "$CG/cgroup.controllers" || skip_all "no memory controller: inodes have no groups"
echo +memory >"$CG/cgroup.subtree_control"
group g1 g2 g3
null_dev nb0 size=400 completion_nsec=1280000 hw_queue_depth=1 max_sectors=256 memory_backed=1
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
part=()

caps "$DEV"
synced=()
for i in 1 2 3; do
	in_group "g$i" python3 -c "$SYNC" "$MNT/sync$i" $((i * 16)) >"$TMP/sync$i" &
	synced+=($!)
done
wait "${synced[@]}"
for i in 1 2 3; do
	check "limits: fsync at $i MiB/s takes as long as the limit demands, ms" within "$(<"$TMP/sync$i")" 16000 10000
	cap "g$i" "$DEV" wbps=max
done
rm "$MNT"/sync?
sync

weight g1 100
weight g2 300
weight g3 600
phase
shares "the disk" "${part[@]}"
seen=()
for i in 1 2 3; do seen[i]=$(seen "$i" $((64 * KiB)) $SEC $FROM); done
shares "write()" "${seen[@]}"
check "weights: the disk is busy" in_range $((part[1] + part[2] + part[3])) \
	$((90 * 1000000 * (SEC - FROM))) $((103 * 1000000 * (SEC - FROM)))
