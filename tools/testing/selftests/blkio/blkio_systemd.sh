# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the tests of systemd after blkio_tools.sh: services that are loads.

# service NAME PROPERTY... -- OPTION...: a load, what it prints is in NAME.json; ends with it, or with END=--no-block at once
END=--wait
service() {
	local name=$1 properties=()
	shift
	while [ "$1" != -- ]; do properties+=(-p "$1"); shift; done
	shift
	systemd-run -q "$END" --unit="$name" "${properties[@]}" -p "StandardOutput=truncate:$TMP/$name.json" "$LOAD" "$@"
}

# capped TEXT PROPERTY OPTION...: 120 I/Os of 64 KiB at 3 MB/s
capped() {
	local text=$1 property=$2
	shift 2
	service capped "$property" -- -s 64k -n 120 "$@"
	check "$text" took capped "$(paced 65536 120 3000000)"
}

# rate_is TEXT BYTES: of live.service, a second, over two seconds
rate_is() {
	local before
	before=$(counted system.slice/live.service Read)
	sleep 2
	check "$1" within $((($(counted system.slice/live.service Read) - before) / 2)) "$2" 35000
}

# shared TEXT PROPERTY PROPERTY: two services, 1:3
shared() {
	END=--no-block
	service light "$2" -- -f "$DEV" -s 4k -p rand -d 16 -t 6
	service heavy "$3" -- -f "$DEV" -s 4k -p rand -d 16 -t 6 -S 2
	sleep 7
	END=--wait
	check "$1" parts light heavy 750
}
