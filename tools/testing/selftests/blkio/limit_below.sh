#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# A limit on the disk below a loop device, for which the driver's thread reads and writes: the group gets the limit, and
# nobody else who uses the loop device waits for it, however much the group asks for.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"
# shellcheck source=lib/blkio_timed.sh
. "$HERE/lib/blkio_timed.sh"

RATE=$MiB
T=8

ONE_READ='
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
os.preadv(fd, [mmap.mmap(-1, 4096)], 300 << 20)'

ONE_WRITE='
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_DIRECT)
os.pwritev(fd, [mmap.mmap(-1, 4096)], 300 << 20)'

# a task of the group argv[2] reads from an open file that it shares with this task, which asks for its position
POSITION='
fd = os.open(sys.argv[1], os.O_RDONLY)
os.lseek(fd, 310 << 20, os.SEEK_SET)
if not os.fork():
    # nobody is to wait for the end of what it prints
    os.close(1)
    open(sys.argv[2] + "/cgroup.procs", "w").write("0")
    os.read(fd, 4096)
    os._exit(0)
time.sleep(0.5)
begin = time.monotonic()
os.lseek(fd, 0, os.SEEK_CUR)'

# reads 1 MiB after the other by way of a mapping, for which there is no door
POPULATES='
fd = os.open(sys.argv[1], os.O_RDONLY)
open(sys.argv[-1], "w").close()
MADV_POPULATE_READ = 22
for at in range(100 << 20, 300 << 20, 1 << 20):
    with mmap.mmap(fd, 1 << 20, prot=mmap.PROT_READ, offset=at) as memory:
        memory.madvise(MADV_POPULATE_READ)'

# one_by_one WHAT OPTION...: a task that waits for the end of each I/O; it is ahead by two calls at most
one_by_one() {
	local what=$1
	shift
	start_soon
	load g x -f "$TOP" -s 64k -t $T "$@"
	wait_loads
	check "one $what of 64 KiB after the other: the limit" \
		in_range "$(val x bytes)" $((RATE * T - 131072)) $((RATE * T + 65536 + 2 * 65536))
}

# deep WHAT OPTION...: a task with 32 MiB outstanding; others use the loop device meanwhile
deep() {
	local what=$1 before
	shift
	before=$(done_bytes)
	START=0
	load g x -f "$TOP" -s 256k -d 128 -t 60 "$@"
	sleep 0.5
	timed_in free "$ONE_READ" "$TOP"
	check "beside 128 $what of 256 KiB: another group reads" in_range "$TOOK_MS" 0 $MOST_MS
	timed_in free "$ONE_WRITE" "$TOP"
	check "beside 128 $what of 256 KiB: another group writes" in_range "$TOOK_MS" 0 $MOST_MS
	timed_in free "$POSITION" "$TOP" "$CG/g"
	check "beside 128 $what of 256 KiB: the position of a file that both groups share" in_range "$TOOK_MS" 0 $MOST_MS
	sleep 10
	# the queue passes, and is owed
	check "128 $what of 256 KiB: no more than these in 10 s" in_range $((($(done_bytes) - before) / MiB)) 8 33
	TOOK_MS=$(now_ms)
	end_loads
	check "128 $what of 256 KiB: their task can be killed" in_range $(($(now_ms) - TOOK_MS)) 0 $MOST_MS
	# the debts end with the limit
	cap g "$BELOW" rbps=max wbps=max
	cap g "$BELOW" rbps=$RATE wbps=$RATE
}

done_bytes() { awk '{ print ($3 + $7) * 512 }' "/sys/block/${BELOW##*/}/stat"; }

# mapped: a task that passes no door waits at the end of each call for the calls before
mapped() {
	local before
	drop_cache
	before=$(done_bytes)
	begun g "$POPULATES" "$TOP"
	sleep $T
	check "pages of loop are read by way of mappings: the limit" \
		in_range $(($(done_bytes) - before)) $((RATE * T - MiB)) $((RATE * T + 3 * MiB))
	end_loads
	cap g "$BELOW" rbps=max wbps=max
	cap g "$BELOW" rbps=$RATE wbps=$RATE
}

# files: a file system on the loop device
files() {
	local before
	make_fs ext4 "$TOP" -q -F -E lazy_itable_init=0
	dd if=/dev/zero of="$MNT/file" bs=1M count=32 conv=fsync status=none
	drop_cache
	before=$(done_bytes)
	START=0
	load g x -f "$MNT/file" -s 64k -b -t 60
	sleep $T
	check "a file on loop is read through the page cache: the limit" \
		in_range $(($(done_bytes) - before)) $((RATE * T - 262144)) $((RATE * T + MiB))
	end_loads
	umount "$MNT"
}

