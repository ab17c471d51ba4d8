# SPDX-License-Identifier: GPL-2.0
"""Judges an Attack by attack_judge.py: limits, strays, latencies. Adds to its faults and notes."""
import attack_judge
import attack_plan
from attack_judge import NSEC, Limit
from attack_task import PAGE

BUFFERED = {route.name: route.buffered for route in attack_plan.ROUTES}
DOORLESS = {route.name for route in attack_plan.ROUTES if not route.door}
PIPES = {route.name for route in attack_plan.ROUTES if route.pipe}
KIB, MIB = 1 << 10, 1 << 20
PIPE = 64 * KIB         # bytes that fit a pipe


def judge(attack):
    """Adds the faults and notes of a whole run."""
    loop = attack.disk.top_dev if attack.plan.stack == 'loop' else None
    events, queued = attack_judge.parse(attack.lines, attack.disk.dev, loop)
    attack.faults += attack_judge.judge(limits_of(attack), events)
    traced = sum(bio.size for bio in queued if bio.op == 'W')
    if attack.written > traced:
        attack.faults.append(f'the disk has written {attack.written} bytes, the trace has {traced}')
    blame(attack, strays(attack, events, queued))
    for task, result in attack.done:
        during, alone = result.get('during_ns') or [], result.get('alone_ns')
        if task.route == 'bystander_reads':
            blame(attack, attack_judge.slow('direct reads of a bystander', attack.alone_ns, during))
        elif task.route == 'bystander_syncs' and during:
            p99 = attack_judge.percentile(during, 0.99)
            attack.notes.append(f"bystander's write and fsync: p99 {p99 / 1e6:.3f} ms, max {max(during) / 1e6:.3f} ms, {len(during)} of them")
        elif task.route == 'other_disk' and task.role == 'attack' and alone:
            blame(attack, attack_judge.slow('reads of another disk', alone, during))
        # below a loop device the task that asks is not known: the worker does all I/O for the group of the inode
        elif task.route == 'frame' and task.role == 'help' and during and attack.plan.stack != 'loop':
            blame(attack, victim(attack, task, max(during)))
    attack.notes.append(f'{len(events)} charges, {len(queued)} I/Os, asked ' +
                        ', '.join(f"{task.route}@{task.group}={result.get('asked')}" for task, result in attack.done))


def blame(attack, fault):
    """Adds a fault, if it is not None."""
    if fault:
        attack.faults.append(fault)


def limits_of(attack):
    """Returns the limits to compare with the trace: each with a W, those of direct I/O and of reads also without W."""
    plan, found = attack.plan, []
    # no door knows the disk of a file on btrfs
    stacked = plan.stack != 'disk' or plan.fs == 'btrfs'
    # a loop device takes what each task asks for at once
    asked = attack_judge.parse(attack.lines, attack.disk.top_dev)[1] if plan.stack == 'loop' else []
    doorless = {pid for pid, task in attack.pids.items() if task.route in DOORLESS}
    for (group, key), history in attack.history.items():
        names = [name for name in plan.groups if name == group or
                 (plan.version == 'v2' and name.startswith(group + '/'))]
        ids = {number for name in names for number in attack.ids[name]}
        tasks = [task for task in plan.tasks if task.group in names or task.other in names]
        # direct writes go through the page cache on vfat if they make a file longer, on btrfs if there is readahead
        dirty = any(BUFFERED[task.route] or plan.fs in ('vfat', 'btrfs') for task in tasks)
        mixed = dirty and not all(BUFFERED[task.route] for task in tasks)
        if key[0] == 'r' or not dirty:
            found.append(Limit(group, key, ids, history, 0, data_only=plan.fs != 'raw', stacked=stacked, doorless=doorless, asked=asked))
        left = [(ns, sum(pages[number] for number in ids)) for ns, pages in attack.dirty]
        found.append(Limit(group, key, ids, history, 1, dirty=left, buffered=dirty, mixed=mixed, stacked=stacked, doorless=doorless, asked=asked,
                           pipes=sum(task.route in PIPES for task in tasks) * PIPE if key == 'wbps' else 0,
                           least_window=least_window(plan, key, history) if dirty else 0))
    return found


def least_window(plan, key, history):
    """Returns the least W of buffered writes, in units of the key.

    A group whose limit is in I/Os may have a second's worth of I/Os of 64 KiB dirty, and write them in I/Os of a
    page each; 1 MiB where the limit is below a stacked device: ioband.rst, "Buffered writes". A call that makes a file
    of vfat longer fills it with zeros; its task pays for them one by one, and all of them may be written at once.
    """
    if plan.fs == 'vfat' and key == 'wbps' and any(task.route in ('mmap', 'msync') for task in plan.tasks):
        return attack_plan.FILE_BYTES
    if key == 'wiops':
        return 64 * KIB // PAGE * max((rate for _, rate in history if rate), default=0)
    return MIB if plan.stack != 'disk' or plan.fs == 'btrfs' else 0


def strays(attack, events, queued):
    """Returns a line if the disk got more bytes than limited groups were charged for; not if other groups wrote, too.

    On a raw disk that is exact. A file system may write as much as one second of the largest rate for itself without
    saying REQ_META, which a loop device drops; f2fs and vfat never say it of nodes and of the FAT: 1 MiB more.
    """
    plan = attack.plan
    tasks = [task for task in plan.tasks if 'w' in task.route_ops()]
    if not tasks or plan.syncing_bystander or not all(plan.limited(task.group, 'w') for task in tasks):
        return None
    if any(rate is None for history in attack.history.values() for _, rate in history):
        return None
    limited = {number for name, numbers in attack.ids.items() if name != 'by' for number in numbers}
    stray = attack_judge.stray_bytes(events, queued, limited)
    if plan.stack == 'loop':
        _, above = attack_judge.parse(attack.lines, attack.disk.top_dev)
        stray -= sum(bio.size for bio in above if bio.op == 'W' and 'M' in bio.rwbs)
    rates = [rate for (_, key), history in attack.history.items() if key == 'wbps' for _, rate in history]
    allowed = 0 if plan.fs == 'raw' else max(rates, default=MIB) + (MIB if plan.fs in ('f2fs', 'vfat') else 0)
    if stray > allowed:
        return f'{stray} bytes reached the disk that no group with a limit was charged for, at most {allowed} may'
    return None


def victim(attack, task, wait_ns):
    """Returns a line if an honest write of a group waits too long because other groups have made debts for it.

    The write may wait for 1 s of debt, a window of others' pages, and its own cost.

    The window is a second's worth of bytes, or of I/Os of 64 KiB that write a page each, as in least_window(). If another
    task of its own group attacks, the write waits for what that has in line as well.
    """
    if any(other.role == 'attack' and other.group == task.group for other in attack.plan.tasks):
        return None
    costs = [PAGE / rate if key.endswith('bps') else 1 / rate
             for name in attack.plan.limited(task.group, 'w') for key, rate in attack.plan.limits[name].items()]
    in_ios = any(key == 'wiops' for name in attack.plan.limited(task.group, 'w') for key in attack.plan.limits[name])
    bound_s = 1 + (64 * KIB // PAGE if in_ios else 1) + 2 * max(costs, default=0)
    if wait_ns > bound_s * NSEC:
        return f'an honest 4 KiB write of {task.group} waited {wait_ns / NSEC:.3f} s, at most {bound_s:.3f} s is due'
    return None
