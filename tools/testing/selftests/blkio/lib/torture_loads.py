# SPDX-License-Identifier: GPL-2.0
"""The loads of a round of torture: processes that verify their data, and short commands beside them."""
import contextlib
import fcntl
import glob
import os
import signal
import struct
import subprocess
import sys

from attack_world import MIB, write

HERE = os.path.dirname(os.path.abspath(__file__))
PATTERN = ('submitted', 'completed', 'errors', 'short', 'dup', 'lost', 'bad', 'errno')
BLKRESETZONE = 0x40101283


def spawn(command, place, output):
    """Starts a command in a group, with its output in a file; returns the process."""
    def enter():
        write(f'{place}/cgroup.procs', 0)
    with open(output, 'ab') as file:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, preexec_fn=enter if place else None)


class Load:
    """A process that does I/O to a part of a disk until it is told to end, and then tells whether its data was right."""
    made = 0

    def __init__(self, world, disk, slot):
        Load.made += 1
        self.world, self.disk, self.slot, self.rng = world, disk, slot, world.rng
        self.name = f'load{Load.made}'
        self.output, self.state = f'{world.folder}/{self.name}.out', f'{world.folder}/{self.name}.state'
        self.killed = self.stopped = self.ending = self.told = self.excused = self.checking = False
        self.place = world.tree.some_place()
        self.begin()
        self.process, self.seen_open = spawn(self.command, self.place, self.output), False

    def __str__(self):
        return f'{self.name} of {self.disk.top}'

    def begin(self):
        """Chooses the command."""
        rng, disk = self.rng, self.disk
        self.depth, blocks = rng.choice((1, 2, 4, 8, 16, 64)), (disk.block, 4096, 4096, 16384, 65536, 262144)
        self.bs = rng.choice([size for size in blocks if disk.slot // size > self.depth])
        self.rate = 10 ** (rng.uniform(0, 2) if self.world.virtual else rng.uniform(1, 3))
        self.command = ['stress_verify', '-b', str(self.bs), '-d', str(self.depth), '-o', str(self.offset()), '-s', str(disk.slot),
                        '-S', str(rng.randrange(1 << 30)), '-R', str(max(round(self.rate), 1)), '-r', str(rng.choice((0, 30, 30, 80))),
                        '-w', self.state, *self.more(), disk.node()]

    def more(self):
        """Returns more options. A load waits for I/O for ever, as low limits can hold it for hours: see Watchdog."""
        return ['-e', '-l', '0']

    def offset(self):
        """Returns the offset of its part of the disk, bytes."""
        return self.slot * self.disk.slot

    def running(self):
        """Returns whether the load may still do I/O."""
        return self.process.poll() is None

    def begun(self):
        """Returns whether the load has opened its disk or file system.

        A signal before that may end it during the look-up of a path, after which a root on 9p finds no file any more.
        """
        if not self.seen_open:
            with contextlib.suppress(OSError):
                files = [os.readlink(file) for file in glob.glob(f'/proc/{self.process.pid}/fd/*')]
                # the node of a disk that was pulled does not exist any more
                names = [file.removesuffix(' (deleted)') for file in files]
                self.seen_open = any(name in (self.disk.node(), self.disk.mnt) for name in names)
        return self.seen_open

    def signal(self, number):
        """Sends a signal to the process, if it runs."""
        if self.running():
            self.process.send_signal(number)

    def pause(self, on):
        """Sends SIGSTOP or SIGCONT."""
        self.stopped = on
        self.signal(signal.SIGSTOP if on else signal.SIGCONT)

    def end(self):
        """Makes the load end after its I/O in flight; a comparison goes on."""
        self.pause(False)
        if not self.checking or self.disk.gone:
            self.ending, self.told = True, False
            self.tell()

    def tell(self):
        """Sends the signal to end if the load has begun; else step() tries again."""
        if self.ending and not self.told and self.begun():
            self.told = True
            self.signal(signal.SIGTERM)

    def kill(self):
        """Kills the load, after which it is not known what it wrote."""
        self.killed = True
        self.pause(False)
        self.signal(signal.SIGKILL)

    def step(self):
        """Judges the load once it has ended, then compares its data; returns whether its part of the disk is free."""
        if self.running():
            self.tell()
            return False
        wrong = self.wrong()
        if wrong:
            self.world.problem(wrong)
        if wrong or self.checking or not self.can_check():
            return True
        self.checking, self.ending = True, False
        os.truncate(self.output, 0)
        self.process, self.seen_open = spawn(self.check_command(), None, self.output), False
        return False

    def result(self):
        """Returns ({key of PATTERN: number}, lines) of the output; the first is None if the numbers are missing."""
        with open(self.output, encoding='utf-8', errors='replace') as file:
            lines = file.read().splitlines()
        words = dict(word.split('=', 1) for word in (lines[-1] if lines else '').split() if '=' in word)
        return {key: int(words.get(key, 0)) for key in PATTERN} if 'submitted' in words else None, lines

    def wrong(self):
        """Returns what was wrong with a load that has ended, or ''."""
        code, (result, lines) = self.process.returncode, self.result()
        ended = self.ending and code == -signal.SIGTERM
        if self.killed or (ended and not lines):
            return ''
        tail = ' | '.join(lines[-3:])
        if result is None:
            # a removed disk cannot be opened, and a store to a mapping of a file there may fail
            return '' if self.disk.faulty or self.excused else f'{self}: status {code}: {tail}'
        self.world.count_io(result['completed'])
        # After an error, data in a file system need not be right.
        bad = result['bad'] and not (self.disk.fs and self.disk.faulty)
        if result['submitted'] != result['completed'] or result['dup'] or result['lost'] or bad:
            return f'{self}: {tail}'
        # a second signal can arrive after the load has printed its result
        failed = result['errors'] or result['short'] or result['errno'] or (code and not ended)
        if failed and not (self.disk.faulty or self.excused):
            return f'{self}: an error on a disk without injected faults: {tail}'
        return ''

    def can_check(self):
        """Returns whether its data can be compared: the load was not killed, and no faults are injected now."""
        return not (self.killed or self.disk.gone or (self.disk.faulty and not self.world.healed)) and os.path.exists(self.state)

    def check_command(self):
        """Returns the command that compares the data with the state of the load."""
        return ['stress_verify', '-b', str(self.bs), '-d', '16' if self.disk.slot // self.bs > 16 else '1', '-o', str(self.offset()),
                '-s', str(self.disk.slot), '-c', self.state, self.disk.node()]


class ZoneLoad(Load):
    """A load that writes its zones once, from their start to their end; an error ends it."""

    def more(self):
        """Returns more options; the zones are empty at first."""
        with contextlib.suppress(OSError):
            with open(self.disk.node(), 'rb+', buffering=0) as file:
                fcntl.ioctl(file, BLKRESETZONE, struct.pack('QQ', self.offset() >> 9, self.disk.slot >> 9))
        return ['-q', '-l', '0']


class FileLoad(Load):
    """A load on files of a file system, which shuts down after an error."""

    def wrong(self):
        """Returns what was wrong; after an error the disk gets no other load."""
        self.disk.broken |= self.process.returncode > 0
        return super().wrong()

    def begin(self):
        """Chooses the command: torture_files.py, which compares its data itself."""
        rate = 10 ** (self.rng.uniform(-0.3, 1.3) if self.world.virtual else self.rng.uniform(0.5, 2))
        self.command = [sys.executable, '-B', f'{HERE}/torture_files.py', '--seed', str(self.rng.randrange(1 << 30)), '--rate', f'{rate:.2f}',
                        '--size', str(self.rng.choice((1, 4, 16)) * MIB), self.disk.mnt]

    def can_check(self):
        """Returns False, since torture_files.py has compared its data itself."""
        return False


def make(world, disk, slot):
    """Returns a load for a disk."""
    kind = FileLoad if disk.fs else ZoneLoad if disk.zoned else Load
    return kind(world, disk, slot)
