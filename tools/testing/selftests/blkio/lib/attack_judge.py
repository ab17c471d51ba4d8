# SPDX-License-Identifier: GPL-2.0
"""Judges an attack: finds groups that got more than their limits allow.

The trace has ioband_admit and ioband_release (what a limited group was charged for, and when) and block_bio_queue
(what reached the disk, from any task). Times are ns of CLOCK_MONOTONIC, units are bytes or I/Os, rates are
units per second.

For each limit and each window [i, j] of the events that it binds, t seconds long,

    units(i..j)  <=  R*t + max(B, first) + W

where R is the largest rate in force in the window, B = max(5 ms of R, 64 KiB or one I/O), first the size of the
window's first I/O, and W one second of R where pages may be dirty or metadata passes, else none. W is no less than what
passes as a debt in one system call: its task waits afterwards. On a route without a door each task may owe a call. Where pages may be dirty that comes on top: pages that
were paid for before the window may be written at its begin, and the debt of that call be made at its end.
window_check.py has the same bound without W, and the reasons for
the allowances of how exactly a trace tells the time.
"""
import bisect
import collections
import dataclasses
import re

from window_check import ADMIT_NS, COST_NS, LATE_NS, NO_SECTOR, NSEC, calls, event_of

QUEUE = re.compile(r"-(\d+) .* (\d+)\.(\d+): block_bio_queue: (\d+),(\d+) (\w+) (\d+) \+ (\d+) \[(.*)\]")
SECTOR = 512
CALL_NS = 25_000_000    # a system call submits all its I/O within this time: one that commits a transaction of btrfs
WAIT_NS = 1_200_000_000     # a system call may wait for direct I/O of another task that a limit holds for a second at most
LARGEST = 255 * SECTOR  # bytes of an I/O of null_blk at most: it gets larger ones in several
PART = 1 << 20          # bytes that a task pays for at once, and makes of a call: IOBAND_DOOR_BYTES
CREDIT_NS = NSEC        # a task that has paid for a call submits it within this time: IOBAND_CREDIT_NS


@dataclasses.dataclass
class Event:
    """A charge of a group: op R, W or D; due_ns is when the I/O was to be dispatched; meta: the bio had REQ_META."""
    due_ns: int
    group: int          # cgroup id
    op: str
    size: int           # bytes; 0 for a piece of an I/O that has been counted
    admitted: bool      # the I/O was not held
    debt: bool = False  # the I/O passed as a debt
    meta: bool = False
    task: int = 0       # that submitted the I/O
    call: int = -1      # how many calls of the task had ended before, of those that paid or have debts; -1: none ever does
    ios: int = 1        # of a call that its task has paid for: bios
    at_ns: int = 0      # when the I/O was dispatched, which decides which limits were in force; due_ns if not given
    parts: bool = False     # a call that its task has paid for in several parts: it is dispatched when all are paid

    def __post_init__(self):
        self.at_ns = self.at_ns or self.due_ns


@dataclasses.dataclass
class Limit:
    """One key of io.max of one group. history: [(ns from which it holds, rate or None)], the first from -inf on."""
    name: str           # for people
    key: str            # rbps, wbps, riops or wiops
    groups: set         # ids of the cgroups that it binds
    history: list
    window_s: float     # W in seconds of R
    data_only: bool = False     # metadata is not held and is judged by another Limit, with a W
    least_window: int = 0       # W is no less than this, in units
    asked: list = dataclasses.field(default_factory=list)   # [Queued] of a device above whose thread does it for tasks
    pipes: int = 0              # units that tasks may write from pipes, one of each task, besides W
    buffered: bool = False      # pages may be dirty
    stacked: bool = False       # tasks meet it below another device, where no door is
    doorless: set = dataclasses.field(default_factory=set)      # tasks whose route has no door
    mixed: bool = False         # some I/O is direct, some is writeback
    dirty: list = dataclasses.field(default_factory=list)   # (ns, bytes that were dirty when limits changed)

    def sees(self, event):
        """Returns whether the limit binds the event."""
        if event.group not in self.groups or (self.data_only and event.meta):
            return False
        return event.op in ('R' if self.key[0] == 'r' else 'WD') and bool(event.size or self.key.endswith('iops'))

    def units(self, event):
        """Returns the units of one event."""
        return event.size if self.key.endswith('bps') else event.ios


@dataclasses.dataclass
class Queued:
    """A bio that reached the disk: op R, W or D, size in bytes, rwbs as in blktrace, the task that submitted it."""
    ns: int
    op: str
    size: int
    rwbs: str
    task: str           # its name
    pid: int


