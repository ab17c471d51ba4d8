#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A disk that takes up to 128 I/Os and does one after the other: blkio_nbd.py NODE MIB NS [NS_PER_MIB [LINK_NS]]

NODE, /dev/nbdN, has MIB of memory behind it. Each of its I/Os takes NS, and NS_PER_MIB (0) more for its length. It is
LINK_NS (0) away: an I/O is known to be complete so long after it is. Ends when it is disconnected: blkio_nbd.py -d NODE.
"""
import ctypes
import fcntl
import mmap
import os
import queue
import socket
import struct
import sys
import threading
import time

SET_SOCK, SET_BLKSIZE, DO_IT, CLEAR_SOCK, SET_SIZE_BLOCKS, DISCONNECT, SET_FLAGS = (
    0xab00 + nr for nr in (0, 1, 3, 4, 7, 8, 10))
HAS_FLAGS, SEND_FLUSH = 1, 4
READ, WRITE, DISC = range(3)
REQUEST, REPLY = struct.Struct('>IIQQI'), struct.Struct('>IIQ')
REPLY_MAGIC = 0x67446698
PR_SET_TIMERSLACK = 29


def receive(sock, size):
    """The next size bytes of a socket."""
    data = bytearray()
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def serve(sock, memory, ns, ns_per_mib, answers):
    """Does one I/O after the other. answers: a queue for them, (when it was done, bytes)."""
    while True:
        _, command, handle, first, size = REQUEST.unpack(receive(sock, REQUEST.size))
        command &= 0xffff
        if command == DISC:
            return
        data = receive(sock, size) if command == WRITE else b''
        time.sleep((ns + ns_per_mib * size / (1 << 20)) / 1e9)
        if command == WRITE:
            memory[first:first + size] = data
        elif command == READ:
            data = memory[first:first + size]
        answers.put((time.monotonic(), REPLY.pack(REPLY_MAGIC, 0, handle) + (data if command == READ else b'')))


def answer(sock, link_ns, answers):
    """Sends what serve() has done, link_ns later."""
    while True:
        done, data = answers.get()
        time.sleep(max(done + link_ns / 1e9 - time.monotonic(), 0))
        sock.sendall(data)


def run(node, mib, ns, ns_per_mib=0, link_ns=0):
    """Attaches the disk to its node, and returns when it is disconnected."""
    memory, answers = mmap.mmap(-1, mib << 20), queue.SimpleQueue()
    kernel, ours = socket.socketpair()
    disk = os.open(node, os.O_RDWR)
    for request, value in ((SET_BLKSIZE, 4096), (SET_SIZE_BLOCKS, mib << 8), (SET_FLAGS, HAS_FLAGS | SEND_FLUSH),
                           (CLEAR_SOCK, 0), (SET_SOCK, kernel.fileno())):
        fcntl.ioctl(disk, request, value)
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
    threading.Thread(target=fcntl.ioctl, args=(disk, DO_IT), daemon=True).start()
    threading.Thread(target=answer, args=(ours, link_ns, answers), daemon=True).start()
    try:
        serve(ours, memory, ns, ns_per_mib, answers)
    except EOFError:
        pass


def main():
    if sys.argv[1] == '-d':
        fcntl.ioctl(os.open(sys.argv[2], os.O_RDWR), DISCONNECT)
    else:
        run(sys.argv[1], *(int(word) for word in sys.argv[2:]))


if __name__ == '__main__':
    main()
