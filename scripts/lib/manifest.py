# SPDX-License-Identifier: GPL-2.0
"""Joins the manifest patches/series, the patches and the sources: says what each patch should be.

patches/series has a line for each patch, and above the patches of each series a line "[NAME]"; the cover letter of
that series is patches/cover-letter-NAME.txt.

A later patch may change a file that an earlier one adds: the source is the last state of the file. The earlier states
are those of the present patches, with the change from their last state to the source merged in. Where an earlier state
lacks the changed lines, or differs in them, it stays as it is.
"""
import glob
import itertools
import os
import re
import subprocess

import patchfile
from patchfile import Patch, PatchError

# Files whose place in this repository is not their place in the kernel.
ELSEWHERE = {'block/ioband/Kconfig': 'Kconfig.snippet'}
KERNEL_DIRS = ('block', 'Documentation', 'fs', 'include', 'kernel', 'mm', 'tools')
SECTION = re.compile(r'\[(\w+)\]')


def read(path):
    """Returns the text of a file, with its line ends unchanged."""
    with open(path, encoding='utf-8', newline='') as file:
        return file.read()


def stat(patches, before):
    """Returns the diffstat of several patches together; BEFORE: {path: content} of our files before the first patch."""
    lines = {}      # path -> lines added, lines removed
    ours = set()    # files that these patches add
    for patch in patches:
        for diff in patch.diffs:
            if diff.is_new and diff.path not in before:
                ours.add(diff.path)
            added, removed = lines.get(diff.path, (0, 0))
            hunks = [line[0] for _, hunk in diff.hunks() for line in hunk]
            lines[diff.path] = added + hunks.count('+'), removed + hunks.count('-')
    # a line that one patch adds and a later one removes is not counted
    for path in ours:
        added, removed = lines[path]
        lines[path] = added - removed, 0
    total = [sum(counts) for counts in zip(*lines.values())]
    width = max(map(len, lines))
    return ''.join(f' {path:<{width}} | {added + removed:>4}\n' for path, (added, removed) in sorted(lines.items())) + \
        f' {len(lines)} files changed, {total[0]} insertions(+), {total[1]} deletions(-)\n'


