#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# With ioband=off tool_disk_check.sh refuses to run: mainline's limits are not ioband's.
# configs: uml-vt
# args: ioband=off
. "$(dirname "$0")/lib/blkio_lib.sh"

grep -qw ioband=off /proc/cmdline || skip_all "not booted with ioband=off"
plan 2
null_dev none
for hierarchy in v1 v2; do
	mount_cgroup $hierarchy
	DISK=$DEV bash "$HERE/tool_disk_check.sh" >"$TMP/out" 2>&1 || echo "status $?" >>"$TMP/out"
	check "$hierarchy: refused" equal "$(cat "$TMP/out")" \
		"error: ioband does not have the files of limits and weights in this kernel ($(uname -r))
 next: boot it with ioband=on on its command line
status 1"
	umount_cgroup
done
