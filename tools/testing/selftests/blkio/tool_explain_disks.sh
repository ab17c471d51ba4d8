#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/cgroup/ioband_explain.py: the disks below a path, for stacked devices and file systems; words that stand for
# nothing; a user without privileges; and processes that end.
# configs: uml-vt
# timeout: 300
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_explain.sh"
MNT=$TMP/mnt

# on_fs KIND NODE: a new file system at $MNT/KIND
on_fs() {
	mkdir -p "$MNT/$1"
	"mkfs.$1" -q "$2" >"$TMP/mkfs.log" 2>&1 || bail "mkfs.$1: $(tail -n 3 "$TMP/mkfs.log")"
	mount -t "$1" "$2" "$MNT/$1"
	undo+=("umount $MNT/$1")
}

# no_disk PATH TEXT: the answer has TEXT about the path, and no disk
no_disk() { explain -i 0 "$1" && says "said('$2') and d['disks'] == [] and d['targets'][0]['place']['nodes'] == []"; }

# a file on ext4 on dm-linear on a partition, and a loop device on that
stack() {
	local disk=$DEV
	addpart "$DEV" 1 2048 122880
	undo+=("delpart $disk 1")
	check "a partition: the answer has its disk" \
		explained "${DEV}1" "below0['kind'] == 'partition' and not below0['bears'] and
		said('path1 is a partition, which can have no limit (ENODEV): limits belong on path (') and
		d['type'][-1].startswith(f'echo \"{number} rbps=')"
	check "a partition: --check tells that it can have no limit" \
		refused_limit "${DEV}1" "is a partition and takes no limit: use path ("
	check "a partition: the kernel refuses it" refuses "$(cat /sys/class/block/path1/dev)"
	dm_dev linear "0 122880 linear ${DEV}1 0"
	on_fs ext4 "$DEV"
	DM=$(devno "$DEV")
	DEV=$disk
	echo x >"$MNT/ext4/file"
	cap g "$disk" rbps=$MiB
	cap g "/sys/class/block/$(basename "$(readlink -f "/sys/dev/block/$DM")")" rbps=$((2 * MiB))
	explain -i 0 g "$MNT/ext4/file"
	check "a file on dm on a partition: the answer has all disks below" \
		says "below0['device'] == '$DM' and below0['kind'] == 'dm-linear linear' and
		[below0['below'][0]['name'], below0['below'][0]['below'][0]['name']] == ['path1', 'path']"
	check "a file on dm on a partition: the answer has the mount" says "d['targets'][0]['place'] is None and
		d['targets'][1]['place']['mount']['kind'] == 'ext4'"
	check "a file on dm on a partition: the answer has the limits on both disks" \
		says "[(one['disk'], one['tightest']['rbps'][1]) for one in d['disks']] ==
		[(below0['name'], $((2 * MiB))), ('path', $MiB)]"
	check "a file on dm on a partition: the answer has the disks for limits" \
		says "said('limits belong on dm-') and said('limits on path below apply, too')"
	truncate -s 16M "$MNT/ext4/image"
	DEV=$(losetup --find --show "$MNT/ext4/image")
	undo+=("losetup -d $DEV")
	check "a loop device: the answer has the disks below its file" \
		explained "$DEV" "below0['kind'].startswith('loop device of') and
		below0['below'][0]['device'] == '$DM'"
	DEV=$disk
}

# dm-crypt writes copies; a device with a uuid of dm-crypt is enough here
crypted() {
	null_dev secret
	cap g "$DEV" rbps=$MiB
	dmsetup --noudevsync --noudevrules create crypted --uuid CRYPT-TEST --table "0 2048 linear $DEV 0"
	undo+=("dmsetup --noudevsync --noudevrules remove --retry crypted")
	DEV=/dev/dm-$(dmsetup info -c --noheadings -o minor crypted)
	check "dm-crypt: the answer tells that limits below do not apply" \
		explained "$DEV" "said('limits on secret do not apply') and said('limits belong on dm-')"
	check "dm-crypt: --check finds a limit below" \
		refused_limit secret "above it writes there in the name of the root group"
	cap g /dev/secret rbps=max
}

# explained WORD EXPRESSION: EXPRESSION is true for the answer about one word
explained() { explain -i 0 "$1" && says "$2"; }
# refused_limit WORD TEXT: --check of the word finds TEXT, among other things
refused_limit() {
	local status=0
	explain -i 0 --check "$1" || status=$?
	[ "$status" = 1 ] && says "any('$2' in one for one in d['wrong'])"
}
refuses() {
	(echo "$1 rbps=1048576" >"$CG/g/io.max") 2>"$TMP/stderr" || true
	grep "No such device" "$TMP/stderr"
}

