# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the stress_*.sh tests: sources blkio_lib.sh, and adds loads that verify their data, checks for leaks and
# splats, and disks that are removed.
#
# These tests assert order, conservation, errno and an empty kernel log. Time is judged only by time-outs that mean "it
# hangs".

# shellcheck source=lib/blkio_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/blkio_lib.sh"
command -v stress_verify >/dev/null || bail "stress_verify is not built: make -C $HERE"

HANG_S=${HANG_S:-300}
KMEMLEAK=/sys/kernel/debug/kmemleak
SPLAT='WARNING:|(^|[^A-Z])BUG[: ]|UBSAN|KASAN:|Call Trace|Oops|ODEBUG|lockdep is turned off|blocked for more'
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
echo "${0##*/} $$ begins" >/dev/kmsg

# wait_for WHAT COMMAND...: waits until COMMAND succeeds; fails if it does not for long
wait_for() {
	local what=$1 end=$((SECONDS + HANG_S))
	shift
	until "$@" 2>/dev/null; do
		[ "$SECONDS" -lt "$end" ] || { echo "gave up waiting: $what"; return 1; }
		sleep 0.1
	done
}

# smp_null NAME [KEY=VALUE...]: a null_blk disk with memory behind it; sets DEV, DISK
smp_null() {
	local name=$1
	shift
	null_dev "$name" size=64 memory_backed=1 submit_queues=2 "$@"
	DISK=$name
	wait_for "$DEV" test -b "$DEV"
}

# null_end NAME: removes the disk and its place in configfs
null_end() {
	[ ! -d "$NULLB/$1" ] || null_gone "$1"
}

# smp_dm NAME: sets DEV and DISK to that dm device, without udev's links
smp_dm() {
	local number
	number=$(dmsetup info -c --noheadings -o major,minor --separator : "$1")
	DISK=$(basename "$(readlink "/sys/dev/block/$number")")
	DEV=/dev/$DISK
}

# no_owners: no group has pages in dirty_owner; its contents are read, as a file in debugfs has no size
no_owners() { ! grep -q . /sys/kernel/debug/dirty_owner; }

# background NAME COMMAND...: runs in the background; ended NAME waits for it, in any subshell
background() {
	local name=$1
	shift
	[ ! -e "$TMP/$name.rc" ] || rm "$TMP/$name.rc" "$TMP/$name.out"
	(
		trap - EXIT
		set +e
		"$@" >"$TMP/$name.out" 2>&1
		echo $? >"$TMP/$name.rc"
	) >/dev/null 2>&1 &	# check waits for all that has its pipe
	loads+=($!)
}

ended() {
	local name status
	for name; do
		wait_for "the end of $name" test -s "$TMP/$name.rc" || return 1
		slurp status "$TMP/$name.rc"
		[ "$status" = 0 ] || { tail -n 5 "$TMP/$name.out"; return 1; }
	done
}

running() { [ ! -s "$TMP/$1.rc" ]; }

exec_in() {
	echo "$BASHPID" >"$CG/$1/cgroup.procs"
	shift
	echo "$BASHPID" >"$TMP/$1.pid"
	shift
	exec "$@"
}

# verify GROUP NAME OPTION...: stress_verify in GROUP, which has opened the disk; $TMP/NAME.pid has its pid
verify() {
	local group=$1 name=$2
	shift 2
	[ ! -e "$TMP/$name.pid" ] || rm "$TMP/$name.pid"
	background "$name" verify_fn "$group" "$name" "$@"
	wait_for "$name" test -s "$TMP/$name.pid"
}
verify_fn() { (exec_in "$1" "$2.sh" stress_verify -p "$TMP/$2.pid" "${@:3}"); }

# stop NAME...: ends the loads; what is in flight completes first
stop() {
	local name
	for name; do
		kill -TERM "$(cat "$TMP/$name.pid")" 2>/dev/null || true
	done
}

