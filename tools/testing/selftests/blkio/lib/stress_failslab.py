#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes each allocation of each operation on a group and a disk fail, one after the other.

/proc/thread-self/fail-nth makes the Nth of the next allocations of this thread fail. For each operation N counts up
until no allocation is left to fail. Each time the operation must either end with ENOMEM and have changed nothing, or
succeed without the memory; and without a failure it must work. Prints a line per operation and TAP points.
"""
import argparse
import errno
import os
import sys

from stress_failslab_host import DEBUG, Host
from stress_files import get, put

FREE = ('a write under a cap', 'a write by weight', 'a weight for all disks')     # allocates nothing, or only in interrupt context
LIMIT = 1000    # an operation with more allocations than this does not end


class Injector:
    """fail-nth of this thread."""

    def __init__(self):
        for name in ('failslab', 'fail_page_alloc'):
            for key, value in (('probability', '0'), ('verbose', '0'), ('ignore-gfp-wait', '0')):
                put(f'{DEBUG}/{name}/{key}', value)
        put(f'{DEBUG}/fail_page_alloc/min-order', '0')
        put(f'{DEBUG}/fail_page_alloc/ignore-gfp-highmem', '0')
        self.file = os.open('/proc/thread-self/fail-nth', os.O_RDWR)

    def call(self, nth, operation):
        """Runs operation with its nth allocation failing; returns (errno or 0, whether a failure was injected)."""
        code = 0
        os.pwrite(self.file, str(nth).encode(), 0)
        try:
            operation()
        except MemoryError:
            code = errno.ENOMEM
        except OSError as error:
            code = error.errno or errno.EIO
        left = int(os.pread(self.file, 20, 0).strip(b'\0\n'))
        os.pwrite(self.file, b'0', 0)
        return code, left == 0


def operations(host):
    """Returns [(name, prepare, operation, state, undo)]: state() may not change if operation() fails."""
    def nothing():
        return None

    def prepare_rule():
        host.make_group()
        host.rule(1 << 20)

    def prepare_io():
        host.make_group()
        host.enter()

    def prepare_capped_io():
        prepare_rule()
        host.enter()

    def prepare_weight():
        host.make_group()
        host.own_weight(300)

    def prepare_weighed_io():
        prepare_weight()
        host.enter()

    def undo_io():
        host.leave()
        host.end_group()

    def fresh_disk():
        host.end_disk()
        host.make_disk()
        host.write()    # the disk allocates memory for this block
        host.make_group()

    def remove():
        os.rmdir(host.group)

    exists = lambda: os.path.isdir(host.group)
    return [
        ('make a group', nothing, host.make_group, exists, host.end_group),
        ('the first rule on a disk', fresh_disk, lambda: host.rule(1 << 20), host.rules, host.end_group),
        ('the first rule of a group', host.make_group, lambda: host.rule(1 << 20), host.rules, host.end_group),
        ('change a rule', prepare_rule, lambda: host.rule(1 << 21), host.rules, host.end_group),
        ('take a rule away', prepare_rule, lambda: host.rule(0), host.rules, host.end_group),
        ('the first write in a group', prepare_io, host.write, nothing, undo_io),
        ('the first read in a group', prepare_io, host.read, nothing, undo_io),
        ('a write under a cap', prepare_capped_io, host.write, nothing, undo_io),
        ('read the files', prepare_rule, host.stat_files, host.rules, host.end_group),
        ('remove a group with a rule', prepare_rule, remove, exists, host.end_group),
        ('the first weight for a disk', fresh_disk, lambda: host.own_weight(300), host.weights, host.end_group),
        ('change a weight', prepare_weight, lambda: host.own_weight(700), host.weights, host.end_group),
        ('take a weight away', prepare_weight, lambda: host.own_weight('default'), host.weights, host.end_group),
        ('a weight for all disks', host.make_group, lambda: host.weight(300), host.weights, host.end_group),
        ('a write by weight', prepare_weighed_io, host.write, nothing, undo_io),
        ('read the files of weights', prepare_weight, host.stat_files, host.weights, host.end_group),
        ('remove a group with a weight', prepare_weight, remove, exists, host.end_group),
    ]


def sweep(injector, name, prepare, operation, state, undo):
    """Counts N up for one operation; returns (number of allocations, what was wrong)."""
    wrong = []
    refused = 0
    for nth in range(1, LIMIT):
        prepare()
        before = state()
        code, injected = injector.call(nth, operation)
        after = state()
        if code and code != errno.ENOMEM:
            wrong.append(f'{name}: allocation {nth} fails: {os.strerror(code)}')
        if code and after != before:
            wrong.append(f'{name}: allocation {nth} fails, and yet {before!r} became {after!r}')
        refused += code != 0
        if code:
            # the operation must work with the same objects right after the failure
            try:
                operation()
            except OSError as error:
                wrong.append(f'{name}: after a failure of allocation {nth}: {error.strerror}')
        undo()
        if not injected:
            if code:
                wrong.append(f'{name}: no failure, and yet {os.strerror(code)}')
            print(f'# {name}: {nth - 1} allocations failed, {refused} times ENOMEM, else it went on without')
            return nth - 1, wrong
    return LIMIT, wrong + [f'{name}: no end of allocations']


def percpu(host, rounds):
    """Makes half of this thread's allocations of pages fail, which per-CPU memory sometimes needs.

    Returns (number of per-CPU allocations that failed, what was wrong).
    """
    trace = '/sys/kernel/tracing'
    event = f'{trace}/events/percpu/percpu_alloc_percpu_fail/enable'
    wrong = []
    made = []
    put(event, '1')
    put(f'{trace}/trace', '')
    for key, value in (('task-filter', 'Y'), ('times', '-1'), ('probability', '50')):
        put(f'{DEBUG}/fail_page_alloc/{key}', value)
    base = host.group
    switch = os.open('/proc/self/make-it-fail', os.O_WRONLY)
    for i in range(rounds):
        host.group = f'{base}{i}'
        os.pwrite(switch, b'1', 0)
        try:
            host.make_group()
            made.append(host.group)
            host.rule((1 << 20) + i)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                wrong.append(f'group {i}: {error.strerror}')
        except MemoryError:
            pass
        finally:
            os.pwrite(switch, b'0', 0)
    os.close(switch)
    put(f'{DEBUG}/fail_page_alloc/probability', '0')
    put(event, '0')
    failed = get(f'{trace}/trace').count('percpu_alloc_percpu_fail:')
    for path in made:
        host.group = path
        try:
            host.rule(1 << 22)
            host.rule(0)
            os.rmdir(path)
        except OSError as error:
            wrong.append(f'{path} afterwards: {error.strerror}')
    host.group = base
    return failed, wrong


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=400, help='groups made while pages are short')
    parser.add_argument('cgroup', help='where the hierarchy is mounted')
    args = parser.parse_args()
    host = Host(args)
    host.make_disk()
    host.write()
    injector = Injector()
    failed = 0
    for operation in operations(host):
        sites, wrong = sweep(injector, *operation)
        if not sites and operation[0] not in FREE:
            wrong.append(f'{operation[0]}: nothing was made to fail')
        failed += report(operation[0], wrong)
    count, wrong = percpu(host, args.rounds)
    print(f'# {count} per-CPU allocations failed')
    failed += report('per-CPU memory runs short', wrong)
    host.read()
    host.end_disk()
    return 1 if failed else 0


def report(name, wrong):
    """Prints a line that the shell turns into a TAP point."""
    for line in wrong[:10]:
        print(f'# {line}')
    print(f'{"FAIL" if wrong else "PASS"} {name}', flush=True)
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())
