# SPDX-License-Identifier: GPL-2.0
# Sourced by the scripts beside it: has the paths of the project, and functions for messages and for commands that take
# long.
# shellcheck shell=bash
set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Build outputs and results; both folders are safe to delete.
BUILD=$(realpath -m "${IOBAND_BUILD:-$TOP/build}")
OUT=$(realpath -m "${IOBAND_OUT:-$TOP/out}")
export TOP BUILD OUT

say()  { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }

# die CAUSE [NEXT_STEP]: prints both and exits with an error
die() {
	printf 'error: %s\n' "$1" >&2
	[ $# -lt 2 ] || printf ' next: %s\n' "$2" >&2
	exit 1
}

# Prints the comment block at the head of the calling script, which is its help text.
help() { sed -n '3,/^[^#]/{/^# shellcheck/d; s/^# \{0,1\}//p}' "$0"; }

# usage FEWEST MOST ARGUMENT...: prints the help text and ends the script if an ARGUMENT is --help. It is an error if
# there are not FEWEST to MOST of them (MOST may be "any"), or if one is another option. Scripts call this, and check
# all names that they are given, before they fetch, build or test anything.
usage() {
	local fewest=$1 most=$2 argument
	shift 2
	for argument; do
		case $argument in
		--help) help; exit 0 ;;
		-*) die "unknown option $argument" "$0 --help" ;;
		esac
	done
	[ $# -ge "$fewest" ] || die "an argument is missing" "$0 --help"
	[ "$most" = any ] || [ $# -le "$most" ] || die "one argument too many: '${*:most + 1:1}'" "$0 --help"
}

# one_of WHAT NAME KNOWN...: dies unless NAME is one of the KNOWN names of a WHAT, such as "part"
one_of() {
	local what=$1 name=$2 known
	shift 2
	for known; do [ "$known" != "$name" ] || return 0; done
	die "no such $what: '$name'" "one of $*"
}

# BASE=6.12 is the series on that longterm kernel (patches/longterm.rst), with build outputs and results of its own.
# What all kernels share, such as the root of Debian for guests, is in $SHARED.
SHARED=$BUILD
. "$TOP/scripts/kernel.pin"
if [ "${BASE:=${PIN_VERSION%.*}}" = "${PIN_VERSION%.*}" ]; then
	LONGTERM=
else
	LONGTERM=$TOP/patches/$BASE
	[ -f "$LONGTERM/kernel.pin" ] || die "there is no series for Linux $BASE" \
		"BASE is one of ${PIN_VERSION%.*} $(cd "$TOP/patches" && echo */kernel.pin | sed 's,/kernel.pin,,g')"
	# shellcheck source=../kernel.pin
	. "$LONGTERM/kernel.pin"
	BUILD=$BUILD/$BASE
	OUT=$OUT/$BASE
fi
export BASE

case "$TOP$BUILD$OUT" in
*[[:space:]:]*) die "the kernel's make cannot work under a path with blanks or colons: $TOP" \
	"move the project, or set IOBAND_BUILD and IOBAND_OUT" ;;
esac
# a guest reads this file as well, where the folders of the host may be read-only
[ -n "${IOBAND_GUEST:-}" ] || mkdir -p "$BUILD" "$OUT"

# need_tree: dies if there is no patched kernel tree
need_tree() {
	[ -d "$BUILD/tree/block/ioband" ] || die "there is no patched kernel tree in $BUILD/tree" "scripts/apply"
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# minsec SECONDS: prints them like 3m07s
minsec() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }

# last_line LOG: prints the last line of a log, for a line of progress
last_line() {
	if [ -s "$1" ]; then tail -n 1 "$1" | tr -d '\r' | cut -c 1-70; else echo "waiting for its turn"; fi
}

compiled() {
	local nr
	nr=$(grep -c '^  CC ' "$1" || true)
	[ "$nr" = 0 ] || echo "$nr compiled: "
}

# run_logged LOG COMMAND...: runs COMMAND with its output in LOG; prints a line of progress every 20 s, and the end of
# LOG on failure. For a build of a kernel the line has the number of files that are compiled so far.
run_logged() {
	local log=$1 begin=$SECONDS tick=0 pid rc=0
	shift
	mkdir -p "$(dirname "$log")"
	"$@" </dev/null >"$log" 2>&1 &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.2
		tick=$((tick + 1))
		[ $((tick % 100)) -ne 0 ] || say "   $(minsec $((SECONDS - begin))) $(compiled "$log")$(last_line "$log")"
	done
	wait "$pid" || rc=$?
	[ "$rc" = 0 ] || { tail -n 15 "$log" >&2; say "log: $log" >&2; }
	return "$rc"
}

# at_once N COMMAND ARGUMENT...: runs COMMAND with each ARGUMENT, N of them at a time; fails if one of them fails
at_once() {
	local most=$1 command=$2 argument running=0 rc=0
	shift 2
	for argument; do
		if [ "$running" = "$most" ]; then
			wait -n || rc=1
			running=$((running - 1))
		fi
		"$command" "$argument" &
		running=$((running + 1))
	done
	for (( ; running > 0; running--)); do wait -n || rc=1; done
	return $rc
}

# once FILE... -- COMMAND [ARGUMENT...]: runs COMMAND, a program or a function, unless it has succeeded before with the
# same arguments and the same contents of the FILEs, which have to be all that it reads; then prints what it printed.
# Successes are noted in ~/.cache/ioband for every clone of the project; those that nobody has asked for in 30 days are
# forgotten. With IOBAND_ONCE=no COMMAND runs always.
once() {
	local files=() cache=${XDG_CACHE_HOME:-$HOME/.cache}/ioband noted new out tee rc=0
	while [ "$1" != -- ]; do
		files+=("$1")
		shift
	done
	shift
	# the same in every clone
	noted=$cache/$({
		printf '%s\n' "$@"
		declare -f "$1" || sha256sum "$(command -v "$1")"
		sha256sum -- "${files[@]}"
	} | sed "s,$TOP/,,g" | sha256sum | cut -c 1-64)
	if [ "${IOBAND_ONCE:-}" != no ] && [ -f "$noted" ]; then
		touch "$noted"
		cat "$noted"
		return 0
	fi
	mkdir -p "$cache"
	new=$noted.$BASHPID
	exec {out}> >(tee "$new")
	tee=$!
	"$@" >&"$out" || rc=$?
	exec {out}>&-
	wait "$tee"
	if [ "$rc" = 0 ]; then mv "$new" "$noted"; else rm "$new"; fi
	find "$cache" -ignore_readdir_race -type f -mtime +30 -delete
	return "$rc"
}

# with_build_lock COMMAND...: runs COMMAND under a lock, so that this machine builds one kernel at a time
with_build_lock() {
	flock "${IOBAND_BUILD_LOCK:-$SHARED/.lock}" "$@"
}

# with_tree_lock COMMAND...: runs COMMAND under a lock, so that the patched tree does not change during a build from it
with_tree_lock() { flock "$BUILD/.tree.lock" "$@"; }

# Objects do not depend on the path of the project, so that ccache can give them to every clone.
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970' KBUILD_BUILD_USER=ioband KBUILD_BUILD_HOST=build
# The compiler itself lists the headers, so that what is not in the cache is preprocessed once and not twice.
export CCACHE_DEPEND=1
export CCACHE_BASEDIR=$BUILD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros

# kernel_cc COMPILER: prints the compiler, such as gcc or aarch64-linux-gnu-gcc, behind ccache if that is installed
kernel_cc() {
	if command -v ccache >/dev/null; then echo "ccache $1"; else echo "$1"; fi
}
