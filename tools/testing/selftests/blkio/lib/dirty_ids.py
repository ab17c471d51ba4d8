# SPDX-License-Identifier: GPL-2.0
"""dirty_ids.py TOP ROUNDS GROUPS DISK...: owners of pages that come and go.

In each round groups are made in the cgroup TOP, and this process, moving from one to the
next, dirties one to three pages of each disk out of each of them. In rounds 1, 3, ... the
groups are removed with their pages dirty, which their parent then is charged for; in the
others after these have been written, and each must have been charged its own bytes on each
disk. When all has been written, the owners must go. Says how many owners there were; exits
with 1 if something was not as it should.
"""
import os
import sys
import time

PAGE = 4096
CPUS = os.cpu_count() or 1
OWNERS = '/sys/kernel/debug/dirty_owner'
faults = []


def expect(what, got, want):
    """Notes what is wrong; of dictionaries, what differs."""
    if got != want:
        if isinstance(want, dict):
            got, want = dict(got.items() - want.items()), dict(want.items() - got.items())
        faults.append(f'{what}: got {got}, want {want}')


def charged(group):
    """Bytes that a group has written, by number of the disk."""
    with open(f'{group}/blkio.throttle.io_service_bytes', encoding='ascii') as file:
        lines = [line.split() for line in file]
    return {line[0]: int(line[2]) for line in lines if len(line) == 3 and line[1] == 'Write'}


def owners():
    """(id of the group, device): pages that are dirty, of those who have any."""
    found = {}
    with open(OWNERS, encoding='ascii') as file:
        for line in file:
            words = dict(word.split('=') for word in line.split())
            if words['dirtied'] != '0':
                found[int(words['cg']), words['bdi']] = int(words['dirty']) + int(words['writing'])
    return found


def enter(group):
    """Moves this process."""
    with open(f'{group}/cgroup.procs', 'w', encoding='ascii') as procs:
        procs.write('0')


def until_none(what, count):
    """Waits a minute at most."""
    for _ in range(240):
        if not count():
            return
        time.sleep(0.25)
    expect(what, count(), 0)


class Disk:
    """One that is kept open: whoever closes it last would write it."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR)
        number = os.stat(path).st_rdev
        self.name = f'{os.major(number)}:{os.minor(number)}'
        self.stat = f'/sys/dev/block/{self.name}/stat'

    def written(self):
        """Bytes."""
        with open(self.stat, encoding='ascii') as file:
            return int(file.read().split()[6]) * 512


def pages_of(nr):
    """Pages that group number nr dirties of each disk."""
    return 1 + nr % 3


def limit(group, disks):
    """A rule for each disk. Without one a group may be charged to its parent while there is
    no memory for its part of the disk at once, as in mainline."""
    for disk in disks:
        with open(f'{group}/blkio.throttle.write_bps_device', 'w', encoding='ascii') as rule:
            rule.write(f'{disk.name} {1 << 30}')


def dirty(groups, disks):
    """Out of each group, of each disk; returns what owners() should say."""
    want = {}
    for nr, group in enumerate(groups):
        enter(group)
        for disk in disks:
            os.pwrite(disk.fd, bytes(pages_of(nr) * PAGE), 4 * nr * PAGE)
            want[os.stat(group).st_ino, disk.name] = pages_of(nr)
    return want


def expect_owners(nr, want):
    """In real time some pages may have been written already, and who has none may be gone."""
    seen = owners()
    if CPUS > 1:
        want = {owner: min(pages, want.get(owner, -1)) for owner, pages in seen.items()}
    expect(f'round {nr}: owners of pages', seen, want)


def one_round(top, nr, groups, disks):
    """Returns how many owners there were."""
    remove_first = nr % 2
    each = sum(pages_of(n) for n in range(len(groups))) * PAGE
    before = [disk.written() for disk in disks]
    inherited = charged(top)
    for group in groups:
        os.mkdir(group)
        limit(group, disks)
    want = dirty(groups, disks)
    enter(os.path.dirname(top))
    expect_owners(nr, want)
    if remove_first:
        for group in groups:
            os.rmdir(group)
        # their last rites are a work item; until then they are charged themselves
        time.sleep(0.1)
    os.sync()
    for disk, earlier in zip(disks, before):
        expect(f'round {nr}: bytes on {disk.name}', disk.written() - earlier, each)
    if remove_first:
        now = charged(top)
        for disk in disks:
            got = now.get(disk.name, 0) - inherited.get(disk.name, 0)
            # in real time some groups may have been on their way out still
            if CPUS == 1 or got > each:
                expect(f'round {nr}: bytes left to the parent on {disk.name}', got, each)
    else:
        for n, group in enumerate(groups):
            expect(f'round {nr}: bytes of {group}', charged(group),
                   {disk.name: pages_of(n) * PAGE for disk in disks})
            os.rmdir(group)
    return len(want)


def main():
    """Command line."""
    top, rounds, nr_groups = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    disks = [Disk(path) for path in sys.argv[4:]]
    total = 0
    for nr in range(rounds):
        groups = [f'{top}/{nr}.{n}' for n in range(nr_groups)]
        total += one_round(top, nr, groups, disks)
        until_none(f'round {nr}: owners left', lambda: len(owners()))
    print(total)
    for fault in faults[:10]:
        print(fault[:300])
    return 1 if faults else 0


sys.exit(main())
