# SPDX-License-Identifier: GPL-2.0
"""scripts/lib/lab_page.py on output of the lab."""
import os
import sys
import unittest

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, SCRIPTS + '/lib')
import lab_page     # noqa: E402

OUTPUT = """TAP version 13
1..2
# slow: a: device
#   none        400: A 50.0% p99 30 us  B 50.0% p99 31 us  0.0000 moves per I/O
#   ioband      399: A 25.0% p99 40 us  B 75.0% p99 20 us  2.2155 moves per I/O
#   none        500: A 100.0% p99 9 us  0.0000 moves per I/O
#   ioband      480: A 100.0% p99 8 us  1.0000 moves per I/O
#   not right: 480 of 500 I/Os a second
not ok 1 - slow
# fast: another
#   none       4000: A 100.0% p99 1 us  0.0000 moves per I/O
#   ioband     4000: A 100.0% p99 1 us  0.0000 moves per I/O
ok 2 - fast
# 1 of 2 scenarios are right, the worst of 20 seeds each
"""


class TestLabPage(unittest.TestCase):
    """Rows of the table."""

    def test_rows(self):
        """Each measurement has a row, in the order that is asked for; the name stands in the first one."""
        self.assertEqual(lab_page.table(OUTPUT, ('fast',)), lab_page.HEAD +
                         '| fast | another | 4000 | 4000 | A 100.0% (1) |\n'
                         '| slow | a: device | 400 | 399 | A 25.0% (40); B 75.0% (20) |\n'
                         '|  |  | 500 | 480 | A 100.0% (8) |\n')


if __name__ == '__main__':
    unittest.main()
