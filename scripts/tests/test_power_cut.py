# SPDX-License-Identifier: GPL-2.0
"""scripts/guest/power_cut.py: what a file may be after a power cut, and what it may not."""
import contextlib
import io
import os
import random
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/guest")
import power_cut as cut

ROUND = 7


def step(seq, kind, at=0, length=cut.SECTOR):
    """Returns a step on the own file of writer a."""
    made = cut.Step(random.Random(0), seq, 0)
    made.kind, made.file, made.at, made.length = kind, cut.OWN, at, length
    return made


class PowerCut(unittest.TestCase):
    """A file that is written, synced, written again and gets a hole, without another sync."""

    def setUp(self):
        self.model = cut.Model()
        for taken in (step(1, 'write'), step(2, 'write'), step(3, 'fsync'), step(4, 'write'), step(5, 'punch')):
            self.model.step(taken)
            self.model.durable(taken)

    def verdict(self, content):
        """Returns the numbers (lost, wrong) of sectors for a file with this content (bytes)."""
        verdict = cut.Verdict('a', ROUND, self.model)
        with tempfile.TemporaryDirectory() as path:
            for name, data in (('a', content), ('shared', b'')):
                with open(f'{path}/{name}', 'wb') as file:
                    file.write(data)
            with contextlib.redirect_stdout(io.StringIO()):
                verdict.run(path)
        return verdict.lost, verdict.wrong

    def test_what_may_be(self):
        """The file may have the synced data, or any later state."""
        for data in (cut.stamp('a', ROUND, cut.OWN, 0, 2), cut.stamp('a', ROUND, cut.OWN, 0, 4), bytes(cut.SECTOR)):
            self.assertEqual(self.verdict(data), (0, 0))

    def test_older(self):
        """Data from before the last synced write counts as lost."""
        self.assertEqual(self.verdict(cut.stamp('a', ROUND, cut.OWN, 0, 1)), (1, 0))

    def test_foreign(self):
        """Data of another round, data of another place, and a changed byte are wrong."""
        for data in (cut.stamp('a', 6, cut.OWN, 0, 2), cut.stamp('a', ROUND, cut.OWN, 512, 2),
                     cut.stamp('a', ROUND, cut.OWN, 0, 2)[:-1] + b'x'):
            self.assertEqual(self.verdict(data), (0, 1))

    def test_zero(self):
        """A synced sector that is zero, without a hole, is lost."""
        self.model = cut.Model()
        for taken in (step(1, 'write'), step(2, 'fsync')):
            self.model.step(taken)
            self.model.durable(taken)
        self.assertEqual(self.verdict(bytes(cut.SECTOR)), (1, 0))

    def test_size(self):
        """A synced file that is too short is lost and of a wrong size."""
        self.model = cut.Model()
        for taken in (step(1, 'write'), step(2, 'fsync')):
            self.model.step(taken)
            self.model.durable(taken)
        self.assertEqual(self.verdict(b''), (1, 1))


if __name__ == '__main__':
    unittest.main()
