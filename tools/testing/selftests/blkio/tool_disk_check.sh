#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: DISK=/dev/NAME [ERASE=yes] [READ=yes] [EACH=10] [REPORT=FILE] tool_disk_check.sh
#
# Tests limits and weights on a real disk in real time, with the kernel and the cgroup hierarchy of this machine. It
# first measures what the disk does, for EACH seconds and each kind of I/O; then limits of 10 % and 50 % of that, and
# two groups with weights 1:1 and 3:1. It only reads, unless ERASE=yes: then it writes to all of the disk. It refuses
# a disk that is in use or has data on it; READ=yes reads from such a disk. REPORT has what was asked for and what the
# groups got.
#
# These are failures:
# - A group gets more than R * t + B of a limit R in t seconds, where B is 5 ms of R, but at least 64 KiB or one I/O,
#   plus the I/O that is paid for when it is dispatched. Late timers or a slow disk cannot add to that, since only I/O
#   counts that was dispatched and has completed within t.
# - A group gets less than 97 % of R * t, less what is in flight at the end (R times the 99th percentile of the
#   latency). When a disk pauses, for garbage collection or to move its heads, with all I/O of the load in flight, the
#   load loses that time.
# - A share is wrong by more than 2 points. The queue depth of the disk is measured in the first quarter, which does
#   not count; later a share can be off by the I/Os in flight, and by the trials with other depths.
# - The groups do less than 90 % of the I/O that they do without weights: measuring the depth costs up to 5 %, and a
#   disk varies by as much by itself.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"
# shellcheck source=lib/blkio_disk.sh
. "$HERE/lib/blkio_disk.sh"
EACH=${EACH:-10} REPORT=${REPORT:-/dev/null}
DEPTH=32
PARENT=tool_disk_check.$$
SHORT_PPM=30000
declare -A SIZE=([bps]=65536 [iops]=4096) WHERE=([bps]=seq [iops]=rand) KEY=([bps]=bytes [iops]=ios) ALONE=() P99=()

report() { printf '%s\n' "$*" >>"$REPORT"; }
ms() { awk "BEGIN { printf \"%.3f\", $1 / 1e6 }"; }
# row WHAT ASKED GOT NAME VERDICT: a row of the report; rates are per second
row() {
	report "$(printf '%-34s %12s %12s %9s %10s %10s  %s' "$1" "$2" "$3" "$([ "$2" = - ] || awk "BEGIN { printf \"%+.2f\", 100 * ($3 / $2 - 1) }")" \
		"$(ms "$(val "$4" p50_ns)")" "$(ms "$(val "$4" p99_ns)")" "$5")"
}

# judged TEXT COMMAND...: a point of the test, whose VERDICT is in its row
judged() {
	local before=$tap_failed
	check "$@"
	VERDICT=ok
	[ "$tap_failed" = "$before" ] || VERDICT=FAILED
}

# one OP UNIT: EACH seconds of that I/O in the first group
one() {
	start_soon
	load "$PARENT/a" one -f "$DISK" -o "$1" -s "${SIZE[$2]}" -p "${WHERE[$2]}" -d $DEPTH -t "$EACH"
	wait_loads
}

# alone OP: measures what the disk does; the latency at depth 1 is for the report
alone() {
	local unit
	for unit in bps iops; do
		one "$1" $unit
		ALONE[$1$unit]=$(($(val one "${KEY[$unit]}") / EACH)) P99[$1$unit]=$(val one p99_ns)
		row "no limit, $1$unit, depth $DEPTH" - "${ALONE[$1$unit]}" one -
	done
	start_soon
	load "$PARENT/a" one -f "$DISK" -o "$1" -s 4096 -p rand -d 1 -t "$EACH"
	wait_loads
	row "no limit, $1iops, depth 1" - $(($(val one ios) / EACH)) one -
}

# limit OP UNIT PERCENT: a limit of this part of what the disk does
limit() {
	local key=$1$2 unit=$2 rate got burst least cost=1
	[ "$unit" = iops ] || cost=${SIZE[bps]}
	rate=$((ALONE[$key] * $3 / 100)) burst=1
	[ "$unit" = iops ] || burst=65536
	[ $((rate / 200)) -le $burst ] || burst=$((rate / 200))
	[ "$rate" -gt 0 ] || bail "the disk is too slow to limit it: ${ALONE[$key]} of $key"
	cap "$PARENT/a" "$DISK" "$key=$rate"
	one "$1" "$unit"
	cap "$PARENT/a" "$DISK" "$key=max"
	got=$(val one "${KEY[$unit]}")
	least=$(awk "BEGIN { printf \"%d\", $rate * ($EACH * (1 - $SHORT_PPM / 1e6) - ${P99[$key]} / 1e9) - $cost }")
	judged "limit of $3 %, $key" in_range "$got" "$least" $((rate * EACH + burst + cost))
	row "limit of $3 %, $key" "$rate" $((got / EACH)) one "$VERDICT"
}

# by_weight OP A B: two groups with weights A:B
by_weight() {
	local unit=200 before list text="weights $2:$3, $1" parts=$(($2 + $3))
	NAMES=("$PARENT/a" "$PARENT/b") DEPTHS=("$DEPTH" "$DEPTH") T=$EACH DEV=$DISK
	[ "$CGV" = v2 ] || unit=250 DFL=500
	list=($(($2 * unit)) $(($3 * unit)))
	weights $DFL $DFL
	run -o "$1" -s 64k -p rand
	before=$(total)
	weights "${list[@]}"
	know "$DISK"
	run -o "$1" -s 64k -p rand
	judged "$text: shares" shared 20000 0 "${list[@]}"
	row "$text: share of a, ppm" $((1000000 * $2 / parts)) $((1000000 * $(counted "$PARENT/a") / $(total))) a "$VERDICT"
	row "$text: share of b, ppm" $((1000000 * $3 / parts)) $((1000000 * $(counted "$PARENT/b") / $(total))) b "$VERDICT"
	judged "$text: nothing lost" as_fast 900 "$before"
	row "$text: I/Os of both" "$before" "$(total)" a "$VERDICT"
	weights $DFL $DFL
}

all_of() {
	alone "$1"
	limit "$1" bps 10
	limit "$1" bps 50
	limit "$1" iops 10
	limit "$1" iops 50
	by_weight "$1" 1 1
	by_weight "$1" 3 1
	# how much the disk varies by itself
	one "$1" bps
	row "no limit, $1bps, once more" "${ALONE[$1bps]}" $(($(val one bytes) / EACH)) one -
}

ops=(r)
[ "${ERASE:-}" != yes ] || ops=(r w)
need_disk
the_hierarchy
need_ioband
may_use
: >"$REPORT"
plan $((8 * ${#ops[@]}))
report "$(describe)"
report ""
report "Rates of bps are bytes a second, of iops I/Os a second; latencies of a limit include the wait for it. $EACH s a row."
report "$(printf '%-34s %12s %12s %9s %10s %10s  %s' what asked got 'got, %' 'p50, ms' 'p99, ms' verdict)"
note "$DISK, $((${#ops[@]} * 12 * (EACH + 1))) s: $([ ${#ops[@]} = 1 ] && echo 'it is only read' || echo 'all of it is written to')"
need_controller
group "$PARENT" "$PARENT/a" "$PARENT/b"
for op in "${ops[@]}"; do all_of "$op"; done
report ""
report "$((tap_nr - tap_failed)) passed, $tap_failed failed"
