# SPDX-License-Identifier: GPL-2.0
"""The world of a round of torture: groups, disks, loads, short commands beside them; and a watchdog."""
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

CHECK_S = 5             # seconds between two checks of the watchdog
GONE_S = 60             # seconds within which removed groups must be freed


class Lingers(Exception):
    """Removed groups are not freed, perhaps because of BFQ: mainline's can take a reference on a group and lose it."""


class Tree:
    """The groups, up to 4 levels below the group of the round; places are folders of groups that may have tasks."""

    def __init__(self, world, undo):
        self.world, self.rng, self.version = world, world.rng, world.version
        self.hierarchy = Hierarchy(world.version, f'{world.folder}/cgroup-{world.version}')
        undo.callback(self.hierarchy.umount)
        self.hierarchy.enter(f't{world.seed}')
        self.names, self.frozen, self.made = [], {}, 0
        self.parents = set()    # v2: these can have no tasks, even after the last group below was removed
        self.fill('', self.rng.randint(1, 4))

    def fill(self, below, depth):
        """Makes groups below a group."""
        for _ in range(self.rng.randint(1, 3)):
            name = self.make(below)
            if depth > 1 and self.rng.random() < 0.6:
                self.fill(name, depth - 1)

    def make(self, below):
        """Makes a group; returns its name."""
        self.made += 1
        name = self.newest(below)
        self.parents.add(below)
        self.hierarchy.make(name)
        self.names.append(name)
        return name

    def newest(self, below):
        """Returns the name of the group that was made last, or failed to be made."""
        return (below + '/' if below else '') + f'g{self.made}'

    def adopt(self, below):
        """Adds a group that could not be made completely, if mkdir() has succeeded."""
        name = self.newest(below)
        if name not in self.names and os.path.isdir(self.path(name)):
            self.names.append(name)

    def path(self, name):
        """Returns the folder of a group."""
        return f'{self.hierarchy.path}/{name}'.rstrip('/')

    def is_leaf(self, name):
        """Returns whether a group has no groups below it."""
        return not any(other.startswith(name + '/') for other in self.names)

    def places(self):
        """Returns the folders of groups where tasks may start: not of frozen groups."""
        names = [name for name in self.names if (self.version == 'v1' or name not in self.parents) and not self.is_frozen(name)]
        return [self.path(name) for name in names] + [self.hierarchy.root]

    def some_place(self):
        """Returns one of these folders, seldom the root."""
        places = self.places()
        return self.rng.choice(places[:-1] if len(places) > 1 and self.rng.random() < 0.9 else places)

    def is_frozen(self, name):
        """Returns whether a group, or one above it, is frozen."""
        return any(name == other or name.startswith(other + '/') for other in self.frozen)

    def freeze(self, name, on):
        """Freezes a group, or thaws it; v2 only."""
        write(f'{self.path(name)}/cgroup.freeze', int(on))
        if on:
            self.frozen[name] = True
        else:
            self.frozen.pop(name, None)

    def thaw_all(self):
        """Thaws all groups, without waiting until they are thawed."""
        for name in list(self.frozen):
            self.freeze(name, False)

    def remove(self, name):
        """Removes a group, which must succeed soon: tasks that are ending are not listed, but keep it for a moment."""
        wait_for(lambda: not self.hierarchy.members(name), 30, f'tasks of {name}')
        wait_for(lambda: self.is_removed(name), 30, f'the removal of {name}')
        self.names.remove(name)

    def is_removed(self, name):
        """Tries to remove a group; returns whether that succeeded."""
        try:
            os.rmdir(self.path(name))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
        return True

    def remove_all(self):
        """Removes all groups of the round."""
        for name in sorted(self.names, key=len, reverse=True):
            self.remove(name)
        self.hierarchy.leave()

    def wait_gone(self):
        """Waits until all removed groups are freed."""
        try:
            wait_for(self.all_gone, GONE_S, 'the end of removed groups')
        except WorldError as error:
            if self.world.bfq:
                raise Lingers() from error
            raise WorldError(f'{error}: {self.hierarchy.dead() if self.version == "v2" else ""}') from error

    def all_gone(self):
        """Returns whether all removed groups are freed, after the page cache and BFQ were made to release theirs."""
        write('/proc/sys/vm/drop_caches', 3)
        for path in glob.glob('/sys/block/*/queue/scheduler'):
            if '[bfq]' in read(path):
                write(path, 'none')
        if self.version == 'v2':
            return not self.hierarchy.dying()
        return [line.split()[2] for line in read('/proc/cgroups').splitlines() if line.startswith('blkio')] == ['1']


