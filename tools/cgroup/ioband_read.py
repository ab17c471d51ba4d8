# SPDX-License-Identifier: GPL-2.0
"""Reads what the kernel tells of I/O limits and weights: files of cgroups (v1 or v2), of debugfs and of /proc.

Any file can be missing, unreadable or gone a moment later. A function then returns what it could read, if anything.
"""

import dataclasses
import gzip
import os
import re

DEBUGFS = '/sys/kernel/debug'
TRACEFS = '/sys/kernel/tracing'
KEYS = ('rbytes', 'wbytes', 'rios', 'wios')
# {file of a limit on v1: its name on v2}
V1_LIMITS = {
    'read_bps_device': 'rbps',
    'write_bps_device': 'wbps',
    'read_iops_device': 'riops',
    'write_iops_device': 'wiops',
}
LIMITS = tuple(V1_LIMITS.values())
COUNTERS = KEYS + ('nr_throttled', 'throttled_usec', 'nr_owed', 'share_waits', 'share_wait_usec')
NOW = ('held', 'debt_usec', 'inflight', 'weight', 'share_ppm', 'got_ppm', 'dirty_bytes', 'writing_bytes')
MODES = ('off', 'limits', 'on')


@dataclasses.dataclass
class Group:
    """The settings and statistics of one cgroup on one disk.

    path: below the root of the hierarchy, "/" for the root; limits: {one of LIMITS: bytes or I/Os a second}, those in
    effect; free: names of LIMITS that are set to "no limit" for this disk, whatever there is for all disks; counters:
    the known ones of COUNTERS, since the disk was added, of which KEYS include the groups below on v2; now: the known
    ones of NOW; gates, from debugfs: {"read", "write": {"held": I/Os, "gate": text, "limits": {one of LIMITS: {"burst",
    "in_hand": bytes or I/Os, "late_ns": time until the limit has room again, negative if it has}}}}.
    """

    path: str
    limits: dict = dataclasses.field(default_factory=dict)
    free: set = dataclasses.field(default_factory=set)
    counters: dict = dataclasses.field(default_factory=dict)
    now: dict = dataclasses.field(default_factory=dict)
    gates: dict = dataclasses.field(default_factory=dict)


def read(path):
    """The lines of a file; none if it cannot be read."""
    try:
        with open(path, encoding='utf-8', errors='surrogateescape') as file:
            return file.read().splitlines()
    except (OSError, ValueError):
        return []


def word(path):
    """The first line of a file; "" if there is none."""
    return next(iter(read(path)), '').strip()


def number(text):
    """The text as a number; 0 if it is not one."""
    return int(text) if re.fullmatch('[0-9]+', text) else 0


def pairs(words):
    """{key: number} for those of the words that are key=number."""
    return {
        key: int(value) for key, _, value in (text.partition('=') for text in words) if re.fullmatch(r'-?[0-9]+', value)
    }


@dataclasses.dataclass
class Mount:
    """A line of /proc/self/mountinfo. number: its id; device: "M:m"; root: the mounted part of the file system."""

    number: int
    device: str
    root: str
    where: str
    kind: str
    source: str
    options: str


def unescape(text):
    r"""A path of /proc/self/mountinfo, where a blank is \040."""
    return re.sub(r'\\([0-7]{3})', lambda match: chr(int(match.group(1), 8)), text)


def mounts():
    """All mounts, in the kernel's order."""
    found = []
    for line in read('/proc/self/mountinfo'):
        before, _, after = line.partition(' - ')
        words, rest = [unescape(text) for text in before.split()], after.split(' ', 2)
        if len(words) >= 6 and len(rest) == 3:
            found.append(
                Mount(
                    number(words[0]), words[2], words[3], words[4], rest[0], unescape(rest[1]), rest[2]
                )
            )
    return found


@dataclasses.dataclass
class Hierarchy:
    """The hierarchy that has the block controller.

    version: 1 or 2; root: the directory where it is mounted; base: the cgroup that is mounted there, "/": the topmost.
    """

    version: int
    root: str
    base: str = '/'

    def directory(self, path):
        """The directory of a cgroup."""
        return self.root + (path if path != '/' else '')

    def is_top(self):
        """Is the topmost cgroup mounted, and not only the part of the hierarchy that a container may see?"""
        return (
            not os.path.exists(self.root + '/cgroup.events')
            if self.version == 2
            else os.path.exists(self.root + '/release_agent')
        )


def hierarchy():
    """The Hierarchy that has the block controller, or None."""
    found = []
    for mount in mounts():
        if mount.kind == 'cgroup' and 'blkio' in mount.options.split(','):
            found.append(Hierarchy(1, mount.where, mount.root))
        if mount.kind == 'cgroup2' and any('io' in line.split() for line in read(mount.where + '/cgroup.controllers')):
            found.append(Hierarchy(2, mount.where, mount.root))
    # of several mounts of a hierarchy take the one that shows most of it
    return min(found, key=lambda one: (one.version, len(one.base)), default=None)


