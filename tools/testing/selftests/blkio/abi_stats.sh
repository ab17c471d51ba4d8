#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Statistics: what the files of v1 and io.stat of v2 count, and their formats.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

# do_io GROUP: 100 reads of 4 KiB, 50 writes of 64 KiB, 3 discards of 1 MiB
do_io() {
	start_soon
	load "$1" r -f "$DEV" -s 4k -n 100
	load "$1" w -f "$DEV" -s 64k -n 50 -o w
	load "$1" d -f "$DEV" -s 1M -n 3 -o d
	wait_loads
}

# v1_lines READ WRITE DISCARD: the contents of a file for one device. The task has waited for all I/O, so that all of it
# counts as Sync.
v1_lines() {
	local dev sum=$(($1 + $2 + $3))
	dev=$(devno "$DEV")
	printf '%s\n' "$dev Read $1" "$dev Write $2" "$dev Sync $sum" "$dev Async 0" \
		"$dev Discard $3" "$dev Total $sum" "Total $sum"
}

# is FILE FIELDS...: the file has the contents that v1_lines gives
is() {
	local file=$1
	shift
	equal "$(cat "$CG/$file")" "$(v1_lines "$@")"
}

R=$((100 * 4096)) W=$((50 * 65536)) D=$((3 * MiB))
T=blkio.throttle

v1() {
	mount_cgroup v1
	group p p/a p/b
	for name in p p/a p/b; do
		cap $name "$DEV" rbps=1000000000 wbps=1000000000
	done
	do_io p/a
	check "v1 io_service_bytes counts the bytes of the group" is p/a/$T.io_service_bytes $R $W $D
	check "v1 io_serviced counts the I/Os of the group" is p/a/$T.io_serviced 100 50 3
	check "v1 bytes, under CFQ's name: the same" is p/a/blkio.io_service_bytes $R $W $D
	check "v1 I/Os with groups below, under CFQ's name: the same" is p/blkio.io_serviced_recursive 100 50 3
	do_io p/b
	do_io p/b
	check "v1 bytes of another group: none" \
		is p/b/$T.io_service_bytes $((2 * R)) $((2 * W)) $((2 * D))
	check "v1 bytes of the group above: only its own" is p/$T.io_service_bytes 0 0 0
	check "v1 bytes_recursive of the group above: with the groups below" is p/$T.io_service_bytes_recursive \
		$((3 * R)) $((3 * W)) $((3 * D))
	check "v1 serviced_recursive of the group above: with the groups below" is p/$T.io_serviced_recursive 300 150 9
	echo 1 >"$CG/p/a/blkio.reset_stats"
	check "v1 reset_stats sets the bytes to 0" is p/a/$T.io_service_bytes 0 0 0
	check "v1 reset_stats sets the I/Os to 0" is p/a/$T.io_serviced 0 0 0
	check "v1 reset_stats does not change other groups" is p/b/$T.io_serviced 200 100 6
	do_io p/a
	check "v1 counting goes on after reset_stats" is p/a/$T.io_serviced 100 50 3
	# an I/O that waits for its limit is counted once
	cap p/b "$DEV" rbps=$MiB
	echo 1 >"$CG/p/b/blkio.reset_stats"
	start_soon
	load p/b r -f "$DEV" -s 64k -n 20 -d 4
	wait_loads
	check "v1 an I/O that is held counts once" is p/b/$T.io_service_bytes $((20 * 65536)) 0 0
	umount_cgroup
}

# stat KEY: the value of KEY for the device in g/io.stat
stat_of() { sed -n "s/^$(devno "$DEV") .*\b$1=\([0-9]*\).*/\1/p" "$CG/g/io.stat"; }
io_stat() { equal "$(grep "^$(devno "$DEV") " "$CG/g/io.stat")" "$(devno "$DEV") $*"; }

v2() {
	mount_cgroup v2
	group g g/a
	cap g "$DEV" rbps=1000000000 wbps=1000000000
	do_io g/a
	check "v2 io.stat has no keys of ioband if no I/O was held" io_stat \
		"rbytes=$R wbytes=$W rios=100 wios=50 dbytes=$D dios=3"

	# I/O n is dispatched at n * 62.5 ms; all but the first wait
	cap g/a "$DEV" rbps=$MiB
	start_soon
	load g/a r -f "$DEV" -s 64k -n 16 -d 16
	until_ns $((START + 250000000))
	check "v2 held: 11 of 16 I/Os wait after 0.25 s" grep -q ' held=11 ' "$CG/g/a/io.stat"
	check "v2 throttled_usec grows while an I/O waits" within \
		"$(sed -n 's/.*throttled_usec=//p' "$CG/g/a/io.stat")" 250000 10000
	wait_loads
	local theirs="rbytes=$((R + 16 * 65536)) wbytes=$W rios=116 wios=50 dbytes=$D dios=3"
	local ours="held=0 nr_throttled=15 throttled_usec=[0-9]+"
	check "v2 io.stat has the keys of ioband in their order" grep -Ex "$(devno "$DEV") $theirs $ours" "$CG/g/a/io.stat"
	check "v2 throttled_usec is the time in which I/Os waited" within \
		"$(sed -n 's/.*throttled_usec=//p' "$CG/g/a/io.stat")" $((15 * 62500)) 1000
	check "v2 io.stat of the group above counts the bytes of all groups below" \
		equal "$(stat_of rbytes)" $((R + 16 * 65536))
	umount_cgroup
}

plan 19
null_dev nb0 memory_backed=1 discard=1 size=64
v1
v2
