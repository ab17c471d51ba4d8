# SPDX-License-Identifier: GPL-2.0
"""What holds the I/O of a cgroup on a disk, of two samples, and the commands that change it."""

import dataclasses
import os
import shlex

from ioband_read import DEBUGFS, LIMITS, V1_LIMITS, read, up
from ioband_rows import brief

# from this part of a limit on it is what binds
REACHED = 0.95
PROPERTIES = {
    'rbps': 'IOReadBandwidthMax',
    'wbps': 'IOWriteBandwidthMax',
    'riops': 'IOReadIOPSMax',
    'wiops': 'IOWriteIOPSMax',
}
WAYS = {'read': ('rbps', 'riops'), 'write': ('wbps', 'wiops')}
UNITS = ('.service', '.scope', '.slice', '.socket', '.mount', '.swap')
EXAMPLE = 10 * 1024**2  # bytes a second


@dataclasses.dataclass
class Verdict:
    """Of one cgroup on one disk.

    limits: {one of LIMITS: [[cgroup, value], the nearest first]}, tightest: {one of LIMITS: [cgroup, value]}; binds:
    [{"key", "cgroup", "value", "by": "gate" or "rate"}]; held: I/Os, throttled: part of the time, debt_ms, dirty_bytes,
    of the group and those below it; row: see ioband_rows.difference(); says: sentences.
    """

    cgroup: str
    device: str
    disk: str
    limits: dict
    tightest: dict
    binds: list
    held: int
    throttled: float
    debt_ms: float
    dirty_bytes: int
    row: dict
    says: list = dataclasses.field(default_factory=list)


def is_below(path, top):
    """Is a cgroup another, or below it?"""
    return path == top or path.startswith(top.rstrip('/') + '/')


def limits_of(groups, path, version):
    """(limits, tightest), see Verdict; groups: {path: Group}."""
    above = [path] if version == 1 else up(path)[:-1]
    limits = {
        key: [[one, groups[one].limits[key]] for one in above if one in groups and key in groups[one].limits]
        for key in LIMITS
    }
    limits = {key: found for key, found in limits.items() if found}
    # of equal ones the topmost, which others use too
    return limits, {key: min(reversed(found), key=lambda one: one[1]) for key, found in limits.items()}


def by_gate(groups, limits, way):
    """The limit that a timer is set for, see ioband.rst, "gate"."""
    for path in dict.fromkeys(one for key in WAYS[way] for one, _ in limits.get(key, [])):
        gate = groups[path].gates.get(way, {})
        if gate.get('gate') == 'timed' and gate['limits']:
            key = max((limit['late_ns'], one) for one, limit in gate['limits'].items())[1]
            if key in groups[path].limits:
                yield {'key': key, 'cgroup': path, 'value': groups[path].limits[key], 'by': 'gate'}


def by_rate(rows, limits, way, least):
    """The limits of which a part of least or more is used, the tightest first."""
    found = [
        (rows[path][key] / value, {'key': key, 'cgroup': path, 'value': value, 'by': 'rate'})
        for key in WAYS[way]
        for path, value in limits.get(key, [])
        if path in rows
    ]
    return [one for part, one in sorted(found, key=lambda item: -item[0]) if part >= least and part]


def binding(groups, rows, limits, subtree):
    """See Verdict.binds."""
    found = []
    for way, keys in WAYS.items():
        active = any(rows[path][key] for path in subtree if path in rows for key in keys)
        held = sum(groups[path].gates.get(way, {}).get('held', 0) for path in subtree)
        # a group's gate is set while its own limit lets the next go, also if one above is what all of them wait for
        here = by_rate(rows, limits, way, REACHED) if active or held else []
        found += here or (list(by_gate(groups, limits, way)) if held else [])
    if not found and any(groups[path].now.get('held') for path in subtree):
        # without debugfs nobody says which: that of which most is used
        found = [one for way in WAYS for one in by_rate(rows, limits, way, 0)][:1]
    return found


def verdict(look, path, node):
    """The Verdict of a cgroup on a Node of ioband_disk."""
    groups, rows = look.sample.get(node.device, {}), look.rows.get(node.device, {})
    subtree = (
        [one for one in groups if is_below(one, path)] if look.where.version == 2 else [path] if path in groups else []
    )
    limits, tightest = limits_of(groups, path, look.where.version)
    found = Verdict(
        path,
        node.device,
        node.name,
        limits,
        tightest,
        binding(groups, rows, limits, subtree),
        sum(groups[one].now.get('held', 0) for one in subtree),
        max((rows[one]['throttled'] for one in subtree if one in rows), default=0),
        max((groups[one].now.get('debt_usec', 0) for one in subtree), default=0) / 1e3,
        sum(groups[one].now.get('dirty_bytes', 0) + groups[one].now.get('writing_bytes', 0) for one in subtree),
        rows.get(path, {}),
    )
    found.says = list(sentences(found, groups, look))
    return found


def limit_text(key, value):
    """A limit for people."""
    return f'{key}={value} ({brief(value)}{"B/s" if key.endswith("bps") else " I/Os a second"})'


