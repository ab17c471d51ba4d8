# SPDX-License-Identifier: GPL-2.0
"""A task of an attack: a process in its group, without privileges, that runs its route until its time is up.

The task leaves a JSON file: asked (bytes), pages (that it wrote and did not remove), groups (cgroup ids that it made),
alone_ns and during_ns (latencies), error. Offsets and sizes are bytes.
"""
import ctypes
import errno
import json
import mmap
import os
import random
import struct
import sys
import time
import traceback

from attack_plan import FILE_BYTES, MIB

PAGE = 4096
NOBODY = 65534
ROUNDS = 3000           # rounds of a task at most, so that a task ends even if it is never throttled
PATTERN = b''.join(struct.pack('<II', page, 0xb10cda7a) * (PAGE // 8) for page in range(256))
BUFFER = 4 * MIB        # the largest I/O
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    """Calls a function of libc that Python lacks; returns its result, or raises OSError."""
    result = getattr(libc, name)(*(ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result


class Asker:
    """The state of a task that routes use. where: a directory, or the node of a raw disk, whose parts are the files."""

    def __init__(self, task, where, group_path, seconds, seed):
        self.task, self.where, self.group_path = task, where, group_path
        self.raw = not os.path.isdir(where)
        self.end = time.monotonic() + seconds
        self.rng = random.Random(f'{seed} {task.route} {task.role} {task.file}')
        self.asked = self.rounds = 0
        self.pages: set | None = set()      # None after the route has overwritten its pages with other data
        self.groups, self.alone_ns, self.during_ns = [], [], []
        self.memory = mmap.mmap(-1, BUFFER)
        for at in range(0, BUFFER, len(PATTERN)):
            self.memory[at:at + len(PATTERN)] = PATTERN
        self.view = memoryview(self.memory)

    def path(self, file=None):
        """Returns the path of a file, its own by default."""
        return self.where if self.raw else f'{self.where}/f{self.task.file if file is None else file}'

    def base(self, file=None):
        """Returns the offset of the first byte of a file."""
        return FILE_BYTES * (1 + (self.task.file if file is None else file)) if self.raw else 0

    def open(self, flags=0, file=None, mode=os.O_RDWR):
        """Returns a descriptor of a file, which is made if it does not exist."""
        return os.open(self.path(file), mode | flags | (0 if self.raw else os.O_CREAT), 0o666)

    def more(self):
        """Returns whether to go on."""
        self.rounds += 1
        return time.monotonic() < self.end and self.asked < self.task.total and self.rounds < ROUNDS

    def pause(self):
        """Sleeps between rounds; without it a loop in the page cache would take no time."""
        time.sleep(self.task.pause_s)

    def next(self, size=None):
        """Returns (offset of the next I/O, its size): the offsets advance, and begin again at the end of the file."""
        size = size or self.task.chunk
        at = self.asked % FILE_BYTES // PAGE * PAGE
        return at, min(size, FILE_BYTES - at)

    def data(self, at, size):
        """Returns the data for this offset of a file: the pattern repeats every MiB."""
        start = at % len(PATTERN)
        return self.view[start:start + size]

    def wrote(self, at, size):
        """Counts a write; its pages must be on the disk in the end."""
        self.asked += size
        if self.pages is not None:
            self.pages.update(range(at // PAGE, (at + size) // PAGE))

    def put(self, fd, size=None, flags=0, file=None):
        """Writes at the next place; returns (offset, size)."""
        at, size = self.next(size)
        size = min(size, BUFFER - at % len(PATTERN))
        done = os.pwritev(fd, [self.data(at, size)], self.base(file) + at, flags)
        self.wrote(at, done // PAGE * PAGE)
        return at, done

    def spoil(self):
        """Notes that the file will not hold the pattern in the end."""
        self.pages = None

    def enter(self, group, thread=False):
        """Moves this process, or this thread, to a group."""
        names = ('cgroup.threads', 'tasks') if thread else ('cgroup.procs',)
        for name in names:
            path = f'{self.group_path}/{group}/{name}'
            if os.path.exists(path):
                with open(path, 'w', encoding='ascii') as file:
                    file.write('0')
                return


def drop_privileges():
    """Drops the rights of root."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def start(routes, task, where, hierarchy, seconds, seed, result):
    """Forks the task; returns its pid. routes: {name: function of an Asker}."""
    pid = os.fork()
    if pid:
        return pid
    status, error, asker = 1, '', None
    try:
        with open(f'{hierarchy.path}/{task.group}/cgroup.procs', 'w', encoding='ascii') as file:
            file.write('0')
        result_fd = os.open(result, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        drop_privileges()
        asker = Asker(task, where, hierarchy.path, seconds, seed)
        routes[task.route](asker)
        status = 0
    except OSError as problem:
        error = f'{type(problem).__name__}: {problem}'
        frame = traceback.extract_tb(problem.__traceback__)[-1]
        error += f' ({os.path.basename(frame.filename)}:{frame.lineno})'
    except BaseException:   # pylint: disable=broad-exception-caught # the report is all that leaves this process
        error = traceback.format_exc()
    finally:
        if asker:
            pages = sorted(asker.pages) if asker.pages and not status else []
            os.write(result_fd, json.dumps({'asked': asker.asked, 'pages': pages, 'groups': asker.groups, 'error': error,
                                            'alone_ns': asker.alone_ns, 'during_ns': asker.during_ns}).encode())
        else:
            print(f'# {task.route}: {error}', file=sys.stderr)
        os._exit(status)
    return 0


def verify(where, file, raw, pages):
    """Returns a line if a page of a file does not hold what was written there, else None."""
    base = FILE_BYTES * (1 + file) if raw else 0
    with open(where if raw else f'{where}/f{file}', 'rb', buffering=0) as source:
        for page in pages:
            start = page % 256 * PAGE
            if os.pread(source.fileno(), PAGE, base + page * PAGE) != PATTERN[start:start + PAGE]:
                return f'file {file}: page {page} does not hold what was written'
    return None


def reading(asker, fd, base, samples, pause_s, count):
    """Makes small direct reads; appends their latencies in ns to samples."""
    with mmap.mmap(-1, PAGE) as page:
        for i in range(count):
            begin = time.monotonic_ns()
            os.preadv(fd, [page], base + i % 64 * PAGE)
            samples.append(time.monotonic_ns() - begin)
            time.sleep(pause_s)
            if pause_s and time.monotonic() > asker.end:
                return


def bystander_reads(asker):
    """Reads 4 KiB at a time by direct I/O, from a group without limits."""
    fd = asker.open(os.O_DIRECT, mode=os.O_RDONLY)
    reading(asker, fd, asker.base(), asker.during_ns, 0.01, 10**6)


def bystander_syncs(asker):
    """Writes 4 KiB and waits until they are on the disk, from a group without limits."""
    flags = os.O_DIRECT | os.O_DSYNC if asker.raw else 0
    fd = asker.open(flags)
    while time.monotonic() < asker.end:
        begin = time.monotonic_ns()
        os.pwritev(fd, [asker.data(0, PAGE)], asker.base() + asker.rounds % 64 * PAGE)
        if not asker.raw:
            os.fsync(fd)
        asker.during_ns.append(time.monotonic_ns() - begin)
        asker.asked += PAGE
        asker.rounds += 1
        time.sleep(0.05)
    asker.spoil()


def is_expected(problem):
    """Returns whether an OSError is one that routes may get."""
    return problem.errno in (errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.EOPNOTSUPP, errno.EINVAL)


assert BUFFER % len(PATTERN) == 0 and len(PATTERN) == 256 * PAGE
