# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/lib/report.sh: every point is counted, and a test without a point that passed has failed."""
import os
import subprocess
import tempfile
import unittest

LIB = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'lib')


class TestReport(unittest.TestCase):
    """Commands of a test, with the last line that it prints and its exit status."""

    CASES = (
        ('report a log true; report b log true', '2 passed, 0 failed', 0),
        ('report a log true; report b log false', '1 passed, 1 failed', 1),
        ('', '0 passed, 0 failed', 1),
        ('echo "ok a # SKIP no disk" | points', '0 passed, 0 failed, 1 skipped', 1),
        ('printf "# ok x\\nok a\\n  ok b\\nok c # SKIP\\nnot ok d # SKIP is no excuse\\nokay\\n" | points',
         '1 passed, 1 failed, 1 skipped', 1),
        # in subshells, one of them in the background
        ('(report a log.1 true) & report b log.2 true; wait; (report c log.3 false)', '2 passed, 1 failed', 1),
        # the log of a failure may be empty, or long
        ('report a log false; report b log seq 100000; report c log bash -c "seq 100000; false"',
         '1 passed, 2 failed', 1),
        ('sum_of 3 0', '3 passed, 0 failed', 0),
        ('sum_of 3 1', '3 passed, 1 failed', 1),
        ('sum_of 0 0 2', '0 passed, 0 failed, 2 skipped', 1),
        ('sum_of 0 1', '0 passed, 1 failed', 1),
    )

    def run_test(self, commands):
        """Runs the commands of a test in an empty folder; returns the finished process."""
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, TMPDIR=folder + '/build', IOBAND_BUILD=folder + '/build',
                               IOBAND_OUT=folder + '/out')
            run = subprocess.run(['bash', '-c', f'. {LIB}/lib.sh; . {LIB}/report.sh; {commands}\nsum_up'], cwd=folder,
                                 check=False, env=environment, capture_output=True, encoding='utf-8',
                                 stdin=subprocess.DEVNULL)
            self.assertEqual(os.listdir(folder + '/build'), [])     # no file is left
        return run

    def test_table(self):
        """The sum is the last line; it is an error if a point failed, or if none passed."""
        for commands, last, status in self.CASES:
            with self.subTest(commands):
                run = self.run_test(commands)
                self.assertEqual((run.stdout.splitlines()[-1], run.returncode), (last, status), run)
                self.assertEqual('error: nothing was tested' in run.stderr, last.startswith('0 passed, 0 failed'), run)

    def test_failure_is_shown(self):
        """A failure names its log, and shows twelve lines of it."""
        lines = self.run_test('report a log bash -c "echo; seq 100; false"').stdout.splitlines()
        self.assertEqual(lines, ['not ok a: see log'] + [f'#   {nr}' for nr in range(1, 13)] + ['0 passed, 1 failed'])


if __name__ == '__main__':
    unittest.main()
