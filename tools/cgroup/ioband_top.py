#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Shows how cgroups use their I/O limits and weights, disk by disk (ioband).

usage: ioband_top.py [-i SECONDS] [-n TIMES] [--cgroup REGEX] [--all] [--json | --openmetrics] [DISK...]

Prints a table for each interval. A table has a line for each cgroup that does I/O on the disk, or has a limit, held
I/O, a debt or dirty pages there; with --all it has a line for each cgroup that the disk knows. --json prints an object
for each interval instead; --openmetrics prints the counters once. The numbers are from files of cgroups (v1 or v2) and
from debugfs. If debugfs cannot be read, the columns about the disk, bursts and dirty pages are empty, and on v1 those
about waits and shares as well.
"""

import argparse
import json
import os
import re
import sys
import time

from ioband_read import COUNTERS, NOW, Reader, hierarchy, name_of
from ioband_rows import difference, table


def label(text):
    """The value of a label, escaped."""
    return text.replace('\\', r'\\').replace('"', r'\"').replace('\n', r'\n')


def by_limit(group, key):
    """{name of a limit: value}. key: "limit" for the limit itself, "burst", or "in_hand", what is left of the burst."""
    if key == 'limit':
        return group.limits
    return {name: limit[key] for gate in group.gates.values() for name, limit in gate['limits'].items()}


def openmetrics(sample):
    """Lines of OpenMetrics text: counters, and gauges for numbers as of now."""
    names = [(key, 'counter') for key in COUNTERS] + [(key, 'gauge') for key in (*NOW, 'limit', 'burst', 'in_hand')]
    for key, kind in names:
        yield f'# TYPE ioband_{key} {kind}'
        for device, groups in sample.items():
            for path, group in groups.items():
                where = f'disk="{label(name_of(device))}",cgroup="{label(path)}"'
                for what, value in by_limit(group, key).items() if key in ('limit', 'burst', 'in_hand') else ():
                    yield f'ioband_{key}{{{where},of="{what}"}} {value}'
                value = (group.counters if kind == 'counter' else group.now).get(key)
                if value is not None:
                    yield f'ioband_{key}{"_total" if kind == "counter" else ""}{{{where}}} {value}'
    yield '# EOF'


def chosen(sample, args):
    """The part of a sample that the command line selects."""
    wanted = re.compile(args.cgroup)
    return {
        device: {path: group for path, group in groups.items() if wanted.search(path)}
        for device, groups in sample.items()
        if not args.disk or name_of(device) in args.disk
    }


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-i', '--interval', type=float, default=1, metavar='SECONDS')
    parser.add_argument('-n', '--times', type=int, default=0, help='number of intervals (default: no end)')
    parser.add_argument('--cgroup', default='', metavar='REGEX', help='show only cgroups whose path matches')
    parser.add_argument('--all', action='store_true', help='show idle cgroups, too')
    parser.add_argument('--json', action='store_true')
    parser.add_argument('--openmetrics', action='store_true')
    parser.add_argument('disk', nargs='*', help='names of disks, such as sda')
    args = parser.parse_args()
    args.disk = [os.path.basename(name) for name in args.disk]
    found = hierarchy()
    if not found:
        sys.exit(
            'error: no mounted cgroup hierarchy has the block controller\n next: mount -t cgroup2 none /sys/fs/cgroup'
        )
    reader = Reader(found)
    old, before = chosen(reader.sample(), args), time.monotonic()
    if args.openmetrics:
        print('\n'.join(openmetrics(old)))
        return
    while True:
        time.sleep(args.interval)
        new, now = chosen(reader.sample(), args), time.monotonic()
        result = difference(old, new, now - before)
        text = (
            json.dumps({'seconds': now - before, 'disks': result}) if args.json else '\n'.join(table(result, args.all))
        )
        if text:
            print(text, flush=True)
        old, before = new, now
        args.times -= 1
        if not args.times:
            return


if __name__ == '__main__':
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        pass