class World:
    """The world of one seed."""

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
        """Returns the time, s."""
        return time.monotonic()

    def waits(self):
        """Returns whether a load or a command may end soon, and must be collected."""
        return self.aux or any(load.ending or load.killed or load.checking or load.disk.zoned for load in self.loads)

    def note(self, text):
        """Writes a line to the round's log."""
        print(f'{time.monotonic() - self.begun:.3f} {text}', file=self.log, flush=True)

    def problem(self, text):
        """Notes that the round has failed; it still goes on to its end."""
        self.note(f'WRONG: {text}')
        self.problems.append(text)

    def count_io(self, count):
        """Adds the number of I/Os of one load."""
        self.ios += count

    def add_disk(self):
        """Makes a disk."""
        self.dog.phase('making a disk')
        disk = Disk(self, self.rng)
        self.disks.append(disk)
        self.note(f'disk {disk}: {" ".join(disk.nodes)}')

    def remove_disk(self, disk):
        """Removes a disk, which must end in the time that the watchdog allows."""
        self.dog.phase(f'removing {disk}: {" ".join(disk.nodes)}')
        self.disks.remove(disk)
        disk.close()
        self.note(f'removed {disk}: {" ".join(disk.nodes)}')

    def users(self, disk):
        """Returns the loads and commands that use a disk."""
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
        """Collects loads and commands that have ended."""
        self.loads = [load for load in self.loads if not load.step()]
        self.aux = [entry for entry in self.aux if entry[0].poll() is None]

    def beside(self, text, disk=None, place=None):
        """Starts shell commands, which may take any time; whether they succeed does not matter."""
        self.aux.append((spawn(['sh', '-c', text], place, f'{self.folder}/beside.out'), disk, text))

    def disk_busy(self, disk):
        """Returns whether commands use a disk."""
        return any(user is disk for _, user, _ in self.aux)

    def drain(self, what, busy):
        """Waits until busy() returns False; the watchdog ends the round if that takes too long."""
        self.dog.phase(what)
        while busy():
            self.step()
            time.sleep(0.05)


class Watchdog(threading.Thread):
    """A thread that reports what hangs, and ends the program."""

    def __init__(self, world):
        super().__init__(daemon=True)
        # seconds for a phase: with limits (khungtaskd reports a task after 120), and after these were lifted
        self.world, self.limited, self.limit = world, *((3600, 3600) if world.virtual else (90, 240))
        self.what, self.since, self.over, self.lifted = 'begins', time.monotonic(), False, False
        self.lift = None
        self.start()

    def phase(self, what):
        """Notes what is done from now on; the time of a phase begins."""
        self.what, self.since, self.lifted = what, time.monotonic(), False

    def run(self):
        """Watches the phases. As low limits can hold I/O for longer, it lifts all limits before it reports a hang."""
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
        """Prints all that may tell the cause of a hang."""
        world = self.world
        print(f'# in {self.what}; loads: {"; ".join(map(str, world.loads))}; commands: {"; ".join(entry[2] for entry in world.aux)}', flush=True)
        for line in tasks():
            print(f'# {line}', flush=True)
        # twice, as counters that change are of devices that do not hang
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
        """Prints the files of ioband in debugfs."""
        for disk in self.world.disks:
            for name in disk.nodes:
                for path in sorted(glob.glob(f'{DEBUG_BLOCK}/{name}/ioband/*') + [f'{DEBUG_BLOCK}/{name}/state'] +
                                   glob.glob(f'{DEBUG_BLOCK}/{name}/requeue_list') + glob.glob(f'{DEBUG_BLOCK}/{name}/hctx*/*')):
                    with contextlib.suppress(OSError):
                        for line in read(path).splitlines()[:40]:
                            print(f'# {path}: {line}', flush=True)


def tasks():
    """Yields a line for each thread that does not just sleep: state, where it waits, and stack if the kernel tells."""
    for folder in sorted(glob.glob('/proc/[0-9]*/task/[0-9]*')):
        with contextlib.suppress(OSError):
            name, state = read(f'{folder}/comm').strip(), read(f'{folder}/stat').rpartition(')')[2].split()[0]
            where = read(f'{folder}/wchan') if os.path.exists(f'{folder}/wchan') else '?'
            stack = ''
            with contextlib.suppress(OSError):
                stack = ' < '.join(line.split(']')[-1].strip() for line in read(f'{folder}/stack').splitlines())
            if state not in 'IS' or os.path.exists(f'{folder}/exe') and read(f'{folder}/cmdline'):
                yield f'{os.path.basename(folder)} {name} {state} {where} {stack}'
