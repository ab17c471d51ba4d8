#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# nvme multipath with limits and weights: bios to the visible disk go to the disks of its paths, which are hidden. A
# path is removed under load, and its bios go to the other one. No I/O is lost, and all data is right.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

SIZE=$((16 * MiB))
NVMET=/sys/kernel/config/nvmet
NQN=blkio

# target BACKING: a subsystem with this backing device, on two ports of the loop transport
target() {
	local port
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
	mkdir "$NVMET/subsystems/$NQN"
	undo+=("rmdir $NVMET/subsystems/$NQN")
	echo 1 >"$NVMET/subsystems/$NQN/attr_allow_any_host"
	mkdir "$NVMET/subsystems/$NQN/namespaces/1"
	undo+=("rmdir $NVMET/subsystems/$NQN/namespaces/1")
	echo -n "$1" >"$NVMET/subsystems/$NQN/namespaces/1/device_path"
	echo 1 >"$NVMET/subsystems/$NQN/namespaces/1/enable"
	for port in 1 2; do
		mkdir "$NVMET/ports/$port"
		undo+=("rmdir $NVMET/ports/$port")
		echo loop >"$NVMET/ports/$port/addr_trtype"
		echo "$port" >"$NVMET/ports/$port/addr_traddr"
		ln -s "$NVMET/subsystems/$NQN" "$NVMET/ports/$port/subsystems/$NQN"
		undo+=("rm -f $NVMET/ports/$port/subsystems/$NQN")
	done
}
# connect PORT: connects to the subsystem by this port
connect() {
	echo "transport=loop,keep_alive_tmo=600,nqn=$NQN,traddr=$1,hostnqn=$NQN,hostid=11111111-1111-1111-1111-111111111111" \
		>/dev/nvme-fabrics
}
disconnect() { echo 1 >"/sys/class/nvme/$1/delete_controller"; }
# ctrls: the names of the controllers
ctrls() { find /sys/class/nvme -mindepth 1 -name 'nvme*' -printf '%f\n' | sort; }
disconnect_all() { local ctrl; for ctrl in $(ctrls); do disconnect "$ctrl"; done; }

paths() { [ "$(find /sys/block -maxdepth 1 -name 'nvme*c*n*' | wc -l)" = "$1" ]; }

# Each of the two paths is removed in turn, and returns.
one_path_goes() {
	local round ctrl
	for round in 1 2 3 4; do
		ctrl=$(ctrls | head -n 1)
		disconnect "$ctrl"
		wait_for "one path" paths 1 || return 1
		sleep 0.5
		connect $((round % 2 + 1))
		wait_for "two paths" paths 2 || return 1
		sleep 0.5
	done
}

# scenario TEXT: two points
scenario() {
	two_loads
	sleep 0.5
	check "$1: paths are removed and return under load" one_path_goes
	check "$1: no I/O is lost" end_two
}

# The last path is removed while bios are held on the disk above.
all_go() {
	two_loads
	wait_for "bios held" holds "$DISK" 2 || return 1
	disconnect_all
	wait_for "no path" paths 0 || return 1
	stop one two
	conserved one two
}

[ -e /dev/nvme-fabrics ] || skip_all "no nvme over the loop transport"
plan 8
leaks_begin
mount_cgroup v2
group a b
smp_null smpnv size=48
target /dev/smpnv
undo+=(disconnect_all)
connect 1
connect 2
wait_for "two paths" paths 2
DISK=$(basename "$(find /sys/block -maxdepth 1 -name 'nvme*n*' ! -name 'nvme*c*n*')") DEV=/dev/$DISK
check "there is one visible disk with two paths" test -b "$DEV"
cap a "$DEV" "wbps=$((8 * MiB))"
cap b "$DEV" wiops=200
scenario limits
cap a "$DEV" wbps=max
cap b "$DEV" wiops=max
weight a 600 "$DEV"
scenario weights
cap a "$DEV" wbps=1000
cap b "$DEV" wiops=1
check "all paths are removed while bios are held: all bios end" all_go
umount_cgroup
leak_point
check "the kernel log has no splats" no_splat
