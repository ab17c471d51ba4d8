# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are for the tests
# Sourced by the tests in the folder above: TAP, cgroups, loads, and arithmetic on the output of loads. Devices
# are in blkio_dev.sh, the trace is in blkio_trace.sh.
#
# A test is a script that calls `plan N`, makes what it needs, and calls `ok` or `check` N times. All
# that it made is removed at its end. Times and rates are asserted where the header line "# configs:"
# has uml-vt: in virtual time CPU work takes no time, and two runs give the same numbers to the last
# digit.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH=${BLKIO_BIN:-$HERE}:$PATH:/usr/sbin:/sbin
TMP=$(mktemp -d)
CG=			# where the cgroup hierarchy is mounted
CGV=			# v1 or v2
HIERARCHY=		# see on_each
START=0			# when loads begin, CLOCK_MONOTONIC ns: see start_soon
KiB=1024 MiB=1048576
export KiB MiB

tap_nr=0 tap_plan=0 tap_failed=0
loads=()		# pids of loads that run
groups=()		# directories of groups, parents first
undo=()			# commands, the last first

# shellcheck source=lib/blkio_dev.sh
. "$HERE/lib/blkio_dev.sh"
# shellcheck source=lib/blkio_trace.sh
. "$HERE/lib/blkio_trace.sh"

# A process that starts costs user-mode Linux more than a hundred I/Os, and tests sleep in loops.
mkfifo "$TMP/.sleep"
exec {sleep_fd}<>"$TMP/.sleep"
sleep() { read -rt "$1" -u "$sleep_fd" || true; }

plan() { tap_plan=$1; echo "TAP version 13"; echo "1..$1"; }
note() { printf '# %s\n' "$*"; }
bail() { echo "Bail out! $*"; exit 1; }
# skip_all REASON: skips the test; only before the plan, later it is a failure
skip_all() {
	[ "$tap_plan" = 0 ] || bail "$*"
	echo "1..0 # SKIP $*"
	exit 4
}

# tap ok|'not ok' DESCRIPTION: prints a TAP line
tap() { tap_nr=$((tap_nr + 1)); echo "$1 $tap_nr - $2"; }
skip() { tap ok "$1 # SKIP $2"; }

# exact_times: a test that is for no other kernel than user-mode Linux in virtual time measures what real time would
# blur. With blkio_selftests=real-time on its command line, the kernel counts as one in real time.
exact_times() {
	case " $(sed -n 's/^# configs: //p' "$0") " in *" uml-debug "*|*" qemu "*|*" uml-base "*|*" uml-tools-real "*|"  ") return ;; esac
	if ! grep -q 'time-travel' /proc/cmdline || grep -q 'blkio_selftests=real-time' /proc/cmdline; then
		skip_all "measures exact times: for user-mode Linux in virtual time"
	fi
}
exact_times

# check DESCRIPTION COMMAND...: a point that passes if COMMAND succeeds; shows the output of COMMAND
check() {
	local desc=$1 result=ok line n=0
	shift
	"$@" >"$TMP/.check" 2>&1 || result="not ok"
	# The last line may have no newline.
	while { IFS= read -r line || [ -n "$line" ]; } && ((n++ < 20)); do
		printf '# %s\n' "${line:0:200}"
	done <"$TMP/.check"
	[ "$result" = ok ] || tap_failed=$((tap_failed + 1))
	tap "$result" "${HIERARCHY:+$HIERARCHY, }$desc"
}

# slurp VARIABLE FILE: reads all of FILE but the last newline; without a process, as it is often called
slurp() {
	local text=
	IFS= read -r -d '' text <"$2" || true
	printf -v "$1" '%s' "${text%$'\n'}"
}

# Predicates for check; all numbers are integers.
in_range() { echo "got $1, want $2 .. $3"; (($1 >= $2 && $1 <= $3)); }
equal() { echo "got '$1', want '$2'"; [ "$1" = "$2" ]; }
# within VALUE IDEAL PPM: VALUE differs from IDEAL by at most PPM millionths of it
within() { in_range "$1" $(($2 - $2 * $3 / 1000000)) $(($2 + $2 * $3 / 1000000)); }

# val NAME KEY: the number KEY in the JSON line of load NAME
val() { sed -n "s/.*\"$2\": \([-0-9]*\).*/\1/p" "$TMP/$1.json"; }

