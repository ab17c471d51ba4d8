# SPDX-License-Identifier: GPL-2.0
"""The routes of attacks that read, move between groups, make groups, or make others pay; see attack_routes.py."""
import mmap
import os
import threading
import time

from attack_plan import FILE_BYTES, KIB, MIB
from attack_routes import buffered, in_threads, pair, only_help
from attack_task import PAGE, call, is_expected

ADVISE_SIZE = 2 * MIB       # bytes of the file on the other disk
OTHER = 'other'             # the variable of the environment with the path of that disk
FAR = 'wbps=17179869184'    # a limit that a delegatee sets for itself


def read_direct(asker):
    """Reads by direct I/O from several threads."""
    fd = asker.open(os.O_DIRECT, mode=os.O_RDONLY)

    def work(_):
        with mmap.mmap(-1, asker.task.chunk) as buffer:
            while asker.more():
                at, _size = asker.next()
                asker.asked += os.preadv(fd, [buffer], asker.base() + at) or asker.task.chunk
    in_threads(asker, asker.rng.randint(1, 16), work)


def forget(asker, fd):
    """Drops clean pages of the file from the page cache, so that a read goes to the disk."""
    os.posix_fadvise(fd, asker.base(), FILE_BYTES, os.POSIX_FADV_DONTNEED)


def read_cached(ahead):
    """Returns a route of buffered reads; ahead(asker, fd, offset, size) asks for more than is read."""
    def route(asker):
        fd = asker.open(mode=os.O_RDONLY)
        forget(asker, fd)
        while asker.more():
            at, size = asker.next()
            if not at:
                forget(asker, fd)
            if ahead:
                ahead(asker, fd, at, size)
            asker.asked += len(os.pread(fd, size, asker.base() + at)) or size
    return route


def advise(asker, fd, at, _):
    """Calls readahead(), POSIX_FADV_WILLNEED and MADV_WILLNEED in turn, for the MiB beyond the read."""
    begin = asker.base() + min(at, FILE_BYTES - MIB)
    how = asker.rounds % 3
    if how == 0:
        call('readahead', fd, begin, MIB)
    elif how == 1:
        os.posix_fadvise(fd, begin, MIB, os.POSIX_FADV_WILLNEED)
    else:
        with mmap.mmap(fd, MIB, prot=mmap.PROT_READ, offset=begin // MIB * MIB) as memory:
            memory.madvise(mmap.MADV_WILLNEED)


def read_nowait(asker):
    """Reads with RWF_NOWAIT, direct and from the page cache; a read that would wait is repeated without the flag."""
    fd = asker.open(os.O_DIRECT if asker.rng.random() < 0.5 else 0, mode=os.O_RDONLY)
    with mmap.mmap(-1, asker.task.chunk) as buffer:
        while asker.more():
            at, _ = asker.next()
            if not at:
                forget(asker, fd)
            try:
                done = os.preadv(fd, [buffer], asker.base() + at, os.RWF_NOWAIT)
            except OSError as problem:
                if not is_expected(problem):
                    raise
                done = os.preadv(fd, [buffer], asker.base() + at)
            asker.asked += done or asker.task.chunk


def move(flags, thread=False):
    """Returns a route in which the task, or each of its threads, changes its group before each write."""
    def route(asker):
        fd = asker.open(flags)
        groups = [asker.task.group, asker.task.other]
        if thread and not os.path.exists(f'{asker.group_path}/{groups[0]}/tasks'):
            groups = threaded(asker)

        def work(number):
            while asker.more():
                asker.enter(groups[(asker.rounds + number) % 2], thread)
                asker.put(fd, min(asker.task.chunk, MIB))
                if not flags:
                    if asker.rounds % 3 == 0:
                        os.fsync(fd)
                    asker.pause()
        in_threads(asker, 4 if thread else 1, work)
    return route


def threaded(asker):
    """Makes two threaded groups below the task's own: on v2 threads can only move between such groups."""
    names = [f'{asker.task.group}/t{number}' for number in range(2)]
    for name in names:
        path = f'{asker.group_path}/{name}'
        os.mkdir(path)
        asker.groups.append(os.stat(path).st_ino)
        with open(f'{path}/cgroup.type', 'w', encoding='ascii') as file:
            file.write('threaded')
    return names


def nested(asker):
    """Makes groups in a delegated group, sets limits there, writes from these groups and removes them."""
    top = f'{asker.group_path}/{asker.task.group}'
    dev = os.environ['ATTACK_DEV']
    fd = asker.open()
    level = 0
    while asker.more():
        name = f'{asker.task.group}/n{level}'
        os.mkdir(f'{asker.group_path}/{name}')
        asker.groups.append(os.stat(f'{asker.group_path}/{name}').st_ino)
        asker.enter(name)
        if level:
            os.rmdir(f'{top}/n{level - 1}')
        with open(f'{top}/cgroup.subtree_control', 'w', encoding='ascii') as file:
            file.write('+io +memory')
        if level % 2:
            with open(f'{asker.group_path}/{name}/io.max', 'w', encoding='ascii') as file:
                file.write(f'{dev} {FAR}')
        for _ in range(8):
            if asker.more():
                asker.put(fd)
                if asker.rounds % 2:
                    os.sync()
                asker.pause()
        level += 1


def frame(asker):
    """Writes to a file that the victim has made, and syncs it; measures how long a write of the victim waits."""
    fd = asker.open()
    if asker.task.role == 'attack':
        asker.spoil()
        time.sleep(0.3)
        while asker.more():
            asker.put(fd)
            if asker.rounds % 4 == 0:
                os.fsync(fd)
            asker.pause()
        return
    asker.spoil()
    os.pwrite(fd, asker.view[:PAGE], asker.base())
    own = os.open(asker.path() + '-own', os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o666) if not asker.raw else asker.open(os.O_DIRECT)
    at = 0 if not asker.raw else asker.base() + FILE_BYTES - PAGE
    while time.monotonic() < asker.end:
        begin = time.monotonic_ns()
        os.pwritev(own, [asker.view[:PAGE]], at)
        asker.during_ns.append(time.monotonic_ns() - begin)
        asker.asked += PAGE
        time.sleep(0.25)


def other_disk(asker):
    """Reads from another disk, which has no limits, while the group has a debt for writes."""
    fd = asker.open()
    other = os.open(os.environ['ATTACK_OTHER'], os.O_RDONLY)

    def read_all(samples):
        os.posix_fadvise(other, 0, ADVISE_SIZE, os.POSIX_FADV_DONTNEED)
        begin = time.monotonic_ns()
        for at in range(0, ADVISE_SIZE, 64 * KIB):
            os.pread(other, 64 * KIB, at)
        samples.append(time.monotonic_ns() - begin)

    def write():
        begun.wait()
        buffered(None)(asker)

    # who starts others waits for deep debts of the group, also for those of its other tasks
    begun = threading.Event()
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    for _ in range(3):
        read_all(asker.alone_ns)
    begun.set()
    time.sleep(0.5)
    while time.monotonic() < asker.end:
        read_all(asker.during_ns)
        time.sleep(0.1)
    writer.join()
    os.close(fd)


MORE = {
    'read_direct': read_direct,
    'read_ahead': read_cached(None),
    'read_advise': read_cached(advise),
    'read_nowait': read_nowait,
    'move_direct': move(os.O_DIRECT),
    'move_buffered': move(0),
    'threads': move(0, thread=True),
    'nested': nested,
    'frame': frame,
    'other_disk': pair(other_disk, only_help(lambda _, fd: os.fsync(fd))),
}
