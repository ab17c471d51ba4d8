# SPDX-License-Identifier: GPL-2.0
"""Tests of the rows and the table of shares, with the failures of controllers."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, SCRIPTS + "/bench-parts")
sys.dont_write_bytecode = True
import bench_shares  # noqa: E402
import bench_table  # noqa: E402

SPEC = "shares S1 first from=1 until=3 interval=1 ideal=250000,750000 1-a 1-b\n"


def guest(part, name, spec, *loads):
    """Makes the directory of a guest; loads are (file, start in s, I/Os per interval)."""
    path = part / name
    path.mkdir()
    (path / "spec").write_text(spec)
    for file, start, counts in loads:
        with open(path / f"{file}.json", "a", encoding="ascii") as out:
            out.write(json.dumps({"start_ns": int(start * 1e9), "intervals": counts}) + "\n")
    return path


class TestShares(unittest.TestCase):
    """Rows and their table."""

    def setUp(self):
        """Makes a part with guests for ioband and none."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.part = pathlib.Path(folder.name)
        # the first second does not count; one load of b begins later, and no two loads begin at the same time
        guest(self.part, "ioband", SPEC, ("1-a", 5, [9, 2, 2]), ("1-b", 5.0001, [9, 3, 3]), ("1-b", 7.0002, [6]))
        guest(self.part, "none", SPEC, ("1-a", 5, [0, 10, 10]), ("1-b", 5, [0, 0, 0]))

    def row(self):
        """Returns the only row."""
        row, = bench_shares.rows(self.part)
        return row

    def test_numbers(self):
        """A row has the shares, the error of the worst one, and the rate in percent of that of none."""
        row = self.row()
        self.assertEqual(row["ideal"], [25, 75])
        self.assertEqual(row["controllers"]["ioband"], {"shares": [25, 75], "error": 0, "iops": 8, "throughput": 80})
        self.assertEqual(row["controllers"]["none"], {"shares": [100, 0], "error": 75, "iops": 10, "throughput": 100})

    def test_failures(self):
        """A row says how each controller failed."""
        (guest(self.part, "bfq-v1", "") / "failed").write_text("hangs\n")
        guest(self.part, "bfq-v2", "cannot S1 first\n")
        guest(self.part, "iocost", "")
        entries = self.row()["controllers"]
        for name, text in ("bfq-v1", "hangs"), ("bfq-v2", "cannot act"), ("iocost", "not measured"):
            with self.subTest(name=name):
                self.assertEqual(entries[name], {"failed": text})

    def test_table(self):
        """The table has a column for each controller, and failures are listed below it."""
        guest(self.part, "bfq-v2", "cannot S1 first\n")
        rows = [self.row()]
        self.assertEqual([*bench_table.share_table(rows)], [
            ("scenario", "case", "ideal", "ioband", "none", "BFQ v2"),
            ("S1", "first", "25.0/75.0", "25.0/75.0 80.0%", "100.0/0.0 100.0%", "cannot act")])
        self.assertEqual([*bench_table.remarks(rows)][1:], ["BFQ v2: cannot act: S1, first."])


if __name__ == "__main__":
    unittest.main()
