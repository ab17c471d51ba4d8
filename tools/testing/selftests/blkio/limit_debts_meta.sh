#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Tasks that write metadata and do not return to user space afterwards, where they would wait for their group's
# debt: workers of io_uring, and tasks that are killed meanwhile. And a task of another group, which has no part in
# a group's debt, and starts a task in that group.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=10
RATE=$((128 * KiB))

charged() { sed -n "s/^$(devno "$DEV") .*wbytes=\([0-9]*\).*/\1/p" "$CG/p/io.stat"; }

# killing FILE SECONDS: a child writes metadata, and is killed while it waits for the disk; again and again
killing() {
	python3 - "$1" "$2" <<'EOF'
import os, signal, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
end = time.monotonic() + float(sys.argv[2])
mode = 0
while time.monotonic() < end:
    os.fchmod(fd, mode := 0o644 - mode)
    child = os.fork()
    if not child:
        os.fsync(fd)
        os._exit(0)
    time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
EOF
}

# owing FILE: a child writes metadata until it waits for its group's limit of 1024 B/s, and is killed then: a debt stays
owing() {
	python3 - "$1" <<'EOF'
import os, signal, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
child = os.fork()
mode = 0
while not child:
    os.fchmod(fd, mode := 0o644 - mode)
    os.fsync(fd)
time.sleep(0.5)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
EOF
}

# uring FILE SECONDS: workers of io_uring write metadata
uring() { attack_uring meta "$1" 0 4096 1 1000000000 $(($2 * 1000)); }

# uring_deep FILE SECONDS: 64 workers, which always have something to do, write metadata
uring_deep() { attack_uring meta-deep "$1" 0 4096 1 1000000000 $(($2 * 1000)); }

# bound HOW: p/b writes metadata for SEC seconds, and a task of p/a does small direct writes
bound() {
	local at begin most
	at=$(charged)
	begin=$(now_ms)
	start_soon
	(
		until_ns "$START"
		in_group p/b bash -c "$(declare -f "$1"); $1 '$MNT/meta' $SEC"
	) &
	loads+=($!)
	load p/a honest -f "$MNT/honest" -o w -s 4k -T 0.25 -t "$SEC" -L 1M
	wait_loads
	most=$((RATE * (2000 + $(now_ms) - begin) / 1000))
	check "$1: metadata and direct writes together are at the limit" \
		in_range $(($(charged) - at)) $((RATE * SEC / 2)) $most
	# 250 ms after each I/O the next one waits for a debt of a second, and for the debt of one more fsync()
	check "$1: a sibling that asks for little gets it" in_range "$(val honest ios)" \
		$((SEC * 1000 / 1400 - 1)) $((SEC * 4 + 1))
}

# spawned GROUP: the time, in ms, for which a task of another group waits that starts a task in GROUP
# (CLONE_INTO_CGROUP) and goes on when that ends (CLONE_VFORK), as service managers do
spawned() {
	python3 - "$CG/$1" <<'EOF'
import ctypes, os, signal, struct, sys, time
CLONE_VFORK, CLONE_INTO_CGROUP, SYS_CLONE3 = 0x4000, 0x200000000, 435
args = bytearray(struct.pack('=11Q', CLONE_VFORK | CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0,
                             os.open(sys.argv[1], os.O_RDONLY)))
begin = time.monotonic()
child = ctypes.CDLL(None).syscall(SYS_CLONE3, (ctypes.c_char * len(args)).from_buffer(args), len(args))
if not child:
    os._exit(0)
if child < 0 or os.waitpid(child, 0)[1]:
    sys.exit('the task could not be started')
print(int((time.monotonic() - begin) * 1000))
EOF
}

# A group has a long debt, because its limit was lowered. A task from outside that starts a task in the group has no
# part in the debt.
spawner() {
	cap p "$DEV" wbps=1024
	in_group p/b bash -c "$(declare -f owing); owing '$MNT/meta'" || return 1
	in_range "$(debt_usec p/b)" 1100000 1000000000 && in_range "$(spawned p/b)" 0 100
}

plan 7
null_dev nb0 size=400 memory_backed=1 completion_nsec=2000000
make_fs btrfs "$DEV" -q
: >"$MNT/meta"
# direct writes to it write no metadata
: >"$MNT/honest"
chattr +C "$MNT/honest"
dd if=/dev/zero of="$MNT/honest" bs=1M count=1 conv=fsync status=none
mount_cgroup v2
group p p/a p/b
cap p "$DEV" wbps=$RATE
bound killing
bound uring
bound uring_deep
check "a task that starts one in a group with a debt, from outside, does not wait" spawner
umount "$MNT"
umount_cgroup
