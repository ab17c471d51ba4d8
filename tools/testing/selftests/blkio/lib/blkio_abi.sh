# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are for the tests
# Sourced by the abi_* tests after blkio_lib.sh: writes that must fail with a given errno and change
# nothing, writes that must be accepted, and the devices that they name.
coproc WRITER { exec python3 -u "$HERE/lib/abi_write.py"; }

# put FILE VALUE: one write(); sets ANSWER to OK or the name of the errno
put() {
	printf '%s\t%s\n' "$1" "$2" >&"${WRITER[1]}"
	read -r ANSWER <&"${WRITER[0]}"
}

# refused ERRNO FILE VALUE: the write fails with ERRNO, and FILE reads as before
refused() {
	local before after
	slurp before "$2"
	put "$2" "$3"
	slurp after "$2"
	check "${2##*/}: '${3:0:60}' is $1" equal "$ANSWER, reads $after" "$1, reads $before"
}

# taken FILE VALUE READS: VALUE is accepted, and FILE reads READS afterwards
taken() {
	local after
	put "$1" "$2"
	slurp after "$1"
	check "${1##*/}: '${2:0:60}' is accepted" equal "$ANSWER, reads $after" "OK, reads $3"
}

# odd_devices: sets DISK, a disk and its number, and the numbers PART of a partition, MISSING of no
# device, and DEAD of a disk that was removed while it is open
odd_devices() {
	null_dev nb0
	DISK=$(devno "$DEV")
	addpart "$DEV" 1 2048 8192
	PART=$(devno "${DEV}p1")
	null_dev nb1
	DEAD=$(devno "$DEV")
	exec {DEAD_FD}<"$DEV"
	null_off nb1
	MISSING=${DISK%:*}:4000
}

# bad_numbers FILE PREFIX SUFFIX TAIL: values that are not valid numbers
bad_numbers() {
	local value
	for value in 10M 10k 0x10 -5 +-5 1.5 1e3 12abc "" none; do
		refused EINVAL "$1" "$2$value$3"
	done
	refused ERANGE "$1" "${2}18446744073709551616$3"
	refused ERANGE "$1" "${2}99999999999999999999999999$3"
}
