#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug
# timeout: 900
# Pages change hands on v1 while groups come and go: tasks that write, map, punch,
# truncate and sync the same files out of ever other groups, groups that are removed
# with dirty pages, memory that is short. In the end every page has been given back.
# shellcheck source=smp_lib.sh
. "$(dirname "$0")/smp_lib.sh"

# IDS: so many groups dirty a page and go
SEC=${SEC:-10} IDS=${IDS:-150}

# none_counted: of no group; a sum would be 0 also if one has as many too many as another one has too few
none_counted() { cat /sys/kernel/debug/dirty_owner && ! grep -qv 'dirty=0 writing=0\b' /sys/kernel/debug/dirty_owner; }
nothing_left() { sync; wait_for "no page is counted" none_counted; }

# come_and_go: groups under rule, made and removed as long as there are writers
come_and_go() {
	local n=0
	while [ -e "$TMP/go" ]; do
		mkdir "$CG/top/n$((n % 3))"
		cap "top/n$((n % 3))" "$DEV" wbps=$(((n % 5 + 1) * MiB))
		weight "top/n$((n % 3))" $((100 + n % 9 * 100))
		sleep 0.3
		# tasks leave first
		while read -r pid; do echo "$pid" >"$CG/top/cgroup.procs"; done <"$CG/top/n$((n % 3))/cgroup.procs" 2>/dev/null
		rmdir "$CG/top/n$((n % 3))" 2>/dev/null
		n=$((n + 1))
	done
	rmdir "$CG"/top/n? 2>/dev/null
	return 0
}

# turmoil DIR: three that write
turmoil() {
	local i rc=0
	: >"$TMP/go"
	background groups come_and_go
	for i in 1 2 3; do
		background "writer$i" python3 "$HERE/smp_owner.py" "$CG/top" "$1" "$SEC" "$i"
	done
	for i in 1 2 3; do
		ended "writer$i" || rc=1
		cat "$TMP/writer$i.out"
	done
	rm "$TMP/go"
	ended groups || rc=1
	return $rc
}

# many: groups that dirty a page and go with it
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
check "files of ext4, all at once" turmoil "$TMP/mnt"
check "every page is given back" nothing_left
check "groups that go with dirty pages" many
check "every page is given back" nothing_left
echo 3 >/proc/sys/vm/drop_caches
check "and their groups are forgotten" wait_for "no owner is left" no_owners
umount "$TMP/mnt"
mkfs.ext4 -q -F -O ^has_journal "$DEV" 2>/dev/null
mount "$DEV" "$TMP/mnt"
undo+=("umount $TMP/mnt")
check "ext4 without a journal, all at once" turmoil "$TMP/mnt"
check "every page is given back" nothing_left
umount "$TMP/mnt"
check "and their groups are forgotten" wait_for "no owner is left" no_owners
nothing_leaked
check "the kernel kept quiet" no_splat
