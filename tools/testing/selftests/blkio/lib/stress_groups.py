#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes many groups with limits on one disk, does I/O in each, removes them; prints what they cost.

Prints "key=value" pairs on one line: seconds of each phase, bytes of memory per group before and after limits are set.
Exits with 1 if limits could not be set, I/O failed, or a group could not be removed.
"""
import argparse
import mmap
import os
import sys
import time

from stress_files import put


def memory():
    """Returns the bytes in use: of all memory, of slabs, per-CPU."""
    info = {}
    with open('/proc/meminfo', encoding='ascii') as file:
        for line in file:
            key, value = line.split(':')
            info[key] = int(value.split()[0]) * 1024
    return {'all': info['MemTotal'] - info['MemAvailable'], 'slab': info['Slab'], 'percpu': info.get('Percpu', 0)}


class Groups:
    """The groups, in directories of up to 100 each so that v2 has two levels."""

    def __init__(self, args):
        self.args = args
        self.v1 = os.path.exists(args.cgroup + '/blkio.reset_stats')
        self.parents = [f'{args.cgroup}/many{i}' for i in range((args.count + 99) // 100)]
        self.paths = [f'{self.parents[i // 100]}/{i}' for i in range(args.count)]

    def make(self):
        """Makes all groups."""
        for parent in self.parents:
            os.mkdir(parent)
            if not self.v1:
                put(parent + '/cgroup.subtree_control', '+io')
        for path in self.paths:
            os.mkdir(path)

    def rules(self):
        """Sets four limits on each group, all different, none so low that it slows the test down."""
        for i, path in enumerate(self.paths):
            limits = {'rbps': 10**8 + i, 'wbps': 2 * 10**8 + i, 'riops': 10**5 + i, 'wiops': 2 * 10**5 + i}
            if self.v1:
                for key, value in limits.items():
                    rw, unit = ('read', 'write')[key[0] == 'w'], key[1:]
                    put(f'{path}/blkio.throttle.{rw}_{unit}_device', f'{self.args.dev} {value}')
            else:
                put(path + '/io.max', f'{self.args.dev} ' + ' '.join(f'{key}={value}' for key, value in limits.items()))

    def check_rules(self):
        """Checks that each group has its own limits."""
        for i, path in enumerate(self.paths):
            if self.v1:
                file, want = path + '/blkio.throttle.write_bps_device', f'{self.args.dev} {2 * 10**8 + i}\n'
            else:
                file = path + '/io.max'
                want = f'{self.args.dev} rbps={10**8 + i} wbps={2 * 10**8 + i} riops={10**5 + i} wiops={2 * 10**5 + i}\n'
            with open(file, encoding='ascii') as text:
                got = text.read()
            if got != want:
                sys.exit(f'{file}: reads {got!r}, should be {want!r}')

    def io(self):
        """Writes a block with its number from each group, and reads it back."""
        fd = os.open(self.args.node, os.O_RDWR | os.O_DIRECT)
        block = mmap.mmap(-1, 4096)
        blocks = os.lseek(fd, 0, os.SEEK_END) // 4096
        for i, path in enumerate(self.paths):
            put(path + '/cgroup.procs', '0')
            block[:8] = i.to_bytes(8, 'little')
            os.pwrite(fd, block, i % blocks * 4096)
            block[:8] = bytes(8)
            os.preadv(fd, [block], i % blocks * 4096)
            if int.from_bytes(block[:8], 'little') != i:
                sys.exit(f'{path}: read back something else')
        put(self.args.cgroup + '/cgroup.procs', '0')
        os.close(fd)

    def remove(self):
        """Removes all groups."""
        for path in self.paths + self.parents:
            os.rmdir(path)


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--count', type=int, default=10000, help='groups')
    parser.add_argument('--dev', required=True, metavar='M:m')
    parser.add_argument('--node', required=True, help='the same disk in /dev')
    parser.add_argument('cgroup', help='where the hierarchy is mounted')
    args = parser.parse_args()
    groups = Groups(args)
    out = []
    used = memory()
    for name in ('make', 'rules', 'check_rules', 'io', 'remove'):
        begin = time.monotonic()
        getattr(groups, name)()
        out.append(f'{name}_s={time.monotonic() - begin:.2f}')
        if name in ('make', 'rules', 'io'):
            now = memory()
            out += [f'{name}_{key}={(now[key] - used[key]) // args.count}' for key in now]
            used = now
    print(' '.join(out))


if __name__ == '__main__':
    main()
