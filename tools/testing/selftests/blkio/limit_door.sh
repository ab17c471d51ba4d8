#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Direct I/O and reads of the page cache are paid before their task takes a lock, so that others do not wait for what a
# group with a limit has locked: not for a file, a directory, a file system or a device that it uses, and not for its
# end. Only asynchronous I/O waits for limits with a lock, a second's worth at most.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"
# shellcheck source=lib/blkio_timed.sh
. "$HERE/lib/blkio_timed.sh"

# what others may wait for asynchronous direct I/O, ms
ASYNC_MS=1200

READS='
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
pages = mmap.mmap(-1, 64 << 20)
open(sys.argv[-1], "w").close()
os.preadv(fd, [pages], 0)'

WRITES='
fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
pages = mmap.mmap(-1, 8 << 20)
open(sys.argv[-1], "w").close()
os.pwritev(fd, [pages], 0)'

RENAMES='
open(sys.argv[1] + ".new", "w").close()
os.rename(sys.argv[1] + ".new", sys.argv[1])'

APPENDS='
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
os.write(fd, b"x")
os.ftruncate(fd, 1 << 20)'

FREEZES='
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(fd, 0xC0045877, 0)
fcntl.ioctl(fd, 0xC0045878, 0)'

# at_once DESCRIPTION MOST_MS
at_once() {
	check "$1" in_range "$TOOK_MS" 0 "$2"
}

# files: a group reads and writes files of ext4 in one long call
files() {
	null_dev nb0 size=400 memory_backed=1
	make_fs ext4 "$DEV" -q
	mkdir "$MNT/dir"
	dd if=/dev/zero of="$MNT/dir/file" bs=1M count=64 conv=fsync status=none
	dd if=/dev/zero of="$MNT/own" bs=1M count=8 conv=fsync status=none
	cap g "$DEV" rbps=$MiB wbps=$((64 * KiB))
	begun g "$READS" "$MNT/dir/file"
	sleep 0.1
	timed_in free "$APPENDS" "$MNT/dir/file"
	at_once "a group reads a file directly: another one appends to it and truncates it" $MOST_MS
	timed_in free "$RENAMES" "$MNT/dir/file"
	at_once "a group reads a file directly: another one renames a file over it" $MOST_MS
	end_loads
	begun g "$WRITES" "$MNT/own"
	sleep 0.1
	timed_in free "$FREEZES" "$MNT"
	at_once "a group writes directly: the file system can be frozen" $MOST_MS
	timed_in free 'open(sys.argv[1], "w").write("x")' "$MNT/other"
	at_once "a group writes directly: another one writes to another file" $MOST_MS
	TOOK_MS=$(now_ms)
	end_loads
	TOOK_MS=$(($(now_ms) - TOOK_MS))
	at_once "a group writes 8 MiB directly: it can be killed" $MOST_MS
}

# asynchronous I/O, of which io_submit() and io_uring take more than a second's worth
queues() {
	local held
	dd if=/dev/zero of="$MNT/dir/file" bs=1M count=64 conv=fsync status=none
	START=0
	load g aio -f "$MNT/dir/file" -s 256k -d 64 -t 30
	sleep 0.5
	timed_in free "$RENAMES" "$MNT/dir/file"
	at_once "a group reads a file with a deep queue: another one renames a file over it" $ASYNC_MS
	end_loads
	# 4096 I/Os a second
	cap g "$DEV" rbps=$((16 * MiB))
	load g uring -f "$DEV" -s 4k -d 4096 -u -t 30
	sleep 2
	held=$(sed -n "s/^cg=$(cgid g) read: held=\([0-9]*\) .*/\1/p" "/sys/kernel/debug/block/${DEV##*/}/ioband/groups")
	# and the task waits at the door to submit one more
	check "4096 requests of io_uring: no more than 1024 are held" in_range "${held:-none}" 900 $((1024 + 1))
	cap g "$DEV" rbps=1
	group "gone"
	cap "gone" "$DEV" rbps=1
	in_background "gone" dd if="$DEV" of=/dev/null bs=1M count=1 iflag=direct status=none
	sleep 0.1
	TOOK_MS=$(now_ms)
	echo 1 >"$CG/g/cgroup.kill"
	echo 1 >"$CG/gone/cgroup.kill"
	while [ -d "$CG/g" ] || [ -d "$CG/gone" ]; do
		[ $(($(now_ms) - TOOK_MS)) -lt 60000 ] || break
		sleep 0.01
		rmdir "$CG/g" "$CG/gone" 2>/dev/null
	done
	TOOK_MS=$(($(now_ms) - TOOK_MS))
	at_once "groups with a limit of 1 B/s are killed and removed" $ASYNC_MS
	end_loads
	umount "$MNT"
}

