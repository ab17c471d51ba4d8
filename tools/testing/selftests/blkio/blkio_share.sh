# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the tests of weights: loads side by side, what each got of all, and
# what it should have got.
#
# Loads run for T seconds, which are seen as 8 parts; the first SKIP of them are
# left out, for there the depth of the device is being found.
T=8
SKIP=2
DEPTHS=(8 8 8)
NAMES=(a b c)
# each of NAMES has its own, or all have DEV
DEVS=()
FAST=990
DFL=100

# know NODE: the first I/O under weights gets a disk ready for them
know() {
	local i
	for i in 1 2; do
		dd "if=$1" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
		sleep 0.05
	done
}

# weights VALUE...: of the groups in NAMES
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

# counted NAME: its I/Os in the parts that count
counted() {
	sed 's/.*\[//; s/\].*//; s/, /\n/g' "$TMP/${1##*/}.json" |
		awk -v "skip=$SKIP" 'NR > skip && NR <= 8 { n += $1 } END { print n + 0 }'
}

# total: of all loads
total() {
	local name sum=0
	for name in "${NAMES[@]}"; do sum=$((sum + $(counted "$name"))); done
	echo $sum
}

# ideal SLOTS WEIGHT...: parts in ppm by weight, where no load can have more I/Os
# in the device than its depth, of SLOTS (0: any), and what it leaves is for the others
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

# shared TOLERANCE SLOTS WEIGHT...: each load got its part within TOLERANCE ppm
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

# as_fast PERMILLE BEFORE: the loads together, against BEFORE
as_fast() {
	echo "$(total) I/Os, $2 without control"
	(($(total) * 1000 >= $2 * $1))
}

# depth_found NODE: what its finder settled on
depth_found() { sed -n 's/depth=\([0-9]*\).*/\1/p' "/sys/kernel/debug/block/${1##*/}/ioband/share"; }

# compare TEXT TOLERANCE SLOTS "WEIGHT..." OPTION...: two points, shares and the rate of all
# against that without weights; DFL is the weight that is none
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
	check "$text: shares" shared "$tolerance" "$slots" $list
	check "$text: nothing lost" as_fast "$FAST" "$before"
}

# bins NAME FROM TO LEAST MOST: the I/Os of a load in each 10 ms
bins() {
	sed 's/.*\[//; s/\].*//; s/, /\n/g' "$TMP/$1.json" |
		awk -v "from=$2" -v "to=$3" -v "least=$4" -v "most=$5" 'NR > from && NR <= to {
			printf "%s ", $1
			if ($1 < least || $1 > most) bad = 1
		} END { print "want " least " .. " most; exit bad }'
}
