# SPDX-License-Identifier: GPL-2.0
# Sourced by tests, after lib.sh: prints one line "ok NAME" or "not ok NAME" for each point, causes of failures below as
# comments, and in the end how many points passed. A test that passed no point has failed.
# shellcheck shell=bash
failed=0	# whether a point that this shell reported failed

# The points are counted in a file, since subshells may report some of them. It has no name: nothing is left to delete.
counted=$(mktemp)
exec {tally}<>"$counted"
rm "$counted"

# points: prints its input, and counts the lines "ok NAME", "ok NAME # SKIP" and "not ok NAME" in it
points() { tee -a "/dev/fd/$tally"; }

# report NAME LOG COMMAND...: prints ok if COMMAND succeeds; its output goes to LOG
report() {
	local name=$1 log=$2
	shift 2
	if "$@" >"$log" 2>&1 </dev/null; then
		echo "ok $name" | points
	else
		# shellcheck disable=SC2034 # for the script that sources this
		failed=1
		echo "not ok $name: see $log" | points
		awk 'NF && shown++ < 12 { print "#   " $0 }' "$log"
	fi
}

# sum_of PASSED FAILED [SKIPPED]: prints these numbers of points, and ends the script: with an error if a point failed,
# or if none passed, since nothing was tested then
sum_of() {
	[ $(($1 + $2)) -gt 0 ] || printf 'error: nothing was tested\n next: see above why, or %s --help\n' "$0" >&2
	say "$1 passed, $2 failed$([ "${3:-0}" = 0 ] || echo ", $3 skipped")"
	exit $(($2 > 0 || $1 == 0))
}

# sum_up: does that for the points that report() and points() printed
sum_up() {
	local sums
	read -ra sums < <(awk '/^ok .*# SKIP/ { skipped++; next } /^ok / { passed++ } /^not ok / { failed++ }
		END { print passed + 0, failed + 0, skipped + 0 }' "/dev/fd/$tally")
	sum_of "${sums[@]}"
}

# no_lines FILE: succeeds if FILE is empty, else prints it
no_lines() { [ ! -s "$1" ] || { cat "$1"; return 1; }; }
