# SPDX-License-Identifier: GPL-2.0
"""Writes and reads files of the kernel in one call each, as the kernel requires."""
import os


def put(path, text):
    """Writes text to a file with one write()."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def get(path):
    """Returns the text of a file."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 65536).decode()
    finally:
        os.close(fd)
