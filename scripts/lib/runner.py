# SPDX-License-Identifier: GPL-2.0
"""Runs the stages of scripts/check in lanes, says once a minute what runs and how long the rest may take, and lists how
long each stage and the slowest tests took.

A stage has a name, a command (list of words), needs (names of stages that must pass before), build (it compiles a kernel), log (the path of its
output), state ('waiting', 'running', 'passed' or 'failed'), seconds (how long it ran), run() and, when it has ended, a
result (tap.Result).
"""
import re
import threading
import time

import tap

LANES = 2
SHOWN = 12      # failures printed per stage; the log has them all
EVERY_S = 60    # seconds between two lines of progress
SLOWEST = 10    # tests listed at the end
NEW_S = 60      # seconds that a stage which has never been measured is taken to need
TEST = re.compile(r'(?:passed|FAILED) (\w+): .*\((\d+(?:\.\d+)?) s\)')


def minsec(seconds):
    """Returns a time such as 3m07s."""
    return f'{int(seconds) // 60}m{int(seconds) % 60:02}s'


class Runner:
    """Runs stages in LANES threads, in their order as far as their needs allow.

    expected: {name of a stage or test: seconds that it took when it was measured last}.
    """

    def __init__(self, stages, expected=None):
        self.stages = {stage.name: stage for stage in stages}
        self.expected = expected or {}
        self.lock = threading.Condition()
        self.ended = threading.Event()
        self.begin = time.monotonic()

    def say(self, text):
        """Prints a line with the time since the beginning."""
        seconds = int(time.monotonic() - self.begin)
        print(f'[{seconds // 60:2}m{seconds % 60:02}s] {text}', flush=True)

    def next(self):
        """Waits for a stage that can run, and returns it; None if none is left. Stages whose needs failed fail."""
        while True:
            waiting = [stage for stage in self.stages.values() if stage.state == 'waiting']
            building = any(stage.build and stage.state == 'running' for stage in self.stages.values())
            for stage in waiting:
                needs = [self.stages[name].state for name in stage.needs if name in self.stages]
                # Stages need only stages that make something, so a test that fails does not stop others.
                if 'failed' in needs:
                    stage.state = 'failed'
                    stage.result = tap.Result()
                    stage.result.fail('not run: ' + ', '.join(n for n in stage.needs if self.stages[n].state == 'failed') + ' failed')
                    self.say(f'NOT RUN  {stage.name}')
                    break
                if all(state == 'passed' for state in needs) and not (stage.build and building):
                    stage.state, stage.begin = 'running', time.monotonic()
                    return stage
            else:
                if not waiting:
                    return None
                self.lock.wait()

    def lane(self):
        """Runs stages, one after the other, until none is left."""
        while True:
            with self.lock:
                stage = self.next()
                if stage is None:
                    self.lock.notify_all()
                    return
                self.say(f'start    {stage.name}')
            try:
                stage.run()
            except OSError as error:
                stage.result = tap.Result()
                stage.result.fail(str(error))
                stage.state = 'failed'
            with self.lock:
                stage.seconds = time.monotonic() - stage.begin
                self.say(f'{stage.state:8} {stage.name}: {stage.result} ({minsec(stage.seconds)})')
                for cause in stage.result.causes[:SHOWN]:
                    print(f'         - {cause}')
                if stage.result.failed:
                    more = len(stage.result.causes) - SHOWN
                    print(f'         {f"and {more} more, " if more > 0 else ""}see {stage.log}', flush=True)
                self.lock.notify_all()

    def left(self):
        """Returns the seconds that the stages which have not ended may take together.

        What is expected of them is corrected by what the ended ones took, against what was expected of those: another
        machine is slower, and with a compiler cache a build takes a moment.
        """
        def expect(stage):
            return self.expected.get(stage.name, NEW_S)
        now, ended = time.monotonic(), [stage for stage in self.stages.values() if stage.state in ('passed', 'failed')]
        speed = sum(stage.seconds for stage in ended) / max(sum(map(expect, ended)), 1) if ended else 1
        rest = sum(speed * expect(stage) for stage in self.stages.values() if stage.state == 'waiting')
        rest += sum(max(speed * expect(stage) - (now - stage.begin), 0) for stage in self.stages.values() if stage.state == 'running')
        return rest / LANES

    def tell(self):
        """Prints a line of progress each EVERY_S, until all stages have ended."""
        while not self.ended.wait(EVERY_S):
            with self.lock:
                now = time.monotonic()
                runs = ', '.join(f'{stage.name} ({minsec(now - stage.begin)})' for stage in self.stages.values() if stage.state == 'running')
                self.say(f'running  {runs}; about {minsec(self.left())} left')

    def run(self):
        """Runs all stages; returns the sum of their Results."""
        teller = threading.Thread(target=self.tell)
        threads = [threading.Thread(target=self.lane) for _ in range(LANES)]
        for thread in [teller] + threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.ended.set()
        teller.join()
        total = tap.Result()
        for stage in self.stages.values():
            total.add(stage.result)
        return total


def failures(stages):
    """Returns lines for the end of the output: the first causes of each stage that failed, with its name."""
    return [f'{stage.name}: {cause}' for stage in stages if stage.result.failed
            for cause in stage.result.causes[:SHOWN] or ['no cause was printed']]


def tests(stages):
    """Returns {"KERNEL TEST": seconds} of the selftests in the logs of stages; the last word of their commands is KERNEL."""
    found = {}
    for stage in stages:
        try:
            with open(stage.log, encoding='utf-8', errors='replace') as log:
                matches = [match for match in map(TEST.match, log) if match]
        except FileNotFoundError:
            continue
        found.update({f'{stage.command[-1]} {match.group(1)}': float(match.group(2)) for match in matches})
    return found


def table(stages):
    """Returns lines: the slowest tests, then each stage with its time and points, the slowest first.

    Whoever sees only the end of a long output sees what took the time.
    """
    slow = sorted((stage for stage in stages if stage.seconds), key=lambda stage: -stage.seconds)
    lines = ['time of each stage:'] + [f'{minsec(stage.seconds):>8}  {stage.name}: {stage.result}' for stage in slow]
    slowest = sorted(tests(stages).items(), key=lambda item: -item[1])[:SLOWEST]
    return ([f'the slowest of {len(tests(stages))} tests:'] if slowest else []) + \
        [f'{seconds:7.1f}s  {name}' for name, seconds in slowest] + lines


def read_seconds(path):
    """Returns {name: seconds} of a file with lines "SECONDS NAME"; # begins a comment."""
    with open(path, encoding='utf-8') as file:
        rows = [line.split(None, 1) for line in file if line.strip() and not line.startswith('#')]
    return {name.strip(): float(seconds) for seconds, name in rows}


def write_seconds(path, stages):
    """Writes such a file: stages, then tests, each in the order of names."""
    rows = {stage.name: stage.seconds for stage in stages if stage.seconds}
    with open(path, 'w', encoding='utf-8') as file:
        for name, seconds in sorted(rows.items()) + sorted(tests(stages).items()):
            file.write(f'{seconds:.1f} {name}\n')
