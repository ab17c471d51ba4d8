#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Shows how cgroups use their I/O limits and weights, disk by disk (ioband).

usage: ioband_top.py [-i SECONDS] [-n TIMES] [--cgroup REGEX] [--all] [--json | --openmetrics] [DISK...]

A table for each interval, with a line for each cgroup that does I/O on a disk, has a limit or waits; --all: for each
that the disk knows. --json prints an object for each interval instead, --openmetrics the counters as they are, once.
Reads files of cgroups (v1 or v2), and what it may of debugfs: without that, columns about the disk are empty, on v1
those about waiting and shares as well.
"""
import argparse
import dataclasses
import json
import os
import re
import sys
import time

DEBUGFS = '/sys/kernel/debug/block'
KEYS = ('rbytes', 'wbytes', 'rios', 'wios')
# v1: file of a limit, and its name on v2
V1_LIMITS = {'read_bps_device': 'rbps', 'write_bps_device': 'wbps', 'read_iops_device': 'riops', 'write_iops_device': 'wiops'}


@dataclasses.dataclass
class Group:
    """What one cgroup has on one disk.

    path: below the root of the hierarchy, "/" for that; limits: {"rbps", "wbps": bytes a second, "riops", "wiops": I/Os
    a second}, those that are set; counters: KEYS since the disk came, and nr_throttled, throttled_usec, share_waits,
    share_wait_usec where they are known; now: held, inflight, weight, share_ppm, got_ppm, debt_usec where they are known.
    """
    path: str
    limits: dict = dataclasses.field(default_factory=dict)
    counters: dict = dataclasses.field(default_factory=dict)
    now: dict = dataclasses.field(default_factory=dict)


COUNTERS = KEYS + ('nr_throttled', 'throttled_usec', 'nr_owed', 'share_waits', 'share_wait_usec')
NOW = ('held', 'debt_usec', 'inflight', 'weight', 'share_ppm', 'got_ppm')


def read(path):
    """Lines of a file, none if it cannot be read."""
    try:
        with open(path, encoding='utf-8') as file:
            return file.read().splitlines()
    except OSError:
        return []


def pairs(words):
    """{key: number} of the words that are key=number."""
    return {key: int(value) for key, _, value in (word.partition('=') for word in words) if value.isdigit()}


def hierarchy():
    """(version, directory) of the hierarchy that has the block controller, or None."""
    found = None
    for line in read('/proc/self/mounts'):
        _, directory, kind, options, *_ = line.split()
        if kind == 'cgroup' and 'blkio' in options.split(','):
            return 1, directory
        if kind == 'cgroup2' and any('io' in line.split() for line in read(directory + '/cgroup.controllers')):
            found = 2, directory
    return found


class Reader:
    """Reads all cgroups of a hierarchy; sample() gives {disk number "M:m": {path: Group}}."""

    def __init__(self, version, root):
        self.version, self.root = version, root
        self.ids = {}       # {number of a cgroup: path}

    def sample(self):
        """As it is now."""
        disks = {}
        for directory, _, _ in os.walk(self.root):
            path = directory[len(self.root):] or '/'

            def group(device, path=path):
                return disks.setdefault(device, {}).setdefault(path, Group(path))

            (self.read_v2 if self.version == 2 else self.read_v1)(directory, group)
            self.ids[os.stat(directory).st_ino] = path
        for device, groups in disks.items():
            self.read_debugfs(device, groups)
        return disks

    @staticmethod
    def read_v2(directory, group):
        """io.stat, io.max."""
        for line in read(directory + '/io.stat'):
            device, *words = line.split()
            found = pairs(words)
            if any(found.get(key) for key in found):
                group(device).counters.update({key: found.get(key, 0) for key in COUNTERS if key in found})
                group(device).now.update({key: found[key] for key in NOW if key in found})
        for line in read(directory + '/io.max'):
            device, *words = line.split()
            group(device).limits.update(pairs(words))

    @staticmethod
    def read_v1(directory, group):
        """Files of throttle, and blkio.weight_device."""
        for file, keys in (('io_service_bytes', ('rbytes', 'wbytes')), ('io_serviced', ('rios', 'wios'))):
            for line in read(f'{directory}/blkio.throttle.{file}'):
                words = line.split()
                if len(words) == 3 and words[1] in ('Read', 'Write') and int(words[2]):
                    group(words[0]).counters[keys[words[1] == 'Write']] = int(words[2])
        for file, key in V1_LIMITS.items():
            for line in read(f'{directory}/blkio.throttle.{file}'):
                device, limit = line.split()
                group(device).limits[key] = int(limit)

    def read_debugfs(self, device, groups):
        """What v1 has nowhere else, of the file "groups"; its lines have the cgroup's number."""
        if self.version == 2:
            return
        for line in read(f'{DEBUGFS}/{name_of(device)}/ioband/groups'):
            number = re.match(r'cg=(\d+)', line)
            path = self.ids.get(int(number.group(1))) if number else None
            if path is None:
                continue
            group = groups.setdefault(path, Group(path))
            for part in re.split(r' (?=read:|write:|share:)', line)[1:]:
                found = pairs(part.split())
                for key in 'held', 'weight', 'share_ppm', 'got_ppm', 'inflight':
                    if key in found:
                        group.now[key] = group.now.get(key, 0) * (key == 'held') + found[key]
                for key in 'nr_throttled', 'nr_owed', 'share_waits':
                    if key in found:
                        group.counters[key] = group.counters.get(key, 0) + found[key]
                if 'share_wait_ns' in found:
                    group.counters['share_wait_usec'] = found['share_wait_ns'] // 1000


