# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/lib/mutate.py: faults are put where the table says, and faults that do not fit are reported."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + '/lib')
import mutate

TABLE = '''# a comment
one dir/a.c kunit limit_burst
\tThe first is wrong.
-a = 1;
+a = MUTANT ? 2 : 1;

two dir/a.c trace
\tTwo lines are.
-b();
-c();
+if (!MUTANT)
+	b();
+c();
'''
TEXT = '// a file\na = 1;\nb();\nc();\n'


def faults(table=TABLE):
    """Returns the faults of a table, numbered."""
    result = mutate.parse(table.splitlines(), 'table')
    for number, fault in enumerate(result, 1):
        fault.number = number
    return result


class TestMutate(unittest.TestCase):
    """The table of faults, and their places in sources."""

    def test_parse(self):
        """All parts of a fault are read."""
        one, two = faults()
        self.assertEqual((one.name, one.path, one.tests, one.what), ('one', 'dir/a.c', ['kunit', 'limit_burst'], 'The first is wrong.'))
        self.assertEqual(two.old, ['b();', 'c();'])

    def test_incomplete(self):
        """A fault without a sentence, a place, a condition or a test is an error."""
        for table in ('x f t\n-a\n+MUTANT\n', 'x f t\n\twhat\n+MUTANT\n', 'x f t\n\twhat\n-a\n+b\n', 'x f\n\twhat\n-a\n+MUTANT\n', '-a\n'):
            with self.assertRaises(ValueError):
                faults(table)

    def test_places(self):
        """Each fault is at its place, with its own number; the numbers of lines before it do not change."""
        text, wrong = mutate.mutated(TEXT, faults())
        self.assertEqual(wrong, [])
        self.assertEqual(text, 'extern int ioband_mutant; // a file\na = (ioband_mutant == 1) ? 2 : 1;\n'
                               'if (!(ioband_mutant == 2))\n\tb();\nc();\n')

    def test_wrong_places(self):
        """All faults whose place does not occur exactly once, or overlaps another one, are reported at once."""
        self.assertEqual(len(mutate.mutated('x\nb();\nc();\nb();\nc();\n', faults())[1]), 2)
        table = TABLE + 'three dir/a.c trace\n\tIt is beside that.\n-c();\n+if (MUTANT) c();\n'
        self.assertEqual(len(mutate.mutated(TEXT, faults(table))[1]), 1)


if __name__ == '__main__':
    unittest.main()
