# SPDX-License-Identifier: GPL-2.0
"""Puts faults into sources, all into one kernel; at run time the kernel's command line chooses one of them.

Tables of faults are text: a line "NAME FILE TEST...", a line that begins with a tab and says what is wrong, lines that
begin with - (a place in FILE, which must occur once) and lines that begin with + (the replacement). The word MUTANT in
these is 1 in a kernel that was booted with ioband_mutant=N, where N is the fault's number, and 0 otherwise. Lines that
begin with # are comments.
"""
import dataclasses
import glob
import re

# This goes in front of the first line of a file, so that line numbers do not change.
DECLARATION = 'extern int ioband_mutant; '
DEFINED_IN = 'block/ioband/policy.c'
DEFINITION = '''
#include <linux/moduleparam.h>
int ioband_mutant;
core_param(ioband_mutant, ioband_mutant, int, 0444);
'''


@dataclasses.dataclass
class Fault:
    """tests: those that are expected to notice it, the most likely and quickest first."""
    name: str
    path: str
    tests: list
    number: int = 0
    what: str = ''
    old: list = dataclasses.field(default_factory=list)
    new: list = dataclasses.field(default_factory=list)

    def text(self):
        """Returns the text that replaces the fault's place."""
        return re.sub(r'\bMUTANT\b', f'(ioband_mutant == {self.number})', '\n'.join(self.new))


def parse(lines, name):
    """Returns the faults of one table; raises ValueError if it is not a table of faults."""
    faults = []
    for nr, line in enumerate(lines, 1):
        kind, rest = line[:1], line[1:]
        if not line.strip() or kind == '#':
            continue
        if kind in '\t-+' and not faults:
            raise ValueError(f'{name}:{nr}: of no fault')
        if kind == '\t':
            faults[-1].what = rest
        elif kind == '-':
            faults[-1].old.append(rest)
        elif kind == '+':
            faults[-1].new.append(rest)
        else:
            words = line.split()
            if len(words) < 3:
                raise ValueError(f'{name}:{nr}: not "NAME FILE TEST..."')
            faults.append(Fault(words[0], words[1], words[2:]))
    for fault in faults:
        if not (fault.what and fault.old and re.search(r'\bMUTANT\b', '\n'.join(fault.new))):
            raise ValueError(f'{name}: {fault.name} does not say what is wrong, where, or when')
    return faults


def read(folder):
    """Returns the faults of all tables in a folder, numbered from 1 on."""
    faults = []
    for path in sorted(glob.glob(folder + '/*.txt')):
        with open(path, encoding='utf-8') as file:
            faults += parse(file.read().splitlines(), path)
    for number, fault in enumerate(faults, 1):
        fault.number = number
        if any(other.name == fault.name for other in faults[:number - 1]):
            raise ValueError(f'{folder}: two faults are called {fault.name}')
    return faults


def mutated(text, faults):
    """Returns (the text of one file with these faults in it, [why a fault cannot be put in])."""
    places, wrong = [], []
    for fault in faults:
        old = '\n'.join(fault.old)
        count = text.count(old)
        if count != 1:
            wrong.append(f'{fault.name}: {fault.path} has its place {count} times')
        else:
            places.append((text.index(old), len(old), fault))
    places.sort(key=lambda place: place[:2])
    for (at, length, fault), (behind, _, other) in zip(places, places[1:]):
        if at + length > behind:
            wrong.append(f'{other.name}: its place in {other.path} is that of {fault.name}, too')
    for at, length, fault in reversed(places):
        text = text[:at] + fault.text() + text[at + length:]
    return DECLARATION + text, wrong


def mutate(root, faults):
    """Returns ({path below root: text}, [what is wrong]) for all files that change."""
    texts, wrong = {}, []
    for path in sorted({fault.path for fault in faults} | {DEFINED_IN}):
        try:
            with open(f'{root}/{path}', encoding='utf-8') as file:
                texts[path], bad = mutated(file.read(), [fault for fault in faults if fault.path == path])
        except FileNotFoundError:
            bad = [f'{fault.name}: there is no {path}' for fault in faults if fault.path == path]
        wrong += bad
    if DEFINED_IN in texts:
        texts[DEFINED_IN] += DEFINITION
    return texts, wrong
