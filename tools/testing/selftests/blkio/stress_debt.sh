#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# ext4 with a writer whose limit is tiny: what other groups do to the file system (mkdir, rename, fsync, sync) ends
# while the writer is still throttled, and the file system is consistent afterwards.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

ROUNDS=${ROUNDS:-20}

# The writer's own metadata and data, as much as its limit allows.
writer() {
	local i
	for ((i = 0; ; i++)); do
		mkdir -p "$MNT/w/$((i % 7))"
		head -c 65536 "$TMP/data" >"$MNT/w/$((i % 7))/file" || return 0
		mv "$MNT/w/$((i % 7))/file" "$MNT/w/$((i % 7))/done"
		[ ! -e "$TMP/stop" ] || return 0
	done
}

fsync_writer() { dd if="$TMP/data" of="$MNT/fsynced" bs=64k conv=fsync status=none; }
direct_writer() { dd if="$TMP/data" of="$MNT/direct" bs=64k oflag=direct status=none; }

metadata() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		mkdir "$MNT/other/$i" && echo "$i" >"$MNT/other/$i/file" &&
			sync "$MNT/other/$i/file" && mv "$MNT/other/$i" "$MNT/other/moved$i" &&
			sync "$MNT/other" && rm -r "$MNT/other/moved$i" || return 1
	done
	echo "$ROUNDS rounds of mkdir, write, fsync, rename, rm"
}

# while_waiting COMMAND...: the command ends, and the limited writers have not ended yet
while_waiting() {
	"$@" || return 1
	running fsync && running direct && return
	echo "the writers were faster"
	return 1
}

others_run() {
	background others metadata
	ended others && cat "$TMP/others.out"
}

ends_well() {
	ended fsync direct writer && cmp "$TMP/data" "$MNT/fsynced" && cmp "$TMP/data" "$MNT/direct"
}

clean_fs() {
	wait_for umount umount "$MNT" || return 1
	e2fsck -fn "$DEV" >"$TMP/fsck" 2>&1 && return
	cat "$TMP/fsck"
	return 1
}

hierarchy() {
	local name
	mount_cgroup "$1"
	group capped other
	smp_null smpext size=256
	mkfs.ext4 -q -F "$DEV"
	mount "$DEV" "$MNT"
	mkdir "$MNT/other" "$MNT/w"
	rm -f "$TMP/stop"
	# the limit would take minutes for each of the big files, if it were not removed
	cap capped "$DEV" "wbps=$((MiB / 64))" wiops=4
	for name in fsync direct; do
		background $name in_group_fn capped $name ${name}_writer
	done
	background writer in_group_fn capped writer writer
	wait_for "held bios" holds "$DISK" 1
	check "$1: other groups' operations on the file system do not wait for the limited writers" while_waiting others_run
	touch "$TMP/stop"
	cap capped "$DEV" wbps=max wiops=max
	check "$1: the limited writers succeed when the limit is removed" ends_well
	check "$1: fsck finds no errors" clean_fs
	check "$1: no bio is held in the end" wait_for held holds_none "$DISK"
	null_end smpext
	umount_cgroup
}

# A task of a group in deep debt starts another one, and the number of that one is stored in a page that has to be read:
# in one call the task notes that it has to wait for the debts of others, and makes one of its own.
FORKS='
import ctypes, mmap, os, signal, sys, time
CLONE, CLONE_PARENT_SETTID = 56, 0x100000
fd = os.open(sys.argv[1], os.O_RDONLY)
debtor = os.fork()
if not debtor:
    os.posix_fadvise(fd, 0, 1 << 20, os.POSIX_FADV_WILLNEED)
    os._exit(0)
time.sleep(0.5)
os.kill(debtor, signal.SIGKILL)
os.waitpid(debtor, 0)
memory = mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE, offset=3 << 20)
place = ctypes.c_int.from_buffer(memory)
open(sys.argv[2], "w").close()
clone = ctypes.CDLL(None).syscall
child = clone(CLONE, signal.SIGCHLD | CLONE_PARENT_SETTID, None, ctypes.byref(place), None, None)
if not child:
    os._exit(0)
os.waitpid(child, 0)
assert place.value == child
'
forks() { python3 -c "$FORKS" "$MNT/fsynced" "$TMP/forks"; }

# forking: the limit is lifted when the task is about to wait for more than a minute
forking() {
	smp_null smpext size=256
	mkfs.ext4 -q -F "$DEV"
	mount "$DEV" "$MNT"
	cp "$TMP/data" "$MNT/fsynced"
	sync
	echo 3 >/proc/sys/vm/drop_caches
	cap capped "$DEV" rbps=$((16 * KiB))
	background forks in_group_fn capped forks forks
	wait_for "the task is about to start another one" test -e "$TMP/forks" || return 1
	sleep 2
	running forks || { echo "the task did not wait"; return 1; }
	cap capped "$DEV" rbps=max
	ended forks
}

in_group_fn() {
	echo "$BASHPID" >"$CG/$1/cgroup.procs"
	echo "$BASHPID" >"$TMP/$2.pid"
	"$3"
}

plan 11
leaks_begin
MNT=$TMP/mnt
mkdir "$MNT"
undo+=("umount $MNT")
head -c $((4 * MiB)) /dev/urandom >"$TMP/data"
hierarchy v2
mount_cgroup v2
group capped
check "a task of a group in deep debt starts another one and makes a debt in the same call" forking
umount "$MNT"
null_end smpext
umount_cgroup
hierarchy v1
leak_point
check "the kernel log has no splats" no_splat
