# SPDX-License-Identifier: GPL-2.0
"""The routes of attacks that write: each is a function of an Asker and named as in attack_plan.ROUTES.

A route asks for I/O until asker.more() returns False. It only does what an unprivileged task may do.
"""
import fcntl
import mmap
import os
import struct
import threading
import time

from attack_plan import FILE_BYTES, KIB, MIB
from attack_task import PAGE, call, is_expected

BLKDISCARD = 0x1277
FALLOC_PUNCH = 3            # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
RANGE_WRITE, RANGE_WAIT = 2, 7


def in_threads(asker, count, work):
    """Runs work(number) in threads; the first error of one is raised here."""
    errors = []

    def guarded(number):
        try:
            work(number)
        except OSError as problem:
            errors.append(problem)
    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return asker


def buffered(then, flags=0, rwf=0):
    """Returns a route that writes to the page cache and then calls then(asker, fd, offset, size)."""
    def route(asker):
        fd = asker.open(flags)
        while asker.more():
            at, size = asker.put(fd, flags=rwf)
            if then:
                then(asker, fd, asker.base() + at, size)
            asker.pause()
    return route


def only_help(action):
    """Returns a route for the second task of a pair that only calls action(asker, fd)."""
    def route(asker):
        time.sleep(0.05)
        fd = asker.open()
        while time.monotonic() < asker.end:
            action(asker, fd)
            time.sleep(0.02)
        asker.spoil()
    return route


def pair(attack, helper):
    """Returns the route of a pair, in which each task runs its own function."""
    return lambda asker: (attack if asker.task.role == 'attack' else helper)(asker)


def direct(sizes, depth, ops='w'):
    """Returns a route of direct I/O of random sizes (bytes) from up to depth threads."""
    def route(asker):
        fd = asker.open(os.O_DIRECT)

        def work(_):
            while asker.more():
                if ops == 'rw' and asker.rng.random() < 0.5:
                    size = min(asker.rng.choice(sizes), MIB)
                    os.preadv(fd, [mmap.mmap(-1, size)], asker.base())
                    asker.asked += size
                else:
                    asker.put(fd, asker.rng.choice(sizes))
        in_threads(asker, asker.rng.randint(1, depth), work)
    return route


def msync(asker):
    """Stores to a shared mapping, then msync() of it."""
    mapped(asker, lambda memory, at, size: memory.flush(at, size))


def mapped(asker, then=None):
    """Stores to a shared mapping."""
    fd = asker.open()
    if not asker.raw:
        os.ftruncate(fd, FILE_BYTES)
    with mmap.mmap(fd, FILE_BYTES, offset=asker.base()) as memory:
        while asker.more():
            at, size = asker.next()
            for page in range(at, at + size, PAGE):
                memory[page:page + PAGE] = asker.data(page, PAGE)
            asker.wrote(at, size)
            if then:
                then(memory, at, size)
            asker.pause()


def nowait_write(asker):
    """Writes with RWF_NOWAIT; a write that would wait is repeated without the flag, then synced."""
    fd = asker.open()
    while asker.more():
        try:
            asker.put(fd, flags=os.RWF_NOWAIT)
        except OSError as problem:
            if not is_expected(problem):
                raise
            asker.put(fd)
        if asker.rounds % 4 == 0:
            os.fdatasync(fd)
        asker.pause()


def uring(mode):
    """Returns a route that runs attack_uring, as Python has no io_uring."""
    def route(asker):
        asker.spoil()
        left = max(asker.end - time.monotonic(), 0.1)
        os.execvp('attack_uring', ['attack_uring', mode, asker.path(), str(asker.base()), str(FILE_BYTES), str(asker.task.chunk),
                                   str(asker.task.total), str(int(left * 1000))])
    return route


def truncate(asker):
    """Truncates dirty pages, before or after they are written."""
    fd = asker.open()
    asker.spoil()
    while asker.more():
        asker.put(fd)
        if asker.rounds % 3 == 0:
            call('sync_file_range', fd, 0, 0, RANGE_WRITE)
        if asker.rounds % 4 == 0:
            os.ftruncate(fd, asker.rng.randrange(FILE_BYTES))
        if asker.rounds % 8 == 0:
            os.fsync(fd)
        asker.pause()


