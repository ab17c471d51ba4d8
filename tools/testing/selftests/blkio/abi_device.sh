#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Device settings: what io.ioband and blkio.ioband of the root group accept, refuse and show.
# configs: uml-vt uml-debug qemu
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_abi.sh"

# both VERSION NAME DISK: runs all points on one hierarchy; DISK is a free name for a second disk
both() {
	local version=$1 file value second
	mount_cgroup "$version"
	file=$CG/$2
	group g
	check "$version: the file exists and is empty at first" equal "$(cat "$file")" ""
	check "$version: groups other than the root do not have the file" test ! -e "$CG/g/${file##*/}"
	taken "$file" "$DISK weights=off" "$DISK weights=off depth=auto"
	taken "$file" "$DISK depth=32" "$DISK weights=off depth=32"
	taken "$file" "  $DISK	weights=on  depth=1\\n" "$DISK weights=on depth=1"
	taken "$file" "$DISK depth=1048576" "$DISK weights=on depth=1048576"
	for value in 0 1048577 18446744073709551616; do refused ERANGE "$file" "$DISK depth=$value"; done
	for value in "" " " weights depth weights= weights=maybe depth= depth=max depth=-1 depth=1x "depth=8 x" off 8; do
		refused EINVAL "$file" "$DISK $value"
	done
	for value in x : "${DISK%:*}" "-$DISK"; do refused EINVAL "$file" "$value weights=off"; done
	refused EINVAL "$file" "$DISK"
	for value in "$MISSING" 0:0 "$PART" "$DEAD"; do refused ENODEV "$file" "$value weights=off"; done
	null_dev "$3"
	second=$(devno "$DEV")
	put "$file" "$second weights=off"
	check "$version: the file has a line for each device with settings" \
		equal "$(sort "$file")" "$(printf '%s\n' "$DISK weights=on depth=1048576" "$second weights=off depth=auto" | sort)"
	null_off "$3"
	taken "$file" "$DISK depth=auto" ""
	umount_cgroup
}

plan $((2 * (2 + 4 + 3 + 13 + 4 + 1 + 4 + 2)))
odd_devices
both v1 blkio.ioband nb2
both v2 io.ioband nb3
