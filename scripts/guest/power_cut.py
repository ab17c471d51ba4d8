#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes files, and checks what a disk must have after its power failed (scripts/power-cut; runs in the guest).

write DIR NAME ROUND: writes, maps, punches, truncates and syncs a file of its own, DIR/NAME, and its part of
DIR/shared, until the power fails; direct I/O and truncation are for its own file only. After each sync the writer
prints "ack NAME SEQ": all its changes up to step SEQ to the files of this sync are durable. NAME is a, b or c. With
--lie the writer prints the same and does not sync.

verify DIR ROUND LOG: replays the steps of the writers of LOG and compares. A sector must have the data of its last
sync, or data that was written later. A sector with older data, or none, is lost; a sector with data that no writer
wrote there is wrong. Prints a line for each writer; exits with 1 if a sector or a file's size is not as it must be.
"""
import argparse
import ctypes
import mmap
import os
import random
import re
import struct
import subprocess
import sys

SECTOR, PAGE, CHUNK = 512, 4096, 65536
OWN, SHARED = 0, 1
NAMES = 'abc'
OWN_SIZE = 4 << 20
SHARED_SIZE = 6 << 20
BEHIND = 2000       # steps that a writer can have taken after the last ack that came through
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE, FALLOC_FL_ZERO_RANGE = 1, 2, 16
SYNC_FILE_RANGE_ALL = 7

# {kind of a step: its relative frequency}. User-mode Linux complains when pages are removed that another process has
# mapped: so the shared file is not truncated, has no holes punched and is not written to directly.
WAYS = {'write': 12, 'direct': 4, 'osync': 3, 'map': 3, 'fsync': 2, 'fdatasync': 2, 'msync': 1, 'range': 2, 'syncfs': 0.2,
        'sync': 0.1, 'fallocate': 1, 'zero': 1, 'punch': 2, 'truncate': 2}
OWN_ONLY = ('direct', 'fallocate', 'zero', 'punch', 'truncate')
SHARED_ONLY = ('map', 'msync')


class Step:
    """A step of a writer: kind, file, and a range of bytes in the file (at, length)."""

    def __init__(self, rnd, seq, part):
        self.seq = seq
        self.kind = rnd.choices(list(WAYS), WAYS.values())[0]
        self.file = rnd.choice((OWN, SHARED))
        if self.kind in OWN_ONLY:
            self.file = OWN
        if self.kind in SHARED_ONLY:
            self.file = SHARED
        unit = PAGE if self.kind == 'direct' else SECTOR
        self.length = rnd.randrange(1, CHUNK // unit // 2) * unit
        if self.file == OWN:
            self.at = rnd.randrange(0, OWN_SIZE - CHUNK, unit)
        else:
            turn = rnd.randrange(SHARED_SIZE // CHUNK // len(NAMES))
            self.at = (turn * len(NAMES) + part) * CHUNK + rnd.randrange(0, CHUNK - self.length + 1, unit)

    @property
    def writes(self):
        """Tells whether the step writes data."""
        return self.kind in ('write', 'direct', 'osync', 'map')

    def data(self, name, rnd_id):
        """Returns the data of the step as bytes; every sector says of which writer and step it is."""
        return b''.join(stamp(name, rnd_id, self.file, at, self.seq) for at in range(self.at, self.at + self.length, SECTOR))


def stamp(name, round_, file, at, seq):
    """Returns the bytes of a sector that a writer writes at byte `at` in step `seq`."""
    return struct.pack('<4sIIIQQ', b'cut' + name.encode(), round_, file, 0, at, seq) * (SECTOR // 32)


def steps(name, round_):
    """Yields the steps of a writer without end; the same steps each time."""
    rnd = random.Random(f'{name} {round_}')
    seq = 0
    while True:
        seq += 1
        yield Step(rnd, seq, NAMES.index(name))


class Writer:
    """A process that takes the steps of a writer."""

    def __init__(self, args):
        self.name, self.round, self.lie = args.name, args.round, args.lie
        paths = (f'{args.dir}/{args.name}', f'{args.dir}/shared')
        self.fds = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
        self.direct = [os.open(path, os.O_RDWR | os.O_DIRECT) for path in paths]
        self.osync = [os.open(path, os.O_RDWR | os.O_SYNC) for path in paths]
        self.map = mmap.mmap(self.fds[SHARED], SHARED_SIZE)
        self.bounce = mmap.mmap(-1, CHUNK)
        self.libc = ctypes.CDLL(None, use_errno=True)
        for call, kinds in (('fallocate', 'iill'), ('sync_file_range', 'illi'), ('syncfs', 'i')):
            types = {'i': ctypes.c_int, 'l': ctypes.c_int64}
            getattr(self.libc, call).argtypes = [types[kind] for kind in kinds]

    def call(self, function, *args):
        """Makes a system call that Python does not have."""
        if getattr(self.libc, function)(*args):
            raise OSError(ctypes.get_errno(), function)

    def change(self, step):
        """Takes a step that writes or removes data."""
        fd = self.fds[step.file]
        if step.kind == 'write':
            os.pwrite(fd, step.data(self.name, self.round), step.at)
        elif step.kind == 'map':
            self.map[step.at:step.at + step.length] = step.data(self.name, self.round)
        elif step.kind == 'direct':
            self.bounce[:step.length] = step.data(self.name, self.round)
            os.pwritev(self.direct[step.file], [memoryview(self.bounce)[:step.length]], step.at)
        elif step.kind == 'osync':
            os.pwrite((self.fds if self.lie else self.osync)[step.file], step.data(self.name, self.round), step.at)
        elif step.kind == 'truncate':
            os.truncate(fd, step.at)
        elif step.kind == 'fallocate':
            self.call('fallocate', fd, 0, step.at, step.length)
        elif step.kind == 'zero':
            self.call('fallocate', fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, step.at, step.length)
        elif step.kind == 'punch':
            self.call('fallocate', fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, step.at, step.length)

    def sync(self, step):
        """Takes a step that makes data durable; with --lie does nothing."""
        fd = self.fds[step.file]
        if self.lie:
            return
        if step.kind == 'fsync':
            os.fsync(fd)
        elif step.kind == 'fdatasync':
            os.fdatasync(fd)
        elif step.kind == 'msync':
            self.map.flush()
        elif step.kind == 'range':
            self.call('sync_file_range', fd, 0, 0, SYNC_FILE_RANGE_ALL)
        elif step.kind == 'syncfs':
            self.call('syncfs', fd)
        elif step.kind == 'sync':
            os.sync()

    def run(self):
        """Takes steps until the power fails."""
        for step in steps(self.name, self.round):
            self.change(step)
            self.sync(step)
            if synced(step):
                os.write(1, f'ack {self.name} {step.seq}\n'.encode())
                os.close(os.open(f'/run/synced.{self.name}', os.O_CREAT))


def synced(step):
    """Returns the files that a step makes durable, as a whole or, with osync, in its range; none for most steps."""
    if step.kind in ('fsync', 'fdatasync', 'osync'):
        return (step.file,)
    if step.kind == 'msync':
        return (SHARED,)
    return (OWN, SHARED) if step.kind in ('sync', 'syncfs') else ()


class Model:
    """What each sector, and the size of a writer's own file, may be: all states since the last durable one."""

    def __init__(self):
        # of each file, {byte of a sector: [(seq, is data)]}; sectors are zero at first
        self.sectors = ({}, {})
        # of each file, the sectors that have several states
        self.loose = (set(), set())
        self.sizes = [0]

    def put(self, file, at, end, seq, is_data):
        """Adds a state to the sectors of a range of bytes: data of step seq, or zero."""
        for sector in range(at, end, SECTOR):
            self.sectors[file].setdefault(sector, [(0, False)]).append((seq, is_data))
            self.loose[file].add(sector)

    def step(self, step):
        """Adds the states after a step that has been taken, or may have been taken."""
        size, end = self.sizes[-1], step.at + step.length
        if step.writes:
            self.put(step.file, step.at, end, step.seq, True)
        elif step.kind in ('zero', 'punch'):
            self.put(step.file, step.at, end, step.seq, False)
        elif step.kind == 'truncate':
            self.put(OWN, step.at, size, step.seq, False)
            self.sizes.append(step.at)
        if step.file == OWN and (step.writes or step.kind == 'fallocate') and end > size:
            self.sizes.append(end)

    def durable(self, step):
        """Removes the states before the last one from what a step has made durable."""
        for file in synced(step):
            loose = self.loose[file]
            if step.kind == 'osync':
                loose = loose.intersection(range(step.at, step.at + step.length, SECTOR))
            elif file == OWN:
                del self.sizes[:-1]
            for sector in loose:
                del self.sectors[file][sector][:-1]
            self.loose[file].difference_update(loose)


