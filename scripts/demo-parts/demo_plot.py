#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draws what scripts/demo measured: rate over time per group, ioband beside mainline.

Reads DIR/{ioband,mainline}/*.log, lines "start_ns end_ns op bytes" per I/O, and
writes DIR/rates.png. The rate at a time is that of the I/Os that ended within a
window before that time. A window has a whole number of I/Os at the rates of the limits: 62.5 ms
are 1, 2 and 3 I/Os at 1, 2 and 3 MiB/s, 20 ms are 164 at 8192 IOPS.
"""
import argparse
import bisect
import os

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend comes first)

KERNELS = {"ioband": "ioband", "mainline": "mainline (blk-throttle)"}
COLORS = {1: "#1b6ca8", 2: "#d1711f", 3: "#2f8f4e", "s6": "#7b3fa0"}
S5_WINDOW, S6_WINDOW = 0.0625, 164 / 8192    # s


def ends(folder, kernel, name):
    """Returns the times at which I/Os ended, in s since the first I/O began, in order."""
    with open(os.path.join(folder, kernel, name + ".log"), encoding="ascii") as file:
        lines = [line.split() for line in file]
    zero = min(int(line[0]) for line in lines)
    return sorted((int(line[1]) - zero) / 1e9 for line in lines)


def rates(times, begin, end, window, step, units):
    """Returns ([s], [units/s]): the rate at times from begin to end; each I/O counts for `units`."""
    points = []
    for i in range(int((end - begin) / step)):
        # not at round numbers, at which I/Os end
        at = begin + (i + 0.5) * step
        count = bisect.bisect_right(times, at) - bisect.bisect_right(times, at - window)
        points.append((at, count * units / window))
    return zip(*points)


def draw_s5(axes, folder, kernel, begin, end, window, step):
    """Draws three groups, direct read; the fastest first, so that no line hides another."""
    for mib in (3, 2, 1):
        points = [*rates(ends(folder, kernel, f"s5-direct-read-{mib}"), begin, end, window, step, 1 / 16)]
        axes.plot(*points, color=COLORS[mib], linewidth=1.8, label=f"asked: {mib} MiB/s")
        axes.fill_between(*points, color=COLORS[mib], alpha=0.12, linewidth=0)


def draw_s6(axes, folder, kernel, begin, end):
    """Draws one group with a limit of 8192 write IOPS."""
    points = [*rates(ends(folder, kernel, "s6"), begin, end, S6_WINDOW, 0.0005, 1)]
    axes.plot(*points, color=COLORS["s6"], linewidth=1.8, label="asked: 8192 IOPS")
    axes.fill_between(*points, color=COLORS["s6"], alpha=0.12, linewidth=0)


def decorate(axes, title, ylabel, xlim, top):
    """Sets what all six diagrams have in common: title, labels, limits of the axes, legend, grid."""
    axes.set_title(title, fontsize=10.5, loc="left")
    axes.set_xlim(xlim)
    axes.set_ylim(0, top)
    axes.set_ylabel(ylabel if axes.get_subplotspec().is_first_col() else "")
    axes.grid(True, alpha=0.3, linewidth=0.6)
    axes.legend(loc="upper right", ncols=3, fontsize=9, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", help="where scripts/demo left its results")
    folder = parser.parse_args().dir
    figure, grid = pyplot.subplots(3, 2, figsize=(13, 10), sharey="row", constrained_layout=True,
                                   height_ratios=(3, 4, 3))
    for (top, middle, bottom), (kernel, name) in zip(grid.T, KERNELS.items()):
        draw_s5(top, folder, kernel, 1, 30, 1.0, 0.1)
        decorate(top, f"{name}: 64 KiB reads for 30 s, average of 1 s", "MiB/s", (0, 30), 4)
        draw_s5(middle, folder, kernel, 10, 12, S5_WINDOW, 0.001)
        decorate(middle, f"{name}: two seconds of it, average of 62.5 ms", "MiB/s", (10, 12), 6)
        draw_s6(bottom, folder, kernel, 10, 11)
        decorate(bottom, f"{name}: 4 KiB writes, one second, average of 20 ms", "I/Os per second", (10, 11), 48000)
        bottom.set_xlabel("seconds since the start")
    figure.suptitle("Three groups with limits of 1, 2 and 3 MiB/s on one device, and one group with a limit of 8192 write IOPS",
                    fontsize=12.5)
    figure.savefig(os.path.join(folder, "rates.png"), dpi=110)


if __name__ == "__main__":
    main()
