#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# With ioband=limits the files of limits belong to ioband, with its strict parsing and even spacing;
# the files of weights belong to mainline's controllers, which work.
# configs: uml-vt
# args: ioband=limits
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_abi.sh"

grep -qw ioband=limits /proc/cmdline || skip_all "not booted with ioband=limits"
plan 34
check "with ioband=limits the kernel log says that limits are on, and not weights" \
	equal "$(dmesg | grep -o 'ioband: [a-z]* on$')" "ioband: limits on"
odd_devices
DEV=/dev/nb0
RATE=$((3 * MiB)) SEC=10
# 64 KiB reads at depth 1: the first is dispatched at once, the others one each 64 KiB / R
SPACING=$((64 * KiB * 1000000000 / RATE)) IOS=$((SEC * RATE / (64 * KiB)))

# exact WHAT: group g has exactly RATE on DEV and even spacing; blk-throttle would go in steps
exact() {
	cap g "$DEV" rbps=$RATE
	start_soon
	load g r -f "$DEV" -s 64k -t $SEC -w 1
	wait_loads
	check "$1: a stream at its limit does the ideal number of I/Os" in_range "$(val r ios)" $IOS $((IOS + 1))
	check "$1: the latency of a stream at its limit, p50, is the spacing" within "$(val r p50_ns)" $SPACING 1000
	check "$1: the latency of a stream at its limit, p99, is the spacing" within "$(val r p99_ns)" $SPACING 1000
}

mount_cgroup v1
group g
for file in read_bps_device write_bps_device read_iops_device write_iops_device \
	io_service_bytes io_service_bytes_recursive io_serviced io_serviced_recursive; do
	check "v1: blkio.throttle.$file exists" test -f "$CG/g/blkio.throttle.$file"
done
refused EINVAL "$CG/g/blkio.throttle.read_bps_device" "$DISK 10M"
taken "$CG/g/blkio.throttle.read_iops_device" "$DISK 4294967297" "$DISK 4294967297"
taken "$CG/g/blkio.throttle.read_iops_device" "$DISK 0" ""
check "v1: blkio.weight does not exist" equal "$(ls -d "$CG/g/blkio.weight"* 2>/dev/null)" ""
taken "$CG/g/blkio.bfq.weight" 300 300
exact v1
umount_cgroup

mount_cgroup v2
group g
refused EINVAL "$CG/g/io.max" "$DISK rbps=10M"
for file in io.cost.qos io.cost.model; do
	check "v2: $file exists" test -f "$CG/$file"
done
taken "$CG/g/io.weight" 10M "default 10"
refused EINVAL "$CG/g/io.weight" 10001
exact v2
check "v2: limits are ioband's: its debugfs directory exists" test -d /sys/kernel/debug/block/nb0/ioband
check "v2: io.stat has no keys of ioband's shares" equal "$(grep -c share "$CG/g/io.stat")" 0
cap g "$DEV" rbps=max

# iocost shares a disk that does 1000 I/Os a second, one at a time, by weight.  Its model is a little
# below that speed, so that I/O waits in iocost and not in the disk.
null_dev nb2 completion_nsec=1000000 hw_queue_depth=1
group h
taken "$CG/g/io.weight" 300 "default 300"
taken "$CG/h/io.weight" 100 "default 100"
model="rbps=62259200 rseqiops=950 rrandiops=950 wbps=62259200 wseqiops=950 wrandiops=950"
echo "$(devno "$DEV") ctrl=user model=linear $model" >"$CG/io.cost.model"
echo "$(devno "$DEV") enable=1 ctrl=user rpct=0 wpct=0 min=100 max=100" >"$CG/io.cost.qos"
both() {
	start_soon
	load g a -f "$DEV" -s 4k -p rand -d 8 -t $SEC
	load h b -f "$DEV" -s 4k -p rand -d 8 -t $SEC
	wait_loads
}
both
all=$(($(val a ios) + $(val b ios)))
check "v2: weights 300 and 100 under iocost give the first group 3/4" in_range $(($(val a ios) * 1000 / all)) 720 780
check "v2: iocost keeps the disk busy" in_range $all $((SEC * 900)) $((SEC * 1000 + 16))
check "v2: ioband is not active on the disk that iocost shares" test ! -e /sys/kernel/debug/block/nb2/ioband
cap g "$DEV" riops=300
both
check "v2: a limit beside iocost's weights is exact" in_range "$(val a ios)" $((SEC * 300)) $((SEC * 300 + 2))
# the rest of the disk's 1000; it can be more than the 650 of the model, as iocost is not exact
check "v2: the other group gets the rest of the disk" in_range "$(val b ios)" $((SEC * 600)) $((SEC * 700 + 16))
echo "$(devno "$DEV") enable=0" >"$CG/io.cost.qos"
