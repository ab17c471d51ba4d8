#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Ways to write more than a limit allows, or at the expense of another group: a group's dirty pages are written back
# by others (sync, fsync by a sibling, fsync from outside), and direct I/O is done on pages that are under writeback.
# A debt is shown, and slows down nothing else.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_writeback.sh"

RATE=$MiB
# a burst of 62.5 ms, and the largest debt
BURST=$((64 * KiB)) OWED=$RATE

# bounded MEASURED_GROUP COMMAND...: the group is charged for no more than its limit while the command runs
bounded() {
	local group=$1 from begin bytes took_ms
	shift
	from=$(wbytes "$group") begin=$(now_ms)
	"$@" || return 1
	bytes=$(($(wbytes "$group") - from)) took_ms=$(($(now_ms) - begin))
	echo "$bytes bytes in $took_ms ms"
	in_range "$bytes" $((RATE * took_ms / 1000 / 4)) $((RATE * took_ms / 1000 + BURST + OWED))
}

# dirty_and MODE: writes 8 MiB of a file and has them written back, again and again for 20 s
dirty_and() {
	python3 - "$MNT/f" "$1" <<'EOF'
import ctypes, os, sys, time
path, mode = sys.argv[1:]
libc, end, n = ctypes.CDLL(None), time.monotonic() + 20, 0
while time.monotonic() < end:
    name = path + str(n % 4)
    if os.path.exists(name):
        os.unlink(name)
    fd = os.open(name, os.O_RDWR | os.O_CREAT)
    for i in range(8):
        os.pwrite(fd, bytes(1 << 20), i << 20)
    {'sync': os.sync, 'syncfs': lambda: libc.syncfs(fd), 'fsync': lambda: os.fsync(fd)}[mode]()
    os.close(fd)
    n += 1
    time.sleep(0.05)
EOF
}

# keep_dirty SECONDS: writes 1 MiB each 20 ms, in a file that wraps at 64 MiB
keep_dirty() {
	python3 - "$MNT/f" "$1" <<'EOF'
import os, sys, time
fd, end, n = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < end:
    os.pwrite(fd, bytes(1 << 20), n % 64 << 20)
    n += 1
    time.sleep(0.02)
EOF
}

keep_syncing() {
	python3 - "$MNT/f" "$1" <<'EOF'
import os, sys, time
fd, end = os.open(sys.argv[1], os.O_RDWR), time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    os.fsync(fd)
    time.sleep(0.05)
EOF
}

# together WRITER SYNCER: one group dirties a file, another one calls fsync on it
together() {
	in_group "$1" bash -c "$(declare -f keep_dirty); MNT=$MNT keep_dirty 10" &
	sleep 0.1
	in_group "$2" bash -c "$(declare -f keep_syncing); MNT=$MNT keep_syncing 10" || return 1
	wait $!
}

# direct_ms GROUP: the time that 4 KiB of direct I/O take
direct_ms() {
	local begin
	begin=$(now_ms)
	in_group "$1" dd if=/dev/zero of="$MNT/direct" bs=4096 count=1 oflag=direct conv=notrunc status=none || return 1
	echo $(($(now_ms) - begin))
}

# mount_fresh: no page is dirty, and the inode of file f will belong to the group that creates it
mount_fresh() {
	sync
	umount "$MNT"
	mount "$DEV" "$MNT"
	rm -f "$MNT"/f*
}

routes() {
	local mode
	for mode in sync syncfs fsync; do
		mount_fresh
		check "v2: $mode by the limited group itself: it gets no more than its limit" \
			bounded a in_group a bash -c "$(declare -f dirty_and); MNT=$MNT dirty_and $mode"
	done
}

siblings() {
	mount_fresh
	check "v2: fsync by a sibling below the same limit: both get no more than the limit" bounded P together P/a P/b
	check "v2: fsync by a sibling leaves no debt that other groups wait for" in_range "$(direct_ms P/a)" 0 1200
	check "v2: fsync by a sibling of the only limited group: that gets no more than its limit" alone
}

