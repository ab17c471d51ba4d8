#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tells why the I/O of a cgroup is slow, or why it is not limited (ioband), and which commands change that.

usage: ioband_explain.py [-i SECONDS] [--json] [--check] [DISK|PID|CGROUP|PATH]...

A disk is given by its name (sda), by its numbers (8:0) or by its node in /dev. A cgroup is given by its path below the
root of the hierarchy, by its directory, or by its name if no other cgroup has that name (a systemd unit). With a
process or cgroup and a path or disk together, the answer is about this process or cgroup on this disk. The tool reads
the statistics of cgroups twice, SECONDS (default: 1) apart. As root it also reads debugfs, which has more. It changes
nothing.

--check looks for settings on the whole machine that contradict each other, and prints what a bug report should contain.
Exit status: 0; 1 if --check found something wrong; 2 if there is no such disk, process, cgroup or path.
"""

import argparse
import dataclasses
import io
import json
import os
import sys
import time

from ioband_check import check, report
from ioband_disk import node_of, tree
from ioband_read import Reader, hierarchy, kernel_config, kernel_mode, pairs, read
from ioband_rows import brief, difference, is_busy, table
from ioband_target import NotFound, target_of
from ioband_verdict import EXAMPLE, commands, controllers, enable, set_limit, verdict

MOST = 8  # the most cgroups or disks that are described: the busiest ones


class Look:
    """Two samples of a machine.

    where: Hierarchy or None; mode, why: see kernel_mode(); sample: the second one, {device: {path: Group}}; result: of
    ioband_rows.difference(); rows: {device: {path: row}}.
    """

    def __init__(self, seconds):
        self.where, self.config = hierarchy(), kernel_config()
        self.mode, self.why = kernel_mode(self.where, self.config)
        self.seconds = seconds
        self.reader, self.sample, self.result, self.rows = None, {}, {}, {}

    def take(self):
        """Takes the samples."""
        if not self.where:
            return
        self.reader = Reader(self.where)
        old, before = self.reader.sample(), time.monotonic()
        time.sleep(self.seconds)
        self.sample = self.reader.sample()
        self.result = difference(old, self.sample, max(time.monotonic() - before, 1e-3))
        self.rows = {device: {row['cgroup']: row for row in disk['groups']} for device, disk in self.result.items()}

    def busiest(self, device):
        """Cgroups that do I/O on a disk or have a limit there, the busiest first, without mere parents of these."""
        rows = [row for row in self.rows.get(device, {}).values() if is_busy(row) and row['cgroup'] != '/']
        if self.where.version == 2:
            rows = [
                row
                for row in rows
                if row['limits']
                or row.get('held')
                or not any(other['cgroup'].startswith(row['cgroup'] + '/') for other in rows)
            ]
        rows.sort(key=lambda row: (-row.get('held', 0), -row['throttled'], -row['rbps'] - row['wbps']))
        return [row['cgroup'] for row in rows]

    def disks_of(self, path):
        """Disks on which a cgroup has done I/O or is limited, the busiest first."""
        found = {}
        for device, rows in self.rows.items():
            here = [
                row
                for one, row in rows.items()
                if path in (one, '/') or one.startswith(path + '/') or path.startswith(one + '/') and row['limits']
            ]
            if here:
                own = rows.get(path, {'rbps': 0, 'wbps': 0})
                found[device] = own['rbps'] + own['wbps'], any(row['limits'] for row in here)
        return sorted(found, key=lambda device: found[device], reverse=True)


def about_disk(look, node):
    """Sentences about how a disk is shared."""
    if node.scheduler == 'bfq':
        yield f'{node.name}: its scheduler is BFQ, which shares it, ' + (
            'by the same weights, as well as BFQ can; ioband has the limits'
            if look.mode == 'on'
            else 'by io.bfq.weight'
        )
    if node.zoned:
        yield f'{node.name}: it is zoned, and not shared by weight'
    if not look.reader or look.mode != 'on':
        return
    line = look.reader.device_line(node.device)
    file = f'{look.where.root}/{"io" if look.where.version == 2 else "blkio"}.ioband'
    if line.get('weights') == 'off':
        yield f'{node.name}: weights are off there; to turn them on: echo "{node.device} weights=on" > {file}'
    if line.get('depth', 'auto') != 'auto':
        yield (
            f'{node.name}: its queue depth is set to {line["depth"]}, which may be wrong; to have it measured: '
            f'echo "{node.device} depth=auto" > {file}'
        )


def about_group(look, path):
    """Sentences about a cgroup that hold on all disks."""
    where = look.where
    if where.version == 1:
        yield 'v1: a limit applies to the I/O of the group itself only, not to that of groups below it'
    elif path == '/':
        yield 'it is the root group, which cannot have limits on v2: put the process into a group of its own'
    elif enable(where, path):
        yield f'the block controller is not enabled for {path}, so that it has no io.max'
    elif not os.path.exists(where.directory(path) + '/io.max'):
        yield f'{path} has no io.max: the kernel has neither ioband nor blk-throttle'
    if where.version == 2:
        yield from about_memory(look, path)


def about_memory(look, path):
    """Sentences about a cgroup's dirty pages on v2."""
    on = 'memory' in controllers(look.where, path)
    if look.mode in ('on', 'limits'):
        text = 'with or without it, dirty pages are charged to the group that dirtied them'
    elif on:
        text = 'writeback is charged to the group that owns the inode'
    else:
        text = 'writeback is charged to the root group, and no limit applies to it'
    yield f'the memory controller is {"on" if on else "off"} beside io: {text}'
    found = pairs(line.replace(' ', '=') for line in read(look.where.directory(path) + '/memory.stat'))
    if found.get('file_dirty') or found.get('file_writeback'):
        yield (
            f'memory.stat of {path}: {brief(found.get("file_dirty", 0))}B dirty and '
            f'{brief(found.get("file_writeback", 0))}B being written, on all disks'
        )


