# SPDX-License-Identifier: GPL-2.0
"""Makes the plan of one attack from a seed: groups, limits, disk, file system and routes.

make_plan(seed) is a pure function; the same seed gives the same plan on every machine. Rates are bytes or I/Os per
second, times are seconds from the start of the attack unless a name says otherwise.
"""
import dataclasses
import math
import random

KIB, MIB = 1 << 10, 1 << 20
FILE_SYSTEMS = ('raw', 'ext4', 'xfs', 'btrfs', 'f2fs', 'vfat')
STACKS = ('disk', 'disk', 'disk', 'disk', 'linear', 'stripe', 'loop')
RATE_BYTES = (64 * KIB, 16 * MIB)       # of wbps and rbps
RATE_IOS = (10, 2000)                   # of wiops and riops
TASK_BYTES = 48 * MIB                   # a task asks for at most that much
FILE_BYTES = 8 * MIB                    # length of each file, or of each part of a raw disk


@dataclasses.dataclass(frozen=True)
class Route:
    """A way to reach the disk. pair: the group of a second task that helps; attack_routes.py says what each does."""
    name: str
    ops: str = 'w'                      # r, w or rw: which limits it attacks
    buffered: bool = True
    versions: tuple = ('v1', 'v2')
    fs: tuple = FILE_SYSTEMS
    pair: str = ''                      # sibling, outsider or victim: the group of the second task
    door: bool = True                   # the task waits before its call, and not after it: ioband.rst, "Debts"
    pipe: bool = False                  # what it writes goes through a pipe, and is paid for afterwards


FILES = FILE_SYSTEMS[1:]
# file systems whose inodes have no group on v2, as in mainline: buffered writes there are the root group's
UNOWNED_ON_V2 = ('vfat',)
TABLE: tuple[tuple[str, dict], ...] = (     # (name, other fields of Route)
    ('sync', {}), ('sync_rounds', {'fs': ('ext4', 'xfs', 'f2fs')}), ('syncfs', {}), ('fsync', {}), ('fdatasync', {}), ('sync_file_range', {}), ('msync', {}),
    ('osync', {}), ('rwf_dsync', {}), ('mmap', {}), ('nowait_write', {}),
    ('fsync_by_sibling', {'pair': 'sibling'}), ('fsync_by_outsider', {'pair': 'outsider'}),
    ('sync_by_outsider', {'pair': 'outsider'}), ('range_by_sibling', {'pair': 'sibling'}),
    ('dio_small', {'buffered': False}), ('dio_huge', {'buffered': False}), ('dio_mixed', {'buffered': False, 'ops': 'rw'}),
    ('splice_direct', {'buffered': False}), ('splice_buffered', {}),
    ('splice_awaited', {'buffered': True, 'pair': 'victim', 'fs': ('ext4', 'xfs', 'f2fs', 'vfat')}),
    ('sendfile', {'pipe': True}), ('sendfile_direct', {'buffered': False}), ('vmsplice', {}), ('vmsplice_direct', {'buffered': False}),
    ('tee', {}), ('copy_file_range', {'fs': FILES}),
    ('uring_direct', {'buffered': False}), ('uring_fsync', {}), ('uring_nowait', {}),
    ('move_direct', {'buffered': False, 'pair': 'move'}), ('move_buffered', {'pair': 'move'}),
    ('threads', {'pair': 'move'}), ('truncate', {'fs': FILES}), ('punch', {'fs': ('ext4', 'xfs', 'btrfs', 'f2fs')}),
    ('discard', {'buffered': False, 'fs': ('raw',)}), ('metadata', {'fs': FILES}),
    ('read_direct', {'ops': 'r', 'buffered': False}), ('read_ahead', {'ops': 'r', 'buffered': False}),
    ('read_advise', {'ops': 'r', 'buffered': False, 'door': False}), ('read_nowait', {'ops': 'r', 'buffered': False}),
    ('flip_buffered', {}), ('flip_direct', {'buffered': False}), ('removal', {}), ('nested', {'versions': ('v2',)}),
    ('frame', {'pair': 'victim'}), ('other_disk', {'pair': 'outsider'}),
)
ROUTES = tuple(Route(name, **fields) for name, fields in TABLE)
# routes that have exceeded limits before come more often
AGAIN = ('sync_rounds', 'fsync_by_sibling', 'splice_awaited', 'other_disk', 'sync_rounds', 'frame', 'nested', 'fsync_by_outsider')
TURNS = [route.name for route in ROUTES] + list(AGAIN)


