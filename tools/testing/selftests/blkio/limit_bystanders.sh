#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# Nobody else waits for a limited group: not for pages that it reads, not for a journal that it holds up, not for
# tasks that it starts. And what passes for their sake is paid for.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"
# shellcheck source=lib/blkio_timed.sh
. "$HERE/lib/blkio_timed.sh"

RATE=$((64 * KiB))

READS='
fd = os.open(sys.argv[1], os.O_RDONLY)
open(sys.argv[-1], "w").close()
while os.read(fd, 65536):
    pass'

ADVISES='
fd = os.open(sys.argv[1], os.O_RDONLY)
open(sys.argv[-1], "w").close()
for at in range(0, min(8 << 20, os.fstat(fd).st_size), 131072):
    os.posix_fadvise(fd, at, 131072, os.POSIX_FADV_WILLNEED)'

# the ioctl EXT4_IOC_MOVE_EXT reads data with a handle of the journal, behind 4 MiB that the group reads directly
MOVES='
own = os.open(sys.argv[1] + "/own", os.O_RDONLY | os.O_DIRECT)
pages = memoryview(mmap.mmap(-1, 4 << 20))
threading.Thread(target=os.preadv, args=(own, [pages], 0)).start()
time.sleep(0.05)
fds = [os.open(sys.argv[1] + name, os.O_RDWR) for name in ("/orig", "/donor")]
open(sys.argv[-1], "w").close()
fcntl.ioctl(fds[0], 0xc028660f, struct.pack("IIQQQQ", 0, fds[1], 100, 100, 1, 0))'

# others_read TEXT: a group without limits reads the file that g reads, and runs the program
others_read() {
	timed_in free 'os.pread(os.open(sys.argv[1], os.O_RDONLY), 4 << 20, 0)' "$MNT/lib"
	check "$CGV, $1: another group reads the same file at once" in_range "$TOOK_MS" 0 $MOST_MS
	timed_in free 'subprocess.run([sys.argv[1], "-c", "true"], check=True)' "$MNT/program"
	check "$CGV, $1: another group runs the same program at once" in_range "$TOOK_MS" 0 $MOST_MS
	end_loads
	drop_cache
}

pages() {
	begun g "$READS" "$MNT/lib"
	begun g "$READS" "$MNT/program"
	sleep 1
	others_read "a group reads files"
	begun g "$ADVISES" "$MNT/lib"
	begun g "$ADVISES" "$MNT/program"
	sleep 1
	others_read "a group asks for readahead"
}

journal() {
	begun g "$MOVES" "$MNT"
	sleep 0.2
	timed_in free 'fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY); os.write(fd, b"x"); os.fsync(fd)' "$MNT/new"
	check "$CGV, a group reads with a handle of the journal: another group's fsync ends at once" in_range "$TOOK_MS" 0 $MOST_MS
	timed_in free 'os.mkdir(sys.argv[1])' "$MNT/dir"
	check "$CGV, a group reads with a handle of the journal: another group's mkdir ends at once" in_range "$TOOK_MS" 0 $MOST_MS
	end_loads
	rm -r "$MNT/new" "$MNT/dir"
}

# a task that has not used the disk starts programs, while others of its group read directly and read metadata
forks() {
	cap g "$DEV" rbps=$MiB
	start_soon
	load g queue -f "$MNT/lib" -s 1M -d 16 -t 20
	until_ns $((START + 500000000))
	in_background g find "$MNT" -type f -size +1G
	sleep 0.1
	timed_in g '
longest = 0
for _ in range(10):
    at = time.monotonic()
    subprocess.run(["true"], check=True)
    longest = max(longest, time.monotonic() - at)
    time.sleep(0.2)
begin = time.monotonic() - longest'
	check "$CGV, a group reads at its limit: its task that has not used the disk starts programs at once" \
		in_range "$TOOK_MS" 0 10
	end_loads
	drop_cache
}

# one call reads 64 MiB of a disk that a file system is on, as a backup of the disk does
node() {
	local before
	cap g "$DEV" rbps=$MiB
	before=$(counted g Read | grep . || echo 0)
	begun g 'fd = os.open(sys.argv[1], os.O_RDONLY)
open(sys.argv[-1], "w").close()
os.pread(fd, 64 << 20, 0)' "$DEV"
	sleep 8
	# 8 s, the burst, and a part of the call
	check "$CGV, a long read() of a mounted disk: the limit holds" in_range $(($(counted g Read) - before)) \
		$((7 * MiB)) $((8 * MiB + 64 * KiB + 3 * MiB / 2))
	end_loads
}

everything() {
	group g free
	cap g "$DEV" rbps=$RATE
	drop_cache
	pages
	cap g "$DEV" rbps=$RATE wbps=$RATE
	journal
	forks
	node
	cap g "$DEV" rbps=max wbps=max
}

