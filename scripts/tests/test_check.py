# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/check (make check): counts, order, and that no failure gets lost."""
import contextlib
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader('check', SCRIPTS + '/check')
spec = importlib.util.spec_from_loader('check', loader)
assert spec
check = importlib.util.module_from_spec(spec)
loader.exec_module(check)
runner = check.runner


class TestJudge(unittest.TestCase):
    """Outputs and exit statuses of stages, with (passed, failed, skipped)."""

    CASES = (
        ('', 0, (0, 1, 0)),                                             # printed nothing
        ('kernel source: build/linux\n', 0, (0, 1, 0)),                 # no point
        ('error: hm\n0 passed, 0 failed\n', 0, (0, 1, 0)),
        ('# 0 of 0 scenarios are right\n', 0, (0, 1, 0)),
        ('', 1, (0, 1, 0)),
        ('ok a\nok b\n', 0, (2, 0, 0)),
        ('ok a\nnot ok b: see x\n', 1, (1, 1, 0)),
        ('ok a\n', 2, (1, 1, 0)),
        ('ok a # SKIP no tree\n', 0, (0, 1, 1)),
        ('ok a # SKIP no disk\nok b\n', 0, (1, 0, 1)),
        ('0 passed, 0 failed, 2 skipped\n', 0, (0, 1, 2)),
        ('ok a\nok b\n2 passed, 0 failed\n', 0, (2, 0, 0)),
        ('ok a\nnot ok b: see x\n2 passed, 0 failed\n', 0, (2, 1, 0)),  # the sum leaves a failure out
        ('ok a\nnot ok b: see x\n1 passed, 1 failed\n', 1, (1, 1, 0)),
        ('passed x: 3 passed, 0 failed (1 s)\n3 passed, 0 failed\n', 0, (3, 0, 0)),
        ('FAILED x: 3 passed, 1 failed (1 s)\n  x: too slow\n3 passed, 1 failed, 2 skipped\n', 1, (3, 1, 2)),
        ('no test names qemu in its header\n0 passed, 0 failed\n', 1, (0, 1, 0)),
    )

    def test_table(self):
        """Each output is counted as the table says."""
        for text, status, want in self.CASES:
            with self.subTest(text=text, status=status):
                result = check.judge(text, status)
                self.assertEqual((result.passed, result.failed, result.skipped), want)

    def test_makes(self):
        """What only makes something has no point, and fails by its exit status alone."""
        for text, status, want, shown in (('', 0, (0, 0, 0), 'made'),
                                          ('ok a\n1 passed, 0 failed\n', 0, (0, 0, 0), 'made'),
                                          ('error: no disk\n', 1, (0, 1, 0), '0 passed, 1 failed')):
            result = check.judge(text, status, makes=True)
            self.assertEqual(((result.passed, result.failed, result.skipped), str(result)), (want, shown))

    def test_makers(self):
        """Stages that others need make something, and all others test something."""
        needed = {name for stage in check.STAGES for name in stage.needs}
        self.assertEqual({stage.name for stage in check.STAGES if stage.makes}, needed)

    def test_cause(self):
        """The cause is the script's own error message if it has one."""
        self.assertEqual(check.judge('hm\nerror: no disk\n next: buy one\n', 1).causes, ['error: no disk'])
        self.assertEqual(check.judge('ok a\nnot ok b: see x\n1 passed, 1 failed\n', 1).causes, ['b: see x'])
        self.assertEqual(check.judge('FAILED x: 1\n  x: too slow\n0 passed, 1 failed\n', 1).causes, ['x: too slow'])


class Fake(check.Stage):  # type: ignore[name-defined]
    """A stage that notes when it runs instead of running a command."""

    running, builds, most, order = 0, 0, [0, 0], []
    guard = threading.Lock()

    def __init__(self, name, needs=(), build=False, fails=False):
        super().__init__(name, 'none', needs, build)
        self.fails = fails

    def run(self):
        """Takes a moment; counts the stages that run at the same time."""
        with Fake.guard:
            Fake.running += 1
            Fake.builds += self.build
            Fake.most = [max(Fake.most[0], Fake.running), max(Fake.most[1], Fake.builds)]
            Fake.order.append(self.name)
        time.sleep(0.02)
        with Fake.guard:
            Fake.running -= 1
            Fake.builds -= self.build
        self.result = check.judge('' if self.fails else 'ok it ran\n', int(self.fails))
        self.state = 'failed' if self.fails else 'passed'


