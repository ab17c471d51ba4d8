#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt uml-debug qemu
# timeout: 900
# A group is removed while its bios are held, and while its tasks wait for limits before they submit I/O: bios and tasks
# wait for the limits that are left, keep the rate of those to the end and write their data, and then the group is
# freed. The time is asserted in virtual time only; elsewhere the test asserts that the removal dispatched no bio early.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

BIOS=64 BYTES=16384
bounded() { [ "${IOBAND_GUEST:-}" = uml-vt ]; }
# RATE holds all BIOS; with SLOW two minutes pass until half of them are dispatched, and a minute may pass between two
# commands until it is raised
RATE=$MiB SLOW=$((MiB / 256))

# leave NAME...: the loads move to another group
leave() {
	local name
	for name; do cat "$TMP/$name.pid" >"$CG/cgroup.procs"; done
}

# submit_and_leave GROUP CAPPED: held bios of GROUP and tasks of it that wait, below the limit SLOW of CAPPED; all tasks
# have moved to another group
submit_and_leave() {
	hold_bios "$1" "$2" "$DEV"
	wait_at_door "$1" -n 1
	cap "$2" "$DEV" wbps=$SLOW
	stop load
	leave load "${DOOR[@]}"
}

# submit_and_leave_at_rate GROUP: BIOS of GROUP, held below RATE, whose submitter has moved to another group
submit_and_leave_at_rate() {
	DOOR=()
	verify "$1" load -b $BYTES -d $BIOS -s $((32 * MiB)) -o $((32 * MiB)) -n $BIOS -r 0 -w "$TMP/load.state" "$DEV"
	wait_for "bios held" holds "$DISK" 32 || return 1
	leave load
}

# No bio is dispatched early: those held when the group was removed are still held.
still_held() {
	local before=$1 after
	after=$(held "$DISK")
	echo "held before rmdir $before, after $after"
	[ "$after" -gt 0 ] && running load
}

# ends in its time: BIOS * BYTES at RATE less the burst; sampled up to 0.1 s later
paced() {
	intact load || return 1
	in_range $(($(now_ms) - $1)) 937 1110
}

# remove_limit TEXT GROUP: the only limit that holds the bios is removed with the group
remove_limit() {
	local text=$1 name=$2 begin
	smp_null smpnull
	submit_and_leave "$name" "$name"
	begin=$(now_ms)
	rmdir "$CG/$name"
	check "$text: all held bios are dispatched when the group is removed" intact load "${DOOR[@]}"
	if bounded; then
		check "$text: held bios are dispatched at once when the group is removed" in_range $(($(now_ms) - begin)) 0 110
	else
		# the limit would have taken three minutes
		check "$text: held bios do not wait for the removed limit" in_range $(($(now_ms) - begin)) 0 60000
	fi
	check "$text: no bio is held any more" wait_for "held" holds_none "$DISK"
	check "$text: the bios have written their data" held_written
	forget load "${DOOR[@]}"
	check "$text: the group is freed" wait_for "end of $name" none_dying
	null_end smpnull
}

# remove_group TEXT TOP GROUP: the limit is that of TOP
remove_group() {
	local text=$1 top=$2 name=$3 before begin
	smp_null smpnull
	if bounded; then
		cap "$top" "$DEV" "wbps=$RATE"
		begin=$(now_ms)
		submit_and_leave_at_rate "$name"
	else
		submit_and_leave "$name" "$top"
	fi
	before=$(held "$DISK")
	rmdir "$CG/$name"
	check "$text: rmdir dispatches no bio" still_held "$before"
	if bounded; then
		check "$text: held bios keep the rate of the limit above to the end" paced "$begin"
	else
		cap "$top" "$DEV" "wbps=$RATE"
		check "$text: all held bios are dispatched in the end" intact load "${DOOR[@]}"
	fi
	check "$text: no bio is held any more" wait_for "held" holds_none "$DISK"
	check "$text: the bios have written their data" held_written
	rmdir "$CG/$top"
	forget load "${DOOR[@]}"
	check "$text: the group is freed" wait_for "end of $name" none_dying
	null_end smpnull
}

# Two levels are removed; a limit of the parent above both applies to the end.
remove_both() {
	smp_null smpnull
	cap top "$DEV" "wbps=$RATE"
	submit_and_leave "top/$1/$2" "top/$1"
	bounded || cap top "$DEV" wbps=$SLOW
	rmdir "$CG/top/$1/$2" "$CG/top/$1" || return 1
	holds "$DISK" 1 || return 1
	bounded || cap top "$DEV" "wbps=$RATE"
	intact load "${DOOR[@]}" && held_written || return 1
	forget load "${DOOR[@]}"
	wait_for "end of $1" none_dying || return 1
	null_end smpnull
}

# While removed groups have held bios, new groups with the same names get other limits.
remove_again() {
	local i
	smp_null smpnull
	for ((i = 0; i < ${ROUNDS:-8}; i++)); do
		mkdir "$CG/again"
		cap again "$DEV" "wbps=$((MiB >> i))" wiops=$((1000 >> i))
		verify again "again$i" -b 4096 -d 32 -o $((i * 4 * MiB)) -s $((4 * MiB)) -n 32 -r 0 "$DEV"
		# the load may have ended already
		cat "$TMP/again$i.pid" >"$CG/cgroup.procs" 2>/dev/null || true
		wait_for rmdir rmdir "$CG/again" || return 1
	done
	for ((i = 0; i < ${ROUNDS:-8}; i++)); do
		intact "again$i" || return 1
	done
	wait_for held holds_none "$DISK" || return 1
	for ((i = 0; i < ${ROUNDS:-8}; i++)); do forget "again$i"; done
	wait_for "end of again" none_dying || return 1
	null_end smpnull
}

plan 19
leaks_begin
mount_cgroup v2
group a
remove_limit "v2" a
group a a/b
remove_group "v2, rule above" a a/b
group top top/c top/c/d
check "v2: both levels of the group are removed" remove_both c d
check "v2: groups of the same names are removed again and again" remove_again
umount_cgroup
mount_cgroup v1
group a
remove_limit "v1" a
umount_cgroup
leak_point
check "the kernel log has no splats" no_splat
