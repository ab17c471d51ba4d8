# SPDX-License-Identifier: GPL-2.0
# Sourced by checks: one line "ok NAME" or "not ok NAME" each, causes below as comments.
# shellcheck shell=bash
failed=0

# report NAME LOG COMMAND...: ok if COMMAND succeeds; its output goes to LOG
report() {
	local name=$1 log=$2
	shift 2
	if "$@" >"$log" 2>&1 </dev/null; then
		echo "ok $name"
	else
		echo "not ok $name: see $log"
		grep -v '^$' "$log" | head -n 12 | sed 's/^/#   /'
		# shellcheck disable=SC2034 # the exit status of who sourced us
		failed=1
	fi
}

skip() { echo "ok $1 # SKIP $2"; }

# no_lines FILE: succeeds if it is empty, shows it if not
no_lines() { [ ! -s "$1" ] || { cat "$1"; return 1; }; }
