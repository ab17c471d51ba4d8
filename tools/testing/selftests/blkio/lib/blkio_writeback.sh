# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # blkio_lib.sh has the units
# Sourced by tests of buffered writes, in which groups g1, g2 and g3 write to the disk DEV, or to a
# file system that is mounted at MNT.
MNT=$TMP/mnt
before=() before_read=()
mkdir "$MNT"

# writes_of GROUP: the number of writes to the disk that the group has been charged for
writes_of() {
	if [ "$CGV" = v2 ]; then
		sed -n "s/^$(devno "$DEV") .*\bwios=\([0-9]*\).*/\1/p" "$CG/$1/io.stat"
		return
	fi
	awk -v "dev=$(devno "$DEV")" '$1 == dev && $2 == "Write" { print $3 }' "$CG/$1/blkio.throttle.io_serviced"
}

# note_all: notes the counters of all groups; moved N [OP]: bytes of gN since then
note_all() {
	local i
	for i in 1 2 3; do
		before[i]=$(counted "g$i")
		before_read[i]=$(counted "g$i" Read)
	done
}
moved() {
	local from=${before[$1]}
	[ "${2:-}" != Read ] || from=${before_read[$1]}
	echo $(($(counted "g$1" "${2:-Write}") - from))
}

# seen NAME BYTES SEC [FROM]: the rate of a load of that size and time, without the first FROM (2) seconds
seen() {
	sed 's/.*\[//; s/\].*//; s/, /\n/g' "$TMP/$1.json" |
		awk -v "size=$2" -v "sec=$3" -v "from=${4:-2}" \
			'NR > from && NR <= sec { n += $1 } END { printf "%d", n * size }'
}

# pages_of KEY: the pages that are dirty or writing, of all dirtiers; pages: both
pages_of() {
	sed "s/.*\b$1=\([-0-9]*\).*/\1/" /sys/kernel/debug/dirty_owner | awk '{ n += $1 } END { print n + 0 }'
}
pages() { echo $(($(pages_of dirty) + $(pages_of writing))); }

# caps DEVICE: sets limits of 1, 2 and 3 MiB/s
caps() { local i; for i in 1 2 3; do cap "g$i" "$1" wbps=$((i * MiB)); done; }

is_held() { grep -q 'write: held=[1-9]' "/sys/kernel/debug/block/${DEV##*/}/ioband/groups"; }

# held: waits until writes are held on the disk
held() {
	local i
	for ((i = 0; i < 100; i++)); do
		! is_held || return 0
		sleep 0.02
	done
	return 1
}

# quick_sync: sync by root while a task waits for a limit; succeeds if it is quick
quick_sync() {
	local begin
	begin=$(now_ms)
	sync
	in_range $(($(now_ms) - begin)) 0 50
}

# none_left: no page is counted any more
none_left() {
	cat /sys/kernel/debug/dirty_owner && ! grep -qv 'dirty=0 writing=0\b' /sys/kernel/debug/dirty_owner
}

# make_fs FS DEVICE MKFS_ARGUMENT...: makes a file system and mounts it with OPTIONS
make_fs() {
	local fs=$1 dev=$2
	shift 2
	"mkfs.$fs" "$@" "$dev" >"$TMP/mkfs.log" 2>&1 || bail "mkfs.$fs: $(tail -n 3 "$TMP/mkfs.log")"
	mount -t "$fs" ${OPTIONS:+-o "$OPTIONS"} "$dev" "$MNT"
	undo+=("! mountpoint -q $MNT || umount $MNT")
}

# rate TEXT GROUP SIZE: write() proceeds at the group's limit; where the limits are below the device that is written to
# (BELOW), it is ahead by no more than a window and a chunk
rate() {
	if [ -z "${BELOW:-}" ]; then
		check "$1" within "$(seen "$2" "$3" "$SEC")" $(($2 * MiB * (SEC - 2))) 10000
	else
		check "$1" in_range "$(val "$2" bytes)" $(($2 * MiB * (SEC - 1))) $(($2 * MiB * SEC + 20 * MiB))
	fi
}

# rates TEXT SIZE [PPM]: with caps(), each group writes to a file of its own for SEC seconds; its bytes are exact to
# PPM; 8 points
rates() {
	local i
	for i in 1 2 3; do : >"$MNT/$i"; done
	sync
	note_all
	start_soon
	for i in 1 2 3; do
		load "g$i" "$i" -f "$MNT/$i" -b -o w -s "$2" -t "$SEC" -L 200M ${MOST:+-n $MOST}
	done
	sleep 5
	check "$1: root's sync is quick while groups are throttled" quick_sync
	wait_loads
	for i in 1 2 3; do
		rate "$1, $i MiB/s: write()" "$i" "$2"
	done
	sync
	for i in 1 2 3; do
		check "$1: group $i is charged for its file" within "$(moved "$i")" "$(stat -c %s "$MNT/$i")" "${3:-0}"
	done
	check "$1: no page stays counted" none_left
}

# failing FILE SECONDS: appends 2 MiB from an invalid address again and again, which fails after it has been paid; then
# appends all that was saved up by that
failing() {
	python3 - "$1" "$2" <<'EOF'
import ctypes, os, sys, time
end = time.monotonic() + float(sys.argv[2])
fd = os.open(sys.argv[1], os.O_WRONLY)
append = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
ctypes.CDLL(None).write(append, ctypes.c_void_p(4096), ctypes.c_size_t(2 << 20))
at = 0
while time.monotonic() < end:
    # the account of a group ends when it has had no page for a while
    os.pwrite(fd, bytes(1), at << 12)
    at += 1
    time.sleep(.2)
for i in range(32):
    os.pwrite(fd, bytes(1 << 16), i << 16)
os.fdatasync(fd)
EOF
}

# most_pages SECONDS [INTERVAL]: the most pages at a time that windows count, of all dirtiers
most_pages() {
	python3 - "$1" "${2:-0.1}" <<'EOF'
import re, sys, time
seconds, interval = map(float, sys.argv[1:])
end, most = time.monotonic() + seconds, 0
while time.monotonic() < end:
    with open("/sys/kernel/debug/dirty_owner") as file:
        most = max(most, sum(map(int, re.findall(r"\bwindow=(-?\d+)", file.read()))))
    time.sleep(interval)
print(most)
EOF
}

# dirty_limit BYTES: sets the system's limit of dirty pages; writeback begins at half of it
dirty_limit() {
	local key
	for key in dirty_bytes dirty_background_bytes dirty_ratio dirty_background_ratio; do
		undo+=("sysctl -qw vm.$key=$(sysctl -n "vm.$key") || true")
	done
	sysctl -qw "vm.dirty_bytes=$1" "vm.dirty_background_bytes=$(($1 / 2))"
}
