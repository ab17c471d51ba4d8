#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs attacks by seed and judges each; prints "ok TEXT" or "not ok TEXT" for a seed, after lines "# ..." with causes.

A seed decides the groups, the limits, the disk, the file system and what unprivileged tasks do to get more than
their limits (attack_plan.py; attack_routes.py, attack_pipes.py, attack_more.py). The judge (attack_verdict.py,
attack_judge.py) looks at the trace of all that limited groups were charged for, at what reached the disk, at a
bystander's latencies, and at the data.
"""
import argparse
import sys
import time

import attack_plan
import attack_verdict
import attack_world
from attack_run import Attack
from attack_world import WorldError


def one(plan, hierarchy, trace, folder, keep):
    """Runs a plan; returns True if nothing is wrong."""
    attack = Attack(plan, hierarchy, trace, folder)
    begin = time.monotonic()
    print(f'# begins: {plan}', flush=True)      # tells which plan runs if the machine hangs
    try:
        attack.run()
        attack_verdict.judge(attack)
    except (WorldError, OSError) as problem:
        attack.faults.append(f'{type(problem).__name__}: {problem}')
    for text in attack.faults:
        print(f'# {text}')
    for text in attack.notes:
        print(f'# note: {text}')
    print(f'{"not ok" if attack.faults else "ok"} {plan} ({time.monotonic() - begin:.0f} s)', flush=True)
    if keep and attack.faults and attack.lines:
        with open(f'{keep}/trace-{plan.seed}', 'w', encoding='utf-8') as file:
            file.write('\n'.join(attack.lines))
    return not attack.faults


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--folder', default='/tmp', help='where to mount things and to leave results')
    parser.add_argument('--keep', metavar='DIR', help='where traces of failures go')
    parser.add_argument('--only', choices=('v1', 'v2'), help='leave the seeds of the other version of cgroups out')
    parser.add_argument('--without', default='', metavar='ROUTE,...', help='skip seeds with one of these routes')
    parser.add_argument('--list', action='store_true', help='only print the plans')
    parser.add_argument('seeds', help='N or N-M, or several of these with commas between them')
    args = parser.parse_args()
    plans = []
    for part in args.seeds.split(','):
        first, _, last = part.partition('-')
        plans += [attack_plan.make_plan(seed) for seed in range(int(first), int(last or first) + 1)]
    plans = [plan for plan in plans if args.only in (None, plan.version)]
    if args.list:
        print('\n'.join(map(str, plans)))
        return 0
    trace = attack_world.Trace()
    for version in ('v2', 'v1'):
        mine = [plan for plan in plans if plan.version == version]
        if not mine:
            continue
        hierarchy = attack_world.Hierarchy(version, f'{args.folder}/cgroup-{version}')
        for plan in mine:
            if {task.route for task in plan.tasks} & set(args.without.split(',')):
                print(f'ok {plan} # SKIP left out')
                continue
            one(plan, hierarchy, trace, args.folder, args.keep)
        hierarchy.umount()
    return 0


if __name__ == '__main__':
    sys.exit(main())
