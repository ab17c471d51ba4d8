#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Buffered writes on v2, with the memory controller and without: groups get their limit, evenly, also below a common
# limit and in each other's files; groups beside them do not wait; and many groups, or savings, get a group nothing
# beyond the limit.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=12
CHILDREN=(a b c d e f g h)

# fresh: ext4 on DEV, with no dirty page
fresh() {
	! mountpoint -q "$MNT" || umount "$MNT"
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
}

# limited TEXT: limits of 1, 2 and 3 MiB/s, each group in a file of its own: 8 points
limited() {
	local i
	fresh
	caps "$DEV"
	rates "$1" $((64 * KiB)) 3000
	for i in 1 2 3; do cap "g$i" "$DEV" wbps=max; done
}

# one_file: three groups without limits write 64 KiB in turns, and the first calls fsync()
one_file() {
	local i at=()
	: >"$MNT/shared"
	sync
	# dirtiers of pages are recorded from the first limit on
	for i in 1 2 3; do at[i]=$(counted "g$i"); done
	for ((i = 0; i < 96; i++)); do
		in_group g$((i % 3 + 1)) dd if=/dev/zero of="$MNT/shared" bs=64k count=1 seek=$i conv=notrunc status=none
	done
	in_group g1 sync "$MNT/shared"
	for i in 1 2 3; do
		check "one file of three groups: group $i pays for its part" \
			within $(($(counted "g$i") - at[i])) $((32 * 64 * KiB)) 10000
	done
}

# appended FILE COUNT: the longest of COUNT appends with fsync(), ms; 50 ms apart
appended() {
	python3 - "$1" "$2" <<'EOF'
import os, sys, time
fd, most = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 0
for _ in range(int(sys.argv[2])):
    begin = time.monotonic()
    os.write(fd, bytes(1))
    os.fsync(fd)
    most = max(most, time.monotonic() - begin)
    time.sleep(.05)
print(round(most * 1000))
EOF
}

# beside: other groups append to a file of their own and to that of a limited writer
beside() {
	local alone most
	: >"$MNT/writer"
	alone=$(in_group g2 bash -c "$(declare -f appended); appended '$MNT/own' 20")
	cap g1 "$DEV" wbps=$((512 * KiB)) wiops=100
	START=0
	load g1 writer -f "$MNT/writer" -b -o w -s 1M -t 8 -L 64M
	sleep 2
	most=$(in_group g2 bash -c "$(declare -f appended); appended '$MNT/own' 40")
	check "beside a limited writer: an append and fsync() to another file, ms" in_range "$most" 0 $((2 * alone + 1))
	most=$(in_group g2 bash -c "$(declare -f appended); appended '$MNT/writer' 20")
	check "beside a limited writer: an append and fsync() to its file, ms" in_range "$most" 0 200
	wait_loads
	cap g1 "$DEV" wbps=max wiops=max
}

# beside_dirty [LIMIT]: 64 MiB of g1 are dirty, and g1 gets a limit; the time of others for 10 MiB: ms
beside_dirty() {
	local begin
	sync
	in_group g1 dd if=/dev/zero of="$MNT/backlog" bs=1M count=64 conv=notrunc status=none
	[ -z "${1:-}" ] || cap g1 "$DEV" wbps="$1"
	begin=$(now_ms)
	in_group g2 dd if=/dev/zero of="$MNT/other" bs=1M count=10 conv=notrunc,fsync status=none
	echo $(($(now_ms) - begin))
}

# backlog: a limit is set while many pages are dirty, which costs nothing
backlog() {
	local begin alone
	beside_dirty
	alone=$(beside_dirty)
	check "a limit set while pages are dirty: others write 10 MiB, ms" \
		in_range "$(beside_dirty $MiB)" 0 $((alone * 12 / 10 + 1))
	begin=$(now_ms)
	sync
	check "a limit set while pages are dirty: sync, ms" in_range $(($(now_ms) - begin)) 0 2000
	begin=$(now_ms)
	in_group g1 dd if=/dev/zero of="$MNT/direct" bs=4k count=1 oflag=direct status=none
	check "a limit set while pages are dirty: the group's next write, ms" in_range $(($(now_ms) - begin)) 0 1100
	cap g1 "$DEV" wbps=max
}