def name_of(device):
    """A disk's name, of "M:m"; that itself if it has none."""
    try:
        return os.path.basename(os.readlink(f'/sys/dev/block/{device}'))
    except OSError:
        return device


def disk_state(device):
    """{"depth", "inflight", "outstanding", ...: numbers, "state": text} of a disk, by debugfs; empty without it."""
    lines = read(f'{DEBUGFS}/{name_of(device)}/ioband/share')
    if not lines:
        return {}
    words = lines[0].split()
    state = [word for word in words if '=' not in word]
    return pairs(words) | {'state': ' '.join(state)}


def difference(old, new, seconds):
    """What happened in between.

    Returns {device: {"disk", "state", "groups": [{"cgroup", "limits", "rbps", "wbps", "riops", "wiops": a second,
    "throttled": part of the time, 0 to 2 as reads and writes count, "share_wait_ms": of an I/O that waited, ...}]}}
    """
    result = {}
    for device, groups in new.items():
        rows = []
        for path, group in sorted(groups.items()):
            before = old.get(device, {}).get(path, Group(path)).counters
            gone = {key: max(group.counters.get(key, 0) - before.get(key, 0), 0) for key in COUNTERS}
            rows.append({
                'cgroup': path, 'limits': group.limits,
                'rbps': gone['rbytes'] / seconds, 'wbps': gone['wbytes'] / seconds,
                'riops': gone['rios'] / seconds, 'wiops': gone['wios'] / seconds,
                'throttled': gone['throttled_usec'] / seconds / 1e6,
                'owed': gone['nr_owed'],
                'share_wait_ms': gone['share_wait_usec'] / gone['share_waits'] / 1e3 if gone['share_waits'] else 0,
                **group.now})
        result[device] = {'disk': name_of(device), 'state': disk_state(device), 'groups': rows}
    return result


def brief(number):
    """A number in at most five characters."""
    for unit in '', 'K', 'M', 'G', 'T':
        if abs(number) < 1000:
            return f'{number:.0f}{unit}' if not unit or abs(number) >= 100 else f'{number:.1f}{unit}'
        number /= 1000
    return f'{number:.0f}P'


def used(row):
    """The limit that is used most: (name and value, part of it), or ("", None)."""
    most = max(((row[key] / limit, key, limit) for key, limit in row['limits'].items() if limit), default=None)
    return ('', None) if most is None else (f'{most[1]}={brief(most[2])}', most[0])


def is_busy(row):
    """Is there anything to say of a group?"""
    return any(row[key] for key in V1_LIMITS.values()) or row['limits'] or row.get('held') or row.get('debt_usec')


