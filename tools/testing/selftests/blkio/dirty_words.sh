#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Pages that need no recorded dirtier: those of a group without limits, in a file whose writeback is that group's own
# (v2, with the memory controller). They cost almost nothing, and a limit that is set applies to the group's next page
# all the same.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_writeback.sh
. "$HERE/lib/blkio_writeback.sh"

# dirtied GROUP: the pages that count as dirtied by the group, of those that it still has
dirtied() {
	sed -n "s/^cg=$(stat -c %i "$CG/$1") bdi=.* dirtied=//p" /sys/kernel/debug/dirty_owner |
		awk '{ n += $1 } END { print n + 0 }'
}

# wrote GROUP FILE FROM_MIB MIB: buffered writes; several write() calls, as only the second does not ask
wrote() {
	in_group "$1" dd if=/dev/zero of="$2" bs=256k count=$(($4 * 4)) seek=$(($3 * 4)) conv=notrunc status=none
}

# alone GROUP: in a file that the group has created its pages have no recorded dirtier, and are charged to it
alone() {
	local at
	at=$(counted "$1")
	wrote "$1" "$MNT/${1##*/}" 0 16
	in_range "$(dirtied "$1")" 0 0 || return 1
	sync
	within $(($(counted "$1") - at)) $((16 * MiB)) 0
}

# foreign GROUP OTHER PAGES: in a file that OTHER has created all pages of GROUP have a recorded dirtier, and PAGES of
# OTHER
foreign() {
	local at at_other had
	sync
	at=$(counted "$1")
	at_other=$(counted "$2")
	had=$(dirtied "$1")
	wrote "$2" "$MNT/of-${2##*/}$3" 0 1
	wrote "$1" "$MNT/of-${2##*/}$3" 1 1
	in_range $(($(dirtied "$1") - had)) 256 256 && in_range "$(dirtied "$2")" "$3" "$3" || return 1
	sync
	within $(($(counted "$1") - at)) $MiB 0 && within $(($(counted "$2") - at_other)) $MiB 0
}

# storing FILE PAGES: stores to one page, and to PAGES more when FILE.go exists; prints how long these take, in ms
storing() {
	python3 - "$1" "$2" <<'EOF'
import mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
pages = mmap.mmap(fd, 4 << 20)
pages[0] = 1
while not os.path.exists(sys.argv[1] + '.go'):
    time.sleep(0.01)
begin = time.monotonic()
for page in range(256, 256 + int(sys.argv[2])):
    pages[page << 12] = 1
print(int((time.monotonic() - begin) * 1000))
EOF
}

# stored GROUP BY PAGES: a task of GROUP that calls no write() stores to a page; BY gets a limit; the task stores to
# PAGES
stored() {
	local task
	rm -f "$MNT/stores" "$MNT/stores.go"
	wrote "$1" "$MNT/stores" 0 4
	sync
	# the group's flow is freed meanwhile
	sleep 4
	in_group "$1" bash -c "$(declare -f storing); storing '$MNT/stores' $3" >"$TMP/ms" &
	task=$!
	sleep 0.1
	cap "$2" "$DEV" wbps=$MiB
	: >"$MNT/stores.go"
	wait "$task"
}

# limited GROUP BY: a limit that BY gets applies to what GROUP stores after that
limited() {
	stored "$1" "$2" 768
	cap "$2" "$DEV" wbps=max
	# except for the burst, of a tenth of a second
	in_range "$(cat "$TMP/ms")" 2700 3100
}

# first GROUP: the first page that a group with a limit stores to, in a file of its own, has a recorded dirtier
first() {
	wrote "$1" "$MNT/first" 0 1
	sync
	cap "$1" "$DEV" wbps=$MiB
	# the group's flow is freed meanwhile
	sleep 4
	in_range "$(dirtied "$1")" 0 0 || return 1
	in_group "$1" python3 - "$MNT/first" <<'EOF'
import mmap, os, sys
mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 1 << 20)[0] = 1
EOF
	in_range "$(dirtied "$1")" 1 1 || return 1
	cap "$1" "$DEV" wbps=max
}

# after GROUP: the first page that a group stores to after it got a limit has a recorded dirtier
after() {
	stored "$1" "$1" 1
	in_range "$(dirtied "$1")" 1 1 || return 1
	cap "$1" "$DEV" wbps=max
}

# backlog GROUP: pages that are dirty when the group gets a limit are a debt of a second at most
backlog() {
	local begin
	wrote "$1" "$MNT/backlog" 0 64
	cap "$1" "$DEV" wbps=$MiB
	begin=$(now_ms)
	sync
	in_group "$1" dd if=/dev/zero of="$MNT/next" bs=4k count=1 status=none
	in_range $(($(now_ms) - begin)) 0 1800
}

# rewriting FILE: 64 MiB whose memory is another group's. The first half is written to the disk again and again until
# the file has that group's writeback; the other half is dirty all the time.
rewriting() {
	python3 - "$1" <<'EOF'
import ctypes, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
def write(begin, end):
    for at in range(begin, end):
        os.pwrite(fd, bytes(1 << 20), at << 20)
write(0, 64)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
open(sys.argv[1] + '.read', 'w').close()
while not os.path.exists(sys.argv[1] + '.go'):
    time.sleep(0.01)
write(32, 64)
for again in range(6):
    write(0, 32)
    # waits before, writes, waits after
    ctypes.CDLL(None).sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(32 << 20), 7)
    time.sleep(0.5)
os.fdatasync(fd)
EOF
}

# switched GROUP OTHER: pages that GROUP has dirtied in its own file stay its own when the file gets OTHER's writeback
switched() {
	local at at_other task
	sync
	at=$(counted "$1")
	at_other=$(counted "$2")
	in_group "$1" bash -c "$(declare -f rewriting); rewriting '$MNT/switched'" &
	task=$!
	while [ ! -e "$MNT/switched.read" ]; do sleep 0.01; done
	in_group "$2" cat "$MNT/switched" >/dev/null
	: >"$MNT/switched.go"
	wait "$task"
	within $(($(counted "$1") - at)) $((9 * 32 * MiB)) 0 && within $(($(counted "$2") - at_other)) 0 0
}

plan 9
mount_cgroup v2
grep -qw memory "$CG/cgroup.controllers" || skip_all "no memory controller: inodes have no groups"
echo +memory >"$CG/cgroup.subtree_control"
group other p a b
echo +io +memory >"$CG/p/cgroup.subtree_control"
group p/a p/b
null_dev nb0 size=400 memory_backed=1
make_fs ext4 "$DEV" -q -F -E lazy_itable_init=0
cap other "$DEV" wbps=$MiB
check "a group without limits in its own file: its pages have no record and are charged to it" alone p/a
check "a group without limits in another group's file: its pages have a record" foreign p/a p/b 0
check "a limit that a group gets applies to its next page" limited a a
check "a limit that a group above gets applies to the next page" limited p/a p
check "a group with a limit: its first page has a record" first a
check "a group that has just got a limit: its first page has a record" after b
cap p/b "$DEV" wbps=$((100 * MiB))
check "a group without limits in the file of a group with a limit: its pages have a record" foreign p/a p/b 256
check "dirty pages in a file that gets another group's writeback stay their dirtier's" switched a b
check "pages that are dirty when a limit is set: a debt of a second at most" backlog a
umount "$MNT"
