# SPDX-License-Identifier: GPL-2.0
"""The series on a longterm kernel: patches/BASE/ holds what is other there than in patches/.

    kernel.pin           the kernel and its sha256, see scripts/fetch; PIN_LACKS: options of kconfig/ that it does not have
    0000-name.patch      a patch of its own, which comes first: helpers of later kernels
    0004-other.patch     bare diffs of single files, each in the place of what the patch of that name in patches/ does to
                         that file: hunks in files of the kernel, or, of a file that the patch adds, hunks to be applied
                         to it. A diff without hunks leaves the file out.

Sources and commit messages live once, in patches/.
"""
import glob
import os
import re
import subprocess
import tempfile

import patchfile
from patchfile import Patch, PatchError

# What hunks call of ours.
OURS = re.compile(r'\b(?:ioband|dirty|move_owned)_[a-z_]\w*')


def read(path):
    """The text of a file, line ends untouched."""
    with open(path, encoding='utf-8', newline='') as file:
        return file.read()


def bases(top):
    """The longterm kernels that there is a directory for, such as ['6.12', '6.18']."""
    return sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(top, 'patches', '*', 'kernel.pin')))


def bare_diffs(text):
    """The FileDiffs of a file without a commit message; comments stand before the first."""
    lines = text.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith('diff --git ')), len(lines))
    return patchfile.split_diffs(lines[first:])


def called(diff):
    """The names of ours that a FileDiff adds."""
    return {name for _, lines in diff.hunks() for line in lines if line[0] == '+' for name in OURS.findall(line)}


class Longterm:
    """What is other on one base, joined with the series."""

    def __init__(self, series, base):
        self.series, self.base = series, base
        self.folder = os.path.join(series.top, 'patches', base)
        names = [os.path.basename(path) for path in sorted(glob.glob(os.path.join(self.folder, '*.patch')))]
        self.own = {name: read(os.path.join(self.folder, name)) for name in names if name not in series.adds}
        self.other = {name: {diff.path: diff for diff in bare_diffs(read(os.path.join(self.folder, name)))}
                      for name in names if name in series.adds}

    def adapt(self, name, diff):
        """The FileDiff that patch NAME has for a file on this base, None if it leaves it alone."""
        other = self.other.get(name, {}).get(diff.path)
        if other is None:
            return diff
        if not list(other.hunks()):
            return None
        if not diff.is_new:
            return other
        mode = re.search(r'^new file mode (\d+)$', str(diff), re.M).group(1)
        return patchfile.new_file(diff.path, patchfile.apply(other, patchfile.content_of(diff)), mode)

    def patches(self):
        """The series as it is on this base: {file name: text}."""
        texts = dict(self.own)
        for name in self.series.adds:
            patch = self.series.parse(name)
            paths = {diff.path for diff in patch.diffs}
            extra = [diff for path, diff in self.other.get(name, {}).items() if path not in paths]
            adapted = [self.adapt(name, diff) for diff in patch.diffs]
            patch.diffs = sorted([diff for diff in adapted if diff] + extra, key=lambda diff: diff.path)
            texts[name] = str(patch)
        return dict(sorted(texts.items()))

    def write(self, folder):
        """Writes them to a folder, which then holds nothing else; files that stay as they are keep their times."""
        os.makedirs(folder, exist_ok=True)
        texts = self.patches()
        for path in glob.glob(os.path.join(folder, '*.patch')):
            if os.path.basename(path) not in texts:
                os.remove(path)
        for name, text in texts.items():
            path = os.path.join(folder, name)
            if not os.path.exists(path) or read(path) != text:
                with open(path, 'w', encoding='utf-8', newline='') as file:
                    file.write(text)

    def faults(self):
        """What of patches/BASE has been left behind by patches/, as sentences."""
        found = [f'patches/{self.base}/{name} is the name of no patch' for name in self.own if not name.startswith('0000-')]
        for name, diffs in self.other.items():
            ours = {diff.path: diff for diff in self.series.parse(name).diffs}
            for path, other in diffs.items():
                where = f'patches/{self.base}/{name}: {path}'
                if path not in ours:
                    found.append(f'{where} is no file of patches/{name}')
                elif ours[path].is_new:
                    try:
                        patchfile.apply(other, patchfile.content_of(ours[path]))
                    except PatchError as error:
                        found.append(f'patches/{self.base}: {error}')
                elif list(other.hunks()) and called(other) != called(ours[path]):
                    words = ', '.join(sorted(called(other) ^ called(ours[path])))
                    found.append(f'{where} and patches/{name} do not call the same of ours: {words}')
        return found


def same(one, two):
    """Do two FileDiffs change the same lines, wherever these stand?"""
    return one.is_new == two.is_new and [lines for _, lines in one.hunks()] == [lines for _, lines in two.hunks()]


def take_back(series, base, tree, since):
    """Writes patches/BASE from the commits since..HEAD of a git tree, the first of which is 0000."""
    folder = os.path.join(series.top, 'patches', base)
    for path in glob.glob(os.path.join(folder, '*.patch')):
        os.remove(path)
    with tempfile.TemporaryDirectory() as mails:
        subprocess.run(['git', '-C', tree, 'format-patch', '-q', '-N', '--zero-commit', '--no-signature', '--no-renames',
                        '--no-full-index', f'--abbrev={patchfile.ABBREV}', '--start-number', '0', '-o', mails, f'{since}..HEAD'], check=True)
        for path in sorted(glob.glob(os.path.join(mails, '*.patch'))):
            name, theirs = os.path.basename(path), Patch(read(path))
            if name in series.adds:
                text = differences(series.parse(name), theirs, base)
            else:
                text = str(theirs)
            if text:
                with open(os.path.join(folder, name), 'w', encoding='utf-8', newline='') as file:
                    file.write(text)


def differences(ours, theirs, base):
    """The bare diffs that make the patch OURS into THEIRS, '' if there are none."""
    diffs = {diff.path: diff for diff in theirs.diffs}
    text = ''
    for diff in ours.diffs:
        other = diffs.pop(diff.path, None)
        if other is None:
            text += f'diff --git a/{diff.path} b/{diff.path}\n'
        elif not same(diff, other):
            if diff.is_new:
                other = patchfile.changed_file(diff.path, patchfile.content_of(diff), patchfile.content_of(other))
            text += str(other)
    text += ''.join(map(str, diffs.values()))
    return f'# What this patch does otherwise on Linux {base}; see scripts/lib/longterm.py.\n{text}' if text else ''
