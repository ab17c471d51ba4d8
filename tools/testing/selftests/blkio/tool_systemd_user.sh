#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The systemd of a user to which the block controller is delegated: limits and weights of its services and scopes apply,
# and so do those of the user's slice, which the user cannot change.
# configs: uml-tools-long
# root: bookworm
. "$(dirname "$0")/lib/blkio_lib.sh"
. "$HERE/lib/blkio_tools.sh"
USER_ID=1000
SLICE=user.slice/user-$USER_ID.slice
BELOW=$SLICE/user@$USER_ID.service

# as_user COMMAND...: runs the command as in a session of the user
as_user() {
	runuser -u someone -- env "XDG_RUNTIME_DIR=/run/user/$USER_ID" "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$USER_ID/bus" "$@"
}

# user_manager: makes a user and starts the user's systemd
user_manager() {
	useradd --uid $USER_ID someone
	mkdir -p /run/systemd/system/user@.service.d
	printf '[Service]\nDelegate=pids memory io\n' >/run/systemd/system/user@.service.d/io.conf
	systemctl daemon-reload
	systemctl start user@$USER_ID.service
	chmod 755 "$TMP"
	mkdir -m 777 "$TMP/out"
}

# service NAME PROPERTY... -- OPTION...: a load in a service of the user, whose output is in NAME.json
END=--wait
service() {
	local name=$1 properties=()
	shift
	while [ "$1" != -- ]; do properties+=(-p "$1"); shift; done
	shift
	as_user systemd-run --user -q "$END" --unit="$name" "${properties[@]}" \
		-p "StandardOutput=truncate:$TMP/out/$name.json" "$LOAD" "$@"
	ln -sf "out/$name.json" "$TMP/$name.json"
}

# capped TEXT PROPERTY RATE OPTION...: 80 I/Os of 64 KiB at RATE bytes a second
capped() {
	local text=$1 property=$2 rate=$3
	shift 3
	service capped "$property" -- -f "$DEV" -s 64k -n 80 "$@"
	check "$text" took capped "$(paced 65536 80 "$rate")"
}

limits() {
	capped "IOReadBandwidthMax= of a service: rate" "IOReadBandwidthMax=$DEV 3M" 3000000
	capped "IOWriteBandwidthMax= of a service: rate" "IOWriteBandwidthMax=$DEV 3M" 3000000 -o w
	service many "IOReadIOPSMax=$DEV 100" -- -f "$DEV" -s 4k -d 8 -t 4
	check "IOReadIOPSMax= of a service: rate" within "$(val many ios)" 400 10000
	as_user systemd-run --user -q --scope -p "IOReadBandwidthMax=$DEV 3M" \
		"$LOAD" -f "$DEV" -s 64k -n 80 >"$TMP/scoped.json"
	check "IOReadBandwidthMax= of a scope: rate" took scoped "$(paced 65536 80 3000000)"
}

# what the user cannot exceed
bound() {
	systemctl set-property --runtime user-$USER_ID.slice "IOReadBandwidthMax=$DEV 2M"
	capped "a limit of the user's slice applies to a service with a higher limit: rate" \
		"IOReadBandwidthMax=$DEV 5M" 2000000
	# wait until the slice has a burst in hand again
	sleep 1
	capped "a service with a lower limit than the slice: rate" "IOReadBandwidthMax=$DEV 1M" 1000000
	END=--no-block
	for name in one two; do service $name "IOReadBandwidthMax=$DEV 5M" -- -f "$DEV" -s 64k -t 4; done
	END=--wait
	sleep 5
	check "two services together get no more than the limit of the slice" \
		within $((($(val one bytes) + $(val two bytes)) / 4)) 2000000 20000
	check "the user cannot change the limit of the slice" refused "$CG/$SLICE/io.max"
	check "the user cannot change the limit of the user's systemd" refused "$CG/$BELOW/io.max"
	systemctl set-property --runtime user-$USER_ID.slice IOReadBandwidthMax=
}

# refused FILE: the user cannot write a limit there
refused() { ! runuser -u someone -- sh -c "echo '$DISK rbps=max' >'$1'" && [ -e "$1" ]; }

weights() {
	END=--no-block
	service light IOWeight=100 -- -f "$DEV" -s 4k -p rand -d 16 -t 6
	service heavy IOWeight=300 -- -f "$DEV" -s 4k -p rand -d 16 -t 6 -S 2
	sleep 7
	check "IOWeight=100 and 300 of two services: shares" parts light heavy 750
	# the user's slice has weight 100 beside system.slice with 300, whatever the weights below are
	systemctl set-property --runtime system.slice IOWeight=300
	service light IOWeight=10000 -- -f "$DEV" -s 4k -p rand -d 16 -t 6
	systemd-run -q --no-block --unit=heavy -p "StandardOutput=truncate:$TMP/other.json" \
		"$LOAD" -f "$DEV" -s 4k -p rand -d 16 -t 6 -S 2
	sleep 7
	check "IOWeight=10000 in the user's slice, which has 100 beside 300: shares" parts light other 750
}

plan 11
the_cgroup v2
null_dev fast memory_backed=1 size=256 completion_nsec=20000
DISK=$(devno "$DEV")
chmod 666 "$DEV"
user_manager
limits
bound
null_dev slow completion_nsec=4000000 hw_queue_depth=8
chmod 666 "$DEV"
weights
