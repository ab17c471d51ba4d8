# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # variables are for and of the tests
# Sourced after blkio_lib.sh by tests in which memory is short: tasks that need memory beside a group
# that writes, and how many dirty pages that group has.

PART=$((128 * MiB))	# of the disk, or a file, for each
WHO="free root"		# who is beside it
MNT=$TMP/mnt

# small_ext4 NODE: an ext4 of which only the metadata is kept, in memory; the data of files goes to NODE, which
# forgets it. Sets DEV; makes a file for each of slow, free and root.
small_ext4() {
	local who data=$1
	null_dev meta size=64 memory_backed=1
	dm_dev small "0 32768 linear $DEV 0
32768 $((2048 * 1024)) linear $data 0"
	mkfs.ext4 -q -F -E packed_meta_blocks=1,lazy_itable_init=0,num_backup_sb=0 \
		-O sparse_super2,^resize_inode -N 64 -J size=4 "$DEV"
	mkdir "$MNT"
	mount "$DEV" "$MNT"
	undo+=("umount $MNT")
	# the files are allocated in one piece, so that no extent needs a block of metadata between the data
	for who in slow $WHO; do
		dd if=/dev/zero "of=$MNT/$who" bs=1M count=$((PART / MiB)) oflag=direct status=none
	done
}

# sample GROUP FILE: keeps in FILE the most pages, of GROUP and of all groups, that were dirty or being written at a
# time
sample() {
	local cg line own all most_own=0 most_all=0
	cg=$(stat -c %i "$CG/$1")
	while read -r -t 0.3 -u 8 _ || [ $? -gt 128 ]; do
		own=0 all=0
		while read -r line; do
			[[ "$line" =~ ^cg=$cg\ .*dirty=([-0-9]+)\ writing=([-0-9]+) ]] || continue
			own=$((own + BASH_REMATCH[1] + BASH_REMATCH[2]))
		done </sys/kernel/debug/dirty_owner
		while read -r line; do
			[[ "$line" =~ ^(Dirty|Writeback):\ *([0-9]+) ]] || continue
			all=$((all + BASH_REMATCH[2] / 4))
			[ "${BASH_REMATCH[1]}" = Dirty ] || break
		done </proc/meminfo
		((own > most_own || all > most_all)) || continue
		most_own=$((own > most_own ? own : most_own))
		most_all=$((all > most_all ? all : most_all))
		echo "$most_own $most_all" >"$2"
	done
}

# sampler GROUP: samples in the background until sampled, which sets own and all
sampler() {
	echo "0 0" >"$TMP/most"
	[ -p "$TMP/tick" ] || mkfifo "$TMP/tick"
	exec 8<>"$TMP/tick"
	(trap - EXIT; sample "$1" "$TMP/most") &
	sampler=$!
	undo+=("kill $sampler")
}
sampled() {
	kill "$sampler"
	wait "$sampler" 2>/dev/null || true
	read -r own all <"$TMP/most"
}

vmstat() { awk -v "key=^$1" '$1 ~ key { n += $2 } END { print n + 0 }' /proc/vmstat; }

# place WHO BYTE: the options of a load that starts at this byte of its file, or of its part of the disk
place() {
	local part=0
	if mountpoint -q "$MNT"; then
		echo "-f $MNT/$1 -O $2"
	else
		case $1 in free) part=1 ;; root) part=2 ;; esac
		echo "-f $DEV -O $((part * PART + $2))"
	fi
}

# those_beside NAME SECONDS THINK_TIME: loads that allocate, read and write, until wait_loads
those_beside() {
	local who dir half=$((PART / 2))
	for who in $WHO; do
		dir=$who
		[ "$who" != root ] || dir=.
		load "$dir" "$1.$who.alloc" -f /dev/null -b -L 8M -o a -s 6M -T "$3" -t "$2"
		# shellcheck disable=SC2046 # words
		load "$dir" "$1.$who.read" $(place "$who" 0) -L "$half" -o r -b -s 256k -p rand -T "$3" -t "$2"
		# shellcheck disable=SC2046
		load "$dir" "$1.$who.write" $(place "$who" "$half") -L "$half" -o w -b -s 256k -T "$3" -t "$2"
	done
}

# worst NAME WHAT KEY: the worst value of all loads beside
worst() {
	local who n most=0
	for who in $WHO; do
		n=$(val "$1.$who.$2" "$3")
		most=$((n > most ? n : most))
	done
	echo "$most"
}

# show NAME: prints the results of the loads beside
show() {
	local what
	for what in alloc read write; do
		note "$1: $what took $(worst "$1" $what p50_ns) ns (p50)," \
			"$(worst "$1" $what p99_ns) (p99), $(worst "$1" $what max_ns) (max)"
	done
}