def about_machine(look):
    """(sentences, commands) about what all limits depend on."""
    says, types = [], []
    if not look.where:
        says.append('no mounted cgroup hierarchy has the block controller, so nothing is limited')
        types.append('mount -t cgroup2 none /sys/fs/cgroup')
    if look.mode in ('off', 'absent'):
        says.append(
            'blk-throttle has the limits, if it is built in, in steps of 0.1 s; iocost or BFQ has the weights'
        )
    if look.mode == 'off':
        grub = os.path.exists('/etc/default/grub')
        types.append(
            "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&ioband=on /' /etc/default/grub && update-grub && reboot"
            if grub
            else 'reboot, with the kernel argument ioband=on'
        )
    elif look.mode == 'limits':
        says.append('iocost or BFQ has the weights: ioband has limits only (ioband=limits)')
    elif look.mode == 'unknown':
        says.append('it is not known whether ioband is on: in a container, run this tool outside of it')
    return says, types


def ask(look, targets):
    """The cgroups and Nodes that the answer is about: [(path, Node)]."""
    paths = [target.cgroup for target in targets if target.cgroup]
    nodes = {
        other.device: other
        for target in targets
        if target.place
        for node in target.place.nodes
        for other in node.all()
        if other.bears
    }
    if not paths:
        return [(path, node) for node in nodes.values() for path in look.busiest(node.device)[:MOST]]
    return [
        (path, node)
        for path in paths
        for node in list(nodes.values()) or [node_of(device) for device in look.disks_of(path)[:MOST]]
    ]


def about_place(found):
    """Sentences about the disks below a path or disk, and about the one for which a limit should be set."""
    yield from found.notes
    for node in found.nodes:
        bearer = node.bearer()
        text = f'limits belong on {bearer.name} ({bearer.device})'
        if not node.bears:
            text = (
                f'{node.name} is a partition, which can have no limit (ENODEV): '
                f'{text}, for all that is on this disk'
            )
        hidden = {other.device for other in node.hidden()}
        lower = [other.name for other in bearer.all()[1:] if other.bears and other.device not in hidden]
        if lower:
            text += f'; limits on {", ".join(lower)} below apply, too, to all that is on it'
        yield text
        if hidden:
            names = ", ".join(other.name for other in node.all() if other.device in hidden and other.bears)
            yield f'limits on {names} do not apply: kernel threads write there in the name of the root group'


def to_type(look, asked, verdicts, targets):
    """The commands for all verdicts."""
    bearers = [node.bearer() for target in targets if target.place for node in target.place.nodes]
    whose = {target.cgroup for target in targets if target.cgroup}
    for (_, node), one in zip(asked, verdicts):
        if one.binds or one.row.get('share_waits'):
            yield from commands(look, one, node)
    if any(one.binds or one.row.get('share_waits') for one in verdicts):
        return
    for path in sorted(whose or {one.cgroup for one in verdicts[:1]} or {'/GROUP'}):
        mine = [(node, one) for (_, node), one in zip(asked, verdicts) if one.cgroup == path]
        first = bearers[0] if bearers else mine[0][0] if mine else None
        if not first or any(one.limits for _, one in mine):
            continue
        if path == '/GROUP':
            yield from enable(look.where, path)[:1]
            yield set_limit(look.where, path, first, 'rbps', EXAMPLE)
        for node, one in mine:
            if node.device == first.device:
                yield from commands(look, one, node)


