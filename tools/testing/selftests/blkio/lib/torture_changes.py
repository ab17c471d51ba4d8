# SPDX-License-Identifier: GPL-2.0
"""The changes during a round of torture: each function makes one change, chosen at random, of what World has.

A function returns a few words on what it did, or None if there was nothing to do. An OSError is a failure of the round,
except for those in ALLOWED: a device is busy or removed, or memory is short because of failslab.
"""
import contextlib
import errno
import os

from attack_world import NULLB, read, write
from torture_disks import SLOTS
from torture_faults import Faults

QUEUE = ('nr_requests 16', 'nr_requests 64', 'nr_requests 128', 'max_sectors_kb 4', 'max_sectors_kb 64', 'max_sectors_kb 512',
         'nomerges 0', 'nomerges 2', 'rq_affinity 2', 'rq_affinity 0', 'rotational 1', 'rotational 0', 'iostats 0', 'iostats 1',
         'add_random 1', 'read_ahead_kb 0', 'read_ahead_kb 128', 'write_cache write back', 'write_cache write through')
ALLOWED = {
    'limit': (errno.ENODEV,), 'weight': (errno.ENODEV,),
    # the disk does not have this scheduler or property
    'elevator': (errno.EACCES, errno.EINVAL, errno.ENOENT, errno.ENODEV), 'queue': (errno.EACCES, errno.EINVAL, errno.ENOENT, errno.ENODEV, errno.EBUSY),
    'hw_queues': (errno.EINVAL, errno.ENOMEM), 'affinity': (errno.ESRCH,), 'freeze': (), 'retire': (errno.EBUSY,),
}