# file systems that have no disk, or several disks
others() {
	null_dev more memory_backed=1 size=256
	on_fs btrfs "$DEV"
	check "btrfs: the answer has its disk" \
		explained "$MNT/btrfs" "[one['name'] for one in d['targets'][0]['place']['nodes']] == ['more'] and
		said('btrfs: limits apply on each of its disks')"
	check "tmpfs" no_disk "$TMP" "tmpfs: its data is in memory"
	check "proc" no_disk /proc/self/status "proc: it has no disk"
	check "hostfs" no_disk / "hostfs: its data goes to a server or the host"
	check "a character device: the answer tells that it has no data on a disk" \
		no_disk /dev/null "neither a file nor a directory nor a disk"
	mkdir -p "$MNT/ext4/upper" "$MNT/ext4/work" "$MNT/over" "$TMP/lower"
	if mount -t overlay -o "lowerdir=$TMP/lower,upperdir=$MNT/ext4/upper,workdir=$MNT/ext4/work" none "$MNT/over" 2>"$TMP/stderr"; then
		undo+=("umount $MNT/over")
		check "overlay: the answer has the disk of the upper directory" explained "$MNT/over" "below0['device'] == '$DM' and
			said('overlay: new and changed files are in $MNT/ext4/upper')"
	else
		skip "overlay: the kernel has none"
	fi
	null_dev striped1 memory_backed=1 size=64
	FIRST=$DEV
	null_dev striped2 memory_backed=1 size=64
	md_dev md5 raid0 "$FIRST" "$DEV" || bail "no RAID0"
	check "md: the answer has its members" explained "$DEV" "below0['kind'] == 'md raid0' and
		sorted(one['name'] for one in below0['below']) == ['striped1', 'striped2']"
}

# words that stand for nothing
nothing() {
	check "a path that does not exist: an error, exit status 2" \
		refused_with 2 "/nowhere/x: No such file or directory" /nowhere/x
	check "a process that does not exist: an error, exit status 2" refused_with 2 "there is no process 999999" 999999
	check "a disk number that does not exist: an error, exit status 2" refused_with 2 "there is no disk 77:77" 77:77
	check "a name that does not exist: an error, exit status 2" \
		refused_with 2 "nosuch: there is no such disk, process, cgroup or path" nosuch
	check "an empty word: an error, exit status 2" refused_with 2 "an empty word" ""
	check "no word at all: an error, exit status 2" refused_with 2 "name a disk, process, cgroup or path"
	check "a loop of symbolic links: an error, exit status 2" \
		refused_with 2 "Too many levels of symbolic links" "$TMP/round"
	check "a path below a file: an error, exit status 2" refused_with 2 "Not a directory" /proc/self/status/x
}

# a process that ends while the tool looks at it, a zombie, a kernel thread, a removed group
processes() {
	local pid
	(sleep 0.5) &
	pid=$!
	check "a process that ends while the tool looks at it: an answer" explained_as 0 "$pid" -i 1
	python3 -c 'import os, time
if os.fork():
    time.sleep(100)' &
	undo+=("kill $!")
	pid=
	while [ -z "$pid" ]; do
		sleep 0.1
		pid=$(sed -n 's/^\([0-9]*\) .*) Z .*/\1/p' /proc/[0-9]*/stat 2>/dev/null | head -n 1)
	done
	check "a zombie: the answer tells that it has ended" explained "$pid" "said('it has ended')"
	check "a kernel thread: the answer tells that it is one" explained 2 "said('it is a kernel thread')"
}
# explained_as STATUS WORD...: the tool ends with STATUS, and without a traceback
explained_as() {
	local status=0 wanted=$1
	shift
	explain "$@" || status=$?
	equal "$status" "$wanted"
}

# nobody WORD...: runs the tool as a user without privileges
nobody() {
	python3 -c 'import os, runpy, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")' "$EXPLAIN" --json "$@" >"$TMP/json"
}

unprivileged() {
	start_soon
	load g reader -f "$DEV" -s 64k -d 4 -t 8
	sleep 1
	check "without privileges: the tool works" nobody g "$DEV"
	check "without privileges: the answer has the limit that makes I/O wait, by the rate" \
		says "on('/g', 'path')['binds'] ==
		[{'key': 'rbps', 'cgroup': '/g', 'value': $MiB, 'by': 'rate'}] and said('debugfs cannot be read')"
	check "without privileges: the answer about a process of another user" nobody "${loads[-1]}"
	nobody --check || true
	check "without privileges: --check tells that debugfs cannot be read" \
		says "'(Permission denied)' in d['report']['/sys/kernel/debug/dirty_owner']"
	end_loads
}

# the mounted hierarchies decide which one the tool looks at
hierarchies() {
	explain -i 0 --check
	check "v2: the report has the hierarchy" says "d['report']['hierarchy'][0].startswith('v2 at $CG')"
	echo -io >"$CG/cgroup.subtree_control"
	check "a group without the controller: --check finds it" refused_limit g "the block controller is enabled for no group"
	explain -i 0 g "$DEV"
	check "a group without the controller: the answer tells so" \
		says "said('the block controller is not enabled for /g') and
		d['type'][0] == 'echo +io > $CG/cgroup.subtree_control'"
	check "a group without the controller: the command that enables it works" typed 1
	check "after that command the group has io.max" test -e "$CG/g/io.max"
	check "the memory controller is off: the answer tells so" explained g "said('the memory controller is off beside io')"
	echo +memory >"$CG/cgroup.subtree_control"
	check "the memory controller is on: the answer tells so" explained g "said('the memory controller is on beside io')"
}

plan 39
mount_cgroup v2
ln -s round "$TMP/round"
chmod 755 "$TMP"
group g
null_dev path memory_backed=1 size=512
stack
DISK=$DEV
crypted
others
DEV=$DISK
nothing
processes
unprivileged
hierarchies