def up(path):
    """A cgroup and those above it, the root last."""
    parts = path.strip('/').split('/') if path != '/' else []
    return ['/' + '/'.join(parts[:number]) for number in range(len(parts), -1, -1)]


class Reader:
    """Reads all cgroups of a hierarchy; sample() gives {disk number "M:m": {path: Group}}."""

    def __init__(self, where):
        self.where = where
        self.ids = {}  # {inode number of a cgroup: path}

    def sample(self):
        """Reads the present state, see Reader."""
        disks = {}
        self.ids = {}
        for directory, _, _ in os.walk(self.where.root):
            path = directory[len(self.where.root) :] or '/'

            def group(device, path=path):
                return disks.setdefault(device, {}).setdefault(path, Group(path))

            try:
                self.ids[os.stat(directory).st_ino] = path
            except OSError:
                continue
            (self.read_v2 if self.where.version == 2 else self.read_v1)(directory, group)
        add_defaults(disks)
        self.read_owners(disks)
        for device, groups in disks.items():
            self.read_debugfs(device, groups)
        return disks

    @staticmethod
    def read_v2(directory, group):
        """Reads io.stat and io.max."""
        for line in read(directory + '/io.stat'):
            device, _, rest = line.partition(' ')
            found = pairs(rest.split())
            if any(found.get(key) for key in found):
                group(device).counters.update({key: found.get(key, 0) for key in COUNTERS if key in found})
                group(device).now.update({key: found[key] for key in NOW if key in found})
        for line in read(directory + '/io.max'):
            device, _, rest = line.partition(' ')
            group(device).limits.update(pairs(rest.split()))
            group(device).free.update(text.partition('=')[0] for text in rest.split() if text.endswith('=max'))

    @staticmethod
    def read_v1(directory, group):
        """Reads blkio.throttle.*."""
        for file, keys in (('io_service_bytes', ('rbytes', 'wbytes')), ('io_serviced', ('rios', 'wios'))):
            for line in read(f'{directory}/blkio.throttle.{file}'):
                words = line.split()
                if len(words) == 3 and words[1] in ('Read', 'Write') and number(words[2]):
                    group(words[0]).counters[keys[words[1] == 'Write']] = number(words[2])
        for file, key in V1_LIMITS.items():
            for line in read(f'{directory}/blkio.throttle.{file}'):
                device, _, limit = line.partition(' ')
                if number(limit):
                    group(device).limits[key] = number(limit)
                elif limit == '0':
                    group(device).free.add(key)

    def read_owners(self, disks):
        """Reads the dirty pages of groups from the file dirty_owner in debugfs."""
        page = os.sysconf('SC_PAGE_SIZE')
        for line in read(DEBUGFS + '/dirty_owner'):
            found, place = pairs(line.split()), re.search(r'bdi=(\S+)', line)
            path = self.ids.get(found.get('cg'))
            dirty, writing = (max(found.get(key, 0), 0) * page for key in ('dirty', 'writing'))
            if path is not None and place and dirty + writing:
                now = disks.setdefault(place.group(1), {}).setdefault(path, Group(path)).now
                now.update(dirty_bytes=dirty, writing_bytes=writing)

    def read_debugfs(self, device, groups):
        """Reads limits from the file groups in debugfs, and on v1 waits and shares, which v1 has nowhere else."""
        for line in read(f'{DEBUGFS}/block/{name_of(device)}/ioband/groups'):
            about, *parts = re.split(r' (?=read:|write:|share:)', line)
            path = self.ids.get(pairs(about.split()).get('cg'))
            if path is None:
                continue
            group = groups.setdefault(path, Group(path))
            for part in parts:
                way, _, rest = part.partition(':')
                found = pairs(rest.split())
                if way != 'share':
                    group.gates[way] = gate_of(way, rest)
                if self.where.version == 1:
                    add_v1(group, found)
                    late_ns = max(
                        (limit['late_ns'] for gate in group.gates.values() for limit in gate['limits'].values()),
                        default=0,
                    )
                    group.now['debt_usec'] = max(late_ns, 0) // 1000

    def settings(self, path):
        """The weights that are set for a cgroup: {"M:m" or "default": weight}."""
        where = self.where.directory(path)
        if self.where.version == 2:
            lines = read(where + '/io.weight')
        else:
            lines = [f'default {line}' for line in read(where + '/blkio.weight')] + read(where + '/blkio.weight_device')
        return {words[0]: int(words[1]) for words in map(str.split, lines) if len(words) == 2 and words[1].isdigit()}

    def device_line(self, device):
        """The settings of a disk in io.ioband: {"weights": "on" or "off", "depth": "auto" or a number}."""
        file = f'{self.where.root}/{"io" if self.where.version == 2 else "blkio"}.ioband'
        for line in read(file):
            name, *words = line.split() or ['']
            if name == device:
                return {'weights': 'on', 'depth': 'auto'} | dict(text.split('=', 1) for text in words if '=' in text)
        return {'weights': 'on', 'depth': 'auto'}


