#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A limit applies to the whole subtree on v2 and to one group on v1. Siblings that wait for the same
# limit get equal parts of it, whatever their depth and I/O size.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

SEC=20

# even RATE_KIB NAME...: each load gets an equal part of RATE, to within 1%
even() {
	local part=$(($1 * KiB * SEC / ($# - 1))) name rc=0
	shift
	for name; do
		echo "$name: $(val "$name" bytes) bytes, an even part is $part"
		within "$(val "$name" bytes)" $part 10000 >/dev/null || rc=1
	done
	return $rc
}

# total RATE_KIB NAME...: the loads together get R*t, and exceed it by no more than B and 0.02%
total() {
	local all=$(($1 * KiB * SEC)) sum=0 name
	shift
	for name; do sum=$((sum + $(val "$name" bytes))); done
	in_range $sum $((all - all / 5000)) $((all + all / 5000 + 64 * KiB))
}

plan 34
null_dev nb0
mount_cgroup v1
group a a/b
cap a "$DEV" rbps=$MiB
start_soon
load a a -f "$DEV" -t $SEC
load a/b b -f "$DEV" -t $SEC -n 5000
wait_loads
check "v1: a group gets its limit" total 1024 a
check "v1: a group below a limited group is not limited" equal "$(val b ios)" 5000
umount_cgroup

mount_cgroup v2
group p p/a p/b p/c p/c/d other

cap p "$DEV" rbps=$((3 * MiB)) wbps=$((3 * MiB))
start_soon
for leaf in p/a p/b p/c/d; do load "$leaf" "${leaf##*/}" -f "$DEV" -t $SEC -d 4; done
load other o -f "$DEV" -n 5000
wait_loads
check "v2: three groups below a limit get the limit together" total 3072 a b d
check "v2: three groups below a limit get equal parts" even 3072 a b d
check "v2: a group beside the limited one is not limited" \
	in_range $(($(val o end_ns) - $(val o start_ns))) 0 2000000000

start_soon
load p/a a -f "$DEV" -t $SEC -d 1
load p/b b -f "$DEV" -t $SEC -d 64 -u
wait_loads
check "depth 1 beside depth 64: both together get all of the limit" total 3072 a b
check "depth 1 beside depth 64: equal parts" even 3072 a b

start_soon
load p/a a -f "$DEV" -t $SEC -d 4 -s 4k
load p/b b -f "$DEV" -t $SEC -d 4 -s 64k
wait_loads
check "4 KiB beside 64 KiB: both together get all of the limit" total 3072 a b
check "4 KiB beside 64 KiB: equal parts" even 3072 a b

# a group that its own limit holds back has no claim for that later
cap p/a "$DEV" riops=20
start_soon
load p/b b -f "$DEV" -t 40 -d 4
load p/a a -f "$DEV" -t 28 -d 4 -s 4k
until_ns $((START + 29000000000))
cap p/a "$DEV" riops=max
start_soon
load p/a a2 -f "$DEV" -t 8 -d 4
wait_loads
check "a limit of its own held a group back: an equal part afterwards" within "$(val a2 bytes)" $((3 * MiB * 8 / 2)) 20000

# an I/O that costs more than a burst saves up, and takes no more than its turn meanwhile
for size in 256k 1M; do
	start_soon
	load p/a a -f "$DEV" -t $SEC -d 1 -s 4k
	load p/b b -f "$DEV" -t $SEC -d 4 -s $size -u
	wait_loads
	check "4 KiB at depth 1 beside $size: both together get all of the limit" total 3072 a b
	check "4 KiB at depth 1 beside $size: equal parts" within "$(val a bytes)" $((3 * MiB * SEC / 2)) 10000
done

start_soon
load p/a a -f "$DEV" -t $SEC -d 16 -o w
load p/c/d d -f "$DEV" -t $SEC -d 16 -o w
wait_loads
check "a group one level further down: all groups together get all of the limit" total 3072 a d
check "a group one level further down: equal parts" even 3072 a d

# reads and writes have separate limits
start_soon
load p/a a -f "$DEV" -t $SEC -d 4
load p/b b -f "$DEV" -t $SEC -d 4 -o w
wait_loads
check "reads do not count for the limit of writes" total 3072 a
check "writes do not count for the limit of reads" total 3072 b

# A group has a tighter limit of its own, and the other groups get what it leaves. Its I/Os are small,
# since each of them may have to wait for an I/O of the others, and B has to make up for that: with B
# no larger than an I/O, the group would lose rate by the bound of each window.
cap p/a "$DEV" rbps=$((MiB / 2))
start_soon
load p/a a -f "$DEV" -t $SEC -d 4 -s 4k
for leaf in p/b p/c/d; do load "$leaf" "${leaf##*/}" -f "$DEV" -t $SEC -d 4; done
wait_loads
check "a group with a tighter limit gets that limit" total 512 a
check "a group with a tighter limit: all of the limit above is used" total 3072 a b d
check "a group with a tighter limit: the other groups share the rest" even 2560 b d
cap p/a "$DEV" rbps=max

# when one of the groups is idle, the other gets its part
start_soon
load p/a a -f "$DEV" -t $SEC -d 4
wait_loads
check "a group that is alone gets all of the limit" total 3072 a

# Where the limit above refuses an I/O, it is not charged at the limit below, which is paid first.
cap p "$DEV" rbps=$MiB
cap p/a "$DEV" riops=1
# the group has to know the limit: before, no I/O takes the path without a lock
START=0
load p/a a -f "$DEV" -n 1 -s 4k
wait_loads
sleep 2
start_soon
load p/b b -f "$DEV" -n 1
load p/a a -f "$DEV" -n 1 -s 4k -a $((START + 1000000))
wait_loads
check "an I/O that the limit above refuses is not charged at the limit below" \
	in_range "$(val a max_ns)" 1000000 10000000
cap p/a "$DEV" riops=max

# limits by I/Os
cap p "$DEV" rbps=max riops=300
start_soon
load p/a a -f "$DEV" -t $SEC -d 1
load p/b b -f "$DEV" -t $SEC -d 32 -s 4k
wait_loads
check "limit in I/Os: both groups together get all of it" in_range $(($(val a ios) + $(val b ios))) 5999 6002
check "limit in I/Os: equal parts" within "$(val a ios)" 3000 10000

# A sibling that once paid at a low limit does not wait for that when the limit is raised.
cap p "$DEV" riops=max wbps=65536
start_soon
load p/b b -f "$DEV" -n 4 -s 1M -o w -d 4
until_ns $((START + 5000000000))
cap p "$DEV" wbps=$((3 * MiB))
wait_loads
start_soon
load p/a a -f "$DEV" -t $SEC -d 8 -o w
load p/b b -f "$DEV" -t $SEC -d 8 -o w
wait_loads
check "limit raised: both groups together get all of the new limit" total 3072 a b
check "limit raised: equal parts" even 3072 a b

# the tightest of three levels
cap p "$DEV" wbps=max rbps=$((3 * MiB))
cap p/c "$DEV" rbps=$((2 * MiB))
cap p/c/d "$DEV" rbps=$((5 * MiB))
start_soon
load p/c/d d -f "$DEV" -t $SEC -d 4
wait_loads
check "limits on three levels: the tightest applies, here the middle one" total 2048 d
cap p/c/d "$DEV" rbps=$MiB
start_soon
load p/c/d d -f "$DEV" -t $SEC -d 4
wait_loads
check "limits on three levels: the tightest applies, here the lowest one" total 1024 d
cap p "$DEV" rbps=$((MiB / 2))
start_soon
load p/c/d d -f "$DEV" -t $SEC -d 4
wait_loads
check "limits on three levels: the tightest applies, here the highest one" total 512 d

# Limits that are charged without the lock, both for each I/O. The device does 4 KiB in 90 us, that is 45.5 MB/s one by
# one.
null_dev quick completion_nsec=90000
cap p "$DEV" rbps=100000000
cap p/a "$DEV" rbps=46000000
SEC=1
start_soon
for leaf in p/a p/b; do load "$leaf" "${leaf##*/}" -f "$DEV" -t $SEC -s 4k; done
load p/a large -f "$DEV" -s 200k -n 1 -a $((START + 1000000000))
wait_loads
check "two limits without the lock: below both limits no I/O waits" in_range "$(val a max_ns)" 90000 95000
check "two limits without the lock: below both limits there is a burst left" in_range "$(val large max_ns)" 90000 95000
cap p "$DEV" rbps=51000000
cap p/a "$DEV" rbps=1000000000
start_soon
load p/a a -f "$DEV" -t $SEC -s 4k -d 64
wait_loads
check "two limits without the lock: the limit above applies" within "$(val a bytes)" $((51000000 * SEC)) 10000
cap p "$DEV" rbps=1000000000
cap p/a "$DEV" rbps=51000000
start_soon
load p/a a -f "$DEV" -t $SEC -s 4k -d 64
wait_loads
check "two limits without the lock: the limit below applies" within "$(val a bytes)" $((51000000 * SEC)) 10000