def sentences_limits(one, groups, look):
    """About limits."""
    for bind in one.binds:
        way = 'reads' if bind['key'] in WAYS['read'] else 'writes'
        text = f'{way} wait for {limit_text(bind["key"], bind["value"])} of {bind["cgroup"]}'
        if one.held:
            yield f'{text}: {one.held} I/Os are held now'
        elif way == 'writes':
            yield (
                f'{text}: no I/O is held, so tasks wait in write(), before they dirty pages, or submit no more than the'
                ' limit'
            )
        else:
            yield f'{text}: all of it is used, though no I/O is held at this moment'
    if not one.limits:
        yield (
            f'no limit of {one.cgroup}{" or a group above it" if look.where.version == 2 else ""} is set on {one.disk}'
        )
    elif not one.binds:
        yield 'no limit binds now: what is slow is the program, the disk, or something else'
    if look.where.version == 1:
        above = [path for path in up(one.cgroup)[1:] if path in groups and groups[path].limits]
        if above:
            yield f'on v1 limits of groups above do not bind here ({", ".join(above)} has some)'
    if one.debt_ms:
        yield (
            f'it owes {one.debt_ms:.0f} ms of its limit, for metadata, swap or dirty pages that were written at once: '
            'other I/O waits until this is repaid'
        )


def sentences(one, groups, look):
    """What a Verdict says."""
    yield from sentences_limits(one, groups, look)
    if one.dirty_bytes:
        yield (
            f'{brief(one.dirty_bytes)}B of its pages are dirty or being written; a group may have about a second of its'
            ' limit'
        )
    row = one.row
    if row.get('share_ppm'):
        yield (
            f'weight {row.get("weight", 0)} asks for {row["share_ppm"] / 1e4:.1f}% of {one.disk} now, and it got'
            f' {row.get("got_ppm", 0) / 1e4:.1f}% in the last second'
        )
    if row.get('share_waits'):
        yield f'it waits for its share: {row["share_waits"]} I/Os did, each for {row["share_wait_ms"]:.2f} ms'
    if not os.access(DEBUGFS + '/block', os.R_OK | os.X_OK):
        yield (
            'debugfs cannot be read (as root: mount -t debugfs none /sys/kernel/debug); it knows of dirty pages, and on'
            ' v1 of what waits'
        )


def unit_of(path):
    """The systemd unit that a cgroup is of, or ""."""
    *above, name = path.split('/')
    of_user = any(part.startswith('user@') for part in above)
    return name if name.endswith(UNITS) and not of_user and os.path.isdir('/run/systemd/system') else ''


def set_limit(where, path, node, key, value):
    """The command for a limit; value None: for no limit."""
    unit = unit_of(path)
    if unit and (where.version == 2 or key.endswith('bps')):
        return f'systemctl set-property {shlex.quote(unit)} "{PROPERTIES[key]}=/dev/{node.name} {value or "infinity"}"'
    directory = where.directory(path)
    if where.version == 2:
        return f'echo "{node.device} {key}={value or "max"}" > {shlex.quote(directory + "/io.max")}'
    file = next(file for file, name in V1_LIMITS.items() if name == key)
    return f'echo "{node.device} {value or 0}" > {shlex.quote(f"{directory}/blkio.throttle.{file}")}'


def set_weight(where, path, node, value):
    """The command for a weight on a disk."""
    unit = unit_of(path)
    if unit and where.version == 2:
        return f'systemctl set-property {shlex.quote(unit)} "IODeviceWeight=/dev/{node.name} {value}"'
    file = 'io.weight' if where.version == 2 else 'blkio.weight_device'
    return f'echo "{node.device} {value}" > {shlex.quote(f"{where.directory(path)}/{file}")}'


def enable(where, path):
    """Commands that give a cgroup of v2 the files of limits, none if it has them."""
    if where.version == 1 or path == '/' or os.path.exists(where.directory(path) + '/io.max'):
        return []
    if unit_of(path):
        return [f'systemctl set-property {shlex.quote(unit_of(path))} IOAccounting=yes']
    missing = [one for one in reversed(up(path)[1:]) if 'io' not in controllers(where, one, 'subtree_control')]
    return [f'echo +io > {shlex.quote(where.directory(one) + "/cgroup.subtree_control")}' for one in missing]


def controllers(where, path, file='controllers'):
    """Names in cgroup.controllers, or in cgroup.subtree_control."""
    return ' '.join(read(f'{where.directory(path)}/cgroup.{file}')).split()


def commands(look, one, node):
    """What to type about a Verdict."""
    where = look.where
    for bind in one.binds:
        # those above and below that would hold it then
        yield from (
            set_limit(where, path, node, bind['key'], 2 * bind['value'])
            for path, value in one.limits[bind['key']]
            if value < 2 * bind['value']
        )
    if one.binds:
        return
    if one.row.get('share_waits') and look.mode == 'on':
        most = 10000 if where.version == 2 else 1000
        yield set_weight(where, one.cgroup, node, min(2 * one.row.get('weight', 100), most))
    elif not one.limits and one.cgroup == '/' and where.version == 2:
        yield f'mkdir {shlex.quote(where.directory("/limited"))}'
        yield set_limit(where, '/limited', node, 'rbps', EXAMPLE)
    elif not one.limits:
        yield from enable(where, one.cgroup)
        yield set_limit(where, one.cgroup, node, 'rbps', EXAMPLE)
        yield set_limit(where, one.cgroup, node, 'wbps', EXAMPLE)
