# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/figures: README has the figures of docs/results.md, and a row that is missing there is an error."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import unittest

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
PROGRAM = os.path.join(SCRIPTS, "figures")
LOADER = importlib.machinery.SourceFileLoader("figures", PROGRAM)
SPEC = importlib.util.spec_from_loader("figures", LOADER)
assert SPEC
figures = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(figures)

TABLE = """
| scenario | case | metric | ideal | ioband | mainline |
| -------- | ---- | ------ | ----: | -----: | -------: |
| S5       | one  | rate   |     1 |      2 |        3 |
"""


class TestFigures(unittest.TestCase):
    def test_repository(self):
        """README.md and docs/results.svg are up to date with docs/results.md."""
        run = subprocess.run([PROGRAM, "--check"], capture_output=True, encoding="utf-8", check=False)
        self.assertEqual((run.returncode, run.stdout, run.stderr),
                         (0, "5 of 5 files had the figures of docs/results.md\n", ""))

    def test_a_changed_figure_is_seen(self):
        """A changed figure in docs/results.md changes the rows of README and the picture."""
        text = figures.read(figures.RESULTS)
        changed = text.replace(" 529.95 |", " 529.05 |").replace(" 99.90 |", " 12.30 |")
        self.assertNotEqual(text, changed)
        before, after = figures.tables(text), figures.tables(changed)
        self.assertNotEqual(list(figures.readme_rows(before)), list(figures.readme_rows(after)))
        self.assertNotEqual(figures.picture(before), figures.picture(after))

    def test_tables(self):
        """Rows are found by scenario, case and metric; wrong numbers of cells, and contradictory figures, are errors."""
        rows = figures.tables(TABLE)
        self.assertEqual(figures.find(rows, ("S5", "one", "rate"))["ioband"], "2")
        with self.assertRaises(figures.Missing):
            figures.find(rows, ("S5", "two", "rate"))
        with self.assertRaises(figures.Missing):
            figures.tables(TABLE + "| S5 | two | rate | 1 | 2 |\n")
        with self.assertRaises(figures.Missing):
            figures.tables(TABLE + "\n" + TABLE.replace("      2 ", "      4 "))

    def test_shown(self):
        """A cell is shown with three digits, its sign and its unit."""
        self.assertEqual([figures.shown(cell, unit) for cell, unit in (
            ("20.83", "ms"), ("<= 0.6047", "ms"), ("17588192", "B"), ("5446.4", "B"), ("-7.8733", ""))],
            ["20.8 ms", "<= 0.605 ms", "17.6 MB", "5.45 kB", "-7.87"])


if __name__ == "__main__":
    unittest.main()
