#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the device lab: each scenario without the gate and with it; prints which results are not right.

usage: lab.py DIRECTORY [NAME...] [--seeds N] [--report | --list]

DIRECTORY has the program sim. Prints, for each time that a scenario measures, the results without the gate and those of
the worst of N seeds with it, and a line of TAP for each scenario. Fails if a result is not right; with --report never.
With --list it only prints the names of the scenarios that would run.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys

from scenarios import SCENARIOS

LIMIT_S = 600


def times(program, scenario, seed, gated):
    """Runs one scenario once.

    Returns a list with, for each time that is measured, {"moves": how often a second a CPU took a lock or wrote a
    variable that another CPU had last, "groups": {group: {"iops": I/Os a second, "bps": bytes a second, "busy": device
    time, s a second, "p50_us", "p99_us", "max_us": latencies}}}.
    """
    command = [program] + ([] if gated else ["none"]) + [str(seed)]
    run = subprocess.run(command, input=scenario.text, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def simulate(program, scenario, seed, gated):
    """Runs one scenario once.

    Returns a list with, for each time that is measured, its groups, see times().
    """
    return [one["groups"] for one in times(program, scenario, seed, gated)]


def total(groups):
    """Returns the I/Os a second of all groups."""
    return sum(group["iops"] for group in groups.values())


def misses(right, got, none, moves):
    """Compares the groups that were measured (got; none: without the gate) with what is right; moves: see times().

    Returns a list of (by how much a value is off, as a part of the right value, text).
    """
    found = []

    def miss(by, text):
        found.append((by, text))

    whole = total(got) or 1e-9
    for name, share in right.share.items():
        off = abs(got[name]["iops"] / whole - share) * 100
        if off > right.points:
            miss(off / 100, f"{name} has {got[name]['iops'] / whole:.1%} for {share:.1%}")
    if right.rate and whole < right.rate * (right.of or total(none)):
        miss(1 - whole / total(none), f"{whole:.0f} of {total(none):.0f} I/Os a second")
    for name, least in right.least.items():
        if got[name]["iops"] < least:
            miss(1 - got[name]["iops"] / least, f"{name} has {got[name]['iops']:.0f} I/Os a second for {least}")
    for name, most in right.most.items():
        if got[name]["iops"] > most:
            miss(got[name]["iops"] / most - 1, f"{name} has {got[name]['iops']:.0f} I/Os a second for at most {most}")
    if right.moves and moves > right.moves * whole:
        miss(moves / whole / right.moves - 1, f"{moves / whole:.4f} moves between CPUs per I/O for at most {right.moves}")
    for key in "p50_us", "p99_us", "max_us":
        for name, most in getattr(right, key).items():
            if got[name][key] > most:
                miss(got[name][key] / most - 1, f"{key} of {name} is {got[name][key]:.0f} for at most {most:.0f}")
    return found


def brief(one):
    """Returns the results of one time that was measured, see times(), as a line of text."""
    groups = one["groups"]
    whole = total(groups) or 1e-9
    parts = "  ".join(f"{name} {group['iops'] / whole:.1%} p99 {group['p99_us']:.0f} us"
                      for name, group in groups.items() if group["iops"])
    return f"{whole:8.0f}: {parts}  {one['moves'] / whole:.4f} moves per I/O"


def run(directory, scenario, seeds, pool):
    """Runs a scenario with all seeds.

    Returns a list with, for each time that is measured, (results, results without the gate, misses) of the seed that
    missed most; see times() and misses().
    """
    program = os.path.join(directory, "sim")
    none = pool.submit(times, program, scenario, 1, False)
    gated = [pool.submit(times, program, scenario, seed, True) for seed in range(1, seeds + 1)]
    worst = []
    for i, right in enumerate(scenario.right):
        without = none.result()[i]
        tries = [(one, without, misses(right, one["groups"], without["groups"], one["moves"]))
                 for one in (each.result()[i] for each in gated)]
        worst.append(max(tries, key=lambda found: sum(by for by, _ in found[2])))
    return worst


class Parser(argparse.ArgumentParser):
    """Says in two lines what is wrong with the command line, and what to do."""

    def error(self, message):
        print(f"error: {message}\n next: {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def main():
    """Parses the command line, and does what it asks for."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--report", action="store_true", help="never fail, only report")
    parser.add_argument("--list", action="store_true", help="only print the names of the scenarios")
    parser.add_argument("name", nargs="*")
    args = parser.parse_intermixed_args()   # names may also stand behind options
    chosen = [s for s in SCENARIOS if not args.name or s.name in args.name]
    for name in set(args.name) - {s.name for s in SCENARIOS}:
        sys.exit(f"error: no such scenario: '{name}'\n next: one of {' '.join(s.name for s in SCENARIOS)}")
    if args.seeds < 1:
        parser.error("--seeds: at least one is needed")
    if args.list:
        print(*(s.name for s in chosen), sep="\n")
        return 0
    failed = 0
    print(f"TAP version 13\n1..{len(chosen)}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for nr, scenario in enumerate(chosen, 1):
            bad = False
            print(f"# {scenario.name}: {scenario.title}")
            for got, none, missed in run(args.directory, scenario, args.seeds, pool):
                print(f"#   none   {brief(none)}\n#   ioband {brief(got)}")
                for _, text in missed:
                    print(f"#   not right: {text}")
                bad = bad or bool(missed)
            failed += bad
            print(f"{'not ok' if bad and not args.report else 'ok'} {nr} - {scenario.name}", flush=True)
    print(f"# {len(chosen) - failed} of {len(chosen)} scenarios are right, the worst of {args.seeds} seeds each")
    return 1 if failed and not args.report else 0


if __name__ == "__main__":
    sys.exit(main())
