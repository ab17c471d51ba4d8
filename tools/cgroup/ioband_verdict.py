# SPDX-License-Identifier: GPL-2.0
"""What makes the I/O of a cgroup on a disk wait, as two samples show it, and the commands that change this."""

import dataclasses
import os
import shlex

from ioband_read import DEBUGFS, LIMITS, V1_LIMITS, read, up
from ioband_rows import brief

# a limit of which at least this part is used makes I/O wait
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
    """What is known of one cgroup on one disk.

    limits: {one of LIMITS: [[cgroup, value], the nearest first]}, all that apply; tightest: {one of LIMITS: [cgroup,
    value]}; binds: [{"key", "cgroup", "value", "by": "gate" or "rate"}], the limits that make I/O wait now, by which
    sign. Of the group and those below it: held: I/Os, throttled: part of the time, debt_ms, dirty_bytes. row: see
    ioband_rows.difference(); says: sentences.
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
    """Is the cgroup path the cgroup top, or below it?"""
    return path == top or path.startswith(top.rstrip('/') + '/')


def limits_of(groups, path, version):
    """(limits, tightest), see Verdict; groups: {path: Group}."""
    above = [path] if version == 1 else up(path)[:-1]
    limits = {
        key: [[one, groups[one].limits[key]] for one in above if one in groups and key in groups[one].limits]
        for key in LIMITS
    }
    limits = {key: found for key, found in limits.items() if found}
    # of equal limits the topmost is the tightest, since other groups share it
    return limits, {key: min(reversed(found), key=lambda one: one[1]) for key, found in limits.items()}


def by_gate(groups, limits, way):
    """Limits whose gate is "timed", that is for which a timer is set, see "gate" in ioband.rst."""
    for path in dict.fromkeys(one for key in WAYS[way] for one, _ in limits.get(key, [])):
        gate = groups[path].gates.get(way, {})
        if gate.get('gate') == 'timed' and gate['limits']:
            key = max((limit['late_ns'], one) for one, limit in gate['limits'].items())[1]
            if key in groups[path].limits:
                yield {'key': key, 'cgroup': path, 'value': groups[path].limits[key], 'by': 'gate'}


def by_rate(rows, limits, way, least):
    """The limits of which at least the part least is used, the most used one first."""
    found = [
        (rows[path][key] / value, {'key': key, 'cgroup': path, 'value': value, 'by': 'rate'})
        for key in WAYS[way]
        for path, value in limits.get(key, [])
        if path in rows
    ]
    return [one for part, one in sorted(found, key=lambda item: -item[0]) if part >= least and part]


def binding(groups, rows, limits, subtree):
    """The limits that make I/O wait, see Verdict.binds."""
    found = []
    for way, keys in WAYS.items():
        active = any(rows[path][key] for path in subtree if path in rows for key in keys)
        held = sum(groups[path].gates.get(way, {}).get('held', 0) for path in subtree)
        # a gate can be "timed" although the I/O waits for the limit of a group above: the rates are a better sign
        here = by_rate(rows, limits, way, REACHED) if active or held else []
        found += here or (list(by_gate(groups, limits, way)) if held else [])
    if not found and any(groups[path].now.get('held') for path in subtree):
        # without debugfs it is not known which limit the I/O waits for: assume the one that is used most
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
    """A limit as text, with a short form of its value."""
    return f'{key}={value} ({brief(value)}{"B/s" if key.endswith("bps") else " I/Os a second"})'


def sentences_limits(one, groups, look):
    """Sentences about the limits of a Verdict."""
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
            yield f'{text}: all of the limit is used, though no I/O is held at this moment'
    if not one.limits:
        yield (
            f'no limit of {one.cgroup}{" or a group above it" if look.where.version == 2 else ""} is set on {one.disk}'
        )
    elif not one.binds:
        yield 'no limit makes I/O wait now: the program, the disk, or something else is slow'
    if look.where.version == 1:
        above = [path for path in up(one.cgroup)[1:] if path in groups and groups[path].limits]
        if above:
            yield f'on v1 limits of groups above do not apply to this group ({", ".join(above)} has limits)'
    if one.debt_ms:
        yield (
            f'it has a debt of {one.debt_ms:.0f} ms of its limit, for reads of files, metadata or dirty pages that did not wait: '
            'its other I/O waits until the debt is repaid'
        )


def sentences(one, groups, look):
    """All sentences of a Verdict."""
    yield from sentences_limits(one, groups, look)
    if one.dirty_bytes:
        yield (
            f'{brief(one.dirty_bytes)}B of its pages are dirty or being written; it may have about what its limit'
            ' allows in a second'
        )
    row = one.row
    if row.get('share_ppm'):
        yield (
            f'weight {row.get("weight", 0)} is a share of {row["share_ppm"] / 1e4:.1f}% of {one.disk} now; the'
            f' group got {row.get("got_ppm", 0) / 1e4:.1f}% in the last second'
        )
    if row.get('share_waits'):
        yield f'it waits for its share: {row["share_waits"]} I/Os waited, each for {row["share_wait_ms"]:.2f} ms'
    if not os.access(DEBUGFS + '/block', os.R_OK | os.X_OK):
        yield (
            'debugfs cannot be read (as root: mount -t debugfs none /sys/kernel/debug): dirty pages are not shown, nor,'
            ' on v1, what waits'
        )


def unit_of(path):
    """The systemd unit that a cgroup belongs to, or ""."""
    *above, name = path.split('/')
    of_user = any(part.startswith('user@') for part in above)
    return name if name.endswith(UNITS) and not of_user and os.path.isdir('/run/systemd/system') else ''


def set_limit(where, path, node, key, value):
    """The command that sets a limit; value None: the command that removes it."""
    unit = unit_of(path)
    if unit and (where.version == 2 or key.endswith('bps')):
        return f'systemctl set-property {shlex.quote(unit)} "{PROPERTIES[key]}=/dev/{node.name} {value or "infinity"}"'
    directory = where.directory(path)
    if where.version == 2:
        return f'echo "{node.device} {key}={value or "max"}" > {shlex.quote(directory + "/io.max")}'
    file = next(file for file, name in V1_LIMITS.items() if name == key)
    return f'echo "{node.device} {value or 0}" > {shlex.quote(f"{directory}/blkio.throttle.{file}")}'


def set_weight(where, path, node, value):
    """The command that sets a weight on a disk."""
    unit = unit_of(path)
    if unit and where.version == 2:
        return f'systemctl set-property {shlex.quote(unit)} "IODeviceWeight=/dev/{node.name} {value}"'
    file = 'io.weight' if where.version == 2 else 'blkio.weight_device'
    return f'echo "{node.device} {value}" > {shlex.quote(f"{where.directory(path)}/{file}")}'


def enable(where, path):
    """Commands that give a cgroup of v2 the files of limits; none if it has them."""
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
    """The commands for a Verdict: they raise a limit or a weight, or set a first limit."""
    where = look.where
    for bind in one.binds:
        # also the limits of groups above and below that the I/O would wait for then
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
