# SPDX-License-Identifier: GPL-2.0
"""Judges the output of a test (TAP) and its exit status: counts test points and finds causes of failures."""
import collections
import re

# A test point. state: 'passed', 'failed' or 'skipped'; why: of a failure or a skipped point, a line; notes: the lines
# that were printed with it, without their "# ".
Case = collections.namedtuple('Case', 'state name why notes')
POINT = re.compile(r'^\s*(ok|not ok)\b\s*(\d*)\s*(?:- )?(.*)$')
PLAN = re.compile(r'^\s*1\.\.(\d+)')
# Exit statuses of scripts/boot and of kselftests.
SKIP = 4
STATUS = {120: 'the kernel complained', 121: 'the guest ended without a status', 122: 'the emulator failed', 123: 'the guest stood still',
          124: 'timed out'}


class Result:
    """passed, failed, skipped: numbers of test points; causes: a line per failure."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.causes = []

    def fail(self, cause):
        """Adds a failure; cause: a line."""
        self.failed += 1
        self.causes.append(cause)

    def add(self, other):
        """Adds the counts and causes of another Result."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.causes += other.causes

    def __str__(self):
        text = f'{self.passed} passed, {self.failed} failed'
        return f'{text}, {self.skipped} skipped' if self.skipped else text


def cases(text):
    """Returns the Cases of the "ok" and "not ok" lines. Their notes are the comments above, and those right below that
    are indented."""
    found, notes, below = [], [], False
    for line in text.splitlines():
        line = line.rstrip('\r')
        match = POINT.match(line)
        if match:
            good, number, what = match.groups()
            name, *skip = re.split(r'#\s*SKIP\b', what, maxsplit=1, flags=re.I)
            state = 'skipped' if skip else 'passed' if good == 'ok' else 'failed'
            why = skip[0].strip() if skip else (what.strip() or line.strip()) if state == 'failed' else ''
            # A point has the same name whether it passes or not: scripts/lib/report.sh adds where the log is.
            name = (name if skip else what).strip() or number or line.strip()
            name = re.sub(r': see \S+$', '', name)
            found.append(Case(state, name, why, notes))
            notes = []
        elif line.startswith('#'):
            (found[-1].notes if below and line.startswith('#   ') else notes).append(line[1:].strip())
        below = bool(match) or below and line.startswith('#   ')
    return found


def cause(case):
    """Returns what a failed Case says, with the last of its notes, which has what was measured, as one line."""
    return ': '.join([case.why, *case.notes[-1:]])[:300]


def points(text):
    """Returns the Result of the "ok" and "not ok" lines alone."""
    result = Result()
    for case in cases(text):
        if case.state == 'skipped':
            result.skipped += 1
        elif case.state == 'passed':
            result.passed += 1
        else:
            result.fail(cause(case))
    return result


def complaint(text):
    """Returns the first line that console-check found in a kernel log, after ": "; '' if text has none."""
    match = re.search(r' suspicious lines\n\d+:(?:\[[ .\d]*\])?\s*(.*)', text)
    return ': ' + match.group(1) if match else ''


def ending(text):
    """Returns what a test says of an early end, after ": "; '' if text has no such line."""
    match = re.search(r'^(?:Bail out! |# ended after )(.*)', text, re.M)
    return ': ' + match.group(1) if match else ''


def splat(log, first):
    """Returns what a kernel log has after its line `first`: the next lines and the functions of the trace, as one line."""
    lines = [re.sub(r'^\[[ .\d]*\]\s*', '', line).strip() for line in log.splitlines()]
    # A splat at boot that scripts/boot leaves out may look the same.
    booted = next((nr for nr, line in enumerate(lines) if 'as init process' in line), 0)
    if first not in lines[booted:]:
        return ''
    after = [line for line in lines[lines.index(first, booted) + 1:][:80] if re.search(r'\w', line)]
    trace = [match.group(1) for match in (re.search(r'\]\s+(?:\? )?(\w[\w.]*)\+0x', line) for line in after) if match]
    says = [line for line in after if not re.search(r'\+0x|^[0-9a-f ]+$', line)]
    return ' | '.join(says[:6] + [' '.join(dict.fromkeys(trace))])[:900]


def judge(text, status):
    """Returns the Result of one test program that printed text and ended with status.

    Each fault besides its points (no plan, missing points, a bad exit status, a splat) is one more failure.
    """
    result = points(text)
    seen = result.passed + result.failed + result.skipped
    plan = next((int(match.group(1)) for match in map(PLAN.match, text.splitlines()) if match), None)
    skipped_whole = plan == 0 and status == SKIP
    if skipped_whole:
        result.skipped += 1
    elif status == SKIP and not result.failed and not result.passed and seen:
        pass
    elif status and not (status == 1 and result.failed):
        result.fail(STATUS.get(status, f'exit status {status}') + (complaint(text) if status == 120 else ending(text)))
    elif plan is None:
        result.fail('printed no plan')
    elif plan != seen:
        result.fail(f'{seen} points of {plan} planned')
    elif not seen:
        result.fail('tested nothing')
    elif status == 0 and result.failed:
        result.fail('exit status 0 in spite of failures')
    return result
