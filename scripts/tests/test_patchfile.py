# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/lib/patchfile.py: patches are taken apart and put together."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + '/lib')
import patchfile
from patchfile import Patch, PatchError

HEADER = '''From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: A Name <name@example.org>
Date: Thu, 1 Jan 2026 00:00:00 +0000
Subject: [PATCH] block: say a
 thing

Why it is said.

Signed-off-by: A Name <name@example.org>
---
'''
HOOK = '''diff --git a/block/core.c b/block/core.c
index 111111111111..222222222222 100644
--- a/block/core.c
+++ b/block/core.c
@@ -1,3 +1,4 @@ int f(void)
 one
--- two
++++ two
+-- 
 three
'''


class TestPatch(unittest.TestCase):
    """Reading and writing one patch."""

    def test_reads_header_and_hunks(self):
        """A line "-- " inside a hunk is not a signature, and "---" inside a hunk is not a header."""
        patch = Patch(HEADER + '\n' + HOOK)
        self.assertEqual(patch.subject(), 'block: say a thing')
        self.assertEqual(patch.author(), 'A Name')
        self.assertEqual([diff.path for diff in patch.diffs], ['block/core.c'])
        self.assertEqual(patch.diffs[0].changed(), 3)
        self.assertEqual(str(patch.diffs[0]), HOOK)

    def test_writes_itself_again(self):
        """str() of a Patch that was read from str() is the same; notes are kept, the signature is dropped."""
        once = str(Patch(HEADER + 'v2: louder\n\n block/core.c | 9 +++\n 1 file changed, 9 insertions(+)\n\n' + HOOK + '-- \n2.39\n'))
        self.assertEqual(str(Patch(once)), once)
        self.assertIn('---\nv2: louder\n\n block/core.c |', once)
        self.assertIn(' 1 file changed, 2 insertions(+), 1 deletion(-)\n', once)
        self.assertTrue(once.endswith(' three\n'))

    def test_rejects(self):
        """Miscounted hunks, renames and a message without an end are errors."""
        for bad in (HOOK.replace('-1,3', '-1,4'), HOOK.replace('index', 'rename from x\nindex'), HOOK + 'stray\n'):
            with self.assertRaises(PatchError):
                Patch(HEADER + bad)
        with self.assertRaises(PatchError):
            Patch('no end\n' + HOOK)


class TestNewFile(unittest.TestCase):
    """Diffs that add a file are the same as those of git."""

    CONTENTS = ('', 'one\n', 'one\ntwo\n', 'no end', 'two\nno end', '\n\n')

    def test_same_as_git(self):
        """The diff is that of git format-patch for the same file."""
        for content in self.CONTENTS:
            with self.subTest(content=content), tempfile.TemporaryDirectory() as cwd:
                with open(os.path.join(cwd, 'new.c'), 'w', encoding='utf-8') as file:
                    file.write(content)
                patchfile.git(['init', '-q'], cwd)
                patchfile.git(['add', 'new.c'], cwd)
                want = patchfile.git(['diff', '--cached', f'--abbrev={patchfile.ABBREV}'], cwd)
                self.assertEqual(str(patchfile.new_file('new.c', content)), want)

    def test_applies(self):
        """git apply makes the file from the diff, with its mode."""
        with tempfile.TemporaryDirectory() as cwd:
            patchfile.git(['apply', '-'], cwd, str(patchfile.new_file('d/run.sh', 'a\nb\n', '100755')))
            self.assertEqual(subprocess.check_output(['cat', cwd + '/d/run.sh'], encoding='utf-8'), 'a\nb\n')
            self.assertTrue(os.access(cwd + '/d/run.sh', os.X_OK))


class TestApply(unittest.TestCase):
    """Hunks are applied, and changes merged."""

    OLD = ''.join(f'line {i}\n' for i in range(30))
    NEW = OLD.replace('line 3\n', 'line 3\nmore\n\n').replace('line 20\n', 'other\n')

    def test_applies(self):
        """apply(changed_file(old, new), old) is new, also if old has more lines before the hunks."""
        diff = patchfile.changed_file('d/f', self.OLD, self.NEW)
        self.assertEqual(patchfile.apply(diff, self.OLD), self.NEW)
        self.assertEqual(patchfile.apply(diff, 'top\n' * 9 + self.OLD), 'top\n' * 9 + self.NEW)

    def test_says_what_is_missing(self):
        """A hunk that changes lines that the source does not have is an error, which says which file."""
        diff = patchfile.changed_file('d/f', self.OLD, self.NEW)
        with self.assertRaisesRegex(PatchError, 'd/f.*hunk'):
            patchfile.apply(diff, self.OLD.replace('line 20', 'else'))

    def test_merges(self):
        """An earlier state gets the changes of the last one, except in lines that it lacks or that differ there."""
        last = self.OLD.replace('line 12\n', 'line 12\nlater\n').replace('line 20\n', 'later 20\n')
        new = last.replace('line 5\n', 'five\n').replace('later\n', 'latest\n').replace('later 20\n', 'latest 20\n')
        self.assertEqual(patchfile.merge(last, self.OLD, new), self.OLD.replace('line 5\n', 'five\n'))
        self.assertEqual(patchfile.merge(last, self.OLD, last), self.OLD)


if __name__ == '__main__':
    unittest.main()
