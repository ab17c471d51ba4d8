#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/cgroup/ioband_explain.py: its answers about groups and processes with limits and weights, on v1 and v2.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_explain.sh"

# limits: a process in a/b, where a and b both have limits; the tightest is a's on v2; on v1 that does not apply
limits() {
	local pid
	cap a "$DEV" rbps=$MiB
	cap a/b "$DEV" rbps=$((2 * MiB)) wbps=$((8 * MiB)) riops=5000
	start_soon
	load a/b reader -f "$DEV" -s 64k -d 4 -t 12
	pid=${loads[-1]}
	sleep 1
	explain "$pid"
	check "a process is named: the answer has its group" \
		says "d['targets'][0]['cgroup'] == '/a/b' and d['targets'][0]['pid'] == $pid"
	check "a process is named: the answer has the number of held I/Os" says "on('/a/b', '$1')['held'] == 4"
	if [ "$CGV" = v2 ]; then
		check "limits of two groups: the answer has the tightest of each kind" \
			says "on('/a/b', '$1')['tightest'] == {'rbps': ['/a', $MiB], 'wbps': ['/a/b', $((8 * MiB))],
			'riops': ['/a/b', 5000]}"
		check "limits of two groups: the answer has the one that makes I/O wait" \
			says "on('/a/b', '$1')['binds'] == [{'key': 'rbps', 'cgroup': '/a', 'value': $MiB, 'by': 'rate'}]"
		check "limits of two groups: the command raises the one that makes I/O wait" \
			says "d['type'] == [f'echo \"{number} rbps=$((2 * MiB))\" > $CG/a/io.max']"
	else
		check "v1: the answer has the limits of the process's own group" \
			says "on('/a/b', '$1')['tightest'] == {'rbps': ['/a/b', $((2 * MiB))],
			'wbps': ['/a/b', $((8 * MiB))], 'riops': ['/a/b', 5000]}"
		check "v1: the answer has the limit that makes I/O wait" \
			says "on('/a/b', '$1')['binds'] == [{'key': 'rbps', 'cgroup': '/a/b', 'value': $((2 * MiB)), 'by': 'rate'}]
			and said('limits of groups above do not apply to this group (/a has limits)')"
		check "v1: the command raises that limit" \
			says "d['type'] == [f'echo \"{number} $((4 * MiB))\" > $CG/a/b/blkio.throttle.read_bps_device']"
	fi
	check "the answer has the rate of the group" \
		says "abs(on('/a/b', '$1')['row']['rbps'] - on('/a/b', '$1')['binds'][0]['value']) < 70000"
	check "the command for the limit works" typed 1
	explain text a/b "$1"
	cat "$TMP/text"
	check "text: the answer has commands" equal "$(grep -c "^To type:$" "$TMP/text")" 1
	check "text: the answer has the limit that makes I/O wait" \
		grep -qE "^- reads wait for rbps=(2097152|4194304) .*: [34] I/Os are held now" "$TMP/text"
	end_loads
}

# writes: buffered writes are not held, and wait all the same
writes() {
	cap a "$DEV" rbps=max
	cap a/b "$DEV" rbps=max riops=max wbps=$MiB
	start_soon
	load a/b writer -f "$DEV" -o w -s 64k -t 8 -b
	sleep 2
	explain -i 2 "$CG/a/b"
	check "buffered writes: the answer has the limit that makes tasks wait" \
		says "[(one['key'], one['cgroup'], one['value']) for one in on('/a/b', '$1')['binds']]
		== [('wbps', '/a/b', $MiB)] and said('writes wait for wbps=$MiB')"
	check "buffered writes: the answer has the dirty pages" says "65536 <= on('/a/b', '$1')['dirty_bytes'] <= 2 * $MiB"
	end_loads
	cap a/b "$DEV" wbps=max
}

