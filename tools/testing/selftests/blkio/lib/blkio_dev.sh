# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by blkio_lib.sh: devices to set limits on. Each function makes a device and sets DEV to its
# node; the device is removed at the end of the test.
DEV=
NULLB=/sys/kernel/config/nullb

# devno NODE: the numbers of a device as MAJOR:MINOR
devno() {
	local node
	node=$(readlink -f "$1")
	cat "/sys/class/block/${node##*/}/dev"
}

# null_dev NAME [KEY=VALUE...]: a null_blk disk of 1 GiB that takes 0.1 ms for an I/O and does 64 at
# a time; KEYs are its configfs attributes
null_dev() {
	local dir=$NULLB/$1 name=$1 pair
	shift
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || true
	[ -d $NULLB ] || modprobe null_blk nr_devices=0 2>/dev/null || true
	[ -d $NULLB ] || skip_all "the kernel has no null_blk with configfs"
	mkdir "$dir"
	undo+=("echo 0 >$dir/power; rmdir $dir")
	for pair in size=1024 irqmode=2 completion_nsec=100000 hw_queue_depth=64 "$@" power=1; do
		echo "${pair#*=}" >"$dir/${pair%%=*}"
	done
	DEV=/dev/$name
}

# null_off NAME: the disk is removed, as if it were pulled
null_off() { echo 0 >"$NULLB/$1/power"; }

# null_gone NAME: the disk and the memory behind it are removed
null_gone() { null_off "$1" && rmdir "$NULLB/$1"; }

# serial_dev N MIB NS [NS_PER_MIB [LINK_NS]]: /dev/nbdN, which accepts 128 I/Os and does them one after the
# other; see blkio_nbd.py
serial_dev() {
	local i
	DEV=/dev/nbd$1
	[ -b "$DEV" ] || modprobe nbd 2>/dev/null || skip_all "the kernel has no nbd"
	python3 "$HERE/lib/blkio_nbd.py" "$DEV" "${@:2}" &
	undo+=("python3 $HERE/lib/blkio_nbd.py -d $DEV")
	for ((i = 0; i < 100; i++)); do
		[ "$(cat "/sys/block/${DEV##*/}/size")" = 0 ] || break
		sleep 0.01
	done
}

# loop_dev BACKING_MIB: a loop device over a file in memory
loop_dev() {
	local file
	file=$(mktemp "$TMP/loop-XXXXXX")
	truncate -s "$1M" "$file"
	DEV=$(losetup --find --show "$file")
	undo+=("losetup -d $DEV")
}

# dm_dev NAME TABLE
dm_dev() {
	command -v dmsetup >/dev/null || return 1
	[ -e /dev/mapper/control ] || dmsetup --noudevsync mknodes
	dmsetup --noudevsync --noudevrules create "$1" --table "$2"
	undo+=("dmsetup --noudevsync --noudevrules remove --retry $1")
	DEV=/dev/dm-$(dmsetup info -c --noheadings -o minor "$1")
}

# sectors NODE: the size of a device in units of 512 bytes
sectors() { cat "/sys/class/block/${1##*/}/size"; }

# md_dev NAME LEVEL MEMBER...
md_dev() {
	local name=$1 level=$2 bitmap=--bitmap=none
	shift 2
	[ "$level" != raid0 ] || bitmap=--chunk=64
	command -v mdadm >/dev/null || return 1
	MDADM_NO_UDEV=1 mdadm --create "/dev/$name" --run --assume-clean --quiet --metadata=1.2 \
		$bitmap "--level=$level" "--raid-devices=$#" "$@" 2>"$TMP/mdadm.log" || {
		sed 's/^/# /' "$TMP/mdadm.log"
		return 1
	}
	undo+=("MDADM_NO_UDEV=1 mdadm --stop /dev/$name")
	DEV=/dev/$name
}

# drop_cache: drops clean pages, so that buffered reads reach the device
drop_cache() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

# scsi_dev NS: a disk of 1 GiB that takes a random time up to NS for an I/O and does 64 at a time
scsi_dev() {
	local driver=/sys/bus/pseudo/drivers/scsi_debug disk before pair i
	[ -d $driver ] || modprobe scsi_debug add_host=0 host_max_queue=64 fake_rw=1 2>/dev/null || true
	[ "$(cat $driver/add_host 2>/dev/null)" = 0 ] || skip_all "the kernel has no scsi_debug without a real SCSI host"
	for pair in "ndelay $1" "random 1" "virtual_gb 1"; do echo "${pair#* }" >"$driver/${pair%% *}"; done
	before=$(ls /sys/block)
	echo 1 >$driver/add_host
	undo+=("echo -1 >$driver/add_host")
	for ((i = 0; i < 100; i++)); do
		disk=$(comm -13 <(echo "$before") <(ls /sys/block))
		[ -z "$disk" ] || break
		sleep 0.1
	done
	DEV=/dev/$disk
	[ -b "$DEV" ] || bail "scsi_debug has no disk"
}