# controller_free S COMMAND...: waits for up to S seconds until COMMAND succeeds, which it does when the last group of the
# other hierarchy has been freed. A wait of more than a second is printed, as something then held a group.
controller_free() {
	local begin=$SECONDS end=$((SECONDS + $1)) i
	shift
	for ((i = 0; SECONDS < end; i++)); do
		if "$@" 2>/dev/null; then
			[ $((SECONDS - begin)) -le 1 ] || note "the controller was free after $((SECONDS - begin)) s"
			return 0
		fi
		# cached pages keep groups from being freed
		((i % 10)) || echo 3 >/proc/sys/vm/drop_caches
		sleep 0.1
	done
	return 1
}

# mount_cgroup v1|v2|memcg [CONTROLLERS]: mounts a hierarchy and sets CG to its root; v1 has CONTROLLERS (blkio), memcg
# is v2 with the memory controller
mount_cgroup() {
	CGV=${1/memcg/v2}
	CG=$TMP/cgroup-$CGV
	mkdir -p "$CG"
	if [ "$1" = v1 ]; then
		# what holds a group for five minutes holds it for good
		controller_free 300 mount -t cgroup -o "${2:-blkio}" none "$CG" ||
			skip_all "the blkio controller is not free for cgroup v1: $(grep blkio /proc/cgroups)"
	else
		mount -t cgroup2 none "$CG" 2>/dev/null || skip_all "the kernel has no cgroup v2"
		controller_free 30 grep -qw io "$CG/cgroup.controllers" || true
		echo +io >"$CG/cgroup.subtree_control" || skip_all "cgroup v2 has no io controller"
		[ "$1" != memcg ] || echo +memory >"$CG/cgroup.subtree_control" || skip_all "cgroup v2 has no memory controller"
	fi
}

