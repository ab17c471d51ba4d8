# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Each script that runs in a guest sources this first. On the host it ends the script: mounts, limits and writes to
# disks would act on the machine itself there.

# The kernel's command line has ioband_guest= in a guest of scripts/boot. The first process of a guest has it in its
# environment, and cannot read the command line before it has mounted /proc.
in_guest() {
	local line
	[ $$ = 1 ] && [ -n "${ioband_guest:-}" ] && return
	read -r line </proc/cmdline && [[ " $line" == *" ioband_guest="* ]]
}

in_guest || {
	echo "error: ${0##*/} runs only in a guest that scripts/boot has started, and never on the host" >&2
	exit 1
}
