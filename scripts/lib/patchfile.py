# SPDX-License-Identifier: GPL-2.0
"""Parses a patch as git format-patch writes it, and makes the same text of it again, byte for byte.

Patch(text) has a header (the mail up to and with its "---" line), notes (what people wrote below that line),
diffs (one FileDiff per file); str() of it is the patch again, with a new diffstat. This module knows nothing
of the project; scripts/series does.
"""
import hashlib
import os
import re
import subprocess
import tempfile

ABBREV = 12     # digits of a blob's name in "index" lines
HUNK = re.compile(r'@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@')
STAT = re.compile(r' (.* \| +(\d+|Bin)|\d+ files? changed,|(create|delete|rename|mode|copy|rewrite) )')
NO_NEWLINE = '\\ No newline at end of file\n'


class PatchError(Exception):
    """A patch is not what it should be; the text says which and why."""


class FileDiff:
    """One file's part of a patch: path, is_new, and lines as they stand (each with its newline)."""

    def __init__(self, lines):
        self.lines = lines
        match = re.match(r'diff --git a/(\S+) b/(\S+)\n', lines[0])
        if not match:
            raise PatchError(f'cannot read {lines[0]!r}')
        self.path = match.group(2)
        head = lines[:self.head_length()]
        self.is_new = any(line.startswith('new file mode') for line in head)
        if any(line.startswith(('rename ', 'copy ', 'GIT binary')) for line in head):
            raise PatchError(f'{self.path}: renames and binary files are not supported')

    def head_length(self):
        """Returns the number of lines before the first hunk."""
        return next((i for i, line in enumerate(self.lines) if line.startswith('@@ ')), len(self.lines))

    def hunks(self):
        """Yields (old_start, lines) per hunk, lines without the @@ line; old_start counts from 1."""
        i = self.head_length()
        while i < len(self.lines):
            size = hunk_length(self.lines, i)
            yield int(hunk_head(self.lines[i]).group(1)), self.lines[i + 1:i + size]
            i += size

    def changed(self):
        """Returns the number of added plus removed lines."""
        return sum(line[0] in '+-' for _, lines in self.hunks() for line in lines)

    def __str__(self):
        return ''.join(self.lines)


def hunk_head(line):
    """Returns the match of HUNK with an @@ line."""
    match = HUNK.match(line)
    if not match:
        raise PatchError(f'not a hunk: {line!r}')
    return match


def hunk_length(lines, i):
    """Returns the number of lines of the hunk whose @@ line is lines[i], that line included."""
    old, new = (1 if n is None else int(n) for n in hunk_head(lines[i]).group(2, 4))
    end = i + 1
    while end < len(lines) and (old > 0 or new > 0 or lines[end] == NO_NEWLINE):
        kind = lines[end][0]
        if kind not in ' +-\\\n':
            break
        old -= kind in ' -\n'
        new -= kind in ' +\n'
        end += 1
    if old or new:
        raise PatchError(f'hunk {lines[i].strip()!r} is cut short or miscounted')
    return end - i


def split_diffs(lines):
    """Returns the FileDiffs in lines, which begin with the first "diff --git"; what follows the last is dropped."""
    diffs, i = [], 0
    while i < len(lines) and lines[i].startswith('diff --git '):
        begin, i = i, i + 1
        while i < len(lines) and not lines[i].startswith(('diff --git ', '@@ ', '-- \n')):
            i += 1
        while i < len(lines) and lines[i].startswith('@@ '):
            i += hunk_length(lines, i)
        diffs.append(FileDiff(lines[begin:i]))
    if any(line.strip() for line in lines[i:]) and not lines[i].startswith('-- '):
        raise PatchError(f'text after the last hunk: {lines[i]!r}')
    return diffs


class Patch:
    """A whole patch mail."""

    def __init__(self, text):
        lines = text.splitlines(keepends=True)
        try:
            end = lines.index('---\n') + 1
        except ValueError:
            raise PatchError('no "---" line below the commit message') from None
        first = next((i for i, line in enumerate(lines) if i >= end and line.startswith('diff --git ')), len(lines))
        self.header = ''.join(lines[:end])
        self.notes = ''.join(line for line in lines[end:first] if not STAT.match(line)).strip('\n')
        self.diffs = split_diffs(lines[first:])

    def subject(self):
        """Returns the Subject without its [PATCH] tag."""
        match = re.search(r'^Subject: (.*(?:\n .*)*)', self.header, re.M)
        return re.sub(r'^\[.*?\] ', '', match.group(1).replace('\n ', ' ')) if match else ''

    def author(self):
        """Returns the name in From:, without the address."""
        match = re.search(r'^From: (.*?) *<', self.header, re.M)
        return match.group(1).strip('"') if match else ''

    def __str__(self):
        body = ''.join(str(diff) for diff in self.diffs)
        notes = f'{self.notes}\n\n' if self.notes else ''
        return f'{self.header}{notes}{diffstat(body)}\n{body}'


