#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# memory: 2048
# Zoned disks: limits hold no write to a sequential zone. So writes reach the disk in order, whichever group they belong
# to and however limits change, and nobody waits for the writes of a limited group, which pays before or afterwards.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_writeback.sh"

RATE=$((256 * KiB))

zoned_dev() {
	null_dev "$1" size=256 zoned=1 zone_size=16 zone_nr_conv="$2" memory_backed=1
	[ "$(cat "/sys/block/$1/queue/zoned")" = host-managed ] || skip_all "the kernel has no zoned null_blk"
}

# fill FILE FIRST_KIB KIB: buffered writes of 64 KiB, and fsync
fill() {
	python3 - "$@" <<'EOF'
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
first, size = int(sys.argv[2]) << 10, int(sys.argv[3]) << 10
for at in range(first, first + size, 65536):
    os.pwrite(fd, at.to_bytes(8, 'little') * 8192, at)
os.fsync(fd)
EOF
}

# whole FILE FIRST_KIB KIB: the data that fill() has written is there
whole() {
	echo 3 >/proc/sys/vm/drop_caches
	python3 - "$@" <<'EOF'
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
first, size = int(sys.argv[2]) << 10, int(sys.argv[3]) << 10
for at in range(first, first + size, 65536):
    if os.pread(fd, 65536, at) != at.to_bytes(8, 'little') * 8192:
        sys.exit(f'wrong data at {at}')
EOF
}

# in_fn GROUP FUNCTION ARGUMENT...: runs the function in the group
in_fn() {
	local group=$1 fn=$2
	shift 2
	in_group "$group" bash -c "$(declare -f "$fn"); $fn \"\$@\"" - "$@"
}

reset_zones() { cap a "$DEV" wbps=max; sync; blkzone_reset; cap a "$DEV" wbps=$RATE; }
# BLKRESETZONE resets all zones
blkzone_reset() {
	python3 - "$DEV" <<'EOF'
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR)
sectors = int(open(f'/sys/block/{os.path.basename(sys.argv[1])}/size').read())
fcntl.ioctl(fd, 0x40101283, struct.pack('QQ', 0, sectors))
EOF
}

# begin: the limited group writes the first 256 KiB of a zone by two asynchronous writes, for which it has to pay
begin() {
	in_group a blkio_load -f "$DEV" -o w -s 64k -n 1 >/dev/null &&
		in_group a blkio_load -f "$DEV" -o w -O 64k -s 192k -n 1 -d 2 >"$TMP/first" &
	FIRST=$!
	held
}

# first_ended: ... which both succeed
first_ended() { wait "$FIRST" && grep -q '"errors": 0,' "$TMP/first"; }

# Another group writes the next sectors of the zone.
other_syncs() { begin && in_fn b fill "$DEV" 256 1024 && first_ended && whole "$DEV" 256 1024; }

# A group without limits writes the next sectors directly. A write to another zone first makes it look up that it has no
# limits: from then on its bios would take no lock.
other_direct() {
	in_group b dd if=/dev/zero of="$DEV" bs=64k seek=256 count=1 oflag=direct conv=notrunc status=none &&
		begin && in_group b dd if=/dev/zero of="$DEV" bs=64k seek=4 count=4 oflag=direct conv=notrunc status=none &&
		first_ended
}

# The limit is removed while the group owes writes.
limit_goes() {
	begin && cap a "$DEV" wbps=max && in_fn a fill "$DEV" 256 1024 && first_ended && whole "$DEV" 256 1024
}

# The limit is removed while the group owes writes that the disk takes in pieces.
pieces_go() {
	local pid
	in_group a stress_verify -q -b 16384 -d 8 -s $MiB -S 1 "$DEV" >"$TMP/pieces" &
	pid=$!
	held && cap a "$DEV" wbps=max && wait $pid || return 1
	cat "$TMP/pieces"
	grep -q "^submitted=64 completed=64 errors=0 " "$TMP/pieces"
}

# write_ms FIRST_KIB KIB: the time of a direct write of the limited group
write_ms() {
	local begin
	begin=$(now_ms)
	in_group a dd if=/dev/zero of="$DEV" bs="$2k" count=1 seek="$1k" oflag=seek_bytes,direct conv=notrunc status=none || return 1
	echo $(($(now_ms) - begin))
}

# A task pays for all pieces of a direct write before it submits the first one, and nothing comes between them.
pieces_together() {
	local first second
	cap a "$DEV" wbps=max wiops=10
	first=$(write_ms 0 60) && second=$(write_ms 60 4) || return 1
	echo "15 pieces: $first ms, the next: $second ms"
	in_range "$first" 1350 1550 && in_range "$second" 0 120
}

