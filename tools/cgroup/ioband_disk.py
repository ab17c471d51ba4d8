# SPDX-License-Identifier: GPL-2.0
"""Which disks are below a path or a disk, and for which of these a limit can be set.

Reads sysfs, /proc and, for dm, the output of dmsetup.
"""

import dataclasses
import os
import re
import stat
import subprocess

from ioband_read import Mount, mounts, name_of, number, read, word

# These devices write copies of their data to the disks below, and kernel threads do that in the root group's name.
COPIES = ('crypt', 'vdo', 'raid4', 'raid5', 'raid6')
NETWORK = ('nfs', 'nfs4', 'cifs', 'smb3', '9p', 'ceph', 'afs', 'virtiofs', 'lustre', 'hostfs')
DEEPEST = 16


@dataclasses.dataclass
class Node:
    """A block device and the devices below it.

    device: "M:m"; kind: text; below: Nodes; bears: can it have a limit; copies: are the devices below written to in the
    root group's name; scheduler: "" if it has none of its own; zoned: True for zoned disks.
    """

    device: str
    name: str
    kind: str = 'disk'
    below: list = dataclasses.field(default_factory=list)
    bears: bool = True
    copies: bool = False
    scheduler: str = ''
    zoned: bool = False

    def all(self):
        """This Node and those below, once each."""
        found = {self.device: self}
        for node in self.below:
            found.update({other.device: other for other in node.all()})
        return list(found.values())

    def hidden(self):
        """Nodes below where a group's writes arrive in the name of the root group."""
        return [other for node in self.below for other in (node.all() if self.copies else node.hidden())]

    def bearer(self):
        """The topmost Node that can have a limit; for a partition that is its disk."""
        return self if self.bears or not self.below else self.below[0].bearer()


def number_of(name):
    """The "M:m" of a disk or partition, "" if there is none of that name."""
    return word(f'/sys/class/block/{name.replace("/", "!")}/dev') if name and name not in ('.', '..') else ''


def scheduler_of(sysfs):
    """The scheduler of a disk, "" if it has none."""
    found = re.search(r'\[([^]]*)\]', word(sysfs + '/queue/scheduler'))
    return found.group(1) if found else ''


def dm_targets(name):
    """Names of the targets of a dm device; for "raid" its level. Empty without privileges."""
    try:
        run = subprocess.run(['dmsetup', 'table', name], capture_output=True, timeout=10, check=False, text=True)
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return set()
    tables = [line.split() for line in run.stdout.splitlines()]
    return {words[3] if words[2] == 'raid' else words[2] for words in tables if len(words) > 3}


def dm_kind(sysfs):
    """(kind as text, does it write copies?) of a dm device."""
    name, uuid = word(sysfs + '/dm/name'), word(sysfs + '/dm/uuid')
    types = dm_targets(name)
    if uuid.startswith('LVM-'):
        what = 'LVM volume'
    elif uuid.startswith('mpath-') or 'multipath' in types:
        what = 'multipath'
    elif uuid.startswith('CRYPT-') or 'crypt' in types:
        what = 'dm-crypt'
    else:
        what = '-'.join(['dm', *sorted(types)[:1]])
    copies = what == 'dm-crypt' or any(one.startswith(COPIES) for one in types)
    return f'{what} {name}'.strip(), copies


def below_loop(file, depth):
    """Nodes below the file of a loop device."""
    try:
        return place(file, depth).nodes
    except OSError:
        return []


def node_of(device, depth=0):
    """The Node of "M:m", with those below it."""
    sysfs = os.path.realpath(f'/sys/dev/block/{device}')
    node = Node(device, name_of(device))
    if depth > DEEPEST or not os.path.isdir(sysfs):
        return node
    if os.path.exists(sysfs + '/partition'):
        node.kind, node.bears = 'partition', False
        node.below = [node_of(word(os.path.dirname(sysfs) + '/dev'), depth + 1)]
        return node
    node.scheduler = scheduler_of(sysfs)
    node.zoned = word(sysfs + '/queue/zoned') not in ('', 'none')
    backing = word(sysfs + '/loop/backing_file')
    if os.path.isdir(sysfs + '/dm'):
        node.kind, node.copies = dm_kind(sysfs)
    elif os.path.isdir(sysfs + '/md'):
        level = word(sysfs + '/md/level')
        node.kind, node.copies = f'md {level}', level in COPIES
    elif os.path.isdir(sysfs + '/multipath'):
        node.kind = 'NVMe with several paths'
    elif backing:
        node.kind = f'loop device of {backing}'
        node.below = below_loop(backing, depth + 1)
        return node
    try:
        slaves = sorted(os.listdir(sysfs + '/slaves'))
    except OSError:
        slaves = []
    node.below = [node_of(number_of(name), depth + 1) for name in slaves if number_of(name)]
    return node


@dataclasses.dataclass
class Place:
    """Where the data of a path is. mount: None for a device node of a disk; nodes: [Node]; notes: sentences."""

    path: str
    mount: Mount | None = None
    nodes: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)