class Verdict:
    """The result of comparing a file with a model: numbers of sectors that were checked, are lost, are wrong."""

    def __init__(self, name, round_, model):
        self.name, self.round, self.model = name, round_, model
        self.checked = self.lost = self.wrong = 0

    def sector(self, file, at, got):
        """Compares the sector at byte `at`, which has the bytes `got`, with the states that it may have."""
        history = self.model.sectors[file][at]
        self.checked += 1
        if not any(got):
            if not any(not is_data for _, is_data in history):
                self.say('lost', file, at, 'it is zero')
            return
        seq = struct.unpack_from('<Q', got, 24)[0]
        if got != stamp(self.name, self.round, file, at, seq):
            self.say('wrong', file, at, got[:32].hex())
        elif (seq, True) not in history:
            self.say('lost' if seq < history[0][0] else 'wrong', file, at, f'it is of step {seq}')

    def say(self, what, file, at, why):
        """Counts, and prints, a sector that is lost or wrong (`what`)."""
        setattr(self, what, getattr(self, what) + 1)
        if self.lost + self.wrong <= 5:
            history = self.model.sectors[file][at]
            print(f'{what}: {self.name}, file {file}, byte {at}: {why}, may be {history[:4]}')

    def run(self, path):
        """Compares the files of a writer in the folder `path`; returns True if none is lost or wrong."""
        for file, name in ((OWN, self.name), (SHARED, 'shared')):
            with open(f'{path}/{name}', 'rb') as opened:
                data = opened.read()
            if file == OWN and not min(self.model.sizes) <= len(data) <= max(self.model.sizes):
                self.wrong += 1
                print(f'wrong: {self.name} has {len(data)} bytes, may have {min(self.model.sizes)} to {max(self.model.sizes)}')
            for at in sorted(self.model.sectors[file]):
                self.sector(file, at, data[at:at + SECTOR].ljust(SECTOR, b'\0'))
        return not self.lost + self.wrong