def punch(asker):
    """Punches holes into dirty and written parts of the file, and allocates these again."""
    fd = asker.open()
    asker.spoil()
    while asker.more():
        at, size = asker.put(fd)
        if asker.rounds % 2:
            call('sync_file_range', fd, at, size, RANGE_WRITE)
        if asker.rounds % 3 == 0:
            call('fallocate', fd, FALLOC_PUNCH, asker.rng.randrange(FILE_BYTES), size)
            call('fallocate', fd, 0, at, size)
        if asker.rounds % 8 == 0:
            os.fdatasync(fd)
        asker.pause()


def discard(asker):
    """Discards parts of the disk with BLKDISCARD."""
    fd = asker.open()
    asker.spoil()
    while asker.more():
        at, size = asker.next()
        try:
            fcntl.ioctl(fd, BLKDISCARD, struct.pack('QQ', asker.base() + at, size))
        except OSError as problem:
            if not is_expected(problem):    # a loop device may not support discards
                raise
            return
        asker.asked += size


def metadata(asker):
    """Makes, syncs, renames and removes many small files."""
    asker.spoil()
    while asker.more():
        name = f'{asker.where}/m{asker.task.file}-{asker.rounds % 32}'
        fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        os.write(fd, asker.view[:asker.rng.choice((16, PAGE, 4 * PAGE))])
        if asker.rounds % 2:
            os.fsync(fd)
        os.close(fd)
        os.rename(name, name + 'r')
        if asker.rounds % 3 == 0:
            os.unlink(name + 'r')
        asker.asked += 4 * PAGE
        time.sleep(0.001)


def range_sync(asker, fd, at, size):
    """Calls sync_file_range(), which waits at times."""
    call('sync_file_range', fd, at, size, RANGE_WAIT if asker.rounds % 4 == 0 else RANGE_WRITE)


def syncfs(_, fd, *__):
    """Calls syncfs()."""
    call('syncfs', fd)


def sync_some(asker, *_):
    """Calls sync() after a few MiB, so that the flusher has work before the pages are written for another reason."""
    if asker.rounds % 4 == 0:
        os.sync()


def fsync_some(asker, fd, *_):
    """Calls fsync() at times."""
    if asker.rounds % 4 == 0:
        os.fsync(fd)


SMALL, MIXED = (4 * KIB,), (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB)
WRITES = {
    'sync': buffered(lambda *_: os.sync()),
    'sync_rounds': buffered(sync_some),
    'syncfs': buffered(syncfs),
    'fsync': buffered(lambda _, fd, *__: os.fsync(fd)),
    'fdatasync': buffered(lambda _, fd, *__: os.fdatasync(fd)),
    'sync_file_range': buffered(range_sync),
    'msync': msync,
    'osync': buffered(None, os.O_SYNC),
    'rwf_dsync': buffered(None, 0, os.RWF_DSYNC),
    'mmap': mapped,
    'nowait_write': nowait_write,
    'fsync_by_sibling': pair(buffered(None), only_help(lambda _, fd: os.fsync(fd))),
    'fsync_by_outsider': pair(buffered(None), only_help(lambda _, fd: os.fsync(fd))),
    'sync_by_outsider': pair(buffered(None), only_help(lambda *_: os.sync())),
    'range_by_sibling': pair(buffered(None), only_help(lambda _, fd: call('sync_file_range', fd, 0, 0, RANGE_WAIT))),
    'dio_small': direct(SMALL, 32),
    'dio_huge': direct((MIB, 2 * MIB, 4 * MIB), 4),
    'dio_mixed': direct(MIXED, 16, 'rw'),
    'uring_direct': uring('direct'),
    'uring_fsync': uring('fsync'),
    'uring_nowait': uring('buffered'),
    'truncate': truncate,
    'punch': punch,
    'discard': discard,
    'metadata': metadata,
    'flip_buffered': buffered(fsync_some),
    'flip_direct': direct(MIXED, 8),
    'removal': buffered(range_sync),
}
