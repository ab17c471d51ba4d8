#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# cgroup v2: what io.max accepts, refuses and shows.
# configs: uml-vt uml-debug qemu
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_abi.sh"

mount_cgroup v2
group g
odd_devices
MAX=$CG/g/io.max
printf -v KILO_DIGITS '1%01024d' 0
printf -v MANY_DIGITS '1%065535d' 0

plan $((4 * (7 + 12 + 4) + 65))
check "the root group has no io.max" test ! -e "$CG/io.max"
check "io.max has mode 0644" equal "$(stat -c %a "$MAX")" 644
check "io.max is empty without a limit" equal "$(cat "$MAX")" ""

# single keys: keys that are not named keep their values
taken "$MAX" "$DISK rbps=1" "$DISK rbps=1 wbps=max riops=max wiops=max"
taken "$MAX" "$DISK wbps=2" "$DISK rbps=1 wbps=2 riops=max wiops=max"
taken "$MAX" "$DISK riops=3" "$DISK rbps=1 wbps=2 riops=3 wiops=max"
taken "$MAX" "$DISK wiops=4" "$DISK rbps=1 wbps=2 riops=3 wiops=4"
taken "$MAX" "$DISK wiops=8 rbps=5\\n" "$DISK rbps=5 wbps=2 riops=3 wiops=8"
taken "$MAX" "  $DISK\\t riops=7   wbps=6  \\n" "$DISK rbps=5 wbps=6 riops=7 wiops=8"
taken "$MAX" "\\n$DISK\\vrbps=25\\r\\nwbps=26\\friops=27\\r\\n" "$DISK rbps=25 wbps=26 riops=27 wiops=8"
taken "$MAX" "$DISK wbps=6 riops=7" "$DISK rbps=25 wbps=6 riops=7 wiops=8"
taken "$MAX" "$DISK rbps=max" "$DISK rbps=max wbps=6 riops=7 wiops=8"
taken "$MAX" "$DISK rbps=9 rbps=10" "$DISK rbps=10 wbps=6 riops=7 wiops=8"
taken "$MAX" "$DISK rbps=max wbps=max riops=max" "$DISK rbps=max wbps=max riops=max wiops=8"
taken "$MAX" "$DISK wiops=max" ""
taken "$MAX" "$DISK rbps=max wbps=max riops=max wiops=max\\n" ""
taken "$MAX" "$DISK rbps=11 wbps=12 riops=13 wiops=14\\n" "$DISK rbps=11 wbps=12 riops=13 wiops=14"
taken "$MAX" "$DISK rbps=max wbps=max riops=max wiops=max" ""

# line KEY VALUE: sets LINE to the line of io.max when only KEY is set
line() {
	local key
	LINE=$DISK
	for key in rbps wbps riops wiops; do
		if [ $key = "$1" ]; then LINE+=" $key=$2"; else LINE+=" $key=max"; fi
	done
}

for key in rbps wbps riops wiops; do
	for value in 1 4294967295 4294967296 4294967297 9223372036854775808 18446744073709551614; do
		line $key $value
		# mainline has 32 bits for I/Os, and shows the greatest value as no limit
		[ "${key#?}$value" != iops4294967295 ] || LINE=""
		taken "$MAX" "$DISK $key=$value" "$LINE"
	done
	taken "$MAX" "$DISK $key=18446744073709551615" ""

	put "$MAX" "$DISK rbps=21 wbps=22 riops=23 wiops=24"
	bad_numbers "$MAX" "$DISK $key=" ""
	refused ERANGE "$MAX" "$DISK $key=0"
	refused ERANGE "$MAX" "$DISK $key=$KILO_DIGITS"
	refused E2BIG "$MAX" "$DISK $key=$MANY_DIGITS"
	# the valid keys before the invalid one are not applied either
	refused EINVAL "$MAX" "$DISK wiops=31 rbps=32 $key=x"
	put "$MAX" "$DISK rbps=max wbps=max riops=max wiops=max"
done

