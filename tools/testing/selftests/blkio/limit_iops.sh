#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Scenario "8192 IOPS": a limit of 8192 write IOPS, set with libcgroup's tools where they are installed,
# random 4 KiB writes at depth 128, and fsync at the end.
# configs: uml-vt
. "$(dirname "$0")/lib/blkio_lib.sh"

IOPS=8192 GROUP=blkiolimited FILE=blkio.throttle.write_iops_device
tools=1
for tool in cgcreate cgset cgget cgexec; do
	command -v $tool >/dev/null || tools=
done

# limited OPTION...: runs the load in the limited group
limited() {
	if [ -n "$tools" ]; then
		cgexec -g blkio:$GROUP \
			blkio_load -f "$DEV" -o w -s 4k -p rand -d 128 -y "$@" >"$TMP/w.json"
	else
		load $GROUP w -f "$DEV" -o w -s 4k -p rand -d 128 -y "$@"
		wait_loads
	fi
}

# The ideal: 5 s have exactly 40960 I/Os, the first interval B more (40 of them are dispatched at
# once). 0.02% is 8 I/Os.
steady() {
	local n want=$((5 * IOPS)) first=1 bad=0
	while read -r n; do
		[ -n "$first" ] || ((n >= want - 8 && n <= want + 8)) || bad=1
		first=
		echo "$n I/Os in 5 s: $(awk "BEGIN { print $n / 5 }") w/s"
	done < <(sed 's/.*\[//; s/\].*//; s/, /\n/g' "$TMP/w.json")
	return $bad
}

# Each I/O is dispatched 1/8192 s after the one before, to within 1% of that, which covers the clock of
# the virtual machine: it ticks every 256 ns.
even() {
	awk -v "from=$1" -v "ideal=$((1000000000 / IOPS))" '
		$1 < from { next }
		n++ {
			gap = $1 - last
			if (n == 2 || gap < min) min = gap
			if (gap > max) max = gap
		}
		{ last = $1 }
		END {
			printf "%d gaps of %d to %d ns, ideal %d\n", n - 1, min, max, ideal
			exit !(n > 10000 && min >= ideal * 0.99 && max <= ideal * 1.01)
		}' "$TMP/times"
}

plan 4
null_dev nb0
mount_cgroup v1
if [ -n "$tools" ]; then
	cgcreate -g blkio:/$GROUP
	groups+=("$CG/$GROUP")
	cgset -r $FILE="$(devno "$DEV") $IOPS" $GROUP
	check "cgget shows the limit of 8192" equal "$(cgget -n -v -r $FILE $GROUP)" "$(devno "$DEV") $IOPS"
else
	group $GROUP
	cap $GROUP "$DEV" wiops=$IOPS
	check "the file shows the limit of 8192" equal "$(cat "$CG/$GROUP/$FILE")" "$(devno "$DEV") $IOPS"
fi

limited -t 25 -i 5
check "each 5 s after the first have 8192 IOPS to within 0.02%" steady

if trace_start admit release; then
	limited -t 3
	trace_stop "$TMP/trace"
	sed -n 's/.* op=W .* ns=\([0-9]*\).*/\1/p' "$TMP/trace" | sort -n >"$TMP/times"
	check "dispatches are evenly spaced, to within 1%" even $(($(val w start_ns) + 1000000000))
else
	skip "dispatches are evenly spaced, to within 1%" "no ioband tracepoints"
fi

# The device takes the same time for each I/O, so they also end evenly spaced.
limited -t 3 -l "$TMP/log"
awk '{ print $2 }' "$TMP/log" | sort -n >"$TMP/times"
check "completions are evenly spaced" even $(($(val w start_ns) + 1000000000))
