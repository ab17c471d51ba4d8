#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The guest's part of scripts/check-deb: tests that the kernel of the package runs, and that ioband acts, or, with
# ioband=off, that mainline's controllers have their files. The processor is emulated: so the test asserts only bounds
# that hold however slow it is, and which of two loads does more.
# timeout: 900
. "$(dirname "$0")/guard.sh"
HERE=$(cd "$(dirname "$0")/../../tools/testing/selftests/blkio" && pwd)
# shellcheck source=../../tools/testing/selftests/blkio/lib/blkio_lib.sh
. "$HERE/lib/blkio_lib.sh"
# shellcheck source=../../tools/testing/selftests/blkio/lib/blkio_tools.sh
. "$HERE/lib/blkio_tools.sh"
# shellcheck source=../../tools/testing/selftests/blkio/lib/blkio_systemd.sh
. "$HERE/lib/blkio_systemd.sh"

installed() { dpkg -S "/boot/vmlinuz-$(uname -r)" "/lib/modules/$(uname -r)/modules.dep"; }

# limited: succeeds if 60 I/Os of 64 KiB at 1 MB/s took no less time than the limit demands
limited() {
	service limited "IOReadBandwidthMax=$DEV 1M" -- -f "$DEV" -s 64k -n 60
	in_range $(($(val limited end_ns) - $(val limited start_ns))) "$(paced 65536 60 1000000)" 60000000000
}

# free: succeeds if the same I/Os without a limit take less than half of that time
free() {
	service free -- -f "$DEV" -s 64k -n 60
	in_range $(($(val free end_ns) - $(val free start_ns))) 0 $(($(paced 65536 60 1000000) / 2))
}

# in_order: succeeds if of two services at the same time the one with three times the weight did more
in_order() {
	END=--no-block
	service light IOWeight=100 -- -f "$DEV" -s 4k -p rand -d 16 -t 8
	service heavy IOWeight=300 -- -f "$DEV" -s 4k -p rand -d 16 -t 8 -S 2
	END=--wait
	sleep 12
	echo "$(val light ios) and $(val heavy ios) I/Os"
	(($(val light ios) > 0 && $(val heavy ios) > 2 * $(val light ios)))
}

mode=on points=8
! grep -qw ioband=off /proc/cmdline || mode=off points=6
plan $points
the_cgroup v2
check "the kernel that runs and its modules are of a package" installed
check "systemd is the first process" equal "$(cat /proc/1/comm)" systemd
check "the name of the kernel ends with -ioband" equal "$(uname -r | sed 's/.*-//')" ioband
check "a module of the package is loaded" modprobe null_blk nr_devices=0
if [ $mode = off ]; then
	check "ioband=off: ioband has no file" test ! -e "$CG/io.ioband"
	check "ioband=off: iocost has its files" ls "$CG/io.cost.qos" "$CG/io.cost.model"
	exit
fi
check "ioband=on: ioband has its file, io.ioband" ls "$CG/io.ioband"
null_dev slow completion_nsec=20000000 hw_queue_depth=8
check "a limit that systemd sets holds" limited
check "without the limit the same I/Os take less than half the time" free
check "weights that systemd sets act: the service with three times the weight does at least twice as much" in_order
