# SPDX-License-Identifier: GPL-2.0
"""Makes and removes the world of one attack: disk, stacked devices, file system, groups, trace.

Everything is done through files and system calls; programs run only where there is no other way (mkfs, dmsetup,
losetup). Sizes are bytes, times ns of CLOCK_MONOTONIC unless a name says otherwise.
"""
import collections
import contextlib
import ctypes
import fcntl
import os
import subprocess
import time

MIB = 1 << 20
DISK_MIB = 400
NULLB = '/sys/kernel/config/nullb'
TRACE = '/sys/kernel/tracing/instances/attack'
TRACE_KB = 49152
LOOP_CTL_ADD, LOOP_CTL_REMOVE = 0x4C80, 0x4C81
LOOP_FIRST = 16             # number of the loop device of seed 0
libc = ctypes.CDLL(None, use_errno=True)

MKFS = {
    'ext4': '-q -F -E lazy_itable_init=0,nodiscard -J size=8',
    'xfs': '-q -f -K',
    'btrfs': '-q -f -K',
    'f2fs': '-q -f -t 0',
    'vfat': '',
}


class WorldError(Exception):
    """A part of the world could not be made; this is not a fault of ioband."""


def write(path, text):
    """Writes a line to a control file."""
    with open(path, 'w', encoding='ascii') as file:
        file.write(f'{text}\n')


def read(path):
    """Returns the text of a small file."""
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.read()


def run(*command):
    """Runs a program; returns its output, or raises WorldError with it."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', errors='replace', check=False)
    if done.returncode:
        raise WorldError(f'{" ".join(command)}: {done.stdout.strip()[-200:]}')
    return done.stdout.strip()


def wait_for(condition, seconds, what):
    """Polls until condition() is true; raises WorldError after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise WorldError(f'{what}: not within {seconds} s')
        time.sleep(0.02)


def loop(undo, number):
    """Returns the node of a new loop device, whose inode no group has used before."""
    control = os.open('/dev/loop-control', os.O_RDWR)
    undo.callback(os.close, control)
    fcntl.ioctl(control, LOOP_CTL_ADD, number)
    undo.callback(wait_for, lambda: ioctl_ok(control, LOOP_CTL_REMOVE, number), 10, 'removal of the loop device')
    return f'/dev/loop{number}'


def ioctl_ok(fd, request, number):
    """Calls ioctl(); returns False if the device is busy."""
    with contextlib.suppress(OSError):
        fcntl.ioctl(fd, request, number)
        return True
    return False


def memory_dirty(folder):
    """Returns the bytes of dirty pages charged to a group of v2 and the groups below it; 0 if that is not known."""
    with contextlib.suppress(OSError):
        stat = dict(line.split() for line in read(f'{folder}/memory.stat').splitlines())
        return int(stat['file_dirty']) + int(stat['file_writeback'])
    return 0


def dirty_bytes(root):
    """Returns {cgroup id: bytes of its pages that are dirty or being written}.

    Pages that a group dirtied while it had no limit may have no recorded dirtier. But their memory is charged to the
    group, as is that of most pages with a dirtier: so the larger of both numbers counts.
    """
    found = collections.Counter()
    for line in open('/sys/kernel/debug/dirty_owner', encoding='ascii'):
        words = dict(word.split('=') for word in line.split() if '=' in word)
        found[int(words['cg'])] += (int(words['dirty']) + int(words['writing'])) * 4096
    for folder, below, _ in os.walk(root):
        own = memory_dirty(folder) - sum(memory_dirty(f'{folder}/{name}') for name in below)
        group = os.stat(folder).st_ino
        found[group] = max(found[group], own)
    return found


