#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# memory: 512
# Weights and metadata of ext4, for which other groups may wait: reads of metadata do not wait for their group's share
# of the disk. A group that reads only metadata leaves half of the disk to other groups, however much it asks for, and
# pays with its later reads of data, within a bound.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

MNT=$TMP/mnt
FILES=4000		# whose inodes are a block each
READ_NS=1000000		# of the disk, for any I/O

# make_files: an ext4 on DEV with this many empty files
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

# cold: drops what was read from the caches
cold() { echo 3 >/proc/sys/vm/drop_caches; ls "$MNT" >"$TMP/names"; }

# stats GROUP FIRST NR TASKS SECONDS: this many tasks stat NR files each, or for so long; prints how many files, and the
# longest time for one, in ns
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

# beside COMMAND...: runs the command while two other groups have 32 reads outstanding each
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

# flood: metadata only for two seconds, then one read of data
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
# the time of the read itself and of what is in the device: two I/Os, and sometimes a third, which shows whether the
# device does more at once by now
check "a group with weight 1 of 2001: its metadata is read at once" in_range "$longest" $READ_NS $((9 * READ_NS / 2))

for name in reader other third; do weight $name 200; done
beside flood
# without the first and the last half second
check "8 tasks read metadata only: a quarter of the disk for the first other group" bins other 7 10 120 130
check "8 tasks read metadata only: a quarter of the disk for the second other group" bins third 7 10 120 130
check "8 tasks read metadata only: half of the disk for these tasks" in_range "$nr" 950 1050
# a debt of 100 ms of the disk, of which the group gets a third when all three have I/O
check "after 8 tasks read metadata only: their read of data waits, within the bound" \
	in_range "$(val after max_ns)" 150000000 310000000

# 16 I/Os at a time: where tasks wait for a tag, there is no scheduler that could take more I/Os
umount "$MNT"
null_dev nb0 size=200 memory_backed=1 completion_nsec=$READ_NS hw_queue_depth=16
make_files
beside flood
ahead=$(sed -n 's/.* ahead=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/${DEV##*/}/ioband/share")
check "no scheduler: no I/O is dispatched ahead" equal "$ahead" 0
