#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# timeout: 900
# Weights and groups that seldom have an I/O waiting: readers that do one I/O after the other beside a group with 32
# outstanding, with and without a pause in between; I/Os of different lengths; groups that become idle and active again.
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_share.sh"

ONE_TAG="completion_nsec=6600000 hw_queue_depth=1"
SERIAL="completion_nsec=100000 mbps=100"
NAMES=(reader other)
DEPTHS=(1 32)

# reader TEXT PERMILLE "WEIGHT..." OPTION...: shares to within 2 points, and PERMILLE of the rate
reader() {
	local text=$1 permille=$2 list=$3 before w
	shift 3
	read -ra w <<<"$list"
	text+=" at ${w[0]}:${w[1]}"
	weights 100 100
	run "$@"
	before=$(total)
	weights "${w[@]}"
	know "$DEV"
	run "$@"
	check "$text: groups get their shares" shared 20000 0 "${w[@]}"
	check "$text: all groups together do as much as demanded" as_fast "$permille" "$before"
	# one I/O after the other: the mean latency is the time divided by their number
	check "$text: the reader's mean latency is at most 1.33 of its fair one" \
		test $(($(counted reader) * 133 * (w[0] + w[1]))) -ge $((before * 100 * w[0]))
}

readers() {
	local weights
	for weights in "600 100" "500 500" "100 600"; do
		reader "$1" "$2" "$weights" "${@:3}"
	done
}

# pausing SECONDS: the reader pauses after each I/O; others do not wait for a reader that pauses for long
pausing() {
	weights 300 100
	know "$DEV"
	start_soon
	load reader reader -f "$DEV" -s 4k -p rand -t $T -i 2.5 -T "$1"
	load other other -f "$DEV" -s 4k -p rand -t $T -i 2.5 -d 32 -S 2
	wait_loads
	echo "pause $1 s: reader $(counted reader), other $(counted other)"
}
waited_for() {
	pausing 0.0004
	# 0.4 of 7 ms are lost each time, and the shares are 3 to 1 all the same
	in_range $(($(counted reader) * 1000 / $(total))) 730 770
}
not_waited_for() {
	pausing 0.002
	# no time is lost: 1 / 6.6 ms
	in_range "$(total)" 2250 2290
}

# a group is idle for a while: the I/Os of the other group in each 10 ms
comes_and_goes() {
	weights 300 100
	know "$DEV"
	start_soon
	load other other -f "$DEV" -s 4k -p rand -d 8 -t 1 -i 0.01
	load reader reader -f "$DEV" -s 4k -p rand -d 8 -t 0.3 -i 0.01 -S 2 -a $((START + 400000000))
	wait_loads
}

# one of three groups is idle for a while: the I/Os of the others in each 10 ms
comes_back() {
	weight third 100
	weights 200 100
	know "$DEV"
	start_soon
	for name in other third; do
		load $name $name -f "$DEV" -s 4k -p rand -d 8 -t 1 -i 0.01
	done
	load reader first -f "$DEV" -s 4k -p rand -d 8 -t 0.3 -S 2 -a $((START + 100000000))
	load reader reader -f "$DEV" -s 4k -p rand -d 8 -t 0.2 -S 2 -a $((START + 700000000))
	wait_loads
}

# a group for which others wait ends
stays_away() {
	weights 300 100
	know "$DEV"
	start_soon
	load other other -f "$DEV" -s 4k -p rand -t 0.5 -i 0.01
	load reader reader -f "$DEV" -s 4k -p rand -t 0.3 -S 2
	wait_loads
}

# a group whose next turn was a second away gets a greater weight
weight_raised() {
	weights 1 10000
	know "$DEV"
	start_soon
	load other other -f "$DEV" -s 4k -p rand -d 8 -t 1 -i 0.01
	load reader reader -f "$DEV" -s 4k -p rand -d 8 -t 1 -S 2 -i 0.01
	until_ns $((START + 500000000))
	weight reader 10000
	wait_loads
}

mount_cgroup v2
group reader other third
plan 39

# shellcheck disable=SC2086 # words
null_dev onetag $ONE_TAG
T=20
readers "one tag" 990 -s 4k -p rand
check "others wait for a reader with a short pause" waited_for
check "others do not wait for a reader with a long pause, and lose nothing" not_waited_for
run -s 4k -p rand
check "others wait again for a reader that does not pause any more" shared 20000 0 300 100
# shellcheck disable=SC2086 # words
null_dev serial $SERIAL
T=8
readers "serial" 925 -s 64k -p rand

