#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check a trace of ioband releases against the contract of a cap.

The trace is text with ioband_admit and ioband_release lines (what left, and
when) and, for the lower side, ioband_hold lines. Times are ns of
CLOCK_MONOTONIC, units are bytes or I/Os, rates units per second.

Upper side: in any window of t seconds at most R*t + max(B, first) units leave,
where first is the size of the window's first I/O. With P the units up to and
including an I/O, the window from I/O i to I/O j holds P[j] - P[i-1], so

    P[j] - R*t[j]  <=  min over i <= j of  P[i-1] - R*t[i] + max(B, size[i])

which a running minimum decides in one pass. A timer is never quite on time and
must not cost the group rate, so a release counts as of when it was due, "late"
before the trace's time; how late that may be is bounded too. What is allowed
beyond that is how exactly the trace tells t: see ADMIT_NS and COST_NS.
A task that waits before it submits direct I/O pays for all of its call: the bios
of that call are one I/O, which is due when the task has paid.

Lower side (":busy"): while something waits for the limit, it gives R. From one
release to a later one of the same busy time, t seconds apart, no less than
R*t less 0.02% leaves, or what CPUs have in reserve. A small I/O may overtake a
larger one for which up to a burst has been saved; that is still in hand then.
"""
import argparse
import collections
import dataclasses
import re
import sys

NSEC = 10**9
# In virtual time every reading of the clock takes 256 ns. The decision to admit
# reads it for each limit on the way and once more for the trace, so what the
# trace says is up to 8 readings late.
ADMIT_NS = 8 * 256
# Costs are rounded to ns, once on a CPU and once for those that wait.
COST_NS = 2
# Releases within 10 us of each other share a timer; then the clock is read. After four at once the timer is set 50 us
# late, so that they are dispatched in groups.
LATE_NS = 60000
EVENT = re.compile(r"-(\d+) .* ioband_(admit|release|hold|return): dev=(\d+),(\d+) cg=(\d+) op=(\w) "
                   r"sector=(\d+) bytes=(\d+) ns=(-?\d+)(?:.* (?:late|debt)=(\d+))?")
NO_SECTOR = 2**64 - 1   # of a task that waits before it submits


@dataclasses.dataclass
class Event:
    """What happened to an I/O of a group: admit, release, hold; wait, call for one that its task has paid for."""
    task: int
    kind: str
    group: int      # cgroup id
    op: str         # R, W or D
    sector: int
    size: int       # bytes
    ns: int
    late: int       # ns after it was due
    ios: int = 1
    part: int = 0   # bytes that a task pays for at once, of a call
    debt: bool = False

    def is_of(self, event):
        """Does the event's group pay for this call? A task may have moved since."""
        return (self.group, self.op) == (event.group, event.op)


