# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # from the library
# Sourced after stress_lib.sh by tests that change everything around a load while it runs. SECONDS_EACH (3) is the time
# for each kind of change.
SECONDS_EACH=${SECONDS_EACH:-3}
PART=$((8 * MiB))
LOAD_SHIFT=${LOAD_SHIFT:-2}
# a disk so slow that the loads leave the CPUs to the tasks that change things
DISK_LIKE=${DISK_LIKE:-hw_queue_depth=16 completion_nsec=16000000}

# Each of these functions makes one change. They fork as little as they can: pick puts its choice into REPLY.
pick() { shift $((RANDOM % $#)); REPLY=$1; }
some_rate() { pick max 1048576 262144 8388608 1073741824 9223372036854775807; }
some_iops() { pick max 200 1000 50 100000 4294967296; }

# set_limit GROUP KEY VALUE [default]: sets one limit, for the disk or for all devices
set_limit() {
	if [ "$CGV" = v2 ]; then
		echo "${4:-$NUMBER} $2=$3" >"$CG/$1/io.max"
	else
		echo "${4:-$NUMBER} ${3/max/0}" >"$CG/$1/blkio.throttle.${V1[$2]}_device"
	fi
}
declare -A V1=([rbps]=read_bps [wbps]=write_bps [riops]=read_iops [wiops]=write_iops)

rules() {
	local name key where
	pick "$@"
	name=$REPLY
	pick "" "" default
	where=$REPLY
	for key in rbps wbps riops wiops; do
		case $key in *bps) some_rate ;; *) some_iops ;; esac
		set_limit "$name" $key "$REPLY" "$where"
	done
	pick rbps wbps riops wiops
	key=$REPLY
	pick max default
	set_limit "$name" "$key" "$REPLY"
}

elevator() {
	pick none mq-deadline kyber bfq
	echo "$REPLY" >"/sys/block/$DISK/queue/scheduler"
}

queue() {
	pick "nr_requests 16" "nr_requests 64" "nr_requests 128" "max_sectors_kb 4" "max_sectors_kb 64" \
		"max_sectors_kb 512" "nomerges 0" "nomerges 2" "rq_affinity 2" "rq_affinity 0" "rotational 1" \
		"rotational 0" "iostats 0" "iostats 1" "write_cache write back" "write_cache write through"
	echo "${REPLY#* }" >"/sys/block/$DISK/queue/${REPLY%% *}"
}

hw_queues() {
	pick 1 2
	echo "$REPLY" >"$NULLB/$DISK/submit_queues"
}

groups() {
	local name=${1}tmp
	mkdir "$CG/$name"
	pick 4194304 max 262144
	set_limit "$name" rbps "$REPLY" default
	set_limit "$name" wiops 500
	(exec_in "$name" tmp dd if="$DEV" of=/dev/null bs=16k count=8 iflag=direct status=none)
	rmdir "$CG/$name"
}

migrate() {
	local name
	for name in $LOADS; do
		pick "$@"
		cat "$TMP/$name.pid" >"$CG/$REPLY/cgroup.procs"
	done
}

cpus() {
	local name
	for name in $LOADS; do
		pick 1 2 3
		taskset -ap "$REPLY" "$(cat "$TMP/$name.pid")" >/dev/null
	done
}

reset() {
	pick "$@"
	echo 1 >"$CG/$REPLY/blkio.reset_stats"
}

look() {
	pick "$@"
	cat "$CG/$REPLY"/{io.max,io.stat,blkio.throttle.*} "/sys/kernel/debug/block/$DISK/ioband/groups" 2>/dev/null || true
}

# change_weight GROUP...: sets the weight of one of the groups, for all devices or for this one
change_weight() {
	local name value file=io.weight
	pick "$@"
	name=$REPLY
	[ "$CGV" = v2 ] || file=blkio.weight
	pick 10 100 500 1000 default
	value=$REPLY
	pick "" "$NUMBER "
	if [ "$CGV" = v1 ]; then
		[ -z "$REPLY" ] || file+=_device
		[ -n "$REPLY" ] || value=${value/default/500}
	fi
	echo "$REPLY$value" >"$CG/$name/$file"
}

# churn FUNCTION ARGUMENT...: makes changes until the file $TMP/stop exists, one at least; a change may fail because
# the device is busy. The nap lets the clock go on where work takes no time.
churn() {
	local nr=0
	until [ -e "$TMP/stop" ] && [ "$nr" -gt 0 ]; do
		"$@" >/dev/null 2>>"$TMP/churn.err" && nr=$((nr + 1))
		sleep 0.002
	done
	echo "$1: $nr changes"
}

# start_loads GROUP...: runs a load in each group, on a part of the disk of its own, with LOAD_DEPTH (16): the first
# load has I/Os of 4 KiB, each other one 4 times, or 1 << LOAD_SHIFT times, the size of the one before
start_loads() {
	local name i=0
	LOADS=
	for name; do
		verify "$name" "load$i" -b $((4096 << (i * LOAD_SHIFT))) -d "${LOAD_DEPTH:-16}" -o $((i * PART)) -s $PART -S $((i + 1)) \
			-w "$TMP/load$i.state" "$DEV"
		LOADS+=" load$i"
		i=$((i + 1))
	done
}

all_written() {
	local i=0 name names=()
	for name in $LOADS; do
		background "$name.check" stress_verify -b $((4096 << (i * LOAD_SHIFT))) -o $((i * PART)) -s $PART \
			-c "$TMP/$name.state" "$DEV"
		names+=("$name.check")
		i=$((i + 1))
	done
	intact "${names[@]}"
}

lift_all() {
	local name key
	for name; do
		for key in rbps wbps riops wiops; do
			set_limit "$name" $key max default
			set_limit "$name" $key max
		done
	done
}

churners_ended() {
	ended "$@" || return 1
	for name; do
		slurp REPLY "$TMP/$name.out"
		echo "$REPLY"
	done
}

# scenario TEXT "GROUP..." CHURNER...: CHURNER is a function and its arguments
scenario() {
	local text=$1 where=$2 names=() churner
	shift 2
	rm -f "$TMP/stop"
	# shellcheck disable=SC2086 # words
	smp_null smpnull $DISK_LIKE
	NUMBER=$(devno "$DEV")
	# shellcheck disable=SC2086 # words
	start_loads $where
	for churner; do
		# shellcheck disable=SC2086 # words
		background "churn${#names[@]}" churn $churner
		names+=("churn${#names[@]}")
	done
	sleep "$SECONDS_EACH"
	touch "$TMP/stop"
	check "$text: changes were made during the load" churners_ended "${names[@]}"
	# shellcheck disable=SC2086 # words
	stop $LOADS
	# shellcheck disable=SC2086 # words
	lift_all $ALL
	find "$CG" -mindepth 1 -type d -name tmp -delete
	# shellcheck disable=SC2086 # words
	check "$text: each I/O ended once, without an error" intact $LOADS
	check "$text: no bio is held after the load" wait_for held holds_none "$DISK"
	check "$text: the data on the disk is right" all_written
	null_end smpnull
}