# the limit of a does not apply to b: what b asks for beyond a's debt is charged to b
alone() {
	mount_fresh
	cap P "$DEV" wbps=max
	cap P/a "$DEV" wbps=$RATE
	bounded P/a together P/a P/b || return 1
	in_range "$(direct_ms P/a)" 0 1200 || return 1
	cap P/a "$DEV" wbps=max
}

# A group that may write to a's file cannot use up a's limit, though the inode belongs to a.
spend() {
	local spender from_a from_b
	mount_fresh
	sysctl -qw vm.dirty_writeback_centisecs=0
	in_group a dd if=/dev/zero of="$MNT/f" bs=1M count=8 status=none
	truncate -s 16M "$MNT/own"
	in_group b python3 - "$MNT/f" <<'EOF' &
import os, sys, time
fd, end = os.open(sys.argv[1], os.O_RDWR), time.monotonic() + 20
while time.monotonic() < end:
    os.pwrite(fd, bytes(1 << 17), 0)
    os.fsync(fd)
EOF
	spender=$!
	sleep 5
	START=0
	load a own -f "$MNT/own" -o w -s 64k -t 10
	from_a=$(wbytes a) from_b=$(wbytes b)
	wait_loads
	echo "charged to a $(($(wbytes a) - from_a)), to b $(($(wbytes b) - from_b))"
	wait $spender
	sysctl -qw vm.dirty_writeback_centisecs=500
	in_range "$(val own bytes)" $((10 * RATE * 99 / 100)) $((10 * RATE + BURST))
}

# A group that causes another group's pages to be written pays at a limit that applies to both groups, and waits in
# line there: many small writes leave their half to groups that wait already.
lines_up() {
	local helpers=() from bytes
	mount_fresh
	cap P "$DEV" wbps=$RATE
	cap P/a "$DEV" wbps=$((64 * RATE))
	group P/c
	truncate -s 16M "$MNT/own"
	in_group P/a python3 - "$MNT/f" <<'EOF' &
import os, sys, time
fd, end = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), time.monotonic() + 18
while time.monotonic() < end:
    os.pwrite(fd, bytes(4096), 0)
    time.sleep(0.002)
EOF
	helpers+=($!)
	sleep 0.1
	in_group P/b python3 - "$MNT/f" <<'EOF' &
import os, sys, time
fd, end = os.open(sys.argv[1], os.O_RDWR), time.monotonic() + 18
while time.monotonic() < end:
    os.fsync(fd)
    time.sleep(0.0005 if time.monotonic() < end - 13 else 0.005)
EOF
	helpers+=($!)
	from=$(wbytes P)
	sleep 5
	bytes=$(($(wbytes P) - from))
	START=0
	load P/c own -f "$MNT/own" -o w -s 64k -d 4 -t 10
	wait_loads
	wait "${helpers[@]}"
	cap P "$DEV" wbps=max
	cap P/a "$DEV" wbps=max
	in_range $bytes $((4 * RATE)) $((5 * RATE + BURST + OWED)) || return 1
	in_range "$(val own bytes)" $((10 * RATE * 9 / 20)) $((10 * RATE + BURST))
}

# owing: a writes four pages and has them written in as many I/Os, which pass as a debt of seconds
owing() {
	mount_fresh
	cap a "$DEV" wiops=1
	in_group a python3 - "$MNT/f" <<'EOF' &
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for i in range(4):
    os.pwrite(fd, bytes(4096), i << 20)
os.fsync(fd)
EOF
	OWING=$!
	sleep 0.1
	in_range "$(debt_usec a)" 1000000 8000000
}

# A debt is shown, and ends.
shown() {
	owing || return 1
	wait $OWING
	in_range "$(debt_usec a)" 0 1000
}

# While the group has a debt, it reads ahead on another disk as usual.
reads_ahead() {
	local before after
	before=$(read_ms)
	owing || return 1
	after=$(read_ms)
	echo "$before ms without a debt, $after ms with one"
	in_range "$after" 0 $((before * 11 / 10 + 1)) || return 1
	wait $OWING
}

