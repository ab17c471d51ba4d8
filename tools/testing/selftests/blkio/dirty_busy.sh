#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# memory: 1536
# timeout: 300
# Buffered writes of a group with a limit, on a disk that others keep busy: what waits in the queue of the disk is others'
# business, and should not push the group below its limit. Its window bounds what is dirty, and not what has been paid and
# waits for the disk. Notes show where the group gets less: another writer has more of the disk's queue than it has, and with
# ext4 a commit of the journal waits there, too.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=12

# busy_disk NAME: 5.2 MiB/s in writes of 64 KiB, of which 256 wait
busy_disk() {
	null_dev "$1" size=400 memory_backed=1 completion_nsec=12000000 hw_queue_depth=1 max_sectors=128
	echo mq-deadline >"/sys/block/${DEV##*/}/queue/scheduler"
	echo 256 >"/sys/block/${DEV##*/}/queue/nr_requests"
}

# beside WHAT LIMIT LOAD_OPTION...: a writer with a limit beside another load, whose options these are; sets PART, per mille
# of the limit, and LONGEST_MS, its longest write
beside() {
	local what=$1 limit=$2
	shift 2
	touch "$MNT/slow" "$MNT/free"
	cap slow "$DEV" wbps="$limit"
	START=0
	load free busy "$@" -t $((SEC + 7))
	sleep 5
	start_soon
	load slow slow -f "$MNT/slow" -b -o w -s 64k -L 32M -t $SEC
	wait_loads
	PART=$(($(val slow bytes) * 1000 / SEC / limit)) LONGEST_MS=$(($(val slow max_ns) / 1000000))
	note "$HIERARCHY, $what: $PART per mille of the limit, longest write $LONGEST_MS ms"
	cap slow "$DEV" wbps=max
}

# got WHAT LEAST MOST_MS: what beside() has measured
got() {
	check "$1: the group gets its limit, per mille" in_range "$PART" "$2" 1010
	check "$1: no write waits long, ms" in_range "$LONGEST_MS" 0 "$3"
}

# file_system NAME: beside a writer, and beside 128 direct writes
file_system() {
	busy_disk "b$1$HIERARCHY"
	make_fs "$1" "$DEV" -q
	beside "$1, another writer" $MiB -f "$MNT/free" -b -o w -s 1M -L 64M
	# v1 has one flusher for both groups, which may be busy with the other one's pages
	[ "$1 $HIERARCHY" != 'xfs memcg' ] || got "$1, another writer" 400 2500
	dd if=/dev/zero of="$MNT/direct" bs=1M count=32 conv=fsync status=none
	beside "$1, 128 direct writes" $((512 * KiB)) -f "$MNT/direct" -o w -s 64k -d 128 -L 32M
	[ "$1 $HIERARCHY" != 'xfs memcg' ] || got "$1, 128 direct writes" 850 2000
	umount "$MNT"
}

all() {
	group slow free
	file_system xfs
	file_system ext4
	[ "$HIERARCHY" = v1 ] || file_system btrfs
}

plan 4
dirty_limit $((64 * MiB))
on_each all memcg v1
