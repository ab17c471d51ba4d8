#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 300
# md RAID1: limits on its members, each of which charges each write; members that fail, return and are added while a
# group is at its limit; a resync with a limit of the root group (v1); and the data on the members afterwards.
. "$(dirname "$0")/lib/blkio_lib.sh"

command -v mdadm >/dev/null || skip_all "the test needs mdadm"
RATE=$((8 * MiB))
T=8
BURST=65536

md() { MDADM_NO_UDEV=1 mdadm --quiet "$@" 2>>"$TMP/mdadm.log" || { cat "$TMP/mdadm.log"; return 1; }; }
state() { cat "/sys/block/md8/md/$1"; }

# whole: waits, for up to 100 s, until every member has all data
whole() {
	local i
	for ((i = 0; i < 1000; i++)); do
		[ "$(state degraded) $(state sync_action)" != "0 idle" ] || return 0
		sleep 0.1
	done
	echo "degraded: $(state degraded), $(state sync_action)"
	return 1
}

# at_rate NAME RATE: a load of T seconds gets all bytes of the limit, and B at once
at_rate() { in_range "$(val "$1" bytes)" $(($2 * T - 65536)) $(($2 * T + BURST)); }

# limited OPTION...: a load in g that always has I/O waiting
limited() {
	start_soon
	load g x -f "$MD" -s 64k -p rand -d 16 -t $T "$@"
	wait_loads
}

# paid OP: the bytes that a member charged to g
paid() {
	local DEV=$1
	counted g "$2"
}

# members: limits on each of both members, and on one
members() {
	local before
	group g
	for disk in m1 m2; do cap g /dev/$disk wbps=$RATE rbps=$RATE; done
	before=$(paid /dev/m1 Write)
	limited -o w
	check "limits on both members: writes to md get the limit" at_rate x $RATE
	# the load does not count the 16 I/Os that are outstanding at its end
	check "limits on both members: each write is charged on the first" \
		equal $(($(paid /dev/m1 Write) - before)) $(($(val x wbytes) + 16 * 65536))
	check "limits on both members: each write is charged on the second" \
		equal "$(paid /dev/m1 Write)" "$(paid /dev/m2 Write)"
	BURST=$((2 * BURST))
	limited -o r
	check "limits on both members: reads get both limits" at_rate x $((2 * RATE))
	BURST=$((BURST / 2))
	cap g /dev/m2 wbps=max rbps=max
	limited -o w
	check "a limit on one member: writes to md get that limit" at_rate x $RATE
	cap g /dev/m1 wbps=max rbps=max
}

# changes: members fail, are removed and are added
changes() {
	md "$MD" --fail /dev/m2 && md "$MD" --remove /dev/m2 && sleep 0.5 && md "$MD" --re-add /dev/m2 && whole &&
		md "$MD" --fail /dev/m1 && md "$MD" --remove /dev/m1 && md --zero-superblock /dev/m1 && sleep 0.5 &&
		md "$MD" --add /dev/m1 && whole && md "$MD" --add /dev/m3 && md --grow "$MD" --raid-devices=3 && whole &&
		md "$MD" --fail /dev/m3 && md "$MD" --remove /dev/m3 && md --grow "$MD" --raid-devices=2 && echo changed
}

# same: md compares the data of the members
same() {
	echo check >/sys/block/md8/md/sync_action
	whole && equal "$(state mismatch_cnt)" 0
}

# changing: a group is at its limit on md while members come and go, which must not change its rate
changing() {
	local what
	cap g "$MD" wbps=$RATE rbps=$RATE
	start_soon
	load g w -f "$MD" -s 64k -p rand -d 16 -t $T -o w -O 0 -L 24M
	load g r -f "$MD" -s 64k -p rand -d 16 -t $T -o r
	what=$(changes) || note "$what"
	wait_loads
	check "members fail, return and are added, and a third one comes and goes" equal "${what##*$'\n'}" changed
	check "while members come and go: writes are at the limit" at_rate w $RATE
	check "while members come and go: reads are at the limit" at_rate r $RATE
	check "after members came and went: they have the same data" same
	cap g "$MD" wbps=max rbps=max
}

# fs: a file that was written before one member failed is read from the other one
fs() {
	mkfs.ext4 -q -F "$MD" && mkdir -p "$TMP/mnt" && mount "$MD" "$TMP/mnt" || return 1
	undo+=("umount $TMP/mnt")
	cap g "$MD" wbps=$RATE
	in_group g dd if=/dev/urandom of="$TMP/mnt/file" bs=64k count=128 conv=fsync status=none
	before=$(sha256sum <"$TMP/mnt/file")
	md "$MD" --fail /dev/m1 && umount "$TMP/mnt" && md --stop "$MD" && md --assemble --run "$MD" /dev/m2 &&
		mount "$MD" "$TMP/mnt" || return 1
	equal "$(sha256sum <"$TMP/mnt/file")" "$before" || return 1
	umount "$TMP/mnt"
	cap g "$MD" wbps=max
}

# resync: 32 MiB are copied to the member that returns, in the name of the root group; a group that writes
# meanwhile has a limit as well
resync() {
	local begin end
	echo 1000000 >/proc/sys/dev/raid/speed_limit_min
	cap / /dev/m1 wbps=$RATE
	md --zero-superblock /dev/m1 || return 1
	cap g "$MD" wbps=$MiB
	T=3
	start_soon
	load g w -f "$MD" -s 64k -p rand -d 16 -t $T -o w
	begin=$(date +%s%N)
	md "$MD" --add /dev/m1 && whole || return 1
	end=$(date +%s%N)
	wait_loads
	# the time less B, and what md reads and writes before and after; sampled every 100 ms
	in_range $(((end - begin) / 1000000)) $(((SIZE - BURST) * 1000 / RATE)) $((SIZE * 1000 / RATE + 150))
}

plan 12
mount_cgroup v1
for disk in m1 m2 m3; do null_dev $disk memory_backed=1 size=36; done
md_dev md8 raid1 /dev/m1 /dev/m2 || bail "no RAID1"
MD=$DEV
members
md --grow "$MD" --bitmap=internal || bail "no bitmap"
changing
check "a file system on md that is assembled anew with one member has its data" fs
SIZE=$(($(sectors "$MD") * 512))
check "a resync under a limit of the root group takes the time that the limit demands" resync
check "beside a resync under a limit of the root group another group gets its own limit" at_rate w $MiB