null_dev fast completion_nsec=100000 hw_queue_depth=1
comes_and_goes
# the root group made the disk ready before: so it takes 80 ms until a group that is alone passes without the lock
check "a group that is alone: all of the disk" bins other 10 40 98 101
check "10 ms after another group became active: a quarter for the first" bins other 41 70 23 27
# the gate needs the second 10 ms until it lets all I/O pass
check "10 ms after the other group became idle: all of the disk for the first" bins other 71 99 93 101

comes_back
check "three groups: a quarter of the disk" bins other 14 39 23 27
check "one of three groups is idle: half of the disk" bins other 45 69 47 53
check "the third group is active again: it gets nothing for the time it was idle" bins other 71 89 23 27
stays_away
check "one I/O at a time: a quarter of the disk" bins other 10 29 23 27
check "the group that others wait for ends: all of the disk for the other" bins other 31 49 93 101

weight_raised
check "a group with a tiny weight gets hardly anything of the disk" bins reader 10 50 0 1
check "20 ms after its weight was raised a group gets half of the disk" bins reader 53 95 47 53

null_dev many completion_nsec=1000000 hw_queue_depth=16
for depth in 4 8; do
	DEPTHS=("$depth" 64)
	weights 900 100
	know "$DEV"
	run -s 4k -p rand
	check "16 I/Os at a time, $depth and 64 outstanding, at 900:100: the first group gets as many places as it needs" \
		shared 10000 16 900 100
done

# with another scheduler the disk is a different one
echo mq-deadline >"/sys/block/${DEV##*/}/queue/scheduler"
before=$(depth_found "$DEV")
start_soon
for name in reader other; do load $name $name -f "$DEV" -s 4k -p rand -d 8 -n 16; done
wait_loads
check "the queue depth was measured" equal "$before" 16
check "after a change of scheduler the queue depth is measured again" in_range "$(depth_found "$DEV")" 1 4

# an I/O is dispatched when the last I/Os of the previous group have completed, though no other completes after them
gate_passes_on() {
	weights 200 200
	know "$DEV"
	start_soon
	load reader reader -f "$DEV" -s 4k -p rand -d 16 -t 0.2
	load other other -f "$DEV" -s 4k -n 1 -a $((START + 200020000))
	sleep 1
	dd if="$DEV" of=/dev/null bs=4k count=1 iflag=direct status=none
	wait_loads
}
null_dev last completion_nsec=1000000 hw_queue_depth=16
gate_passes_on
check "one I/O that follows those of a full disk takes one turn of the disk, ns" \
	in_range "$(val other max_ns)" 1010000 2500000

# mixed TEXT WEIGHT WEIGHT SIZE KEY=VALUE...: short random I/Os beside long sequential ones, at equal weights; the
# shares by number if they are equal by time
mixed() {
	local text=$1 one=$2 two=$3 size=$4
	shift 4
	null_dev "mixed$size$one" "$@"
	know "$DEV"
	start_soon
	load reader reader -f "$DEV" -s 4k -p rand -d 32 -t $T -i 1
	load other other -f "$DEV" -s "$size" -d 32 -t $T -i 1 -S 2
	wait_loads
	if [ -n "$TOLD" ]; then
		echo "# $text:"
		shared 50000 0 "$one" "$two" | sed 's/^/# /' || true
		return
	fi
	check "$text" shared 50000 0 "$one" "$two"
}
# prints the shares, which are not judged here
TOLD=

DEPTHS=(32 32)
weights 500 500
mixed "4 KiB against 64 KiB, each as long in the device" 1 1 64k completion_nsec=1000000 hw_queue_depth=1
mixed "the same, 16 at a time" 100 100 64k completion_nsec=1000000 hw_queue_depth=16
mixed "4 KiB against 128 KiB, which are two for this disk" 2 1 128k completion_nsec=1000000 hw_queue_depth=1
# This disk does I/Os of any length in 0.1 ms until the bytes for 20 ms are used up, so that completions do not show
# which of the groups uses how much of it. By bytes the shares would be 32 to 1.
TOLD=1
# shellcheck disable=SC2086 # words
mixed "4 KiB against 128 KiB, a disk of bursts" 32 1 128k $SERIAL
