# SPDX-License-Identifier: GPL-2.0
"""Tests of once() in scripts/lib/lib.sh: what succeeded before is not run again, and nothing else is left out."""
import os
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class TestOnce(unittest.TestCase):
    """Each call of once() is in a shell of its own; a run of the command leaves a line in the file "runs"."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.write('input', 'one')

    def write(self, name, text):
        """Writes a file of the test."""
        with open(f'{self.folder}/{name}', 'w', encoding='utf-8') as file:
            file.write(text)

    def once(self, argument='a', succeeds=True, body='echo ran', **environment):
        """Calls once() for a function with this body that prints a line; returns (whether it ran, whether it succeeded)."""
        text = f'. {SCRIPTS}/lib/lib.sh; work() {{ {body} >>runs; echo printed; {str(succeeds).lower()}; }}; once input -- work {argument}'
        run = subprocess.run(['bash', '-c', text], cwd=self.folder, stdout=subprocess.PIPE, check=False, env=dict(
            {name: value for name, value in os.environ.items() if name != 'IOBAND_ONCE'},
            XDG_CACHE_HOME=self.folder + '/cache', IOBAND_BUILD=self.folder + '/build', IOBAND_OUT=self.folder + '/out',
            **environment))
        self.assertEqual(run.stdout, b'printed\n')
        ran = os.path.exists(self.folder + '/runs')
        if ran:
            os.remove(self.folder + '/runs')
        return ran, run.returncode == 0

    def test_again(self):
        """What has succeeded is not run again, in whatever folder the project is."""
        self.assertEqual(self.once(), (True, True))
        self.assertEqual(self.once(), (False, True))

    def test_failure(self):
        """What failed is run again, and fails again."""
        self.assertEqual(self.once(succeeds=False), (True, False))
        self.assertEqual(self.once(succeeds=False), (True, False))

    def test_changes(self):
        """It is run if a file, an argument or the function has changed, or if the environment demands it."""
        self.once()
        self.assertEqual(self.once(argument='b'), (True, True))
        self.assertEqual(self.once(body='echo  ran'), (False, True))
        self.assertEqual(self.once(body='printf "ran\\n"'), (True, True))
        self.assertEqual(self.once(IOBAND_ONCE='no'), (True, True))
        self.write('input', 'two')
        self.assertEqual(self.once(), (True, True))
        self.assertEqual(self.once(), (False, True))


if __name__ == '__main__':
    unittest.main()