@dataclasses.dataclass
class Task:
    """A task. role: attack, or help for the second task of a pair, which uses the same file number as the attacker."""
    route: str
    role: str
    group: str
    file: int
    chunk: int          # bytes of one write or read
    pause_s: float      # between rounds
    total: int          # bytes it asks for at most
    other: str = ''     # the group it moves to, or whose pages it takes

    def route_ops(self):
        """Returns the directions of its route: r, w or rw."""
        return next((route.ops for route in ROUTES if route.name == self.route), 'r')


@dataclasses.dataclass
class Plan:
    """The plan of one seed. limits: {group: {key of io.max: rate}}; groups: parents before children."""
    seed: int
    version: str
    fs: str
    stack: str
    seconds: int
    groups: list
    limits: dict
    tasks: list
    flips: list = dataclasses.field(default_factory=list)       # (s, group, {key: rate or None})
    removals: list = dataclasses.field(default_factory=list)    # (s, group)
    writeback_cs: int = 50
    syncing_bystander: bool = False

    def __str__(self):
        """Returns the text of the test point: tree and routes."""
        tree = ' '.join(name + limit_text(self.limits.get(name)) for name in self.groups)
        stack = '' if self.stack == 'disk' else f' on {self.stack}'
        return f'seed {self.seed}: {self.version} {self.fs}{stack}, {tree}: ' + \
            ', '.join(f'{task.route}@{task.group}' for task in self.tasks if task.role == 'attack')

    def limited(self, group, op):
        """Returns the groups whose limits bind I/O of the group in direction op, 'r' or 'w'."""
        chain = [group]
        while self.version == 'v2' and '/' in chain[-1]:
            chain.append(chain[-1].rpartition('/')[0])
        return [name for name in chain if any(key[0] == op for key in self.limits.get(name, {}))]


def limit_text(limits):
    """Returns limits as text, such as "(wbps=64K)", or ''."""
    return f"({' '.join(f'{key}={rate}' for key, rate in limits.items())})" if limits else ''


def rate_of(rng, key):
    """Returns a rate for a key, evenly distributed over the logarithm of its range."""
    low, high = RATE_BYTES if key.endswith('bps') else RATE_IOS
    return int(round(math.exp(rng.uniform(math.log(low), math.log(high)))))


def limits_of(rng, ops):
    """Returns one or two limits for each direction that is attacked."""
    keys = []
    for op in ops:
        keys += rng.choice(([op + 'bps'],) * 3 + ([op + 'iops'], [op + 'bps', op + 'iops']))
    return {key: rate_of(rng, key) for key in keys}


# v2 trees: (groups, those with limits, where attackers are)
TREES = (
    (['a'], ['a'], ['a']),
    (['p', 'p/a', 'p/b'], ['p'], ['p/a', 'p/b']),
    (['p', 'p/a', 'p/b'], ['p', 'p/a'], ['p/a', 'p/b']),
    (['p', 'p/m', 'p/m/a', 'p/m/b', 'p/c'], ['p', 'p/m'], ['p/m/a', 'p/m/b', 'p/c']),
    (['p', 'p/m', 'p/m/a', 'p/m/b'], ['p'], ['p/m/a', 'p/m/b']),
    (['a', 'b'], ['a', 'b'], ['a', 'b']),
)
# v1 is flat: every attacker has a limit of its own
FLAT = ((['a'], ['a'], ['a']), (['a', 'b'], ['a', 'b'], ['a', 'b']), (['a', 'a/b'], ['a', 'a/b'], ['a', 'a/b']))


def tree_of(rng, version, route):
    """Returns a tree of groups that suits the route."""
    trees = [tree for tree in (TREES if version == 'v2' else FLAT)
             if route.pair in ('', 'outsider') or len(tree[2]) > 1]
    if version == 'v2' and route.pair in ('sibling', 'move'):
        trees = [tree for tree in trees if tree[0][0] == 'p']
    if route.pair == 'victim' or route.name == 'removal':
        trees = [tree for tree in trees if 'p/m' not in tree[0]]
    if route.name == 'nested':
        trees = [TREES[1]]
    return rng.choice(trees)


