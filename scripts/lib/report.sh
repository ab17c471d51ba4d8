# SPDX-License-Identifier: GPL-2.0
# Sourced by checks: prints one line "ok NAME" or "not ok NAME" for each check, and causes of failures below as
# comments.
# shellcheck shell=bash
failed=0

# report NAME LOG COMMAND...: prints ok if COMMAND succeeds; its output goes to LOG
report() {
	local name=$1 log=$2
	shift 2
	if "$@" >"$log" 2>&1 </dev/null; then
		echo "ok $name"
	else
		echo "not ok $name: see $log"
		grep -v '^$' "$log" | head -n 12 | sed 's/^/#   /'
		# shellcheck disable=SC2034 # the exit status of the script that sources this
		failed=1
	fi
}

skip() { echo "ok $1 # SKIP $2"; }

# no_lines FILE: succeeds if FILE is empty, else prints it
no_lines() { [ ! -s "$1" ] || { cat "$1"; return 1; }; }
