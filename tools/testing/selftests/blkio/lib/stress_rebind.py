#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Binds a SCSI disk to its driver again and again, while its queue stays; exits with 1 and says why if that fails.

Each round reads the disk, unbinds it and binds it. In every second round the disk is open meanwhile, so that the next
disk of the queue waits for the last one to be freed, as when udev or a monitor has it open.
"""
import argparse
import glob
import os
import sys
import threading
import time

from stress_files import put

SCSI = '/sys/bus/scsi'


def disk_of(host):
    """Returns the name of the disk of a SCSI device such as 0:0:0:0."""
    names = glob.glob(f'{SCSI}/devices/{host}/block/*')
    if len(names) != 1:
        sys.exit(f'error: {host} has the disks {names}')
    return os.path.basename(names[0])


def rebind(host, held):
    """Unbinds and binds a disk. held: a descriptor that is closed while the next disk is being made, or None."""
    put(f'{SCSI}/drivers/sd/unbind', host)
    binds = threading.Thread(target=put, args=(f'{SCSI}/drivers/sd/bind', host))
    binds.start()
    if held is not None:
        time.sleep(0.02)
        os.close(held)
    binds.join()


def main():
    """Does all rounds."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n', maxsplit=1)[0])
    parser.add_argument('disk', help='such as /dev/sda')
    parser.add_argument('rounds', type=int)
    parser.add_argument('--limit', metavar='FILE', help='set a limit for the disk in each round, in this file')
    args = parser.parse_args()
    host = os.path.basename(os.path.realpath(f'/sys/block/{os.path.basename(args.disk)}/device'))
    for i in range(args.rounds):
        name = disk_of(host)
        if args.limit:
            with open(f'/sys/block/{name}/dev', encoding='ascii') as file:
                put(args.limit, f'{file.read().strip()} rbps=1073741824')
        disk = os.open('/dev/' + name, os.O_RDONLY)
        if not os.path.exists(f'/sys/kernel/debug/block/{name}/ioband'):
            sys.exit(f'error: round {i}: {name} is open, and has no limits and weights')
        if len(os.pread(disk, 4096, 0)) != 4096:
            sys.exit(f'error: round {i}: a read of {name} is short')
        if i % 2:
            os.close(disk)
        rebind(host, None if i % 2 else disk)
    print(f'{args.rounds} rounds')


main()
