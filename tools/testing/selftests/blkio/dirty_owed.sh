#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Writeback for sync() passes whatever the weight of its group is, since others wait for it. A group of weight 10 beside
# one of weight 1000 that syncs its pages all the time gets no more of the disk for that: its tasks wait before they
# dirty more pages. They do not wait once no other group wants the disk.
# configs: uml-vt
# memory: 512
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

READ_NS=2000000 DEPTH=8
SEC=14 FROM=7		# of the loads: the costs of I/Os are learned in the first seconds

# dirtier HOW FILE SECONDS: makes 1 MiB dirty again and again, and prints the bytes of each second; HOW: write or map, by
# write() or by stores through a mapping; with sync() after each
dirtier() {
	python3 -c 'import mmap, os, sys, time
how, name, end = sys.argv[1], sys.argv[2], time.monotonic() + float(sys.argv[3])
begin, size, at = time.monotonic(), 64 << 20, 0
fd = os.open(name, os.O_RDWR | os.O_CREAT)
if how == "map":
    os.ftruncate(fd, size)
    pages = mmap.mmap(fd, size)
seconds = [0] * (int(float(sys.argv[3])) + 1)
while time.monotonic() < end:
    if how == "map":
        for page in range(at, at + (1 << 20), 4096):
            pages[page] = 1
    else:
        os.pwrite(fd, bytes(1 << 20), at)
    at = (at + (1 << 20)) % size
    os.sync()
    seconds[min(int(time.monotonic() - begin), len(seconds) - 1)] += 1 << 20
print(*seconds)' "$@"
}

# reads: the reads of the other group in the seconds that count
reads() { seen heavy 1 $SEC $FROM; }

# syncs HOW: two points
syncs() {
	local all light
	in_group light touch "$MNT/light"
	start_soon
	load heavy heavy -f "$DEV" -s 4k -p rand -d 32 -t $SEC -i 1
	light=$(in_group light timeout 60 bash -c "$(declare -f dirtier); dirtier $1 $MNT/light $SEC" | tr ' ' '\n' |
		awk -v "from=$FROM" -v "sec=$SEC" 'NR > from && NR <= sec { n += $1 } END { print n }')
	wait_loads
	all=$((DEPTH * 500 * (SEC - FROM)))
	note "$1: $(reads) of $all reads beside $((light / MiB)) MiB"
	check "$1: the other group has 97 % of the disk at least" in_range "$(reads)" $((all * 97 / 100)) "$all"
	# 1 MiB takes 2.2 ms of the disk
	check "$1: the group writes, within three times its share" in_range "$light" "$MiB" $((3 * 9 / 2 * MiB * (SEC - FROM)))
}

# alone: once the other group has ended, the group writes as fast as the disk
alone() {
	local light
	start_soon
	load heavy heavy -f "$DEV" -s 4k -p rand -d 32 -t 3 -i 1
	light=$(in_group light timeout 60 bash -c "$(declare -f dirtier); dirtier write $MNT/light 6")
	wait_loads
	note "with the other group for 3 s, then alone: $light"
	check "alone: the group does not wait for what it owed" in_range "$(awk '{ print $5 }' <<<"$light")" $((50 * MiB)) $((500 * MiB))
}

everywhere() {
	group light heavy
	null_dev "owed$HIERARCHY" size=300 memory_backed=1 completion_nsec=$READ_NS hw_queue_depth=$DEPTH
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
	weight light 10
	weight heavy 1000
	for how in write map; do syncs $how; done
	alone
	umount "$MNT"
	null_gone "owed$HIERARCHY"
}

plan 15
on_each everywhere v1 v2 memcg