class Series:
    """The manifest, the patches and the sources of the repository at path top."""

    def __init__(self, top):
        self.top = top
        self.adds = {}      # patch name -> paths it adds, in the manifest's order
        self.sources = {}   # kernel path -> (content, mode)
        self.letters = {}   # name of a cover letter -> names of its patches
        for number, line in enumerate(read(self.file('series')).splitlines(), 1):
            line = line.split('#')[0].strip()
            if SECTION.fullmatch(line):
                self.letters[f'cover-letter-{line[1:-1]}.txt'] = []
            elif line:
                name, colon, paths = line.partition(':')
                if not colon or name in self.adds:
                    raise PatchError(f'patches/series line {number}: want "NNNN-name.patch: path path ..." once per patch')
                self.adds[name] = paths.split()
                if self.letters:
                    list(self.letters.values())[-1].append(name)
        self.owner = {path: name for name, paths in self.adds.items() for path in paths}
        if len(self.owner) != sum(map(len, self.adds.values())):
            raise PatchError('patches/series: a file is added twice')
        for path in self.owner:
            source = os.path.join(top, ELSEWHERE.get(path, path))
            if not os.path.exists(source):
                raise PatchError(f'patches/series lists {path}, but there is no {source}')
            self.sources[path] = read(source), '100755' if os.access(source, os.X_OK) else '100644'
        self.texts = {name: read(self.file(name)) for name in self.adds if os.path.exists(self.file(name))}

    def file(self, name):
        """Returns the path of a file in patches/."""
        return os.path.join(self.top, 'patches', name)

    def parse(self, name):
        """Returns the Patch of that name."""
        if name not in self.texts:
            raise PatchError(f'patches/series lists {name}, which is not in patches/: write its commit message first')
        try:
            return Patch(self.texts[name])
        except PatchError as error:
            raise PatchError(f'{name}: {error}') from None

    def states(self, patches):
        """Returns the states of our files after the present PATCHES: {path: {patch name: content}}, in their order."""
        states = {path: {} for path in self.owner}
        for name, patch in patches.items():
            for diff in patch.diffs:
                if diff.path in self.owner and diff.is_new:
                    states[diff.path][name] = patchfile.content_of(diff)
                elif diff.path in self.owner:
                    before = list(states[diff.path].values())
                    if not before:
                        raise PatchError(f'{name} changes {diff.path}, which no patch before it adds')
                    states[diff.path][name] = patchfile.apply(diff, before[-1])
        return states

    def wanted(self, path, states):
        """Returns the states of one of our files after each patch, {patch name: content}, from its present STATES."""
        content, _ = self.sources[path]
        last = list(states.values())[-1] if states else content
        new = {name: state if content == last else patchfile.merge(last, state, content) for name, state in states.items()}
        if new:
            new[list(new)[-1]] = content
        # the manifest may say that another patch adds the file
        names, first = list(self.adds), self.owner[path]
        early = [name for name in new if names.index(name) <= names.index(first)]
        new[first] = new[early[-1]] if early else next(iter(new.values()), content)
        for name in early:
            if name != first:
                del new[name]
        return new

    def regenerate(self):
        """Returns every patch as it should be, {name: text}, from the sources and the hooks in the present patches."""
        patches = {name: self.parse(name) for name in self.adds}
        states = {path: self.wanted(path, old) for path, old in self.states(patches).items()}
        before, begin, letters = {}, {}, {}
        for letter, names in self.letters.items():
            begin[names[0]] = letter
        for name, patch in patches.items():
            if name in begin:
                letters[begin[name]] = dict(before)
            kept = [diff for diff in patch.diffs if diff.path not in self.owner]
            for path, new in states.items():
                if name not in new or new[name] == before.get(path):
                    continue
                kept.append(patchfile.changed_file(path, before[path], new[name]) if path in before else
                            patchfile.new_file(path, new[name], self.sources[path][1]))
                before[path] = new[name]
            patch.diffs = sorted(kept, key=lambda diff: diff.path)
        texts = {name: str(patch) for name, patch in patches.items()}
        for letter, state in letters.items():
            if os.path.exists(self.file(letter)):
                self.texts[letter] = read(self.file(letter))
                texts[letter] = self.cover(letter, [patches[name] for name in self.letters[letter]], state)
        return texts

    def cover(self, letter, patches, before):
        """Returns a cover letter with new number, list and diffstat of its patches; BEFORE: our files without them.

        The list begins at a line like "Name (5):"."""
        text = re.split(r'^\S.* \(\d+\):$', self.texts[letter], maxsplit=1, flags=re.M)[0].rstrip('\n')
        text = re.sub(r'^Subject: \[PATCH( \d+/\d+)?\]', f'Subject: [PATCH {"0" * len(str(len(patches)))}/{len(patches)}]', text)
        authors = list(dict.fromkeys(patch.author() for patch in patches))
        for author in authors:
            subjects = [patch.subject() for patch in patches if patch.author() == author]
            text += f'\n\n{author} ({len(subjects)}):\n' + '\n'.join(f'  {subject}' for subject in subjects)
        return f'{text}\n\n{stat(patches, before)}{self.base()}'

    def base(self):
        """Returns the last line of a cover letter: the kernel that the series are made for."""
        pin = os.path.join(self.top, 'scripts', 'kernel.pin')
        match = re.search(r'^PIN_VERSION=(.*)$', read(pin), re.M) if os.path.exists(pin) else None
        return f'\nbase-commit: v{match.group(1)}\n' if match else ''

    def fixes(self):
        """Returns the patches before the first that adds a file: they use mainline's functions only, and fix these."""
        return list(itertools.takewhile(lambda name: not self.adds[name], self.adds))

    def hooks(self):
        """Returns the number of changed lines in mainline's files, without those of fixes(): {path: lines}."""
        lines = {}
        for name in list(self.adds)[len(self.fixes()):]:
            for diff in self.parse(name).diffs:
                if diff.path not in self.owner:
                    lines[diff.path] = lines.get(diff.path, 0) + diff.changed()
        return lines

    def strays(self):
        """Returns sources at kernel paths that no patch adds, and patches that the manifest does not list."""
        run = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '--', *KERNEL_DIRS, *ELSEWHERE.values()],
                             cwd=self.top, capture_output=True, encoding='utf-8', check=True)
        known = {ELSEWHERE.get(path, path) for path in self.owner}
        files = [path for path in run.stdout.splitlines() if os.path.exists(os.path.join(self.top, path))]
        patches = [os.path.basename(path) for path in sorted(glob.glob(self.file('[0-9]*.patch')))]
        return [path for path in files if path not in known] + \
            [f'patches/{name}' for name in patches if name not in self.adds]
