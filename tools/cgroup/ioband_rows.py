# SPDX-License-Identifier: GPL-2.0
"""The I/O of cgroups between two samples of ioband_read.Reader, and tables of it."""

from ioband_read import COUNTERS, Group, LIMITS, disk_state, name_of


def row_of(group, before, seconds):
    """The I/O of one cgroup on a disk, see difference()."""
    gone = {key: max(group.counters.get(key, 0) - before.get(key, 0), 0) for key in COUNTERS}
    limits = {key: value for gate in group.gates.values() for key, value in gate['limits'].items()}
    return {
        'cgroup': group.path,
        'limits': group.limits,
        'rbps': gone['rbytes'] / seconds,
        'wbps': gone['wbytes'] / seconds,
        'riops': gone['rios'] / seconds,
        'wiops': gone['wios'] / seconds,
        'throttled': gone['throttled_usec'] / seconds / 1e6,
        'nr_throttled': gone['nr_throttled'],
        'owed': gone['nr_owed'],
        'share_waits': gone['share_waits'],
        'share_wait_ms': gone['share_wait_usec'] / gone['share_waits'] / 1e3 if gone['share_waits'] else 0,
        'burst': {key: limit['burst'] for key, limit in limits.items()},
        'in_hand': {key: limit['in_hand'] for key, limit in limits.items()},
        **group.now,
    }


def difference(old, new, seconds):
    """The I/O of cgroups between two samples, old and new, taken so many seconds apart.

    Returns {device: {"disk", "state", "groups": [{"cgroup", "limits", "rbps", "wbps", "riops", "wiops": per second,
    "throttled": part of the time with held I/O, 0 to 2, since reads and writes are added up, "share_wait_ms": mean wait
    of an I/O that waited for its share, "burst": {limit: bytes or I/Os}, "in_hand": {limit: what is left of the burst
    now, negative if there is a debt}, ...}]}}
    """
    result = {}
    for device, groups in new.items():
        rows = [
            row_of(group, old.get(device, {}).get(path, Group(path)).counters, seconds)
            for path, group in sorted(groups.items())
        ]
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
    """The limit of which the largest part is used: (its name or "", value, used part or None)."""
    most = max(((row[key] / limit, key, limit) for key, limit in row['limits'].items() if limit), default=None)
    return ('', 0, None) if most is None else (most[1], most[2], most[0])


def is_busy(row):
    """Does a group do I/O, or has it limits, held I/O, debts or dirty pages?"""
    return (
        any(row[key] for key in LIMITS)
        or row['limits']
        or any(row.get(key) for key in ('held', 'debt_usec', 'dirty_bytes'))
    )


HEAD = (
    f'{"cgroup":32} {"read/s":>7} {"write/s":>7} {"r io/s":>7} {"w io/s":>7}  {"limit":14} {"used":>5} {"burst":>5}'
    f' {"held":>5} {"thrott":>6} {"debt ms":>7} {"dirty":>6} {"weight":>6} {"asked":>6} {"got":>6} {"wait ms":>8}'
)


def line(row):
    """The line of a group in a table."""
    key, limit, part = used(row)
    share = [f'{row[name] / 1e4:.1f}%' if row.get('share_ppm') else '' for name in ('share_ppm', 'got_ppm')]
    burst = brief(row['burst'][key]) if key in row['burst'] else ''
    dirty = brief(row['dirty_bytes'] + row['writing_bytes']) if 'dirty_bytes' in row else ''
    text = f'{key}={brief(limit)}' if key else ''
    return (
        f'{row["cgroup"]:32} {brief(row["rbps"]):>7} {brief(row["wbps"]):>7} {brief(row["riops"]):>7}'
        f' {brief(row["wiops"]):>7}  {text:14} {"" if part is None else f"{part:.0%}":>5} {burst:>5}'
        f' {row.get("held", ""):>5} {row["throttled"]:>6.0%} {row.get("debt_usec", 0) / 1e3:>7.0f} {dirty:>6}'
        f' {row.get("weight", ""):>6} {share[0]:>6} {share[1]:>6} {row["share_wait_ms"]:>8.2f}'
    )


def table(result, everything):
    """Lines of the tables of all disks; everything: with idle groups."""
    for device, disk in sorted(result.items(), key=lambda item: item[1]['disk']):
        rows = [row for row in disk['groups'] if everything or is_busy(row)]
        if not rows:
            continue
        state, about = disk['state'], ''
        if 'outstanding' in state:
            waiting = state['outstanding'] - state.get('inflight', 0)
            about = f'depth {state.get("depth")} ({state["state"]}), in flight {state.get("inflight")}, '
            about += f'waiting for their share {waiting}'
        yield f'{disk["disk"]} ({device}) {about}'.rstrip()
        yield HEAD
        yield from map(line, rows)
        yield ''
