# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/lib/junit.py: each point that make check counts is one testcase, and the file is well-formed."""
import os
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + '/lib')
import junit
import tap

GOOD = 'TAP version 13\n1..2\nok 1 - a\n# got 3\nok 2 - b\n'
BAD = '1..2\n# got 3\nnot ok 1 - a rate\nok 2 - b # SKIP no disk\n'
LOG = '''passed x: 2 passed, 0 failed (1.5 s)
FAILED y: 0 passed, 2 failed, 1 skipped (20 s)
  y: a rate: got 3
  y: the kernel complained: WARNING: bad
  y: block/bio.c:7 is wrong
  see y.tap and y.log; again: make selftest T=y CONFIG=qemu
passed z: 0 passed, 0 failed, 1 skipped (0.1 s)
2 passed, 2 failed, 2 skipped
'''
# The causes that scripts/check finds in LOG.
CAUSES = 'y: a rate: got 3', 'y: the kernel complained: WARNING: bad', 'y: block/bio.c:7 is wrong'
TAPS = {'x': GOOD, 'y': BAD, 'z': '1..0 # SKIP no kernel\n'}


def result(passed, failed, skipped, *causes):
    """Returns a Result with these numbers and causes."""
    made = tap.Result()
    made.passed, made.failed, made.skipped, made.causes = passed, failed, skipped, list(causes)
    return made


def suites(text, counted):
    """Returns the Suites of a stage s with this log, in which TAPS are what test scripts printed."""
    return junit.stage_suites('s', text, counted, lambda name: TAPS.get(name, ''))


def states(found):
    """Returns {name of a Suite: [state and name of each point]}."""
    return {suite.name: [f'{case.state} {case.name}' for case in suite.cases] for suite in found}


class TestSuites(unittest.TestCase):
    """What a stage printed, as Suites."""

    def test_test_scripts(self):
        """Each test script is a suite with its time; a splat and a script that is skipped whole are testcases."""
        found = suites(LOG, result(2, 2, 2, *CAUSES))
        self.assertEqual(states(found), {'s.x': ['passed a', 'passed b'],
                                         's.y': ['failed a rate', 'skipped b', 'failed besides its points'],
                                         's.z': ['skipped the whole test']})
        self.assertEqual([suite.seconds for suite in found], [1.5, 20, 0.1])
        self.assertEqual(found[1].cases[0].notes, ['got 3'])
        self.assertEqual(found[1].cases[1].why, 'no disk')
        self.assertEqual((found[1].cases[2].why, found[1].cases[2].notes),
                         ('the kernel complained: WARNING: bad', ['block/bio.c:7 is wrong']))
        self.assertEqual(found[2].cases[0].why, 'no kernel')

    def test_points_of_a_stage(self):
        """A stage that prints its points is one suite; a point that fails has the name that it has when it passes."""
        text = ('ok types\nnot ok series: see out/series.log\n#   error: it differs\n# next\n'
                'ok spelling # SKIP no words\n')
        found = suites(text, tap.points(text))
        self.assertEqual(states(found), {'s': ['passed types', 'failed series', 'skipped spelling']})
        self.assertEqual(found[0].cases[1].notes, ['error: it differs'])

    def test_points_above_a_sum(self):
        """A sum in the last line does not hide points that are in the log itself."""
        self.assertEqual(states(suites('ok a\n1 passed, 0 failed\n', result(1, 0, 0))), {'s': ['passed a']})

    def test_stages_without_points(self):
        """A stage without points has no testcase if it passed, and one if it failed or did not run."""
        self.assertEqual(states(suites('built\n', result(0, 0, 0))), {})
        self.assertEqual(states(suites('', result(0, 1, 0, 'not run: build failed'))),
                         {'s': ['failed besides its points']})
        self.assertEqual(states(suites('ok a\nerror: x\n', result(1, 1, 0, 'error: x'))),
                         {'s': ['passed a', 'failed besides its points']})
        self.assertEqual(states(suites(LOG, result(2, 3, 2, *CAUSES, 'exit status 3')))['s'],
                         ['failed besides its points'])

    def test_nothing_is_made_up(self):
        """A number without a point or a cause adds no testcase."""
        self.assertEqual(suites('3 passed, 0 failed\n', result(3, 0, 0)), [])
        self.assertEqual(suites('0 passed, 1 failed\n', result(0, 1, 0)), [])


