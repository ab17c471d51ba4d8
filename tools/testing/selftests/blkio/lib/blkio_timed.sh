# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are for the tests
# How long a group waits for another one: Python code that runs in groups. After blkio_lib.sh.

# the longest time that another group may wait, ms
MOST_MS=200

IMPORTS='import fcntl, mmap, os, struct, subprocess, sys, threading, time
begin = time.monotonic()
'

# timed_in GROUP CODE ARGUMENT...: runs Python code in GROUP; sets TOOK_MS to the ms that it takes
timed_in() {
	TOOK_MS=$(in_group "$1" python3 -c "$IMPORTS$2
print(int((time.monotonic() - begin) * 1000))" "${@:3}" | tail -n 1)
}

# begun GROUP CODE ARGUMENT...: runs Python code in the background, and waits until it has made the file \$TMP/begun
begun() {
	rm -f "$TMP/begun"
	in_background "$1" python3 -c "$IMPORTS$2" "${@:3}" "$TMP/begun"
	while [ ! -e "$TMP/begun" ]; do sleep 0.01; done
}
