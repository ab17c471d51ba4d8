#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Weights: what blkio.weight and blkio.weight_device on v1 and io.weight on v2 accept, refuse and
# show, also under BFQ's names, and the weights in io.stat.
# configs: uml-vt uml-debug qemu
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_abi.sh"

# WEIGHT is the file of group g's weight, OWN the file of its weights for devices.  On v2 both are
# io.weight, which begins with "default N".
printf -v KILO_DIGITS '1%01024d' 0
printf -v MANY_DIGITS '1%065535d' 0

# shows N LINE...: sets SHOWN to the contents of OWN if N is the group's weight; LINEs in any order
shows() {
	if [ "$CGV" = v1 ]; then shift; else set -- "default $1" "${@:2}"; fi
	printf -v SHOWN '%s\n' "$@"
	SHOWN=${SHOWN%$'\n'}
}
own_is() { shows "${@:2}"; check "$CGV: $1" equal "$(sort "$OWN")" "$(sort <<<"$SHOWN")"; }
own_takes() { shows "${@:2}"; taken "$OWN" "$1" "$SHOWN"; }
group_takes() { taken "$WEIGHT" "$1" "$PRE$2"; }

# bad_weights FILE PREFIX: three of the numbers would be 500 if truncated to 32, 63 and 64 bits
bad_weights() {
	local value
	bad_numbers "$1" "$2" "\\n"
	for value in $((MIN - 1)) $((MAX + 1)) 4294967{296,796} 922337203685477{5808,6308}; do
		# 0 removes the weight
		[ "$2$value" != "$DISK 0" ] || continue
		refused $RANGE "$1" "$2$value"
	done
	for value in 18446744073709552116 "$KILO_DIGITS"; do refused ERANGE "$1" "$2$value"; done
	refused E2BIG "$1" "$2$MANY_DIGITS"
	for value in "50 60" "50 x" "50 default" 50: DEFAULT max " "; do refused EINVAL "$1" "$2$value"; done
}

