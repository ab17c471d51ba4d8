# SPDX-License-Identifier: GPL-2.0
"""Faults of a round of torture: disks stall, fail or are pulled, and memory runs short. See torture_changes.py."""
import contextlib
import errno
import os

from attack_world import NULLB, write
from torture_disks import SCSI

FAILSLAB = '/sys/kernel/debug/failslab'


class Faults:
    """The changes that make faults: each function but the first ones makes one."""

    def __init__(self, world):
        self.world, self.rng = world, world.rng
        self.later = []         # (time, function)
        self.failslab = False

    def short(self):
        """Returns a random short time, s."""
        return 10 ** self.rng.uniform(-2, 1.5 if self.world.virtual else 0)

    def pick_disk(self, *, alive=True):
        """Returns a random disk, or None."""
        disks = [disk for disk in self.world.disks if not (alive and disk.gone)]
        return self.rng.choice(disks) if disks else None

    def failing(self):
        """Returns a context in which allocations may fail, if failslab is on."""
        return Failing() if self.failslab and self.rng.random() < 0.5 else contextlib.nullcontext()

    def lift_all(self, disks):
        """Removes all limits for some disks; Changes does."""
        raise NotImplementedError

    def suspend(self, _):
        """Suspends a dm device for a while."""
        disk = self.pick_disk()
        if not disk or not disk.dm_name or self.world.disk_busy(disk):
            return None
        nap = self.short()
        self.world.beside(disk.reload(self.rng.choice((None, disk.table)), nap), disk)
        return f'{disk.dm_name} {nap:.3f}'

    def flakey(self, _):
        """Makes a dm device fail at times, for a while."""
        disk = self.pick_disk()
        if not disk or disk.kind != 'flakey' or self.world.disk_busy(disk):
            return None
        text = disk.flakey()
        self.world.beside(text, disk)
        return text

    def badblocks(self, _):
        """Makes some blocks of a null_blk disk bad for a while."""
        disk = self.pick_disk()
        if not disk or not disk.nulls or disk.zoned:
            return None
        disk.faulty = True
        file, start = f'{NULLB}/{self.rng.choice(disk.nulls)}/badblocks', self.rng.randrange(32 << 11)
        text = f'{start}-{start + (8 << self.rng.randint(0, 8))}'
        write(file, '+' + text)
        self.later.append((self.after(), lambda: disk.gone or write(file, '-' + text)))
        return text

    def inject(self, _):
        """Makes requests of null_blk time out, or go back into the queue, for a while."""
        disk = self.pick_disk()
        if not disk or not disk.nulls or not os.path.isdir(f'{NULLB}/{disk.nulls[0]}/timeout_inject'):
            return None
        kind, name = self.rng.choice(('timeout', 'requeue')), self.rng.choice(disk.nulls)
        disk.faulty |= kind == 'timeout'
        folder = f'{NULLB}/{name}/{kind}_inject'
        write(f'/sys/block/{name}/queue/io_timeout', self.rng.choice((500, 2000)))
        for key, value in (('verbose', 0), ('times', -1), ('interval', 1), ('probability', self.rng.choice((1, 5, 20)))):
            write(f'{folder}/{key}', value)
        self.later.append((self.after(), lambda: disk.gone or write(f'{folder}/probability', 0)))
        return f'{kind} {name}'

    def scsi_errors(self, _):
        """Makes scsi_debug forget, fail or abort commands for a while."""
        disk = self.pick_disk()
        if not disk or not disk.scsi:
            return None
        disk.faulty = True
        opts = self.rng.choice((2, 4, 8, 16, 0x8000, 0x10000))
        write(f'{SCSI}/every_nth', self.rng.choice((20, 100, 500)))
        write(f'{SCSI}/opts', opts)
        self.later.append((self.after(), lambda: disk.gone or disk.heal()))
        return f'opts {opts:#x}'

    def pull(self, _):
        """Pulls a part of a disk under load; later replace() removes the rest and makes another disk."""
        disk = self.pick_disk()
        text = disk.pull() if disk and not self.is_one_going() else None
        if not text:
            return None
        self.world.beside(text, disk)
        loads = [load for load in self.world.loads if load.disk is disk]
        for load in loads:
            self.later.append((self.after(), load.end))
        self.later.append((self.after(), lambda: self.replace(disk)))
        return f'{disk}: {text}'

    def is_one_going(self):
        """Returns whether a disk was pulled and has not been replaced yet."""
        return any(disk.gone for disk in self.world.disks)

    def replace(self, disk):
        """Replaces the rest of a disk that was pulled, or tries again later if it is in use."""
        for load in [load for load in self.world.loads if load.disk is disk]:
            load.end()
        self.lift_all([disk])
        if self.world.users(disk):
            self.later.append((self.after(), lambda: self.replace(disk)))
            return
        self.world.remove_disk(disk)
        self.world.add_disk()

    def after(self):
        """Returns a time a little later, s."""
        return self.world.now() + self.short()

    def failslab_switch(self, _):
        """
        Makes allocations of the raw loads, and of writes to control files, fail at times, or not any more. Not where
        null_blk has a cache: if an allocation fails while it writes the cache back, it keeps some pages locked, and
        later searches for an unlocked page for ever.
        """
        if not os.path.isdir(FAILSLAB):
            return None
        self.failslab = True
        chance = self.rng.choice((0, 1, 5, 20))
        self.slab(chance)
        for load in self.world.loads:
            if load.running() and not load.disk.fs and not load.disk.cached:
                load.excused = True
                with contextlib.suppress(OSError):
                    write(f'/proc/{load.process.pid}/make-it-fail', 1)
        return f'{chance} %'

    @staticmethod
    def slab(chance):
        """Sets the chance of a failure in percent, for the chosen tasks."""
        if os.path.isdir(FAILSLAB):
            for key, value in (('verbose', 0), ('task-filter', 'Y'), ('ignore-gfp-wait', 'N'), ('times', -1), ('probability', chance)):
                write(f'{FAILSLAB}/{key}', value)


class Failing:
    """A context in which allocations of this thread fail."""

    def __init__(self):
        self.file = os.open('/proc/thread-self/make-it-fail', os.O_WRONLY)

    def __enter__(self):
        os.write(self.file, b'1')

    def __exit__(self, kind, error, _):
        os.lseek(self.file, 0, os.SEEK_SET)
        os.write(self.file, b'0')
        os.close(self.file)
        if kind is MemoryError:
            raise OSError(errno.ENOMEM, 'no memory') from error
