#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Buffered writes of capped groups on v1 to a file system on dm or loop, with the caps
# on that device and on the disk below: as fast as the cap, and nobody waits.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"
# shellcheck source=blkio_writeback.sh
. "$HERE/blkio_writeback.sh"

SEC=6
# should it not be paced, it ends after so many I/Os
MOST=800

# stacked TEXT TOP BELOW: a file system on TOP, caps on one, then on the other
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
}

over_dm() {
	local below
	null_dev belowdm size=400 memory_backed=1
	below=$DEV
	dm_dev linear "0 600000 linear $below 0"
	stacked dm-linear "$DEV" "$below"
}

over_loop() {
	local below
	null_dev belowloop size=400 memory_backed=1
	below=$DEV
	DEV=$(losetup --find --show --direct-io=on "$below")
	undo+=("losetup -d $DEV")
	stacked loop "$DEV" "$below"
}

# Pages are under writeback from when the file system builds their bio, and someone may wait for them before that
# bio is at the disk that has the limit: here 100 ms earlier. The bio before it has left a debt of two seconds.
on_its_way() {
	local below writer begin took
	null_dev belowdelay size=100 memory_backed=1
	below=$DEV
	dm_dev delay "0 100000 delay $below 0 100"
	make_fs ext4 "$DEV" -q -E lazy_itable_init=0
	cap g1 "$below" wbps=$((64 * MiB))
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
	cap g1 "$below" wbps=$((256 * KiB))
	: >"$TMP/limited"
	until [ -e "$TMP/dirty.sent" ]; do sleep 0.01; done
	begin=$(now_ms)
	python3 -c 'import os, sys; os.fsync(os.open(sys.argv[1], os.O_RDWR))' "$MNT/file"
	took=$(($(now_ms) - begin))
	wait $writer
	check "dm-delay, fsync while bios are on their way to the limit: two delays and a commit" in_range $took 50 500
	umount "$MNT"
}

# A group that owes to the disk below waits before it has the lock of a file.
others_file() {
	local below begin most=0 took writer i
	null_dev belowfile size=100 memory_backed=1
	below=$DEV
	dm_dev file "0 100000 linear $below 0"
	make_fs ext4 "$DEV" -q -E lazy_itable_init=0
	cap g1 "$below" wbps=$((256 * KiB))
	: >"$MNT/log"
	in_group g1 dd if=/dev/zero of="$MNT/log" bs=4k count=512 conv=notrunc status=none &
	writer=$!
	sleep 3
	for ((i = 0; i < 20; i++)); do
		begin=$(now_ms)
		in_group g2 bash -c "echo x >>'$MNT/log'"
		took=$(($(now_ms) - begin))
		((took <= most)) || most=$took
		sleep 0.1
	done
	check "a writer owes to the disk below: another group's append to its file, ms" in_range "$most" 0 50
	check "a writer owes to the disk below: it is still at work" test -d /proc/$writer
	wait $writer
	cap g1 "$below" wbps=max
	umount "$MNT"
}

plan 35
mount_cgroup v1
group g1 g2 g3
over_dm
over_loop
on_its_way
others_file
