# SPDX-License-Identifier: GPL-2.0
"""Runs one attack: makes its world, starts tasks, changes limits as root, and ends all tasks.

The Attack keeps what attack_verdict.py needs. Times are of CLOCK_MONOTONIC.
"""
import contextlib
import json
import mmap
import os
import signal
import time

import attack_more
import attack_pipes
import attack_plan
import attack_routes
import attack_task
import attack_world
from attack_world import WorldError, read, wait_for, write

MIB = 1 << 20
NSEC = 10**9
GRACE_S = 30            # seconds within which all tasks must end after the limits have been lifted
BY_READS, BY_SYNCS = 14, 15     # numbers of the bystander's files
ROUTES = {**attack_routes.WRITES, **attack_pipes.PIPES, **attack_more.MORE,
          'bystander_reads': attack_task.bystander_reads, 'bystander_syncs': attack_task.bystander_syncs}


class Attack:
    """One plan in its world; faults and notes are lines for people."""

    def __init__(self, plan, hierarchy, trace, folder):
        self.plan, self.hierarchy, self.trace, self.folder = plan, hierarchy, trace, folder
        self.faults, self.notes = [], []
        self.ids = {}           # group name -> cgroup ids that it has had
        self.history = {}       # (group, key) -> [(ns, rate or None)]
        self.dirty = []         # [(ns, {cgroup id: bytes that are dirty or being written})] when limits change
        self.tasks = {}         # pid -> (Task, result file)
        self.pids = {}          # pid -> Task, of all that were started
        self.killed = set()     # pids of tasks that were killed with their group
        self.done = []          # (Task, result)
        self.alone_ns = []
        self.lines = None       # of the trace
        self.written = 0        # bytes, as the disk counts them

    def run(self):
        """Runs the attack, and adds faults and notes."""
        with contextlib.ExitStack() as undo:
            self.disk = attack_world.Disk(undo, f'at{self.plan.seed}', self.plan.stack)
            self.other = attack_world.Disk(undo, f'ao{self.plan.seed}')
            self.where = self.disk.top
            if self.plan.fs != 'raw':
                self.where = f'{self.folder}/mnt-{self.plan.seed}'
                os.makedirs(self.where, exist_ok=True)
                attack_world.mount(self.disk.top, self.where, self.plan.fs, undo)
            self.prepare()
            undo.callback(self.end_groups)
            self.make_groups()
            try:
                self.attack()
            finally:
                self.end_tasks()
            self.check_data()

    def prepare(self):
        """Makes the files that are read, and sets their permissions."""
        write('/proc/sys/vm/dirty_writeback_centisecs', self.plan.writeback_cs)
        write('/proc/sys/vm/dirty_expire_centisecs', self.plan.writeback_cs)
        os.environ.update(ATTACK_DEV=self.disk.dev, ATTACK_OTHER=self.other.node)
        for node in (self.disk.node, self.disk.top, self.other.node):
            os.chmod(node, 0o666)
        if self.plan.fs != 'raw':
            os.chmod(self.where, 0o777)
        numbers = [BY_READS] + [task.file for task in self.plan.tasks if 'r' in task.route_ops()]
        for file in numbers:
            base = attack_plan.FILE_BYTES * (1 + file) if self.plan.fs == 'raw' else 0
            path = self.where if self.plan.fs == 'raw' else f'{self.where}/f{file}'
            # by direct I/O: else, on v2, the inode of the raw disk would belong to root's group
            fd = os.open(path, os.O_RDWR | os.O_DIRECT | (0 if self.plan.fs == 'raw' else os.O_CREAT), 0o666)
            with mmap.mmap(-1, MIB) as buffer:
                buffer[:] = attack_task.PATTERN
                for at in range(0, attack_plan.FILE_BYTES, MIB):
                    os.pwritev(fd, [buffer], base + at)
            os.fsync(fd)
            os.fchmod(fd, 0o666)
            if file == BY_READS:
                self.measure_alone(path, base)
            os.close(fd)
        os.sync()
        write('/proc/sys/vm/drop_caches', 1)

    def measure_alone(self, path, base):
        """Measures the bystander's reads before other tasks run."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        attack_task.reading(None, fd, base, self.alone_ns, 0, 20)
        os.close(fd)

    def make_groups(self):
        """Makes the tree of groups, with limits."""
        self.hierarchy.enter(f'seed-{self.plan.seed}')
        for name in self.plan.groups:
            self.ids[name] = [self.hierarchy.make(name)]
        for name, limits in self.plan.limits.items():
            self.hierarchy.limit(name, self.disk.dev, limits)
            for key, rate in limits.items():
                self.history[name, key] = [(-NSEC, rate)]
        for task in self.plan.tasks:
            if task.other and task.role == 'attack' or task.route in ('nested', 'threads'):
                for name in self.plan.groups:
                    if name != 'by':
                        self.hierarchy.delegate(name, attack_task.NOBODY)

    def start(self, task, seconds):
        """Starts a task in its group."""
        result = f'{self.folder}/result-{len(self.tasks) + len(self.done)}'
        # not through a loop device, whose tags are not those of the disk
        where = self.disk.node if task.route == 'bystander_reads' and self.plan.stack == 'loop' else self.where
        pid = attack_task.start(ROUTES, task, where, self.hierarchy, seconds, self.plan.seed, result)
        self.tasks[pid] = (task, result)
        self.pids[pid] = task

    def attack(self):
        """Runs the tasks and root's changes while the trace is recorded."""
        plan, begin = self.plan, time.monotonic()
        written = self.disk.written()
        self.trace.start(self.disk.dev, self.disk.top_dev)
        by = attack_plan.Task('bystander_reads', 'help', 'by', BY_READS, 4096, 0, 0)
        self.start(by, plan.seconds)
        if plan.syncing_bystander:
            self.start(attack_plan.Task('bystander_syncs', 'help', 'by', BY_SYNCS, 4096, 0, 0), plan.seconds)
        for task in plan.tasks:
            self.start(task, plan.seconds)
        changes = [(at, self.flip, (group, change)) for at, group, change in plan.flips]
        changes += [(at, self.replace, (group, begin)) for at, group in plan.removals]
        for at, function, args in sorted(changes, key=lambda change: change[0]):
            time.sleep(max(begin + at - time.monotonic(), 0))
            function(*args)
        time.sleep(max(begin + plan.seconds - time.monotonic(), 0))
        self.written = self.disk.written() - written
        self.lines = self.trace.stop()

    def flip(self, group, change):
        """Changes limits as root; during the change both the old and the new one count as in force."""
        before = time.monotonic_ns()
        self.dirty.append((before, attack_world.dirty_bytes(self.hierarchy.path)))
        self.hierarchy.limit(group, self.disk.dev, change)
        after = time.monotonic_ns()
        for key, rate in change.items():
            old = self.history[group, key][-1][1]
            largest = None if None in (old, rate) else max(old, rate)
            self.history[group, key] += [(before, largest), (after, rate)]

    def replace(self, group, begin):
        """Kills the tasks of a group, removes the group and makes it again with the same limits."""
        for pid, (task, _) in list(self.tasks.items()):
            if task.group == group:
                os.kill(pid, signal.SIGKILL)
                self.killed.add(pid)
        limits = self.plan.limits.get(group, {})
        # killed tasks wait for I/O that they have submitted: at most as much as dio_huge has outstanding
        wait_s = 10 + 16 * MIB / min([rate for key, rate in limits.items() if key == 'wbps'], default=MIB)
        with contextlib.suppress(WorldError):
            wait_for(lambda: not self.hierarchy.members(group), wait_s, 'killed tasks')
        killed = [task for task, _ in self.tasks.values() if task.group == group]
        if self.hierarchy.members(group):
            self.faults.append(f'{group}: its killed tasks have not ended after {wait_s:.0f} s')
            return
        self.reap()
        self.hierarchy.remove(group)
        now = time.monotonic_ns()
        self.ids[group].append(self.hierarchy.make(group))
        for key in limits:
            self.history[group, key].append((now, None))
        if limits:
            self.hierarchy.limit(group, self.disk.dev, limits)
        for key, rate in limits.items():
            self.history[group, key].append((time.monotonic_ns(), rate))
        left = begin + self.plan.seconds - time.monotonic()
        for task in killed:
            if left > 0:
                self.start(task, left)

    def reap(self):
        """Collects tasks that have ended. A task leaves its group a moment before its parent can wait for it."""
        for pid in list(self.tasks):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            task, path = self.tasks.pop(pid)
            text = read(path) if os.path.exists(path) else ''
            result = json.loads(text) if text else {}
            self.done.append((task, result))
            if status and pid not in self.killed:
                self.faults.append(f'{task.route}@{task.group} ended with status {status}: {result.get("error", "no report")}')
            for group in result.get('groups', []):
                self.ids[task.group].append(group)
        return not self.tasks

    def end_tasks(self):
        """Lifts all limits; then all tasks must end."""
        begin = time.monotonic()
        for name, limits in self.plan.limits.items():
            with contextlib.suppress(OSError):
                self.hierarchy.limit(name, self.disk.dev, dict.fromkeys(limits))
        try:
            wait_for(self.reap, GRACE_S, 'tasks')
        except WorldError:
            names = [f'{task.route}@{task.group}' for task, _ in self.tasks.values()]
            self.faults.append(f'stuck for {GRACE_S} s after all limits were lifted: {", ".join(names)}')
            for pid in self.tasks:
                os.kill(pid, signal.SIGKILL)
            wait_for(self.reap, 3600, 'killed tasks')
        took = time.monotonic() - begin
        if took > 5:
            self.notes.append(f'the last task ended {took:.1f} s after the limits were lifted')

    def end_groups(self):
        """Removes all groups, the last one first."""
        for name in reversed(self.plan.groups):
            self.hierarchy.remove(name)
        left = self.hierarchy.leave()
        if left:
            self.notes.append(f'{left} removed groups are still referred to')

    def check_data(self):
        """Checks that the disk has the pages that tasks wrote and did not remove; files are found by number."""
        os.sync()
        write('/proc/sys/vm/drop_caches', 1)
        for task, result in self.done:
            if task.role == 'attack' and result.get('pages'):
                fault = attack_task.verify(self.where, task.file, self.plan.fs == 'raw', result['pages'])
                self.faults += [fault] if fault else []