# a group trims a file system of 100 GiB, of which a discard takes 4 s
trims() {
	local begin
	null_dev "trim$1" size=102400 discard=1 memory_backed=1 completion_nsec=10000
	make_fs "$1" "$DEV" -q -f -K
	cap g "$DEV" wbps=$KiB
	in_background g fstrim "$MNT"
	sleep 1
	timed_in free 'fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY); os.write(fd, b"x"); os.fsync(fd)' "$MNT/new"
	check "$1, a group trims: another group's fsync ends at once" in_range "$TOOK_MS" 0 $MOST_MS
	begin=$(now_ms)
	end_loads
	check "$1, a group trims: it can be killed at once" in_range $(($(now_ms) - begin)) 0 $MOST_MS
	umount "$MNT"
}

# mkfs discards the whole disk first
discards() {
	local begin
	null_dev whole size=1024000 discard=1 memory_backed=1 completion_nsec=10000
	cap g "$DEV" wbps=$MiB
	begin=$(now_ms)
	in_group g blkdiscard "$DEV"
	check "a group with 1 MiB/s discards 1000 GiB" in_range $(($(now_ms) - begin)) 500 10000
}

# a task without privileges writes symbolic links, whose pages no task pays for in advance
links() {
	local before begin
	null_dev links size=400 memory_backed=1 completion_nsec=100000
	make_fs f2fs "$DEV" -q -f
	chmod 777 "$MNT" "$TMP"
	sync
	cap g "$DEV" wbps=$((256 * KiB))
	before=$(counted g | grep . || echo 0)
	begin=$(now_ms)
	begun g 'open(sys.argv[-1], "w").close()
os.setuid(1000)
for n in range(1000000):
    os.symlink("x" * 4000, f"{sys.argv[1]}/{n}")' "$MNT"
	sleep 10
	# two seconds for what is dirty and for a debt
	check "f2fs, symbolic links: the limit holds" in_range $(($(counted g) - before)) $((256 * KiB)) \
		$((64 * KiB + ($(now_ms) - begin + 2000) * 256 * KiB / 1000))
	end_loads
	umount "$MNT"
}

# within_part TEXT: in 8 s at 1 MiB/s g reads no more of DEV than that, the burst and a part of a call
within_part() {
	local before
	before=$(rbytes g)
	sleep 8
	check "$1: the limit holds" in_range $(($(rbytes g) - before)) $((6 * MiB)) $((8 * MiB + 64 * KiB + 3 * MiB / 2))
	end_loads
}

# a task reads a disk into a mapping of another disk: it has to wait for both, and the limit of the other one is large
two_disks() {
	null_dev other size=400 memory_backed=1
	cap g "$DEV" rbps=$((100 * MiB))
	null_dev slow size=400 memory_backed=1
	cap g "$DEV" rbps=$MiB
	begun g 'to = memoryview(mmap.mmap(os.open("/dev/other", os.O_RDONLY), 256 << 20, access=mmap.ACCESS_COPY))
fd = os.open(sys.argv[1], os.O_RDONLY)
open(sys.argv[-1], "w").close()
for at in range(0, 256 << 20, 1 << 20):
    os.preadv(fd, [to[at:at + (1 << 20)]], at)' "$DEV"
	within_part "two disks in one call"
}

# a long read() of a file of overlayfs, which has no disk
overlay() {
	null_dev below size=400 memory_backed=1
	make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
	dd if=/dev/zero of="$MNT/long" bs=1M count=64 conv=fsync status=none
	mkdir "$TMP/empty" "$TMP/over"
	mount -t overlay overlay -o "lowerdir=$MNT:$TMP/empty" "$TMP/over"
	undo+=("! mountpoint -q $TMP/over || umount $TMP/over")
	drop_cache
	cap g "$DEV" rbps=$MiB
	begun g 'fd = os.open(sys.argv[1], os.O_RDONLY)
open(sys.argv[-1], "w").close()
os.pread(fd, 64 << 20, 0)' "$TMP/over/long"
	within_part "a long read() of overlayfs"
	umount "$TMP/over"
	umount "$MNT"
}

plan 24
null_dev nb0 size=400 memory_backed=1 completion_nsec=100000
make_fs ext4 "$DEV" -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0
dd if=/dev/zero of="$MNT/lib" bs=1M count=32 status=none
for name in own orig donor; do dd if=/dev/zero of="$MNT/$name" bs=1M count=8 status=none; done
cp "$(realpath /bin/bash)" "$MNT/program"
sync
for version in v1 v2; do
	mount_cgroup $version
	everything
	umount_cgroup
done
umount "$MNT"

mount_cgroup v2
group g free
trims xfs
trims btrfs
discards
links
two_disks
overlay
