#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write to files as told on stdin and answer with what the kernel says.

Each line is PATH, a tab, and the value as a Python string literal's inside
("253:0 1\\n"). The answer is OK, SHORT (not all was taken) or the name of the
errno. Each value is one write() on a descriptor of its own.
"""
import errno
import os
import sys


def write(path, data):
    try:
        fd = os.open(path, os.O_WRONLY)
        try:
            return "OK" if os.write(fd, data) == len(data) else "SHORT"
        finally:
            os.close(fd)
    except OSError as error:
        # some numbers of the kernel have no name
        return errno.errorcode.get(error.errno or 0, str(error))


def main():
    for line in sys.stdin:
        path, value = line.rstrip("\n").split("\t", 1)
        data = value.encode().decode("unicode_escape").encode("latin-1")
        print(write(path, data), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(__doc__)
    else:
        main()
