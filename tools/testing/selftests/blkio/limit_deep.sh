#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# memory: 2048
# Many limits on nested groups: each of them applies, the work for an I/O grows in proportion to their number, and
# groups below level 64 can have none. The time measured is that of the host, since computing takes no time in the
# guest.
. "$(dirname "$0")/lib/blkio_lib.sh"

MOST=64

# chain LEVELS: sets CHAIN to a cgroup that deep, with a limit on each level
chain() {
	local i
	CHAIN=$CG
	for ((i = 1; i <= $1; i++)); do
		[ "$CHAIN" = "$CG" ] || echo +io >"$CHAIN/cgroup.subtree_control"
		CHAIN=$CHAIN/x
		[ -d "$CHAIN" ] || { mkdir "$CHAIN"; groups+=("$CHAIN"); }
		echo "$(devno "$DEV") riops=$RIOPS" >"$CHAIN/io.max" || return 1
	done
}

# host_us_of_a_read: the microseconds of the host for a held read in CHAIN
host_us_of_a_read() {
	python3 - "$CHAIN" "$DEV" "$GUEST_OUT" <<'EOF'
import mmap, os, sys, threading
chain, device, out = sys.argv[1:]
open(chain + '/cgroup.procs', 'w').write(str(os.getpid()))
fd = os.open(device, os.O_RDONLY | os.O_DIRECT)

def host_s():
    """The host's clock, by the time of a file that is new there."""
    path = out + '/stamp'
    open(path, 'w').close()
    return os.stat(path).st_mtime

def read(first, number):
    buffer = mmap.mmap(-1, 4096)
    for i in range(number):
        os.preadv(fd, [buffer], 4096 * (first + i))

def run():
    begin = host_s()
    threads = [threading.Thread(target=read, args=(k * 100, 100)) for k in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return host_s() - begin

print(int(min(run() for _ in range(5)) * 1e6 / 1000))
EOF
}

# linear: the time of a held read with 64 limits against that with 8: eight times at most, if the limits were all of the
# work; with quadratic work it would be 64 times.
linear() {
	local few many
	chain 8 || return 1
	few=$(host_us_of_a_read)
	chain $MOST || return 1
	many=$(host_us_of_a_read)
	echo "8 limits: $few us a read, $MOST limits: $many us"
	((few > 0 && many <= 9 * few))
}

refused() {
	echo +io >"$CHAIN/cgroup.subtree_control"
	mkdir "$CHAIN/deeper"
	groups+=("$CHAIN/deeper")
	! (echo "$(devno "$DEV") riops=1" >"$CHAIN/deeper/io.max") 2>"$TMP/error" && grep 'Argument list too long' "$TMP/error"
}

# every_level: the lowest limit is the rate, on whichever level it is
every_level() {
	local dir=$CG/x level=1
	for level in 1 32 64; do
		dir=$CG$(printf '/x%.0s' $(seq "$level"))
		echo "$(devno "$DEV") riops=100" >"$dir/io.max"
		(echo "$BASHPID" >"$CHAIN/cgroup.procs"; exec blkio_load -a 0 -f "$DEV" -s 4k -d 4 -t 2) >"$TMP/r.json"
		echo "$(devno "$DEV") riops=$RIOPS" >"$dir/io.max"
		echo "level $level"
		in_range "$(val r ios)" 200 202 || return 1
	done
}

plan 3
RIOPS=20000
mount_cgroup v2
null_dev nb0 size=64
check "work for a held read grows in proportion to the number of limits" linear
check "a limit on each of 64 levels applies" every_level
check "a limit on the 65th level is refused" refused
