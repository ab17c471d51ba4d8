# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are for who sources this
# Sourced by bench-cpus and bench-cpus-io: phases of the plugin that counts transfers of cache lines, and loads that begin
# together on all CPUs.
CPUS=${BENCH_CPUS:-8}
phase=0			# of the plugin, see cache_lines.c
units=()		# of each phase

mark() { "$BLKIO_BIN/cache_mark"; }

# row CASE BASE UNIT UNITS: of the phase that has just ended; and what is of the code of OWN, and the TOP functions, if these are set
row() {
	[ -z "${OWN:-}" ] || spec lines "cache lines" "$1" "unit=$3" "units=$4" "own=$OWN" "$phase"
	[ -z "${TOP:-}" ] || spec lines "cache lines" "$1" "unit=$3" "units=$4" "top=$TOP" "$phase"
	units[phase]=$4
	spec lines "cache lines" "$1" "unit=$3" "units=$4" ${2:+"base=$2" "base_units=${units[$2]}"} "$phase"
	phase=$((phase + 1))
}

# later SECONDS: the loads that follow begin together, so much later
later() { START=$(awk -v "s=$1" '{ printf "%d", ($1 + s) * 1000 }' /proc/uptime)000000; }

# until_start SECONDS: sleeps until so long before the loads begin
until_start() {
	sleep "$(awk -v "s=$1" -v "start=$START" '{ t = start / 1e9 - s - $1; print (t > 0 ? t : 0) }' /proc/uptime)"
}
