# SPDX-License-Identifier: GPL-2.0
"""ioband_explain.py --check: settings of this machine that contradict each other, and the contents of a bug report."""

import os

from ioband_disk import node_of
from ioband_read import DEBUGFS, MODES, arguments, mounts, name_of, number, read, word
from ioband_verdict import controllers, is_below

LINES = 40  # the most lines of a section of the report
CONFIG = (
    'BLK_CGROUP',
    'BLK_DEV_THROTTLING',
    'BLK_DEBUG',
    'BFQ',
    'IOSCHED_',
    'MQ_IOSCHED',
    'HIGH_RES_TIMERS',
    'HZ=',
    'MEMCG=',
    'CGROUP_',
    'DEBUG_FS=',
    'PREEMPT_NONE',
    'PREEMPT_RT',
    'SMP=',
)
MOUNTS = ('cgroup', 'cgroup2', 'debugfs', 'tracefs', 'overlay', 'btrfs')


def check_kernel(look):
    """Sentences about wrong kernel arguments and hierarchies."""
    for text in arguments():
        if text not in MODES:
            yield f'kernel argument ioband={text}: it is none of {", ".join(MODES)}, and has no effect'
    if look.mode == 'absent' and arguments():
        yield f'kernel argument ioband={arguments()[-1]}: this kernel has no ioband ({look.why})'
    limited = sorted({path for groups in look.sample.values() for path, group in groups.items() if group.limits})
    if look.mode in ('off', 'absent') and limited:
        yield (
            f'there are limits ({", ".join(limited[:5])}), and ioband is {look.mode} ({look.why}): blk-throttle has'
            ' them'
        )
    if not look.where:
        yield 'no mounted cgroup hierarchy has the block controller: nothing is limited'
    elif look.where.version == 2 and 'io' not in controllers(look.where, '/', 'subtree_control'):
        yield f'the block controller is enabled for no group: echo +io > {look.where.root}/cgroup.subtree_control'


def in_use():
    """Numbers of disks that hold a mounted file system or swap, and of the disks below these."""
    devices = {mount.device for mount in mounts()}
    for mount in mounts():
        if mount.kind == 'btrfs' and os.path.exists(mount.source):
            devices.add(word(f'/sys/class/block/{os.path.basename(os.path.realpath(mount.source))}/dev'))
    for line in read('/proc/swaps')[1:]:
        devices.add(word(f'/sys/class/block/{os.path.basename(line.split()[0])}/dev'))
    return {
        other.device
        for device in devices
        if device and os.path.exists(f'/sys/dev/block/{device}')
        for other in node_of(device).all()
    }


def stacks():
    """Nodes of all disks that no other disk is stacked on."""
    try:
        names = sorted(os.listdir('/sys/class/block'))
    except OSError:
        return []
    return [
        node_of(word(f'/sys/class/block/{name}/dev'))
        for name in names
        if word(f'/sys/class/block/{name}/dev') and not any_holder(name)
    ]


def any_holder(name):
    """Is another disk stacked on this one?"""
    try:
        return bool(os.listdir(f'/sys/class/block/{name}/holders'))
    except OSError:
        return False


def processes(where, path):
    """Is any process in a cgroup or, on v2, below it?"""
    if where.version == 2:
        return 'populated 1' in read(where.directory(path) + '/cgroup.events')
    return bool(read(where.directory(path) + '/cgroup.procs'))


def check_limit(look, device, path, group, facts):
    """Sentences about a cgroup's wrong limits on a disk; facts: (in_use(), hidden disks {number: name above})."""
    name, limits = name_of(device), ' '.join(f'{key}={value}' for key, value in group.limits.items())
    used, hidden = facts
    below = [one for one in look.sample[device] if is_below(one, path)] if look.where.version == 2 else [path]
    some = any(look.sample[device][one].counters.get(key) for one in below for key in ('rios', 'wios'))
    if device in hidden:
        yield (
            f'{path} has {limits} on {name}: {hidden[device]} above it writes there in the name of the root group; '
            f'set the limit on {hidden[device]}'
        )
    elif not some and device not in used and not any_holder(name):
        yield (
            f'{path} has {limits} on {name}: this disk is not in use, nothing is mounted from it, and the group has'
            ' done no I/O there'
        )
    if look.where.version == 1 and path != '/' and not processes(look.where, path):
        inner = [
            entry.name for entry in entries(look.where.directory(path)) if processes(look.where, f'{path}/{entry.name}')
        ]
        if inner:
            yield (
                f'{path} has {limits} on {name}: on v1 this does not apply to groups below it, and all processes are in'
                f' these ({", ".join(inner[:5])})'
            )


def entries(directory):
    """The directories in a directory, sorted."""
    try:
        with os.scandir(directory) as found:
            return sorted((entry for entry in found if entry.is_dir()), key=lambda entry: entry.name)
    except OSError:
        return []


def check_weights(look):
    """Sentences about wrong weights for single disks."""
    given = {}
    for path in look.reader.ids.values():
        for device in look.reader.settings(path):
            if device != 'default':
                given.setdefault(device, []).append(path)
    for device, paths in sorted(given.items()):
        names = ', '.join(sorted(paths)[:5])
        if look.reader.device_line(device).get('weights') == 'off':
            yield f'{names} have a weight on {name_of(device)}, and weights are off there'
        if node_of(device).zoned:
            yield f'{names} have a weight on {name_of(device)}, which is zoned and not shared by weight'


