# SPDX-License-Identifier: GPL-2.0
"""scripts/series on a toy kernel and a toy repository."""
import os
import subprocess
import sys
import tempfile
import types
import unittest

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, SCRIPTS + '/lib')
import manifest     # noqa: E402
import patchfile    # noqa: E402
import size     # noqa: E402
from patchfile import Patch     # noqa: E402


class TestSeries(unittest.TestCase):
    """A kernel tree with two commits on base; from-tree makes a repository of it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree, self.top = folder.name + '/tree', folder.name + '/top'
        os.makedirs(self.top + '/patches')
        self.git(self.top, 'init', '-q')
        os.makedirs(self.tree)
        self.git(self.tree, 'init', '-q', '-b', 'base')
        self.write(self.tree, 'block/core.c', ''.join(f'{i}\n' for i in range(20)))
        self.write(self.tree, 'MAINTAINERS', 'a\nz\n')
        self.commit('base')
        self.git(self.tree, 'checkout', '-q', '-b', 'work')
        self.write(self.tree, 'block/ioband/a.c', 'int a;\n')
        self.write(self.tree, 'block/ioband/Kconfig', 'config A\n')
        self.write(self.tree, 'block/ioband/Makefile', 'obj-y += a.o\n')
        self.commit('block: add a')
        self.write(self.tree, 'block/ioband/b.c', 'int b;\n')
        self.write(self.tree, 'block/ioband/Makefile', 'obj-y += a.o\nobj-y += b.o\n')
        self.write(self.tree, 'block/core.c', ''.join(f'{i}\n' for i in range(20)).replace('\n7\n', '\n7\nhook();\n'))
        self.write(self.tree, 'MAINTAINERS', 'a\nioband\nz\n')
        self.commit('block: hook b')
        self.write(self.top, 'patches/budget', 'none 100\nhooks 150\n')
        self.series('from-tree', self.tree)

    def git(self, cwd, *args):
        """Runs git with an author of its own; returns its output."""
        return subprocess.run(['git', '-c', 'user.name=T', '-c', 'user.email=t@example.org', *args], cwd=cwd,
                              check=True, capture_output=True, encoding='utf-8').stdout

    def write(self, top, path, content):
        """Writes a file below top."""
        os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
        with open(os.path.join(top, path), 'w', encoding='utf-8') as file:
            file.write(content)

    def read(self, path):
        """Returns the text of a file of the repository."""
        with open(os.path.join(self.top, path), encoding='utf-8') as file:
            return file.read()

    def commit(self, subject):
        """Commits all changes of the tree."""
        self.git(self.tree, 'add', '-A')
        self.git(self.tree, 'commit', '-q', '-m', subject)

    def series(self, *args, status=0):
        """Runs scripts/series on the repository; returns its output."""
        run = subprocess.run([SCRIPTS + '/series', '--top', self.top, *args], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, encoding='utf-8')
        self.assertEqual(run.returncode, status, run.stdout)
        return run.stdout

    def same_as_work(self):
        """Applies patches/ to base with git am, on the branch again of the tree."""
        self.git(self.tree, 'checkout', '-q', '-B', 'again', 'base')
        self.git(self.tree, 'am', '-q', self.top + '/patches/0001-block-add-a.patch', self.top + '/patches/0002-block-hook-b.patch')

    def test_round_trip(self):
        """A tree made into patches and these into a tree is the same tree; registration is counted apart from hooks."""
        self.assertEqual(self.read('Kconfig.snippet'), 'config A\n')
        out = self.series('check')
        self.assertIn("     1    150  hooks in mainline's other files\n", out)
        self.assertIn('     1      -  registration in files of mainline\n', out)
        self.same_as_work()
        self.assertEqual(self.git(self.tree, 'diff', 'work', 'again'), '')
        self.assertEqual(self.series('export'), '')

    def test_source_changes(self):
        """check finds a changed source; export puts the state of every file into the right patch."""
        self.write(self.top, 'block/ioband/a.c', 'int a;\nint c;\n')
        self.write(self.top, 'block/ioband/Makefile', '# head\nobj-y += a.o\nobj-y += b.o\n')
        out = self.series('check', status=1)
        self.assertIn('0001-block-add-a.patch differs from its sources', out)
        self.series('export')
        self.series('check')
        self.same_as_work()
        self.assertEqual(self.git(self.tree, 'show', 'HEAD:block/ioband/Makefile'), self.read('block/ioband/Makefile'))
        self.assertEqual(self.git(self.tree, 'show', 'HEAD~:block/ioband/Makefile'), '# head\nobj-y += a.o\n')
        self.assertEqual(self.git(self.tree, 'show', 'HEAD:block/ioband/a.c'), 'int a;\nint c;\n')

    def test_edited_patch(self):
        """check finds a changed byte in a generated hunk."""
        name = 'patches/0001-block-add-a.patch'
        self.write(self.top, name, self.read(name).replace('+int a;', '+int z;'))
        self.assertIn(name, self.series('check', status=1))

    def test_hook_edits_stay(self):
        """export does not change hunks of hooks, and counts them again."""
        name = 'patches/0002-block-hook-b.patch'
        self.write(self.top, name, self.read(name).replace('+hook();', '+hook(b);'))
        self.series('export')
        self.assertIn('+hook(b);', self.read(name))

    def test_stray_source(self):
        """check finds a source that no patch adds."""
        self.write(self.top, 'block/ioband/c.c', 'int c;\n')
        self.assertIn('block/ioband/c.c is not in patches/series', self.series('check', status=1))

    def test_stray_patch_and_missing_source(self):
        """check finds a patch that is not listed, and a listed file that does not exist."""
        self.write(self.top, 'patches/0003-x.patch', self.read('patches/0002-block-hook-b.patch'))
        self.assertIn('patches/0003-x.patch', self.series('check', status=1))
        os.remove(self.top + '/block/ioband/b.c')
        self.assertIn('lists block/ioband/b.c', self.series('check', status=1))

    def test_hooks_too_large(self):
        """check fails if hooks in mainline's files are too many lines; lines of registration do not count."""
        self.git(self.tree, 'checkout', '-q', 'work')
        self.write(self.tree, 'MAINTAINERS', 'a\n' * 500)
        self.commit('block: register')
        self.series('from-tree', self.tree)
        self.series('check')
        self.write(self.tree, 'block/core.c', 'x\n' * 140)
        self.commit('block: more')
        self.series('from-tree', self.tree)
        self.assertIn('more than the budget of 150', self.series('check', status=1))

    def test_fix_in_front(self):
        """A fix of mainline before the first added file is not a hook; the same fix after it is one."""
        self.git(self.tree, 'checkout', '-q', '-b', 'mended', 'base')
        self.write(self.tree, 'block/core.c', self.read(self.tree + '/block/core.c') + 'x\n' * 200)
        self.commit('block: mend core')
        self.git(self.tree, 'cherry-pick', 'base..work')
        self.series('from-tree', self.tree)
        out = self.series('check')
        self.assertIn('3 patches, 4 new files\n', out)
        self.assertIn("     1    150  hooks in mainline's other files\n", out)
        self.assertIn('   200      -  fixes of mainline in the first patches\n', out)
        self.git(self.tree, 'checkout', '-q', 'work')
        self.git(self.tree, 'cherry-pick', 'mended~2')
        self.series('from-tree', self.tree)
        self.assertIn('more than the budget of 150', self.series('check', status=1))

    def test_letters(self):
        """Each series has its cover letter, with the number, the list and the diffstat of its own patches."""
        manifest = self.read('patches/series').splitlines()
        self.write(self.top, 'patches/series', f'# head\n[one]\n{manifest[0]}\n[two]\n{manifest[1]}\n')
        self.write(self.top, 'patches/budget', 'one 3\ntwo 2\nhooks 1\n')
        for name in 'one', 'two':
            self.write(self.top, f'patches/cover-letter-{name}.txt', f'Subject: [PATCH 0/9] block: {name}\n\nWhy.\n')
        self.series('export')
        one, two = (self.read(f'patches/cover-letter-{name}.txt') for name in ('one', 'two'))
        self.assertIn('Subject: [PATCH 0/1] block: one\n\nWhy.\n\nT (1):\n  block: add a\n\n block/ioband/Kconfig  |    1\n', one)
        self.assertNotIn('b.c', one)
        self.assertIn(' block/ioband/Makefile |    1\n', two)
        self.assertIn(' 4 files changed, 4 insertions(+), 0 deletions(-)\n', two)
        self.series('check')
        self.write(self.top, 'patches/cover-letter-one.txt', one.replace('add a', 'add b'))
        self.assertIn('cover-letter-one.txt differs from its sources', self.series('check', status=1))
        self.series('from-tree', self.tree)
        self.assertEqual([line for line in self.read('patches/series').splitlines() if line[0] in '#['], ['# head', '[one]', '[two]'])

    def test_change_of_a_late_line(self):
        """A line that a later patch adds or changes is changed there, and not in the patch that adds the file."""
        self.write(self.top, 'block/ioband/Makefile', 'obj-y += a.o\nobj-$(B) += b.o\n')
        self.series('export')
        self.same_as_work()
        self.assertEqual(self.git(self.tree, 'show', 'HEAD~:block/ioband/Makefile'), 'obj-y += a.o\n')
        self.assertEqual(self.git(self.tree, 'show', 'HEAD:block/ioband/Makefile'), self.read('block/ioband/Makefile'))

    def test_new_file_to_move(self):
        """A new file that the manifest lists at another patch moves to that patch."""
        self.write(self.top, 'patches/series', '0001-block-add-a.patch: block/ioband/a.c block/ioband/Kconfig '
                   'block/ioband/Makefile block/ioband/b.c\n0002-block-hook-b.patch:\n')
        self.series('export')
        self.series('check')
        self.same_as_work()
        self.assertEqual(self.git(self.tree, 'show', '--name-only', '--format=', 'HEAD'), 'MAINTAINERS\nblock/core.c\nblock/ioband/Makefile\n')


    def budget(self, text):
        """Puts both patches into a series each, a and b, with this budget. a has 3 lines of kernel code, and b 2."""
        first, second = (line for line in self.read('patches/series').splitlines() if ':' in line)
        self.write(self.top, 'patches/series', f'[a]\n{first}\n[b]\n{second}\n')
        self.write(self.top, 'patches/budget', text)

    def test_at_budget(self):
        """Parts as large as their budget pass, and size prints where their lines are."""
        self.budget('a 3\nb 2 # to become 1\nhooks 1\nhooks mm/ fs/ 0\n')
        self.series('check')
        out = self.series('size', '--files')
        self.assertIn(' lines budget  part\n     3      3  a\n     2      2  b\n', out)
        self.assertIn('     0      0  hooks in mm/ and fs/\n', out)
        self.assertIn('\na\n     3  block/ioband/\n             1  Kconfig\n             1  Makefile\n'
                      '             1  a.c\n\nb\n', out)
        out = self.series('size')
        self.assertIn("\nhooks in mainline's other files\n     1  block/\n             1  core.c\n", out)
        self.assertNotIn('a.c', out)

    def test_over_budget(self):
        """A part that is larger than its budget by a line is a failure that names it, its lines and the budget."""
        hooks = "hooks in mainline's other files"
        for text, want in (('a 2\nb 2\nhooks 1\n', 'a: 3 lines, 1 more than the budget of 2'),
                           ('a 3\nb 1\nhooks 1\n', 'b: 2 lines, 1 more than the budget of 1'),
                           ('a 3\nb 2\nhooks 0\n', f'{hooks}: 1 lines, 1 more than the budget of 0'),
                           ('a 3\nb 2\nhooks 1\nhooks block/ 0\n', 'hooks in block/: 1 lines, 1 more than')):
            with self.subTest(budget=text):
                self.budget(text)
                out = self.series('check', status=1)
                self.assertRegex(out, f'error: {want}.* in patches/budget\n next: ')
                self.assertEqual(out.count('error:'), 1)
        self.series('size')

    def test_later_series(self):
        """Lines that a later series adds to a file of an earlier one count for the later one."""
        self.write(self.top, 'block/ioband/Makefile', 'obj-y += a.o\nobj-y += b.o\nobj-y += c.o\n')
        self.budget('a 3\nb 3\nhooks 1\n')
        self.series('export')
        self.series('check')
        patch = self.read('patches/0002-block-hook-b.patch')
        self.assertIn('+obj-y += c.o\n', patch)
        texts = {name: self.read('patches/' + name) for name in ('0001-block-add-a.patch', '0002-block-hook-b.patch')}
        self.assertEqual(size.series_lines(manifest.Series(self.top), texts), {
            'a': {f'block/ioband/{name}': 1 for name in ('Kconfig', 'Makefile', 'a.c')},
            'b': {'block/ioband/Makefile': 2, 'block/ioband/b.c': 1}})

    def test_apart(self):
        """Tests, documents and tools are no kernel code."""
        self.git(self.tree, 'checkout', '-q', 'work')
        for path in ('block/ioband/tests/a_kunit.c', 'block/ioband/tests/Kconfig', 'kernel/cgroup/b_kunit.c',
                     'Documentation/b.rst', 'tools/cgroup/b.py', 'tools/testing/b.c'):
            self.write(self.tree, path, 'x\n' * 50)
        self.write(self.tree, 'include/trace/events/b.h', 'x\n' * 7)
        self.commit('block: test b')
        self.series('from-tree', self.tree)
        self.assertIn('    12    100  none\n', self.series('check'))

    def test_budget_of_other_series(self):
        """A budget that lacks a series or has another one is an error, and so is a repository without a budget."""
        for text, want in (('a 3\nhooks 1\n', 'no line for the series b\n next: write "b 2"'),
                           ('a 3\nb 2\nc 1\nhooks 1\n', 'no series c')):
            self.budget(text)
            self.assertRegex(self.series('check', status=1), f'error: patches/budget.*{want}')
        os.remove(self.top + '/patches/budget')
        self.assertIn('error: there is no patches/budget', self.series('check', status=1))


