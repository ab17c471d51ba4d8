# SPDX-License-Identifier: GPL-2.0
"""Makes rows and a table of what scripts/demo measured of shares, DIR/shares.

A row is one of bench_shares.py, with "seed": the shares in percent that were reported for dm-ioband v1.7.0, the system
that S1 and S2 come from, null if nothing was reported.
"""
import os
import pathlib
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/bench-parts")
import bench_shares  # noqa: E402

# dm-ioband v1.7.0, direct I/O: by cgroup with tiotest, MB/s; by partition, I/Os in 60 s
SEED = {
    ("S1", "read, all three"): (38.0, 52.2, 50.4),
    ("S1", "write, all three"): (7.56, 7.41, 7.45),
    ("S2", "weights 40/20/10"): (5023, 2654, 1369),
    ("S2", "equal weights"): (2954, 3004, 2986),
}
HEADS = {
    "S1": "10, 30, 60 on a disk of 100 MB/s, direct 64 KiB I/Os at random, 4 processes at depth 1 each;\n"
          "    reads for 24 s, in which C pauses from 8 to 16",
    "S2": "50, 100 and 200 processes, direct 4 KiB reads and writes at random for 60 s, a disk of one tag and 6.6 ms",
}
COLUMNS = {"ioband": "ioband", "bfq-tuned": "BFQ, tuned", "iocost-tuned": "iocost, tuned"}


def rows(folder):
    """Returns the rows of bench_shares.py, with what dm-ioband reached."""
    for row in bench_shares.rows(pathlib.Path(folder) / "shares"):
        seed = SEED.get((row["scenario"], row["case"]))
        yield row | {"seed": seed and [100 * n / sum(seed) for n in seed]}


def percents(shares):
    """Returns shares as text, such as "10.0 / 30.0 / 60.0"."""
    return " / ".join(f"{share:.1f}" for share in shares) if shares else "-"


def show(table):
    """Prints a line per case: shares in percent and I/Os per second of all groups."""
    for scenario, text in HEADS.items():
        print(f"\nWeights ({scenario}): {text}")
        print(f"{'':17} {'asked, %':>18} |", *(f"{title:>18} {'IOPS':>7} |" for title in COLUMNS.values()),
              f"{'dm-ioband':>18}")
        for row in (r for r in table if r["scenario"] == scenario):
            cells = (row["controllers"][name] for name in COLUMNS)
            print(f"{row['case']:17} {percents(row['ideal']):>18} |",
                  *(f"{percents(got['shares']):>18} {got['iops']:7.1f} |" for got in cells),
                  f"{percents(row['seed']):>18}")
