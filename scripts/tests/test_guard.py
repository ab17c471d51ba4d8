# SPDX-License-Identifier: GPL-2.0
"""What runs in a guest refuses on the host, and does nothing there."""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# nothing but functions and variables
LIBRARIES = ('guard.sh', 'cpus-lib.sh', 'writeback-lib.sh')
# what a script needs to find the guard; any other command would be reported as missing
COMMANDS = ('bash', 'dirname', 'python3')


def language(path):
    """'bash' or 'python3', by the first line or the suffix; '' for a module and for what is neither."""
    with open(path, encoding='utf-8') as file:
        first = file.readline()
    if first.startswith('#!'):
        return 'python3' if 'python3' in first else 'bash'
    return 'bash' if path.endswith('.sh') or first.startswith('# SPDX') and '.' not in os.path.basename(path) else ''


def programs():
    """(language, path) of all that acts in a guest."""
    paths = glob.glob(SCRIPTS + '/guest/*') + glob.glob(SCRIPTS + '/bench-parts/bench-*')
    paths.append(SCRIPTS + '/bench-parts/share-lib.sh')
    found = [(language(path), path) for path in sorted(paths)
             if os.path.isfile(path) and os.path.basename(path) not in LIBRARIES]
    return [(kind, path) for kind, path in found if kind]


class TestGuard(unittest.TestCase):
    """Each runs with the environment of a guest, and without the commands that could do harm on the host."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out, self.path = folder.name + '/out', folder.name + '/bin'
        os.mkdir(self.out)
        os.mkdir(self.path)
        for command in COMMANDS:
            self.provide(command)

    def provide(self, command):
        """Makes a command known to the programs."""
        path = shutil.which(command)
        assert path, f'{command} is not installed'
        os.symlink(path, f'{self.path}/{command}')

    def refuse(self, command, name, **environment):
        """The command must end with one sentence of the guard's, and write nothing."""
        environment |= {'PATH': self.path, 'GUEST_OUT': self.out, 'GUEST_DISK': self.out + '/disk',
                        'IOBAND_GUEST': 'uml-vt'}
        run = subprocess.run(command, cwd=self.out, stdin=subprocess.DEVNULL, capture_output=True, encoding='utf-8',
                             check=False, env=environment)
        message = f'error: {name} runs only in a guest that scripts/boot has started, and never on the host\n'
        self.assertEqual((run.returncode, run.stdout, run.stderr), (1, '', message))
        self.assertEqual(os.listdir(self.out), [])

    def test_all_are_found(self):
        """The list below has what it should have."""
        names = {os.path.basename(path) for _, path in programs()}
        self.assertLess({'guest-init', 'guest-systemd', 'demo-guest', 'demo-shares', 'power-cut-guest', 'power_cut.py',
                         'deb-guest.sh', 'bench-rates', 'bench-pages-v1', 'bench-lib.sh', 'share-lib.sh'}, names)

    def test_each_refuses(self):
        """Scripts, and libraries that act when they are sourced. Without ioband_guest guest-init would end anyway."""
        for kind, path in programs():
            name = os.path.basename(path)
            with self.subTest(name):
                # bench-pages-v1 is bench-pages
                self.refuse([kind, path, 'fsck'], name.removesuffix('-v1'))

    def test_environment_is_no_guest(self):
        """What scripts/boot gives the first process in its environment makes no other process one of a guest."""
        self.refuse(['bash', '-c', '. "$1"; : >"$GUEST_OUT/done"', 'somebody', SCRIPTS + '/guest/guard.sh'], 'somebody',
                    ioband_guest='1')

    def test_guest_halves_of_entry_points(self):
        """scripts/shell and scripts/vm go on in the guest when IOBAND_GUEST is set: not on the host."""
        for command in ('mkdir', 'realpath'):   # of lib.sh, for the folders of build products and results
            self.provide(command)
        for name in ('shell', 'vm'):
            with self.subTest(name):
                self.refuse(['bash', f'{SCRIPTS}/{name}'], name, IOBAND_BUILD=self.path, IOBAND_OUT=self.path)


if __name__ == '__main__':
    unittest.main()
