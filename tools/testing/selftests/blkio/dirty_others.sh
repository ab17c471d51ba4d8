#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A group that waits for its limits makes no other group wait: small random writes, one long write(), a task that is
# killed, a debt, a removed group, a limit set while many pages are dirty, data=journal, a limit on another disk, direct
# I/O of the same group.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

QUICK_MS=200

# as GROUP COMMAND...: runs the command, or a function of the test, in the group
as() { (echo "$BASHPID" >"$CG/$1/cgroup.procs"; shift; "$@"); }

# took COMMAND...: the time of the command, ms
took() {
	local begin
	begin=$(now_ms)
	"$@" >/dev/null
	echo $(($(now_ms) - begin))
}

# quick TEXT COMMAND...: a point: the command is quick
quick() {
	local text=$1
	shift
	check "$text: it does not wait, ms" in_range "$(took "$@")" 0 $QUICK_MS
}

# random FILE SECONDS: writes of 4 KiB at random offsets
random() {
	python3 - "$1" "$2" <<'EOF'
import os, random, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
random.seed(1)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    os.pwrite(fd, bytes(4096), random.randrange(20000) * 4096)
EOF
}

# long FILE MIB [FLAG]: one write()
long() { python3 -c 'import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | int(sys.argv[3])), bytes(int(sys.argv[2]) << 20))' "$1" "$2" "${3:-0}"; }

append() { echo x >>"$1"; }
new_file() { echo x >"$MNT/new.$RANDOM" && sync "$MNT"/new.*; }

small() {
	local before i
	cap slow "$DEV" wiops=20
	before=$(writes_of slow)
	as slow random "$MNT/random" 12 &
	sleep 4
	for i in 1 2 3; do
		quick "small random writes: another group's fsync, $i" as free new_file
		sleep 0.5
	done
	quick "small random writes: sync of the file system" sync -f "$MNT"
	quick "small random writes: rename and mkdir" sh -c "mkdir '$MNT/dir' && mv '$MNT/dir' '$MNT/dir2'"
	wait $!
	# 12 s, and a window of pages written by the syncs
	check "small random writes: the group's I/Os are limited" \
		in_range $(($(writes_of slow) - before)) $((20 * 10)) $((20 * 16))
	sync
	# its debt
	: >"$MNT/log"
	as slow append "$MNT/log" &
	sleep 0.1
	quick "a debt: another group appends to the same file" as free append "$MNT/log"
	wait $!
	cap slow "$DEV" wiops=max
}

one_write() {
	local begin writer frozen
	cap slow "$DEV" wbps=$MiB
	: >"$MNT/big"
	begin=$(now_ms)
	as slow long "$MNT/big" 16 &
	writer=$!
	sleep 2
	check "one write() of 16 MiB: bytes that are written after 2 s" in_range "$(stat -c %s "$MNT/big")" $MiB $((3 * MiB))
	quick "one write() of 16 MiB: another group appends to the file" as free append "$MNT/big"
	quick "one write() of 16 MiB: and reads it" as free head -c 1 "$MNT/big"
	frozen=$(now_ms)
	fsfreeze -f "$MNT"
	frozen=$(($(now_ms) - frozen))
	fsfreeze -u "$MNT"
	check "one write() of 16 MiB: fsfreeze does not wait, ms" in_range "$frozen" 0 $QUICK_MS
	wait $writer
	check "one write() of 16 MiB: it takes as long as the limit demands, ms" in_range $(($(now_ms) - begin)) 15500 16500
	# with O_APPEND the write is not divided, and waits before it begins
	as slow long "$MNT/big" 16 1024 &
	sleep 1
	pkill -KILL -f "$MNT/big"
	wait $! 2>/dev/null || true
	quick "a killed task: its group's next write" as slow dd if=/dev/zero of="$MNT/direct" bs=4k count=1 oflag=direct conv=notrunc status=none
	cap slow "$DEV" wbps=max
}

# stores FILE: the time for 50 pages through a mapping, ms; a task pays for them on its way to user space
stores() {
	python3 - "$1" <<'EOF'
import mmap, os, sys, time
pages = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 50 * 4096)
begin = time.monotonic()
for i in range(50):
    pages[i * 4096] = 1
print(int((time.monotonic() - begin) * 1000))
EOF
}

mapped() {
	local ms
	dd if=/dev/zero of="$MNT/mapped" bs=64k count=4 conv=fsync status=none
	cap slow "$DEV" wbps=$MiB
	sleep 1
	ms=$(as slow stores "$MNT/mapped")
	check "200 KiB through a mapping take as long as the limit demands, less the burst, ms" in_range "$ms" 110 260
	cap slow "$DEV" wbps=max
}

