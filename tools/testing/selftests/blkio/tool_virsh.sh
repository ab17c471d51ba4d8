#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# libvirt: <blkiotune> of containers (the LXC driver of libvirtd), and virsh blkiotune while they run. If a disk has a
# weight of its own, libvirt 11.3 gives systemd the path of io.weight in place of that of the disk, so systemd sets nothing;
# systemctl set-property on the scope of the domain does. tool_libvirt.sh has v1, and domains that are no units of systemd.
# configs: uml-tools-long
# root: trixie
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_tools.sh"
the_cgroup v2
# shellcheck source=lib/blkio_container.sh
. "$HERE/lib/blkio_container.sh"
export LIBVIRT_DEFAULT_URI=lxc:///system

# start_libvirt: starts the daemons, and waits until libvirtd answers
start_libvirt() {
	local i
	/usr/sbin/virtlogd -d || bail "virtlogd does not start"
	/usr/sbin/libvirtd -d || bail "libvirtd does not start"
	for ((i = 0; i < 100; i++)); do
		! virsh version >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	bail "libvirtd does not answer"
}

# domain NAME TUNE OPTION...: starts a container that runs a load, whose output is NAME.json; TUNE: what is in <blkiotune>
domain() {
	local name=$1 tune=$2
	shift 2
	cat >"$TMP/$name.xml" <<-XML
		<domain type='lxc'>
		  <name>$name</name><memory unit='MiB'>64</memory>
		  <os><type>exe</type><init>/bin/sh</init><initarg>-c</initarg><initarg>exec /load/blkio_load $* >/out/$name.json</initarg></os>
		  <blkiotune>$tune</blkiotune>
		  <devices>
		    <filesystem><source dir='$ROOTFS'/><target dir='/'/></filesystem>
		    <filesystem><source dir='/usr'/><target dir='/usr'/><readonly/></filesystem>
		    <filesystem><source dir='$(dirname "$LOAD")'/><target dir='/load'/><readonly/></filesystem>
		    <filesystem><source dir='$TMP'/><target dir='/out'/></filesystem>
		    <hostdev mode='capabilities' type='storage'><source><block>$DEV</block></source></hostdev>
		    <console type='pty'/>
		  </devices>
		</domain>
	XML
	virsh create "$TMP/$name.xml" >"$TMP/$name.err" 2>&1 || cat "$TMP/$name.err" "/var/log/libvirt/lxc/$name.log"
}

# ended NAME: waits for a minute at most until the container has ended
ended() {
	local i
	for ((i = 0; i < 600; i++)); do
		virsh domid "$1" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	bail "the domain $1 does not end"
}

# device KEY VALUE: a <device> of <blkiotune>
device() { echo "<device><path>$DEV</path><$1>$2</$1></device>"; }

rates() {
	domain reads "$(device read_bytes_sec 3000000)" -f "$DEV" -s 64k -n 80
	ended reads
	check "read_bytes_sec: a domain has the rate" took reads "$(paced 65536 80 3000000)"
	domain writes "$(device write_bytes_sec 3000000)" -f "$DEV" -o w -s 64k -n 80
	ended writes
	check "write_bytes_sec: a domain has the rate" took writes "$(paced 65536 80 3000000)"
	domain rops "$(device read_iops_sec 100)" -f "$DEV" -s 4k -d 4 -t 2
	ended rops
	check "read_iops_sec: a domain has the rate" within "$(val rops ios)" 200 10000
	domain wops "$(device write_iops_sec 100)" -f "$DEV" -o w -s 4k -d 4 -t 2
	ended wops
	check "write_iops_sec: a domain has the rate" within "$(val wops ios)" 200 10000
}

# bps_is TEXT BYTES: the running domain reads this many bytes a second, over two seconds
bps_is() {
	local before
	before=$(domain_bytes)
	sleep 2
	check "$1" within $((($(domain_bytes) - before) / 2)) "$2" 35000
}
# domain_bytes: prints how many bytes the load of the running domain has read
domain_bytes() { counted "machine.slice/$(scope live)" Read; }

# tuned KEY VALUE: virsh shows this value for the running domain
tuned() { virsh blkiotune live | tee "$TMP/tuned"; [ "$(sed -n "s/^$1 *: *//p" "$TMP/tuned")" = "$2" ]; }

live() {
	domain live "$(device read_bytes_sec 2000000)" -f "$DEV" -s 64k -t 30
	sleep 0.5
	bps_is "a domain runs: rate" 2000000
	virsh blkiotune live --device-read-bytes-sec "$DEV,5000000"
	bps_is "virsh blkiotune sets another limit: rate" 5000000
	virsh blkiotune live --device-write-iops-sec "$DEV,70" --weight 300
	check "virsh blkiotune sets a limit beside it: io.max has both" asked "$CG/machine.slice/$(scope live)/libvirt/io.max" \
		"$DISK rbps=5000000 wbps=max riops=max wiops=70"
	check "virsh blkiotune sets a limit beside it: it shows the new one" tuned device_write_iops_sec "$DEV,70"
	check "virsh blkiotune sets a weight: it shows it" tuned weight 300
	virsh blkiotune live --device-read-bytes-sec "$DEV,0"
	check "virsh blkiotune removes a limit: the rate is above it" above 50000000
	virsh destroy live
	ended live
}

# above BYTES: the running domain reads more bytes than that in a second
above() {
	local before
	before=$(domain_bytes)
	sleep 1
	echo "$(($(domain_bytes) - before)) bytes"
	[ $(($(domain_bytes) - before)) -gt "$1" ]
}

# scope NAME: prints the systemd unit of a running domain
scope() { systemctl list-units --plain --no-legend 'machine-lxc*.scope' | sed -n "s/^\(machine-lxc[^ ]*x2d$1\.scope\) .*/\1/p"; }

# shares TEXT TUNE TUNE [WEIGHT WEIGHT]: two domains that should have the shares 1:3, by weights of the disk if given
shares() {
	local start
	# a container takes some time to start
	start=$(awk '{ printf "%d", $1 + 3 }' /proc/uptime)000000000
	domain light "$2" -f "$DEV" -s 4k -p rand -d 16 -t 6 -a "$start"
	domain heavy "$3" -f "$DEV" -s 4k -p rand -d 16 -t 6 -a "$start" -S 2
	if [ $# = 5 ]; then
		systemctl set-property --runtime "$(scope light)" IODeviceWeight="$DEV $4"
		systemctl set-property --runtime "$(scope heavy)" IODeviceWeight="$DEV $5"
	fi
	ended light
	ended heavy
	check "$1" parts light heavy 750
}

plan 12
start_libvirt
null_dev fast memory_backed=1 size=256 completion_nsec=20000
DISK=$(devno "$DEV")
rootfs
mkdir "$ROOTFS/out"
rates
live
null_dev slow completion_nsec=4000000 hw_queue_depth=8
DISK=$(devno "$DEV")
shares "<weight> 200 and 600: shares" "<weight>200</weight>" "<weight>600</weight>"
shares "IODeviceWeight= of the scopes, 200 and 600: shares" "" "" 200 600
