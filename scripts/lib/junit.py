# SPDX-License-Identifier: GPL-2.0
"""Writes the points of make check as JUnit XML, from which a CI shows single points: a testsuite for each stage and for
each test script, a testcase for each point.

What a stage printed says which points there are. Where a test script or a stage failed without a point of its own, such
as by a splat of the kernel, its cause is one more testcase. The numbers have to be those that make check counts.
"""
import contextlib
import os
import re
import xml.etree.ElementTree as ET

import tap
from tap import Case
from where import OUT

SUM = r'(\d+) passed, (\d+) failed(?:, (\d+) skipped)?'
TEST = re.compile(rf'(?:passed|FAILED) (\S+): {SUM} \((\d+\.?\d*) s\)')
# The characters that XML 1.0 has no place for, not even as numbers.
FORBIDDEN = re.compile('[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')
NOTES = 40      # lines of notes of a failure; the log has them all


class Suite:
    """The Cases of a test script, or of what a stage itself tests; seconds: how long it took, None if unknown."""

    def __init__(self, name, cases, seconds=None):
        self.name, self.cases, self.seconds = name, cases, seconds


def count(cases):
    """Returns the Result of Cases."""
    result = tap.Result()
    for case in cases:
        setattr(result, case.state, getattr(result, case.state) + 1)
    return result


def numbers(result):
    """Returns (passed, failed, skipped) of a tap.Result."""
    return result.passed, result.failed, result.skipped


def besides(cases, result, causes):
    """Returns the Cases that a Result has and CASES lack: failures with one of CAUSES that is not that of a case."""
    causes = [cause for cause in map(str.strip, causes) if cause]
    for case in cases:
        if case.state == 'failed' and tap.cause(case) in causes:
            causes.remove(tap.cause(case))
    more = result.failed - count(cases).failed
    if more < 1 or not causes:
        return []
    found = [Case('failed', 'besides its points', cause, []) for cause in causes[:more]]
    found[-1].notes.extend(causes[more:])
    return found


def test_suites(stage, text, tap_of):
    """Returns the Suites of the test scripts that a log of scripts/selftest names, and the causes of their failures.

    tap_of: a function that returns what the test of a name printed.
    """
    suites, known, lines = [], [], text.splitlines()
    for number, line in enumerate(lines):
        match = TEST.match(line)
        if not match:
            continue
        name, *counts, seconds = match.groups()
        result = tap.Result()
        result.passed, result.failed, result.skipped = (int(n or 0) for n in counts)
        own = f'  {name}: '
        end = next((i for i in range(number + 1, len(lines)) if not lines[i].startswith(own)), len(lines))
        causes = [line[len(own):] for line in lines[number + 1:end]]
        output = tap_of(name)
        cases = tap.cases(output)
        whole = re.search(r'^\s*1\.\.0\b(?:\s*# SKIP)?(.*)', output, re.M | re.I)
        if whole and not cases and result.skipped == 1:
            cases = [Case('skipped', 'the whole test', whole.group(1).strip(), [])]
        suites.append(Suite(f'{stage}.{name}', cases + besides(cases, result, causes), float(seconds)))
        known += [f'{name}: {cause}'.strip() for cause in causes]
    return suites, known


def stage_suites(stage, text, result, tap_of, seconds=None):
    """Returns the Suites of a stage whose log is TEXT, and of which make check counted the points in RESULT."""
    lines = text.splitlines() or ['']
    suites, known = test_suites(stage, text, tap_of) if re.fullmatch(SUM, lines[-1]) else ([], [])
    cases = [] if suites else tap.cases(text)
    others = [case for suite in suites for case in suite.cases]
    cases += besides(cases + others, result, [cause for cause in result.causes if cause not in known])
    return ([Suite(stage, cases, seconds)] if cases else []) + suites


def clean(text):
    """Returns a text with what XML cannot have replaced by its number, such as \\x1b."""
    return FORBIDDEN.sub(lambda match: f'\\x{ord(match.group()):02x}', text)


def xml(suites):
    """Returns the JUnit XML of Suites."""
    def element(parent, tag, **attributes):
        attributes = {key: clean(str(value)) for key, value in attributes.items() if value is not None}
        return ET.Element(tag, attributes) if parent is None else ET.SubElement(parent, tag, attributes)

    def counts(cases):
        result = count(cases)
        return {'tests': len(cases), 'failures': result.failed, 'skipped': result.skipped, 'errors': 0}

    top = element(None, 'testsuites', name='make check', **counts([case for suite in suites for case in suite.cases]))
    for suite in suites:
        group = element(top, 'testsuite', name=suite.name, time=suite.seconds, **counts(suite.cases))
        for case in suite.cases:
            # The time of a single point is known only where it is the only one.
            seconds = suite.seconds if len(suite.cases) == 1 else None
            point = element(group, 'testcase', classname=suite.name, name=case.name, time=seconds)
            if case.state == 'failed':
                element(point, 'failure', message=case.why).text = clean('\n'.join([case.why, *case.notes[:NOTES]]))
            elif case.state == 'skipped':
                element(point, 'skipped', message=case.why or None)
    ET.indent(top)
    return ET.tostring(top, encoding='unicode', xml_declaration=False)


def read(path):
    """Returns the text of a log; '' if it does not exist."""
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.read()


def forget(path, stages):
    """Removes what an earlier run has left: the file at PATH, and the logs of STAGES, which may not run this time."""
    for old in path, *(stage.log for stage in stages):
        with contextlib.suppress(FileNotFoundError):
            os.remove(old)


def write(path, stages, total, out=OUT):
    """Writes the points of STAGES of make check to PATH; OUT has the folder selftest/ with what test scripts printed.

    Returns a line for each stage with other points in the file than counted. Each is one more failure of TOTAL.
    """
    suites, faults = [], []
    for stage in stages:
        def tap_of(name, command=tuple(stage.command)):
            return ''.join(read(os.path.join(out, 'selftest', word, name + '.tap')) for word in command)
        mine = stage_suites(stage.name, read(stage.log), stage.result, tap_of, getattr(stage, 'seconds', None))
        got = count(case for suite in mine for case in suite.cases)
        if numbers(got) != numbers(stage.result):
            faults.append(f'junit: {stage.name}: {path} has {got}, but {stage.result} were counted: see {stage.log}')
        suites += mine
    for fault in faults:
        total.fail(fault)
    if faults:
        suites.append(Suite('junit', [Case('failed', 'all points are in this file', fault, []) for fault in faults]))
    text = xml(suites)
    written, counted = len(list(ET.fromstring(text).iter('testcase'))), total.passed + total.failed + total.skipped
    if not faults and written != counted:
        faults.append(f'junit: {path} has {written} testcases, but {counted} points were counted')
        total.fail(faults[-1])
    try:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n')
    except OSError as error:
        faults.append(f'junit: {error}')
        total.fail(faults[-1])
    return faults