# limits are set and removed 100 times while one group appends to a zone
limits_change() {
	local i pid
	in_group a dd if=/dev/zero of="$DEV" bs=16k count=1024 oflag=direct conv=notrunc status=none &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		cap a "$DEV" "wbps=$((RATE << i % 5))" wiops="$((i % 3 ? 200 : 50))"
		sleep 0.05
		cap a "$DEV" wbps=max wiops=max
	done
	wait $pid
}

# others_free: writes to another zone, and reads, while the limited group's writes are held
others_free() {
	local from
	begin || return 1
	from=$(now_ms)
	in_group b dd if=/dev/zero of="$DEV" bs=64k seek=512 count=16 oflag=direct conv=notrunc status=none || return 1
	in_group b dd if="$DEV" of=/dev/null bs=64k skip=2048 count=64 iflag=direct status=none || return 1
	in_range $(($(now_ms) - from)) 0 50 && first_ended
}

# zone_rate: one I/O after the other to a zone, at the rate of its group's limit
zone_rate() {
	local begin
	begin=$(now_ms)
	in_group a dd if=/dev/zero of="$DEV" bs=64k count=32 oflag=direct conv=notrunc status=none || return 1
	within $(($(now_ms) - begin)) $((31 * 64 * KiB * 1000 / RATE)) 2000
}

# The disk is removed while writes wait, no longer for their limit but for a disk that does one I/O in 5 s.
disk_goes() {
	local pid
	in_group a stress_verify -q -r 0 -b 65536 -d 4 -n 4 -s $MiB "$DEV" >"$TMP/gone" &
	pid=$!
	held && cap a "$DEV" wbps=max && null_off "${DEV##*/}"
	wait $pid || return 1
	cat "$TMP/gone"
	grep -q "^submitted=4 completed=4 errors=0 " "$TMP/gone"
}

f2fs() {
	local writer
	in_group a python3 - "$MNT/x" <<'EOF' &
import os, sys, time
fd, end, n = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), time.monotonic() + 20, 0
while time.monotonic() < end:
    os.pwrite(fd, bytes(1 << 16), n % 128 << 16)
    n += 1
    time.sleep(0.01)
EOF
	writer=$!
	sleep 2
	in_group b python3 - "$MNT/x" <<'EOF' || return 1
import os, sys, time
end = time.monotonic() + 20
while time.monotonic() < end:
    fd = os.open(sys.argv[1], os.O_RDWR)
    os.fsync(fd)
    os.close(fd)
    time.sleep(1.5)
EOF
	cap a "$DEV" wbps=max
	wait $writer || return 1
	umount "$MNT" || return 1
	fsck.f2fs "$DEV" >"$TMP/fsck" 2>&1 && return
	tail -n 5 "$TMP/fsck"
	return 1
}

plan 11
mount_cgroup v2
echo +memory >"$CG/cgroup.subtree_control"
sysctl -qw vm.dirty_writeback_centisecs=50
group a b
zoned_dev nb0 0
cap a "$DEV" wbps=$RATE
check "a debt for writes to a zone: another group's fsync of the same zone has all data" other_syncs
reset_zones
check "a debt for writes to a zone: direct writes by a group without limits stay in order" other_direct
reset_zones
check "a debt for writes to a zone: the limit is removed, and writes stay in order" limit_goes
reset_zones
check "limits are set and removed 100 times: writes to the zone stay in order" limits_change
reset_zones
check "a debt for writes to a zone: other zones and reads do not wait" others_free
reset_zones
check "one I/O after the other to a zone: the group gets its limit" zone_rate
reset_zones
echo 4 >"/sys/block/${DEV##*/}/queue/max_sectors_kb"
check "writes that the disk takes in pieces: the limit is removed, and writes stay in order" pieces_go
reset_zones
check "writes in pieces: the pieces stay together, and are paid for before" pieces_together
cap a "$DEV" wbps=max wiops=max
null_dev nbg size=256 zoned=1 zone_size=16 zone_nr_conv=1 memory_backed=1 hw_queue_depth=1 irqmode=2 completion_nsec=5000000000
cap a "$DEV" wbps=$RATE
check "the disk is removed while writes wait for it that limits have dispatched: all of them reach it" disk_goes
zoned_dev nb1 16
if mkfs.f2fs -m -f "$DEV" >"$TMP/mkfs.log" 2>&1 && mount -t f2fs "$DEV" "$MNT"; then
	undo+=("! mountpoint -q $MNT || umount $MNT")
	cap a "$DEV" wbps=$RATE
	check "f2fs on a zoned disk: fsync of a limited writer's file by another group" f2fs
	check "f2fs on a zoned disk: no write was lost" equal "$(dmesg | grep -cE 'lost async|I/O error' || true)" 0
else
	skip "f2fs on a zoned disk: fsync of a limited writer's file by another group" "no f2fs"
	skip "f2fs on a zoned disk: no write was lost" "no f2fs"
fi