class Changes(Faults):
    """The changes of one round; each has a random weight, which can be 0."""

    def __init__(self, world, without=()):
        super().__init__(world)
        self.without = without
        table = dict(limit=20, lift=5, weight=12, move=10, make_group=4, retire=3, elevator=4, queue=6, hw_queues=2,
                     affinity=4, freeze=5, stop=5, kill=1, end=2, discard=3, sync=1, drop=1, look=6, reset=2, flood=2, visit=2,
                     suspend=3, flakey=2, badblocks=1, inject=1, scsi_errors=1, pull=0.4, failslab_switch=1)
        self.names = list(table)
        self.weights = [weight * self.rng.choice((0, 1, 1, 1, 4)) for weight in table.values()]

    def one(self, now):
        """Makes one change."""
        name = self.rng.choices(self.names, self.weights)[0]
        if name in self.without:
            return
        self.world.dog.phase(name)
        try:
            text = getattr(self, name)(now)
        except OSError as error:
            text = f'{error.strerror} {error.filename or ""}'
            if error.errno not in ALLOWED.get(name, ()) and not (error.errno == errno.ENOMEM and self.failslab):
                self.world.problem(f'{name}: {text}')
        if text:
            self.world.changes += 1
            self.world.note(f'{name} {text}')

    def due(self, now):
        """Makes the changes that are due from later; a disk whose file system has shut down is replaced."""
        for disk in self.world.disks:
            if disk.broken and not disk.gone:
                disk.gone = True
                self.later.append((self.after(), lambda disk=disk: self.replace(disk)))
        for entry in [entry for entry in self.later if entry[0] <= now]:
            self.later.remove(entry)
            self.world.dog.phase('later')
            entry[1]()

    def all_now(self):
        """Makes all changes of later now: no task stays stopped or frozen, and no disk fails any more."""
        self.later.clear()
        self.world.tree.thaw_all()
        self.slab(0)
        for load in self.world.loads:
            load.pause(False)
        for disk in self.world.disks:
            if not disk.gone:
                disk.heal()

    def pick_group(self):
        """Returns the folder of a random group, on v1 perhaps the root group."""
        tree = self.world.tree
        if self.world.version == 'v1' and self.rng.random() < 0.1:
            return tree.hierarchy.root
        return tree.path(self.rng.choice(tree.names + ['']))

    def pick_load(self):
        """Returns a random load that runs, or None."""
        loads = [load for load in self.world.loads if load.running()]
        return self.rng.choice(loads) if loads else None

    # limits, weights and groups

    def set_limit(self, folder, dev, limits, failing=None):
        """Sets limits {key of io.max: rate, or None for no limit}; allocations may fail, or as `failing` says."""
        failing = failing or self.failing
        if self.world.version == 'v2':
            with failing():
                write(f'{folder}/io.max', f'{dev} ' + ' '.join(f'{key}={rate or "max"}' for key, rate in limits.items()))
            return
        for key, rate in limits.items():
            with failing():
                write(f'{folder}/blkio.throttle.{"read" if key[0] == "r" else "write"}_{key[1:]}_device', f'{dev} {rate or 0}')

    def limit(self, _):
        """Sets some limits of a group for a disk or for a disk below it."""
        disk, rng = self.pick_disk(), self.rng
        if not disk:
            return None
        name, folder, low = rng.choice(disk.nodes), self.pick_group(), self.world.virtual
        limits = {}
        for key in rng.sample(('rbps', 'wbps', 'riops', 'wiops'), rng.randint(1, 4)):
            # seldom a limit that is so low that it has to be lifted again
            exponent = rng.uniform(0, 3) if rng.random() < 0.05 else rng.uniform(4.5 if low else 5.5, 8) if key.endswith('bps') else \
                rng.uniform(0.7 if low else 1.7, 4)
            limits[key] = rng.choice((int(10 ** exponent),) * 4 + (None, 9223372036854775807 if key.endswith('bps') else 4294967296))
        self.set_limit(folder, disk.dev(name), limits)
        return f'{os.path.basename(folder)} {name} {limits}'

    def lift(self, _):
        """Removes the limits of a group for a disk."""
        disk = self.pick_disk()
        if not disk:
            return None
        folder = self.pick_group()
        for name in disk.nodes:
            self.set_limit(folder, disk.dev(name), dict.fromkeys(('rbps', 'wbps', 'riops', 'wiops')))
        return f'{os.path.basename(folder)} {disk}'

    def lift_all(self, disks):
        """Removes all limits for some disks, or for the parts that are left of them."""
        tree = self.world.tree
        folders = [tree.path(name) for name in tree.names + ['']] + ([tree.hierarchy.root] if self.world.version == 'v1' else [])
        for disk in disks:
            for name in disk.nodes:
                try:
                    dev = disk.dev(name)
                    for folder in folders:
                        self.set_limit(folder, dev, dict.fromkeys(('rbps', 'wbps', 'riops', 'wiops')), contextlib.nullcontext)
                except OSError as error:
                    # the disk or the group may be gone, or about to be removed
                    if error.errno != errno.ENOENT and not (disk.gone and error.errno == errno.ENODEV):
                        raise

    def weight(self, _):
        """Sets the weight of a group, for all disks or one."""
        disk, rng, world = self.pick_disk(), self.rng, self.world
        if not disk:
            return None
        folder, value = self.pick_group(), str(rng.choice((10, 100, 500, 1000, rng.randint(10, 1000), 'default')))
        dev = disk.dev(rng.choice(disk.nodes)) + ' ' if rng.random() < 0.5 else ''
        if folder == world.tree.hierarchy.root:
            return None
        if world.version == 'v1':
            value = value if dev else value.replace('default', '500')
            file = 'blkio.weight_device' if dev else 'blkio.weight'
            value = value.replace('default', '500')
        else:
            file, value = 'io.weight', value if dev else value.replace('default', '100')
        with self.failing():
            write(f'{folder}/{file}', dev + value)
        return f'{os.path.basename(folder)} {dev}{value}'

    def move(self, _):
        """Moves a load into another group."""
        load = self.pick_load()
        if not load:
            return None
        load.place = self.world.tree.some_place()
        with contextlib.suppress(ProcessLookupError):
            write(f'{load.place}/cgroup.procs', load.process.pid)
        return f'{load} to {os.path.basename(load.place)}'

    def make_group(self, now):
        """Makes a group, with limits."""
        tree = self.world.tree
        if len(tree.names) > 25:
            return None
        below = [''] + [name for name in tree.names if name.count('/') < 3 and (self.world.version == 'v1' or not tree.is_leaf(name))]
        below = self.rng.choice(below)
        try:
            with self.failing():
                name = tree.make(below)
        except OSError:
            tree.adopt(below)
            raise
        self.limit(now)
        return name

    def retire(self, _):
        """Removes a group while I/O of it may be held; its tasks are moved before."""
        tree = self.world.tree
        names = [name for name in tree.names if tree.is_leaf(name) and not tree.is_frozen(name)]
        if len(names) < 2:
            return None
        name = self.rng.choice(names)
        places = [place for place in tree.places() if place != tree.path(name)]
        for pid in tree.hierarchy.members(name):
            with contextlib.suppress(ProcessLookupError):
                write(f'{self.rng.choice(places)}/cgroup.procs', pid)
        os.rmdir(tree.path(name))
        tree.names.remove(name)
        return name

    def visit(self, _):
        """Makes a group for one short command."""
        tree, disk = self.world.tree, self.pick_disk()
        if not disk:
            return None
        name = tree.make('')
        self.set_limit(tree.path(name), disk.dev(), {'rbps': self.rng.choice((1 << 18, 1 << 22, None)), 'riops': 500})
        self.world.beside(f'dd if={disk.node()} of=/dev/null bs=16k count=8 iflag=direct', disk, tree.path(name))
        return name

    # disks

    def elevator(self, _):
        """Changes the scheduler of a disk, or of one below it."""
        disk = self.pick_disk()
        if not disk:
            return None
        name, kind = self.rng.choice(disk.nodes), self.rng.choice(('none', 'mq-deadline', 'kyber', 'bfq'))
        self.world.dog.phase(f'elevator {name} {kind}')
        self.world.bfq |= kind == 'bfq'
        write(f'/sys/block/{name}/queue/scheduler', kind)
        return f'{name} {kind}'

    def queue(self, _):
        """Changes one property of the queue of a disk, or of one below it."""
        disk = self.pick_disk()
        if not disk:
            return None
        name, (key, value) = self.rng.choice(disk.nodes), self.rng.choice(QUEUE).split(' ', 1)
        self.world.dog.phase(f'queue {name} {key} {value}')
        write(f'/sys/block/{name}/queue/{key}', value)
        return f'{name} {key} {value}'

    def hw_queues(self, _):
        """Changes the number of queues of a null_blk disk.

        null_blk has one lock for all of its disks, and syncs the file system of a disk that is removed under that lock.
        """
        disk = self.pick_disk()
        if not disk or not disk.nulls or self.is_one_going():
            return None
        name, count = self.rng.choice(disk.nulls), self.rng.choice((1, 2))
        self.world.dog.phase(f'submit_queues {name} {count}')
        write(f'{NULLB}/{name}/submit_queues', count)
        return f'{name} {count}'

    # loads, and commands beside them

    def affinity(self, _):
        """Changes the processors on which a load may run."""
        load, count = self.pick_load(), os.cpu_count() or 1
        if not load or count < 2:
            return None
        os.sched_setaffinity(load.process.pid, self.rng.choice(([0], [1], range(count))))
        return str(load)

    def freeze(self, _):
        """Freezes a group for a while."""
        tree = self.world.tree
        if self.world.version == 'v1' or not tree.names:
            return None
        name = self.rng.choice(tree.names)
        if tree.is_frozen(name):
            return None
        tree.freeze(name, True)
        self.later.append((self.after(), lambda: name in tree.frozen and tree.freeze(name, False)))
        return name

    def stop(self, _):
        """Stops a load for a while."""
        load = self.pick_load()
        if not load or load.stopped or load.ending:
            return None
        load.pause(True)
        self.later.append((self.after(), lambda: load.pause(False)))
        return str(load)

    def kill(self, _):
        """Kills a load, whatever it has in flight."""
        load = self.pick_load()
        if not load or not load.begun():
            return None
        load.kill()
        return str(load)

    def end(self, _):
        """Ends a load, which then compares its data."""
        load = self.pick_load()
        if not load or load.stopped or not load.begun():
            return None
        load.end()
        return str(load)

    def discard(self, _):
        """Discards the part of a disk that no load uses."""
        disk = self.pick_disk()
        if not disk or disk.fs or disk.zoned:
            return None
        what = self.rng.choice(('', '', '--zeroout'))
        place = self.world.tree.some_place()
        self.world.beside(f'blkdiscard {what} -f -o {SLOTS * disk.slot} -l {disk.slot} {disk.node()}', disk, place)
        return f'{disk} {what}'

    def sync(self, _):
        """Syncs all file systems, or one of them."""
        disk = self.pick_disk()
        place = self.world.tree.some_place()
        self.world.beside(self.rng.choice(('sync', f'sync -f {disk.mnt}' if disk and disk.mnt else 'sync')), None, place)
        return os.path.basename(place)

    def drop(self, _):
        """Caches."""
        self.world.beside(f'echo {self.rng.choice((1, 2, 3))} >/proc/sys/vm/drop_caches')
        return 'caches'

    def flood(self, _):
        """Submits much I/O at once."""
        disk = self.pick_disk()
        if not disk:
            return None
        place = self.world.tree.some_place()
        self.world.beside(f'blkio_load -f {disk.node()} -s 4k -p rand -d 64 -n 400', disk, place)
        return f'{disk} by {os.path.basename(place)}'

    def look(self, _):
        """Reads all files of a group, and those of ioband in debugfs for a disk."""
        folder, disk = self.pick_group(), self.pick_disk()
        for name in sorted(os.listdir(folder)):
            if name.startswith(('io.', 'blkio.', 'cgroup.stat')):
                with contextlib.suppress(OSError):      # some can only be written
                    read(f'{folder}/{name}')
        if disk:
            disk.held()
        return os.path.basename(folder)

    def reset(self, _):
        """Resets the statistics of v1."""
        if self.world.version == 'v2':
            return None
        folder = self.pick_group()
        write(f'{folder}/blkio.reset_stats', 1)
        return os.path.basename(folder)
