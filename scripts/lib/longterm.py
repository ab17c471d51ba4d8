# SPDX-License-Identifier: GPL-2.0
"""The series on a longterm kernel: patches/BASE/ has what differs there from patches/.

    kernel.pin           the kernel and its sha256, see scripts/fetch; PIN_LACKS: options of kconfig/ that it does not have
    0000-name.patch      a patch of its own, which comes first: helpers of later kernels
    0004-other.patch     bare diffs of single files. Each replaces what the patch of that name in patches/ does to that
                         file: hunks in a file of the kernel, or hunks to apply to a file that the patch adds. A diff
                         without hunks leaves the file out.

Sources and commit messages live once, in patches/.
"""
import glob
import os
import re
import subprocess
import tempfile

import patchfile
from patchfile import Patch, PatchError

# Functions of the series that hunks call.
OURS = re.compile(r'\b(?:ioband|dirty|move_owned)_[a-z_]\w*')


def read(path):
    """Returns the text of a file, with its line ends unchanged."""
    with open(path, encoding='utf-8', newline='') as file:
        return file.read()


def bases(top):
    """Returns the longterm kernels that have a directory in patches/, such as ['6.12', '6.18']."""
    return sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(top, 'patches', '*', 'kernel.pin')))


def bare_diffs(text):
    """Returns the FileDiffs of a file without a commit message; lines before the first are comments."""
    lines = text.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith('diff --git ')), len(lines))
    return patchfile.split_diffs(lines[first:])


def called(diff):
    """Returns the names of functions of the series that a FileDiff adds."""
    return {name for _, lines in diff.hunks() for line in lines if line[0] == '+' for name in OURS.findall(line)}


class Longterm:
    """What differs on one base, joined with the series."""

    def __init__(self, series, base):
        self.series, self.base = series, base
        self.folder = os.path.join(series.top, 'patches', base)
        names = [os.path.basename(path) for path in sorted(glob.glob(os.path.join(self.folder, '*.patch')))]
        self.own = {name: read(os.path.join(self.folder, name)) for name in names if name not in series.adds}
        self.other = {name: {diff.path: diff for diff in bare_diffs(read(os.path.join(self.folder, name)))}
                      for name in names if name in series.adds}

    def adapt(self, name, diff):
        """Returns the FileDiff that patch NAME has for a file on this base, None if the patch leaves the file out."""
        other = self.other.get(name, {}).get(diff.path)
        if other is None:
            return diff
        if not list(other.hunks()):
            return None
        mode = re.search(r'^new file mode (\d+)$', str(diff), re.M)
        if not mode:
            return other
        return patchfile.new_file(diff.path, patchfile.apply(other, patchfile.content_of(diff)), mode.group(1))

    def patches(self):
        """Returns the series as it is on this base: {file name: text}."""
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
        """Writes the patches to a folder and removes its other files; files that do not change keep their times."""
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
        """Returns sentences on what in patches/BASE does not fit patches/ any more."""
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
        return found or self.lost_places()

    def lost_places(self):
        """Returns the hunks in files of ours that do not apply to what the patches before them make, as sentences."""
        found, content = [], {}
        for name, text in self.patches().items():
            for diff in Patch(text).diffs:
                if diff.path in self.series.owner and diff.is_new:
                    content[diff.path] = patchfile.content_of(diff)
                elif diff.path in content:
                    try:
                        content[diff.path] = patchfile.apply(diff, content[diff.path])
                    except PatchError as error:
                        found.append(f'patches/{self.base}/{name}: {error}')
                        del content[diff.path]
        return found


def same(one, two):
    """Returns whether two FileDiffs change the same lines, wherever these lines are."""
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
    """Returns the bare diffs that turn the patch OURS into THEIRS, '' if there are none."""
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