def mount_of(path):
    """The Mount that a path is on: by the number of the mount, else by the longest mount point above the path."""
    known = mounts()
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            lines = read(f'/proc/self/fdinfo/{file}')
            found = [number(line[len('mnt_id:'):].strip()) for line in lines if line.startswith('mnt_id:')]
        finally:
            os.close(file)
    except OSError:
        found = []
    real = os.path.realpath(path)
    for mount in known:
        if mount.number in found:
            return mount
    over = [mount for mount in known if (real + '/').startswith(mount.where.rstrip('/') + '/')]
    return max(reversed(over), key=lambda mount: len(mount.where), default=None)


def btrfs_disks(mount):
    """Names of the disks of a mounted btrfs."""
    try:
        known = {
            uuid: sorted(os.listdir(f'/sys/fs/btrfs/{uuid}/devices'))
            for uuid in os.listdir('/sys/fs/btrfs')
            if os.path.isdir(f'/sys/fs/btrfs/{uuid}/devices')
        }
    except OSError:
        known = {}
    source = os.path.basename(os.path.realpath(mount.source))
    return next((names for names in known.values() if source in names), [source] if number_of(source) else [])


def overlay_places(mount, depth):
    """(option, directory, Place or None) of the layers of an overlay; the upper one, first, has what is written."""
    found = {}
    for option in re.split(r'(?<!\\),', mount.options):
        key, _, value = option.partition('=')
        if key in ('upperdir', 'lowerdir', 'lowerdir+'):
            found.setdefault(key, []).extend(re.split(r'(?<!\\):+', value))
    for key in 'upperdir', 'lowerdir', 'lowerdir+':
        for directory in found.get(key, []):
            try:
                yield key.rstrip('+'), directory, place(directory, depth)
            except OSError:
                yield key.rstrip('+'), directory, None


def place_overlay(found, depth):
    """Adds the disks of an overlay's layers to a Place; writes go to the disk of the upper directory."""
    if depth > DEEPEST:
        return
    for key, directory, other in overlay_places(found.mount, depth + 1):
        what = 'new and changed files' if key == 'upperdir' else 'unchanged files'
        if other is None:
            found.notes.append(f'overlay: {what} are in {directory}, which is not visible here')
            continue
        known = {node.device for node in found.nodes}
        found.nodes += [node for node in other.nodes if node.device not in known]
        names = ', '.join(node.name for node in other.nodes) or 'no disk'
        found.notes.append(f'overlay: {what} are in {directory} ({names}): set limits for them there')
    if not found.notes:
        found.notes.append('overlay: its directories are not visible here')


def place_nodeless(found):
    """Adds sentences about a file system that has no disk of its own to a Place."""
    kind = found.mount.kind
    if kind == 'tmpfs':
        swaps = ', '.join(line.split()[0] for line in read('/proc/swaps')[1:]) or 'none now'
        found.notes.append(
            f'tmpfs: its data is in memory, where no limit applies; swapped pages go to the swap space ({swaps})'
        )
    elif kind in NETWORK:
        found.notes.append(
            f'{kind}: its data goes to a server or the host, and not to a disk of this machine that could have a limit'
        )
    elif kind.startswith('fuse'):
        found.notes.append(
            f'{kind}: a process serves it, whose I/O is charged to the group of that process: look at that process'
        )
    elif kind == 'zfs':
        found.notes.append(
            'zfs: its kernel threads write in the name of the root group, so limits of other groups do not apply'
        )
    else:
        found.notes.append(f'{kind}: it has no disk')


def place(path, depth=0):
    """The Place of a path; OSError if there is none."""
    about = os.stat(path)
    if stat.S_ISBLK(about.st_mode):
        return Place(path, None, [node_of(f'{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}', depth)])
    found = Place(path, mount_of(path))
    if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
        found.notes.append('this is neither a file nor a directory nor a disk: it has no data on a disk')
    elif not found.mount:
        found.notes.append('it is on no mount that is visible here')
    elif found.mount.kind == 'btrfs':
        found.nodes = [node_of(number_of(name), depth) for name in btrfs_disks(found.mount)]
        found.notes.append(
            'btrfs: limits apply on each of its disks; write() proceeds at the rate at which pages are written, not'
            ' evenly, and compressed data is written in the name of the root group'
        )
    elif found.mount.kind == 'overlay':
        place_overlay(found, depth)
    elif not found.mount.device.startswith('0:'):
        found.nodes = [node_of(found.mount.device, depth)]
        if found.mount.kind.startswith('fuse'):
            place_nodeless(found)
    else:
        place_nodeless(found)
    return found


def tree(node, indent=0):
    """Lines about a Node and those below, indented."""
    about = [node.kind]
    if not node.bears:
        about.append('takes no limit')
    if node.scheduler:
        about.append(f'scheduler {node.scheduler}')
    if node.zoned:
        about.append('zoned')
    yield f'{"  " * indent}{node.name} ({node.device}): {", ".join(about)}'
    for other in node.below:
        yield from tree(other, indent + 1)