read_ms() {
	local begin
	echo 3 >/proc/sys/vm/drop_caches
	begin=$(now_ms)
	in_group a dd if="$OTHER" of=/dev/null bs=64k count=512 status=none
	echo $(($(now_ms) - begin))
}

under_writeback() { [ "$(awk '/^Writeback:/ { print $2 }' /proc/meminfo)" -gt 400 ]; }

# Pages under another group's writeback are spliced into a file opened with O_DIRECT.
splice_direct() {
	python3 - "$SLOW" "$MNT/direct" <<'EOF'
import os, sys, time
src = os.open(sys.argv[1], os.O_RDONLY)
dst = os.open(sys.argv[2], os.O_WRONLY | os.O_DIRECT)
begin, done = time.monotonic(), 0
r, w = os.pipe()
for i in range(4, 128):
    left = os.splice(src, w, 4096, offset_src=i * 8192)
    while left:
        moved = os.splice(r, dst, left, offset_dst=done)
        done += moved
        left -= moved
print(done, int((time.monotonic() - begin) * 1000))
EOF
}

# A device that takes 8 s for a write keeps pages under writeback.
spliced() {
	local bytes took_ms result
	cap b "$DEV" wbps=$((64 * KiB))
	in_group a python3 - "$SLOW" <<'EOF' &
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
for i in range(128):
    os.pwrite(fd, bytes(4096), i * 8192)
os.fdatasync(fd)
EOF
	sleep 1
	under_writeback || { echo "nothing is under writeback"; return 1; }
	result=$(in_group b bash -c "$(declare -f splice_direct); SLOW=$SLOW MNT=$MNT splice_direct")
	read -r bytes took_ms <<<"$result"
	echo "$bytes bytes in $took_ms ms"
	wait $!
	in_range "$bytes" 500000 510000 || return 1
	in_range "$took_ms" $(((bytes - 64 * KiB) * 1000 / (64 * KiB) - 1)) 8000
}

plan 14
null_dev nb1 size=100 memory_backed=1 completion_nsec=3000000
OTHER=$DEV
null_dev nb2 size=100 memory_backed=1 completion_nsec=8000000000 hw_queue_depth=128
SLOW=$DEV
null_dev nb0 size=400 mbps=200 memory_backed=1
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
dd if=/dev/zero of="$MNT/direct" bs=1M count=8 conv=fsync status=none
mount_cgroup v2
echo +memory >"$CG/cgroup.subtree_control"
group a b P P/a P/b
echo "+io +memory" >"$CG/P/cgroup.subtree_control"
cap a "$DEV" wbps=$RATE
routes
cap P "$DEV" wbps=$RATE
siblings
cap a "$DEV" wbps=$RATE
check "v2: a group that writes to another group's file does not use up that group's limit" spend
check "v2: a group that causes another group's pages to be written waits in line at a common limit" lines_up
check "v2: a debt is shown in io.stat until it is repaid" shown
check "v2: a debt does not reduce readahead on another disk" reads_ahead
from=$(wbytes b)
check "v2: splice of pages under another group's writeback: the group gets no more than its limit" spliced
check "v2: splice of pages under another group's writeback: the splicing group is charged" \
	in_range $(($(wbytes b) - from)) 500000 600000
for group in a b; do cap $group "$DEV" wbps=max wiops=max; done
umount_cgroup
mount_cgroup v1
group a b
umount "$MNT"
make_fs ext2 "$DEV" -q
dd if=/dev/zero of="$MNT/f" bs=1M count=8 status=none
dd if=/dev/zero of="$MNT/direct" bs=1M count=8 conv=fsync status=none
cap a "$DEV" wiops=1
check "v1: splice of pages under another group's writeback: the group gets no more than its limit" spliced
check "v1: splice of pages under another group's writeback: the splicing group is charged" \
	in_range "$(counted b)" 500000 600000
umount "$MNT"
