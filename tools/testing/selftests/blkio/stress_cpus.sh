#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-debug qemu
# timeout: 900
# The dispatch of held I/O does not depend on a single CPU: it is not delayed by a task that never leaves its CPU to
# other tasks, nor by a CPU that is kept free of unbound work.
# shellcheck source=lib/stress_lib.sh
. "$(dirname "$0")/lib/stress_lib.sh"

CPUMASK=/sys/devices/virtual/workqueue/cpumask
TRACING=/sys/kernel/tracing

# spin: reads once from CPU 1, below the limit, and then occupies that CPU
spin() {
	echo "$BASHPID" >"$CG/a/cgroup.procs"
	taskset -c 1 chrt -f 50 python3 - "$DEV" "$TMP/spins" "$TMP/spun" <<'EOF'
import mmap, os, sys, threading, time
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)

def read():
    os.preadv(fd, [mmap.mmap(-1, 65536)], 0)

threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads:
    thread.start()
time.sleep(0.05)
open(sys.argv[2], 'w').close()
end = time.monotonic() + 100
while time.monotonic() < end and not os.path.exists(sys.argv[3]):
    pass
EOF
}

# Other limited tasks go on from CPU 0 while CPU 1 is occupied.
spun() {
	cap a "$DEV" rbps=$((64 * 1024))
	background spinner spin
	wait_for "the spinner" test -e "$TMP/spins" || return 1
	in_b 50 || return 1
	running spinner || { echo "the spinner has ended"; return 1; }
	: >"$TMP/spun"
	ended spinner
}

# in_b IOS: reads from CPU 0, one after the other, below a limit of 100 a second
in_b() {
	(
		echo "$BASHPID" >"$CG/b/cgroup.procs"
		exec timeout 60 taskset -c 0 dd if="$DEV" of=/dev/null bs=4k count="$1" iflag=direct status=none
	)
}

# kept_off: the number of ioband's work items that ran on CPU 1 while it is kept free of work, though all I/O is from
# there. The limit is low enough for a busy machine to ask for the next read while the last one is being paid for. All
# reads but the first wait.
kept_off() {
	local here
	cap b "$DEV" riops=10
	echo 1 >$CPUMASK
	echo >$TRACING/trace
	echo 1 >$TRACING/events/workqueue/workqueue_execute_start/enable
	(
		echo "$BASHPID" >"$CG/b/cgroup.procs"
		exec taskset -c 1 dd if="$DEV" of=/dev/null bs=4k count=31 iflag=direct status=none
	)
	echo 0 >$TRACING/events/workqueue/workqueue_execute_start/enable
	echo 3 >$CPUMASK
	here=$(grep -c '\[000\].*function ioband_' $TRACING/trace || true)
	grep '\[001\].*function ioband_' $TRACING/trace && return 1
	echo "$here work items on CPU 0"
	((here >= 30))
}

[ "$(nproc)" -ge 2 ] || skip_all "the test needs two CPUs"
[ -w $CPUMASK ] || skip_all "no cpumask of workqueues"
plan 4
leaks_begin
mount_cgroup v2
group a b
sysctl -qw kernel.sched_rt_runtime_us=-1
undo+=("sysctl -qw kernel.sched_rt_runtime_us=950000")
smp_null smpcpu
cap b "$DEV" riops=100
check "a spinning realtime task delays no other group" spun
check "ioband's work stays off a CPU that is kept free of unbound work" kept_off
null_end smpcpu
umount_cgroup
leak_point
check "the kernel log has no splats" no_splat