def explain(look, targets):
    """The whole answer, as --json prints it."""
    says, types = about_machine(look)
    asked = ask(look, targets) if look.where else []
    verdicts = [verdict(look, path, node) for path, node in asked]
    for target in targets:
        says += target.notes + (list(about_place(target.place)) if target.place else [])
        if target.cgroup:
            says += about_group(look, target.cgroup)
            if not any(path == target.cgroup for path, _ in asked):
                says.append(
                    f'{target.cgroup} has no limit and has done no I/O, on any disk: name a disk or a path beside it'
                )
        elif look.where and target.place and target.place.nodes and not asked:
            says.append(
                f'no group but the root has a limit on {target.place.nodes[0].bearer().name} or does I/O there now'
            )
    nodes = {node.device: node for _, node in asked}
    nodes.update(
        {node.bearer().device: node.bearer() for target in targets if target.place for node in target.place.nodes}
    )
    says += [text for node in nodes.values() for text in about_disk(look, node)]
    if look.where:
        types += to_type(look, asked, verdicts, targets)
    return {
        'ioband': {'mode': look.mode, 'why': look.why},
        'hierarchy': dataclasses.asdict(look.where) if look.where else None,
        'targets': [dataclasses.asdict(target) for target in targets],
        'says': says,
        'disks': [dataclasses.asdict(one) for one in verdicts],
        'type': list(dict.fromkeys(types)),
    }


def text_of(result, look, targets):
    """The answer as lines of text."""
    where = look.where
    yield f'ioband is {look.mode} ({look.why}); ' + (
        f'cgroup v{where.version} at {where.root}' if where else 'no cgroups'
    )
    for target in targets:
        yield (
            target.text
            + (f': {target.about}' if target.about else '')
            + (f': cgroup {target.cgroup}' if target.cgroup else '')
        )
        if target.place and target.place.mount:
            yield f'  on {target.place.mount.kind} at {target.place.mount.where}'
        for node in target.place.nodes if target.place else []:
            yield from (f'  {line}' for line in tree(node))
    yield from (f'- {text}' for text in result['says'])
    for one in result['disks']:
        yield ''
        yield f'{one["cgroup"]} on {one["disk"]} ({one["device"]})'
        for key in one['limits']:
            first = True
            for path, value in one['limits'][key]:
                tightest = (
                    ' <- the tightest' if [path, value] == one['tightest'][key] and len(one['limits'][key]) > 1 else ''
                )
                yield f'  {key if first else "":5} {value:>20}  {path}{tightest}'
                first = False
        yield from (f'- {text}' for text in one['says'])
    shown = {one['device'] for one in result['disks']}
    paths = {one['cgroup'] for one in result['disks']} | {
        path for one in result['disks'] for path, _ in sum(one['limits'].values(), [])
    }
    rows = {
        device: disk | {'groups': [row for row in disk['groups'] if row['cgroup'] in paths]}
        for device, disk in look.result.items()
        if device in shown
    }
    yield ''
    yield from table(rows, True)
    if result['type']:
        yield 'To type:'
        yield from (f'  {line}' for line in result['type'])
    else:
        yield f'Nothing to type. To watch: {os.path.dirname(os.path.realpath(__file__))}/ioband_top.py'


def main():
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-i', '--interval', type=float, default=1, metavar='SECONDS')
    parser.add_argument('--json', action='store_true')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('target', nargs='*', metavar='DISK|PID|CGROUP|PATH')
    args = parser.parse_args()
    if not 0 <= args.interval <= 3600:
        parser.error('SECONDS has to be from 0 to 3600')
    if not args.target and not args.check:
        parser.error('name a disk, process, cgroup or path')
    look = Look(args.interval)
    targets = [target_of(text, look.where) for text in args.target]
    look.take()
    if args.check:
        wrong = check(look, targets)
        sections = report(look)
        print(
            json.dumps({'wrong': wrong, 'report': sections}) if args.json else '\n'.join(report_text(wrong, sections))
        )
        return 1 if wrong else 0
    result = explain(look, targets)
    print(json.dumps(result) if args.json else '\n'.join(text_of(result, look, targets)))
    return 0


def report_text(wrong, sections):
    """The report as lines of text."""
    for title, lines in sections.items():
        yield f'== {title}'
        yield from lines or ['(nothing)']
    yield '== wrong' if wrong else '== nothing contradicts itself'
    yield from (f'- {text}' for text in wrong)


if __name__ == '__main__':
    for stream in sys.stdout, sys.stderr:
        # None if it is closed
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')
    try:
        sys.exit(main())
    except NotFound as trouble:
        print(f'error: {trouble}\n next: ioband_explain.py --help', file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)
