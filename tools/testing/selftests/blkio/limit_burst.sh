#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The burst B = max(5 ms of R, 64 KiB or one I/O): an idle group has B in hand and never more, however
# long it was idle.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

DEVICE_NS=100000 CLOCK_NS=2048	# a few ticks of the clock

# lone DESCRIPTION SIZE SECONDS_IDLE CAP...: five I/Os, each after an idle time
lone() {
	local desc=$1 size=$2 idle=$3
	shift 3
	cap g "$DEV" "$@"
	start_soon
	load g r -f "$DEV" -s "$size" -n 5 -T "$idle"
	wait_loads
	cap g "$DEV" rbps=max riops=max
	check "$desc does not wait" in_range "$(val r max_ns)" $DEVICE_NS $((DEVICE_NS + CLOCK_NS))
}

# at_once CAP [OPTION]: 4 KiB I/Os at a high depth after a long idle time. By the time T (2 ms) B plus what was
# earned since has been dispatched, in whole I/Os.
at_once() {
	local rate=${1#*=} unit=4096 burst ms=2 now in_hand
	case $1 in *bps*) burst=65536 ;; *) burst=1 unit=1 ;; esac
	((rate / 200 <= burst)) || burst=$((rate / 200))
	in_hand=$((burst * 1000000 + rate * (ms * 1000 - DEVICE_NS / 1000)))
	cap g "$DEV" "$1"
	sleep 100
	start_soon
	load g r -f "$DEV" -s 4k -n 512 -d 512 ${2:+"$2"} -l "$TMP/log"
	wait_loads
	cap g "$DEV" rbps=max riops=max
	now=$(awk -v "t=$(val r start_ns)" -v "d=${ms}000000" '$2 <= t + d' "$TMP/log" | wc -l)
	check "$1: after an idle time B and no more is dispatched at once" in_range "$now" \
		$((in_hand / unit / 1000000 - 1)) $((in_hand / unit / 1000000))
}

plan 15
null_dev nb0 hw_queue_depth=1024
mount_cgroup v2
group g
# 64 KiB are earned again in 16 s, 62.5 ms and 1 s at these limits
lone "64 KiB at 4 KiB/s" 64k 16.001 rbps=4096
lone "64 KiB at 1 MiB/s" 64k 0.063 rbps=$MiB
lone "4 KiB at 4 KiB/s" 4k 1.001 rbps=4096
lone "an I/O at 1 IOPS" 64k 1.001 riops=1
lone "64 KiB at 1 GB/s" 64k 0.001 rbps=1000000000
lone "an I/O under both" 64k 1.001 rbps=65536 riops=1

# big SIZE RATE IDEAL_NS [PIECES]: an I/O larger than B waits until its cost less B has been earned; each piece
# that the disk gets reads the clock once
big() {
	cap g "$DEV" rbps="$2"
	sleep 100
	start_soon
	load g r -f "$DEV" -s "$1" -n 1
	wait_loads
	cap g "$DEV" rbps=max
	check "$1 at $2 B/s: a lone I/O takes its cost less B" within "$(val r max_ns)" $(($3 + DEVICE_NS + ${4:-0} * 256)) 200
}
big 1M $MiB 937500000
big 128k 65536 1000000000
big 4M 100000000 36943040 33

# io_submit() waits for more I/Os than the limits allow in a second
at_once rbps=$MiB -u
at_once rbps=65536 -u
at_once rbps=100000000
at_once riops=2000
at_once riops=10 -u

# An I/O of a group that has so many limits above it that it takes the lock. B is 500 kB.
throttled() { grep -c "throttled=" "$CG/$1/io.stat" || true; }
group g/own g/1 g/1/2 g/1/2/3 g/1/2/3/4 g/1/2/3/4/5 g/1/2/3/4/5/6 g/1/2/3/4/5/6/7 g/1/2/3/4/5/6/7/8
below=g
for i in 1 2 3 4 5 6 7 8; do
	below+=/$i
	cap $below "$DEV" rbps=10000000000 riops=10000000
done
cap g "$DEV" rbps=100000000 riops=10000000
# each group has looked up its limits
START=0
load $below r -f "$DEV" -s 4k -n 1
load g/own r -f "$DEV" -s 4k -n 1
wait_loads
start_soon
load g/own r -f "$DEV" -s 60k -n 1
load $below large -f "$DEV" -s 424k -n 1 -a $((START + 50000))
wait_loads
check "an I/O of a group far below does not wait while all limits above have room" equal "$(throttled "$below")" 0
