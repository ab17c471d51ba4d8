# SPDX-License-Identifier: GPL-2.0
"""smp_owner.py CGROUPS DIR SECONDS SEED: dirty pages of files in DIR in every way there is.

Each round writes, maps, punches, truncates, reads or syncs a part of one of a few files
that all copies of this program share, out of a group that is chosen anew, of those
in the directory CGROUPS. Then says how many rounds there were.
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
    """Through write()."""
    os.pwrite(fd, os.urandom(length), at)


def write_mapped(path, at, length):
    """Through a mapping of a file of our own: user-mode Linux does not get along with
    truncation of what another process has mapped."""
    fd = os.open(f'{path}/mapped.{os.getpid()}', os.O_RDWR | os.O_CREAT)
    os.truncate(fd, SIZE)
    with mmap.mmap(fd, SIZE) as area:
        area[at:at + length] = bytes(length)
    os.close(fd)


def punch(fd, at, length):
    """A hole."""
    libc.fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length)


def truncate(fd, at, _length):
    """Shorter, or longer."""
    os.truncate(fd, at)


def read(fd, at, length):
    """Read back."""
    os.pread(fd, length, at)


def sync(fd, _at, _length):
    """fsync() by whoever it is."""
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