# together HOW [OPTION...]: many tasks that each do one I/O at the same time get what the limit allows
together() {
	local i before how=$1
	shift
	start_soon
	for ((i = 0; i < 32; i++)); do
		load g "t$i" -f "$DEV" -s 1M -O "${i}M" -n 1 "$@"
	done
	before=$(read_bytes)
	until_ns $((START + 8000000000))
	check "32 tasks that read 1 MiB each $how: 8 of them in 8 s" in_range $((($(read_bytes) - before) / MiB)) 7 9
	end_loads
}

# 32 tasks that read a little, and then 1 MiB each when there is a file: the last argument but one
SOON='
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
ready = threading.Barrier(33)

def task(i):
    pages = mmap.mmap(-1, 1 << 20)
    os.preadv(fd, [memoryview(pages)[:4096]], i << 20)
    ready.wait()
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.01)
    os.preadv(fd, [pages], i << 20)

for i in range(32):
    threading.Thread(target=task, args=(i,)).start()
ready.wait()
open(sys.argv[-1], "w").close()'

# bound_since GROUP WHAT COMMAND...: tasks of a group that no limit binds read after a command that has one bind them
bound_since() {
	local before what=$2
	rm -f "$TMP/go"
	begun "$1" "$SOON" "$DEV" "$TMP/go"
	sleep 0.5
	"${@:3}"
	before=$(read_bytes)
	: >"$TMP/go"
	sleep 8
	check "32 tasks read 1 MiB each $what: 8 of them in 8 s" in_range $((($(read_bytes) - before) / MiB)) 7 9
	end_loads
}

move_all() {
	local pid
	while read -r pid; do echo "$pid" >"$CG/$2/cgroup.procs"; done <"$CG/$1/cgroup.procs"
}

# at_random: what one task has paid for does not stop others from using the disk meanwhile
at_random() {
	local i before
	start_soon
	for ((i = 0; i < 16; i++)); do
		load g "t$i" -f "$DEV" -s 4k -p rand -S $i -t 6 -b
	done
	until_ns $((START + 1000000000))
	before=$(read_bytes)
	until_ns $((START + 6000000000))
	check "16 tasks read 4 KiB at random through the page cache: they get their 8 MiB/s" \
		within $((($(read_bytes) - before) / 5)) $((8 * MiB)) 10000
	end_loads
}

# streams: of many tasks that read one page after the other, one is ahead of what it has paid for, with its readahead
streams() {
	local i before
	start_soon
	for ((i = 0; i < 32; i++)); do
		load g "t$i" -f "$DEV" -s 4k -O "$((i * 4))M" -t 6 -b
	done
	before=$(read_bytes)
	until_ns $((START + 2000000000))
	check "32 tasks read pages in sequence at 2 MiB/s: 4 to 5.2 MiB in 2 s" \
		in_range $((($(read_bytes) - before) / KiB)) 4096 $((5 * 1024 + 128 + 64))
	end_loads
}