# nothing: a group without limits on the disk, a group that is found by its disk, and the root group
nothing() {
	explain free "$DEV"
	check "no limit: the answer tells that there is none" \
		says "on('/free', '$1')['limits'] == {} and said('no limit of /free')"
	check "no limit: the answer has commands that set limits" says "len(d['type']) == 2"
	check "no limit: the command that sets a limit works" typed 2
	explain free "$DEV"
	check "a limit that is not reached: the answer tells that no limit makes I/O wait" \
		says "on('/free', '$1')['tightest'] == {'wbps': ['/free', 10485760]} and
		on('/free', '$1')['binds'] == [] and d['type'] == [] and said('no limit makes I/O wait now')"
	cap free "$DEV" wbps=max
	explain $$ "$DEV"
	if [ "$CGV" = v2 ]; then
		check "v2, the root group: the answer tells that it cannot have limits" \
			says "said('it is the root group') and d['type'][0] == 'mkdir $CG/limited'"
	else
		check "v1, the root group: the command sets a limit" \
			says "d['type'][0] == f'echo \"{number} 10485760\" > $CG/blkio.throttle.read_bps_device'"
	fi
}

# shares: two groups with weights 750 and 250, settings of the disk, BFQ
shares() {
	device depth=8
	weight heavy 750
	weight free 250
	start_soon
	load heavy heavy -f "$DEV" -p rand -s 4k -d 32 -t 20
	load free light -f "$DEV" -p rand -s 4k -d 32 -t 20 -S 2
	sleep 2
	explain free
	check "weights: the answer tells that the group waits for its share" \
		says "said('it waits for its share') and on('/free', '$1')['row']['weight'] == 250"
	check "weights: the answer has the configured and the actual share" \
		says "said('weight 250 is a share of 25.0%') and abs(on('/free', '$1')['row']['got_ppm'] - 250000) < 20000"
	check "weights: the command doubles the weight" \
		says "d['type'] == [f'echo \"{number} 500\" > $CG/free/$([ "$CGV" = v2 ] && echo io.weight || echo blkio.weight_device)']"
	check "depth=8: the answer tells that the queue depth is set" says "said('its queue depth is set to 8')"
	explain "$1"
	check "a disk is named: the answer has both groups on it" \
		says "sorted(one['cgroup'] for one in d['disks']) == ['/free', '/heavy']"
	device weights=off depth=auto
	weight heavy 500 "$DEV"
	explain free
	check "weights=off: the answer tells so" says "said('weights are off there') and not said('waits for its share')"
	check "weights=off: --check finds a weight for the disk" \
		seeded "$1" "/heavy have a weight on $1, and weights are off there"
	weight heavy default "$DEV"
	device weights=on
	end_loads
	echo bfq >"/sys/block/$1/queue/scheduler"
	explain "$1"
	check "BFQ: the answer tells that BFQ shares the disk" says "said('$1: its scheduler is BFQ')"
	echo none >"/sys/block/$1/queue/scheduler"
}

# seeded DISK TEXT: --check finds one thing, which has the disk's name and TEXT, and exits with 1
seeded() {
	local status=0
	explain -i 0 --check || status=$?
	[ "$status" = 1 ] && says "len(d['wrong']) == 1 and '$1' in d['wrong'][0] and '$2' in d['wrong'][0]"
}

# sound: --check finds nothing
sound() { explain -i 0 --check && says "d['wrong'] == []"; }

both() {
	local name=x$CGV
	group a a/b heavy free
	null_dev "$name" completion_nsec=1000000 hw_queue_depth=8
	check "--check: finds nothing on a sound machine" sound
	limits "$name"
	writes "$name"
	nothing "$name"
	shares "$name"
	null_dev "unused$CGV"
	cap free "$DEV" wbps=$MiB
	check "--check: a limit on a disk that is not in use" seeded "unused$CGV" "/free has wbps=$MiB on unused$CGV: this disk is not in use"
	check "--check: the report has the limit on a disk that is not in use" \
		says "any('/free unused$CGV' in line for line in d['report']['limits and weights'])"
	explain text -i 0 --check || true
	check "--check: the text has a section of what is wrong" equal "$(grep -c '^== wrong$' "$TMP/text")" 1
	cap free "$DEV" wbps=max
}

plan $((2 * 28))
on_each both v1 v2
