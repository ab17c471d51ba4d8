#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draws what scripts/demo measured of shares: DIR/shares.png.

The upper diagrams are S1 over time: the groups' rates on top of each other, so that the upper edge is the rate of the
disk, and dashed lines where the edges between the groups are at shares by weight. The lower ones are S2: bars in
percent, beside shares by weight.
"""
import argparse
import pathlib

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend comes first)

import demo_shares  # noqa: E402
import bench_shares  # noqa: E402  (demo_shares says where that is)
from demo_plot import COLORS  # noqa: E402

GROUPS = "ABC"
# I/Os of 64 KiB; averages of 0.4 s, since null_blk allows its bytes in portions of 20 ms
SIZE_MIB, WINDOW = 1 / 16, 0.4


def rates(counts, seconds):
    """Returns the points (s, MiB/s) of one group, from its I/Os per interval of `seconds`."""
    width = round(WINDOW / seconds)
    for i in range(width, len(counts) + 1):
        yield (i - width / 2) * seconds, sum(counts[i - width:i]) / WINDOW * SIZE_MIB


def phases(path):
    """Returns, for the cell in which C pauses, ([(begin, end, shares in ppm)], files, length of an interval); in s."""
    lines = [(opt, names) for kind, scenario, _, opt, names in bench_shares.spec(path)
             if kind == "shares" and scenario == "S1"]
    names = lines[0][1]
    found = [([float(opt[k]) for k in ("from", "until")], [int(n) for n in opt["ideal"].split(",")])
             for opt, files in lines if files == names]
    begins = [0] + [until for (_, until), _ in found]
    return [(begin, until, ideal) for begin, ((_, until), ideal) in zip(begins, found)], names, \
        float(lines[0][0]["interval"])


def draw_s1(axes, path, title):
    """Draws S1 under one controller."""
    asked, names, seconds = phases(path)
    points = [[*zip(*rates(counts, seconds))] for counts in bench_shares.intervals(path, names, seconds)]
    layers = [mib for _, mib in points]
    axes.stackplot(points[0][0], layers, colors=[COLORS[i] for i in (1, 2, 3)], alpha=0.75, linewidth=0,
                   labels=[f"{name}, weight {weight}" for name, weight in zip(GROUPS, (10, 30, 60))])
    total = sorted(sum(at) for at in zip(*layers))[len(layers[0]) // 2]
    for begin, end, ideal in asked:
        for edge in (ideal[0], ideal[0] + ideal[1]):
            axes.plot((begin, end), [total * edge / 1e6] * 2, color="black", linewidth=1, linestyle="--")
    axes.set_title(f"{title}: S1, 64 KiB reads, average of {WINDOW} s", fontsize=10.5, loc="left")
    axes.set_xlim(0, asked[-1][1])
    axes.set_ylim(0, 1.25 * total)
    axes.set_xlabel("seconds; C pauses from 8 to 16")


def draw_s2(axes, row):
    """Draws the bars of one row of S2, groups side by side."""
    systems = {"asked": row["ideal"]}
    if row["seed"]:
        systems["dm-ioband, then"] = row["seed"]
    systems |= {title: row["controllers"][name]["shares"] for name, title in demo_shares.COLUMNS.items()}
    for i, name in enumerate(GROUPS):
        shares = [shares[i] for shares in systems.values()]
        bars = axes.bar([at + (i - 1) * 0.27 for at in range(len(systems))], shares, 0.25, color=COLORS[i + 1],
                        label=f"{name}, {(50, 100, 200)[i]} processes")
        axes.bar_label(bars, [f"{share:.1f}" for share in shares], fontsize=8)
    axes.set_xticks(range(len(systems)), systems, fontsize=9)
    axes.set_title(f"S2, {row['case']}: 4 KiB reads and writes, one tag of 6.6 ms", fontsize=10.5, loc="left")
    axes.set_ylim(0, 119)


def decorate(axes, first, ylabel):
    """Sets what all diagrams have in common: label, legend, grid."""
    axes.set_ylabel(ylabel if first else "")
    axes.grid(True, axis="y", alpha=0.3, linewidth=0.6)
    axes.legend(loc="upper right", ncols=3, fontsize=9, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path, help="where scripts/demo left its results")
    folder = parser.parse_args().dir
    s2 = [row for row in demo_shares.rows(folder) if row["scenario"] == "S2"]
    figure = pyplot.figure(figsize=(15, 9), constrained_layout=True)
    grid = figure.add_gridspec(2, 6)
    for i, (name, title) in enumerate(demo_shares.COLUMNS.items()):
        axes = figure.add_subplot(grid[0, 2 * i:2 * i + 2])
        draw_s1(axes, folder / "shares" / name, title)
        decorate(axes, i == 0, "MiB/s, one group on top of the other")
    for i, row in enumerate(s2):
        axes = figure.add_subplot(grid[1, 3 * i:3 * i + 3])
        draw_s2(axes, row)
        decorate(axes, i == 0, "% of all I/Os")
    figure.suptitle("Three groups with weights share a disk; dashed: configured shares", fontsize=12.5)
    figure.savefig(folder / "shares.png", dpi=110)


if __name__ == "__main__":
    main()
