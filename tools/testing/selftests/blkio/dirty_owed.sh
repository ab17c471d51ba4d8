#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Writeback that others wait for passes whatever the weight of its group is: for sync(), and when a journal commits. A
# group of weight 10 beside one of weight 1000 that syncs its pages all the time gets no more of the disk for that: its
# tasks wait before they dirty more pages. They do not wait once no other group wants the disk.
# configs: uml-vt
# memory: 512
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

READ_NS=2000000 DEPTH=8
SHARE=$((9 * MiB / 2))	# of the group of weight 10, in a second: 1 MiB takes 2.2 ms of the disk
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

# syncs HOW: two points. Beside the group's share of 1 % each sync() has the journal commit, which is the kernel's I/O.
syncs() {
	local all light
	start_soon
	load heavy heavy -f "$DEV" -s 4k -p rand -d 32 -t $SEC -i 1
	light=$(in_group light timeout 60 bash -c "$(declare -f dirtier); dirtier $1 $MNT/light $SEC" | tr ' ' '\n' |
		awk -v "from=$FROM" -v "sec=$SEC" 'NR > from && NR <= sec { n += $1 } END { print n }')
	wait_loads
	all=$((DEPTH * 500 * (SEC - FROM)))
	note "$1: $(reads) of $all reads beside $((light / MiB)) MiB"
	check "$1: the other group has 95 % of the disk at least" in_range "$(reads)" $((all * 95 / 100)) "$all"
	check "$1: the group writes, within 1.5 times its share" in_range "$light" "$MiB" $((3 * SHARE * (SEC - FROM) / 2))
}

# fsyncs FILE SECONDS: appends a page again and again, and prints the longest fsync() in ms
fsyncs() {
	python3 -c 'import os, sys, time
end, longest = time.monotonic() + float(sys.argv[2]), 0
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
while time.monotonic() < end:
    os.write(fd, bytes(4096))
    begin = time.monotonic()
    os.fsync(fd)
    longest = max(longest, time.monotonic() - begin)
    time.sleep(.1)
print(round(1000 * longest))' "$@"
}

# commits: a third group commits the journal, for which it waits for pages that the group of weight 10 has allocated
# and whose writeback the gate holds; four points
commits() {
	local all longest light begin
	start_soon
	load heavy heavy -f "$DEV" -s 4k -p rand -d 32 -t $SEC -i 1
	load light light -f "$MNT/light" -b -o w -s 64k -t $SEC -i 1 -L 200M
	sleep 2
	longest=$(in_group third bash -c "$(declare -f fsyncs); fsyncs $MNT/third $((SEC - 4))")
	begin=$(now_ms)
	sync
	begin=$(($(now_ms) - begin))
	wait_loads
	all=$((DEPTH * 500 * (SEC - FROM)))
	light=$(seen light $((64 * KiB)) $SEC $FROM)
	note "commits: $(reads) of $all reads beside $((light / MiB)) MiB"
	# to write a window of pages takes 36 ms, and for its turn it would wait 100 times as long
	check "fsync() of another group waits for no turn" in_range "$longest" 1 200
	check "sync() waits for no turn" in_range "$begin" 0 200
	check "commits: the other group has 95 % of the disk at least" in_range "$(reads)" $((all * 95 / 100)) "$all"
	check "commits: the group writes, within 1.5 times its share" in_range "$light" "$MiB" $((3 * SHARE * (SEC - FROM) / 2))
}

# syncers FILE SECONDS: eight tasks write 2 MiB of the file each and call fsync(), again and again
syncers() {
	python3 -c 'import os, sys, threading, time
end = time.monotonic() + float(sys.argv[2])
def run(at):
    fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
    while time.monotonic() < end:
        os.pwrite(fd, bytes(2 << 20), at << 21)
        os.fsync(fd)
threads = [threading.Thread(target=run, args=(at,)) for at in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()' "$@"
}

# synced: as commits, but tasks of the group wait for its pages themselves; a point
synced() {
	local longest
	: >"$MNT/new"
	start_soon
	load heavy heavy -f "$DEV" -s 4k -p rand -d 32 -t 10 -i 1
	in_group light timeout 60 bash -c "$(declare -f syncers); syncers $MNT/new 8" &
	sleep 2
	longest=$(in_group third bash -c "$(declare -f fsyncs); fsyncs $MNT/third 5")
	wait $!
	wait_loads
	check "fsync() of another group does not wait for the turn of pages that are synced" in_range "$longest" 1 200
}

# roots: what root owes holds nobody; a point
roots() {
	local begin
	start_soon
	load heavy heavy -f "$DEV" -s 4k -p rand -d 32 -t 5 -i 1
	sleep 2
	dd if=/dev/zero of="$MNT/root" bs=1M count=64 status=none
	sync
	group fresh
	begin=$(now_ms)
	in_group fresh dd if=/dev/zero of="$MNT/fresh" bs=64k count=4 status=none
	begin=$(($(now_ms) - begin))
	wait_loads
	check "a new group does not wait for what the root group owes" in_range "$begin" 0 50
}

# room: the other group uses two of the eight places of the disk; a point
room() {
	local light
	start_soon
	load heavy heavy -f "$DEV" -s 4k -p rand -d 2 -t 6 -i 1
	light=$(in_group light timeout 60 bash -c "$(declare -f dirtier); dirtier write $MNT/light 6")
	wait_loads
	note "beside two reads at a time: $light"
	check "room: the group writes as if it was alone, or nearly so" in_range "$(awk '{ print $4 + $5 }' <<<"$light")" $((150 * MiB)) $((500 * MiB))
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
	group light heavy third
	null_dev "owed$HIERARCHY" size=300 memory_backed=1 completion_nsec=$READ_NS hw_queue_depth=$DEPTH
	OPTIONS=dioread_lock make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
	weight light 10
	weight heavy 1000
	weight third 1000
	: >"$MNT/light"
	commits
	for how in write map; do syncs $how; done
	synced
	roots
	room
	alone
	umount "$MNT"
	null_gone "owed$HIERARCHY"
}

plan 36
on_each everywhere v1 v2 memcg
