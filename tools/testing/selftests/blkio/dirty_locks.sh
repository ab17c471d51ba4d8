#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Tasks that may dirty pages and then wait for a lock of the file: all that they have been promised is dirtied at once
# when the lock is free.  Tasks that wait for their own data instead do not hold up other tasks of their group.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_writeback.sh"

RATE=$MiB
# what may be dirty, and the direct write that holds the lock
MOST=$((RATE + 256 * KiB))

# hold_lock FILE: a direct write of P/slow, which its limit holds for 8 s while it has the lock of the file
hold_lock() {
	in_group P/slow dd if=/dev/zero of="$1" bs=256k count=1 oflag=direct status=none
}

# crowd GROUP FILE THREADS BYTES [append]: this many threads write() BYTES each, at offsets of the group's own
crowd() {
	in_group "$1" python3 - "$@" <<'EOF'
import os, sys, threading
at = (int(sys.argv[1][-1]) + 1) * (16 << 20)
path, nr, size = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
fd = os.open(path, os.O_WRONLY | (os.O_APPEND if 'append' in sys.argv else 0))
def write(i):
    if 'append' in sys.argv:
        os.write(fd, bytes(size))
    else:
        os.pwrite(fd, bytes(size), at + i * size)
threads = [threading.Thread(target=write, args=(i,)) for i in range(nr)]
for t in threads:
    t.start()
for t in threads:
    t.join()
EOF
}

# keep_syncing SECONDS: whatever is dirty is written at once
keep_syncing() {
	python3 - "$1" <<'EOF'
import os, sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    os.sync()
    time.sleep(0.01)
EOF
}

# most_ahead GROUP: the most bytes beyond its rate that the group writes in any window of 40 s
most_ahead() {
	python3 - "$CG/$1/io.stat" "$(devno "$DEV")" "$RATE" <<'EOF'
import sys, time
path, dev, rate = sys.argv[1], sys.argv[2], int(sys.argv[3])
def written():
    for line in open(path):
        if line.startswith(dev + ' '):
            return int(line.split('wbytes=')[1].split()[0])
    return 0
start, least, most = time.monotonic(), None, 0
while time.monotonic() < start + 40:
    ahead = written() - rate * (time.monotonic() - start)
    least = ahead if least is None else min(least, ahead)
    most = max(most, ahead - least)
    time.sleep(0.01)
print(int(most))
EOF
}

# crowded CROWD...: with the lock of the file held, the most bytes beyond the rate of P
crowded() {
	local helpers=()
	rm -f "$MNT"/f*
	sync
	keep_syncing 40 &
	helpers+=($!)
	hold_lock "$MNT/f" &
	helpers+=($!)
	sleep 0.1
	"$@" &
	helpers+=($!)
	most_ahead P
	wait "${helpers[@]}"
}

children() {
	local i
	for i in 0 1 2 3 4 5 6 7; do
		crowd "P/$i" "$MNT/f" "$@" &
	done
	wait
}

# mapped FILE NR [append]: write()s a MiB of a mapping of $HANG
mapped() {
	in_group P/0 python3 -c '
import mmap, os, sys
data = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 1 << 20, prot=mmap.PROT_READ, offset=int(sys.argv[3]) << 20)
flags = os.O_APPEND if "append" in sys.argv else 0
sys.exit(os.write(os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | flags), memoryview(data)) != 1 << 20)
' "$HANG" "$@"
}

# all_end PID...: all these tasks end with 0
all_end() {
	local pid
	for pid; do wait "$pid" || return; done
}

# goes: the other task; with FIRST it has filled the window when the tasks come
goes() {
	load P/0 goes -f "$MNT/goes" -b -o w -s 64k -t 12 -L 100M
	sleep "${FIRST:-0}"
}

# hanging TEXT TASKS LEAST MOST [append]: so many tasks write() data of a mapping of a disk that does not answer; another
# task of their group writes between LEAST and MOST bytes in 12 s
hanging() {
	local i tasks=()
	echo 3 >/proc/sys/vm/drop_caches
	dmsetup --noudevsync suspend --noflush --nolockfs hang
	undo+=("dmsetup --noudevsync resume hang")
	rm -f "$MNT"/m*
	: >"$MNT/goes"
	[ -z "${FIRST:-}" ] || goes
	for ((i = 0; i < $2; i++)); do
		mapped "$MNT/m$i" "$i" "${@:5}" &
		tasks+=($!)
	done
	sleep 1
	[ -n "${FIRST:-}" ] || goes
	wait_loads
	dmsetup --noudevsync resume hang
	check "$1 data that does not come: another task of the group goes on" in_range "$(val goes bytes)" "$3" "$4"
	check "$1 data that comes in the end: all of it is written" all_end "${tasks[@]}"
	sync
}

plan 11
null_dev nb0 size=400 mbps=400 memory_backed=1
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
mount_cgroup v2
group P
group P/0 P/1 P/2 P/3 P/4 P/5 P/6 P/7
cap P "$DEV" wbps=$RATE
group P/slow
cap P/slow "$DEV" wbps=$((RATE / 32))
check "64 threads of a group wait for a lock: most beyond the rate, bytes" \
	in_range "$(crowded crowd P/0 "$MNT/f" 64 $((128 * KiB)))" 0 $MOST
check "16 threads that append 1 MiB each wait for a lock: most beyond the rate, bytes" \
	in_range "$(crowded crowd P/0 "$MNT/f" 16 $MiB append)" 0 $((MOST + MiB))
check "4 threads that append 4 MiB each wait for a lock: most beyond the rate, bytes" \
	in_range "$(crowded crowd P/0 "$MNT/f" 4 $((4 * MiB)) append)" 0 $((MOST + MiB))
# if the window is promised to others, a task still gets a page
check "8 threads of each of 8 groups below one limit wait for a lock: most beyond the rate" \
	in_range "$(crowded children 8 $((128 * KiB)))" 0 $((MOST + 64 * 4 * KiB))
check "a task of each of 8 groups below one limit appends 1 MiB: most beyond the rate, bytes" \
	in_range "$(crowded children 1 $MiB append)" 0 $((MOST + 64 * 4 * KiB))
file=$DEV
null_dev source size=64 memory_backed=1
dm_dev hang "0 $(sectors "$DEV") linear $DEV 0"
HANG=$DEV DEV=$file
hanging "16 tasks below a limit write" 16 $((12 * RATE * 95 / 100)) $((12 * RATE + 256 * KiB))
hanging "a task below a limit appends" 1 $((12 * RATE * 95 / 100)) $((12 * RATE + 256 * KiB)) append
umount "$MNT"
# The disk does 4 MiB/s, and the limit allows 20, so tasks wait for the window and not for the limit.
null_dev slow size=400 mbps=4 max_sectors=128 memory_backed=1
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
cap P "$DEV" wbps=$((20 * MiB))
FIRST=3 hanging "32 tasks on a disk slower than their limit write" 32 $((11 * 4 * MiB)) $(((12 * 4 + 20) * MiB))
umount "$MNT"