umount_cgroup() {
	local i
	end_loads
	for ((i = ${#groups[@]} - 1; i >= 0; i--)); do
		[ ! -d "${groups[i]}" ] || rmdir "${groups[i]}" || return 1
	done
	groups=()
	# while a removed group is not freed yet, v1 keeps the controller; a worker of a loop device holds a reference on
	# its group for a minute
	for ((i = 0; i < 900; i++)); do
		if [ "$CGV" != v1 ] || [ "$(awk '$1 == "blkio" { print $3 }' /proc/cgroups)" = 1 ]; then break; fi
		sleep 0.1
	done
	[ -z "$CG" ] || umount "$CG"
	CG=
}

# on_each FUNCTION HIERARCHY...: runs the function on each hierarchy, see mount_cgroup; its points begin with the name
# of the hierarchy. Without a memory controller as many points are skipped as the function had on the hierarchy before.
on_each() {
	local run=$1 before points=0
	shift
	for HIERARCHY; do
		before=$tap_nr
		mount_cgroup "${HIERARCHY/memcg/v2}"
		if [ "$HIERARCHY" != memcg ] || echo +memory 2>/dev/null >"$CG/cgroup.subtree_control"; then
			"$run"
			points=$((tap_nr - before))
		else
			while ((tap_nr < before + points)); do skip memcg "no memory controller"; done
		fi
		umount_cgroup
	done
	HIERARCHY=
}

# group NAME...: makes groups; NAME may be a path
group() {
	local name
	for name; do
		if [ "$CGV" = v2 ] && [ "$name" != "${name%/*}" ]; then
			echo +io >"$CG/${name%/*}/cgroup.subtree_control"
		fi
		mkdir "$CG/$name"
		groups+=("$CG/$name")
	done
}

# v1_file KEY: the file on v1 of the limit that is KEY in io.max
v1_file() {
	local rw=write
	[ "${1#r}" = "$1" ] || rw="read"
	echo "blkio.throttle.${rw}_${1#?}_device"
}

# cap GROUP DEVICE KEY=VALUE...: sets limits; KEY is as in io.max, VALUE may be max on v1, too. GROUP is / for the root
# group.
cap() { set_limits "$1" "$(devno "$2")" "${@:3}"; }

# cap_all GROUP KEY=VALUE...: sets limits for all devices
cap_all() { set_limits "$1" default "${@:2}"; }

# set_limits GROUP NUMBER KEY=VALUE...: sets limits for the device with that number, or "default"
set_limits() {
	local dir=$CG/$1 dev=$2 key value
	shift 2
	if [ "$CGV" = v2 ]; then
		echo "$dev $*" >"$dir/io.max"
		return
	fi
	for key; do
		value=${key#*=}
		echo "$dev ${value/max/0}" >"$dir/$(v1_file "${key%%=*}")"
	done
}

# weight GROUP VALUE [DEVICE]: sets a weight, for DEVICE if it is given
weight() {
	local dir=$CG/$1 file=io.weight
	[ "$CGV" = v2 ] || file=blkio.weight${3:+_device}
	echo "${3:+$(devno "$3") }$2" >"$dir/$file"
}

# device KEY=VALUE...: sets weights= and depth= of DEV
device() {
	local file=io.ioband
	[ "$CGV" = v2 ] || file=blkio.ioband
	echo "$(devno "$DEV") $*" >"$CG/$file"
}

# start_soon: the loads that follow begin together, 0.1 s from now
start_soon() {
	START=$(awk '{ printf "%d", ($1 + 0.1) * 1000 + 0.5 }' /proc/uptime)000000
}

# load GROUP NAME OPTION...: runs blkio_load in GROUP in the background
load() {
	local dir=$CG/$1 name=$2
	shift 2
	(
		trap - EXIT
		echo "$BASHPID" >"$dir/cgroup.procs"
		exec blkio_load -a "$START" "$@" >"$TMP/$name.json"
	) &
	loads+=($!)
}

# counted GROUP [OP]: the bytes that the group has written to the disk, or read from it
counted() {
	local key=wbytes
	if [ "$CGV" = v2 ]; then
		[ "${2:-Write}" = Write ] || key=rbytes
		sed -n "s/^$(devno "$DEV") .*\b$key=\([0-9]*\).*/\1/p" "$CG/$1/io.stat"
		return
	fi
	awk -v "dev=$(devno "$DEV")" -v "op=${2:-Write}" '$1 == dev && $2 == op { print $3 }' \
		"$CG/$1/blkio.throttle.io_service_bytes"
}

# wbytes GROUP: the bytes that the group has written to DEV, v2
wbytes() { sed -n "s/^$(devno "$DEV") .*wbytes=\([0-9]*\).*/\1/p" "$CG/$1/io.stat" | grep . || echo 0; }
# rbytes GROUP: the bytes that the group has read from DEV, v2
rbytes() { sed -n "s/^$(devno "$DEV") .*rbytes=\([0-9]*\).*/\1/p" "$CG/$1/io.stat" | grep . || echo 0; }
# debt_usec GROUP: the time until the group's debt on DEV is repaid, v2
debt_usec() { sed -n "s/^$(devno "$DEV") .*debt_usec=\([0-9]*\).*/\1/p" "$CG/$1/io.stat" | grep . || echo 0; }

# in_group GROUP COMMAND...: runs the command in the group
in_group() {
	(
		trap - EXIT
		echo "$BASHPID" >"$CG/$1/cgroup.procs"
		shift
		exec "$@"
	)
}

# in_background GROUP COMMAND...: runs the command in GROUP until it ends or end_loads() ends it
in_background() {
	(
		trap - EXIT
		echo "$BASHPID" >"$CG/$1/cgroup.procs"
		exec "${@:2}" >/dev/null
	) &
	loads+=($!)
}

# wait_loads: waits for all loads; an error of a load fails the test
wait_loads() {
	local pid rc=0
	for pid in "${loads[@]}"; do
		wait "$pid" || rc=1
	done
	loads=()
	[ $rc = 0 ] || bail "a load failed: $(cat "$TMP"/*.json)"
}

end_loads() {
	local pid
	for pid in "${loads[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	loads=()
}

now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

# until_ns NS: sleeps until that time of CLOCK_MONOTONIC
until_ns() {
	python3 -c 'import sys, time
left = int(sys.argv[1]) / 1e9 - time.monotonic()
time.sleep(max(left, 0))' "$1"
}

cleanup() {
	local rc=$? last=$BASH_COMMAND i
	trap - EXIT
	set +e
	end_loads
	trace_end
	for ((i = ${#undo[@]} - 1; i >= 0; i--)); do
		eval "${undo[i]}" >/dev/null 2>&1
	done
	umount_cgroup
	cd /
	rm -rf "$TMP"
	if [ $rc = 0 ] && [ "$tap_nr" != "$tap_plan" ]; then
		echo "# ran $tap_nr of $tap_plan"
		rc=1
	elif [ $rc != 0 ] && [ "$tap_nr" != "$tap_plan" ]; then
		echo "# ended after $tap_nr of $tap_plan, at: $last"
	fi
	if [ $rc = 0 ] && [ "$tap_failed" != 0 ]; then rc=1; fi
	exit $rc
}
trap cleanup EXIT

[ "$(id -u)" = 0 ] || skip_all "the test needs root"
command -v blkio_load >/dev/null || bail "blkio_load is not built: make -C $HERE"
