# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # variables are of blkio_lib.sh
# Sourced by bench-rates and demo-guest, which run in the guest: measures buffered writes under limits.

# written NAME: prints the bytes that the disk counts as writes of a group
written() {
	[ "$CGV" = v1 ] || { wbytes "$1"; return; }
	awk -v "dev=$(devno "$DEV")" '$1 == dev && $2 == "Write" { print $3 }' \
		"$CG/$1/blkio.throttle.io_service_bytes"
}

# s5_buffered_write: runs S5 in the groups g1 g2 g3, on a disk of 100 MB/s that is so large that no page is dirtied
# twice. Leaves s5-buffered-write-{1,2,3}.json in $TMP, of 32 s, and s5-disk-{1,2,3}.json with the bytes that the disk
# counts for each group in the last 30 of these. Mainline counts all these bytes for the root group on v1, and for the
# group of the disk's inode on v2.
s5_buffered_write() {
	local i first=() last=()
	null_dev s5w size=12288 mbps=100
	for i in 1 2 3; do cap "g$i" "$DEV" wbps=$((i * MiB)); done
	start_soon
	for i in 1 2 3; do
		load "g$i" "s5-buffered-write-$i" -f "$DEV" -b -o w -s 64k -t 32 -w 2 -O "$((i * 3))G" -L 3G
	done
	until_ns $((START + 2000000000))
	for i in 1 2 3; do first[i]=$(written "g$i"); done
	until_ns $((START + 32000000000))
	for i in 1 2 3; do last[i]=$(written "g$i"); done
	wait_loads
	for i in 1 2 3; do echo "{\"bytes\": $((last[i] - first[i]))}" >"$TMP/s5-disk-$i.json"; done
	null_off s5w
}

# A program that writes 64 KiB, syncs them and sleeps for 50 ms, over and over in a file of 12.5 MiB.
NEIGHBOUR='
import json, os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
writes, syncs = [], []
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    times = [time.monotonic_ns()]
    os.pwrite(fd, bytes(65536), len(writes) % 200 * 65536)
    times.append(time.monotonic_ns())
    os.fsync(fd)
    times.append(time.monotonic_ns())
    writes.append(times[1] - times[0])
    syncs.append(times[2] - times[1])
    time.sleep(0.05)
def p99(times):
    return sorted(times)[len(times) * 99 // 100]
print(json.dumps({"rounds": len(writes), "write_p99_ns": p99(writes), "sync_p99_ns": p99(syncs)}))
'

# neighbour NAME SECONDS: runs this program in a group of its own, without limits
neighbour() {
	(echo "$BASHPID" >"$CG/free/cgroup.procs"; exec python3 -c "$NEIGHBOUR" "$TMP/mnt/neighbour" "$2") >"$TMP/$1.json"
}

# neighbours: runs the neighbour on an ext4 on a disk of 100 MB/s, alone, and beside a group with a limit of 1 MiB/s
# that writes to the page cache as fast as it can. Leaves neighbour-{alone,beside}.json in $TMP, and
# neighbour-writer.json.
neighbours() {
	null_dev neighbour size=900 mbps=100 memory_backed=1
	mkfs.ext4 -q -F -E lazy_itable_init=0 "$DEV"
	mkdir "$TMP/mnt"
	mount "$DEV" "$TMP/mnt"
	group slow free
	neighbour neighbour-alone 10
	: >"$TMP/mnt/slow"
	cap slow "$DEV" wbps="$MiB"
	start_soon
	load slow neighbour-writer -f "$TMP/mnt/slow" -b -o w -s 64k -t 30 -L 400M
	sleep 3
	neighbour neighbour-beside 25
	wait_loads
	umount "$TMP/mnt"
	null_off neighbour
}