removed() {
	group gone
	cap gone "$DEV" wiops=10
	as gone random "$MNT/gone" 5
	until rmdir "$CG/gone"; do sleep 0.05; done 2>/dev/null
	quick "a removed group: fsync of its file" as free sync "$MNT/gone"
}

backlog() {
	local i most=0 ms dirty
	as slow dd if=/dev/zero of="$MNT/backlog" bs=1M count=60 conv=notrunc status=none
	dirty=$(awk '/^Dirty:/ { print $2 }' /proc/meminfo)
	check "a limit set while many pages are dirty: they are still dirty, KiB" in_range "$dirty" 40000 70000
	cap slow "$DEV" wbps=$((64 * KiB))
	for i in 1 2 3 4 5; do
		ms=$(took as free dd if=/dev/zero of="$MNT/free" bs=64k count=160 conv=notrunc,fsync status=none)
		((ms <= most)) || most=$ms
	done
	# the disk does 200 MB/s: 50 ms for each, and 300 ms for what is dirty
	check "a limit set while many pages are dirty: another group writes 10 MiB, ms" in_range "$most" 0 450
	cap slow "$DEV" wbps=max
	rm "$MNT/backlog" "$MNT/free"
}

# The group pays for 8 MiB and writes nothing, as they are beyond RLIMIT_FSIZE; then it writes 4 MiB.
saved_up() {
	local ms
	cap slow "$DEV" wbps=$MiB
	: >"$MNT/saved"
	as slow python3 - "$MNT/saved" <<'EOF'
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
try:
    os.write(fd, bytes(8 << 20))
except OSError:
    sys.exit(0)
sys.exit(1)
EOF
	ms=$(took as slow long "$MNT/saved" 4)
	# a second's worth is kept, and one may be dirty
	check "a write() that fails after it was paid: the group saves nothing up, ms for 4 MiB" in_range "$ms" 1900 4100
	cap slow "$DEV" wbps=max
}

# Direct and buffered writes wait in one line.
both() {
	local before
	cap slow "$DEV" wbps=$MiB
	: >"$MNT/buffered"
	before=$(counted slow)
	start_soon
	load slow direct -f "$MNT/direct" -o w -s 16k -t 12 -L 8M
	load slow buffered -f "$MNT/buffered" -b -o w -s 16k -t 12 -L 100M
	wait_loads
	sync
	check "direct and buffered writes of a group: together at the limit" \
		within $(($(counted slow) - before)) $((12 * MiB)) 30000
	check "direct and buffered writes of a group: half is direct" within "$(val direct bytes)" $((6 * MiB)) 100000
	start_soon
	load slow direct -f "$MNT/direct" -o w -s 1M -t 12 -L 8M
	load slow buffered -f "$MNT/buffered" -b -o w -s 16k -T 0.05 -t 12 -L 100M
	wait_loads
	sync
	# each short write waits for one direct I/O of a second
	check "direct and buffered writes of a group: a short write does not pass a long direct one" \
		in_range "$(val buffered ios)" 10 30
	cap slow "$DEV" wbps=max
}

journal() {
	mount -o data=journal "$DEV" "$MNT"
	cap slow "$DEV" wbps=$((512 * KiB))
	: >"$MNT/journal"
	start_soon
	load slow journal -f "$MNT/journal" -b -o w -s 64k -t 30 -L 100M
	wait_loads
	check "data=journal: write() proceeds at the limit" within "$(val journal bytes)" $((30 * 512 * KiB)) 30000
	cap slow "$DEV" wbps=max
	umount "$MNT"
}

elsewhere() {
	local other=$DEV
	null_dev "below$HIERARCHY" size=400 mbps=200 memory_backed=1
	dm_dev "top$HIERARCHY" "0 600000 linear $DEV 0"
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
	cap slow "$other" wbps=$((16 * KiB))
	check "a limit on another disk: 64 MiB to a device above this disk do not wait, ms" in_range \
		"$(took as slow dd if=/dev/zero of="$MNT/f" bs=1M count=64 status=none)" 0 50
	umount "$MNT"
}

everywhere() {
	group slow free
	null_dev "nb$HIERARCHY" size=800 mbps=200 memory_backed=1
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
	dd if=/dev/zero of="$MNT/direct" bs=1M count=8 conv=fsync status=none
	small
	one_write
	mapped
	removed
	backlog
	saved_up
	both
	umount "$MNT"
	journal
	elsewhere
	null_gone "nb$HIERARCHY"
}

plan 69
on_each everywhere v1 v2 memcg
