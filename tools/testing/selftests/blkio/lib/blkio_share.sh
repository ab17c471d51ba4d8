# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the tests of weights: loads that run at the same time, the share of each, and the share
# that each should have.
#
# Loads run for T seconds, which are divided into 8 parts. The first SKIP parts do not count, because
# the queue depth of the device is measured in them.
T=8
SKIP=2
DEPTHS=(8 8 8)
NAMES=(a b c)
# each of NAMES has a device of its own, or all have DEV
DEVS=()
FAST=990
DFL=100

# know NODE: the first I/O with weights makes a disk ready for them
know() {
	local i
	for i in 1 2; do
		dd "if=$1" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
		sleep 0.05
	done
}

# weights VALUE...: sets the weights of the groups in NAMES
weights() {
	local i=0 value
	for value; do weight "${NAMES[i++]}" "$value"; done
}

# run OPTION...: a load in each of NAMES, with the depth that DEPTHS has for it
run() {
	local i part
	part=$(awk "BEGIN { print $T / 8 }")
	start_soon
	for ((i = 0; i < ${#NAMES[@]}; i++)); do
		load "${NAMES[i]}" "${NAMES[i]##*/}" -f "${DEVS[i]:-$DEV}" -d "${DEPTHS[i]}" -t "$T" -i "$part" -S $((i + 1)) "$@"
	done
	wait_loads
}

# counted NAME: the I/Os of a load in the parts that count
counted() {
	sed 's/.*\[//; s/\].*//; s/, /\n/g' "$TMP/${1##*/}.json" |
		awk -v "skip=$SKIP" 'NR > skip && NR <= 8 { n += $1 } END { print n + 0 }'
}

# total: the I/Os of all loads
total() {
	local name sum=0
	for name in "${NAMES[@]}"; do sum=$((sum + $(counted "$name"))); done
	echo $sum
}

# ideal SLOTS WEIGHT...: shares in ppm by weight. No load can have more I/Os in flight than its depth, of SLOTS in the
# device (0: any number); what a load cannot use goes to the others.
ideal() {
	awk -v "slots=$1" -v "weights=${*:2}" -v "depths=${DEPTHS[*]}" 'BEGIN {
		n = split(weights, w, " "); split(depths, d, " "); left = 1
		do {
			sum = 0; again = 0
			for (i = 1; i <= n; i++) if (!(i in part)) sum += w[i]
			for (i = 1; i <= n; i++)
				if (!(i in part) && slots && left * w[i] / sum > d[i] / slots) {
					part[i] = d[i] / slots; again = 1
				}
			if (again) { left = 1; for (i in part) left -= part[i] }
		} while (again)
		for (i = 1; i <= n; i++) {
			p = i in part ? part[i] : left * w[i] / sum
			all += p; p_of[i] = p
		}
		for (i = 1; i <= n; i++) printf "%d ", 1000000 * p_of[i] / all
	}'
}

# shared TOLERANCE SLOTS WEIGHT...: the share of each load is ideal, to within TOLERANCE ppm
shared() {
	local tolerance=$1 all i=0 want rc=0 got
	all=$(total)
	shift
	for want in $(ideal "$@"); do
		got=$((1000000 * $(counted "${NAMES[i]}") / all))
		echo "${NAMES[i]}: got $got ppm, want $want"
		((got >= want - tolerance && got <= want + tolerance)) || rc=1
		i=$((i + 1))
	done
	return $rc
}

# as_fast PERMILLE BEFORE: the loads together do at least PERMILLE of BEFORE
as_fast() {
	echo "$(total) I/Os, $2 without control"
	(($(total) * 1000 >= $2 * $1))
}

# depth_found NODE: the queue depth that ioband has measured
depth_found() { sed -n 's/depth=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/${1##*/}/ioband/share"; }

# compare TEXT TOLERANCE SLOTS "WEIGHT..." OPTION...: two points, about the shares, and about the rate of all loads
# against that without weights; DFL is the default weight
compare() {
	local text=$1 tolerance=$2 slots=$3 list=$4 before
	shift 4
	weights "$DFL" "$DFL" "$DFL"
	run "$@"
	before=$(total)
	# shellcheck disable=SC2086 # words
	weights $list
	know "$DEV"
	run "$@"
	# shellcheck disable=SC2086 # words
	check "$text: groups get the device by weight" shared "$tolerance" "$slots" $list
	check "$text: all groups together do as much as without weights" as_fast "$FAST" "$before"
}

# bins NAME FROM TO LEAST MOST: a load does LEAST to MOST I/Os in each 10 ms
bins() {
	sed 's/.*\[//; s/\].*//; s/, /\n/g' "$TMP/$1.json" |
		awk -v "from=$2" -v "to=$3" -v "least=$4" -v "most=$5" 'NR > from && NR <= to {
			printf "%s ", $1
			if ($1 < least || $1 > most) bad = 1
		} END { print "want " least " .. " most; exit bad }'
}
