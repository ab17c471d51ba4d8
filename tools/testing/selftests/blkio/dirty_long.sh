#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# System calls that write for long: the group gets its limit while the call lasts, not only when it has ended. A call
# that is longer than the kernel writes at once fails and succeeds as without ioband.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_writeback.sh"

# limit RATE: sets the limit; it is looked up once in a jiffy, and in virtual time a jiffy may last for long
limit() {
	cap a "$DEV" wbps="$1"
	sleep 0.1
}

# calls HOW FILE: one system call that writes 2 GiB or, by copying a sparse file, 256 MiB
calls() {
	python3 - "$@" <<'PY'
import ctypes, mmap, os, sys
how, path = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
out = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
if how == 'write':
    # longer than MAX_RW_COUNT; of memory that nobody has touched
    size = 1 << 31
    noreserve = 0x4000
    data = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | noreserve)
    at = ctypes.addressof(ctypes.c_char.from_buffer(data))
    libc.write.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
    libc.write(out, at, size)
else:
    source = os.open(path + '.from', os.O_RDONLY)
    size = os.fstat(source).st_size
    if how == 'sendfile':
        os.sendfile(out, source, 0, size)
    else:
        os.copy_file_range(source, out, size)
PY
}

# begin HOW RATE: the group begins such a call
begin() {
	limit "$2"
	rm -f "$MNT/f"
	in_group a bash -c "$(declare -f calls); calls $1 $MNT/f" &
	CALLER=$!
}

end() {
	pkill -9 -g 0 -f "$1 $MNT/f" || kill -9 "$CALLER"
	wait "$CALLER"
	cap a "$DEV" wbps=max
}

# kept HOW RATE SECONDS: in the first seconds of such a call the group dirties as much as its limit allows
kept() {
	local how=$1 rate=$2 seconds=$3 bytes beyond=$((2 * 64 * KiB))
	begin "$how" "$rate"
	sleep "$seconds"
	bytes=$(stat -c %s "$MNT/f")
	end "$how"
	echo "$bytes bytes in $seconds s at $rate"
	# B and W, which are of 64 KiB at least, and a pipe full of data
	[ "$rate" -lt $((64 * KiB)) ] || beyond=$((rate + 64 * KiB))
	in_range "$bytes" $((rate * (seconds - 1) * 9 / 10)) $((rate * seconds + beyond + 64 * KiB))
}

# unlocked: while such a write() waits, a task of another group writes to the file
unlocked() {
	local other at
	begin write $((64 * KiB))
	sleep 1
	{ dd if=/dev/zero of="$MNT/f" bs=4k count=1 conv=notrunc status=none; now_ms >"$TMP/wrote"; } &
	other=$!
	at=$(now_ms)
	sleep 2
	end write
	wait "$other"
	in_range $(($(<"$TMP/wrote") - at)) 0 300
}

# refused: lengths for which write() fails write nothing
refused() {
	in_group a python3 - "$MNT/g" <<'PY'
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.write.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
libc.pwrite.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64]
out = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
data = ctypes.create_string_buffer(4096)
def error(result):
    return errno.errorcode[ctypes.get_errno()] if result < 0 else result
got = (error(libc.write(out, data, (1 << 64) - 1)), error(libc.write(out, data, 1 << 62)),
       error(libc.pwrite(out, data, 1 << 31, (1 << 63) - 4096)), os.fstat(out).st_size)
print(got)
sys.exit(got != ('EFAULT', 'EFAULT', 'EINVAL', 0))
PY
}

plan 9
null_dev nb0 size=400 memory_backed=1 completion_nsec=10000 mbps=200
mount_cgroup v2
echo +memory >"$CG/cgroup.subtree_control"
group a
for fs in ext4 xfs; do
	case $fs in
	ext4) make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0 ;;
	xfs) make_fs xfs "$DEV" -q -f -m reflink=0 ;;
	esac
	truncate -s 256M "$MNT/f.from"
	sync
	check "$fs: one write() of 2 GiB: the group gets its limit" kept write $MiB 10
	check "$fs: one write() of 2 GiB: other groups write to the file meanwhile" unlocked
	check "$fs: one sendfile() of 256 MiB: the group gets its limit" kept sendfile $KiB 60
	check "$fs: one copy_file_range() of 256 MiB: the group gets its limit" kept copy_file_range $KiB 60
	[ $fs != ext4 ] || umount "$MNT"
done
cap a "$DEV" wbps=$MiB
check "xfs: a write() with an impossible length fails as without a limit" refused
umount "$MNT"
