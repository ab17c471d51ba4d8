# SPDX-License-Identifier: GPL-2.0
"""stress_owner.py CGROUPS DIR SECONDS SEED: dirties pages of files in DIR in many ways.

Each round writes, maps, punches, truncates, reads or syncs a part of one of a few files
that all copies of this program share, from a group in the directory CGROUPS that is
chosen for the round. In the end prints the number of rounds.
"""
import ctypes
import mmap
import os
import random
import sys
import time

FILES = 4
SIZE = 4 << 20
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def write(fd, at, length):
    """Writes with write()."""
    os.pwrite(fd, os.urandom(length), at)


def write_mapped(path, at, length):
    """Writes through a mapping of a file of its own: user-mode Linux complains when pages are
    truncated that another process has mapped."""
    fd = os.open(f'{path}/mapped.{os.getpid()}', os.O_RDWR | os.O_CREAT)
    os.truncate(fd, SIZE)
    with mmap.mmap(fd, SIZE) as area:
        area[at:at + length] = bytes(length)
    os.close(fd)


def punch(fd, at, length):
    """Punches a hole."""
    libc.fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length)


def truncate(fd, at, _length):
    """Makes the file shorter or longer."""
    os.truncate(fd, at)


def read(fd, at, length):
    """Reads."""
    os.pread(fd, length, at)


def sync(fd, _at, _length):
    """Calls fsync() from the present group."""
    os.fdatasync(fd)


def main():
    groups, path, seconds, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    rnd = random.Random(seed)
    ways = [write] * 6 + [None] * 2 + [punch, truncate, read, sync]
    fds = [os.open(f'{path}/{n}', os.O_RDWR | os.O_CREAT) for n in range(FILES)]
    end = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < end:
        try:
            group = rnd.choice(os.listdir(groups) or ['.'])
            with open(f'{groups}/{group}/cgroup.procs', 'w', encoding='ascii') as procs:
                procs.write('0')
        except OSError:     # removed, or a file of the hierarchy itself
            pass
        way, at, length = rnd.choice(ways), rnd.randrange(SIZE - 65536), rnd.randrange(1, 65536)
        if way:
            way(rnd.choice(fds), at, length)
        else:
            write_mapped(path, at, length)
        rounds += 1
    print(rounds)


main()