class Limit:
    """DIR:UNIT:RATE:CG[,CG...][:busy] - one cap and the groups that it binds."""

    def __init__(self, text):
        parts = text.split(":")
        self.text = text
        self.ops = {"r": "R", "w": "WD"}[parts[0]]
        self.bytes = parts[1] == "bytes"
        self.rate = int(parts[2])
        self.groups = {int(cg) for cg in parts[3].split(",")}
        self.busy = parts[4:] == ["busy"]
        least = 65536 if self.bytes else 1
        # everything is kept in units * NSEC, which is exact
        self.burst = max(self.rate * NSEC * 5 // 1000, least * NSEC)

    def select(self, events):
        """The events that this limit sees: (ns when due, kind, units, ns late, units as they wait)."""
        for event in events:
            if event.group not in self.groups or event.op not in self.ops:
                continue
            # a piece of an I/O that has been counted is none to a limit of bytes
            if event.size or not self.bytes:
                units = event.size if self.bytes else event.ios
                waits = units if event.kind != "call" else event.part if self.bytes else 1
                yield event.ns - event.late, event.kind, units, event.late, waits


def event_of(line, dev):
    """The Event of a line of the trace, None if it has none of the device."""
    m = EVENT.search(line)
    if not m or f"{m[3]}:{m[4]}" != dev:
        return None
    last = int(m[10] or 0)
    return Event(int(m[1]), m[2], int(m[5]), m[6], int(m[7]), int(m[8]), int(m[9]), last if m[2] == "release" else 0,
                 debt=m[2] == "admit" and last > 0)


def parse(path, dev):
    """[Event] of the device's I/Os, in order of time."""
    with open(path, encoding="ascii", errors="replace") as trace:
        events = [event for event in (event_of(line, dev) for line in trace) if event]
    events.sort(key=lambda event: event.ns)
    return calls(events)


def calls(events):
    """The events, with the bios of each call that a task has paid for as one.

    Tasks of a group wait in one line, so that they have paid in the order in which they began to wait. A call ends
    when what is left is given back; what passes as a debt meanwhile is not of the call.
    """
    found = []
    line = collections.defaultdict(collections.deque)
    paid = {}       # the call of each task that has paid
    for event in events:
        kind, group, task = event.kind, (event.group, event.op), event.task
        if kind == "return":
            paid.pop(task, None)
        elif event.sector == NO_SECTOR and kind == "hold":
            line[group].append((task, event.size))
            found.append(dataclasses.replace(event, kind="wait"))
        elif event.sector == NO_SECTOR:
            # it may have begun to wait before the trace began
            task, part = line[group].popleft() if line[group] else (0, 0)
            paid[task] = dataclasses.replace(event, kind="call", ios=0, part=part)
            found.append(paid[task])
        elif kind == "admit" and not event.debt and task in paid and paid[task].is_of(event):
            call = paid[task]
            if not call.ios:
                call.size, call.ns, call.late = 0, event.ns, event.ns - (call.ns - call.late)
            call.size += event.size
            call.ios += 1
        else:
            found.append(event)
    return found


def upper(limit, events, as_traced=False):
    """(Units by which the worst window is over its bound or, if negative, under; its start and end in ns).

    A release counts when it was due or, as_traced, when it really left.
    """
    done = floor_at = 0
    worst = floor = None
    for ns, kind, units, late, _ in limit.select(events):
        if kind in ("hold", "wait"):
            continue
        if as_traced:
            ns += late
        early = ns - COST_NS - (ADMIT_NS if kind == "admit" else 0)
        start = done - limit.rate * early + max(limit.burst, units * NSEC)
        if floor is None or start < floor:
            floor, floor_at = start, ns
        done += units * NSEC
        over = done - limit.rate * ns - floor
        if worst is None or over > worst[0]:
            worst = over, floor_at, ns
    assert worst, "the limit saw no I/O"
    return worst[0] / NSEC, worst[1], worst[2]


def lower(limit, events):
    """(Releases in busy times, units by which the worst window is under)."""
    waiting = []
    done = releases = 0
    best = None
    worst = 0
    for ns, kind, units, _, waits in limit.select(events):
        if kind in ("hold", "wait"):
            waiting.append(waits)
            continue
        done += units * NSEC
        if kind == "admit":
            continue
        # R*t less 0.02% up to now, compared with the same at an earlier release
        lag = limit.rate * ns * 9998 // 10000 - done
        waiting.remove(waits)
        saved = min(max(waiting, default=0) * NSEC, limit.burst)
        if saved <= units * NSEC:
            saved = 0
        if best is not None:
            releases += 1
            worst = max(worst, lag - best - saved - limit.rate * COST_NS)
        if not waiting:
            best = None
        elif best is None or lag < best:
            best = lag
    return releases, worst / NSEC


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--dev", required=True, metavar="M:m")
    parser.add_argument("--least", type=int, default=20, metavar="N",
                        help="fail if a limit saw fewer I/Os than this (%(default)s)")
    parser.add_argument("limit", nargs="+", type=Limit,
                        help="r|w:bytes|ios:RATE:CGROUP_ID[,CGROUP_ID...][:busy]")
    args = parser.parse_args()
    events = parse(args.trace, args.dev)
    failed = False
    for limit in args.limit:
        seen = [ns for ns, kind, *_ in limit.select(events) if kind not in ("hold", "wait")]
        if len(seen) < max(args.least, 1):
            print(f"{limit.text}: only {len(seen)} I/Os in the trace")
            failed = True
            continue
        over, start, end = upper(limit, events)
        print(f"{limit.text}: {len(seen)} I/Os in {(seen[-1] - seen[0]) / NSEC:.3f} s, "
              f"worst window {over:+.3f} over its bound, from {start} to {end} ns")
        failed |= over > 0
        late = upper(limit, events, as_traced=True)[0] * NSEC / limit.rate
        print(f"{limit.text}: {late:+.0f} ns of R, counting I/Os as they left")
        failed |= late > LATE_NS
        if limit.busy:
            releases, under = lower(limit, events)
            print(f"{limit.text}: {releases} releases while others waited, worst window "
                  f"{under:.3f} under R*t")
            failed |= under > 0 or releases < args.least // 2
    return failed


if __name__ == "__main__":
    sys.exit(main())
