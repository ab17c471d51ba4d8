#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/cgroup/ioband_explain.py on a kernel that is booted with ioband=off, and with an unknown value of ioband=; with
# both hierarchies mounted.
# configs: uml-vt
# args: ioband=yes ioband=off
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_explain.sh"

# wrong NUMBER TEXT...: --check finds this number of things, and all of these texts
wrong() {
	local status=0 wanted=$1 text
	shift
	explain -i 0 --check || status=$?
	[ "$status" = 1 ] && says "len(d['wrong']) == $wanted" || return 1
	for text; do says "said('$text')" || return 1; done
}

both() {
	group g
	check "--check finds the unknown value of the kernel argument" \
		wrong 1 "kernel argument ioband=yes: it is none of off, limits, on"
	cap g "$DEV" rbps=$MiB
	load g reader -f "$DEV" -s 64k -d 4 -t 4
	sleep 1
	explain g
	check "ioband=off: the answer tells that blk-throttle has the limits" \
		says "d['ioband'] == {'mode': 'off', 'why': 'kernel argument ioband=off'} and
		said('blk-throttle has the limits') and 'ioband=on' in d['type'][0]"
	check "ioband=off: the answer has the limit that makes I/O wait" \
		says "on('/g', 'off')['tightest'] == {'rbps': ['/g', $MiB]} and on('/g', 'off')['binds'][0]['cgroup'] == '/g'"
	check "ioband=off: --check finds the limits" wrong 2 "there are limits (/g), and ioband is off"
	end_loads
	cap g "$DEV" rbps=max
	if [ "$CGV" = v1 ]; then
		mkdir "$TMP/other"
		mount -t cgroup2 none "$TMP/other"
		undo+=("umount $TMP/other")
		explain -i 0 --check || true
		check "both hierarchies mounted: the report has the one with the block controller" \
			says "d['report']['hierarchy'][0].startswith('v1 at $CG')"
		check "both hierarchies mounted: a group of the other one is an error" refused_with 2 \
			"this hierarchy of cgroups has no block controller; that at $CG has it" "$TMP/other"
		umount "$TMP/other"
	fi
}

plan $((2 * 4 + 2 + 2))
null_dev off
on_each both v1 v2
status=0
explain -i 0 "$DEV" || status=$?
check "no hierarchy mounted: the answer about a disk has the command to mount one" \
	says "$status == 0 and d['hierarchy'] is None and d['type'][0] == 'mount -t cgroup2 none /sys/fs/cgroup'"
check "no hierarchy mounted: --check finds it" wrong 2 "no mounted cgroup hierarchy has the block controller"
