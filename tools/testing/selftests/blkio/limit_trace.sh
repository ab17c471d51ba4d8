#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The tracepoints show each step of each I/O; debugfs shows the groups whose I/O waits.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

null_dev nb0
mount_cgroup v2
trace_start || skip_all "the kernel has no ioband tracepoints"
plan 18
group g
cap g "$DEV" rbps=$((4 * MiB))
dev=$(devno "$DEV") id=$(cgid g)

start_soon
load g r -f "$DEV" -s 64k -n 12 -d 12
wait_loads
trace_stop "$TMP/trace"

count() { grep -c "ioband_$1: " "$TMP/trace" || true; }
# form EVENT TAIL: all lines of the event have this format
form() {
	local line="ioband_$1: dev=${dev/:/,} cg=$id op=R sector=[0-9]+ $2\$"
	! grep "ioband_$1: " "$TMP/trace" | grep -vE "$line"
}

check "trace of 12 reads at the limit: one is admitted" equal "$(count admit)" 1
check "trace of 12 reads at the limit: eleven are held" equal "$(count hold)" 11
check "trace of 12 reads at the limit: the eleven are released" equal "$(count release)" 11
check "trace of 12 reads at the limit: all complete" equal "$(count complete)" 12
check "ioband_admit has the documented format" form admit "bytes=65536 ns=[0-9]+ piece=0 debt=0"
check "ioband_hold has the documented format" form hold "bytes=65536 ns=[0-9]+ piece=0 held=[0-9]+"
check "ioband_release has the documented format" form release "bytes=65536 ns=[0-9]+ piece=0 waited=[0-9]+ late=[0-9]+"
check "ioband_complete has the documented format" form complete "ns=[0-9]+ error=0"

# sectors EVENT: the sectors of the event, in order
sectors_of() { sed -n "s/.*ioband_$1: .* sector=\([0-9]*\) .*/\1/p" "$TMP/trace"; }
check "I/Os are released in the order in which they were held" equal "$(sectors_of release)" "$(sectors_of hold)"
# shellcheck disable=SC2016 # awk's, not ours
check "ioband_release: waited is the time since ioband_hold" awk '
	function field(name) {
		match($0, " " name "=[0-9]+")
		return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2)
	}
	/ioband_hold/ { held[field("sector")] = field("ns") }
	/ioband_release/ {
		n++
		off = field("ns") - field("waited") - held[field("sector")]
		if (off < -10000 || off > 10000) { print; bad = 1 }
	}
	END { exit bad || n != 11 }' "$TMP/trace"

# writes are shown as W, discards as D; a group without limits leaves no trace
null_dev nb1 discard=1 memory_backed=1 size=64
cap g "$DEV" wbps=$((4 * MiB))
group free
trace_start
start_soon
load g w -f "$DEV" -s 64k -n 2 -o w
load g d -f "$DEV" -s 1M -n 2 -o d
load free f -f "$DEV" -s 64k -n 50 -o w
wait_loads
trace_stop "$TMP/trace"
left() { grep -cE "ioband_(admit|release): .* cg=$1 op=$2 .* bytes=$3 " "$TMP/trace" || true; }
check "trace: two writes have op=W" equal "$(left "$id" W 65536)" 2
check "trace: two discards have op=D, and 4096 bytes, whatever their size" equal "$(left "$id" D 4096)" 2
# 1 MiB/s is 256 discards a second, and 16 are in hand
cap g "$DEV" wbps=$MiB
sleep 1
start_soon
load g d -f "$DEV" -s 1M -n 48 -o d
wait_loads
check "discards wait for what they are charged for" within $(($(val d end_ns) - $(val d start_ns))) 125000000 10000
check "a group without limits leaves no trace" \
	equal "$(grep -c "cg=$(cgid free) " "$TMP/trace" || true)" 0

# debugfs: a line for each group and direction that has limits
groups_file=/sys/kernel/debug/block/nb0/ioband/groups
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
check "debugfs shows the group's limit" grep -E "^cg=$id read: .*bps=$((4 * MiB))" $groups_file
DEV=/dev/nb0
cap g "$DEV" rbps=$((256 * KiB))
START=0
load g r -f "$DEV" -s 64k -n 8 -d 8
until_ns "$(awk '{ printf "%d", $1 * 1000 + 300 }' /proc/uptime)000000"
check "debugfs shows the I/Os that are held" grep -E "^cg=$id read: held=[1-7] " $groups_file
wait_loads
check "debugfs shows that no I/O is held when all are done" grep -E "^cg=$id read: held=0 " $groups_file

# Non-blocking I/O that its task waits for does not wait for its limit: it fails, and the task may try again.
nowait() {
	in_g python3 - "$DEV" <<'EOF'
import mmap, os, sys, time
fd, block = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
os.preadv(fd, [block], 0)
begin, tries = time.monotonic(), 0
while True:
    try:
        os.preadv(fd, [block], 0, os.RWF_NOWAIT)
        break
    except BlockingIOError:
        tries += 1
        time.sleep(0.01)
sys.exit(not (8 <= tries <= 10 and 0.08 <= time.monotonic() - begin <= 0.11))
EOF
}
in_g() { (echo "$BASHPID" >"$CG/g/cgroup.procs"; exec "$@"); }
null_dev nb2
cap g "$DEV" riops=10
check "non-blocking I/O of a limit of ten a second fails for 100 ms" nowait
