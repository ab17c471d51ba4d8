# SPDX-License-Identifier: GPL-2.0
"""scripts/lib/longterm.py on a toy series."""
import os
import sys
import tempfile
import unittest

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, SCRIPTS + '/lib')
import longterm     # noqa: E402
import patchfile    # noqa: E402
from patchfile import Patch     # noqa: E402

NAME = '0001-block-add-a.patch'
SECOND = '0002-block-add-c.patch'
HEADER = 'From 0 Mon Sep 17 00:00:00 2001\nFrom: T <t@example.org>\nSubject: [PATCH] block: add a\n\nWhy.\n---\n'


def hook(call, around):
    """Returns a FileDiff that adds a call between two lines of block/core.c."""
    return patchfile.changed_file('block/core.c', f'{around}1\n{around}2\n', f'{around}1\n{call}();\n{around}2\n')


class Series:
    """A replacement of manifest.Series with what longterm.Longterm uses: one patch with one hook and one new file."""

    adds = {NAME: ['block/ioband/a.c']}
    owner = {'block/ioband/a.c': NAME}

    def __init__(self, top, source='int a;\nint later;\nint b;\n', call='ioband_bio'):
        self.top = top
        self.text = HEADER + '\n' + str(hook(call, 'new')) + str(patchfile.new_file('block/ioband/a.c', source))

    def parse(self, name):
        """Returns the patch."""
        assert name == NAME
        return Patch(self.text)


class TwoPatches(Series):
    """The same with a second patch, which adds a line at the end of the file."""

    adds = {**Series.adds, SECOND: []}

    def parse(self, name):
        """Returns the patch."""
        if name == NAME:
            return super().parse(name)
        source = patchfile.content_of(super().parse(NAME).diffs[1])
        return Patch(HEADER + '\n' + str(patchfile.changed_file('block/ioband/a.c', source, source + 'int c;\n')))


class TestLongterm(unittest.TestCase):
    """A base 6.1 on which one hunk and one line of a source differ."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = folder.name
        os.makedirs(self.top + '/patches/6.1')
        self.write('kernel.pin', '')
        self.theirs = Patch(HEADER + '\n' + str(hook('ioband_bio', 'old')) +
                            str(patchfile.new_file('block/ioband/a.c', 'int a;\nint b;\n')))
        self.write(NAME, longterm.differences(Series(self.top).parse(NAME), self.theirs, '6.1'))

    def write(self, name, text):
        """Writes a file of patches/6.1."""
        with open(f'{self.top}/patches/6.1/{name}', 'w', encoding='utf-8') as file:
            file.write(text)

    def base(self, **series):
        """Returns the Longterm of patches/6.1, with a series made from the arguments."""
        return longterm.Longterm(Series(self.top, **series), '6.1')

    def test_round_trip(self):
        """Differences that were taken from a tree make the same patch again."""
        self.assertEqual(longterm.bases(self.top), ['6.1'])
        self.assertEqual(self.base().patches(), {NAME: str(self.theirs)})
        self.assertEqual(self.base().faults(), [])

    def test_source_goes_on(self):
        """A change of the source at another place is also made on the base."""
        text = self.base(source='int new;\nint a;\nint later;\nint b;\n').patches()[NAME]
        self.assertIn('+int new;\n+int a;\n+int b;\n', text)

    def test_same_hunks_are_not_kept(self):
        """Hunks that are the same in both are not kept in patches/6.1."""
        self.assertEqual(longterm.differences(self.theirs, self.theirs, '6.1'), '')

    def test_left_out(self):
        """A diff without hunks leaves its file out."""
        self.write(NAME, 'diff --git a/block/core.c b/block/core.c\n')
        self.assertEqual([diff.path for diff in Patch(self.base().patches()[NAME]).diffs], ['block/ioband/a.c'])

    def test_own_patch(self):
        """A patch of the base's own comes first."""
        self.write('0000-first.patch', str(self.theirs))
        self.assertEqual(list(self.base().patches()), ['0000-first.patch', NAME])

    def test_left_behind(self):
        """A hook whose function was renamed in the series, and a line that is gone, are faults."""
        self.assertIn('ioband_bio, ioband_else', self.base(call='ioband_else').faults()[0])
        self.assertIn('block/ioband/a.c', self.base(source='int z;\n').faults()[0])

    def test_place_is_lost(self):
        """A hunk of a later patch in a file of the series, around which the series has changed lines, is a fault."""
        self.write(SECOND, str(patchfile.changed_file('block/ioband/a.c', 'int a;\nint b;\nint z;\n',
                                                      'int a;\nint b;\nint z;\nint d;\n')))
        good, lost = (TwoPatches(self.top, source=f'int a;\nint later;\nint b;\nint {last};\n') for last in 'zy')
        self.assertEqual(longterm.Longterm(good, '6.1').faults(), [])
        self.assertIn(SECOND, longterm.Longterm(lost, '6.1').faults()[0])


if __name__ == '__main__':
    unittest.main()
