#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# systemd on cgroup v1: unit properties, and the limits and weights that the kernel applies. It writes no limits in IOPS
# there, and multiplies weights by five, up to 1000.
# configs: uml-tools uml-tools-long
# root: bookworm
# args: systemd.unified_cgroup_hierarchy=0
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_tools.sh"
# shellcheck source=lib/blkio_systemd.sh
. "$HERE/lib/blkio_systemd.sh"

limits() {
	capped "IOReadBandwidthMax=: rate" "IOReadBandwidthMax=$DEV 3M" -f "$DEV"
	capped "IOWriteBandwidthMax=: rate" "IOWriteBandwidthMax=$DEV 3M" -f "$DEV" -o w
	capped "BlockIOReadBandwidth=: rate" "BlockIOReadBandwidth=$DEV 3M" -f "$DEV"
	capped "the path of a file means its disk: rate" "IOWriteBandwidthMax=/mnt/file 3M" -f /mnt/file -o w
}

# systemd-cgtop shows the bytes that a service reads
top_shows() {
	local shown
	END=--no-block
	service live "IOReadBandwidthMax=$DEV 1M" -- -f "$DEV" -s 64k -t 10
	END=--wait
	systemd-cgtop -b -n 3 -d 2 --raw >"$TMP/top"
	systemctl stop live
	shown=$(awk '$1 ~ /live.service$/ { n = $5 } END { print n }' "$TMP/top")
	grep live.service "$TMP/top"
	within "$shown" 1000000 70000
}

# the service itself writes a limit in I/Os: systemd has no property for it on v1
iops() {
	local file=blkio.throttle.read_iops_device
	END=--no-block
	service asks "IOReadIOPSMax=$DEV 100" -- -f "$DEV" -s 4k -t 3
	sleep 1
	check "IOReadIOPSMax=: systemd writes nothing" equal "$(cat "$CG/system.slice/asks.service/$file" && echo end)" end
	systemctl stop asks
	END=--wait
	cat >/run/systemd/system/writes.service <<-TEXT
		[Service]
		Type=oneshot
		IOAccounting=yes
		ExecStartPre=+/bin/sh -c 'echo $DISK 100 >$CG/system.slice/%n/$file'
		ExecStart=$LOAD -f $DEV -s 4k -d 8 -t 4
		StandardOutput=truncate:$TMP/writes.json
	TEXT
	systemctl daemon-reload
	systemctl start writes
	check "a limit in I/Os written by ExecStartPre=: rate" within "$(val writes ios)" 400 10000
}

plan 19
the_cgroup v1
disks
limits
iops
live blkio.throttle.read_bps_device "$DISK 2000000"
check "systemd-cgtop shows the bytes that a service reads" top_shows
umount /mnt
null_dev slow completion_nsec=4000000 hw_queue_depth=8
DISK=$(devno "$DEV")
for scheduler in none mq-deadline; do
	echo $scheduler >"/sys/block/${DEV##*/}/queue/scheduler"
	shared "IOWeight=50 and 150, $scheduler: shares" IOWeight=50 IOWeight=150
	shared "IODeviceWeight=50 and 150, $scheduler: shares" "IODeviceWeight=$DEV 50" "IODeviceWeight=$DEV 150"
done
shared "BlockIOWeight=200 and 600: shares" BlockIOWeight=200 BlockIOWeight=600
check "systemd has logged no errors about its writes" equal "$(journalctl -q -b | grep -c 'Failed to set')" 0
