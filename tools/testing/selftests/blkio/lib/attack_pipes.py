# SPDX-License-Identifier: GPL-2.0
"""The routes of attacks that give pages to a file through pipes, or from another file; see attack_routes.py."""
import ctypes
import fcntl
import os
import struct
import time

from attack_plan import KIB, MIB
from attack_task import BUFFER, PAGE, call

F_SETPIPE_SZ = 1031


def sources(asker, flags, make):
    """Fills a pipe by make(write end, offset, size) and splices it to the file, in a loop."""
    fd = asker.open(flags)
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, MIB)
    while asker.more():
        at, size = asker.next(min(asker.task.chunk, 64 * KIB))
        got = make(writer, at, size)
        moved = 0
        while moved < got:
            place = asker.base() + at + moved
            moved += os.splice(reader, fd, got - moved, offset_dst=place)  # type: ignore[attr-defined]
        asker.wrote(at, moved)
        if not flags:
            os.fdatasync(fd)
            asker.pause()


def source_file(asker):
    """Returns a file with the pattern that is clean in the page cache (in memory, so that it costs no I/O)."""
    fd = os.memfd_create('source')
    os.write(fd, asker.view)
    return fd


def splice(flags):
    """Returns a route that splices pages of a file through a pipe to another file."""
    def route(asker):
        source = source_file(asker)

        def make(writer, at, size):
            return os.splice(source, writer, size, offset_src=at % MIB)  # type: ignore[attr-defined]
        sources(asker, flags, make)
    return route


def vmsplice(flags):
    """Returns a route that splices pages of the task's own memory to a file."""
    def route(asker):
        def make(writer, at, size):
            vector = struct.pack('PP', call_address(asker, at % MIB), size)
            return call('vmsplice', writer, vector, 1, 0)
        sources(asker, flags, make)
    return route


def call_address(asker, at):
    """Returns the address of byte `at` of the pattern."""
    return ctypes.addressof(ctypes.c_char.from_buffer(asker.memory, at))


def tee(asker):
    """Writes the same pages of a pipe to two places."""
    source = source_file(asker)
    reader, writer = os.pipe()

    def make(target, at, size):
        got = os.splice(source, writer, size, offset_src=at % MIB)  # type: ignore[attr-defined]
        copied = call('tee', reader, target, got, 0)
        os.read(reader, got)
        return copied
    sources(asker, 0, make)


def splice_awaited(asker):
    """Splices pages that are under writeback for their dirtier to a file for direct I/O."""
    helper = asker.task.role == 'help'
    own = asker.open()
    if helper:
        os.pwrite(own, asker.view[:2 * MIB], 0)
        os.fdatasync(own)
        asker.spoil()
        return
    asker.spoil()
    time.sleep(1)
    target = os.open(asker.path() + '-target', os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o666)
    reader, writer = os.pipe()
    while asker.more():
        at = asker.asked % (2 * MIB)
        got = os.splice(own, writer, PAGE, offset_src=at)  # type: ignore[attr-defined]
        moved = 0
        while moved < got:
            moved += os.splice(reader, target, got - moved, offset_dst=at + moved)  # type: ignore[attr-defined]
        asker.wrote(at, got)


def sendfile(flags):
    """Returns a route of sendfile() from memory to a file."""
    def route(asker):
        source, fd = source_file(asker), asker.open(flags)
        while asker.more():
            at, size = asker.next()
            os.lseek(fd, asker.base() + at, os.SEEK_SET)
            done = os.sendfile(fd, source, at % MIB, min(size, BUFFER - at % MIB)) // PAGE * PAGE
            asker.wrote(at, done)
            if not flags:
                os.fsync(fd)
                asker.pause()
    return route


def copy_file_range(asker):
    """Calls copy_file_range() inside one file system, which copies pages or shares extents."""
    source = os.open(asker.path() + '-source', os.O_RDWR | os.O_CREAT, 0o666)
    os.pwrite(source, asker.view[:MIB], 0)
    fd = asker.open()
    while asker.more():
        at, size = asker.next()
        done = os.copy_file_range(source, fd, min(size, MIB - at % MIB), at % MIB, asker.base() + at)
        asker.wrote(at, done)
        os.fsync(fd)
        asker.pause()


PIPES = {
    'splice_direct': splice(os.O_DIRECT),
    'splice_buffered': splice(0),
    'splice_awaited': splice_awaited,
    'sendfile': sendfile(0),
    'sendfile_direct': sendfile(os.O_DIRECT),
    'vmsplice': vmsplice(0),
    'vmsplice_direct': vmsplice(os.O_DIRECT),
    'tee': tee,
    'copy_file_range': copy_file_range,
}