# what is in the page cache, or in a pipe, costs nothing
CACHED='
fd = os.open(sys.argv[1], os.O_RDONLY)
for i in range(100): os.pread(fd, 4096, i % 4 << 12)
take, give = os.pipe()
fcntl.fcntl(give, 1031, 1 << 20)
os.write(give, bytes(1 << 20))
assert len(os.read(take, 4 << 20)) == 1 << 20'

SMALL='
for i in range(256): open(sys.argv[1] + str(i)).read()'

# cached: a group whose limit is used up all the time reads what costs nothing, and another small files
cached() {
	local i
	null_dev nb4 size=400 memory_backed=1
	make_fs ext4 "$DEV" -q
	for ((i = 0; i < 256; i++)); do dd if=/dev/zero of="$MNT/f$i" bs=4k count=1 status=none; done
	dd if=/dev/zero of="$MNT/f0" bs=4k count=4 status=none
	drop_cache
	group small
	cap small "$DEV" rbps=$MiB
	# 1 MiB, less a burst
	timed_in small "$SMALL" "$MNT/f"
	check "256 files of 4 KiB at 1 MiB/s" in_range "$TOOK_MS" 900 1150
	cap g "$DEV" rbps=$((64 * KiB))
	in_background g dd if="$DEV" of=/dev/null bs=1M iflag=direct status=none
	sleep 0.1
	timed_in g "$CACHED" "$MNT/f0"
	at_once "a group at its limit reads from the page cache, and a pipe" $MOST_MS
	end_loads
	umount "$MNT"
}

# slowly: asynchronous I/O that its limit takes seconds for is not submitted before it has been paid for
slowly() {
	local before
	group slow
	cap slow "$DEV" rbps=$((64 * KiB))
	before=$(read_bytes)
	START=0
	load slow aio -f "$DEV" -s 256k -d 2 -t 30
	sleep 2.5
	check "aio of 256 KiB at 64 KiB/s: nothing is read for 3 s" equal $(($(read_bytes) - before)) 0
	end_loads
}

# crowds: tasks of one group on one disk
crowds() {
	null_dev nb1 size=1024 memory_backed=1 completion_nsec=5000000
	slowly
	group g
	cap g "$DEV" rbps=$MiB
	bound_since free "after a move to a group with a limit" move_all free g
	bound_since up/child "below a limit that is new" cap up "$DEV" rbps=$MiB
	together directly
	together "through the page cache" -b
	drop_cache
	cap g "$DEV" rbps=$((8 * MiB))
	at_random
	drop_cache
	cap g "$DEV" rbps=$((2 * MiB))
	streams
}

read_bytes() { awk '{ print $3 * 512 }' "/sys/block/${DEV##*/}/stat"; }

# below: the limit is on a disk below dm, or the file system has no disk of its own
below() {
	local bottom
	null_dev nb2 size=400 memory_backed=1
	bottom=$DEV
	dm_dev above "0 $(sectors "$bottom") linear $bottom 0" || bail "no dm"
	cap g "$bottom" rbps=$((64 * KiB))
	begun g "$READS" "$DEV"
	sleep 0.1
	timed_in free 'subprocess.run("dmsetup suspend above && dmsetup resume above", shell=True, check=True)'
	at_once "a group reads a dm device whose disk has the limit: the device can be suspended" $MOST_MS
	end_loads
	null_dev nb3 size=400 memory_backed=1
	make_fs btrfs "$DEV" -q
	: >"$MNT/own"
	chattr +C "$MNT/own"
	dd if=/dev/zero of="$MNT/own" bs=1M count=8 conv=fsync status=none
	cap g "$DEV" wbps=$((64 * KiB))
	begun g "$WRITES" "$MNT/own"
	sleep 0.1
	timed_in free 'subprocess.run(["sync", "-f", sys.argv[1]], check=True)' "$MNT"
	at_once "a group writes to btrfs directly: another one calls syncfs()" $MOST_MS
	end_loads
	umount "$MNT"
}

plan 19
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
mount_cgroup v2
group g free up up/child
files
queues
crowds
cached
below
umount_cgroup
