#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# libcgroup: cgcreate, cgset, cgget, cgexec, cgclassify, cgconfigparser, cgsnapshot, cgdelete; on v1 and v2.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_tools.sh
. "$HERE/lib/blkio_tools.sh"

# for each hierarchy a file of limits, a limit in its format, and a file of weights
names() {
	case $CGV in
	v1) CONTROLLER=blkio LIMIT=blkio.throttle.read_bps_device WEIGHT=blkio.weight ASK="$DISK 3000000" LINE="$DISK 3000000" ;;
	v2) CONTROLLER=io LIMIT=io.max WEIGHT=io.weight ASK="$DISK rbps=3000000"
	    LINE="$DISK rbps=3000000 wbps=max riops=max wiops=max" ;;
	esac
}

# reader NAME COMMAND...: the command does 80 reads of 64 KiB
reader() {
	local name=$1
	shift
	"$@" "$LOAD" -f "$DEV" -s 64k -n 80 >"$TMP/$name.json"
}

both() {
	local pid before
	mount_cgroup "$1"
	names
	cgcreate -g "$CONTROLLER:g"
	groups+=("$CG/g")
	cgset -r "$LIMIT=$ASK" g
	check "$1: cgget shows the limit that cgset has set" equal "$(cgget -n -v -r "$LIMIT" g)" "$LINE"
	reader run cgexec -g "$CONTROLLER:g"
	check "$1: cgexec runs the command in the group: rate" took run "$(paced 65536 80 3000000)"
	check "$1: cgset refuses a value that is not a number" not cgset -r "$LIMIT=${ASK}M" g
	"$LOAD" -f "$DEV" -s 64k -t 20 >/dev/null &
	pid=$!
	sleep 0.5
	cgclassify -g "$CONTROLLER:g" $pid
	sleep 1
	before=$(counted g Read)
	sleep 4
	check "$1: cgclassify moves a task that reads to the group: rate" \
		within $((($(counted g Read) - before) / 4)) 3000000 20000
	kill $pid
	wait $pid 2>/dev/null || true
	cgset -r "$WEIGHT=300" g
	: >"$TMP/list"
	cgsnapshot -s -b "$TMP/list" -w "$TMP/list" "$CONTROLLER" >"$TMP/snapshot" 2>"$TMP/snapshot.err" || cat "$TMP/snapshot.err"
	cgdelete -g "$CONTROLLER:g"
	check "$1: cgdelete removes the group" test ! -d "$CG/g"
	printf 'group g {\n\t%s {\n\t\t%s = "%s";\n\t\t%s = "300";\n\t}\n}\n' "$CONTROLLER" "$LIMIT" "$ASK" "$WEIGHT" >"$TMP/conf"
	cgconfigparser -l "$TMP/conf"
	check "$1: cgconfigparser sets the limit" equal "$(cgget -n -v -r "$LIMIT" g)" "$LINE"
	check "$1: cgconfigparser sets the weight" grep -qxE '(default )?300' "$CG/g/$WEIGHT"
	check "$1: cgsnapshot has the limit and the weight" has_both "$TMP/snapshot"
	cgdelete -g "$CONTROLLER:g"
	umount_cgroup
}

has_both() { grep -A3 "$CONTROLLER {" "$1"; grep -qF "$LIMIT=\"$LINE" "$1" && grep -qE "$WEIGHT=\"(default )?300" "$1"; }
not() { ! "$@"; }

type -P cgset >"$TMP/tools" || skip_all "libcgroup is not installed"
plan 16
null_dev nb0 memory_backed=1 size=256 completion_nsec=20000
DISK=$(devno "$DEV")
both v1
both v2