class Disk:
    """A null_blk disk in memory, 0.1 ms an I/O, 64 at a time, with the plan's stacked device; undo is an ExitStack."""

    def __init__(self, undo, name, stack='disk'):
        folder = f'{NULLB}/{name}'
        os.mkdir(folder)
        undo.callback(os.rmdir, folder)
        for key, value in (('size', DISK_MIB), ('irqmode', 2), ('completion_nsec', 100000), ('hw_queue_depth', 64),
                           ('memory_backed', 1), ('discard', 1), ('power', 1)):
            write(f'{folder}/{key}', value)
        undo.callback(write, f'{folder}/power', 0)
        self.name, self.node = name, f'/dev/{name}'
        self.dev = read(f'/sys/block/{name}/dev').strip()
        self.top = self.node        # what the file system or the raw I/O is on
        if stack == 'loop':
            # else, on v2, the pages that it dirties would belong to the group that first used the disk's inode
            self.top = loop(undo, int(name[2:]) + LOOP_FIRST)
            run('losetup', '--direct-io=on', self.top, self.node)
            undo.callback(run, 'losetup', '-d', self.top)
        elif stack != 'disk':
            self.top = self.dm(undo, stack)

        self.top_dev = read(f'/sys/class/block/{os.path.basename(self.top)}/dev').strip()

    def written(self):
        """Returns the bytes that the disk has written since it was made."""
        return int(read(f'/sys/block/{self.name}/stat').split()[6]) * 512

    def dm(self, undo, stack):
        """Makes a dm device over all of the disk; returns its node."""
        sectors = int(read(f'/sys/block/{self.name}/size'))
        half = sectors // 2 // 256 * 256
        table = f'0 {sectors} linear {self.node} 0' if stack == 'linear' else \
            f'0 {half * 2} striped 2 128 {self.node} 0 {self.node} {half}'
        if not os.path.exists('/dev/mapper/control'):
            run('dmsetup', '--noudevsync', 'mknodes')
        name = f'attack-{self.name}'
        run('dmsetup', '--noudevsync', '--noudevrules', 'create', name, '--table', table)
        undo.callback(run, 'dmsetup', '--noudevsync', '--noudevrules', 'remove', '--retry', name)
        return '/dev/dm-' + run('dmsetup', 'info', '-c', '--noheadings', '-o', 'minor', name)


def mount(source, target, fs, undo):
    """Makes the file system and mounts it; undo unmounts it."""
    run(f'mkfs.{fs}', *MKFS[fs].split(), source)
    data = b'umask=0000' if fs == 'vfat' else b''
    if libc.mount(source.encode(), target.encode(), fs.encode(), 1 << 10, data):     # MS_NOATIME
        raise WorldError(f'mount {fs}: {os.strerror(ctypes.get_errno())}')

    def unmount():
        """Unmounts the file system, which is busy until killed tasks have ended."""
        wait_for(lambda: not libc.umount2(target.encode(), 0), 60, 'umount')
    undo.callback(unmount)


