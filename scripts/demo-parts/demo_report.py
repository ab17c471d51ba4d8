#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints and stores what scripts/demo measured.

Reads DIR/ioband and DIR/mainline, each with a JSON line per load (times in ns),
and DIR/shares, and writes DIR/results.json: rows {scenario, case, metric, ideal,
ioband, mainline, seed}, and those of demo_shares.py. Rates are MiB/s or I/Os per
second, latencies ms. "seed" is what was reported for the system that a scenario comes
from, null if nothing was reported.
"""
import argparse
import json
import os

import demo_shares

SECONDS = 30
# io-throttle v11 with xdd, MB/s
SEED_S5 = {
    "direct-read": (1.051, 2.099, 3.148),
    "direct-write": (21.3, 21.1, 21.0),
    "buffered-read": (2.33, 2.36, 2.39),
    "buffered-write": (27.3, 28.2, 26.2),
}
# blkio throttling through libcgroup, w/s in every interval of 5 s
SEED_S6 = 8190.40
KERNELS = ("ioband", "mainline")


def load(folder, kernel, name):
    """Returns what one load reported, as a dict; times in ns."""
    with open(os.path.join(folder, kernel, name + ".json"), encoding="ascii") as file:
        return json.load(file)


def largest_gap(folder, kernel, name, after=1.0):
    """Returns the longest time in ms between the ends of two successive I/Os, from `after` s into the run on."""
    with open(os.path.join(folder, kernel, name + ".log"), encoding="ascii") as file:
        ends = sorted(int(line.split()[1]) for line in file)
    ends = [ns for ns in ends if ns >= ends[0] + after * 1e9]
    return max(b - a for a, b in zip(ends, ends[1:])) / 1e6


def row(scenario, case, metric, ideal, values, seed=None):
    """Returns one row; values are those of KERNELS, in their order."""
    return {"scenario": scenario, "case": case, "metric": metric, "ideal": ideal,
            **dict(zip(KERNELS, values)), "seed": seed}


def rows_s5(folder):
    """Yields rates and latencies of the twelve cells after the first two seconds, and rates at the disk."""
    for mode, seeds in SEED_S5.items():
        for mib in (1, 2, 3):
            got = [load(folder, kernel, f"s5-{mode}-{mib}") for kernel in KERNELS]
            case = f"{mode.replace('-', ' ')}, {mib} MiB/s"
            yield row("S5", case, "rate_mib_s", mib,
                      [sum(g["intervals"][2:]) / 16 / SECONDS for g in got],
                      round(seeds[mib - 1] * 1e6 / 2**20, 3))
            for metric in ("p50", "p99", "max"):
                yield row("S5", case, f"{metric}_ms", 62.5 / mib, [g[f"{metric}_ns"] / 1e6 for g in got])
    for mib in (1, 2, 3):
        yield row("S5", f"buffered write, {mib} MiB/s", "disk_mib_s", mib,
                  [load(folder, kernel, f"s5-disk-{mib}")["bytes"] / SECONDS / 2**20 for kernel in KERNELS])


def rows_s6(folder):
    """Yields IOPS in each interval of 5 s, and the largest gap between I/Os."""
    got = [load(folder, kernel, "s6")["intervals"] for kernel in KERNELS]
    for i, ios in enumerate(zip(*got)):
        yield row("S6", f"{5 * i}-{5 * i + 5} s", "iops", 8192, [n / 5 for n in ios], SEED_S6)
    yield row("S6", "after 1 s", "largest_gap_ms", 1000 / 8192,
              [largest_gap(folder, kernel, "s6") for kernel in KERNELS])


def rows_neighbour(folder):
    """Yields latencies of write() and fsync(), alone and beside a buffered writer under 1 MiB/s, and its rate."""
    case = "ext4, beside a buffered writer under 1 MiB/s"
    alone, beside = ([load(folder, kernel, f"neighbour-{when}") for kernel in KERNELS] for when in ("alone", "beside"))
    for call, most in ("write", 1.5), ("sync", 2):
        before, after = ([g[f"{call}_p99_ns"] / 1e6 for g in got] for got in (alone, beside))
        yield row("neighbour", "ext4, alone", f"{call}_p99_ms", None, before)
        yield row("neighbour", case, f"{call}_p99_ms", f"<= {most} x alone", after)
    yield row("neighbour", case, "syncs_per_s", alone[0]["rounds"] / 10, [g["rounds"] / 25 for g in beside])
    yield row("neighbour", case, "writer_mib_s", 1,
              [load(folder, kernel, "neighbour-writer")["bytes"] / 2**20 / SECONDS for kernel in KERNELS])


def percent(got, asked):
    """Returns the difference from what was asked for in percent, as text."""
    return f"{(got / asked - 1) * 100:+.2f}%"


def print_s5(rows):
    """Prints a line per cell of S5."""
    table = {(r["case"], r["metric"]): r for r in rows}
    print("\nLimits in bytes (S5): three groups at once, 1, 2, 3 MiB/s, 64 KiB I/Os at depth 1, 30 s after the first two")
    print(f"{'':14} {'asked':>6} | {'ioband':>8} {'error':>8} {'p50 / p99 / max ms':>22} | "
          f"{'mainline':>8} {'error':>8} {'p50 / p99 / max ms':>22} | {'io-throttle':>11}")
    for mode in (name.replace("-", " ") for name in SEED_S5):
        for mib in (1, 2, 3):
            case = f"{mode}, {mib} MiB/s"
            rate = table[case, "rate_mib_s"]
            text = f"{mode if mib == 1 else '':14} {mib:6.4f} |"
            for kernel in KERNELS:
                lat = [table[case, m + "_ms"][kernel] for m in ("p50", "p99", "max")]
                shown = " / ".join(f"{ms:.2f}" for ms in lat)
                text += f" {rate[kernel]:8.4f} {percent(rate[kernel], mib):>8} {shown:>22} |"
            print(text + f" {rate['seed']:11.3f}")
    for mib in (1, 2, 3):
        rate = table[f"buffered write, {mib} MiB/s", "disk_mib_s"]
        text = f"{'  at the disk' if mib == 1 else '':14} {mib:6.4f} |"
        for kernel in KERNELS:
            text += f" {rate[kernel]:8.4f} {percent(rate[kernel], mib):>8} {'':22} |"
        print(text)
    print("(rates of write(); at the disk: bytes that the disk counts for the group, mainline for the group of the disk's inode)")


def print_s6(rows):
    """Prints a line per interval of S6."""
    print("\nA limit in I/Os (S6): 8192 write IOPS set and run with cgcreate, cgset, cgget, cgexec; 4 KiB at random, depth 128")
    print(f"{'':14} {'asked':>6} | {'ioband':>8} {'error':>8} | {'mainline':>8} {'error':>8} | {'blkio then':>11}")
    for r in rows:
        if r["scenario"] != "S6" or r["metric"] != "iops":
            continue
        text = f"{r['case']:14} {r['ideal']:6} |"
        for kernel in KERNELS:
            text += f" {r[kernel]:8.1f} {percent(r[kernel], r['ideal']):>8} |"
        print(text + f" {r['seed']:11.2f}")
    gap = next(r for r in rows if r["metric"] == "largest_gap_ms")
    print(f"largest pause between two I/Os, ms: ideal {gap['ideal']:.3f}, ioband {gap['ioband']:.3f}, "
          f"mainline {gap['mainline']:.3f}")
    print("(the first 5 s include the burst of an idle group, B: 5 ms of the rate)")


def print_neighbour(rows):
    """Prints a line per system call of the neighbour."""
    table = {(r["case"][:11], r["metric"]): r for r in rows if r["scenario"] == "neighbour"}
    rate = table["ext4, besid", "writer_mib_s"]
    print("\nA neighbour without a limit that writes 64 KiB and syncs, 50 ms apart, beside a buffered writer of 1 MiB/s, "
          "one ext4")
    print(f"{'99th percentile':30} {'ioband':>9} {'mainline':>9}")
    for call, text in ("write", "write()"), ("sync", "fsync()"):
        for case, when in ("ext4, alone", "alone"), ("ext4, besid", "beside the writer"):
            got = table[case, f"{call}_p99_ms"]
            print(f"{f'{text} {when}, ms':30} {got['ioband']:9.3f} {got['mainline']:9.3f}")
    for r, text in (table["ext4, besid", "syncs_per_s"], "writes and syncs a second"), (rate, "the writer, MiB/s"):
        print(f"{text:30} {r['ioband']:9.3f} {r['mainline']:9.3f}")


def verdict(rows, shares):
    """Returns a line for each controller: how many limits and shares were kept, and the longest pause."""
    # in percent of the limit, and in points of a share
    close, near = 0.5, 1
    lines = []
    limits = [r for r in rows if r["metric"] in ("rate_mib_s", "iops")]
    pause = next(r for r in rows if r["metric"] == "largest_gap_ms")
    for kernel, name in ("ioband", "ioband"), ("mainline", "blk-throttle"):
        off = [abs(r[kernel] / r["ideal"] - 1) * 100 for r in limits]
        lines.append(f"{name}: {sum(o <= close for o in off)} of {len(off)} limits kept within {close} %, the worst "
                     f"{max(off):.3g} % off; longest pause at 8192 IOPS {pause[kernel]:.3g} ms")
    for name, title in demo_shares.COLUMNS.items():
        off = [max(abs(got - asked) for got, asked in zip(r["controllers"][name]["shares"], r["ideal"])) for r in shares]
        lines.append(f"{title}: {sum(o <= near for o in off)} of {len(off)} shares kept within {near} point, the worst "
                     f"{max(off):.3g} points off")
    return "\n".join(["Verdict", *("  " + line for line in lines)])


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", help="where scripts/demo left its results")
    folder = parser.parse_args().dir
    rows, shares = [*rows_s5(folder), *rows_neighbour(folder), *rows_s6(folder)], [*demo_shares.rows(folder)]
    with open(os.path.join(folder, "results.json"), "w", encoding="ascii") as file:
        json.dump(rows + shares, file, indent=1)
        file.write("\n")
    print_s5(rows)
    print_neighbour(rows)
    print_s6(rows)
    demo_shares.show(shares)
    print("\n" + verdict(rows, shares))


if __name__ == "__main__":
    main()