def git(args, cwd, text=None, ok=(0,)):
    """Returns the output of git, run outside of any repository and without the user's and the system's settings."""
    env = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(os.path.abspath(cwd)),
               GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull, LC_ALL='C')
    for name in ('GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE', 'GIT_PREFIX'):
        env.pop(name, None)
    run = subprocess.run(['git', *args], cwd=cwd, env=env, input=text, capture_output=True, encoding='utf-8')
    if run.returncode not in ok:
        raise PatchError(f'git {args[0]}: {run.stderr.strip()}')
    return run.stdout


def diffstat(body):
    """Returns the diffstat of diffs, as git apply prints it."""
    if not body:
        return ''
    with tempfile.TemporaryDirectory() as cwd:
        return git(['apply', '--stat', '--summary', '-'], cwd, body)


def blob_name(content):
    """Returns git's name of a file's content, abbreviated to ABBREV digits."""
    data = content.encode()
    return hashlib.sha1(b'blob %d\0' % len(data) + data).hexdigest()[:ABBREV]


def new_file(path, content, mode='100644'):
    """Returns the FileDiff that adds path with this content."""
    lines = content.splitlines(keepends=True)
    out = [f'diff --git a/{path} b/{path}\n', f'new file mode {mode}\n', f'index {"0" * ABBREV}..{blob_name(content)}\n']
    if lines:
        count = f'1,{len(lines)}' if len(lines) > 1 else '1'
        out += ['--- /dev/null\n', f'+++ b/{path}\n', f'@@ -0,0 +{count} @@\n', *('+' + line for line in lines)]
        if not content.endswith('\n'):
            out[-1] += '\n'
            out.append(NO_NEWLINE)
    return FileDiff(out)


def changed_file(path, old, new):
    """Returns the FileDiff that turns old into new."""
    with tempfile.TemporaryDirectory() as cwd:
        for side, content in (('a', old), ('b', new)):
            name = os.path.join(cwd, side, path)
            os.makedirs(os.path.dirname(name))
            with open(name, 'w', encoding='utf-8', newline='') as file:
                file.write(content)
        text = git(['diff', '--no-index', '--no-prefix', f'--abbrev={ABBREV}', '--', f'a/{path}', f'b/{path}'], cwd, ok=(0, 1))
    return FileDiff(text.splitlines(keepends=True))


def apply(diff, content):
    """Returns content with diff applied; hunks are found wherever their lines have moved to."""
    lines = content.splitlines(keepends=True)
    for start, hunk in reversed(list(diff.hunks())):
        if NO_NEWLINE in hunk:
            raise PatchError(f'{diff.path}: a file without a newline at its end')
        before = [line[1:] or '\n' for line in hunk if line[0] in ' -\n']
        after = [line[1:] or '\n' for line in hunk if line[0] in ' +\n']
        places = [i for i in range(len(lines) - len(before) + 1) if lines[i:i + len(before)] == before]
        if not places:
            raise PatchError(f'{diff.path}: the lines that a hunk changes are not in the source:\n' + ''.join(hunk))
        at = min(places, key=lambda i: abs(i + 1 - start))
        lines[at:at + len(before)] = after
    return ''.join(lines)


def content_of(diff):
    """Returns the content of the file that a FileDiff adds."""
    return ''.join(line[1:] for _, lines in diff.hunks() for line in lines if line[0] == '+')


def merge(old, mine, new):
    """Returns MINE with the changes from OLD to NEW; where MINE differs from OLD, MINE stays as it is."""
    with tempfile.TemporaryDirectory() as cwd:
        for name, content in (('old', old), ('mine', mine), ('new', new)):
            with open(os.path.join(cwd, name), 'w', encoding='utf-8', newline='') as file:
                file.write(content)
        return git(['merge-file', '-p', '-q', '--ours', 'mine', 'old', 'new'], cwd)
