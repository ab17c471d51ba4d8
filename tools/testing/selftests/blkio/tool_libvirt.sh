#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# blkiotune of libvirt: libvirt itself does not run here. The files that it writes to the group of a domain that is not
# a systemd unit, key by key (vircgroupv1.c, vircgroupv2.c), are written, measured and read back.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_tools.sh
. "$HERE/lib/blkio_tools.sh"

# tune KEY VALUE: a key of blkiotune; a rate of 0 is no limit, a weight of 0 for a device removes that weight
tune() {
	local file value="$DISK $2" key
	case $1 in read_bytes_sec) key=rbps ;; write_bytes_sec) key=wbps ;; read_iops_sec) key=riops ;; write_iops_sec) key=wiops ;; esac
	case $CGV,$1 in
	v1,weight) file=blkio.bfq.weight value=$2 ;;
	v2,weight) file=io.bfq.weight value=$2 ;;
	v1,device_weights) file=blkio.weight_device ;;
	v2,device_weights) file=io.weight ;;
	v1,*) file=$(v1_file $key) ;;
	v2,*)
		file=io.max value="$DISK $key=$2"
		[ "$2" != 0 ] || value="$DISK $key=max"
		;;
	esac
	# libvirt writes no newline
	printf %s "$value" >"$CG/$DOMAIN/$file"
}

# rate TEXT KEY OPTION...: 80 I/Os of 64 KiB at 3 MB/s, and without a wait after the limit is removed
rate() {
	local text=$1 key=$2
	shift 2
	DOMAIN=heavy
	tune "$key" 3000000
	load heavy rate -f "$DEV" -s 64k -n 80 "$@"
	wait_loads
	check "$text: the group has the rate" took rate "$(paced 65536 80 3000000)"
	tune "$key" 0
	load heavy rate -f "$DEV" -s 64k -n 80 "$@"
	wait_loads
	check "$text of 0: the group has no limit" in_range $(($(val rate end_ns) - $(val rate start_ns))) 1 100000000
}

# iops TEXT KEY OPTION...: I/Os at 100 a second
iops() {
	local text=$1 key=$2
	shift 2
	DOMAIN=heavy
	tune "$key" 100
	load heavy iops -f "$DEV" -s 4k -d 4 -t 2 "$@"
	wait_loads
	check "$text: the group has the rate" within "$(val iops ios)" 200 10000
	tune "$key" 0
}

# shares TEXT: the two domains, with weights 1:3
shares() {
	start_soon
	load light light -f "$DEV" -s 4k -p rand -d 16 -t 6
	load heavy heavy -f "$DEV" -s 4k -p rand -d 16 -t 6 -S 2
	wait_loads
	check "$1" parts light heavy 750
}

# set_both KEY LIGHT HEAVY: sets the weights of both domains
set_both() {
	DOMAIN=light
	tune "$1" "$2"
	DOMAIN=heavy
	tune "$1" "$3"
}

domains() {
	local list=io.weight head="default 300"
	group light heavy
	null_dev "fast$HIERARCHY" memory_backed=1 size=256 completion_nsec=20000
	DISK=$(devno "$DEV")
	rate read_bytes_sec read_bytes_sec
	rate write_bytes_sec write_bytes_sec -o w
	iops read_iops_sec read_iops_sec
	iops write_iops_sec write_iops_sec -o w
	null_dev "slow$HIERARCHY" completion_nsec=4000000 hw_queue_depth=8
	DISK=$(devno "$DEV")
	set_both weight 100 300
	shares "weight 100 and 300: shares"
	set_both weight 300 300
	set_both device_weights 200 600
	shares "device_weights 200 and 600: shares"
	if [ "$CGV" = v1 ]; then list=blkio.weight_device head=; fi
	check "device_weights: libvirt reads back what it wrote" equal "$(cat "$CG/heavy/$list")" "${head:+$head
}$DISK 600"
	set_both device_weights 0 0
	check "device_weights of 0: no weight for a device is left" equal "$(cat "$CG/heavy/$list")" "$head"
}

plan 20
on_each domains v1 v2