class TestXml(unittest.TestCase):
    """The text of the file."""

    def test_form(self):
        """Numbers, times, causes and reasons are where a CI looks for them."""
        top = ET.fromstring(junit.xml(suites(LOG, result(2, 2, 2))))
        self.assertEqual((top.tag, top.attrib), ('testsuites', {
            'name': 'make check', 'tests': '6', 'failures': '2', 'skipped': '2', 'errors': '0'}))
        x, y, z = top.findall('testsuite')
        self.assertEqual((x.get('name'), x.get('tests'), x.get('failures'), x.get('time')), ('s.x', '2', '0', '1.5'))
        self.assertEqual([point.attrib for point in x], [{'classname': 's.x', 'name': name} for name in 'ab'])
        failure = y.find('testcase/failure')
        assert failure is not None
        self.assertEqual((failure.get('message'), failure.text), ('a rate', 'a rate\ngot 3'))
        self.assertEqual([point.get('message') for point in y.iter('skipped')], ['no disk'])
        self.assertEqual(z[0].get('time'), '0.1')

    def test_any_character(self):
        """Whatever bytes a description has, the file can be parsed, and the description can be recognized."""
        others = 0x7f, 0x85, 0x2028, 0xd800, 0xdfff, 0xfffe, 0xffff, 0x1f600
        for number in (*range(0x20), *map(ord, '"<&'), *others):
            text = f'not ok 1 - from{chr(number)}to ]]> end\n'
            counted = tap.points(text)
            with self.subTest(number=number):
                made = junit.xml(suites(text, counted))
                points = list(ET.fromstring(made.encode()).iter('testcase'))
                self.assertEqual(len(points), counted.failed)
                self.assertTrue(str(points[0].get('name')).startswith('from'))
        self.assertEqual(junit.clean('a\x1b[1m\ud800b\tc'), 'a\\x1b[1m\\xd800b\tc')


class TestWrite(unittest.TestCase):
    """The file of a whole run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = folder.name
        self.path = self.top + '/junit.xml'
        os.makedirs(self.top + '/selftest/qemu')
        for name, text in TAPS.items():
            self.put(f'selftest/qemu/{name}.tap', text)

    def put(self, name, text):
        """Writes a file."""
        with open(os.path.join(self.top, name), 'w', encoding='utf-8') as file:
            file.write(text)

    def stage(self, name, text, counted):
        """Returns what has the attributes of a stage of scripts/check, with a log; None for TEXT: without one."""
        if text is not None:
            self.put(name + '.log', text)
        return types.SimpleNamespace(name=name, command=['selftest', '-j1', 'qemu'], log=f'{self.top}/{name}.log',
                                     result=counted)

    def write(self, *stages):
        """Writes the file of these stages; returns (lines that say what is wrong, total, names of testcases)."""
        total = tap.Result()
        for stage in stages:
            total.add(stage.result)
        faults = junit.write(self.path, stages, total, self.top)
        return faults, str(total), [point.get('name') for point in ET.parse(self.path).getroot().iter('testcase')]

    def test_all_points(self):
        """There are as many testcases as points in the sum."""
        faults, total, names = self.write(
            self.stage('selftest', LOG, result(2, 2, 2, *CAUSES)), self.stage('static', 'ok types\n', result(1, 0, 0)),
            self.stage('lab', None, result(0, 1, 0, 'not run: build failed')))
        self.assertEqual((faults, total, len(names)), ([], '3 passed, 3 failed, 2 skipped', 8))

    def test_points_that_differ(self):
        """A stage that counts other points than its logs have is a failure that names both numbers."""
        for counted in result(3, 2, 2, *CAUSES), result(2, 1, 2, *CAUSES), result(2, 2, 1, *CAUSES):
            with self.subTest(counted=str(counted)):
                faults, total, names = self.write(self.stage('selftest', LOG, counted),
                                                  self.stage('static', 'ok types\n', result(1, 0, 0)))
                self.assertEqual(len(faults), 1)
                self.assertRegex(faults[0], rf'^junit: selftest: .* has 2 passed, 2 failed, 2 skipped, but {counted} ')
                self.assertIn(f'{counted.failed + 1} failed', total)
                self.assertEqual(names[-1], 'all points are in this file')

    def test_lost_output(self):
        """What a test printed cannot be lost without a failure."""
        os.remove(self.top + '/selftest/qemu/x.tap')
        faults, _, _ = self.write(self.stage('selftest', LOG, result(2, 2, 2, *CAUSES)))
        self.assertEqual(len(faults), 1)

    def test_total_that_differs(self):
        """A stage that is missing in the sum is a failure."""
        total = tap.Result()
        faults = junit.write(self.path, [self.stage('static', 'ok types\n', result(1, 0, 0))], total, self.top)
        self.assertIn('has 1 testcases, but 0 points were counted', faults[0])
        self.assertEqual(total.failed, 1)

    def test_no_room(self):
        """A file that cannot be written is a failure."""
        self.path = self.top + '/none/junit.xml'
        total = result(1, 0, 0)
        self.assertIn('No such file', junit.write(self.path, [self.stage('a', 'ok a\n', total)], total, self.top)[0])
        self.assertEqual(str(total), '1 passed, 1 failed')

    def test_forget(self):
        """The logs and the file of an earlier run are gone, those of other stages stay."""
        stages = [self.stage('static', 'ok old\n', None), self.stage('lab', None, None)]
        self.put('other.log', 'ok\n')
        self.put('junit.xml', 'old')
        junit.forget(self.path, stages)
        self.assertEqual(sorted(os.listdir(self.top)), ['other.log', 'selftest'])


if __name__ == '__main__':
    unittest.main()
