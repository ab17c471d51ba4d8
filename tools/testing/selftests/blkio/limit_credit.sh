#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# configs: uml-vt
# What tasks pay for before they submit direct I/O: it is paid once, in turns with others, and can neither be saved up
# nor got back later. What passes as a debt is not passed on to tasks that are started, either.
. "$(dirname "$0")/lib/blkio_lib.sh"
# shellcheck source=lib/blkio_timed.sh
. "$HERE/lib/blkio_timed.sh"

# reads of 16 MiB in one call
ONCE='
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
begin = time.monotonic()
assert os.preadv(fd, [mmap.mmap(-1, 16 << 20)], 0) == 16 << 20'

# reads of 64 MiB in one call, again and again
LONG='
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
pages = mmap.mmap(-1, 64 << 20)
open(sys.argv[-1], "w").close()
while True: os.preadv(fd, [pages], 0)'

# prints the reads of 4 KiB that one task does in 10 s
SHORT='
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
pages, n = mmap.mmap(-1, 4096), 0
while time.monotonic() - begin < 10: n += os.preadv(fd, [pages], 0) // 4096
print(n)'

# 20 tasks pay for 256 KiB each and submit nothing; 2 s later each reads 64 KiB. Prints the bytes of the first 100 ms.
SAVE='
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
got, ready = [], threading.Barrier(20)
def save():
    pages = mmap.mmap(-1, 65536)
    assert libc.pread64(fd, ctypes.c_void_p(4096), ctypes.c_size_t(262144), ctypes.c_long(0)) == -1
    ready.wait()
    time.sleep(2)
    os.preadv(fd, [pages], 0)
    got.append(time.monotonic())
tasks = [threading.Thread(target=save) for _ in range(20)]
for task in tasks: task.start()
for task in tasks: task.join()
print(65536 * sum(at < got[0] + 0.1 for at in got))'

# 200 tasks, of which each reads 124 KiB ahead in a thread, which passes no door, starts the next one, and is killed by it
CHAIN='
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
for link in range(200):
    threading.Thread(target=os.posix_fadvise, args=(fd, link << 18, 1 << 18, os.POSIX_FADV_WILLNEED)).start()
    time.sleep(0.001)
    parent = os.getpid()
    if os.fork(): time.sleep(1000)
    if link: os.kill(parent, 9)
open(sys.argv[2], "w").close()'

# siblings: two groups below one limit in I/Os
siblings() {
	local short
	cap p "$DEV" riops=1000
	begun p/a "$LONG" "$DEV"
	short=$(in_group p/b python3 -c "$IMPORTS$SHORT" "$DEV")
	check "a group reads 64 MiB a call, its sibling 4 KiB: half of the I/Os for each" in_range "$short" 4900 5100
	end_loads
}

chain() {
	local begin
	cap g "$DEV" rbps=$MiB riops=max
	begin=$(now_ms)
	in_background g python3 -c "$IMPORTS$CHAIN" "$DEV" "$TMP/chained"
	while [ ! -e "$TMP/chained" ] && [ $(($(now_ms) - begin)) -lt 100000 ]; do sleep 0.1; done
	# 24.2 MiB: the disk takes 255 sectors at a time, which is as much as one call reads ahead.  Of this a second's
	# worth may be owed, a burst is in hand, and the last one is not waited for
	check "200 tasks owe, start the next one and are killed: they get what the limit allows" \
		in_range $(($(now_ms) - begin)) 22000 29000
	end_loads
}

# 60 tasks that are started in another group, each of which reads 124 KiB ahead, and is killed
INTO='
import ctypes, signal
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
CLONE3, INTO_CGROUP = 435, 0x200000000
args = struct.pack("11Q", INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, os.open(sys.argv[2], os.O_RDONLY))
for link in range(60):
    pid = ctypes.CDLL(None).syscall(CLONE3, args, len(args))
    if not pid:
        os.posix_fadvise(fd, link << 18, 1 << 18, os.POSIX_FADV_WILLNEED)
        os._exit(0)
    time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)'

# tighter: the debts of a group count for its sibling, which starts its tasks, also if its own limit is the lower one
tighter() {
	drop_cache
	cap p "$DEV" rbps=$MiB riops=max
	cap p/b "$DEV" rbps=$((900 * KiB))
	timed_in p/a "$INTO" "$DEV" "$CG/p/b"
	# 7.3 MiB, less what one second allows
	check "60 tasks owe in a group with a lower limit, and are killed: their sibling waits before it starts more" \
		in_range "$TOOK_MS" 5500 8500
	cap p "$DEV" rbps=max
	cap p/b "$DEV" rbps=max
}

# 40 threads owe for 124 KiB each; then their process starts another one, and tells how many ms that took
DEEP='
fd = os.open(sys.argv[1], os.O_RDONLY)
ready = threading.Barrier(41)
def owe(i):
    ready.wait()
    os.posix_fadvise(fd, i << 18, 1 << 18, os.POSIX_FADV_WILLNEED)
for i in range(40): threading.Thread(target=owe, args=(i,)).start()
ready.wait()
time.sleep(0.1)
open(sys.argv[-1], "w").close()
began = time.monotonic()
os.fork() or os._exit(0)
open(sys.argv[2], "w").write(str(int((time.monotonic() - began) * 1000)))'

# lifted: a task that starts another one waits for deep debts of its group no longer than for its limits
lifted() {
	drop_cache
	cap g "$DEV" rbps=$((64 * KiB)) riops=max
	begun g "$DEEP" "$DEV" "$TMP/lifted"
	sleep 3
	check "a task that starts another one waits for deep debts" [ ! -e "$TMP/lifted" ]
	cap g "$DEV" rbps=max
	sleep 1
	check "until the limit is lifted" in_range "$(cat "$TMP/lifted" 2>/dev/null || echo none)" 2500 3900
	end_loads
}

plan 7
mount_cgroup v2
group g p p/a p/b
null_dev nb0 size=400
cap g "$DEV" riops=1000
# the disk takes 255 sectors at a time
timed_in g "$ONCE" "$DEV"
check "a limit in I/Os: 16 MiB in one call are paid for once" in_range "$TOOK_MS" 120 150
siblings
cap g "$DEV" rbps=$MiB riops=max
check "20 tasks pay and do not submit: later they get a burst and what is due" \
	in_range "$(in_group g python3 -c "$IMPORTS$SAVE" "$DEV")" 65536 196608
chain
tighter
lifted
