#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# With ioband=off the same kernel has mainline's controllers: their files, their lax parsing, and
# blk-throttle's steps of 0.1 s.
# configs: uml-vt
# args: ioband=off
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_abi.sh"

grep -qw ioband=off /proc/cmdline || skip_all "not booted with ioband=off"
plan 22
check "with ioband=off the kernel log does not say that limits or weights are on" \
	equal "$(dmesg | grep -o 'ioband: [a-z]* on$')" ""
odd_devices
DEV=/dev/nb0
mount_cgroup v1
group g
for file in read_bps_device write_bps_device read_iops_device write_iops_device \
	io_service_bytes io_service_bytes_recursive io_serviced io_serviced_recursive; do
	check "v1: blkio.throttle.$file exists" test -f "$CG/g/blkio.throttle.$file"
done
taken "$CG/g/blkio.throttle.read_bps_device" "$DISK 10M" "$DISK 10"
taken "$CG/g/blkio.throttle.read_bps_device" "$DISK 7 8" "$DISK 7"
taken "$CG/g/blkio.throttle.read_iops_device" "$DISK 4294967297" "$DISK 1"
taken "$CG/g/blkio.throttle.read_iops_device" "$DISK 0" ""
check "v1: blkio.weight does not exist" equal "$(ls -d "$CG/g/blkio.weight"* 2>/dev/null)" ""
taken "$CG/g/blkio.bfq.weight" 300 300
cap g "$DEV" rbps=$((3 * MiB))
start_soon
load g r -f "$DEV" -s 64k -t 10 -w 1
wait_loads
check "v1: blk-throttle dispatches in steps of 0.1 s" in_range "$(val r p99_ns)" 90000000 110000000
umount_cgroup

mount_cgroup v2
group g
taken "$CG/g/io.max" "$DISK rbps=10M" "$DISK rbps=10 wbps=max riops=max wiops=max"
check "v2: io.weight is iocost's: io.cost.qos exists" test -f "$CG/io.cost.qos"
taken "$CG/g/io.weight" 10M "default 10"
cap g "$DEV" rbps=$((3 * MiB))
trace_start || bail "the ioband tracepoints are missing with ioband=off"
start_soon
load g r -f "$DEV" -s 64k -t 10 -w 1
wait_loads
trace_stop "$TMP/trace"
check "v2: blk-throttle dispatches in steps of 0.1 s" in_range "$(val r p99_ns)" 90000000 110000000
check "v2: io.stat has mainline's keys only" \
	grep -Ex "$DISK rbytes=[0-9]+ wbytes=0 rios=[0-9]+ wios=0 dbytes=0 dios=0" "$CG/g/io.stat"
check "v2: no ioband tracepoint fires" equal "$(wc -l <"$TMP/trace")" 0
