# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the tests of programs after blkio_lib.sh. They run in a Debian root with systemd as the first process; this
# file has the hierarchy that systemd has mounted, and predicates about the rates and shares of what a program starts.
LOAD=$(command -v blkio_load)
export LOAD

# the_cgroup v1|v2: sets CG to the hierarchy of systemd
the_cgroup() {
	CGV=$1
	CG=/sys/fs/cgroup
	[ "$CGV" = v2 ] || CG=/sys/fs/cgroup/blkio
	# the test does not unmount what belongs to systemd
	undo+=("CG=")
	if [ "$CGV" = v2 ]; then grep -qw io "$CG/cgroup.controllers"; else [ -e "$CG/blkio.throttle.read_bps_device" ]; fi ||
		skip_all "systemd has no $CGV hierarchy with the block controller"
}

# took NAME WANTED_NS: the last I/O of a load ended at that time, to within 0.2 %
took() { within $(($(val "$1" end_ns) - $(val "$1" start_ns))) "$2" 2000; }

# paced BYTES N RATE: the time in ns in which N I/Os of BYTES end at RATE a second; the first is dispatched at once
paced() { echo $((($1 * $2 - 65536) * 1000000000 / $3)); }

# parts A B WANTED: load B did WANTED permille of the I/O of both, to within 1 %, or TOLERANCE ppm
parts() {
	local a b
	a=$(val "$1" ios) b=$(val "$2" ios)
	within $((1000 * b / (a + b))) "$3" "${TOLERANCE:-10000}"
}

# asked FILE LINE: the file has the line
asked() { cat "$1"; grep -qxF -- "$2" "$1"; }
