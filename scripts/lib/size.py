# SPDX-License-Identifier: GPL-2.0
"""Counts the lines of kernel code of each series and of hooks in mainline's files, and compares them with a budget.

A new file of the kernel belongs to the series whose patch adds it. A later series that changes the file has the lines
that it adds there, less those that it removes, so that the sum over all series is the lines of the files. Comments and
blank lines count; tests, documents and tools do not.

patches/budget has a line for each part: "limits LINES" for the series [limits], "hooks FOLDER... LINES" for hooks in
these folders, and "hooks LINES" for those in all other files.
"""
import collections
import os
import re

from patchfile import Patch, PatchError

BUDGET = 'patches/budget'
HOOKS = "mainline's other files"
# What is no kernel code: KUnit tests, documents, programs.
APART = re.compile(r'(Documentation|tools|scripts|samples)/.*|.*/tests/.*|.*_(kunit|test)\.[ch]')
# The files of mainline that only register what is new.
REGISTRATION = re.compile(r'MAINTAINERS|Documentation/.*|tools/testing/selftests/Makefile')

# A part of the kernel code. name: as an error says it; files: {path: lines}; budget: lines, None for no bound.
Part = collections.namedtuple('Part', 'name files budget')


def read_budget(text):
    """Returns the budget of a text in the form of patches/budget: ({series: lines}, {folders: lines}).

    Folders are a tuple that ends with "/" each; the empty tuple stands for all other files of mainline.
    """
    series, hooks = {}, {}
    for number, line in enumerate(text.splitlines(), 1):
        words = ' '.join(line.split('#')[0].split())
        if not words:
            continue
        match = re.fullmatch(r'hooks((?: \S+/)*) (\d+)|(\w+) (\d+)', words)
        folders, lines, name, size = match.groups() if match else ('', '', '', '')
        known, key = (series, name) if name else (hooks, tuple((folders or '').split()))
        if not match or key in known:
            raise PatchError(f'{BUDGET} line {number}: {line}\n'
                             ' next: write "SERIES LINES", "hooks FOLDER/... LINES" or "hooks LINES", each once')
        known[key] = int(size or lines)
    if () not in hooks:
        raise PatchError(f'{BUDGET} has no line for hooks in mainline\'s files\n next: write "hooks LINES" there')
    return series, hooks


def series_lines(series, texts):
    """Returns the lines of kernel code of each series: {name: {path: lines added less lines removed}}.

    texts: {patch name: text}. Patches that are in no series are those of the series "none".
    """
    part_of = {name: letter.replace('cover-letter-', '').replace('.txt', '')
               for letter, names in series.letters.items() for name in names}
    found = {}
    for name in series.adds:
        files = found.setdefault(part_of.get(name, 'none'), {})
        for diff in Patch(texts[name]).diffs:
            if diff.path in series.owner and not APART.fullmatch(diff.path):
                kinds = [line[0] for _, lines in diff.hunks() for line in lines]
                files[diff.path] = files.get(diff.path, 0) + kinds.count('+') - kinds.count('-')
    return found


def hook_lines(hooks, groups):
    """Returns the hooks of each group of folders: {folders: {path: lines}}. hooks: {path: lines}."""
    found = {group: {} for group in groups}
    for path, lines in hooks.items():
        if not REGISTRATION.fullmatch(path):
            found[next((group for group in groups if group and path.startswith(group)), ())][path] = lines
    return found


def parts(series, texts):
    """Returns all Parts: each series, the hooks, and what has no bound: registration and fixes of mainline."""
    path = os.path.join(series.top, BUDGET)
    if not os.path.exists(path):
        raise PatchError(f'there is no {BUDGET}\n next: write "SERIES LINES" there for each series, and "hooks LINES"')
    with open(path, encoding='utf-8') as file:
        budgets, groups = read_budget(file.read())
    found, hooks = [], series.hooks()
    for name, files in series_lines(series, texts).items():
        if name not in budgets:
            raise PatchError(f'{BUDGET} has no line for the series {name}\n next: write "{name} {sum(files.values())}"')
        found.append(Part(name, files, budgets.pop(name)))
    if budgets:
        raise PatchError(f'{BUDGET}: no series {next(iter(budgets))} in patches/series\n next: remove the line')
    for group, files in hook_lines(hooks, groups).items():
        found.append(Part(f'hooks in {" and ".join(group) or HOOKS}', files, groups[group]))
    fixes = collections.Counter()
    for name in series.fixes():
        for diff in series.parse(name).diffs:
            fixes[diff.path] += diff.changed()
    return [*found, Part('registration in files of mainline', {path: hooks[path] for path in hooks
                                                               if REGISTRATION.fullmatch(path)}, None),
            Part('fixes of mainline in the first patches', fixes, None)]


def lines_of(part):
    """Returns the number of lines of a Part."""
    return sum(part.files.values())


def faults(found):
    """Returns a text for each Part that is larger than its budget: what is wrong, and what to do."""
    return [f'{part.name}: {lines_of(part)} lines, {lines_of(part) - part.budget} more than the budget of '
            f'{part.budget} in {BUDGET}\n next: scripts/series size --files shows where; take out as many as came'
            for part in found if part.budget is not None and lines_of(part) > part.budget]


def table(found):
    """Returns a text with a line for each Part."""
    rows = [(lines_of(part), '-' if part.budget is None else part.budget, part.name) for part in found]
    head = 'lines', 'budget', 'part'
    return ''.join(f'{lines:>6} {most:>6}  {name}\n' for lines, most, name in (head, *rows))


def files_table(part):
    """Returns a text with a line for each file of a Part, and above them one for each folder, with its sum."""
    text, sums, last = f'\n{part.name}\n', collections.Counter(), None
    for path, lines in part.files.items():
        sums[os.path.dirname(path)] += lines
    for path in sorted(part.files, key=os.path.split):
        folder, name = os.path.split(path)
        if folder != last:
            text += f'{sums[folder]:6}  {folder or "."}/\n'
        last = folder
        text += f'{part.files[path]:14}  {name}\n'
    return text