def check_targets(targets):
    """Sentences about disks on the command line that cannot have limits."""
    for target in targets:
        for node in target.place.nodes if target.place and not target.place.mount else []:
            if not node.bears:
                yield (
                    f'{node.name} ({node.device}) is a partition and takes no limit: use {node.bearer().name}'
                    f' ({node.bearer().device})'
                )


def check(look, targets):
    """Sentences about all that is wrong."""
    wrong = [*check_kernel(look), *check_targets(targets)]
    if not look.reader:
        return wrong
    hidden = {
        other.device: node.name for node in stacks() for upper in node.all() if upper.copies for other in upper.hidden()
    }
    facts = in_use(), hidden
    for device, groups in sorted(look.sample.items()):
        for path, group in sorted(groups.items()):
            if group.limits:
                wrong += check_limit(look, device, path, group, facts)
    if look.mode == 'on':
        wrong += check_weights(look)
    return wrong


def cut(lines):
    """The lines, shortened so that the report stays readable."""
    lines = [line if len(line) <= 300 else line[:300] + ' ...' for line in lines]
    return lines if len(lines) <= LINES else lines[:LINES] + [f'... and {len(lines) - LINES} more lines']


def file_lines(path):
    """The lines of a file, or the reason why it cannot be read."""
    try:
        with open(path, encoding='utf-8', errors='replace') as file:
            return cut(file.read().splitlines())
    except OSError as error:
        return [f'({error.strerror})']


def disk_lines():
    """A line for each disk that has a size."""
    for name in sorted(entry.name for entry in entries('/sys/block')):
        queue = f'/sys/block/{name}/queue'
        if word(f'/sys/block/{name}/size') in ('', '0'):
            continue
        node = node_of(word(f'/sys/block/{name}/dev'))
        below = ' '.join(other.name for other in node.all()[1:])
        facts = ' '.join(
            f'{file}={word(f"{queue}/{file}")}'
            for file in ('nr_requests', 'max_sectors_kb', 'rotational', 'nomerges', 'write_cache', 'zoned')
            if word(f'{queue}/{file}')
        )
        yield (
            f'{name} {node.device} {node.kind}, scheduler {node.scheduler or "none"},'
            f' {number(word(f"/sys/block/{name}/size")) // 2048} MiB {facts}'
            + (f', on {below}' if below else '')
        )


def rule_lines(look):
    """Limits, weights and settings of disks."""
    for device, groups in sorted(look.sample.items()):
        for path, group in sorted(groups.items()):
            if group.limits:
                yield f'{path} {name_of(device)} {device} ' + ' '.join(
                    f'{key}={value}' for key, value in group.limits.items()
                )
    usual = {'default': 100 if look.where.version == 2 else 500}
    for path in sorted(look.reader.ids.values()):
        given = look.reader.settings(path)
        if given and given != usual:
            yield f'{path} weight ' + ' '.join(f'{key}={value}' for key, value in given.items())
    kind = 'io' if look.where.version == 2 else 'blkio'
    yield from (f'{kind}.ioband: {line}' for line in read(f'{look.where.root}/{kind}.ioband'))


def report(look):
    """{title: lines} of a bug report."""
    about = os.uname()
    config = sorted(
        f'{name}={value}'
        for name, value in (look.config or {}).items()
        if f'{name}='.startswith(tuple(f'CONFIG_{part}' for part in CONFIG))
    )
    found = {
        'kernel': [
            f'{about.sysname} {about.release} {about.version} {about.machine}',
            f'ioband: {look.mode} ({look.why})',
        ],
        'kernel arguments': read('/proc/cmdline'),
        'configuration': cut(config),
        'mounts': cut(
            [
                f'{mount.where}: {mount.kind} {mount.source} {mount.device} {mount.options}'
                for mount in mounts()
                if mount.kind in MOUNTS or not mount.device.startswith('0:')
            ]
        ),
        'disks': cut(list(disk_lines())),
    }
    if look.where:
        found['hierarchy'] = [f'v{look.where.version} at {look.where.root}, from {look.where.base} on']
        for file in ('controllers', 'subtree_control') if look.where.version == 2 else ():
            found['hierarchy'].append(f'cgroup.{file}: {" ".join(controllers(look.where, "/", file))}')
        found['limits and weights'] = cut(list(rule_lines(look)))
        file = 'io.stat' if look.where.version == 2 else 'blkio.throttle.io_serviced'
        found[file] = cut(
            [
                f'{path} {line}'
                for path in sorted(look.reader.ids.values())
                for line in read(f'{look.where.directory(path)}/{file}')
                if not line.startswith('Total')
            ]
        )
    debug = [f'{DEBUGFS}/block/{entry.name}/ioband' for entry in entries('/sys/block')]
    for directory in debug:
        for name in 'share', 'groups':
            if os.path.exists(f'{directory}/{name}'):
                found[f'{directory}/{name}'] = file_lines(f'{directory}/{name}')
    found[DEBUGFS + '/dirty_owner'] = file_lines(DEBUGFS + '/dirty_owner')
    return found