class TestRunner(unittest.TestCase):
    """The order of stages, and the counts."""

    def runner(self, *stages):
        """Runs stages without output; returns the total as text."""
        Fake.running, Fake.builds, Fake.most, Fake.order = 0, 0, [0, 0], []
        with tempfile.TemporaryFile('w') as file, contextlib.redirect_stdout(file):
            return str(runner.Runner(stages).run())

    def test_two_at_once_one_build(self):
        """Builds never overlap, tests do, and no stage runs before those that it needs."""
        total = self.runner(Fake('b1', build=True), Fake('b2', build=True), Fake('t1', ('b1',)), Fake('b3', build=True),
                            Fake('t2', ('b2',)), Fake('t3', ('b1',)))
        self.assertEqual(total, '6 passed, 0 failed')
        self.assertEqual(Fake.most, [2, 1])
        self.assertLess(Fake.order.index('b2'), Fake.order.index('t2'))

    def test_goes_on(self):
        """After a failure the other stages run, except for stages that need the failed one, which count as failed."""
        total = self.runner(Fake('b', build=True, fails=True), Fake('t', ('b',)), Fake('after', ('t',)), Fake('other'))
        self.assertEqual(total, '1 passed, 3 failed')
        self.assertEqual(sorted(Fake.order), ['b', 'other'])

    def test_failures_are_repeated(self):
        """The last lines name the stages that failed, with the causes."""
        stages = [Fake('b', fails=True), Fake('other'), Fake('t', ('b',))]
        self.runner(*stages)
        self.assertEqual(runner.failures(stages), ['b: exit status 1', 't: not run: b failed'])

    def test_left(self):
        """What is left is what was expected of the rest, corrected by how fast the ended stages were, in two lanes."""
        stages = [Fake('a'), Fake('b'), Fake('new')]
        run = runner.Runner(stages, {'a': 100, 'b': 200})
        self.assertEqual(run.left(), (100 + 200 + runner.NEW_S) / 2)
        stages[0].state, stages[0].seconds = 'passed', 50
        self.assertEqual(run.left(), (200 + runner.NEW_S) / 2 / 2)

    def test_progress(self):
        """While a stage runs, a line says how long it has been running."""
        with tempfile.TemporaryFile('w+') as file, contextlib.redirect_stdout(file), mock.patch.object(runner, 'EVERY_S', 0.005):
            runner.Runner([Fake('slow')]).run()
            file.seek(0)
            self.assertRegex(file.read(), r'running  slow \(0m00s\); about \d+m\d\ds left')

    def test_times(self):
        """The slowest stage and the slowest test come first; what is written can be read."""
        with tempfile.TemporaryDirectory() as folder:
            stages = [Fake('quick'), Fake('tests')]
            for stage, seconds in zip(stages, (1, 90)):
                stage.seconds, stage.log, stage.result = seconds, f'{folder}/{stage.name}', check.judge('ok a\n', 0)
            stages[1].command = ['selftest', 'uml-vt']
            with open(stages[1].log, 'w', encoding='utf-8') as file:
                file.write('passed a: 1 passed, 0 failed (1.5 s)\nFAILED b_c: 1 passed, 1 failed (80.0 s)\n')
            lines = runner.table(stages)
            self.assertEqual([line.split(None, 1) for line in lines if line.startswith(' ')],
                             [['80.0s', 'uml-vt b_c'], ['1.5s', 'uml-vt a'],
                              ['1m30s', 'tests: 1 passed, 0 failed'], ['0m01s', 'quick: 1 passed, 0 failed']])
            runner.write_seconds(folder + '/seconds', stages)
            self.assertEqual(runner.read_seconds(folder + '/seconds'),
                             {'quick': 1, 'tests': 90, 'uml-vt a': 1.5, 'uml-vt b_c': 80})


if __name__ == '__main__':
    unittest.main()