def new_task(rng, route, role, group, number, rates, seconds):
    """Returns a task that asks for about three times as much as its limits allow, TASK_BYTES at most."""
    chunk = rng.choice((4, 16, 64, 256, 1024)) * KIB
    if route.name == 'dio_small':
        chunk = 4 * KIB
    elif route.name == 'sync_rounds':
        chunk = MIB
    elif route.name == 'dio_huge':
        chunk = rng.choice((1, 2, 4)) * MIB
    total = max([8 * MIB] + [3 * rate * (seconds + 1) for key, rate in rates.items() if key.endswith('bps')])
    return Task(route.name, role, group, number, chunk, rng.choice((0.001, 0.005, 0.02)), min(total, TASK_BYTES))


def make_plan(seed):
    """Returns the plan of a seed. Routes take turns, so that a range of seeds as long as TURNS has each of them."""
    rng = random.Random(f'ioband attack {seed}')
    route = next(route for route in ROUTES if route.name == TURNS[seed % len(TURNS)])
    version = rng.choice([version for version in ('v1', 'v2', 'v2') if version in route.versions])
    fs = rng.choice([fs for fs in ('raw', 'raw', 'ext4', 'ext4') + FILE_SYSTEMS if fs in route.fs and
                     not (version == 'v2' and route.buffered and fs in UNOWNED_ON_V2)])
    stack = rng.choice(STACKS)
    seconds = rng.choice((3, 3, 4, 5))
    groups, with_limits, attackers = tree_of(rng, version, route)
    plan = Plan(seed, version, fs, stack, seconds, list(groups), {name: limits_of(rng, route.ops) for name in with_limits}, [])
    plan.writeback_cs = rng.choice((20, 50, 100))
    plan.syncing_bystander = rng.random() < 0.25
    add_tasks(rng, plan, route, list(attackers))
    for _ in range(0 if route.name == 'nested' else rng.choice((0, 1, 1, 2))):
        extra = rng.choice([r for r in ROUTES if not r.pair and r.ops == route.ops and fs in r.fs and version in r.versions
                            and not (version == 'v2' and r.buffered and fs in UNOWNED_ON_V2)
                            and not r.name.startswith(('flip', 'removal', 'nested'))])
        task = new_task(rng, extra, 'attack', rng.choice(attackers), len(plan.tasks), plan.limits[with_limits[0]], seconds)
        plan.tasks.append(task)
    if route.name.startswith('flip'):
        flips(rng, plan)
    if route.name == 'removal':
        plan.removals = [(seconds * 0.4, plan.tasks[0].group)]
    plan.groups.append('by')
    return plan


def add_tasks(rng, plan, route, attackers):
    """Adds the tasks of the main route to the plan."""
    rng.shuffle(attackers)
    first, second = attackers[0], attackers[-1]
    rates = plan.limits.get(first) or plan.limits[plan.groups[0]]
    main = new_task(rng, route, 'attack', first, 0, rates, plan.seconds)
    plan.tasks.append(main)
    if route.pair == 'move':
        main.other = second
    elif route.pair:
        group = {'sibling': second, 'outsider': 'by', 'victim': second}[route.pair]
        if route.pair == 'victim':
            main.other = second
        helper = new_task(rng, route, 'help', group, 0, rates, plan.seconds)
        helper.other = first
        plan.tasks.append(helper)
    if route.name == 'splice_awaited':
        # the victim's pages are to be under writeback for long
        plan.limits[second] = {'wiops': rng.randint(1, 4)}
    if route.name == 'discard':
        for limits in plan.limits.values():
            limits['wiops'] = rate_of(rng, 'wiops')


def flips(rng, plan):
    """Adds changes of limits during the run, mostly to other rates, at times to no limit and back."""
    for _ in range(rng.randint(2, 12)):
        group = rng.choice(list(plan.limits))
        change = {key: None if rng.random() < 0.1 else rate_of(rng, key) for key in plan.limits[group]}
        plan.flips.append((round(rng.uniform(0.1, plan.seconds - 0.1), 3), group, change))
    plan.flips.sort(key=lambda flip: flip[0])
