#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# cgroup v1: what the blkio.throttle files accept, refuse and show.
# configs: uml-vt uml-debug qemu
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_abi.sh"

mount_cgroup v1
group g
odd_devices
T=blkio.throttle
printf -v KILO_DIGITS '1%01024d' 0
printf -v MANY_DIGITS '1%065535d' 0
FILES="$T.read_bps_device $T.write_bps_device $T.read_iops_device $T.write_iops_device"

# good FILE: values that are accepted, and how the file reads afterwards
good() {
	check "${1##*/}: the file is empty without a limit" equal "$(cat "$1")" ""
	taken "$1" "$DISK 1048576\\n" "$DISK 1048576"
	taken "$1" "$DISK 7" "$DISK 7"
	taken "$1" "  $DISK   8  \\n" "$DISK 8"
	taken "$1" "$DISK\\t9\\n" "$DISK 9"
	taken "$1" "\\n$DISK\\v10\\r\\n" "$DISK 10"
	taken "$1" "$DISK 1" "$DISK 1"
	# as in mainline, which has 32 bits for I/Os
	taken "$1" "$DISK 4294967295" "$(case $1 in *bps*) echo "$DISK 4294967295" ;; esac)"
	taken "$1" "$DISK 4294967296" "$DISK 4294967296"
	taken "$1" "$DISK 4294967297" "$DISK 4294967297"
	taken "$1" "$DISK 9223372036854775808" "$DISK 9223372036854775808"
	taken "$1" "$DISK 18446744073709551614" "$DISK 18446744073709551614"
	taken "$1" "$DISK 18446744073709551615" ""
	taken "$1" "$DISK 5" "$DISK 5"
	taken "$1" "$DISK 0" ""
	taken "$1" "$DISK 0" ""
}

# bad FILE: values that are refused; the limit that is set before must stay
bad() {
	put "$1" "$DISK 4096"
	bad_numbers "$1" "$DISK " ""
	refused EINVAL "$1" "$DISK max"
	refused EINVAL "$1" "$DISK 5 6"
	refused EINVAL "$1" "$DISK 5 x\\n"
	refused EINVAL "$1" "$DISK"
	refused EINVAL "$1" "$DISK\\n"
	refused EINVAL "$1" "\\n"
	refused EINVAL "$1" " "
	refused EINVAL "$1" "5"
	refused EINVAL "$1" "x"
	refused EINVAL "$1" ":"
	refused EINVAL "$1" "${DISK%:*} 5"
	refused EINVAL "$1" "${DISK%:*}: 5"
	refused EINVAL "$1" ":${DISK#*:} 5"
	refused EINVAL "$1" "-$DISK 5"
	refused EINVAL "$1" "0x$DISK 5"
	refused EINVAL "$1" "${DISK}x 5"
	refused EINVAL "$1" "$DISK:1 5"
	refused EINVAL "$1" "$DISK=5"
	refused ENODEV "$1" "$MISSING 5"
	refused ENODEV "$1" "$MISSING x"
	refused ENODEV "$1" "0:0 5"
	refused ENODEV "$1" "$PART 5"
	refused ENODEV "$1" "$DEAD 5"
	refused ENODEV "$1" "$((${DISK%:*} + 4096)):${DISK#*:} 5"
	refused ENODEV "$1" "${DISK%:*}:$((${DISK#*:} + 1048576)) 5"
	refused EINVAL "$1" "$((${DISK%:*} + 4294967296)):${DISK#*:} 5"
	# a cgroup file accepts a page at most, and refuses more before it parses anything
	refused ERANGE "$1" "$DISK $KILO_DIGITS"
	refused E2BIG "$1" "$DISK $MANY_DIGITS"
	check "${1##*/}: refused writes do not change the limit" equal "$(cat "$1")" "$DISK 4096"
	put "$1" "$DISK 0"
}

# several writes to one open file, which is also open for reading, without seeking
one_descriptor() {
	exec {fd}<>"$CG/g/$T.read_bps_device"
	printf '%s' "$DISK 11" >&"$fd"
	printf '%s\n' "$DISK 12" >&"$fd"
	printf '%s' "$DISK 13" >&"$fd"
	exec {fd}>&-
	check "read_bps_device: of several writes to one open file the last counts" \
		equal "$(cat "$CG/g/$T.read_bps_device")" "$DISK 13"
	put "$CG/g/$T.read_bps_device" "$DISK 0"
}

plan $((4 * (16 + 12 + 29 + 1) + 18))
for file in $FILES; do
	good "$CG/g/$file"
	bad "$CG/g/$file"
	check "root group: $file exists and is empty" equal "$(cat "$CG/$file")" ""
done
one_descriptor

# each of the four files is a limit of its own
put "$CG/g/$T.read_bps_device" "$DISK 100"
put "$CG/g/$T.write_iops_device" "$DISK 200"
for file in $FILES; do
	case $file in
	*read_bps*) want="$DISK 100" ;;
	*write_iops*) want="$DISK 200" ;;
	*) want="" ;;
	esac
	check "$file is not changed by the other files" equal "$(cat "$CG/g/$file")" "$want"
done

# two devices with limits
null_dev nb2
second=$(devno "$DEV")
put "$CG/g/$T.read_bps_device" "$second 300"
check "read_bps_device has a line for each device" equal "$(sort "$CG/g/$T.read_bps_device")" \
	"$(printf '%s 100\n%s 300\n' "$DISK" "$second" | sort)"
put "$CG/g/$T.read_bps_device" "$DISK 0"
check "removing the limit of one device keeps that of the other" equal "$(cat "$CG/g/$T.read_bps_device")" "$second 300"
# a line for each device
put "$CG/g/$T.read_bps_device" "$DISK 61\\r\\n$second 62\\r\\n"
check "read_bps_device takes a line for each device" \
	equal "$ANSWER $(sort "$CG/g/$T.read_bps_device")" "OK $(printf '%s 61\n%s 62\n' "$DISK" "$second" | sort)"
refused EINVAL "$CG/g/$T.read_bps_device" "$DISK 71\\n$second x"
refused ENODEV "$CG/g/$T.read_bps_device" "$DISK 71\\n$MISSING 72"
put "$CG/g/$T.read_bps_device" "$DISK 0"
null_off nb2
check "removing a disk removes its line" equal "$(cat "$CG/g/$T.read_bps_device")" ""

# the root group has the files, too
taken "$CG/$T.write_bps_device" "$DISK 1048576" "$DISK 1048576"
check "a limit of the root group is not shown in a group below" equal "$(cat "$CG/g/$T.write_bps_device")" ""
taken "$CG/$T.write_bps_device" "$DISK 0" ""

check "blkio.reset_stats can only be written (mode 0200)" equal "$(stat -c %a "$CG/g/blkio.reset_stats")" 200
check "the files of limits have mode 0644" equal "$(cd "$CG/g" && stat -c %a $T.*_device | sort -u)" 644
mkdir "$CG/new"
groups+=("$CG/new")
check "a new group has no limits" equal "$(cd "$CG/new" && cat $T.*_device)" ""
put "$CG/g/$T.read_iops_device" "$DISK 1000"
check "a limit of one group is not shown in another" equal "$(cd "$CG/new" && cat $T.*_device)" ""
