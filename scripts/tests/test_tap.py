# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/lib/tap.py: whatever is not a clean pass must be counted as a failure."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + '/lib')
import tap

TWO = 'TAP version 13\n1..2\nok 1 - a\n# got 3\nok 2 - b\n'


class TestJudge(unittest.TestCase):
    """Outputs and exit statuses of tests, with (passed, failed, skipped)."""

    CASES = (
        (TWO, 0, (2, 0, 0)),
        (TWO.replace('\n', '\r\n'), 0, (2, 0, 0)),
        (TWO.replace('ok 2', 'not ok 2'), 1, (1, 1, 0)),
        (TWO.replace('ok 2', 'not ok 2'), 0, (1, 2, 0)),        # exit status of success
        (TWO, 1, (2, 1, 0)),
        (TWO, 120, (2, 1, 0)),                                  # a splat
        (TWO.replace('ok 2', 'not ok 2'), 124, (1, 2, 0)),
        (TWO.replace('1..2\n', ''), 0, (2, 1, 0)),              # no plan
        (TWO.replace('1..2', '1..3'), 0, (2, 1, 0)),            # stopped early
        (TWO.replace('- b', '- b # SKIP no disk'), 0, (1, 0, 1)),
        ('1..0 # SKIP no kernel\n', 4, (0, 0, 1)),
        ('1..0\n', 0, (0, 1, 0)),                               # tested nothing
        ('1..1\nok 1 # SKIP all\n', 4, (0, 0, 1)),
        ('', 0, (0, 1, 0)),
        ('', 121, (0, 1, 0)),
        (TWO, 4, (2, 1, 0)),
    )

    def test_table(self):
        """Each output is counted as the table says."""
        for text, status, want in self.CASES:
            with self.subTest(text=text, status=status):
                result = tap.judge(text, status)
                self.assertEqual((result.passed, result.failed, result.skipped), want)
                self.assertEqual(len(result.causes), result.failed)

    def test_causes(self):
        """A failure says what failed."""
        self.assertEqual(tap.judge('1..1\nnot ok 1 - the rate\n', 1).causes, ['the rate'])
        self.assertEqual(tap.judge('1..1\n# of a and b\n# got 3\nnot ok 1 - the rate\n', 1).causes, ['the rate: got 3'])
        self.assertEqual(tap.judge(TWO, 120).causes, ['the kernel complained'])
        self.assertEqual(tap.judge(TWO.replace('1..2', '1..3') + '# ended after 2 of 3, at: rmdir a\n', 1).causes,
                         ['exit status 1: 2 of 3, at: rmdir a'])
        self.assertEqual(tap.judge(TWO.replace('1..2', '1..3') + 'Bail out! no disk\n', 1).causes, ['exit status 1: no disk'])
        splat = TWO + '-: 2 suspicious lines\n172:[   25.66] WARNING: bad\n190:Call Trace:\n'
        self.assertEqual(tap.judge(splat, 120).causes, ['the kernel complained: WARNING: bad'])

    def test_splat(self):
        """splat() has what the kernel printed after a line, from the start of init on."""
        log = ('[ 0.1] WARNING: bad\n[ 0.1] at boot\n[ 0.2] Run /init as init process\n[ 9.1] WARNING: bad\n'
               '[ 9.1] -----\n[ 9.1] block/bio.c:7 is wrong\n[ 9.1]  0123abcd\n[ 9.1]  [<60>] ? bio_put+0x1/0x2\n')
        self.assertEqual(tap.splat(log, 'WARNING: bad'), 'block/bio.c:7 is wrong | bio_put')
        self.assertEqual(tap.splat(log, 'WARNING: else'), '')

    def test_cases(self):
        """cases() has each point with its comments: those above, and indented ones right below."""
        text = TWO + '# else\nnot ok c: see x.log\n#   no\n# d\nok 4 # SKIP none\n'
        self.assertEqual([tuple(case) for case in tap.cases(text)], [
            ('passed', 'a', '', []), ('passed', 'b', '', ['got 3']), ('failed', 'c', 'c: see x.log', ['else', 'no']),
            ('skipped', '4', 'none', ['d'])])

    def test_prints_the_contract_line(self):
        """The sum names skipped points only if there are any."""
        self.assertEqual(str(tap.judge(TWO, 0)), '2 passed, 0 failed')
        self.assertEqual(str(tap.judge('1..0\n', 4)), '0 passed, 0 failed, 1 skipped')


if __name__ == '__main__':
    unittest.main()
