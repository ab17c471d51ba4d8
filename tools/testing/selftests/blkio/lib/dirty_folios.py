#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Dirties parts of large folios, for dirty_folios.sh.

usage: dirty_folios.py large FILE             how many 4 KiB pages of it are in large folios
       dirty_folios.py parts FILE FROM STEP   write() of 4 KiB at FROM and each STEP bytes after it
       dirty_folios.py stores FILE STEP       the same with 1 byte, and one store through a mapping beside each
       dirty_folios.py synced FILE STEP PROCS as many stores, and fsync() by a child in the group whose tasks are in PROCS
       dirty_folios.py resize FILE            its length to 4 KiB less 1 byte, then to 1 MiB more than it was
"""
import mmap
import os
import struct
import sys
from collections.abc import Callable

PAGE = os.sysconf('SC_PAGE_SIZE')
# see Documentation/admin-guide/mm/pagemap.rst
PFN_MASK = (1 << 55) - 1
KPF_COMPOUND_HEAD, KPF_COMPOUND_TAIL = 15, 16


def mapped(fd):
    """A shared mapping of all of a file."""
    return mmap.mmap(fd, os.fstat(fd).st_size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


def address_of(area):
    """Where a mapping is, as /proc/self/maps says."""
    with open('/proc/self/maps', encoding='ascii') as maps:
        for line in maps:
            if os.path.basename(line.split()[-1]) == os.path.basename(sys.argv[2]):
                return int(line.split('-')[0], 16)
    raise LookupError(f'no mapping of {len(area)} bytes')


def large(fd):
    """Prints the number of pages of a file that are parts of large folios in the page cache."""
    area = mapped(fd)
    pages = len(area) // PAGE
    for page in range(pages):
        area[page * PAGE]  # pylint: disable=pointless-statement
    with open('/proc/self/pagemap', 'rb') as pagemap:
        pagemap.seek(address_of(area) // PAGE * 8)
        entries = struct.unpack(f'{pages}Q', pagemap.read(pages * 8))
    found = 0
    with open('/proc/kpageflags', 'rb', buffering=0) as kpageflags:
        for entry in entries:
            kpageflags.seek((entry & PFN_MASK) * 8)
            flags, = struct.unpack('Q', kpageflags.read(8))
            found += bool(flags & (1 << KPF_COMPOUND_HEAD | 1 << KPF_COMPOUND_TAIL))
    print(found)


def parts(fd, begin, step):
    """Writes one page at begin and every step bytes after it."""
    for offset in range(begin, os.fstat(fd).st_size, step):
        os.pwrite(fd, b'p' * PAGE, offset)


def stores(fd, step):
    """Writes one byte every step bytes and stores one byte half a step later."""
    area = mapped(fd)
    for offset in range(0, len(area), step):
        os.pwrite(fd, b'w', offset)
        area[offset + step // 2] = 1


def synced(fd, step, procs):
    """Stores one byte every step bytes; a child joins a group and has the file written while it is mapped."""
    area = mapped(fd)
    for offset in range(0, len(area), step):
        area[offset] = 1
    child = os.fork()
    if not child:
        with open(procs, 'w', encoding='ascii') as file:
            file.write('0')
        os.fsync(fd)
        os._exit(0)
    os.waitpid(child, 0)


def resize(fd):
    """Cuts a file within its first page, then lengthens it by 1 MiB."""
    length = os.fstat(fd).st_size
    os.ftruncate(fd, PAGE - 1)
    os.ftruncate(fd, length + (1 << 20))


def main():
    fd = os.open(sys.argv[2], os.O_RDWR)
    actions: dict[str, Callable] = {
        'large': large, 'parts': parts, 'stores': stores, 'synced': synced, 'resize': resize}
    actions[sys.argv[1]](fd, *(int(word) if word.isdigit() else word for word in sys.argv[3:]))


main()
