# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are for the script that sources this
# Sourced by bench-shares and demo-shares, which run in the guest: groups with weights on null_blk under one CONTROLLER:
#   ioband        weights in io.weight; its boot has ioband=on, the boots of all others ioband=off
#   none          no controller acts; the rates of all others are compared with this one's
#   bfq-v1        weights in blkio.bfq.weight, cgroup v1
#   bfq-v2        weights in io.bfq.weight
#   bfq-tuned     the same, and enough requests for all I/Os that wait: else BFQ has two per tag, and other I/Os wait for
#                 a request without regard to weights
#   iocost        weights in io.weight, io.cost.qos enable=1 and nothing else
#   iocost-tuned  the same, and a model of this disk, see tune
# BFQ runs without low_latency, as its documentation recommends for control of bandwidth; this improves S1.
. "$(dirname "${BASH_SOURCE[0]}")/bench-lib.sh"
# shellcheck source=../../tools/testing/selftests/blkio/lib/blkio_share.sh
. "$top/tools/testing/selftests/blkio/lib/blkio_share.sh"

SERIAL="completion_nsec=100000 mbps=100"
ONE_TAG="completion_nsec=6600000 hw_queue_depth=1"
TAGS="completion_nsec=6600000 hw_queue_depth=64"
LOADS=(1 1 1)		# processes in each group of NAMES, each with DEPTHS I/Os in flight
DISK_MIB=1024		# the part of a disk that all processes divide among them
INTERVAL=1		# length of the intervals in which I/Os are counted, s
OWN=			# not empty: cell gives each group a disk
CONTROLLER=
disks=0 cells=0
declare -A models	# words for io.cost.model, by the parameters of a disk

# groups_for CONTROLLER: mounts the controller's version of cgroups, and makes the groups
groups_for() {
	CONTROLLER=$1
	case $CONTROLLER in bfq-v1) mount_cgroup v1 ;; *) mount_cgroup v2 ;; esac
	group a b c
}

# weigh VALUE...: sets the weights of the groups in NAMES
weigh() {
	local i=0 value
	case $CONTROLLER in
	none) ;;
	bfq-v1) for value; do echo "$value" >"$CG/${NAMES[i++]}/blkio.bfq.weight"; done ;;
	bfq-*) for value; do echo "$value" >"$CG/${NAMES[i++]}/io.bfq.weight"; done ;;
	*) weights "$@" ;;
	esac
}

# per_second SIZE OP: prints I/Os per second of the disk without control, 64 in flight, at random, average of 3 s
per_second() {
	start_soon
	load a model -f "$DEV" -s "$1" -o "$2" -p rand -d 64 -t 4
	wait_loads
	sed 's/.*\[//; s/\].*//; s/,//g' "$TMP/model.json" | awk '{ printf "%d", ($2 + $3 + $4) / 3 }'
}

# tune PARAMETERS: gives iocost a model of this disk, measured on the disk before it is controlled, as the kernel's
# tools/cgroup/iocost_coef_gen.py does: bytes a second of large I/Os, I/Os a second of 4 KiB. null_blk does not seek, so
# sequential I/O is as fast as random. With min=max=100 and no latency targets iocost does not change the model. The
# model has 95% of the measured rates, so that I/Os wait in iocost and not in the disk, which knows no weights. With
# 100%, 64 tags were shared 13/31/55 at 40/20/10; with 98%, 57/29/14 or 16/31/52 depending on when loads began.
tune() {
	local op n
	if [ -z "${models[$1]:-}" ]; then
		for op in r w; do
			n=$(($(per_second 4k $op) * 95 / 100))
			models[$1]+=" ${op}bps=$(($(per_second 64k $op) * 65536 * 95 / 100)) ${op}seqiops=$n ${op}randiops=$n"
		done
	fi
	echo "$(devno "$DEV") ctrl=user model=linear${models[$1]}" >"$CG/io.cost.model" &&
		echo "$(devno "$DEV") enable=1 ctrl=user rpct=0 wpct=0 min=100 max=100" >"$CG/io.cost.qos"
}

