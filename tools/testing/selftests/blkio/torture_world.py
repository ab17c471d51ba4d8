# SPDX-License-Identifier: GPL-2.0
"""What a round of torture works on: groups, disks, loads, short commands beside them; and who watches it."""
import contextlib
import errno
import glob
import os
import random
import threading
import time

from attack_world import Hierarchy, WorldError, read, wait_for, write
from torture_disks import DEBUG_BLOCK, SLOTS, Disk
from torture_loads import make, spawn

CHECK_S = 5             # how often the watchdog looks
GONE_S = 60             # until a removed group has gone


class Lingers(Exception):
    """Removed groups do not go, and it may be BFQ that keeps them: mainline's takes a reference on one that it loses."""


class Tree:
    """The groups, at a random depth of up to 4 below one of the round; places are folders that may have tasks."""

    def __init__(self, world, undo):
        self.world, self.rng, self.version = world, world.rng, world.version
        self.hierarchy = Hierarchy(world.version, f'{world.folder}/cgroup-{world.version}')
        undo.callback(self.hierarchy.umount)
        self.hierarchy.enter(f't{world.seed}')
        self.names, self.frozen, self.made = [], {}, 0
        self.parents = set()    # v2: these can have no tasks, even after the last group below has gone
        self.fill('', self.rng.randint(1, 4))

    def fill(self, below, depth):
        """Makes groups below one."""
        for _ in range(self.rng.randint(1, 3)):
            name = self.make(below)
            if depth > 1 and self.rng.random() < 0.6:
                self.fill(name, depth - 1)

    def make(self, below):
        """A group; its name."""
        self.made += 1
        name = self.newest(below)
        self.parents.add(below)
        self.hierarchy.make(name)
        self.names.append(name)
        return name

    def newest(self, below):
        """The name of the group that was made last, or was to be."""
        return (below + '/' if below else '') + f'g{self.made}'

    def adopt(self, below):
        """What failed when a group was made may have failed after mkdir()."""
        name = self.newest(below)
        if name not in self.names and os.path.isdir(self.path(name)):
            self.names.append(name)

    def path(self, name):
        """Its folder."""
        return f'{self.hierarchy.path}/{name}'.rstrip('/')

    def is_leaf(self, name):
        """It has no groups below."""
        return not any(other.startswith(name + '/') for other in self.names)

    def places(self):
        """Where tasks may be and run: not where they would be frozen before they are anything."""
        names = [name for name in self.names if (self.version == 'v1' or name not in self.parents) and not self.is_frozen(name)]
        return [self.path(name) for name in names] + [self.hierarchy.root]

    def some_place(self):
        """One of them, seldom the root."""
        places = self.places()
        return self.rng.choice(places[:-1] if len(places) > 1 and self.rng.random() < 0.9 else places)

    def is_frozen(self, name):
        """It or one above."""
        return any(name == other or name.startswith(other + '/') for other in self.frozen)

    def freeze(self, name, on):
        """v2 only."""
        write(f'{self.path(name)}/cgroup.freeze', int(on))
        if on:
            self.frozen[name] = True
        else:
            self.frozen.pop(name, None)

    def thaw_all(self):
        """Nobody waits for that."""
        for name in list(self.frozen):
            self.freeze(name, False)

    def remove(self, name):
        """It has to go soon: tasks that end just now are not shown any more, and keep it for a moment."""
        wait_for(lambda: not self.hierarchy.members(name), 30, f'tasks of {name}')
        wait_for(lambda: self.is_removed(name), 30, f'the removal of {name}')
        self.names.remove(name)

    def is_removed(self, name):
        """It can be, and is now."""
        try:
            os.rmdir(self.path(name))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
        return True

    def remove_all(self):
        """All of the round, and what is left of them."""
        for name in sorted(self.names, key=len, reverse=True):
            self.remove(name)
        self.hierarchy.leave()

    def wait_gone(self):
        """They are gone for good."""
        try:
            wait_for(self.all_gone, GONE_S, 'the end of removed groups')
        except WorldError as error:
            if self.world.bfq:
                raise Lingers() from error
            raise WorldError(f'{error}: {self.hierarchy.dead() if self.version == "v2" else ""}') from error

    def all_gone(self):
        """Nothing refers to a removed group; page cache does now and then, and BFQ to the last one that a worker wrote for."""
        write('/proc/sys/vm/drop_caches', 3)
        for path in glob.glob('/sys/block/*/queue/scheduler'):
            if '[bfq]' in read(path):
                write(path, 'none')
        if self.version == 'v2':
            return not self.hierarchy.dying()
        return [line.split()[2] for line in read('/proc/cgroups').splitlines() if line.startswith('blkio')] == ['1']


