#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints the table of docs/lab.md from the output of scripts/lab.

usage: lab_page.py LOG
"""
import os
import re
import sys

import usage

HEAD = ('| scenario | what | none | ioband | groups: part of the I/Os, p99 in us |\n'
        '| --- | --- | ---: | ---: | --- |\n')
TITLE = re.compile(r'# ([a-z0-9.-]+): (.*)')
RATE = re.compile(r'# {3}(none|ioband) +(\d+): (.*?)(?:  [\d.]+ moves per I/O)?$')
GROUP = re.compile(r'(\S+) ([\d.]+%) p99 (\d+) us')


def scenarios(text):
    """Returns a list of (name, description, measurements) in the order of TEXT, what lab.py printed.

    A measurement is (I/Os a second without a gate, I/Os a second with it, [(group, part such as "75.0%", p99 in us)]).
    """
    found, none = [], None
    for line in text.splitlines():
        title, rate = TITLE.fullmatch(line), RATE.fullmatch(line)
        if title:
            found.append((*title.groups(), []))
        elif rate and rate[1] == 'none':
            none = int(rate[2])
        elif rate:
            found[-1][2].append((none, int(rate[2]), GROUP.findall(rate[3])))
    return found


def table(text, order=()):
    """Returns the table, a row for each measurement; ORDER: names of scenarios that come first, as in this list."""
    place = {name: i for i, name in enumerate(order)}
    out = HEAD
    for name, what, measured in sorted(scenarios(text), key=lambda one: place.get(one[0], len(place))):
        for none, ioband, groups in measured:
            parts = '; '.join(f'{group} {part} ({p99})' for group, part, p99 in groups)
            out += f'| {name} | {what} | {none} | {ioband} | {parts} |\n'
            name = what = ''
    return out


if __name__ == '__main__':
    if '--help' in sys.argv:
        sys.exit(print(__doc__))
    if len(sys.argv) != 2 or not os.path.isfile(sys.argv[1]):
        usage.fail('lab_page.py needs one argument, a file', 'scripts/lab --seeds 20 >LOG, then lab_page.py LOG')
    with open(sys.argv[1], encoding='utf-8') as file:
        print(table(file.read()), end='')