def add_defaults(disks):
    """Adds the limits for all disks to the groups of each disk; disks: {"M:m" or "default": {path: Group}}, changed."""
    for path, default in disks.pop('default', {}).items():
        for groups in disks.values():
            group = groups.get(path, default)
            group.limits = {
                key: value for key, value in default.limits.items() if key not in group.free
            } | group.limits


def gate_of(way, text):
    """The gate for "read" or "write", from a group's line in debugfs; see Group."""
    units = re.split(r' (?=[bi]o?ps=)', text)
    gate = re.search(r'gate=(\w+)', units[0])
    limits = {}
    for unit in units[1:]:
        key = way[0] + unit.partition('=')[0]
        found = pairs(unit.split())
        rate, burst_ns = found.get(key[1:], 0), found.get('burst_ns', 0)
        late_ns = found.get('ahead_ns', 0) - burst_ns
        limits[key] = {
            'burst': round(burst_ns * rate / 1e9),
            'in_hand': round(min(burst_ns, -late_ns) * rate / 1e9),
            'late_ns': late_ns,
        }
    return {'held': pairs(units[0].split()).get('held', 0), 'gate': gate.group(1) if gate else '', 'limits': limits}


def add_v1(group, found):
    """Adds numbers from debugfs that io.stat has on v2."""
    for key in 'held', 'weight', 'share_ppm', 'got_ppm', 'inflight':
        if key in found:
            group.now[key] = group.now.get(key, 0) * (key == 'held') + found[key]
    for key in 'nr_throttled', 'nr_owed', 'share_waits':
        if key in found:
            group.counters[key] = group.counters.get(key, 0) + found[key]
    if 'share_wait_ns' in found:
        group.counters['share_wait_usec'] = found['share_wait_ns'] // 1000


def name_of(device):
    """The name of the disk "M:m"; "M:m" itself if it has none."""
    try:
        return os.path.basename(os.readlink(f'/sys/dev/block/{device}'))
    except OSError:
        return device


def disk_state(device):
    """{"depth", "inflight", "outstanding", ...: numbers, "state": text} of a disk; empty if debugfs cannot be read."""
    lines = read(f'{DEBUGFS}/block/{name_of(device)}/ioband/share')
    if not lines:
        return {}
    words = lines[0].split()
    state = [text for text in words if '=' not in text]
    return pairs(words) | {'state': ' '.join(state)}


def kernel_config():
    """The running kernel's configuration, {name: value}; None if it cannot be read."""
    try:
        with gzip.open('/proc/config.gz', 'rt', encoding='utf-8', errors='replace') as file:
            lines = file.read().splitlines()
    except (OSError, EOFError):
        release = os.uname().release
        lines = read(f'/boot/config-{release}') or read(f'/lib/modules/{release}/config')
    found = dict(line.split('=', 1) for line in lines if line.startswith('CONFIG_') and '=' in line)
    return found or None


def arguments():
    """All values of ioband= on the kernel's command line."""
    words, _, _ = ' '.join(read('/proc/cmdline')).partition(' -- ')
    return [text.partition('=')[2] for text in words.split() if text.startswith('ioband=')]


def kernel_mode(where, config):
    """(one of MODES, "absent" or "unknown"; the reason), given hierarchy() and kernel_config()."""

    def by_default():
        for name in MODES:
            if config.get(f'CONFIG_BLK_CGROUP_IOBAND_DEFAULT_{name.upper()}') == 'y':
                return name, 'as configured, without the kernel argument ioband='
        return 'absent', 'the kernel is built without CONFIG_BLK_CGROUP_IOBAND'

    file = where and f'{"io" if where.version == 2 else "blkio"}.ioband'
    given = [text for text in arguments() if text in MODES]
    if where and os.path.exists(f'{where.root}/{file}'):
        return 'on', f'the root group has {file}'
    if config is not None and config.get('CONFIG_BLK_CGROUP_IOBAND') != 'y':
        return by_default()
    if config is None and os.path.isdir(TRACEFS + '/events') and not os.path.isdir(TRACEFS + '/events/ioband'):
        return 'absent', 'the kernel has no tracepoints of ioband'
    mode = (given[-1], f'kernel argument ioband={given[-1]}') if given else by_default() if config else None
    if where and where.is_top() and (not mode or mode[0] == 'on'):
        # a controller that had weights would have this file
        return 'unknown' if not mode else 'absent', f'the root group has no {file}'
    return mode or ('unknown', 'neither the configuration nor the arguments of the kernel tell')
