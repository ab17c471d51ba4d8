#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A limit is the same with every I/O scheduler, also while the scheduler is switched and the queue is
# frozen under load, with I/O held.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

SEC=10

# stream NAME: I/O n is dispatched at n * 62.5 ms; 160 I/Os of 64 KiB end in 10 s
stream() {
	check "$1: number of I/Os in $SEC s at the limit" equal "$(val r ios)" 160
	check "$1: latency p50 at the limit" within "$(val r p50_ns)" 62500000 10000
	check "$1: latency p99 at the limit" within "$(val r p99_ns)" 62500000 10000
}

plan 24
null_dev nb0
QUEUE=/sys/block/nb0/queue
mount_cgroup v2
group g
cap g "$DEV" rbps=$MiB
known=$(tr -d '[]' <$QUEUE/scheduler)
for sched in none mq-deadline kyber bfq; do
	case " $known " in
	*" $sched "*) echo $sched >$QUEUE/scheduler ;;
	*)
		for what in "I/Os" p50 p99 under; do skip "$sched: $what" "not in this kernel"; done
		continue
		;;
	esac
	check "$sched is the scheduler of the disk" grep -q "\[$sched\]" $QUEUE/scheduler
	start_soon
	load g r -f "$DEV" -s 64k -t $SEC -w 1
	wait_loads
	stream $sched
done

# switched NAME FILE VALUE...: the VALUEs are written in turn, 3 times a second
switched() {
	local name=$1 file=$2 i values
	shift 2
	values=("$@")
	start_soon
	load g r -f "$DEV" -s 64k -t $SEC -w 1 -d 1
	load g w -f "$DEV" -s 64k -t $SEC -d 16 -o w
	for ((i = 0; i < 25; i++)); do
		sleep 0.333
		echo "${values[i % ${#values[@]}]}" >"$file"
	done
	check "$name: I/O was still held at the end" kill -0 "${loads[0]}"
	wait_loads
	stream "$name"
}
cap g "$DEV" wbps=$MiB
# shellcheck disable=SC2086 # words
switched "scheduler switched" $QUEUE/scheduler $known
switched "queue frozen" $QUEUE/nr_requests 32 64
