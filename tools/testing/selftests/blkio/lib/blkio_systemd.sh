# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are for the tests
# Sourced by the tests of systemd after blkio_tools.sh: services that run loads.

# service NAME PROPERTY... -- OPTION...: runs a load, whose output is in NAME.json, and waits for its end, unless
# END=--no-block
END=--wait
service() {
	local name=$1 properties=()
	shift
	while [ "$1" != -- ]; do properties+=(-p "$1"); shift; done
	shift
	systemd-run -q "$END" --unit="$name" "${properties[@]}" -p "StandardOutput=truncate:$TMP/$name.json" "$LOAD" "$@"
}

# capped TEXT PROPERTY OPTION...: points about 120 I/Os of 64 KiB at 3 MB/s
capped() {
	local text=$1 property=$2
	shift 2
	service capped "$property" -- -s 64k -n 120 "$@"
	check "$text" took capped "$(paced 65536 120 3000000)"
}

# rate_is TEXT BYTES: a point: live.service does this many bytes a second, over two seconds
rate_is() {
	local before
	before=$(counted system.slice/live.service Read)
	sleep 2
	check "$1" within $((($(counted system.slice/live.service Read) - before) / 2)) "$2" 35000
}

# shared TEXT PROPERTY PROPERTY: points about two services with weights 1:3
shared() {
	END=--no-block
	service light "$2" -- -f "$DEV" -s 4k -p rand -d 16 -t 6
	service heavy "$3" -- -f "$DEV" -s 4k -p rand -d 16 -t 6 -S 2
	sleep 7
	END=--wait
	check "$1" parts light heavy 750
}

# live FILE LINE: one service with a limit of 2 MB/s, which is LINE in FILE of its group; the limit is changed, removed
# and read again
live() {
	local file=$CG/system.slice/live.service/$1
	END=--no-block
	service live -- -f "$DEV" -s 64k -t 30 -i 1
	END=--wait
	systemctl set-property --runtime live "IOReadBandwidthMax=$DEV 2M"
	check "set-property while the service runs: ${file##*/} has the limit" asked "$file" "$2"
	sleep 1
	rate_is "set-property while the service runs: rate" 2000000
	systemctl set-property --runtime live "IOReadBandwidthMax=$DEV 5M"
	rate_is "set-property to another limit: rate" 5000000
	systemctl daemon-reload
	rate_is "daemon-reload: rate" 5000000
	systemctl daemon-reexec
	rate_is "daemon-reexec: rate" 5000000
	systemctl set-property --runtime live IOReadBandwidthMax=
	check "reset of the property: ${file##*/} has no line" equal "$(cat "$file")" ""
	systemctl stop live
}

# disks: makes a disk with a file system at /mnt, and DEV
disks() {
	null_dev files memory_backed=1 size=256 completion_nsec=20000
	mkfs.ext4 -q "$DEV"
	mount "$DEV" /mnt
	truncate -s 16M /mnt/file
	null_dev fast memory_backed=1 size=256 completion_nsec=20000
	DISK=$(devno "$DEV")
}
