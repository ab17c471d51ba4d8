#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes files in a folder at random, by write(), direct I/O and mmap(), and checks what is in them.

Data that is read meanwhile is compared. SIGTERM ends the program: then all files are synced, dropped from the page
cache and compared. Prints a line of key=value; exits with 1 if data was wrong, with 3 after an error of a system
call, which it names.
"""
import argparse
import errno
import mmap
import os
import random
import signal
import struct
import sys
import time

BLOCK = 4096
FILES = 4
MOST = 32               # blocks of an operation at most


class Files:
    """The files, and the generation of each of their blocks; 0 is a hole."""

    def __init__(self, args):
        self.args, self.rng = args, random.Random(args.seed)
        self.blocks = args.size // FILES // BLOCK
        self.known = [[] for _ in range(FILES)]
        self.names = [f'{args.folder}/{args.seed}-{number}' for number in range(FILES)]
        self.generation = self.ops = self.bytes = self.bad = 0
        self.buffer = mmap.mmap(-1, MOST * BLOCK)
        for name in self.names:
            os.close(os.open(name, os.O_CREAT | os.O_RDWR))

    def content(self, number, block, generation):
        """Returns the bytes that must be in a block."""
        if not generation:
            return bytes(BLOCK)
        return struct.pack('<IIII', self.args.seed, number, block, generation) * (BLOCK // 16)

    def some(self, number):
        """Returns (first block, number of blocks) of a random part of the file, or None."""
        if not self.known[number]:
            return None
        first = self.rng.randrange(len(self.known[number]))
        return first, min(self.rng.randint(1, MOST), len(self.known[number]) - first)

    def write(self, number, flags=0):
        """Writes some blocks, buffered or direct."""
        first, count = self.rng.randrange(self.blocks), self.rng.randint(1, MOST)
        count = min(count, self.blocks - first)
        self.generation += 1
        self.buffer[:count * BLOCK] = b''.join(self.content(number, first + i, self.generation) for i in range(count))
        fd = os.open(self.names[number], os.O_RDWR | flags)
        try:
            if os.pwrite(fd, memoryview(self.buffer)[:count * BLOCK], first * BLOCK) != count * BLOCK:
                raise OSError(errno.EIO, 'short write', self.names[number])
        finally:
            os.close(fd)
        known = self.known[number]
        known += [0] * (first + count - len(known))
        known[first:first + count] = [self.generation] * count
        self.bytes += count * BLOCK

    def direct(self, number):
        """Writes some blocks by direct I/O."""
        self.write(number, os.O_DIRECT)

    def map(self, number):
        """Writes some blocks through a mapping."""
        part = self.some(number)
        if not part:
            return
        self.generation += 1
        fd = os.open(self.names[number], os.O_RDWR)
        try:
            with mmap.mmap(fd, part[1] * BLOCK, offset=part[0] * BLOCK) as area:
                for i in range(part[1]):
                    area[i * BLOCK:(i + 1) * BLOCK] = self.content(number, part[0] + i, self.generation)
                    self.known[number][part[0] + i] = self.generation
                if self.rng.random() < 0.3:
                    area.flush()
        finally:
            os.close(fd)
        self.bytes += part[1] * BLOCK

    def read(self, number, part=None):
        """Reads and compares some blocks; from the disk if their pages can be dropped."""
        part = part or self.some(number)
        if not part:
            return
        fd = os.open(self.names[number], os.O_RDONLY)
        try:
            os.posix_fadvise(fd, part[0] * BLOCK, part[1] * BLOCK, os.POSIX_FADV_DONTNEED)
            data = os.pread(fd, part[1] * BLOCK, part[0] * BLOCK)
        finally:
            os.close(fd)
        for i in range(part[1]):
            want = self.content(number, part[0] + i, self.known[number][part[0] + i])
            if data[i * BLOCK:(i + 1) * BLOCK] != want:
                self.bad += 1
                if self.bad < 5:
                    print(f'{self.names[number]} block {part[0] + i}: expected {want[:16].hex()}, '
                          f'found {data[i * BLOCK:i * BLOCK + 16].hex()}')

    def sync(self, number):
        """Calls fsync() or fdatasync()."""
        fd = os.open(self.names[number], os.O_RDWR)
        try:
            self.rng.choice((os.fsync, os.fdatasync))(fd)
        finally:
            os.close(fd)

    def cut(self, number):
        """Truncates the file."""
        keep = self.rng.randint(0, len(self.known[number]))
        os.truncate(self.names[number], keep * BLOCK)
        del self.known[number][keep:]

    def replace(self, number):
        """Removes the file and makes a new one."""
        os.unlink(self.names[number])
        os.close(os.open(self.names[number], os.O_CREAT | os.O_RDWR))
        self.known[number] = []

    def rename(self, number):
        """Renames the file, and back."""
        os.rename(self.names[number], self.names[number] + '.x')
        os.rename(self.names[number] + '.x', self.names[number])

    def work(self, going):
        """Makes operations until going() returns False."""
        kinds = [self.write] * 8 + [self.direct] * 2 + [self.map] * 2 + [self.read] * 5 + [self.sync] * 3 + \
                [self.cut, self.replace, self.rename]
        while going():
            self.rng.choice(kinds)(self.rng.randrange(FILES))
            self.ops += 1
            time.sleep(self.rng.uniform(0, 2 / self.args.rate))
        for number, known in enumerate(self.known):
            self.sync(number)
            for first in range(0, len(known), MOST):
                self.read(number, (first, min(MOST, len(known) - first)))


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--rate', type=float, default=10, help='operations a second')
    parser.add_argument('--size', type=int, default=16 << 20, help='bytes in all files')
    parser.add_argument('folder')
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    args = parser.parse_args()
    files, error = Files(args), 0
    try:
        # this tells torture_loads.py that the load has begun
        os.open(args.folder, os.O_RDONLY)
        files.work(lambda: not stop)
    except OSError as caught:
        error = caught.errno or errno.EIO
        print(f'{caught.filename}: {caught.strerror}')
    print(f'submitted={files.ops} completed={files.ops} bytes={files.bytes} bad={files.bad} errno={error}')
    return 3 if error else files.bad > 0


if __name__ == '__main__':
    sys.exit(main())
