# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are for tool_disk_check.sh
# Sourced by tool_disk_check.sh after blkio_lib.sh: the cgroup hierarchy of the running machine, whether DISK may be
# used, and a description of it.

# refuse CAUSE NEXT_STEP: ends the test with an error
refuse() {
	printf 'error: %s\n next: %s\n' "$1" "$2" >&2
	exit 1
}

# queue FILE: of the disk's queue
queue() { cat "/sys/class/block/$NAME/queue/$1" 2>/dev/null || echo '?'; }

# the_hierarchy: CG is the one that the machine has the block controller in, and stays
the_hierarchy() {
	undo+=(leave_hierarchy)
	if [ "$(awk '$1 == "blkio" && $2 > 0 { print $1 }' /proc/cgroups)" = blkio ]; then
		CGV=v1 CG=$(findmnt -n -o TARGET -t cgroup -O blkio | head -n 1)
	else
		CGV=v2 CG=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
	fi
	[ -n "$CG" ] || refuse "no cgroup hierarchy with the block controller is mounted" "mount -t cgroup2 none /sys/fs/cgroup"
}

# leave_hierarchy: it is as it was, and cleanup() does not take it down
leave_hierarchy() {
	local i
	for ((i = ${#groups[@]} - 1; i >= 0; i--)); do rmdir "${groups[i]}"; done
	groups=() CG='' CGV=''
}

need_ioband() {
	local root=$CG/io.ioband
	[ "$CGV" = v2 ] || root=$CG/blkio.ioband
	[ ! -e "$root" ] || return 0
	if [ -d /sys/kernel/tracing/events/ioband ]; then
		refuse "ioband does not have the files of limits and weights in this kernel ($(uname -r))" \
			"boot it with ioband=on on its command line"
	fi
	refuse "this kernel ($(uname -r)) has no ioband" "make deb builds one that does, from the configuration of this machine"
}

# need_controller: groups below the root have the files; v2
need_controller() {
	[ "$CGV" = v2 ] || return 0
	! grep -qw io "$CG/cgroup.subtree_control" || return 0
	echo +io >"$CG/cgroup.subtree_control"
	undo=("echo -io >$CG/cgroup.subtree_control" "${undo[@]}")
}

# claim: nobody can mount the disk or build on it until the end; fails if somebody has
claim() {
	local i
	python3 -c 'import os, signal, sys
os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)
print("claimed", flush=True)
signal.pause()' "$DISK" >"$TMP/claim" 2>&1 &
	undo+=("kill $!; wait $!")
	for ((i = 0; i < 100; i++)); do
		[ ! -s "$TMP/claim" ] || break
		sleep 0.1
	done
	grep -qx claimed "$TMP/claim"
}

# users: who uses the disk or a partition of it: where it is mounted, swap, what is built on it
users() {
	lsblk -nro MOUNTPOINT "$DISK" | sed -n 's/^\(.\+\)$/\1/p'
	find "/sys/class/block/$NAME/" -maxdepth 3 -path '*/holders/*' -printf '%f\n'
}

# signatures: what wipefs finds on the disk
signatures() { wipefs -n --noheadings --output TYPE "$DISK"; }

need_disk() {
	[ -n "${DISK:-}" ] || refuse "which disk?" "DISK=/dev/NAME; lsblk lists them"
	[ -b "$DISK" ] || refuse "$DISK is no block device" "lsblk lists them"
	DISK=$(readlink -f "$DISK") NAME=${DISK##*/}
	[ ! -e "/sys/class/block/$NAME/partition" ] || refuse "$DISK is a partition, and limits are of whole disks" \
		"DISK=/dev/$(basename "$(dirname "$(readlink -f "/sys/class/block/$NAME")")")"
	[ "$(queue zoned)" = none ] || [ "$(queue zoned)" = '?' ] || refuse "$DISK is zoned, and weights do not act on it" "take another disk"
	[ "$(sectors "$DISK")" -ge 131072 ] || refuse "$DISK has less than 64 MiB" "take another disk"
}

# may_use: what is in use is never written to, and what has data on it only with ERASE=yes
may_use() {
	local by found write=no
	[ "${ERASE:-}" != yes ] || write=yes
	by=$(users | sort -u | paste -sd' ')
	found=$(signatures | sort -u | paste -sd' ') || refuse "wipefs cannot look at $DISK" "wipefs -n $DISK"
	claim || by=${by:-a program that has it for itself}
	IN_USE=$by
	if [ "$write" = yes ]; then
		[ -z "$by" ] || refuse "$DISK is in use: $by" "free it first; ERASE=yes does not write to a disk in use"
		[ "$(cat "/sys/class/block/$NAME/ro")" = 0 ] || refuse "$DISK is read-only" "blockdev --setrw $DISK"
	elif [ "${READ:-}" != yes ]; then
		[ -z "$by" ] || refuse "$DISK is in use: $by" \
			"take another disk; or READ=yes only reads this one, and what others do there disturbs the figures"
		[ -z "$found" ] || refuse "$DISK has something on it: $found" \
			"READ=yes only reads it, ERASE=yes writes to all of it"
	fi
}

# describe: machine, kernel and disk; no serial numbers, no names of machines
describe() {
	local device=/sys/class/block/$NAME/device
	printf '%-16s %s\n' \
		date "$(date -u +%F)" \
		kernel "$(uname -srm)" \
		'command line' "$(grep -o 'ioband=[a-z]*' /proc/cmdline || echo 'no ioband=')" \
		machine "$(cat /sys/class/dmi/id/product_name 2>/dev/null || echo '?')$(grep -qw hypervisor /proc/cpuinfo && echo ', virtual')" \
		CPUs "$(nproc), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" \
		'memory, MiB' "$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)" \
		hierarchy "cgroup $CGV" \
		disk "$NAME, $(cat "$device/model" 2>/dev/null || echo 'no model'), $(($(sectors "$DISK") / 2048)) MiB" \
		driver "$(basename "$(readlink -f "$device/driver" 2>/dev/null || echo '?')")" \
		scheduler "$(queue scheduler)" \
		queue "rotational=$(queue rotational) nr_requests=$(queue nr_requests) queues=$(find "/sys/class/block/$NAME/mq" \
			-mindepth 1 -maxdepth 1 2>/dev/null | wc -l) max_sectors_kb=$(queue max_sectors_kb)" \
		'' "logical_block_size=$(queue logical_block_size) write_cache=$(queue write_cache) wbt_lat_usec=$(queue wbt_lat_usec)" \
		'used by' "${IN_USE:-nobody else}" \
		'set before' "$(grep "^$(devno "$DISK") " "$CG"/*.ioband || echo 'nothing in io.ioband')"
}
