# SPDX-License-Identifier: GPL-2.0
"""The manifest patches/series joined with the patches and the sources: what each patch should be.

A later patch may change a file that an earlier one adds (Makefile, Kconfig): the source is the last state, and
the earlier ones are found by taking the later hunks away again.
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
# Changed lines allowed in files of mainline, for limits and weights, and for the owners of dirty pages; and the files
# that merely register what is new.
HOOK_LIMIT = 150
OWNERS_LIMIT = 107
OWNERS = ('mm/', 'fs/')
REGISTRATION = re.compile(r'MAINTAINERS|Documentation/.*|tools/testing/selftests/Makefile')
COVER = 'cover-letter.txt'


def read(path):
    """The text of a file, line ends untouched."""
    with open(path, encoding='utf-8', newline='') as file:
        return file.read()


class Series:
    """The manifest, the patches and the sources of a repository at top."""

    def __init__(self, top):
        self.top = top
        self.adds = {}      # patch name -> paths it adds, in the manifest's order
        self.sources = {}   # kernel path -> (content, mode)
        for number, line in enumerate(read(self.file('series')).splitlines(), 1):
            line = line.split('#')[0].strip()
            if line:
                name, colon, paths = line.partition(':')
                if not colon or name in self.adds:
                    raise PatchError(f'patches/series line {number}: want "NNNN-name.patch: path path ..." once per patch')
                self.adds[name] = paths.split()
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
        """Path of a file in patches/."""
        return os.path.join(self.top, 'patches', name)

    def parse(self, name):
        """The Patch of that name."""
        if name not in self.texts:
            raise PatchError(f'patches/series lists {name}, which is not in patches/: write its commit message first')
        try:
            return Patch(self.texts[name])
        except PatchError as error:
            raise PatchError(f'{name}: {error}') from None

    def regenerate(self):
        """What every patch should be: {name: text}, from the sources and the hooks in the present patches."""
        patches = {name: self.parse(name) for name in self.adds}
        state = {path: content for path, (content, _) in self.sources.items()}
        for name in reversed(self.adds):
            kept = []
            for diff in patches[name].diffs:
                if diff.is_new:
                    continue
                if diff.path not in self.owner:
                    kept.append(diff)
                elif diff.path not in self.adds[name]:
                    after = state[diff.path]
                    state[diff.path] = patchfile.unapply(diff, after)
                    kept.append(patchfile.changed_file(diff.path, state[diff.path], after))
            kept += [patchfile.new_file(path, state[path], self.sources[path][1]) for path in self.adds[name]]
            patches[name].diffs = sorted(kept, key=lambda diff: diff.path)
        texts = {name: str(patch) for name, patch in patches.items()}
        if os.path.exists(self.file(COVER)):
            self.texts[COVER] = read(self.file(COVER))
            texts[COVER] = self.cover(list(patches.values()))
        return texts

    def cover(self, patches):
        """The cover letter with its list of patches and diffstat anew; they begin at a line like "Name (5):"."""
        text = re.split(r'^\S.* \(\d+\):$', self.texts[COVER], maxsplit=1, flags=re.M)[0].rstrip('\n')
        authors = list(dict.fromkeys(patch.author() for patch in patches))
        for author in authors:
            subjects = [patch.subject() for patch in patches if patch.author() == author]
            text += f'\n\n{author} ({len(subjects)}):\n' + '\n'.join(f'  {subject}' for subject in subjects)
        return text + '\n\n' + patchfile.diffstat(''.join(str(diff) for patch in patches for diff in patch.diffs))

    def fixes(self):
        """The patches before the first that adds a file: what they call is mainline's, so they fix that."""
        return list(itertools.takewhile(lambda name: not self.adds[name], self.adds))

    def hooks(self):
        """Changed lines in mainline's files, those of fixes() left out: {path: lines}."""
        lines = {}
        for name in list(self.adds)[len(self.fixes()):]:
            for diff in self.parse(name).diffs:
                if diff.path not in self.owner:
                    lines[diff.path] = lines.get(diff.path, 0) + diff.changed()
        return lines

    def strays(self):
        """Sources at kernel paths that no patch adds, and patches that the manifest does not list."""
        run = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '--', *KERNEL_DIRS, *ELSEWHERE.values()],
                             cwd=self.top, capture_output=True, encoding='utf-8', check=True)
        known = {ELSEWHERE.get(path, path) for path in self.owner}
        files = [path for path in run.stdout.splitlines() if os.path.exists(os.path.join(self.top, path))]
        patches = [os.path.basename(path) for path in sorted(glob.glob(self.file('[0-9]*.patch')))]
        return [path for path in files if path not in known] + \
            [f'patches/{name}' for name in patches if name not in self.adds and name != COVER]