# moves from group to group, and reads 4 MiB in each, without a wait for what the last group owes
MOVES='
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
memory = mmap.mmap(-1, 4 << 20)
for i in range(4):
    open(sys.argv[2] + "/m/c%d/cgroup.procs" % i, "w").write("0")
    os.preadv(fd, [memory], i << 22)'

# moves: 15 MiB are more than the burst and a second of 1 MiB/s, and the last 4 MiB may pass
moves() {
	cap m "$BELOW" rbps=$RATE
	timed_in m/c0 "$MOVES" "$TOP" "$CG"
	check "a task that moves from group to group leaves its debts to no other" in_range "$TOOK_MS" 10000 16500
	cap m "$BELOW" rbps=max
}

# 40 tasks, of which each is refused a read because its group owes a little, reads ahead in a thread, which passes no
# door, starts the next one, and is killed by it
REFUSED='
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
ahead = os.open(sys.argv[1], os.O_RDONLY)
page, refused = mmap.mmap(-1, 4096), 0
for link in range(40):
    os.posix_fadvise(ahead, (200 + link) << 20, 131072, os.POSIX_FADV_WILLNEED)
    try: os.preadv(fd, [page], 0, os.RWF_NOWAIT)
    except BlockingIOError: refused += 1
    thread = threading.Thread(target=os.posix_fadvise, args=(ahead, link << 22, 4 << 20, os.POSIX_FADV_WILLNEED))
    thread.start()
    time.sleep(0.01)
    parent = os.getpid()
    if os.fork(): time.sleep(1000)
    if link: os.kill(parent, 9)
open(sys.argv[2], "w").write(str(refused))'

# refused: a second's worth may be owed, and the last call is not waited for: 1.25 MiB, as much as readahead may be
refused() {
	local begin took before
	drop_cache
	before=$(done_bytes)
	begin=$(now_ms)
	in_background g python3 -c "$IMPORTS$REFUSED" "$TOP" "$TMP/chained"
	while [ ! -s "$TMP/chained" ] && [ $(($(now_ms) - begin)) -lt 100000 ]; do sleep 0.1; done
	took=$(($(now_ms) - begin))
	check "40 tasks are refused, read ahead, start the next one and are killed: the limit" \
		in_range $(($(done_bytes) - before)) $((40 * MiB)) $((took * RATE / 1000 + 5 * MiB / 2))
	check "they are refused at times" in_range "$(cat "$TMP/chained")" 1 40
	end_loads
}

# siblings: each of 16 groups has to wait until its own debt is paid, which takes 16 times as long as if it were alone
siblings() {
	local i before
	cap m "$BELOW" rbps=$RATE
	before=$(done_bytes)
	START=0
	for i in {0..15}; do load m/c"$i" s"$i" -f "$TOP" -o r -s 256k -d 16 -t 90; done
	sleep 60
	check "16 groups below one limit: the limit, and what each of them may ask for at once" \
		in_range $((($(done_bytes) - before) / MiB)) 55 $((60 + 16 * 4))
	end_loads
	cap m "$BELOW" rbps=max
}

# buffered: the driver writes to the page cache, and neither waits there
buffered() {
	local before
	losetup -d "$TOP"
	TOP=$(losetup --find --show "$BELOW")
	START=0
	load g x -f "$TOP" -o w -s 256k -d 128 -t 60
	sleep 0.5
	timed_in free "$ONE_READ" "$TOP"
	check "beside 128 writes of 256 KiB by the page cache: another group reads" in_range "$TOOK_MS" 0 $MOST_MS
	timed_in free "$ONE_WRITE" "$TOP"
	check "beside 128 writes of 256 KiB by the page cache: another group writes" in_range "$TOOK_MS" 0 $MOST_MS
	before=$(awk '{ print $7 * 512 }' "/sys/block/${TOP##*/}/stat")
	sleep 60
	check "128 writes of 256 KiB by the page cache: the limit, and once these" \
		in_range $((($(awk '{ print $7 * 512 }' "/sys/block/${TOP##*/}/stat") - before) / MiB)) 24 $((60 + 33))
	end_loads
	cap g "$BELOW" rbps=max wbps=max
}

plan 22
mount_cgroup v2
group g free m m/c{0..15}
null_dev below size=400 memory_backed=1 completion_nsec=100000
BELOW=$DEV
TOP=$(losetup --find --show --direct-io=on "$BELOW")
# shellcheck disable=SC2016 # TOP is another device later
undo+=('losetup -d "$TOP"')
cap g "$BELOW" rbps=$RATE wbps=$RATE
one_by_one read -o r
one_by_one write -o w
deep reads -o r
deep writes -o w
mapped
cap g "$TOP" rbps=$((100 * MiB))
mapped
cap g "$TOP" rbps=max
moves
refused
siblings
files
buffered
umount_cgroup
