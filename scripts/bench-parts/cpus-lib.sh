# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are for the script that sources this
# Sourced by bench-cpus and bench-cpus-io: phases of the plugin that counts transfers of cache lines, and loads that
# begin together on all CPUs.
CPUS=${BENCH_CPUS:-8}
phase=0			# the number of the plugin's phase, see cache_lines.c
units=()		# the number of units (pages, I/Os) of each phase

mark() { "$BLKIO_BIN/cache_mark"; }

# row CASE BASE UNIT UNITS: adds a row for the phase that has just ended; rows of the functions that match OWN, and of
# the TOP functions, as well if these are set
row() {
	[ -z "${OWN:-}" ] || spec lines "cache lines" "$1" "unit=$3" "units=$4" "own=$OWN" "$phase"
	[ -z "${TOP:-}" ] || spec lines "cache lines" "$1" "unit=$3" "units=$4" "top=$TOP" "$phase"
	units[phase]=$4
	spec lines "cache lines" "$1" "unit=$3" "units=$4" ${2:+"base=$2" "base_units=${units[$2]}"} "$phase"
	phase=$((phase + 1))
}

# later SECONDS: sets START, so that the loads that follow begin together, so many seconds from now
later() { START=$(awk -v "s=$1" '{ printf "%d", ($1 + s) * 1000 }' /proc/uptime)000000; }

# until_start SECONDS: sleeps until so many seconds before the loads begin
until_start() {
	sleep "$(awk -v "s=$1" -v "start=$START" '{ t = start / 1e9 - s - $1; print (t > 0 ? t : 0) }' /proc/uptime)"
}