# control PARAMETERS: puts DEV under the controller; fails if the controller cannot act on DEV
control() {
	local queue=/sys/block/${DEV##*/}/queue
	echo none >"$queue/scheduler"
	case $CONTROLLER in
	ioband) know "$DEV" ;;
	bfq-*)
		echo bfq >"$queue/scheduler" && echo 0 >"$queue/iosched/low_latency" || return 1
		[ "$CONTROLLER" != bfq-tuned ] || echo 1024 >"$queue/nr_requests"
		;;
	iocost) echo "$(devno "$DEV") enable=1" >"$CG/io.cost.qos" ;;
	iocost-tuned) tune "$1" ;;
	esac
}

# disk PARAMETERS: makes a new disk under the controller, DEV
disk() {
	# shellcheck disable=SC2086 # words
	null_dev "disk$((++disks))" $1
	control "$1"
}

# loads_of I RUN OPTION...: starts the processes of the I-th group; each has a part of the disk to itself
loads_of() {
	local i=$1 run=$2 nr=0 all=0 j part
	shift 2
	for ((j = 0; j < ${#NAMES[@]}; j++)); do
		((j >= i)) || nr=$((nr + LOADS[j]))
		all=$((all + LOADS[j]))
	done
	part=$((DISK_MIB / all))
	for ((j = 0; j < LOADS[i]; j++, nr++)); do
		load "${NAMES[i]}" "${NAMES[i]}.$run.$j" -f "${DEVS[i]:-$DEV}" -d "${DEPTHS[i]}" -i "$INTERVAL" -S $((nr + 1)) \
			-O "$((nr * part))M" -L "${part}M" "$@"
	done
}

# together OPTION...: runs the processes of all groups, which begin at once
together() {
	local i
	start_soon
	for ((i = 0; i < ${#NAMES[@]}; i++)); do loads_of "$i" 1 "$@"; done
	collect
}

# collect: waits for the loads; puts the results of the loads of a group into $GUEST_OUT/CELL-GROUP.json, a line each
collect() {
	local name
	wait_loads
	cells=$((cells + 1))
	for name in "${NAMES[@]}"; do cat "$TMP/$name".*.json >"$GUEST_OUT/$cells-$name.json"; done
	rm "$TMP"/*.json
}

# said SCENARIO CASE FROM UNTIL PPM...: adds a line of spec for the results collected last: seconds that count, ideal
# shares
said() {
	local ppm=${*:5}
	spec shares "$1" "$2" "from=$3" "until=$4" "interval=$INTERVAL" "ideal=${ppm// /,}" "${NAMES[@]/#/$cells-}"
}

# ideals PARAMETERS "WEIGHT...": prints shares in ppm by weight, where no group gets more than it can have in flight
ideals() (
	slots=0
	[[ ! $1 =~ hw_queue_depth=([0-9]+) ]] || slots=${BASH_REMATCH[1]}
	for i in "${!DEPTHS[@]}"; do DEPTHS[i]=$((DEPTHS[i] * LOADS[i])); done
	# shellcheck disable=SC2086 # words
	ideal "$slots" $2
)

# cell SCENARIO CASE PARAMETERS "WEIGHT..." OPTION...: measures for T seconds on a new disk, or, if OWN is set, on a
# disk for each group, where all groups are to get the same. The first quarter does not count: controllers learn then.
cell() {
	local scenario=$1 what=$2 parameters=$3 list=$4 name
	shift 4
	DEVS=()
	# shellcheck disable=SC2086 # words
	weigh $list
	for name in "${NAMES[@]}"; do
		disk "$parameters" || { spec cannot "$scenario" "$what"; return; }
		DEVS+=("$DEV")
		[ -n "$OWN" ] || break
	done
	together -t "$T" "$@"
	[ -z "$OWN" ] || list="1 1 1"
	# shellcheck disable=SC2046 # words
	said "$scenario" "$what" $((T / 4)) "$T" $(ideals "$parameters" "$list")
	for name in "${DEVS[@]}"; do null_off "${name##*/}"; done
	DEVS=()
}