class Hierarchy:
    """The cgroup hierarchy with the I/O controller, mounted at path until the end of the run."""

    def __init__(self, version, path):
        self.version, self.root, self.path, self.mounted = version, path, path, False
        os.makedirs(path, exist_ok=True)
        wait_for(self.mount, 60, f'cgroup {version}')

    def mount(self):
        """Tries to mount; the controller is free once the last group of the other hierarchy is freed."""
        name, data = (b'cgroup', b'blkio') if self.version == 'v1' else (b'cgroup2', None)
        if not self.mounted and libc.mount(b'none', self.path.encode(), name, 0, data):
            write('/proc/sys/vm/drop_caches', 3)
            return False
        self.mounted = True
        if self.version == 'v1':
            return True
        if 'io' not in read(f'{self.path}/cgroup.controllers').split():
            return False
        write(f'{self.path}/cgroup.subtree_control', '+io +memory')
        return True

    def enter(self, name):
        """Makes a group below the root, without limits, in which the following groups are made."""
        self.path = f'{self.root}/{name}'
        os.mkdir(self.path)
        if self.version == 'v2':
            write(f'{self.path}/cgroup.subtree_control', '+io +memory')

    def leave(self):
        """Removes this group; returns how many removed groups are not freed a second later, which only v2 tells."""
        os.rmdir(self.path)
        self.path = self.root
        if self.version == 'v1':
            return 0
        for _ in range(10):
            if not self.dying():
                return 0
            write('/proc/sys/vm/drop_caches', 3)
            time.sleep(0.1)
        return self.dying()

    def dying(self):
        """Returns the number of removed groups that are still referred to."""
        return int(self.dead().get('nr_dying_descendants', 0))

    def dead(self):
        """Returns the counts of removed groups that are not freed, from cgroup.stat of v2: {key: count}."""
        stat = dict(line.split() for line in read(f'{self.root}/cgroup.stat').splitlines())
        return {key: count for key, count in stat.items() if 'dying' in key and count != '0'}

    def umount(self):
        """Unmounts the hierarchy, which frees the controller."""
        if self.version == 'v2':
            write(f'{self.path}/cgroup.subtree_control', '-io -memory')
        libc.umount2(self.path.encode(), 0)

    def make(self, name):
        """Makes a group; returns its id, as in the trace."""
        if self.version == 'v2' and '/' in name:
            write(f'{self.path}/{name.rpartition("/")[0]}/cgroup.subtree_control', '+io +memory')
        os.mkdir(f'{self.path}/{name}')
        return self.id(name)

    def id(self, name):
        """Returns the id of a group, as in the trace."""
        return os.stat(f'{self.path}/{name}').st_ino

    def delegate(self, name, uid):
        """Lets a user move tasks between the groups below and make groups there."""
        path = f'{self.path}/{name}'
        for file in ('', '/cgroup.procs', '/cgroup.subtree_control', '/cgroup.threads', '/tasks'):
            if os.path.exists(path + file):
                os.chown(path + file, uid, uid)

    def limit(self, name, dev, limits):
        """Sets limits: {key of io.max: rate or None for no limit}."""
        path = f'{self.path}/{name}'
        if self.version == 'v2':
            write(f'{path}/io.max', f'{dev} ' + ' '.join(f'{key}={rate or "max"}' for key, rate in limits.items()))
            return
        for key, rate in limits.items():
            op = 'read' if key[0] == 'r' else 'write'
            write(f'{path}/blkio.throttle.{op}_{key[1:]}_device', f'{dev} {rate or 0}')

    def members(self, name):
        """Returns the pids in a group, or tids where a group may be threaded."""
        return read(f'{self.path}/{name}/cgroup.{"threads" if self.version == "v2" else "procs"}').split()

    def remove(self, name):
        """Removes a group and those below it, after its tasks have ended."""
        path = f'{self.path}/{name}'
        with contextlib.suppress(FileNotFoundError):
            for child in [entry.name for entry in os.scandir(path) if entry.is_dir()]:
                self.remove(f'{name}/{child}')
            wait_for(lambda: not self.members(name), 30, f'tasks of {name}')
            os.rmdir(path)


class Trace:
    """The events of disks in a trace instance, none of which may be missing."""
    EVENTS = ('ioband/ioband_admit', 'ioband/ioband_hold', 'ioband/ioband_release', 'ioband/ioband_return',
              'block/block_bio_queue')

    def __init__(self):
        if not os.path.isdir(TRACE):
            os.mkdir(TRACE)
        write(f'{TRACE}/buffer_size_kb', TRACE_KB)
        write(f'{TRACE}/trace_clock', 'mono')

    def start(self, *devs):
        """Starts to record the events of disks, each 'M:m'."""
        numbers = {int(dev.split(':')[0]) << 20 | int(dev.split(':')[1]) for dev in devs}
        events = ' || '.join(f'dev == {number}' for number in numbers)
        write(f'{TRACE}/tracing_on', 0)
        write(f'{TRACE}/trace', '')
        for event in self.EVENTS:
            write(f'{TRACE}/events/{event}/filter', events)
            write(f'{TRACE}/events/{event}/enable', 1)
        write(f'{TRACE}/tracing_on', 1)

    def stop(self):
        """Stops recording; returns the recorded lines."""
        write(f'{TRACE}/tracing_on', 0)
        stats = read(f'{TRACE}/per_cpu/cpu0/stats')
        if 'overrun: 0' not in stats or 'dropped events: 0' not in stats:
            raise WorldError('the trace buffer was too small')
        return read(f'{TRACE}/trace').splitlines()