def table(result, everything):
    """Lines for people."""
    for device, disk in sorted(result.items(), key=lambda item: item[1]['disk']):
        rows = [row for row in disk['groups'] if everything or is_busy(row)]
        if not rows:
            continue
        state = disk['state']
        about = 'depth {depth} ({state}), in flight {inflight}, waiting for their share {waiting}'.format(
            waiting=state['outstanding'] - state['inflight'], **state) if state else ''
        yield f'{disk["disk"]} ({device}) {about}'.rstrip()
        yield (f'{"cgroup":32} {"read/s":>7} {"write/s":>7} {"r io/s":>7} {"w io/s":>7}  {"limit":14} {"used":>5} {"held":>5} '
               f'{"thrott":>6} {"debt ms":>7} {"weight":>6} {"asked":>6} {"got":>6} {"wait ms":>8}')
        for row in rows:
            limit, part = used(row)
            share = [f'{row[key] / 1e4:.1f}%' if row.get('share_ppm') else '' for key in ('share_ppm', 'got_ppm')]
            yield (f'{row["cgroup"]:32} {brief(row["rbps"]):>7} {brief(row["wbps"]):>7} {brief(row["riops"]):>7} '
                   f'{brief(row["wiops"]):>7}  {limit:14} {"" if part is None else f"{part:.0%}":>5} {row.get("held", ""):>5} '
                   f'{row["throttled"]:>6.0%} {row.get("debt_usec", 0) / 1e3:>7.0f} {row.get("weight", ""):>6} '
                   f'{share[0]:>6} {share[1]:>6} {row["share_wait_ms"]:>8.2f}')
        yield ''


def label(text):
    """A label's value."""
    return text.replace('\\', r'\\').replace('"', r'\"').replace('\n', r'\n')


def openmetrics(sample):
    """Lines of OpenMetrics text: counters, and numbers as of now."""
    names = [(key, 'counter') for key in COUNTERS] + [(key, 'gauge') for key in NOW] + [('limit', 'gauge')]
    for key, kind in names:
        yield f'# TYPE ioband_{key} {kind}'
        for device, groups in sample.items():
            for path, group in groups.items():
                where = f'disk="{label(name_of(device))}",cgroup="{label(path)}"'
                for what, limit in group.limits.items() if key == 'limit' else ():
                    yield f'ioband_limit{{{where},of="{what}"}} {limit}'
                value = (group.counters if kind == 'counter' else group.now).get(key)
                if value is not None:
                    yield f'ioband_{key}{"_total" if kind == "counter" else ""}{{{where}}} {value}'
    yield '# EOF'


def chosen(sample, args):
    """The part of a sample that was asked for."""
    wanted = re.compile(args.cgroup)
    return {device: {path: group for path, group in groups.items() if wanted.search(path)}
            for device, groups in sample.items() if not args.disk or name_of(device) in args.disk}


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-i', '--interval', type=float, default=1, metavar='SECONDS')
    parser.add_argument('-n', '--times', type=int, default=0, help='end after so many intervals')
    parser.add_argument('--cgroup', default='', metavar='REGEX', help='only cgroups whose path has it')
    parser.add_argument('--all', action='store_true', help='cgroups that do nothing, too')
    parser.add_argument('--json', action='store_true')
    parser.add_argument('--openmetrics', action='store_true')
    parser.add_argument('disk', nargs='*', help='names, as sda')
    args = parser.parse_args()
    args.disk = [os.path.basename(name) for name in args.disk]
    found = hierarchy()
    if not found:
        sys.exit('error: no hierarchy of cgroups here has the block controller\n next: mount -t cgroup2 none /sys/fs/cgroup')
    reader = Reader(*found)
    old, before = chosen(reader.sample(), args), time.monotonic()
    if args.openmetrics:
        print('\n'.join(openmetrics(old)))
        return
    while True:
        time.sleep(args.interval)
        new, now = chosen(reader.sample(), args), time.monotonic()
        result = difference(old, new, now - before)
        text = json.dumps({'seconds': now - before, 'disks': result}) if args.json else '\n'.join(table(result, args.all))
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
