#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Many groups and many files: groups that write at once, below one limit, share its window; the flusher does not search
# all dirty files of other groups for those of limited groups again and again.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

COUNT=30 FILES=32000 SEC=5
# The pause after FILES inodes is 120 ms at least, and each piece of work searches twice.
SEARCHES_MOST=$((2 * (SEC * 1000 / 120 + 1)))

make_groups() {
	local i
	group p other
	for ((i = 0; i < COUNT; i++)); do group "p/$i"; done
}

make_files() {
	local i
	for ((i = 0; i < COUNT; i++)); do : >"$MNT/$i"; done
	sync
}

# all_write BYTES: all groups below p write so much at once, each to a file of its own
all_write() {
	local i
	start_soon
	for ((i = 0; i < COUNT; i++)); do
		load "p/$i" "$i" -f "$MNT/$i" -b -o w -s "$1" -t "$SEC" -L 2M
	done
}

shared_window() {
	local bytes=0 i most
	cap p "$DEV" wbps=$((8 * MiB))
	sleep 0.1
	all_write "$1"
	most=$(most_pages $((SEC - 1)))
	wait_loads
	for ((i = 0; i < COUNT; i++)); do bytes=$((bytes + $(val "$i" bytes))); done
	echo "# write() of $1 by $COUNT groups below 8 MiB/s: $((bytes / 1024)) KiB in $SEC s, most $most pages dirty"
	check "$COUNT groups below one limit, write() of $1: their dirty pages are one second's worth of it at most" \
		in_range "$most" 256 $((8 * MiB / 4096))
	check "$COUNT groups below one limit, write() of $1: together they write at that limit" \
		in_range $((bytes / SEC)) $((8 * MiB * 98 / 100)) $((8 * MiB * 102 / 100 + MiB / SEC))
	cap p "$DEV" wbps=max
	sync
}

# searches: counts how often the flusher looked for dirty inodes while limited groups write beside dirty files of others
searches() {
	local i instance=/sys/kernel/tracing/instances/blkio-many
	mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
	mkdir "$instance"
	undo+=("rmdir $instance")
	for ((i = 0; i < COUNT; i++)); do cap "p/$i" "$DEV" wbps=$((256 * KiB)); done
	in_group other python3 -c '
import sys
for i in range(int(sys.argv[2])):
    with open(f"{sys.argv[1]}/other.{i}", "wb") as out:
        out.write(bytes(4096))
' "$MNT" "$FILES"
	sleep 0.1
	echo 1 >"$instance/events/writeback/writeback_queue_io/enable"
	all_write 64k
	wait_loads
	echo 0 >"$instance/events/writeback/writeback_queue_io/enable"
	SEARCHES=$(grep -c writeback_queue_io "$instance/trace")
	# no limit binds their dirtier, of which there is no record
	LEFT=$(awk '/^Dirty:/ { print $2 / 4 }' /proc/meminfo)
}

SEARCHES='' LEFT=''
plan 7
sysctl -qw vm.dirty_writeback_centisecs=0 vm.dirty_background_ratio=60 vm.dirty_ratio=80
# on v2 the inodes of each group are in lists of their own
mount_cgroup v1
make_groups
null_dev disk irqmode=0 hw_queue_depth=1024 size=1000 memory_backed=1
make_fs ext4 "$DEV" -q -F -b 4096 -N 40000 -E lazy_itable_init=0,lazy_journal_init=0
make_files

searches
echo "# $SEARCHES searches in $SEC s, at most $SEARCHES_MOST; $LEFT dirty pages of others left"
check "limited groups beside $FILES dirty files of others: the flusher pauses between searches" \
	in_range "$SEARCHES" 10 $SEARCHES_MOST
check "limited groups beside $FILES dirty files of others: these stay dirty" in_range "${LEFT:-0}" $((FILES / 2)) $((2 * FILES))
bytes=0
for ((i = 0; i < COUNT; i++)); do bytes=$((bytes + $(val "$i" bytes))); done
# the most: each group may begin with a burst of 64 KiB
check "limited groups beside $FILES dirty files of others: they write at their limits" \
	in_range $((bytes / SEC)) $((COUNT * 256 * KiB * 98 / 100)) $((COUNT * (256 * SEC + 64) * KiB / SEC))
sync
umount_cgroup

mount_cgroup v2
make_groups
shared_window 4k
shared_window 1M
