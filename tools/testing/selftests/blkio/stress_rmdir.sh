#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt uml-debug qemu
# timeout: 900
# A group is removed while its bios are held: they wait for the limits that are left, keep the rate of those to the
# end and write their data, and then the group is freed. The time is asserted in virtual time only; elsewhere the test
# asserts that the removal dispatched no bio early.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

BIOS=64 BYTES=16384
bounded() { [ "${IOBAND_GUEST:-}" = uml-vt ]; }
# a second's worth; two minutes where a minute may pass between two commands, until it is raised
RATE=$MiB
bounded || RATE=$((MiB / 128))

# submit_and_leave GROUP: held bios of GROUP, whose submitter has moved to another group
submit_and_leave() {
	verify "$1" load -b $BYTES -d $BIOS -s 33554432 -n $BIOS -r 0 -w "$TMP/load.state" "$DEV"
	wait_for "bios held" holds "$DISK" 32 || return 1
	cat "$TMP/load.pid" >"$CG/cgroup.procs"
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
	cap "$name" "$DEV" wbps=4096
	submit_and_leave "$name"
	begin=$(now_ms)
	rmdir "$CG/$name"
	check "$text: all held bios are dispatched when the group is removed" intact load
	if bounded; then
		check "$text: held bios are dispatched at once when the group is removed" in_range $(($(now_ms) - begin)) 0 110
	else
		# the limit would have taken four minutes
		check "$text: held bios do not wait for the removed limit" in_range $(($(now_ms) - begin)) 0 60000
	fi
	check "$text: no bio is held any more" wait_for "held" holds_none "$DISK"
	check "$text: the bios have written their data" written load "$DEV" -b $BYTES -s 33554432
	forget load
	check "$text: the group is freed" wait_for "end of $name" none_dying
	null_end smpnull
}

# remove_group TEXT TOP GROUP: the limit is that of TOP
remove_group() {
	local text=$1 top=$2 name=$3 before begin
	smp_null smpnull
	cap "$top" "$DEV" "wbps=$RATE"
	begin=$(now_ms)
	submit_and_leave "$name"
	before=$(held "$DISK")
	rmdir "$CG/$name"
	check "$text: rmdir dispatches no bio" still_held "$before"
	if bounded; then
		check "$text: held bios keep the rate of the limit above to the end" paced "$begin"
	else
		cap "$top" "$DEV" wbps=$MiB
		check "$text: all held bios are dispatched in the end" intact load
	fi
	check "$text: no bio is held any more" wait_for "held" holds_none "$DISK"
	check "$text: the bios have written their data" written load "$DEV" -b $BYTES -s 33554432
	rmdir "$CG/$top"
	forget load
	check "$text: the group is freed" wait_for "end of $name" none_dying
	null_end smpnull
}

# Two levels are removed; a limit of the parent above both applies to the end.
remove_both() {
	smp_null smpnull
	cap top "$DEV" "wbps=$RATE"
	cap "top/$1" "$DEV" wbps=4096
	submit_and_leave "top/$1/$2"
	rmdir "$CG/top/$1/$2" "$CG/top/$1" || return 1
	holds "$DISK" 1 || return 1
	bounded || cap top "$DEV" wbps=$MiB
	intact load && written load "$DEV" -b $BYTES -s 33554432 || return 1
	forget load
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
