#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Buffered writes of groups with limits to a file system on dm or loop, with the limits on that device and on the disk
# below: they are as fast as the limit, and other groups do not wait.
# configs: uml-vt
# memory: 2048
# timeout: 600
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

SEC=6
# if writes were not paced, the load would end after this many I/Os
MOST=800

# spliced, mapped FILE: dirties one page after the other for SEC seconds, or 64 MiB; these ways do not ask before they
# dirty
spliced() {
	python3 - "$1" "$SEC" <<'EOF'
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
pipe = os.pipe()
end = time.monotonic() + float(sys.argv[2])
for at in range(0, 64 << 20, 4096):
    os.write(pipe[1], bytes(4096))
    os.splice(pipe[0], fd, 4096, offset_dst=at)
    if time.monotonic() >= end:
        break
EOF
}
mapped() {
	python3 - "$1" "$SEC" <<'EOF'
import mmap, os, sys, time
pages = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 64 << 20)
end = time.monotonic() + float(sys.argv[2])
for at in range(0, 64 << 20, 4096):
    pages[at] = 1
    if time.monotonic() >= end:
        break
EOF
}

# unasked TEXT TOP BELOW: tasks that dirty pages without asking before get the limit, too
unasked() {
	local how at wrote limit=$((256 * KiB))
	make_fs ext4 "$2" -q -F -E lazy_itable_init=0
	DEV=$3
	cap g1 "$DEV" wbps=$limit
	for how in spliced mapped; do
		truncate -s 64M "$MNT/$how"
		sync
		at=$(counted g1)
		in_group g1 bash -c "$(declare -f $how); SEC=$SEC; $how '$MNT/$how'"
		wrote=$(($(counted g1) - at))
		check "$1, $how: the group gets the limit of the disk below" \
			in_range $wrote $((limit * (SEC - 1))) $((limit * (SEC + 1) + MiB))
		sync
	done
	cap g1 "$DEV" wbps=max
	umount "$MNT"
}

# stacked TEXT TOP BELOW: a file system on TOP, with limits on one device, then on the other
stacked() {
	local i
	make_fs ext4 "$2" -q -E lazy_itable_init=0
	DEV=$2
	caps "$2"
	rates "$1, caps on it" $((64 * KiB))
	for i in 1 2 3; do cap "g$i" "$2" wbps=max; done
	umount "$MNT"
	make_fs ext4 "$2" -q -F -E lazy_itable_init=0
	DEV=$3
	caps "$3"
	BELOW=1 rates "$1, caps on the disk below" $((64 * KiB))
	umount "$MNT"
	unasked "$@"
}

over_dm() {
	local below
	null_dev "belowdm$HIERARCHY" size=400 memory_backed=1
	below=$DEV
	dm_dev "linear$HIERARCHY" "0 600000 linear $below 0"
	stacked dm-linear "$DEV" "$below"
}

over_loop() {
	local below
	null_dev "belowloop$HIERARCHY" size=400 memory_backed=1
	below=$DEV
	DEV=$(losetup --find --show --direct-io=on "$below")
	undo+=("losetup -d $DEV")
	stacked loop "$DEV" "$below"
}

# sent LIMIT: the time of fsync(), ms, while 1 MiB is on its way to the disk BELOW, for which LIMIT is set by then
sent() {
	local writer begin
	rm -f "$MNT/file" "$TMP"/dirty* "$TMP/limited"
	cap g1 "$BELOW" wbps=$((64 * MiB))
	in_group g1 python3 - "$MNT/file" "$TMP/dirty" "$TMP/limited" <<'EOF' &
import ctypes, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.pwrite(fd, bytes(1 << 20), 0)
open(sys.argv[2], "w").close()
while not os.path.exists(sys.argv[3]):
    time.sleep(.01)
start_write = ctypes.CDLL(None).sync_file_range
start_write(fd, ctypes.c_longlong(0), ctypes.c_longlong(512 << 10), 2)
time.sleep(.15)
start_write(fd, ctypes.c_longlong(512 << 10), ctypes.c_longlong(512 << 10), 2)
os.rename(sys.argv[2], sys.argv[2] + ".sent")
EOF
	writer=$!
	until [ -e "$TMP/dirty" ]; do sleep 0.01; done
	cap g1 "$BELOW" wbps="$1"
	: >"$TMP/limited"
	until [ -e "$TMP/dirty.sent" ]; do sleep 0.01; done
	begin=$(now_ms)
	python3 -c 'import os, sys; os.fsync(os.open(sys.argv[1], os.O_RDWR))' "$MNT/file"
	echo $(($(now_ms) - begin))
	wait $writer
	cap g1 "$BELOW" wbps=max
	sync
}

# Pages are under writeback from the moment when the file system builds their bio, and a task may wait for them before
# that bio is at the disk that has the limit: here 100 ms earlier. The bio before it has left a debt of two seconds.
on_its_way() {
	local BELOW alone
	null_dev "belowdelay$HIERARCHY" size=100 memory_backed=1
	BELOW=$DEV
	dm_dev "delay$HIERARCHY" "0 100000 delay $BELOW 0 100"
	make_fs ext4 "$DEV" -q -E lazy_itable_init=0
	sent max >/dev/null
	alone=$(sent max)
	check "dm-delay, fsync while bios are on their way to a limited disk: as fast as without a limit, ms" in_range \
		"$(sent $((256 * KiB)))" 50 $((alone + 20))
	umount "$MNT"
}

# A group with a debt on the disk below waits before it has the lock of a file.
others_file() {
	local below begin most=0 took writer i
	null_dev "belowfile$HIERARCHY" size=100 memory_backed=1
	below=$DEV
	dm_dev "file$HIERARCHY" "0 100000 linear $below 0"
	make_fs ext4 "$DEV" -q -E lazy_itable_init=0
	cap g1 "$below" wbps=$((256 * KiB))
	: >"$MNT/log"
	in_group g1 dd if=/dev/zero of="$MNT/log" bs=2M count=1 conv=notrunc status=none &
	writer=$!
	sleep 3
	for ((i = 0; i < 20; i++)); do
		begin=$(now_ms)
		in_group g2 bash -c "echo x >>'$MNT/log'"
		took=$(($(now_ms) - begin))
		((took <= most)) || most=$took
		sleep 0.1
	done
	check "a writer with a debt on the disk below: another group appends to its file, ms" in_range "$most" 0 50
	check "a writer with a debt on the disk below: it is still at work" test -d /proc/$writer
	wait $writer
	cap g1 "$below" wbps=max
	umount "$MNT"
}

everywhere() {
	group g1 g2 g3
	over_dm
	over_loop
	on_its_way
	others_file
}

plan 117
on_each everywhere v1 v2 memcg
