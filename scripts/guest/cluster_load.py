#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes blocks to a disk that another machine reads, and notes each that is written; usage:

    cluster_load.py write DISK LOG     writes until it is killed
    cluster_load.py verify DISK LOG    says whether the disk has what LOG says is written

A block is 64 KiB in the second half of the first 64 MiB, at random; it has the number of its write, 8 bytes, again and
again. LOG has a line "BLOCK NUMBER" for each write that has ended.
"""
import mmap
import os
import random
import struct
import subprocess
import sys

BLOCK = 65536
BLOCKS = range(512, 900)


def pattern(number):
    """Returns the contents of a block that write `number` wrote."""
    return struct.pack('<Q', number) * (BLOCK // 8)


def write(disk, log):
    """Writes block after block; notes each before the next one begins."""
    buffer = mmap.mmap(-1, BLOCK)   # aligned, as direct I/O wants it
    fd = os.open(disk, os.O_RDWR | os.O_DIRECT)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    number = 0
    while True:
        number += 1
        block = random.choice(BLOCKS)
        buffer[:] = pattern(number)
        os.pwrite(fd, buffer, block * BLOCK)
        os.write(out, b'%d %d\n' % (block, number))


def verify(disk, log):
    """Returns 0 if each block has its last noted write or the one that was not noted, in whole."""
    last, count = {}, 0
    with open(log, encoding='ascii') as lines:
        for line in lines:
            block, number = map(int, line.split())
            last[block] = number
            count = max(count, number)
    fd = os.open(disk, os.O_RDONLY)
    wrong = [block for block, number in last.items()
             if os.pread(fd, BLOCK, block * BLOCK) not in (pattern(number), pattern(count + 1))]
    print(f'{count} writes, {len(last)} blocks, {len(wrong)} wrong')
    return 1 if wrong or not last else 0


if __name__ == '__main__':
    GUARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'guard.sh')
    sys.exit(subprocess.run(['bash', '-c', '. "$1"', sys.argv[0], GUARD], check=False).returncode or
             {'write': write, 'verify': verify}[sys.argv[1]](*sys.argv[2:]))
