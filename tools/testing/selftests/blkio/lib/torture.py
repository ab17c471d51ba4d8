#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs rounds of torture: each seed is a world of groups, disks and loads, in which things change at random.

At the end of a round all I/O must have ended, all data must be right, no I/O may be held, and groups and disks must be
removed. Prints "ok seed N: ..." or "not ok seed N: ..." for each; the log is FOLDER/seed-N.log. Exits with 3 when a
round hangs, as the machine cannot be used after that.
"""
import argparse
import os
import random
import sys
import time
import traceback

from attack_world import NULLB, WorldError, write
from torture_changes import Changes
from torture_world import Lingers, World

TRY = 0.3               # seconds between two looks at the loads


class Round:
    """The round of one seed."""

    def __init__(self, world, changes):
        self.world, self.changes, self.rng = world, changes, world.rng
        least, most = (60, 1800) if world.virtual else (10, 60)
        self.seconds = random.Random(world.seed + 1000000).uniform(least, most)
        world.dog.lift = lambda: self.changes.lift_all(world.disks)
        # the mean time between two changes, s
        self.gap = 10 ** self.rng.uniform(*((-0.3, 1.3) if world.virtual else (-2, -0.5)))

    def run(self):
        """Runs loads and changes, from the first load to the last."""
        world, changes = self.world, self.changes
        for key, values in (('dirty_background_bytes', (1 << 18, 1 << 22, 1 << 26)), ('dirty_expire_centisecs', (100, 3000)),
                            ('dirty_writeback_centisecs', (100, 500))):
            write(f'/proc/sys/vm/{key}', self.rng.choice(values))
        end, next_change = world.now() + self.seconds, world.now()
        while world.now() < end:
            now = world.now()
            changes.due(now)
            world.step()
            world.fill()
            if now >= next_change:
                for _ in range(20 if self.rng.random() < 0.02 else 1):
                    changes.one(now)
                next_change = now + self.rng.expovariate(1 / self.gap)
            world.dog.phase('running')
            times = [entry[0] for entry in changes.later] + [next_change, now + TRY if world.waits() else end, now + 20 * TRY, end]
            time.sleep(max(min(times) - world.now(), 0.001))
        self.end()

    def end(self):
        """Ends all loads, waits until no I/O is held, and compares the data."""
        world, changes, rng = self.world, self.changes, self.rng
        world.note('the end')
        world.dog.phase('the end of changes')
        if rng.random() < 0.3:
            for load in world.loads:
                load.end()
            time.sleep(changes.short())
        changes.all_now()
        changes.lift_all(world.disks)
        world.drain('commands', lambda: world.aux)
        for load in world.loads:
            load.end()
        world.healed = True
        world.drain('loads', lambda: world.loads)
        world.drain('bios held', lambda: any(any(disk.held()) for disk in world.disks))
        tree = world.tree
        steps = [self.end_disks, tree.remove_all]
        rng.shuffle(steps)
        # Pages of mounted file systems, and for minutes the idle workers of loop devices, refer to removed groups.
        keeps = any(disk.fs or 'loop' in disk.top for disk in world.disks)
        for step in steps + [tree.wait_gone] if keeps else [tree.remove_all, tree.wait_gone, self.end_disks]:
            world.dog.phase(step.__name__)
            step()

    def end_disks(self):
        """Removes all disks."""
        for disk in list(self.world.disks):
            self.world.remove_disk(disk)


def one(seed, args):
    """Runs one round; returns whether it was right."""
    args.round = None
    with open(f'{args.keep}/seed-{seed}.log', 'w', encoding='utf-8') as log:
        print(f'# seed {seed} begins', flush=True)
        begin, failure, world, lingers = time.monotonic(), '', None, False
        world = World.__new__(World)
        try:
            World.__init__(world, seed, args.virtual, args.folder, log)
            Round(world, Changes(world, args.without)).run()
            world.dog.phase('the end of the hierarchy')
            world.undo.close()
        except Lingers:
            world.note('groups linger')
            lingers = True
        except (OSError, WorldError) as error:
            failure = f'{world.dog.what}: {error}'
            world.note(f'WRONG: {failure}\n{traceback.format_exc()}')
            world.dog.dump()
        finally:
            world.dog.over = True
        failures = world.problems + ([failure] if failure else [])
        print(f'{"not ok" if failures else "ok"} seed {seed}: {world.version}, {time.monotonic() - begin:.0f} s, '
              f'{world.changes} changes, {world.ios} I/Os{"".join(", " + text for text in failures[:5])}', flush=True)
        if failure:
            raise SystemExit(3)
        if lingers:
            print('# BFQ may keep removed groups, which would disturb the next round: this was the last one', flush=True)
            raise SystemExit(1 if failures else 0)
    return not failures


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--folder', required=True, help='for temporary files')
    parser.add_argument('--keep', required=True, metavar='FOLDER', help='for the logs')
    parser.add_argument('--seconds', type=float, default=0, help='run rounds until this time has passed (one round)')
    parser.add_argument('--without', default='', help='changes to leave out, with commas between them')
    parser.add_argument('--virtual', action='store_true', help='time is virtual: waiting takes no real time')
    parser.add_argument('seed', type=int, help='seed of the first round')
    args = parser.parse_args()
    args.without = args.without.split(',')
    if not os.path.isdir(NULLB):
        raise SystemExit('no null_blk with configfs')
    begin, seed, good = time.monotonic(), args.seed, True
    while seed == args.seed or time.monotonic() - begin < args.seconds:
        good &= one(seed, args)
        seed += 1
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
