#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# LXC: keys in the configuration of a container, lxc-execute, lxc-start, and lxc-cgroup on a running container.
# configs: uml-tools-long
# root: bookworm
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_tools.sh"
the_cgroup "${1:-v2}"
# shellcheck source=lib/blkio_container.sh
. "$HERE/lib/blkio_container.sh"
case $CGV in
v1) PREFIX=lxc.cgroup.blkio DEVICE_WEIGHT=blkio.weight_device ;;
v2) PREFIX=lxc.cgroup2.io DEVICE_WEIGHT=io.weight ;;
esac

# container NAME [FILE VALUE]: writes the configuration of a container, with VALUE for a file of its group
container() {
	mkdir -p "$TMP/lxc/$1"
	cat >"$TMP/lxc/$1/config" <<-TEXT
		lxc.uts.name = $1
		lxc.net.0.type = none
		lxc.rootfs.path = dir:$ROOTFS
		lxc.autodev = 0
		lxc.mount.entry = /usr usr none ro,bind 0 0
		lxc.mount.entry = /dev dev none rw,rbind 0 0
		lxc.mount.entry = $(dirname "$LOAD") load none ro,bind 0 0
		lxc.mount.entry = $TMP tmp none rw,bind 0 0
	TEXT
	[ $# = 1 ] || echo "$PREFIX.${2#*.} = $3" >>"$TMP/lxc/$1/config"
}

# limited NAME KEY=VALUE: writes the configuration of a container with a limit
limited() {
	case $CGV in
	v1) container "$1" "$(v1_file "${2%%=*}")" "$DISK ${2#*=}" ;;
	v2) container "$1" io.max "$DISK $2" ;;
	esac
}

# execute NAME OPTION...: runs a load in the container, whose output is in NAME.json
execute() {
	local name=$1
	shift
	lxc-execute -P "$TMP/lxc" -n "$name" -- /bin/sh -c "exec /load/blkio_load $* >/tmp/$name.json" 2>"$TMP/$name.err" ||
		cat "$TMP/$name.err"
}

rates() {
	limited reads rbps=3000000
	execute reads -f "$DEV" -s 64k -n 80
	check "a limit of bytes read in the configuration: rate" took reads "$(paced 65536 80 3000000)"
	limited writes wbps=3000000
	execute writes -f "$DEV" -o w -s 64k -n 80
	check "a limit of bytes written in the configuration: rate" took writes "$(paced 65536 80 3000000)"
	limited rops riops=50
	execute rops -f "$DEV" -s 4k -d 4 -t 2
	check "a limit of read I/Os in the configuration: rate" within "$(val rops ios)" 100 10000
	limited wops wiops=100
	execute wops -f "$DEV" -o w -s 4k -d 4 -t 2
	check "a limit of written I/Os in the configuration: rate" within "$(val wops ios)" 200 10000
}

# cgroup_set FILE VALUE: sets a file of the running container
cgroup_set() { lxc-cgroup -P "$TMP/lxc" -n live "$1" "$2"; }

# bps_is TEXT BYTES: the running container does this many bytes a second, over two seconds
bps_is() {
	local before
	before=$(counted lxc.payload.live Read)
	sleep 2
	check "$1" within $((($(counted lxc.payload.live Read) - before) / 2)) "$2" 35000
}

live() {
	local file=io.max rate="$DISK rbps=" none=max
	if [ "$CGV" = v1 ]; then file=$(v1_file rbps) rate="$DISK " none=0; fi
	limited live rbps=2000000
	lxc-start -P "$TMP/lxc" -n live -d -- /load/blkio_load -f "$DEV" -s 64k -t 30
	lxc-wait -P "$TMP/lxc" -n live -s RUNNING
	sleep 0.5
	bps_is "lxc-start: rate" 2000000
	cgroup_set "$file" "${rate}5000000"
	bps_is "lxc-cgroup sets another: rate" 5000000
	cgroup_set "$WEIGHT" 300
	check "lxc-cgroup sets a weight" equal "$(sed 's/default //' "$CG/lxc.payload.live/$WEIGHT")" 300
	cgroup_set "$file" "$rate$none"
	check "lxc-cgroup removes the limit" equal "$(cat "$CG/lxc.payload.live/$file")" ""
	lxc-stop -P "$TMP/lxc" -n live -k
}

# shares TEXT FILE VALUE VALUE: two containers with weights 1:3
shares() {
	container light "$2" "$3"
	container heavy "$2" "$4"
	execute light -f "$DEV" -s 4k -p rand -d 16 -t 6 &
	execute heavy -f "$DEV" -s 4k -p rand -d 16 -t 6 -S 2
	wait
	check "$1" parts light heavy 750
}

plan 10
null_dev fast memory_backed=1 size=256 completion_nsec=20000
DISK=$(devno "$DEV")
rootfs
rates
live
null_dev slow completion_nsec=4000000 hw_queue_depth=8
DISK=$(devno "$DEV")
shares "$WEIGHT = 100 and 300: shares" "$WEIGHT" 100 300
shares "$DEVICE_WEIGHT for the disk, 100 and 300: shares" "$DEVICE_WEIGHT" "$DISK 100" "$DISK 300"
