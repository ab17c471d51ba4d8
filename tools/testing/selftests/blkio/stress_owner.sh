#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# Pages change their dirtier on v1 while groups come and go: tasks in ever other groups write, map, punch, truncate and
# sync the same files, groups with dirty pages are removed, memory is short. In the end no page stays counted.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

# IDS: this many groups dirty a page and are removed
SEC=${SEC:-10} IDS=${IDS:-150}

# none_counted: no page of any group is counted; a sum over all groups would hide two groups that are wrong
none_counted() { cat /sys/kernel/debug/dirty_owner && ! grep -qv 'dirty=0 writing=0\b' /sys/kernel/debug/dirty_owner; }
nothing_left() { sync; wait_for "no page is counted" none_counted; }

# come_and_go: makes and removes groups below top as long as there are writers
come_and_go() {
	local n=0
	while [ -e "$TMP/go" ]; do
		mkdir "$CG/top/n$((n % 3))"
		cap "top/n$((n % 3))" "$DEV" wbps=$(((n % 5 + 1) * MiB))
		weight "top/n$((n % 3))" $((100 + n % 9 * 100))
		sleep 0.3
		# tasks leave the group first
		while read -r pid; do echo "$pid" >"$CG/top/cgroup.procs"; done <"$CG/top/n$((n % 3))/cgroup.procs" 2>/dev/null
		rmdir "$CG/top/n$((n % 3))" 2>/dev/null
		n=$((n + 1))
	done
	rmdir "$CG"/top/n? 2>/dev/null
	return 0
}

# turmoil DIR: three tasks that write
turmoil() {
	local i rc=0
	: >"$TMP/go"
	background groups come_and_go
	for i in 1 2 3; do
		background "writer$i" python3 "$HERE/lib/stress_owner.py" "$CG/top" "$1" "$SEC" "$i"
	done
	for i in 1 2 3; do
		ended "writer$i" || rc=1
		cat "$TMP/writer$i.out"
	done
	rm "$TMP/go"
	ended groups || rc=1
	return $rc
}

# many: groups that dirty a page and are removed
many() {
	local i
	for ((i = 0; i < IDS; i++)); do
		mkdir "$CG/top/id"
		(echo "$BASHPID" >"$CG/top/id/cgroup.procs"; echo x >"$TMP/mnt/id")
		rmdir "$CG/top/id" || return 1
	done
}

plan 10
leaks_begin
mount_cgroup v1
group top
smp_null nb0
mkfs.ext4 -q -F "$DEV"
mkdir "$TMP/mnt"
mount "$DEV" "$TMP/mnt"
cap top "$DEV" wbps=$((16 * MiB))
check "ext4: tasks write, map, truncate and sync the same files" turmoil "$TMP/mnt"
check "ext4: no page stays counted" nothing_left
check "groups dirty a page and are removed, one after the other" many
check "groups that dirtied a page: no page stays counted" nothing_left
echo 3 >/proc/sys/vm/drop_caches
check "groups that dirtied a page: they are freed" wait_for "no owner is left" no_owners
umount "$TMP/mnt"
mkfs.ext4 -q -F -O ^has_journal "$DEV" 2>/dev/null
mount "$DEV" "$TMP/mnt"
undo+=("umount $TMP/mnt")
check "ext4 without a journal: tasks write, map, truncate and sync the same files" turmoil "$TMP/mnt"
check "ext4 without a journal: no page stays counted" nothing_left
umount "$TMP/mnt"
check "ext4 without a journal: the groups are freed" wait_for "no owner is left" no_owners
leak_point
check "the kernel log has no splats" no_splat