def parse(lines, dev, loop=None):
    """Returns ([Event], [Queued]) of the disk dev, 'M:m', each in order of time.

    loop: the device 'M:m' of a loop device on that disk, from sector 0 on: it drops REQ_META, which its own bios have.
    """
    events, queued, meta, above = [], [], collections.defaultdict(collections.deque), {}
    from_above = {}     # by id() of an event
    for line in lines:
        event = event_of(line, dev)
        if event:
            events.append(event)
            from_above[id(event)] = above.get((event.op, event.sector), False)
            continue
        m = QUEUE.search(line)
        if m and f'{m[4]}:{m[5]}' in (dev, loop) and m[6][0] in 'RWDF':
            rwbs = m[6]
            op = rwbs[1] if rwbs[0] == 'F' and len(rwbs) > 1 else rwbs[0]
            if op not in 'RWD':
                continue
            if f'{m[4]}:{m[5]}' == loop:
                above[op, int(m[7])] = 'M' in rwbs
                continue
            queued.append(Queued(int(m[2]) * NSEC + int(m[3].ljust(9, '0')), op, int(m[8]) * SECTOR, rwbs, m[9], int(m[1])))
            meta[op, int(m[7])].append('M' in rwbs)
    for event in events:
        if event.kind in ('admit', 'release') and event.sector != NO_SECTOR and meta[event.op, event.sector]:
            from_above[id(event)] |= meta[event.op, event.sector].popleft()
    ends = ends_of_calls(events)
    charges = [charge(event, from_above.get(id(event), False), ends.get(event.task))
               for event in calls(events) if event.kind not in ('hold', 'wait') and event.ios]
    return sorted(charges, key=lambda event: event.due_ns), queued


def ends_of_calls(events):
    """Returns {task: times in ns at which a call of it that paid or has debts had ended, in order}."""
    ends = collections.defaultdict(list)
    for event in events:
        if event.kind == 'return':
            ends[event.task].append(event.ns)
    return ends


def charge(event, is_meta, ends):
    """Returns the Event of a charge, of window_check's Event of a bio or a call. ends: ns, of its task's calls, or None."""
    call = bisect.bisect(ends, event.ns) if ends else -1
    late = min(event.late, CREDIT_NS if event.kind == 'call' else LATE_NS)
    return Event(event.ns - late, event.group, event.op, event.size, event.kind == 'admit', event.debt, is_meta, event.task, call,
                 event.ios, event.ns, event.kind == 'call' and event.size > PART)


def passes(event):
    """Returns whether an I/O passes that the limits have no room for: its task waits on its way out of the call."""
    return event.admitted and (event.meta or event.debt)


def call_of_task(limit, events):
    """Returns the most units that passed in one call of a task, whose events these are.

    A call may wait for direct I/O that is held, as a read of the same file does. A task that has never waited for its
    debts is a thread of the kernel, or one that ought to have waited.
    """
    most = units = last_ns = call = 0
    wait_ns = CALL_NS if any(event.call < 0 for event in events) else WAIT_NS
    for event in filter(passes, events):
        if event.call != call or event.due_ns > last_ns + wait_ns:
            units = 0
        call, last_ns = event.call, event.due_ns
        units += limit.units(event)
        most = max(most, units)
    return most


