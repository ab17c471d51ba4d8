# SPDX-License-Identifier: GPL-2.0
"""scripts/mails on the series of this repository: who sends what, in which order, and that nothing else changes."""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(SCRIPTS)
AUTHOR = 'Ada Example <ada@example.org>'


def mails(folder, *args):
    """Runs scripts/mails; returns the finished process."""
    return subprocess.run([sys.executable, SCRIPTS + '/mails', folder, *args], capture_output=True, encoding='utf-8')


def read(path):
    """The text of a file."""
    with open(path, encoding='utf-8', newline='') as file:
        return file.read()


class TestMails(unittest.TestCase):
    """All three series, written once."""

    paths: list
    texts: dict

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        run = mails(folder.name, '--author', AUTHOR, '--version', '3', '--base', '0123456789abcdef')
        assert run.returncode == 0, run.stderr
        cls.paths = sorted(glob.glob(folder.name + '/*/*.patch'))
        cls.texts = {path: read(path) for path in cls.paths}

    def test_author_and_sign_off(self):
        """Each mail is from the author, and each patch has the author's sign-off and no other one."""
        for path, text in self.texts.items():
            with self.subTest(path=path):
                self.assertEqual(re.findall(r'^From: (.*)$', text, re.M)[0], AUTHOR)
                signs = re.findall(r'^Signed-off-by: (.*)$', text, re.M)
                self.assertEqual(signs, [] if '0000-' in path else [AUTHOR])

    def test_subjects_are_numbered(self):
        """Each series counts from 0, its cover letter, to the number of its patches."""
        subject = r'^Subject: \[PATCH v3 (\d+)/(\d+)\]'
        for folder in sorted({os.path.dirname(path) for path in self.paths}):
            inside = [path for path in self.paths if os.path.dirname(path) == folder]
            tags = [tag for path in inside for tag in re.findall(subject, self.texts[path], re.M)]
            self.assertEqual([(int(number), int(count)) for number, count in tags],
                             [(number, len(inside) - 1) for number in range(len(inside))])

    def test_patches_are_those_of_the_repository(self):
        """Joined in their order, the diffs are those of patches/."""
        diffs = [text[text.index('\n---\n'):] for path, text in self.texts.items() if '0000-' not in path]
        ours = [read(path) for path in sorted(glob.glob(TOP + '/patches/[0-9]*.patch'))]
        self.assertEqual(diffs, [text[text.index('\n---\n'):] for text in ours])

    def test_cover_letter(self):
        """It lists the patches below the author's name, and ends with the commit that was given."""
        for path, text in self.texts.items():
            if '0000-' in path:
                self.assertRegex(text, r'(?m)^Ada Example \(\d+\):$')
                self.assertTrue(text.endswith('\nbase-commit: 0123456789abcdef\n'), text[-60:])

    def test_author_is_checked(self):
        """A name without an address is refused, and nothing is written."""
        with tempfile.TemporaryDirectory() as folder:
            run = mails(folder + '/new', '--author', 'Ada')
            self.assertEqual(run.returncode, 2)
            self.assertIn('is not of the form', run.stderr)
            self.assertFalse(os.path.exists(folder + '/new'))


if __name__ == '__main__':
    unittest.main()
