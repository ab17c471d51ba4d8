#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A limit that changes under load keeps what the group has earned: 1 MiB at 512 KiB/s, changed to 256
# KiB/s after one second, ends at 3 s less B.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

# A limit gives B = 64 KiB at once and R per second after that. So after one second at 512 KiB/s 448 of
# the 1024 KiB are left, which take 1.75 s at 256 KiB/s. One large I/O waits for its cost less B, which
# is the same time.
OLD=$((512 * KiB)) NEW=$((256 * KiB))

after() { until_ns $((START + $1)); }
took() { echo $(($(val "$1" end_ns) - $(val "$1" start_ns))); }

# change NAME IDEAL_MS OPTIONS COMMAND...: runs a load with OPTIONS, and COMMAND one second later
change() {
	local name=$1 ideal=$2 options=$3
	shift 3
	start_soon
	# shellcheck disable=SC2086 # several options
	load "${LEAF:-g}" w -f "$DEV" $options
	"$@"
	wait_loads
	check "$CGV: $name" within "$(took w)" "${ideal}000000" 1000
	cap g "$DEV" rbps=max wbps=max riops=max wiops=max
	[ -z "${LEAF:-}" ] || cap "$LEAF" "$DEV" rbps=max
}

at_1s() { after 1000000000; cap "$@"; }

# The file and value of the limit that cap g "$DEV" rbps=N sets, to write it often
rbps() {
	if [ "$CGV" = v1 ]; then echo "$(devno "$DEV") $1"; else echo "$(devno "$DEV") rbps=$1"; fi
}

# write_at STEP_NS COUNT VALUE...: writes the VALUEs in turn, one at each step after START
write_at() {
	local file=$CG/g/io.max
	[ "$CGV" = v2 ] || file=$CG/g/blkio.throttle.read_bps_device
	python3 -c 'import sys, time
path, start, step, count, *values = sys.argv[1:]
for i in range(int(count)):
    time.sleep(max((int(start) + (i + 1) * int(step)) / 1e9 - time.monotonic(), 0))
    with open(path, "w") as f:
        f.write(values[i % len(values)])' "$file" "$START" "$@"
}

alternate() { write_at 100000000 60 "$(rbps $NEW)" "$(rbps $OLD)"; }
repeat() { write_at 37000000 40 "$(rbps $OLD)"; }

flat() {
	cap g "$DEV" rbps=$OLD
	change "16 reads, 512 to 256 KiB/s" 2750 "-n 16 -d 16" at_1s g "$DEV" rbps=$NEW
	cap g "$DEV" wbps=$OLD
	change "one write of 1 MiB, 512 to 256 KiB/s" 2750 "-o w -s 1M -n 1" \
		at_1s g "$DEV" wbps=$NEW
	# 64 + 256 KiB in the first second, 704 KiB at 512 KiB/s
	cap g "$DEV" wbps=$NEW
	change "16 writes, 256 to 512 KiB/s" 2375 "-o w -n 16 -d 16" at_1s g "$DEV" wbps=$OLD
	cap g "$DEV" rbps=$NEW
	change "one read of 1 MiB, 256 to 512 KiB/s" 2375 "-s 1M -n 1" at_1s g "$DEV" rbps=$OLD
	# removing the limit dispatches all that waits
	cap g "$DEV" rbps=$OLD
	change "16 reads, limit removed" 1000 "-n 16 -d 16" at_1s g "$DEV" rbps=max
	cap g "$DEV" rbps=$OLD
	change "one read of 1 MiB, limit removed" 1000 "-s 1M -n 1" at_1s g "$DEV" rbps=max
	# each value for 0.1 s in turn: 921.6 of 960 KiB in 2.4 s, the rest at 512 KiB/s
	cap g "$DEV" rbps=$OLD
	change "16 reads, alternating every 0.1 s" 2475 "-n 16 -d 16" alternate
	# writing the same limit again changes nothing
	cap g "$DEV" rbps=$OLD
	change "16 reads, the same limit written 40 times" 1875 "-n 16 -d 16" repeat
	# 1 I/O at once and 100 in the first second leave 49, at 50 a second
	cap g "$DEV" riops=100
	change "150 reads, 100 to 50 IOPS" 1980 "-n 150 -d 150 -s 4k" at_1s g "$DEV" riops=50
}

# Two limits, of which the first is set while I/O waits for the other one. The eighth I/O after the first
# is dispatched at 1 s. The new limit has B in hand, so the next I/O is dispatched when the other limit
# has room, at 1.125 s, and the six after that at 256 KiB/s.
tree() {
	LEAF=g/leaf
	cap g/leaf "$DEV" rbps=$OLD
	change "16 reads, limit of the parent added" 2625 "-n 16 -d 16" at_1s g "$DEV" rbps=$NEW
	cap g "$DEV" rbps=$OLD
	change "16 reads, limit added under the parent's" 2625 "-n 16 -d 16" \
		at_1s g/leaf "$DEV" rbps=$NEW
	# The limit of the leaf is the tighter one: the fourth I/O after the first is dispatched at 1 s. After it
	# is removed, the next I/O is dispatched 64 KiB of the parent's rate later, as are the ten after that.
	cap g "$DEV" rbps=$OLD
	cap g/leaf "$DEV" rbps=$NEW
	change "16 reads, limit removed under the parent's" 2375 "-n 16 -d 16" \
		at_1s g/leaf "$DEV" rbps=max
	# the same with the parent's limit removed
	cap g "$DEV" rbps=$NEW
	cap g/leaf "$DEV" rbps=$OLD
	change "16 reads, limit of the parent removed" 2375 "-n 16 -d 16" at_1s g "$DEV" rbps=max
}

# Units that CPUs have in reserve come back when the limit changes: 50 kB, 40 times. If they did not, they would use up
# the burst of 500 kB. Prints how long a read of 300 KiB takes after that.
in_reserve() {
	in_group g python3 -c 'import mmap, os, sys, time
disk, path, *values = sys.argv[1:]
fd, buf = os.open(disk, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 300 << 10)
for i in range(41):
    with open(path, "w") as f:
        f.write(values[i % 2])
    begin = time.monotonic_ns()
    os.preadv(fd, [memoryview(buf)[:4096] if i < 40 else buf], 0)
print(time.monotonic_ns() - begin)' "$DEV" "$CG/g/io.max" "$(rbps 100000000)" "$(rbps 100000001)"
}

plan 23
null_dev nb0
mount_cgroup v1
group g
flat
umount_cgroup
mount_cgroup v2
group g
flat
null_dev quick completion_nsec=20000
check "units in reserve are not lost when the limit changes" in_range "$(in_reserve)" 20000 30000
umount_cgroup
mount_cgroup v2
group g g/leaf
tree
