# SPDX-License-Identifier: GPL-2.0
"""Files of the kernel, written and read in one call each, as the kernel wants them."""
import os


def put(path, text):
    """One write."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def get(path):
    """All of a file, as one read() would give a program."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 65536).decode()
    finally:
        os.close(fd)
