#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/cgroup/ioband_top.py: its output for groups with limits and weights, on v1 and v2.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
TOP=$HERE/../../../cgroup/ioband_top.py

# says EXPRESSION: is EXPRESSION true for the last --json? g("NAME") is a group of the disk, d the disk
says() {
	python3 -B - "$TMP/json" "$(devno "$DEV")" "$1" <<-'PYTHON'
		import json, sys
		d = json.load(open(sys.argv[1]))["disks"][sys.argv[2]]
		def g(name): return next(group for group in d["groups"] if group["cgroup"] == name)
		print(d)
		sys.exit(not eval(sys.argv[3]))
	PYTHON
}

top() { python3 -B "$TOP" -i 2 -n 1 "$@"; }

both() {
	mount_cgroup "$1"
	group capped heavy light
	null_dev "top$1" completion_nsec=1000000 hw_queue_depth=8
	cap capped "$DEV" rbps=$MiB
	start_soon
	load capped capped -f "$DEV" -s 64k -d 4 -t 3
	sleep 0.5
	top --json >"$TMP/json"
	check "$1: --json has the limit" says "g('/capped')['limits'] == {'rbps': $MiB}"
	check "$1: --json has the bytes a second" says "abs(g('/capped')['rbps'] - $MiB) < 70000"
	check "$1: --json has the number of held I/Os" says "g('/capped')['held'] == 4"
	check "$1: --json has the burst" says "g('/capped')['burst'] == {'rbps': 65536}"
	check "$1: --json has what is left of the burst" says "0 <= g('/capped')['in_hand']['rbps'] < 65536"
	wait_loads
	cap_all capped riops=500 rbps=500
	top --json >"$TMP/json"
	check "$1: --json has a limit for all devices" says "g('/capped')['limits'] == {'rbps': $MiB, 'riops': 500}"
	cap_all capped riops=max rbps=max
	cap capped "$DEV" rbps=max wbps=$MiB
	start_soon
	load capped dirty -f "$DEV" -o w -s 64k -t 3 -b
	sleep 0.5
	top --json >"$TMP/json"
	check "$1: --json has the dirty pages" \
		says "65536 <= g('/capped')['dirty_bytes'] + g('/capped')['writing_bytes'] <= 2 * $MiB"
	wait_loads
	top --openmetrics >"$TMP/metrics"
	check "$1: --openmetrics has the burst" \
		grep -qxF "ioband_burst{disk=\"top$1\",cgroup=\"/capped\",of=\"wbps\"} 65536" "$TMP/metrics"
	cap capped "$DEV" wbps=max
	# the depth is set, since this is not a test of how it is measured
	device depth=8
	weight heavy 750
	weight light 250
	start_soon
	load heavy heavy -f "$DEV" -p rand -s 4k -d 32 -t 4
	load light light -f "$DEV" -p rand -s 4k -d 32 -t 4 -S 2
	sleep 1
	top --json >"$TMP/json"
	check "$1: --json has the weights" says "g('/heavy')['weight'] == 750 and g('/light')['weight'] == 250"
	check "$1: --json has the configured shares" says "abs(g('/heavy')['share_ppm'] - 750000) < 10"
	check "$1: --json has the actual shares" says "abs(g('/heavy')['got_ppm'] - 750000) < 20000"
	check "$1: --json has the I/Os a second" \
		says "abs(g('/heavy')['riops'] - 6000) < 150 and abs(g('/light')['riops'] - 2000) < 100"
	check "$1: --json has the queue depth of the disk" says "d['state']['depth'] == 8 and d['disk'] == 'top$1'"
	top >"$TMP/text"
	cat "$TMP/text"
	check "$1: the table has both groups" equal "$(grep -cE '^/(heavy|light) ' "$TMP/text")" 2
	top --json --cgroup 'li.*t$' >"$TMP/json"
	check "$1: --cgroup selects a group" says "[group['cgroup'] for group in d['groups']] == ['/light']"
	wait_loads
	top --openmetrics >"$TMP/metrics"
	check "$1: --openmetrics has the I/Os since the disk was added" \
		grep -qE "^ioband_rios_total\{disk=\"top$1\",cgroup=\"/light\"\} [0-9]{4}$" "$TMP/metrics"
	check "$1: --openmetrics has the end marker" equal "$(tail -n 1 "$TMP/metrics")" "# EOF"
	umount_cgroup
}

[ -e "$TOP" ] || skip_all "tools/cgroup is not installed"
plan 34
both v1
both v2