# bad_lines: lines without a device, or with one that does not exist
bad_lines() {
	local major=${DISK%:*} minor=${DISK#*:} name
	for name in "$MISSING" 0:0 "$PART" "$DEAD" $((major + 4096)):"$minor" "$major:$((minor + 1048576))"; do
		refused ENODEV "$OWN" "$name 50"
		refused ENODEV "$OWN" "$name default"
	done
	for name in x : "$major" "$major:" ":$minor" "-$DISK" "0x$DISK" "${DISK}x" "$DISK:1" "$DISK=" \
		"default $DISK" $((major + 4294967296)):"$minor"; do
		refused EINVAL "$OWN" "$name 50"
	done
	refused EINVAL "$OWN" "$DISK"
}

read_some() { start_soon; load "$1" r -f "$DEV" -s 4k -n 50; wait_loads; }

# devices NAME: two disks with weights of their own, of which NAME is the second; and the group's weight
devices() {
	local second value
	null_dev "$1"
	second=$(devno "$DEV")
	put "$OWN" "$DISK 70"
	put "$OWN" "$second 80"
	own_is "a line for each device" 302 "$DISK 70" "$second 80"
	own_takes "$DISK default" 302 "$second 80"
	exec {fd}<>"$WEIGHT"
	for value in 310 320 400; do echo $value >&"$fd"; done
	exec {fd}>&-
	check "$CGV: of several writes to one open file the last counts" equal "$(head -n 1 "$WEIGHT")" "${PRE}400"
	read_some g
	own_is "the group's new weight and I/O leave that on a device alone" 400 "$second 80"
	null_off "$1"
	own_is "a disk that goes takes its line along" 400
	group g/child
	check "$CGV: a new child has the default weight" equal "$(cat "$CG/g/child/${WEIGHT##*/}")" "$PRE$DFL"
}

# cgget of libcgroup indents all lines but the first
libcgroup() {
	local file=${WEIGHT##*/} own=${OWN##*/}
	shows 321 "$DISK 77"
	cgset -r "$file=321" g && equal "$(cgget -n -v -r "$file" g)" "${PRE}321" &&
		cgset -r "$own=$DISK 77" g && equal "$(cgget -n -v -r "$own" g | tr -d '\t')" "$SHOWN" &&
		! cgset -r "$file=$((MAX + 1))" g && equal "$(head -n 1 "$WEIGHT")" "${PRE}321"
}

# both NAME: the points of both hierarchies; NAME is a free name for a disk
both() {
	local value
	check "$CGV: the files of weights have mode 0644" equal "$(stat -c %a "$WEIGHT" "$OWN" | uniq)" 644
	check "$CGV: a new group has the default weight" equal "$(cat "$WEIGHT")" "$PRE$DFL"
	own_is "a new group has no weights on devices" $DFL
	for value in $MIN $MAX $DFL 300; do group_takes "$value" "$value"; done
	group_takes "  301  \\n" 301
	group_takes "302\\n" 302
	for value in $MIN $MAX $DFL 70; do own_takes "$DISK $value" 302 "$DISK $value"; done
	own_takes "  $DISK\\t72  \\n" 302 "$DISK 72"
	own_takes "$DISK default\\n" 302
	own_takes "$DISK default" 302
	put "$OWN" "$DISK 90"
	bad_weights "$WEIGHT" ""
	bad_weights "$OWN" "$DISK "
	bad_lines
	devices "$1"
	if type -P cgset cgget >"$TMP/tools"; then
		check "$CGV: cgset and cgget of libcgroup set and show weights" libcgroup
	else
		skip "$CGV: cgset and cgget of libcgroup set and show weights" "it is not there"
	fi
	put "$OWN" "$DISK 77"
}

# by_bfq FILE OWN PREFIX: points of the files with BFQ's names: they have the same weights, and the
# later write counts, whichever name it uses
by_bfq() {
	local file=$1 own=$2 pre=$3 value
	put "$OWN" "$DISK default"
	taken "$file" 300 "${pre}300"
	check "$CGV: a weight written to ${file##*/} is the group's weight" equal "$(head -n 1 "$WEIGHT")" "${PRE}300"
	put "$WEIGHT" 400
	check "$CGV: the group's weight is shown in ${file##*/}" equal "$(head -n 1 "$file")" "${pre}400"
	taken "$file" 1 "${pre}1"
	taken "$file" 1000 "${pre}1000"
	for value in 0 1001 4294967396; do refused ERANGE "$file" $value; done
	for value in x " " "default x" "300 400"; do refused EINVAL "$file" "$value"; done
	taken "$own" "default 310" "default 310"
	taken "$own" "$DISK 70" "default 310"$'\n'"$DISK 70"
	check "$CGV: a weight for a device written to ${own##*/} is shown under the other name" grep -qx "$DISK 70" "$OWN"
	refused ERANGE "$own" "$DISK 1001"
	taken "$own" "$DISK 0" "default 310"
	refused ENODEV "$own" "$MISSING 50"
	taken "$own" "$DISK default" "default 310"
	check "$CGV: the root group has no ${own##*/}" test ! -e "$CG/${own##*/}"
	put "$OWN" "$DISK 77"
}

# leaf: leaf weights of v1, that is of a group's own I/O, beside its weight
leaf() {
	local file=$CG/g/blkio.leaf_weight before
	local own=${file}_device
	before=$(cat "$WEIGHT" "$OWN")
	check "v1: a new group has the default leaf weight" equal "$(cat "$file" "$own")" 500
	taken "$file" 10 10
	taken "$file" 1000 1000
	taken "$own" "$DISK 70" "$DISK 70"
	for value in 9 1001; do
		refused ERANGE "$file" $value
		refused ERANGE "$own" "$DISK $value"
	done
	for value in x " " "default 50" "$DISK 50"; do refused EINVAL "$file" "$value"; done
	for value in "default 50" 50; do refused EINVAL "$own" "$value"; done
	refused ENODEV "$own" "$MISSING 50"
	taken "$own" "$DISK 0" ""
	taken "$own" "$DISK 80" "$DISK 80"
	taken "$own" "$DISK default" ""
	taken "$file" 500 500
	check "v1: leaf weights do not change the weight" equal "$(cat "$WEIGHT" "$OWN")" "$before"
	check "v1: the root group has no leaf weight" test ! -e "$CG/blkio.leaf_weight"
}

v1() {
	local value
	mount_cgroup v1
	group g
	WEIGHT=$CG/g/blkio.weight OWN=${WEIGHT}_device PRE='' MIN=10 MAX=1000 DFL=500 RANGE=ERANGE
	both nb2
	own_takes "$DISK 0\\n" 0
	own_takes "$DISK 0" 0
	for value in "default 50" "$DISK 50"; do refused EINVAL "$WEIGHT" "$value"; done
	for value in "default 50" 50; do refused EINVAL "$OWN" "$value"; done
	leaf
	by_bfq "$CG/g/blkio.bfq.weight" "$CG/g/blkio.bfq.weight_device" ""
	# the root group has the files of weights, too
	taken "$CG/blkio.weight" 300 300
	taken "$CG/blkio.weight" 500 500
	taken "$CG/blkio.weight_device" "$DISK 70" "$DISK 70"
	taken "$CG/blkio.weight_device" "$DISK 0" ""
	umount_cgroup
}

# io_stat PATTERN: the line of DEV in io.stat ends with PATTERN after mainline's keys
io_stat() { cat "$CG/s/io.stat"; grep -Eqx "$(devno "$DEV") .* dios=0$1" "$CG/s/io.stat"; }
weighs() { io_stat " weight=$1 share_ppm=[0-9]+ got_ppm=[0-9]+ inflight=0 share_waits=0 share_wait_usec=0"; }

io_stats() {
	local i
	group s
	DEV=/dev/nb0
	read_some s
	check "v2: io.stat has no keys of ioband without weights" io_stat ""
	weight s 300
	null_dev nb3
	# the disk is made ready for weights soon after it is used
	for ((i = 0; i < 50; i++)); do
		read_some s
		! weighs 300 >"$TMP/seen" || break
	done
	check "v2: io.stat has the group's weight" weighs 300
	weight s 70 "$DEV"
	check "v2: io.stat has the weight for the device if one is set" weighs 70
	weight s 200
	check "v2: io.stat has the weight for the device after the group's weight changes" weighs 70
	weight s default "$DEV"
	check "v2: io.stat has the group's weight after the weight for the device is removed" weighs 200
	weight s 100
	null_off nb3
}

v2() {
	mount_cgroup v2
	group g
	WEIGHT=$CG/g/io.weight OWN=$WEIGHT PRE="default " MIN=1 MAX=10000 DFL=100 RANGE=EINVAL
	check "v2: the root group has no weight" test ! -e "$CG/io.weight"
	io_stats
	both nb4
	bad_weights "$WEIGHT" "default "
	own_takes "default 10000" 10000 "$DISK 77"
	own_takes "default   1\\n" 1 "$DISK 77"
	own_takes "$DISK 0" 1
	own_takes "default 5\\n$DISK 78\\n" 5 "$DISK 78"
	refused EINVAL "$OWN" "default 6\\n$DISK 0x"
	own_takes "default 1\\n$DISK 77" 1 "$DISK 77"
	by_bfq "$CG/g/io.bfq.weight" "$CG/g/io.bfq.weight" "default "
	put "$WEIGHT" 10000
	check "v2: io.bfq.weight shows weights above 1000 as 1000" equal "$(head -n 1 "$CG/g/io.bfq.weight")" "default 1000"
}

plan $((2 * 20 + 1 + 2 * (3 + 6 + 7 + 2 * 28 + 25 + 6 + 1) + 10 + 6 + 30 + 24))
odd_devices
v1
v2
