#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes random lines to blkio control files and checks the result of each write.

Values are valid, nearly valid or garbage, and the expected result of each is known: a write that should be refused and
is not (or the other way round) counts as wrong. Files are read at times: they must show what was set, and a refused
write must have changed nothing. Prints one line of counts; exits with 1 if anything was wrong.
"""
import argparse
import errno
import os
import sys

import stress_fuzz_lines as lines


class Model:
    """What the files of one group should show: limits per key of io.max, None for no limit."""

    def __init__(self):
        self.limits = dict.fromkeys(lines.V2_KEYS)

    def v2_line(self, dev):
        """Returns the line of io.max, or '' without limits."""
        if not any(self.limits.values()):
            return ''
        return dev + ''.join(f' {key}={self.limits[key] or "max"}' for key in lines.V2_KEYS)


class Fuzz:
    """One run over the groups of one hierarchy."""

    def __init__(self, args):
        self.args = args
        self.rng = lines.Rng(args.seed)
        self.v1 = os.path.exists(f'{args.groups[0]}/blkio.throttle.read_bps_device')
        self.models = {(group, dev): Model() for group in args.groups for dev in args.dev}
        names = [name for name in sorted(os.listdir(args.groups[0])) if name.startswith(('blkio.', 'io.'))]
        self.names = [name for name in names if os.stat(f'{args.groups[0]}/{name}').st_mode & 0o200 and
                      (not args.only_limits or name in lines.V1_LIMITS + ['io.max', 'blkio.reset_stats'])]
        self.open = {}      # path -> descriptor
        self.wrong = self.done = self.refused = 0

    def complain(self, text):
        """Counts a mistake, shows the first ones."""
        self.wrong += 1
        if self.wrong <= 10:
            print(text)

    def write(self, path, text):
        """Writes text; returns the errno of the write, 0 if it was accepted."""
        self.done += 1
        try:
            if path not in self.open:
                self.open[path] = os.open(path, os.O_WRONLY)
            os.pwrite(self.open[path], text.encode(), 0)
            return 0
        except OSError as error:
            self.refused += 1
            return error.errno

    def judge(self, path, text, got, want):
        """Compares the errno of a write; want: errno, 0, or None for any error."""
        if (want is None and got) or got == want:
            return True
        self.complain(f'{os.path.basename(path)} <- {text[:80]!r}: got {errno.errorcode.get(got, got)}, '
                      f'want {errno.errorcode.get(want, want)}')
        return False

    def garbage(self, group):
        """Writes garbage to any writable blkio file of the group, which must not crash or set a limit."""
        text = self.rng.choice(lines.GARBAGE)
        if self.rng.random() < 0.5:
            text = ''.join(chr(self.rng.randrange(1, 128)) for _ in range(self.rng.randrange(60)))
        name = self.rng.choice(self.names)
        got = self.write(f'{group}/{name}', text)
        if text and name in lines.V1_LIMITS + ['io.max']:
            self.judge(name, text, got, None)

    def limit(self, group):
        """Writes one line to a file of limits."""
        rng = self.rng
        dev_text, dev, dev_errno = lines.device(rng, self.args.dev, self.args.partition)
        if self.v1:
            key = rng.randrange(4)
            path = f'{group}/{lines.V1_LIMITS[key]}'
            body, want, value = lines.v1_body(rng)
            # in the order of the files: rbps riops wbps wiops
            values = {} if want else {['rbps', 'riops', 'wbps', 'wiops'][key]: value or None}
        else:
            path = f'{group}/io.max'
            body, want, values = lines.v2_body(rng)
        text = f'{dev_text} {body}'
        got = self.write(path, text)
        if dev_errno is None or (dev_errno and want):
            want = None     # two reasons to refuse: either will do
        elif dev_errno:
            want = dev_errno
        if self.judge(path, text, got, want) and not got:
            self.models[group, dev].limits.update({key: lines.limit(key, value) for key, value in values.items()})

    def check_state(self, group):
        """Compares the files with the model."""
        if self.v1:
            for key, name in zip(('rbps', 'riops', 'wbps', 'wiops'), lines.V1_LIMITS):
                want = {f'{dev} {self.models[group, dev].limits[key]}' for dev in self.args.dev if self.models[group, dev].limits[key]}
                self.compare(f'{group}/{name}', want)
            for name in ('io_service_bytes', 'io_serviced', 'io_service_bytes_recursive', 'io_serviced_recursive'):
                with open(f'{group}/blkio.throttle.{name}', encoding='ascii') as file:
                    if not file.read().splitlines()[-1].startswith('Total '):
                        self.complain(f'{name}: no total')
        else:
            want = {self.models[group, dev].v2_line(dev) for dev in self.args.dev} - {''}
            self.compare(f'{group}/io.max', want)

    def compare(self, path, want):
        """Compares the lines of a file with those wanted."""
        with open(path, encoding='ascii') as file:
            got = set(file.read().splitlines())
        if got != want:
            self.complain(f'{path}: reads {sorted(got)}, should be {sorted(want)}')

    def run(self):
        """Makes all writes; returns the exit status."""
        while self.done < self.args.count:
            group = self.rng.choice(self.args.groups)
            kind = self.rng.random()
            if kind < 0.8:
                self.limit(group)
            elif kind < 0.97:
                self.garbage(group)
            elif self.v1:
                self.write(f'{group}/blkio.reset_stats', self.rng.choice(['1', '0', '', 'x', '\n']))
            if self.done % 50 == 0:
                self.check_state(group)
        for group in self.args.groups:
            self.check_state(group)
        print(f'writes={self.done} refused={self.refused} wrong={self.wrong} seed={self.args.seed}')
        return 1 if self.wrong else 0


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--count', type=int, default=100000, help='writes')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--dev', action='append', required=True, metavar='M:m', help='a disk; may be repeated')
    parser.add_argument('--partition', metavar='M:m', help='a partition, which cannot have limits')
    parser.add_argument('--only-limits', action='store_true', help='leave weights, latency and cost files alone')
    parser.add_argument('groups', nargs='+', metavar='GROUP', help='directory of a group')
    return Fuzz(parser.parse_args()).run()


if __name__ == '__main__':
    sys.exit(main())