class TestBudget(unittest.TestCase):
    """The text of patches/budget."""

    def test_fits(self):
        """Lines without comments are numbers of lines of series, and of hooks in folders and in all other files."""
        self.assertEqual(size.read_budget('# x\n\na 3 # to become 2\nhooks mm/ fs/ 4\nhooks 5\n'),
                         ({'a': 3}, {('mm/', 'fs/'): 4, (): 5}))

    def test_does_not_fit(self):
        """A line without sense, one that is there twice, and a budget without hooks are errors."""
        cases = {'a 3\na 3\n': 'line 2: a 3', 'a 3\n': 'no line'}
        cases.update((text, 'line 1') for text in ('a\n', 'a many\n', 'a -3\n', 'a mm/ 3\n', 'hooks mm 3\n', '3\n'))
        for text, want in cases.items():
            with self.subTest(budget=text), \
                    self.assertRaisesRegex(patchfile.PatchError, f'patches/budget.*{want}.*\n next: '):
                size.read_budget(text)

    def test_moved(self):
        """Lines that a later series moves from a file of an earlier one count once: the later one has none more."""
        header = 'From: T <t@example.org>\nSubject: [PATCH] x\n\nWhy.\n---\n\n'
        texts = {'1': header + str(patchfile.new_file('block/a.c', 'a\nb\nc\n')),
                 '2': header + str(patchfile.changed_file('block/a.c', 'a\nb\nc\n', 'a\n')) +
                 str(patchfile.new_file('block/b.c', 'b\nc\ne\n'))}
        series = types.SimpleNamespace(adds=texts, owner={'block/a.c', 'block/b.c'},
                                       letters={'cover-letter-a.txt': ['1'], 'cover-letter-b.txt': ['2']})
        self.assertEqual(size.series_lines(series, texts),
                         {'a': {'block/a.c': 3}, 'b': {'block/a.c': -2, 'block/b.c': 3}})


class TestStat(unittest.TestCase):
    """The diffstat of several patches, for a cover letter."""

    def test_lines(self):
        """Lines of a file that the patches add are counted once; in a file of the kernel a changed line counts twice."""
        new, newer = 'int a;\nint b;\n', 'int a;\nint c;\n'
        header = 'From: T <t@example.org>\nSubject: [PATCH] x\n\nWhy.\n---\n\n'
        patches = [Patch(header + str(patchfile.new_file('block/ioband/a.c', new)) +
                         str(patchfile.changed_file('block/core.c', 'x\ny\n', 'x\nz\n'))),
                   Patch(header + str(patchfile.changed_file('block/ioband/a.c', new, newer)))]
        self.assertEqual(manifest.stat(patches, {}),
                         ' block/core.c     |    2\n block/ioband/a.c |    2\n'
                         ' 2 files changed, 3 insertions(+), 1 deletions(-)\n')


if __name__ == '__main__':
    unittest.main()