def asked_at_once(limit):
    """Returns the units of the disk that tasks asked the device above for, in the largest call of each task."""
    most, now = collections.Counter(), {}
    for bio in limit.asked:
        if bio.op not in ('R' if limit.key[0] == 'r' else 'WD'):
            continue
        units, begin = now.get(bio.pid, (0, bio.ns))
        if bio.ns > begin + CALL_NS:
            units, begin = 0, bio.ns
        units += bio.size if limit.key.endswith('bps') else max(-(-bio.size // LARGEST), 1)
        now[bio.pid] = units, begin
        most[bio.pid] = max(most[bio.pid], units)
    return sum(most.values())


def largest_call(limit, events):
    """Returns the most units that passed as metadata or as a debt at once.

    Where there is a door, that is what passed within CALL_NS. Where there is none, each task may make its debt while
    others wait for theirs. Below a stacked device its call is of PART bytes, and may wait for locks meanwhile. What is paid in
    parts is no less than a call that passes.
    """
    most = units = first = each = 0
    tasks = {event.task for event in events if passes(event)}
    for task in tasks if limit.stacked else tasks & limit.doorless:
        call = call_of_task(limit, [event for event in events if event.task == task])
        each += max(call, PART) if limit.stacked and limit.key.endswith('bps') else call
    if limit.stacked:
        return max(each, asked_at_once(limit))
    events = [event for event in events if event.task not in limit.doorless]
    most = max((limit.units(event) for event in events if event.parts), default=0)
    for event in events:
        units += limit.units(event) if passes(event) else 0
        while events[first].due_ns < event.due_ns - CALL_NS:
            units -= limit.units(events[first]) if passes(events[first]) else 0
            first += 1
        most = max(most, units)
    return most + each


def left_over(limit, begin):
    """Returns the units that were dirty when a limit began: they were paid at another rate, or not at all."""
    sizes = [size for ns, size in limit.dirty if 0 <= begin - ns < NSEC // 10]
    return max(sizes, default=0) // (1 if limit.key.endswith('bps') else 4096)


def first_units(limit, events):
    """Returns [the units of the first I/O in a window that begins with each event].

    Where W is for pages, the first direct I/O counts. It is one of the events up to the first that was held, as writes
    of pages are not held.
    """
    firsts, largest = [], 0
    for event in reversed(events):
        units = limit.units(event)
        largest = max(units, largest) if limit.mixed and event.admitted else units
        firsts.append(largest)
    return firsts[::-1]


def worst_window(limit, rate, events, before=0):
    """Returns (units by which the worst window is over its bound, its start and end in ns), None without events.

    before: units that may pass besides. The result is the running minimum of window_check.upper(), in units * NSEC,
    which is exact.
    """
    burst = max(rate * NSEC * 5 // 1000, (65536 if limit.key.endswith('bps') else 1) * NSEC)
    window = max(int(rate * limit.window_s * NSEC), limit.least_window * NSEC)
    call = largest_call(limit, events) * NSEC
    window = window + call + limit.pipes * NSEC if limit.buffered else max(window, call)
    if limit.window_s:
        window += before * NSEC
    done = floor_at = 0
    worst = floor = None
    firsts = first_units(limit, events)
    for event, first in zip(events, firsts):
        units = limit.units(event)
        early = event.due_ns - COST_NS - (ADMIT_NS if event.admitted else 0)
        start = done - rate * early + max(burst, first * NSEC) + window
        if floor is None or start < floor:
            floor, floor_at = start, event.due_ns
        done += units * NSEC
        over = done - rate * event.due_ns - floor
        if worst is None or over > worst[0]:
            worst = over, floor_at, event.due_ns
    return worst and (worst[0] / NSEC, worst[1], worst[2])


def stretches(history, rate):
    """Returns the times [(from ns, to ns or None)] during which the limit is at most rate."""
    found, begin = [], None
    for ns, value in history:
        inside = value is not None and value <= rate
        if inside and begin is None:
            begin = ns
        elif not inside and begin is not None:
            found.append((begin, ns))
            begin = None
    return found + ([(begin, None)] if begin is not None else [])


def judge(limits, events):
    """Returns a line for each limit that was exceeded, for its worst window; [] if none was."""
    faults = []
    for limit in limits:
        seen = [event for event in events if limit.sees(event)]
        for rate in sorted({value for _, value in limit.history if value is not None}):
            worst = None
            for begin, end in stretches(limit.history, rate):
                part = [event for event in seen if event.at_ns >= begin and (end is None or event.at_ns < end)]
                over = worst_window(limit, rate, part, left_over(limit, begin))
                if over and (worst is None or over[0] > worst[0]):
                    worst = over + (part,)
            if worst and worst[0] > 0:
                faults.append(describe(limit, rate, *worst))
    return faults


def describe(limit, rate, over, start, end, part):
    """Returns a line that describes a window that is over its bound."""
    inside = [event for event in part if start <= event.due_ns <= end]
    owed = sum(limit.units(event) for event in inside if event.debt)
    units = sum(limit.units(event) for event in inside)
    kind = 'direct' if not limit.window_s else 'all'
    return (f'{limit.name} {limit.key}={rate} ({kind}): {over:.0f} over the bound: {units} in {(end - start) / NSEC:.6f} s, '
            f'{owed} of them as debt, {sum(event.meta for event in inside)} metadata I/Os')


def stray_bytes(events, queued, limited):
    """Returns the bytes written that no group in limited (a set of ids) was charged for, without metadata."""
    charged = sum(event.size for event in events if event.op == 'W' and event.group in limited and not event.meta)
    return sum(bio.size for bio in queued if bio.op == 'W' and 'M' not in bio.rwbs) - charged


def percentile(values, share):
    """Returns the smallest value that is not below this share of all values."""
    ranked = sorted(values)
    return ranked[max(0, -(-int(len(ranked) * share * 1000) // 1000) - 1)] if ranked else 0


def slow(name, alone_ns, during_ns):
    """Returns a line if the p99 of a bystander's latencies is over twice its p99 alone and 1 ms, else None."""
    if not alone_ns or not during_ns:
        return f'{name}: no samples ({len(alone_ns)} alone, {len(during_ns)} during)'
    alone, during = percentile(alone_ns, 0.99), percentile(during_ns, 0.99)
    if during > 2 * alone + NSEC // 1000:
        return f'{name}: p99 {during / 1e6:.3f} ms beside the attack, {alone / 1e6:.3f} ms alone (max {max(during_ns) / 1e6:.3f} ms)'
    return None
