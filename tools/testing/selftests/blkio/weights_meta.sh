#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# memory: 512
# Weights and metadata of ext4, which others may wait for: its reads do not wait for their
# group's share of the disk. A group that reads nothing else leaves half of the disk to others
# however much it asks for, and pays with what it reads of data afterwards, within a bound.
. "$(dirname "$0")/blkio_lib.sh"
. "$HERE/blkio_share.sh"

MNT=$TMP/mnt
FILES=4000		# whose inodes are a block each
READ_NS=1000000		# of the disk, for any I/O

# make_files: ext4 on DEV with as many empty files
make_files() {
	mkfs.ext4 -q -F -E lazy_itable_init=0 -N $((FILES + 64)) -I 4096 -b 4096 "$DEV"
	mkdir -p "$MNT"
	mount "$DEV" "$MNT"
	undo+=("! mountpoint -q $MNT || umount $MNT")
	python3 -c 'import os, sys
for i in range(int(sys.argv[2])):
    os.close(os.open(f"{sys.argv[1]}/{i}", os.O_CREAT | os.O_WRONLY))' "$MNT" $FILES
	umount "$MNT"
	mount -o ro,inode_readahead_blks=1 "$DEV" "$MNT"
}

# cold: what was read is forgotten
cold() { echo 3 >/proc/sys/vm/drop_caches; ls "$MNT" >"$TMP/names"; }

# stats GROUP FIRST NR TASKS SECONDS: so many tasks look at NR files each, or for so long;
# prints how many, and the longest time that one took, ns
stats() {
	in_group "$1" python3 -c 'import os, sys, threading, time
mnt, first, nr, tasks, seconds = sys.argv[1], *(int(word) for word in sys.argv[2:])
end, took = time.monotonic() + seconds, []
def read(first):
    for i in range(first, first + nr):
        if time.monotonic() > end:
            break
        begin = time.monotonic_ns()
        os.stat(f"{mnt}/{i}")
        took.append(time.monotonic_ns() - begin)
threads = [threading.Thread(target=read, args=(first + i * nr,)) for i in range(tasks)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(took), max(took))' "$MNT" "${@:2}"
}

# beside COMMAND...: while two other groups have 32 reads outstanding each
beside() {
	cold
	start_soon
	for name in other third; do
		load $name $name -f "$DEV" -s 4k -p rand -d 32 -t 8 -i 0.5
	done
	until_ns $((START + 3000000000))
	"$@" >"$TMP/stats"
	wait_loads
	read -r nr longest <"$TMP/stats"
	note "$nr files, $longest ns at most"
}

# flood: metadata alone for two seconds, then one read of data
flood() {
	stats reader 100 480 8 2
	in_group reader blkio_load -f "$DEV" -s 4k -n 1 >"$TMP/after.json"
}

plan 6
serial_dev 0 200 $READ_NS
make_files
mount_cgroup v2
group reader other third

weight reader 1
weight other 1000
weight third 1000
beside stats reader 0 20 1 4
# its own time, and that of what is in the device: two, and now and then a third, which shows
# whether the device does more at once by now
check "at a weight of 1 of 2001, metadata is read at once" in_range "$longest" $READ_NS $((9 * READ_NS / 2))

for name in reader other third; do weight $name 200; done
beside flood
# the first and the last half second of it aside
check "8 tasks read nothing but metadata: a quarter of the disk is for one group" bins other 7 10 120 130
check "and a quarter for the other" bins third 7 10 120 130
check "and half for these tasks" in_range "$nr" 950 1050
# a debt of 100 ms of the disk, of which it has a third when all three want it
check "what they read of data afterwards waits, and not for long" \
	in_range "$(val after max_ns)" 150000000 310000000

# 16 at a time: where tasks wait for room in the disk, there is no scheduler to have room for more
umount "$MNT"
null_dev nb0 size=200 memory_backed=1 completion_nsec=$READ_NS hw_queue_depth=16
make_files
beside flood
ahead=$(sed -n 's/.* ahead=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/${DEV##*/}/ioband/share")
check "no scheduler: nothing is sent ahead" equal "$ahead" 0