class World:
    """Of one seed."""

    def __init__(self, seed, virtual, folder, log):
        self.seed, self.virtual, self.folder, self.log = seed, virtual, folder, log
        self.rng, self.begun = random.Random(seed), time.monotonic()
        self.version = self.rng.choice(('v1', 'v2'))
        self.disks, self.loads, self.aux, self.problems = [], [], [], []
        self.ios = self.changes = 0
        self.healed = self.bfq = False
        self.dog = Watchdog(self)
        self.undo = contextlib.ExitStack()
        self.dog.phase('making groups')
        self.tree = Tree(self, self.undo)
        for _ in range(self.rng.randint(1, 3)):
            self.add_disk()

    def now(self):
        """The clock."""
        return time.monotonic()

    def waits(self):
        """Something may end soon that is to be looked after."""
        return self.aux or any(load.ending or load.killed or load.checking or load.disk.zoned for load in self.loads)

    def note(self, text):
        """A line of the round's log."""
        print(f'{time.monotonic() - self.begun:.3f} {text}', file=self.log, flush=True)

    def problem(self, text):
        """The round has failed; it goes on to its end all the same."""
        self.note(f'WRONG: {text}')
        self.problems.append(text)

    def count_io(self, count):
        """Of one load."""
        self.ios += count

    def add_disk(self):
        """A new one."""
        self.dog.phase('making a disk')
        disk = Disk(self, self.rng)
        self.disks.append(disk)
        self.note(f'disk {disk}: {" ".join(disk.nodes)}')

    def remove_disk(self, disk):
        """It goes in bounded time: the watchdog's."""
        self.dog.phase(f'removing {disk}: {" ".join(disk.nodes)}')
        self.disks.remove(disk)
        disk.close()
        self.note(f'removed {disk}: {" ".join(disk.nodes)}')

    def users(self, disk):
        """Loads and commands that use it."""
        return [load for load in self.loads if load.disk is disk] + [True for process, user, _ in self.aux if user is disk]

    def fill(self):
        """Begins a load where a part of a disk is free."""
        for disk in self.disks:
            used = [load.slot for load in self.loads if load.disk is disk]
            free = [slot for slot in range(SLOTS) if slot not in used]
            if not disk.gone and not disk.broken and free and self.rng.random() < 0.5:
                self.dog.phase(f'beginning a load of {disk}')
                self.loads.append(make(self, disk, free[0]))
                self.note(f'{self.loads[-1]} in {self.loads[-1].place}: {" ".join(self.loads[-1].command)}')

    def step(self):
        """Looks after loads and commands that have ended."""
        self.loads = [load for load in self.loads if not load.step()]
        self.aux = [entry for entry in self.aux if entry[0].poll() is None]

    def beside(self, text, disk=None, place=None):
        """Runs shell commands that may take as long as they like; whether they succeed does not matter."""
        self.aux.append((spawn(['sh', '-c', text], place, f'{self.folder}/beside.out'), disk, text))

    def disk_busy(self, disk):
        """Commands work on it."""
        return any(user is disk for _, user, _ in self.aux)

    def drain(self, what, busy):
        """Until nobody is busy any more; the watchdog knows when that is too long."""
        self.dog.phase(what)
        while busy():
            self.step()
            time.sleep(0.05)


class Watchdog(threading.Thread):
    """Says what hangs, and ends all."""

    def __init__(self, world):
        super().__init__(daemon=True)
        # seconds for a phase: under limits (khungtaskd complains of a task after 120), and without them
        self.world, self.limited, self.limit = world, *((3600, 3600) if world.virtual else (90, 240))
        self.what, self.since, self.over, self.lifted = 'begins', time.monotonic(), False, False
        self.lift = None
        self.start()

    def phase(self, what):
        """What is done from now on."""
        self.what, self.since, self.lifted = what, time.monotonic(), False

    def run(self):
        """Thread. A limit of some bytes a second can hold for longer than that: what hangs does so without limits."""
        while not self.over:
            time.sleep(CHECK_S)
            if time.monotonic() > self.since + self.limited and self.lift and not self.lifted:
                self.world.note(f'WATCHDOG: no limits: {self.what}')
                self.lifted = True
                threading.Thread(target=self.lift, daemon=True).start()
            end = self.limit + (self.limited if self.lifted else 0)
            if time.monotonic() > self.since + end and not self.over:
                print(f'not ok seed {self.world.seed}: {self.what}: hangs for {end} s', flush=True)
                self.world.note(f'WATCHDOG: {self.what}')
                self.dump()
                print('# watchdog: the end', flush=True)
                os._exit(3)

    def dump(self):
        """All that may tell why."""
        world = self.world
        print(f'# in {self.what}; loads: {"; ".join(map(str, world.loads))}; commands: {"; ".join(entry[2] for entry in world.aux)}', flush=True)
        for line in tasks():
            print(f'# {line}', flush=True)
        # twice, as what moves does not hang
        for _ in range(2):
            for name in [name for disk in world.disks for name in disk.nodes]:
                with contextlib.suppress(OSError):
                    print(f'# {name} stat: {" ".join(read(f"/sys/block/{name}/stat").split())}', flush=True)
            time.sleep(2)
        # These take locks, and may hang as well.
        reader = threading.Thread(target=self.dump_disks, daemon=True)
        reader.start()
        reader.join(20)

    def dump_disks(self):
        """The engine's own view."""
        for disk in self.world.disks:
            for name in disk.nodes:
                for path in sorted(glob.glob(f'{DEBUG_BLOCK}/{name}/ioband/*') + [f'{DEBUG_BLOCK}/{name}/state'] +
                                   glob.glob(f'{DEBUG_BLOCK}/{name}/requeue_list') + glob.glob(f'{DEBUG_BLOCK}/{name}/hctx*/*')):
                    with contextlib.suppress(OSError):
                        for line in read(path).splitlines()[:40]:
                            print(f'# {path}: {line}', flush=True)


def tasks():
    """A line per thread that does not just sleep: state, where it waits, stack if the kernel tells."""
    for folder in sorted(glob.glob('/proc/[0-9]*/task/[0-9]*')):
        with contextlib.suppress(OSError):
            name, state = read(f'{folder}/comm').strip(), read(f'{folder}/stat').rpartition(')')[2].split()[0]
            where = read(f'{folder}/wchan') if os.path.exists(f'{folder}/wchan') else '?'
            stack = ''
            with contextlib.suppress(OSError):
                stack = ' < '.join(line.split(']')[-1].strip() for line in read(f'{folder}/stack').splitlines())
            if state not in 'IS' or os.path.exists(f'{folder}/exe') and read(f'{folder}/cmdline'):
                yield f'{os.path.basename(folder)} {name} {state} {where} {stack}'
