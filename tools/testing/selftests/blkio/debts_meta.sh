#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Tasks that make metadata and do not come to user space afterwards, where they would wait
# for what they owe: workers of io_uring, and tasks that are killed meanwhile. And a task that
# has no part in what a group owes, and starts another one there.
. "$(dirname "$0")/blkio_lib.sh"
# shellcheck source=blkio_writeback.sh
. "$HERE/blkio_writeback.sh"

SEC=10
RATE=$((128 * KiB))

charged() { sed -n "s/^$(devno "$DEV") .*wbytes=\([0-9]*\).*/\1/p" "$CG/p/io.stat"; }

# killing FILE SECONDS: a child makes metadata, and is killed while it waits for the disk
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

# uring FILE SECONDS: metadata by workers
uring() { attack_uring meta "$1" 0 4096 1 1000000000 $(($2 * 1000)); }

# uring_deep FILE SECONDS: by 64 workers, which have always something to do
uring_deep() { attack_uring meta-deep "$1" 0 4096 1 1000000000 $(($2 * 1000)); }

# bound HOW: p/b makes metadata for SEC, and a task of p/a writes a little
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
	check "$1: metadata and direct writes are at the limit" in_range $(($(charged) - at)) $((RATE * SEC / 2)) $most
	# 250 ms after each I/O the next waits for a debt of a second and what one more fsync() makes
	check "$1: a sibling that asks for little gets it" in_range "$(val honest ios)" \
		$((SEC * 1000 / 1400 - 1)) $((SEC * 4 + 1))
}

# spawned GROUP: how long another group's task waits, in ms, that starts one in GROUP (CLONE_INTO_CGROUP)
# and goes on when that has ended (CLONE_VFORK), as service managers do
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

# A group that owes for long, as its limit is lower now: whoever starts a task there from outside
# has no part in that.
spawner() {
	in_group p/b bash -c "$(declare -f killing); killing '$MNT/meta' 1" || return 1
	cap p "$DEV" wbps=1024
	in_range "$(debt_usec p/b)" 1100000 1000000000 && in_range "$(spawned p/b)" 0 100
}

# rewriting FILE: writes a page twice, which is paid twice as nobody knows before that it is dirty, and once more when
# FILE.go is there, which has been paid; says how long that took, in ms
rewriting() {
	python3 - "$1" <<'EOF'
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.pwrite(fd, bytes(4096), 0)
os.pwrite(fd, bytes(4096), 0)
while not os.path.exists(sys.argv[1] + '.go'):
    time.sleep(0.01)
begin = time.monotonic()
os.pwrite(fd, bytes(4096), 0)
print(int((time.monotonic() - begin) * 1000))
EOF
}

# A page that is dirty and paid for costs nothing to write to; what the group owes is waited for.
rewriter() {
	cap p "$DEV" wbps=$RATE
	in_group p/c bash -c "$(declare -f rewriting); rewriting '$MNT/again'" >"$TMP/again_ms" &
	loads+=($!)
	sleep 0.1
	in_group p/b bash -c "$(declare -f killing); killing '$MNT/meta' 1" || return 1
	cap p "$DEV" wbps=1024
	in_range "$(debt_usec p/b)" 3000000 1000000000 || return 1
	: >"$MNT/again.go"
	sleep 2
	cap p "$DEV" wbps=max
	wait_loads
	in_range "$(cat "$TMP/again_ms")" 1800 2300
}

plan 8
null_dev nb0 size=400 memory_backed=1 completion_nsec=2000000
make_fs btrfs "$DEV" -q
: >"$MNT/meta"
# its direct writes are of data alone
: >"$MNT/honest"
chattr +C "$MNT/honest"
dd if=/dev/zero of="$MNT/honest" bs=1M count=1 conv=fsync status=none
mount_cgroup v2
group p p/a p/b p/c
cap p "$DEV" wbps=$RATE
bound killing
bound uring
SEC=30 bound uring_deep
check "a task that is started from outside holds nobody up" spawner
umount "$MNT"
# what is owed here would have the next test's tasks wait until its page is written
cap p "$DEV" wbps=max
# btrfs has no disk of its own to owe to
null_dev nb1 size=400 memory_backed=1 completion_nsec=2000000
make_fs f2fs "$DEV" -q
: >"$MNT/meta"
check "a write to a page that is dirty and paid waits for what the group owes" rewriter
umount "$MNT"
