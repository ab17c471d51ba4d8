# SPDX-License-Identifier: GPL-2.0
"""Each script, called wrongly, says so before it fetches, builds or tests anything; and none passes without a test.

The scripts run in a copy of this repository that has no kernel, and with programs that fetch, build and boot replaced
by one that fails and notes that it was called.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import test_guard

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(SCRIPTS)
# Programs that fetch, build or boot, or take long. A script that reaches one of them has begun to work.
STUBS = '''make gcc cc clang-19 ccache apt-get curl wget mmdebstrap sudo chroot dpkg dpkg-deb dpkg-query
    qemu-system-x86_64 apt-cache mkfs.ext4 patch tar xz shellcheck pyflakes3 mypy spatch sphinx-build
    codespell'''.split()
# git may read; python3 must not run the unit tests, which would come here again
PASSED_ON = {'git': 'am|clone|worktree|checkout|init|commit|update-ref|fetch|pull|archive', 'python3': '-m'}
# a name that nothing has, and a path that nobody can make
WRONG = '/dev/null/no-such-name'
HELP_S = 0.5        # seconds of CPU time that --help may take
PATIENCE_S = 60     # seconds of real time: after that a script hangs
# What is wrong in another place than the first argument, or only because there is no kernel: (command, error)
PLACES = [line.split(': ', 1) for line in '''apply /etc/hostname: there cannot be a directory /etc/hostname
apply .: . is neither empty nor a kernel tree
apply new more: one argument too many: 'more'
bench rates typo: no such part: 'typo'
bench --plain typo: no such part: 'typo'
bench --as-built --typo: unknown option --typo
blktests --off typo: no checkout of blktests: 'typo'
blktests --limited: an argument is missing
blktests --weighted --limited: unknown option --limited
boot uml-vt --typo true: unknown option --typo
boot uml-vt --arg: nothing follows --arg
boot uml-vt: no command to run in the guest
boot uml-vt true: no kernel
boot uml-tools-typo true: no such kernel: 'uml-tools-typo'
build uml-vt more: one argument too many: 'more'
build uml-tools-typo: no such configuration: 'uml-tools-typo'
check static typo: no such stage: 'typo'
check-longterm 6.12 more: one argument too many: 'more'
check-series limits typo: no test typo
deb qemu more: one argument too many: 'more'
deb typo: typo is neither a file nor a configuration
debian-root trixie more: one argument too many: 'more'
deps build typo: no such group: typo
kunit --typo: unknown option --typo
kunit uml-vt --arg x=1: no kernel
lab link typo: no such scenario: 'typo'
lab link: there is no patched kernel tree
lab --seeds 20 link: there is no patched kernel tree
lab --seeds 0: --seeds: at least one is needed
lab --table typo: no such table: 'typo'
lab --table: an argument is missing
lab --table cpus: there is no patched kernel tree
mutants --check typo: no such fault: 'typo'
mutants -j 0: argument -j/--jobs: '0' is not a number above 0
new-test limit_one more: one argument too many: 'more'
power-cut uml-debug 0: '0' is not a number of power cuts
power-cut uml-debug typo: 'typo' is not a number of power cuts
power-cut uml-debug 1 more: one argument too many: 'more'
selftest uml-vt typo: no test .*/typo.sh
selftest typo limit_window: no such kernel: 'typo'
selftest qemu-tools: no test names qemu-tools in its header
selftest uml-vt --part 3/2: argument --part: invalid
selftest uml-vt --root typo: argument --root: there is no folder typo
series from-tree typo: typo has no commits base..HEAD
series take-back 6.12 typo: typo has no commits base..HEAD
series for typo folder: argument base: invalid choice: 'typo'
shell uml-base more: one argument too many: 'more'
static scripts typo: no such part: 'typo'
static checkpatch: there is no patched kernel tree
static-build x86 typo: no such part: 'typo'
torture attack typo: no such part: 'typo'
'''.strip().splitlines()]


def programs(top):
    """Returns the paths below top of all executables in scripts/ and its folders.

    Left out are tests, what runs in a guest (test_guard.py), and the parts of scripts/bench and scripts/demo, which
    these give the folder with the results.
    """
    guest = {os.path.relpath(path, TOP) for _, path in test_guard.programs()}
    found = []
    for folder, folders, names in os.walk(os.path.join(top, 'scripts')):
        folders[:] = [name for name in folders if name not in ('bench-parts', 'demo-parts', 'tests')]
        found += [os.path.join(folder, name) for name in names]
    return sorted({os.path.relpath(path, top) for path in found if os.access(path, os.X_OK)} - guest)


class Run:
    """What a command printed, its exit status, its seconds of CPU time, and the stubs that it reached."""

    def __init__(self, world, command):
        self.command = command
        with tempfile.TemporaryDirectory(dir=world) as folder, open(folder + '/out', 'w+', encoding='utf-8') as out:
            environment = {'PATH': f'{world}/bin:{os.environ["PATH"]}', 'HOME': world, 'LANG': 'C.UTF-8',
                           'TMPDIR': folder, 'IOBAND_BUILD': folder + '/build', 'IOBAND_OUT': folder + '/result',
                           'REACHED': folder + '/reached'}
            with subprocess.Popen(command, cwd=world + '/top', env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT) as process:
                end = time.monotonic() + PATIENCE_S
                # wait4() has the CPU time of this process and of its children
                while True:
                    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                    if pid:
                        break
                    if time.monotonic() > end:
                        process.kill()
                    time.sleep(0.005)
                process.returncode = self.status = os.waitstatus_to_exitcode(status)
            self.seconds = usage.ru_utime + usage.ru_stime
            out.seek(0)
            self.text = out.read()
            self.reached = ''
            if os.path.exists(folder + '/reached'):
                with open(folder + '/reached', encoding='utf-8') as file:
                    self.reached = file.read()
            self.made = [name for _, _, names in os.walk(folder + '/build') for name in names]

    def __str__(self):
        return f'{" ".join(self.command)}: status {self.status}, {self.seconds:.2f} s\n{self.text}{self.reached}'


class TestUsage(unittest.TestCase):
    """All scripts, several at once."""

    world: str

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.world = os.path.realpath(folder.name)
        files = subprocess.run(['git', 'ls-files', '-zco', '--exclude-standard'], cwd=TOP, check=True,
                               capture_output=True)
        for name in os.fsdecode(files.stdout).split('\0')[:-1]:
            to = os.path.join(cls.world, 'top', name)
            if os.path.exists(os.path.join(TOP, name)):
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy2(os.path.join(TOP, name), to)
        os.mkdir(cls.world + '/bin')
        for name in STUBS:
            cls.stub(name, 'echo "reached: $0 $*" >>"$REACHED"; exit 1')
        for name, words in PASSED_ON.items():
            program = sys.executable if name == 'python3' else shutil.which(name)
            cls.stub(name, f'for word; do case $word in {words}) echo "reached: $0 $*" >>"$REACHED"; exit 1 ;;\n'
                           f'esac; done; exec {program} "$@"')

    @classmethod
    def stub(cls, name, text):
        """Makes a program that replaces the one of this name."""
        with open(f'{cls.world}/bin/{name}', 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\n{text}\n')
        os.chmod(f'{cls.world}/bin/{name}', 0o755)

    def all(self, *arguments):
        """Returns a Run of each script with these arguments."""
        return self.run_all([[path, *arguments] for path in programs(self.world + '/top')])

    def run_all(self, commands):
        """Returns a Run of each command."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda command: Run(self.world, command), commands))

    def assert_refused(self, run):
        """The script has said what is wrong, and begun nothing."""
        self.assertGreater(run.status, 0, run)
        self.assertRegex(run.text, '(?m)^error: ', run)
        self.assertNotIn('Traceback', run.text)
        self.assertNotRegex(run.text, r'(?m)^ok|\d passed', run)
        self.assertEqual((run.reached, run.made), ('', []), run)

    def test_all_are_found(self):
        """The list has commands and what they run, and nothing that belongs into a guest."""
        found = programs(TOP)
        self.assertLess({'scripts/apply', 'scripts/vm-check', 'scripts/lib/console-check'}, set(found))
        self.assertNotIn('scripts/guest/guest-init', found)

    def test_help(self):
        """--help prints a text, and takes half a second of CPU time at most."""
        for run in self.all('--help'):
            with self.subTest(run.command):
                tries = [run] + [Run(self.world, run.command) for _ in range(2) if run.seconds > HELP_S]
                self.assertLessEqual(min(one.seconds for one in tries), HELP_S, run)
                self.assertEqual((run.status, run.reached, run.made), (0, '', []), run)
                self.assertIn(os.path.basename(run.command[0]), run.text)

    def test_wrong_name(self):
        """A name that does not exist is an error, or a file that cannot be read or made."""
        for run in self.all(WRONG):
            with self.subTest(run.command):
                self.assert_refused(run)

    def test_unknown_option(self):
        """An option that the script does not have is an error."""
        for run in self.all('--no-such-option'):
            with self.subTest(run.command):
                self.assert_refused(run)

    def test_wrong_place(self):
        """So is a wrong name behind right ones, and an argument too many; the error is about that word."""
        runs = self.run_all([('scripts/' + command).split() for command, _ in PLACES])
        for run, (_, error) in zip(runs, PLACES):
            with self.subTest(run.command):
                self.assert_refused(run)
                self.assertRegex(run.text, f'(?m)^error: {error}')

    def test_base(self):
        """BASE names a kernel that there is a series for."""
        for name in 'apply', 'selftest':
            self.assert_refused(Run(self.world, ['env', 'BASE=typo', f'scripts/{name}', 'uml-vt']))

    def test_patches_stay(self):
        """Commands that write patches/ have not touched it when the tree that they take them from is wrong."""
        before = sorted(os.listdir(self.world + '/top/patches'))
        commands = ['scripts/series from-tree /dev/null', 'scripts/series take-back 6.12 /dev/null']
        for run in self.run_all([command.split() for command in commands]):
            with self.subTest(run.command):
                self.assert_refused(run)
        self.assertEqual(sorted(os.listdir(self.world + '/top/patches')), before)

    def test_no_arguments(self):
        """Without a kernel, and without programs that fetch or build one, no script passes: it ends with an error.

        Only a script that needs neither may succeed, and says how much it has done.
        """
        for run in self.all():
            with self.subTest(run.command):
                if run.status:
                    self.assertRegex(run.text, r'(?m)^(\S+: )?error: |^not ok ', run)
                    self.assertNotIn('Traceback', run.text)
                else:
                    self.assertRegex(run.text, r'\b[1-9]\d* ', run)
                    self.assertEqual((run.reached, run.made), ('', []), run)


if __name__ == '__main__':
    unittest.main()