# together: eight groups below one limit
together() {
	local child at most least="" sum=0 limit=$((2 * MiB))
	for child in "${CHILDREN[@]}"; do : >"$MNT/$child"; done
	sync
	cap P "$DEV" wbps=$limit
	at=$(counted P)
	start_soon
	for child in "${CHILDREN[@]}"; do
		load "P/$child" "$child" -f "$MNT/$child" -b -o w -s 64k -t $SEC -L 100M
	done
	most=$(most_pages $SEC 0.05)
	wait_loads
	sync
	check "eight groups below one limit: no more than its window is dirty, pages" \
		in_range "$most" 1 $((limit * 5 / 4 / 4096))
	for child in "${CHILDREN[@]}"; do
		((sum += $(val "$child" bytes)))
		least=$(printf '%s\n' ${least:+"$least"} "$(val "$child" bytes)" | sort -n | head -n 1)
	done
	check "eight groups below one limit: the disk gets the limit, and metadata" \
		in_range $(($(counted P) - at)) $sum $((sum + MiB))
	check "eight groups below one limit: write() proceeds at the limit" \
		in_range $sum $((limit * (SEC - 1))) $((limit * (SEC + 1) + limit / 4))
	check "eight groups below one limit: equal parts" in_range "$least" $((sum * 9 / 80)) $((sum / 8))
}

# saved_up: what was paid and not dirtied is kept by no number of groups
saved_up() {
	local child at limit=$((2 * MiB)) begin
	for child in "${CHILDREN[@]}"; do
		in_group "P/$child" bash -c "$(declare -f failing); failing '$MNT/$child' 20" &
		loads+=($!)
	done
	sleep 19.9
	at=$(counted P)
	sleep 1.1
	check "eight groups have saved up: they write no more than the window, bytes in a second" \
		in_range $(($(counted P) - at)) $((limit / 2)) $((limit * 9 / 4))
	wait_loads
	cap P "$DEV" wbps=max
}

# flipped: a group below a limit that sets limits of its own again and again gains nothing by it
flipped() {
	local at pid i limit=$MiB
	cap P "$DEV" wbps=$limit
	at=$(counted P)
	in_group P/a timeout 8 python3 - "$MNT/unasked" <<'EOF' &
import os, sys
fd, source = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), os.memfd_create("source")
os.write(source, bytes(1 << 16))
for _ in range(1024):
    os.sendfile(fd, source, 0, 1 << 16)
EOF
	pid=$!
	for ((i = 0; i < 400; i++)); do
		cap P/a "$DEV" wbps=$((64 * MiB))
		cap P/a "$DEV" wbps=max
		sleep 0.02
	done
	wait $pid || true
	check "a group below a limit sets its own limit again and again: it gets no more" \
		in_range $(($(counted P) - at)) $((limit * 7)) $((limit * 10))
	cap P "$DEV" wbps=max
}

# in_line: a group that asks for little, beside groups below the same limit with debts on the disk below
in_line() {
	local below
	null_dev belowline size=400 memory_backed=1
	below=$DEV
	dm_dev line "0 600000 linear $below 0"
	make_fs ext4 "$DEV" -q -E lazy_itable_init=0
	cap P "$below" wbps=$((512 * KiB))
	truncate -s 1M "$MNT/own"
	: >"$MNT/a"
	: >"$MNT/b"
	sync
	START=0
	load P/a a -f "$MNT/a" -b -o w -s 64k -t 12 -L 64M
	load P/b b -f "$MNT/b" -b -o w -s 64k -t 12 -L 64M
	sleep 2
	load P/c own -f "$MNT/own" -o w -s 4k -T 0.25 -t 8 -L 1M
	wait_loads
	check "beside groups with debts on the disk below: a group that asks for little gets it" in_range "$(val own ios)" 3 33
	check "beside groups with debts on the disk below: its longest write, ms" \
		in_range $(($(val own max_ns) / 1000000)) 0 2100
	umount "$MNT"
}

plan 32
null_dev nb0 size=800 mbps=200 memory_backed=1
mount_cgroup v2
group g1 g2 g3
limited "no memory controller"
umount_cgroup
mount_cgroup v2
echo +memory >"$CG/cgroup.subtree_control"
group g1 g2 g3 P
echo "+io +memory" >"$CG/P/cgroup.subtree_control"
group "${CHILDREN[@]/#/P\/}"
limited "memory controller"
one_file
beside
backlog
together
saved_up
flipped
umount "$MNT"
in_line