def verify(args):
    """Verifies the files of all writers of a round; returns the exit status."""
    with open(args.log, encoding='ascii', errors='replace') as log:
        acks = re.findall(r'^ack (\w) (\d+)\r?$', log.read(), re.M)
    good = True
    for name in NAMES:
        last = max((int(seq) for who, seq in acks if who == name), default=0)
        model = Model()
        for step in steps(name, args.round):
            model.step(step)
            if step.seq <= last:
                model.durable(step)
            if step.seq == last:
                must = sum(any(seq for seq, _ in h) and len(h) == 1 for f in model.sectors for h in f.values())
            if step.seq >= last + BEHIND:
                break
        verdict = Verdict(name, args.round, model)
        good = verdict.run(args.dir) and last > 0 and good
        print(f'{name}: {last} steps, {must if last else 0} sectors durable, {verdict.checked} checked, '
              f'{verdict.lost} lost, {verdict.wrong} wrong')
    return 0 if good else 1


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest='command')
    write = commands.add_parser('write')
    write.add_argument('dir')
    write.add_argument('name', choices=NAMES)
    write.add_argument('round', type=int)
    write.add_argument('--lie', action='store_true')
    check = commands.add_parser('verify')
    check.add_argument('dir')
    check.add_argument('round', type=int)
    check.add_argument('log')
    args = parser.parse_args()
    if args.command == 'write':
        return Writer(args).run()
    return verify(args)


if __name__ == '__main__':
    GUARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'guard.sh')
    sys.exit(subprocess.run(['bash', '-c', '. "$1"', sys.argv[0], GUARD], check=False).returncode or main())
