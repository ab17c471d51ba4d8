#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The bound of limits in any window of time, R*t + max(B, first I/O), checked on a full trace of all dispatches, for
# mixes of sizes, directions and depths, at rates from 1 IOPS and 4 KiB/s to 10 GB/s; and that a backlogged group gets
# all of R.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

MIX=512,4k,12k,64k,256k,1M,4M

# mix GROUP IOS SIZES: loads of different depths, in each direction and in both
mix() {
	load "$1" "$1-rw" -f "$DEV" -o rw -p rand -s "$3" -n $(($2 / 5)) -S 11
	load "$1" "$1-r8" -f "$DEV" -p rand -s "$3" -n $(($2 / 5)) -d 8 -S 22
	load "$1" "$1-w8" -f "$DEV" -o w -p rand -s "$3" -n $(($2 / 5)) -d 8 -S 33
	load "$1" "$1-r64" -f "$DEV" -p rand -s "$3" -n $(($2 / 5)) -d 64 -S 44
	load "$1" "$1-w64" -f "$DEV" -o w -p rand -s "$3" -n $(($2 / 5)) -d 64 -S 55
}

# judge DESCRIPTION LIMIT...: checks the trace of all loads; a trace that fails is kept
judge() {
	local desc=$1 failed=$tap_failed
	shift
	wait_loads
	trace_stop "$TMP/trace"
	check "$desc" python3 "$HERE/lib/window_check.py" --dev "$(devno "$DEV")" "$TMP/trace" "$@"
	if [ "$failed" != "$tap_failed" ] && [ -n "${GUEST_OUT:-}" ]; then
		cp "$TMP/trace" "$GUEST_OUT/trace-$tap_nr"
	fi
}

# one VERSION IOS SIZES CAP...: one group, with one limit for reads and one for writes
one() {
	local version=$1 ios=$2 sizes=$3 pair unit limits=() id
	shift 3
	mount_cgroup "$version"
	group g
	cap g "$DEV" "$@"
	id=$(cgid g)
	for pair; do
		case $pair in ?bps*) unit="bytes" ;; *) unit="ios" ;; esac
		limits+=("${pair:0:1}:$unit:${pair#*=}:$id:busy")
	done
	trace_start admit release hold return
	start_soon
	mix g "$ios" "$sizes"
	judge "$version $* sizes $sizes" "${limits[@]}"
	[ -e "$TMP/first" ] || { cp "$TMP/trace" "$TMP/first" && first=("${limits[@]}"); }
	umount_cgroup
}

# both: limits in bytes and in I/Os together; either may be the tighter one
both() {
	local id
	mount_cgroup v2
	group g
	id=$(cgid g)
	cap g "$DEV" rbps=20000000 riops=300 wbps=5000000 wiops=2000
	trace_start admit release hold return
	start_soon
	mix g 600 512,4k,64k,128k
	judge "v2 bps and iops at once" \
		"r:bytes:20000000:$id" "r:ios:300:$id" "w:bytes:5000000:$id" "w:ios:2000:$id"
	umount_cgroup
}

# ids GROUP...: the numbers of the leaf groups that do I/O, separated by commas
ids() {
	local name list=
	for name; do list+=",$(cgid "$name")"; done
	echo "${list#,}"
}

# tree: two and three levels; the limit of each level applies to all below it
tree() {
	local all mid
	mount_cgroup v2
	group top top/mid top/mid/a top/mid/b top/c
	cap top "$DEV" rbps=12000000 wbps=9000000 riops=800
	cap top/mid "$DEV" rbps=8000000 wbps=7000000
	cap top/mid/a "$DEV" rbps=3000000
	cap top/c "$DEV" wbps=1500000 wiops=40
	all=$(ids top/mid/a top/mid/b top/c) mid=$(ids top/mid/a top/mid/b)
	trace_start admit release hold return
	start_soon
	for leaf in top/mid/a top/mid/b top/c; do
		for depth in 1 16; do
			load $leaf "${leaf##*/}$depth" -f "$DEV" -o rw -p rand \
				-s 512,4k,64k,256k,1M -n 150 -d $depth -S $((depth + ${#leaf}))
		done
	done
	judge "v2 limits on three levels" \
		"r:bytes:12000000:$all" "r:ios:800:$all" "w:bytes:9000000:$all" \
		"r:bytes:8000000:$mid" "w:bytes:7000000:$mid" "r:bytes:3000000:$(cgid top/mid/a)" \
		"w:bytes:1500000:$(cgid top/c)" "w:ios:40:$(cgid top/c)"
	umount_cgroup
}

# shared LEVELS PATH...: leaf groups without limits wait for the limit of their ancestor
shared() {
	local levels=$1 leaf i=0
	shift
	mount_cgroup v2
	group top
	[ "$levels" = 2 ] || group top/mid
	group "$@"
	cap top "$DEV" rbps=5000000 wbps=2000000
	trace_start admit release hold return
	start_soon
	for leaf; do
		i=$((i + 1))
		load "$leaf" "$i" -f "$DEV" -o rw -p rand -s 512,4k,64k,256k,1M \
			-n 200 -d $((i * i)) -S $i
	done
	judge "v2 leaves under one limit, $levels levels" \
		"r:bytes:5000000:$(ids "$@"):busy" "w:bytes:2000000:$(ids "$@"):busy"
	umount_cgroup
}

# spoiled DESCRIPTION AWK: the check must refuse the trace of the first case after this change
spoiled() {
	awk "$2" "$TMP/first" >"$TMP/trace"
	not() {
		! python3 "$HERE/lib/window_check.py" --dev "$(devno "$DEV")" "$TMP/trace" "${first[@]}"
	}
	check "the check of the trace refuses $1" not
}

null_dev nb0 completion_nsec=10000
trace_start || skip_all "the kernel has no ioband tracepoints"
plan 18
one v2 100 512,4k,16k,64k rbps=4096 wbps=8192
one v1 100 512,4k,16k,64k rbps=8192 wbps=4096
one v2 150 $MIX rbps=1048576 wbps=3000000
one v1 150 $MIX rbps=3000000 wbps=1048576
one v2 1500 $MIX rbps=100000000 wbps=250000000
one v2 6000 $MIX rbps=10000000000 wbps=4000000000
one v2 8000 512,4k rbps=100000000 wbps=99999937
# an I/O is a burst: the group would lose rate by late timers
one v2 1500 64k rbps=12800000 wbps=13107200
one v2 100 4k,64k riops=1 wiops=2
one v1 100 4k,64k riops=3 wiops=1
one v2 3000 512,4k,64k riops=777 wiops=8192
one v2 8000 512,4k,64k riops=100000 wiops=65537
both
tree
shared 2 top/a top/b top/c
shared 3 top/mid/a top/mid/b top/c
# shellcheck disable=SC2016 # awk's, not ours
spoiled "one I/O too many" '{ print } /ioband_release/ && n++ == 20 { print }'
# shellcheck disable=SC2016
spoiled "one I/O too few" '!(/ioband_release/ && n++ == 20)'
