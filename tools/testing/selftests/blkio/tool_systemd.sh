#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# systemd: unit properties for services, scopes and slices, the limits and weights that the kernel applies, and changes
# under load.
# configs: uml-tools uml-tools-long
# root: bookworm
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_tools.sh"
# shellcheck source=lib/blkio_systemd.sh
. "$HERE/lib/blkio_systemd.sh"

limits() {
	local name
	capped "IOReadBandwidthMax=: rate" "IOReadBandwidthMax=$DEV 3M" -f "$DEV"
	capped "IOWriteBandwidthMax=: rate" "IOWriteBandwidthMax=$DEV 3M" -f "$DEV" -o w
	systemd-run -q --scope --unit=scoped -p "IOReadBandwidthMax=$DEV 3M" "$LOAD" -f "$DEV" -s 64k -n 120 >"$TMP/scoped.json"
	check "IOReadBandwidthMax= of a scope: rate" took scoped "$(paced 65536 120 3000000)"
	capped "the path of a file means its disk: rate" "IOWriteBandwidthMax=/mnt/file 3M" -f /mnt/file -o w
	service many "IOReadIOPSMax=$DEV 100" -- -f "$DEV" -s 4k -d 8 -t 4
	check "IOReadIOPSMax=: rate" within "$(val many ios)" 400 10000
	# a limit of a slice applies to all units in it
	systemctl set-property --runtime both.slice "IOReadBandwidthMax=$DEV 4M"
	END=--no-block
	for name in one two; do service $name Slice=both.slice -- -f "$DEV" -s 64k -t 4; done
	sleep 5
	check "IOReadBandwidthMax= of a slice: two services in it have the limit together" \
		within $((($(val one bytes) + $(val two bytes)) / 4)) 4000000 20000
	END=--wait
}

weights() {
	local scheduler
	for scheduler in none mq-deadline; do
		echo $scheduler >"/sys/block/${DEV##*/}/queue/scheduler"
		shared "IOWeight=100 and 300, $scheduler: shares" IOWeight=100 IOWeight=300
		shared "IODeviceWeight=50 and 150, $scheduler: shares" "IODeviceWeight=$DEV 50" "IODeviceWeight=$DEV 150"
	done
	systemctl set-property --runtime low.slice IOWeight=50
	systemctl set-property --runtime high.slice IOWeight=150
	shared "slices with IOWeight=50 and 150: shares" Slice=low.slice Slice=high.slice
}

# what systemd removes again when properties are reset, and what it leaves
resets() {
	local dir=$CG/system.slice/idle.service
	systemd-run -q --unit=idle -p IOWeight=300 -p "IODeviceWeight=$DEV 250" sleep 1000
	check "IOWeight= and IODeviceWeight=: io.weight has both" equal "$(cat "$dir/io.weight")" "default 300
$DISK 250"
	systemctl set-property --runtime idle IOWeight=
	check "IOWeight= reset: io.weight has the default" equal "$(head -n 1 "$dir/io.weight")" "default 100"
	systemctl set-property --runtime idle IODeviceWeight=
	check "IODeviceWeight= reset: systemd writes nothing, and the line stays" asked "$dir/io.weight" "$DISK 250"
	echo "$DISK default" >"$dir/io.weight"
	check "IODeviceWeight= reset: the line can be removed by hand" equal "$(cat "$dir/io.weight")" "default 100"
	systemctl stop idle
}

# a user's service with a delegated group sets limits for groups below it
delegated() {
	chmod 755 "$TMP"
	cat >"$TMP/below" <<-TEXT
		cd "$CG\$(sed s/0:://\;q /proc/self/cgroup)" && mkdir manager load && echo \$\$ >manager/cgroup.procs &&
		echo +io >cgroup.subtree_control && echo "$DISK rbps=3000000" >load/io.max && cat load/io.max
	TEXT
	systemd-run -q --wait --pipe -p User=nobody -p Delegate=io bash "$TMP/below" >"$TMP/delegated" 2>&1 || true
	check "a group delegated to a user: limits that the user sets below it apply" \
		asked "$TMP/delegated" "$DISK rbps=3000000 wbps=max riops=max wiops=max"
}

plan 23
the_cgroup v2
disks
limits
live io.max "$DISK rbps=2000000 wbps=max riops=max wiops=max"
resets
delegated
umount /mnt
null_dev slow completion_nsec=4000000 hw_queue_depth=8
DISK=$(devno "$DEV")
weights
check "systemd has logged no errors about its writes" equal "$(journalctl -q -b | grep -c 'Failed to set')" 0
