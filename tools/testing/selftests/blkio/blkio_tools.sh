# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the tests of programs after blkio_lib.sh, which run in a root of Debian's with systemd as the first process:
# the hierarchy that this has mounted, rates of what a program starts, and shares of two.
LOAD=$(command -v blkio_load)
export LOAD

# the_cgroup v1|v2: CG is that of systemd
the_cgroup() {
	CGV=$1
	CG=/sys/fs/cgroup
	[ "$CGV" = v2 ] || CG=/sys/fs/cgroup/blkio
	# what the test leaves to systemd it does not take down
	undo+=("CG=")
	if [ "$CGV" = v2 ]; then grep -qw io "$CG/cgroup.controllers"; else [ -e "$CG/blkio.throttle.read_bps_device" ]; fi ||
		skip_all "systemd has no $CGV hierarchy with the block controller"
}

# took NAME WANTED_NS: the I/Os of a load ended that late, within 0.2 %
took() { within $(($(val "$1" end_ns) - $(val "$1" start_ns))) "$2" 2000; }

# paced BYTES N RATE: ns until N I/Os of BYTES have ended that may do RATE a second; the first is in hand
paced() { echo $((($1 * $2 - 65536) * 1000000000 / $3)); }

# parts A B WANTED: load B did WANTED permille of what both did, within 1 %, or TOLERANCE ppm
parts() {
	local a b
	a=$(val "$1" ios) b=$(val "$2" ios)
	within $((1000 * b / (a + b))) "$3" "${TOLERANCE:-10000}"
}

# asked FILE LINE: the file has the line
asked() { cat "$1"; grep -qxF -- "$2" "$1"; }
