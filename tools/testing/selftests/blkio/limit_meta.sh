#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Metadata is never held, and the debt for it is repaid: on an ext4 with a throttled writer, mkdir and
# sync by other groups end within 0.1 s; then the own metadata of a limited group.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

MNT=$TMP/mnt
LIMIT_MS=100


# timed COMMAND...: sets TOOK to the time that the command takes, in ms of virtual time
timed() {
	local begin
	begin=$(now_ms)
	"$@"
	TOOK=$(($(now_ms) - begin))
}

# With "sync" they call sync on all of the file system, with "fsync" on the file that they wrote.
others() {
	local dir
	dir=$(mktemp -d "$MNT/others-XXXXXX")
	echo hello >"$dir/file"
	case $1 in sync) sync ;; fsync) sync "$dir/file" "$dir" "$MNT" ;; esac
}

# while_held NAME SYNC: while the load in g waits for its limit, other groups do not wait
while_held() {
	local took=0
	until_ns $((START + 1000000000))
	for _ in 1 2 3 4 5; do
		timed others "$2"
		((TOOK <= took)) || took=$TOOK
		sleep 0.7
	done
	check "$CGV $1: mkdir and $2 by other groups take 0.1 s at most" in_range $took 0 $LIMIT_MS
	check "$CGV $1: the writer is still throttled" kill -0 "${loads[0]}"
	end_loads
}

# direct NAME FILE OPTION...: direct writes with several I/Os outstanding
direct() {
	local name=$1 file=$2
	shift 2
	start_soon
	load g w -f "$MNT/$file" -o w -s 64k "$@"
	while_held "$name" sync
}

# fsyncing: data that g itself writes back is held. (sync by other groups would have to wait for it, since it
# is data of the file system.)
fsyncing() {
	start_soon
	# on v2 data belongs to the group that dirtied the inode first
	in_g truncate -s 1M "$MNT/buffered"
	load g w -f "$MNT/buffered" -o w -s 64k -b -y -n 16
	while_held "fsync of its own data" fsync
	rm "$MNT/buffered"
}

in_g() { in_group g "$@"; }

# The bytes that g has read: FILE is that of v1, KEY that of v2
read_of() {
	local dev
	dev=$(devno "$DEV")
	if [ "$CGV" = v1 ]; then
		awk -v "dev=$dev" '$1 == dev && $2 == "Read" { print $3 }' "$CG/g/blkio.throttle.$1"
	else
		sed -n "s/^$dev .*$2=\([0-9]*\).*/\1/p" "$CG/g/io.stat"
	fi
}
read_bytes() { read_of io_service_bytes rbytes; }
read_ios() { read_of io_serviced rios; }

# own_metadata: the limit of g is 64 KiB/s. Its reads of directories and inodes pass at once, and the data that
# follows waits until the debt for them has been repaid.
own_metadata() {
	local rate=$((64 * KiB)) before after meta begin ideal
	umount "$MNT"
	mount "$DEV" "$MNT"
	drop_cache
	cap g "$DEV" rbps=$rate
	sleep 2
	before=$(read_bytes)
	begin=$(now_ms)
	# reads the names and inodes of many files
	in_g find "$MNT/tree" -type f -size +1G &
	sleep 0.01
	timed others sync
	check "$CGV: other groups do not wait for a limited reader of metadata" \
		in_range "$TOOK" 0 $LIMIT_MS
	wait $!
	after=$(read_bytes)
	meta=$((after - ${before:-0}))
	note "$CGV: g read $meta bytes of metadata"
	check "$CGV: a limited group has read metadata" in_range $meta $((2 * rate)) $((100 * MiB))
	START=0
	load g r -f "$MNT/data" -s 64k -n 1
	wait_loads
	# B is 64 KiB: the data is dispatched when all that came before has been earned
	ideal=$((meta * 1000 / rate))
	check "$CGV: data after metadata is dispatched when the debt is repaid" within $(($(now_ms) - begin)) $ideal 20000
	cap g "$DEV" rbps=max
}

# repaid TEXT GROUP: one system call reads several blocks of metadata under g's limit of 1 IOPS; it returns when all of
# them have been repaid, except the one that B allows
repaid() {
	local before begin took ios
	umount "$MNT"
	mount "$DEV" "$MNT"
	drop_cache
	cap g "$DEV" riops=1
	before=$(read_ios)
	begin=$(now_ms)
	in_group "$2" stat "$MNT/tree/20/20" >"$TMP/stat"
	took=$(($(now_ms) - begin))
	ios=$(($(read_ios) - ${before:-0}))
	cap g "$DEV" riops=max
	note "$ios reads"
	check "$CGV: $1" in_range $took $(((ios > 2 ? ios - 1 : 2) * 1000 - 20)) $(((ios - 1) * 1000 + 100))
}

# never_held: xfs does not have its metadata in the page cache of the disk, but marks it as metadata
never_held() {
	local line
	drop_cache
	cap g "$DEV" riops=1
	in_g stat "$MNT/tree/20/20" >"$TMP/stat"
	line=$(grep "^$(devno "$DEV") " "$CG/g/io.stat")
	cap g "$DEV" riops=max
	echo "$line"
	[[ $line =~ nr_owed=[1-9] && ! $line =~ nr_throttled=[1-9] ]]
}

# flushing: a flush has no data, and costs nothing
flushing() {
	local begin
	cap g "$DEV" wiops=1
	begin=$(now_ms)
	for _ in {1..5}; do in_g sync "$DEV"; done
	check "$CGV: a flush costs nothing" in_range $(($(now_ms) - begin)) 0 100
}

# populate: makes a file with data, and many without
populate() {
	local i j
	head -c 1M /dev/zero >"$MNT/data"
	mkdir "$MNT/tree"
	for i in {1..40}; do
		mkdir "$MNT/tree/$i"
		for j in {1..30}; do : >"$MNT/tree/$i/$j"; done
	done
	sync
}

null_dev nb0 size=512 memory_backed=1
mkdir "$MNT"
mkfs.ext4 -q -F "$DEV" || skip_all "the system has no mkfs.ext4"
mount "$DEV" "$MNT" 2>/dev/null || skip_all "the kernel has no ext4"
head -c 64M /dev/zero >"$MNT/file"
populate
plan 27
for version in v1 v2; do
	mount_cgroup $version
	group g
	cap g "$DEV" wbps=65536
	direct "direct" file -d 16
	truncate -s 64M "$MNT/sparse"
	direct "direct into a hole" sparse -d 16
	rm "$MNT/sparse"
	fsyncing
	cap g "$DEV" wiops=1
	direct "direct, 1 IOPS" file -d 4
	cap g "$DEV" wbps=max wiops=max
	own_metadata
	repaid "a task repays all that it owes" g
	if [ $version = v2 ]; then
		group g/leaf
		cap g/leaf "$DEV" riops=100
		repaid "and what it owes at a limit above its group" g/leaf
	fi
	umount_cgroup
done
umount "$MNT"

null_dev nb1 size=64 memory_backed=1 cache_size=8
mount_cgroup v2
group g
flushing

null_dev nb2 size=400 memory_backed=1
mkfs.xfs -q -f "$DEV"
mount "$DEV" "$MNT"
populate
umount "$MNT"
mount "$DEV" "$MNT"
check "v2: metadata of xfs is a debt and never held" never_held
umount "$MNT"