# results NAME: sets LINE to the last line of stress_verify, and RESULT[KEY]. It starts no process, here and wherever
# a load has all CPUs: on the debug kernel that takes up to a second.
declare -A RESULT
results() {
	local lines word
	mapfile -t lines <"$TMP/$1.out"
	LINE=${lines[*]: -1}
	RESULT=()
	for word in $LINE; do RESULT[${word%%=*}]=${word#*=}; done
}

# conserved NAME...: each submitted I/O ended exactly once, with or without an error
conserved() {
	local name
	for name; do
		ended "$name" || return 1
		results "$name"
		echo "$LINE"
		[ "${RESULT[submitted]}" = "${RESULT[completed]}" ] &&
			[ "${RESULT[lost]}${RESULT[dup]}${RESULT[bad]}" = 000 ] || return 1
	done
}

# intact NAME...: each submitted I/O ended exactly once, without an error
intact() {
	local name
	conserved "$@" || return 1
	for name; do
		results "$name"
		[ "${RESULT[errors]}${RESULT[short]}" = 00 ] && [ "${RESULT[completed]}" -gt 0 ] || return 1
	done
}

# written NAME DEVICE OPTION...: the data that NAME recorded with -w $TMP/NAME.state is on the device
written() {
	local name=$1 dev=$2
	shift 2
	background "$name.check" stress_verify "$@" -c "$TMP/$name.state" "$dev"
	intact "$name.check"
}

# held DISK [GROUP]: the bios that wait on the disk, in all groups or in one
held() {
	local file=/sys/kernel/debug/block/$1/ioband/groups cg=
	[ -e "/sys/block/$1" ] || { echo "no disk $1"; return; }
	# the file exists as soon as ioband knows the disk
	[ -r "$file" ] || { echo 0; return; }
	[ $# -lt 2 ] || cg=$(cgid "$2")
	awk -v cg="$cg" '!cg || $1 == "cg=" cg {
		for (i = 2; i <= NF; i++) if (sub(/^held=/, "", $i)) n += $i
	} END { print n + 0 }' "$file"
}

holds() { [ "$(held "$1")" -ge "$2" ]; }
holds_none() { [ "$(held "$1")" = 0 ]; }

# Limits hold no more asynchronous direct I/O than they allow in a second, and then tasks wait before they submit it, at
# the door: a task that does has a ticket in the line of its group, which counts as held, and no bio. With these two
# functions both wait on DISK until the limit is changed. DISK has 64 MiB, or is below DEV; the I/Os have 16 KiB.
#
# hold_bios GROUP CAPPED DEVICE: 32 bios at least of a load of GROUP, to the upper half of DEV, wait for the limit of
# CAPPED for DEVICE. They are submitted below a limit of 1 MiB/s, which is lowered to 1 B/s while they wait. The load,
# which is named load, goes on until it is stopped or fails.
hold_bios() {
	cap "$2" "$3" wbps=$MiB
	verify "$1" load -b 16384 -d 60 -o $((32 * MiB)) -s $((32 * MiB)) -r 0 -w "$TMP/load.state" "$DEV"
	wait_for "bios held on $DISK" lowered "$2" "$3"
}
lowered() { cap "$1" "$2" wbps=$MiB && holds "$DISK" 32 && cap "$1" "$2" wbps=1 && holds "$DISK" 32; }

# go_to_door GROUP OPTION...: 16 tasks of GROUP each submit an I/O to a MiB of their own, from the start of DEV, but for
# bios that hold_bios has held; DOOR has their names
go_to_door() {
	local group=$1 i
	shift
	DOOR=()
	for ((i = 0; i < 16; i++)); do
		verify "$group" "door$i" -b 16384 -d 1 -o $((i * MiB)) -s $MiB -r 0 -w "$TMP/door$i.state" "$@" "$DEV"
		DOOR+=("door$i")
	done
}

# wait_at_door GROUP OPTION...: as go_to_door, until they are in line. In the meantime the load may get a place or two there.
wait_at_door() {
	local before
	before=$(held "$DISK")
	go_to_door "$@"
	wait_for "tasks at the door of $DISK" holds "$DISK" $((before + ${#DOOR[@]}))
}

# held_written: the data of the load of hold_bios and of the tasks of wait_at_door is on DEV
held_written() {
	local i
	written load "$DEV" -b 16384 -o $((32 * MiB)) -s $((32 * MiB)) || return 1
	for i in "${!DOOR[@]}"; do
		written "${DOOR[i]}" "$DEV" -b 16384 -o $((i * MiB)) -s $MiB || return 1
	done
}

# two_loads: groups a and b each write a part of DEV, of SIZE; end_two: no I/O of them is lost
two_loads() {
	verify a one -b 16384 -d 16 -s "$SIZE" -S 1 -w "$TMP/one.state" "$DEV"
	verify b two -b 65536 -d 8 -o "$SIZE" -s "$SIZE" -S 2 -w "$TMP/two.state" "$DEV"
}
end_two() {
	stop one two
	intact one two && written one "$DEV" -b 16384 -s "$SIZE" &&
		written two "$DEV" -b 65536 -o "$SIZE" -s "$SIZE" && wait_for held holds_none "$DISK"
}

# dying: the removed groups that are not freed yet
dying() {
	if [ "$CGV" = v2 ]; then
		sed -n 's/^nr_dying_descendants //p' "$CG/cgroup.stat"
	else
		echo $(($(awk '$1 == "blkio" { print $3 }' /proc/cgroups) - $(find "$CG" -type d | wc -l)))
	fi
}

none_dying() {
	# the page cache keeps groups from being freed as well
	echo 3 >/proc/sys/vm/drop_caches
	[ "$(dying)" -le 0 ]
}

# forget NAME...: removes the files of loads that have ended. They are in memory, and on Linux 6.18 a removed group is
# not freed while memory belongs to it.
forget() {
	local name
	for name; do rm -f "$TMP/$name".*; done
}

# removed GROUP: the group can be removed, and is freed
removed() {
	wait_for "rmdir $1" rmdir "$CG/$1" && wait_for "end of $1: $(dying)" none_dying
}

# leaks_begin: kmemleak forgets what it has found so far
leaks_begin() { [ ! -e $KMEMLEAK ] || echo clear >$KMEMLEAK; }

# leaks_none: kmemleak finds nothing; it reports nothing younger than 5 s. Leaks from booting (pid 0) are not from the
# test.
leaks_none() {
	echo scan >$KMEMLEAK
	sleep 6
	echo scan >$KMEMLEAK
	awk 'BEGIN { RS = "unreferenced object"; ORS = "" } NR > 1 && !/pid 0,/' $KMEMLEAK >"$TMP/leaks"
	[ ! -s "$TMP/leaks" ] || { head -n 60 "$TMP/leaks"; return 1; }
}

# leak_point: the point of a test that kmemleak finds no leaks; skipped if the kernel has no kmemleak
leak_point() {
	if [ -e $KMEMLEAK ]; then
		check "kmemleak finds no leaks" leaks_none
	else
		skip "kmemleak finds no leaks" "this kernel has no kmemleak"
	fi
}

# no_splat: the kernel log has no splat since the test began; the harness looks at all of the log, with a longer list.
no_splat() {
	local begin="${0##*/} $$ begins"
	dmesg >"$TMP/dmesg" || return
	grep -q -F "$begin" "$TMP/dmesg" || { echo "the kernel log does not go back to the begin of the test"; return 1; }
	! sed "1,/$begin/d" "$TMP/dmesg" |
		awk -f "$HERE/lib/splats.awk" |
		grep -a -E -m 20 "$SPLAT"
}
