#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A limit binds the whole subtree on v2 and one group on v1; siblings that wait
# for the same limit share it evenly, whatever their depth and I/O size.
# configs: uml-vt
. "$(dirname "$0")/blkio_lib.sh"

SEC=20

# even RATE_KIB NAME...: each load has its part of RATE within 1%
even() {
	local part=$(($1 * KiB * SEC / ($# - 1))) name rc=0
	shift
	for name; do
		echo "$name: $(val "$name" bytes) bytes, an even part is $part"
		within "$(val "$name" bytes)" $part 10000 >/dev/null || rc=1
	done
	return $rc
}

# total RATE_KIB NAME...: together R*t, and no more than B and 0.02% over it
total() {
	local all=$(($1 * KiB * SEC)) sum=0 name
	shift
	for name; do sum=$((sum + $(val "$name" bytes))); done
	in_range $sum $((all - all / 5000)) $((all + all / 5000 + 64 * KiB))
}

plan 29
null_dev nb0
mount_cgroup v1
group a a/b
cap a "$DEV" rbps=$MiB
start_soon
load a a -f "$DEV" -t $SEC
load a/b b -f "$DEV" -t $SEC -n 5000
wait_loads
check "v1: a group has its limit" total 1024 a
check "v1: a group below does not" equal "$(val b ios)" 5000
umount_cgroup

mount_cgroup v2
group p p/a p/b p/c p/c/d other

cap p "$DEV" rbps=$((3 * MiB)) wbps=$((3 * MiB))
start_soon
for leaf in p/a p/b p/c/d; do load "$leaf" "${leaf##*/}" -f "$DEV" -t $SEC -d 4; done
load other o -f "$DEV" -n 5000
wait_loads
check "v2: three groups below have the limit together" total 3072 a b d
check "v2: at even parts" even 3072 a b d
check "v2: a group beside is not limited" \
	in_range $(($(val o end_ns) - $(val o start_ns))) 0 2000000000

start_soon
load p/a a -f "$DEV" -t $SEC -d 1
load p/b b -f "$DEV" -t $SEC -d 64
wait_loads
check "depth 1 and depth 64: all of the limit" total 3072 a b
check "depth 1 and depth 64: even parts" even 3072 a b

start_soon
load p/a a -f "$DEV" -t $SEC -d 4 -s 4k
load p/b b -f "$DEV" -t $SEC -d 4 -s 64k
wait_loads
check "4 KiB and 64 KiB: all of the limit" total 3072 a b
check "4 KiB and 64 KiB: even parts" even 3072 a b

start_soon
load p/a a -f "$DEV" -t $SEC -d 16 -o w
load p/c/d d -f "$DEV" -t $SEC -d 16 -o w
wait_loads
check "a level further down: all of the limit" total 3072 a d
check "a level further down: even parts" even 3072 a d

# reads and writes have limits of their own
start_soon
load p/a a -f "$DEV" -t $SEC -d 4
load p/b b -f "$DEV" -t $SEC -d 4 -o w
wait_loads
check "reads do not count for writes' limit" total 3072 a
check "writes do not count for reads' limit" total 3072 b

# A tighter limit below: the others have what it leaves. Its I/Os are small, as
# each may have to wait for one of the others' and B has to make up for that: with
# B no larger than an I/O, keeping the bound in any window would cost it rate.
cap p/a "$DEV" rbps=$((MiB / 2))
start_soon
load p/a a -f "$DEV" -t $SEC -d 4 -s 4k
for leaf in p/b p/c/d; do load "$leaf" "${leaf##*/}" -f "$DEV" -t $SEC -d 4; done
wait_loads
check "a tighter limit below is kept" total 512 a
check "all of the limit above is used" total 3072 a b d
check "the others share the rest" even 2560 b d
cap p/a "$DEV" rbps=max

# one of them idle: its part is the other's
start_soon
load p/a a -f "$DEV" -t $SEC -d 4
wait_loads
check "a group alone has all of the limit" total 3072 a

# What the limit above refuses is not paid at the one below: there it is the first.
cap p "$DEV" rbps=$MiB
cap p/a "$DEV" riops=1
# so that its group knows the limit: before, no I/O takes the path without a lock
START=0
load p/a a -f "$DEV" -n 1 -s 4k
wait_loads
sleep 2
start_soon
load p/b b -f "$DEV" -n 1
load p/a a -f "$DEV" -n 1 -s 4k -a $((START + 1000000))
wait_loads
check "what the limit above refuses is not paid below" in_range "$(val a max_ns)" 1000000 10000000
cap p/a "$DEV" riops=max

# limits by I/Os
cap p "$DEV" rbps=max riops=300
start_soon
load p/a a -f "$DEV" -t $SEC -d 1
load p/b b -f "$DEV" -t $SEC -d 32 -s 4k
wait_loads
check "IOPS: all of the limit" in_range $(($(val a ios) + $(val b ios))) 5999 6002
check "IOPS: even parts" within "$(val a ios)" 3000 10000

# What a sibling once paid at a low rate does not keep it waiting at a higher one.
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
check "limit raised: all of the new one" total 3072 a b
check "limit raised: even parts" even 3072 a b

# the tightest of three levels
cap p "$DEV" wbps=max rbps=$((3 * MiB))
cap p/c "$DEV" rbps=$((2 * MiB))
cap p/c/d "$DEV" rbps=$((5 * MiB))
start_soon
load p/c/d d -f "$DEV" -t $SEC -d 4
wait_loads
check "three levels: the tightest binds, here the middle" total 2048 d
cap p/c/d "$DEV" rbps=$MiB
start_soon
load p/c/d d -f "$DEV" -t $SEC -d 4
wait_loads
check "three levels: the lowest" total 1024 d
cap p "$DEV" rbps=$((MiB / 2))
start_soon
load p/c/d d -f "$DEV" -t $SEC -d 4
wait_loads
check "three levels: the highest" total 512 d

# Limits so high that CPUs have I/O of both in reserve: the one below is paid once, and the
# one above is paid for each I/O. The device does 4 KiB in 90 us, 45.5 MB/s one by one.
null_dev quick completion_nsec=90000
cap p "$DEV" rbps=100000000
cap p/a "$DEV" rbps=46000000
SEC=1
start_soon
for leaf in p/a p/b; do load "$leaf" "${leaf##*/}" -f "$DEV" -t $SEC -s 4k; done
load p/a large -f "$DEV" -s 200k -n 1 -a $((START + 1000000000))
wait_loads
check "reserves at two levels: below both limits no I/O waits" in_range "$(val a max_ns)" 90000 95000
check "reserves at two levels: and there is a burst left" in_range "$(val large max_ns)" 90000 95000
cap p "$DEV" rbps=51000000
cap p/a "$DEV" rbps=1000000000
start_soon
load p/a a -f "$DEV" -t $SEC -s 4k -d 64
wait_loads
check "reserves at two levels: the one above" within "$(val a bytes)" $((51000000 * SEC)) 10000
cap p "$DEV" rbps=1000000000
cap p/a "$DEV" rbps=51000000
start_soon
load p/a a -f "$DEV" -t $SEC -s 4k -d 64
wait_loads
check "reserves at two levels: the one below" within "$(val a bytes)" $((51000000 * SEC)) 10000