put "$MAX" "$DISK rbps=21 wbps=22 riops=23 wiops=24"
refused ERANGE "$MAX" "$DISK rbps=5 wiops=0"
refused EINVAL "$MAX" "$DISK rbps=5 wiops"
refused EINVAL "$MAX" "$DISK rbps=5 junk"
refused EINVAL "$MAX" "$DISK rbps=5 6"
refused EINVAL "$MAX" "$DISK rbps = 5"
refused EINVAL "$MAX" "$DISK rbps==5"
refused EINVAL "$MAX" "$DISK rbps=5=6"
refused EINVAL "$MAX" "$DISK rbps=5,wbps=6"
refused EINVAL "$MAX" "$DISK RBPS=5"
refused EINVAL "$MAX" "$DISK bps=5"
refused EINVAL "$MAX" "$DISK rbpsx=5"
refused EINVAL "$MAX" "$DISK rbp=5"
refused EINVAL "$MAX" "$DISK =5"
refused EINVAL "$MAX" "$DISK 5"
refused EINVAL "$MAX" "$DISK max"
refused EINVAL "$MAX" "$DISK rbps=MAX"
refused EINVAL "$MAX" "$DISK rbps=maximum"
refused EINVAL "$MAX" "$DISK"
# mainline accepts a line without keys, and so does ioband
SAME="$DISK rbps=21 wbps=22 riops=23 wiops=24"
for blanks in " " "\\n" " \\t \\n"; do taken "$MAX" "$DISK$blanks" "$SAME"; done
refused EINVAL "$MAX" "\\n"
refused EINVAL "$MAX" "rbps=5"
refused EINVAL "$MAX" "x rbps=5"
refused EINVAL "$MAX" "${DISK%:*} rbps=5"
refused EINVAL "$MAX" "${DISK%:*}: rbps=5"
refused EINVAL "$MAX" ":${DISK#*:} rbps=5"
refused EINVAL "$MAX" "-$DISK rbps=5"
refused EINVAL "$MAX" "${DISK}x rbps=5"
refused EINVAL "$MAX" "$DISK:1 rbps=5"
refused EINVAL "$MAX" "${DISK}rbps=5"
refused EINVAL "$MAX" "$((${DISK%:*} + 4294967296)):${DISK#*:} rbps=5"
refused ENODEV "$MAX" "$MISSING rbps=5"
refused ENODEV "$MAX" "$MISSING rbps=x"
refused ENODEV "$MAX" "0:0 rbps=5"
refused ENODEV "$MAX" "$PART rbps=5"
refused ENODEV "$MAX" "$DEAD rbps=5"
refused ENODEV "$MAX" "$((${DISK%:*} + 4096)):${DISK#*:} rbps=5"
refused ENODEV "$MAX" "${DISK%:*}:$((${DISK#*:} + 1048576)) rbps=5"

# several writes to one open file, as systemd and runc do
exec {fd}<>"$MAX"
for pair in rbps=41 wbps=42 riops=43 wiops=44; do
	printf '%s' "$DISK $pair" >&"$fd"
done
exec {fd}>&-
ALL="$DISK rbps=41 wbps=42 riops=43 wiops=44"
check "several writes to one open file set all keys" equal "$(cat "$MAX")" "$ALL"

null_dev nb2
second=$(devno "$DEV")
put "$MAX" "$second rbps=51"
check "io.max has a line for each device" equal "$(sort "$MAX")" \
	"$(printf '%s\n' "$ALL" "$second rbps=51 wbps=max riops=max wiops=max" | sort)"
# a line for each device, and for all devices
put "$MAX" "$DISK rbps=61\\nwbps=62\\n$second rbps=63\\n"
TWO=$(printf '%s\n' "$DISK rbps=61 wbps=62 riops=43 wiops=44" "$second rbps=63 wbps=max riops=max wiops=max" | sort)
check "io.max takes a line for each device" equal "$ANSWER $(sort "$MAX")" "OK $TWO"
refused ERANGE "$MAX" "$DISK rbps=71\\n$second rbps=0"
refused ENODEV "$MAX" "$DISK rbps=71\\n$MISSING rbps=72"
refused EINVAL "$MAX" "default rbps=71\\n$DISK rbps=x"
put "$MAX" "$DISK rbps=41 wbps=42"
null_off nb2
check "removing a disk removes its line" equal "$(cat "$MAX")" "$ALL"
group g/child
check "a new group has no limits" equal "$(cat "$CG/g/child/io.max")" ""
