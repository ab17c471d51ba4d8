#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints results of scripts/bench as tables, in columns or as markdown.

RESULTS.json is a list of {scenario, case, metric, ideal, ioband, mainline}; the unit is part of the metric. Rows with
"controllers" instead of the last two (see bench_shares.py) make a table of their own.
"""
import argparse
import json

from bench_shares import TITLES

HEADS = ("scenario", "case", "metric", "ideal", "ioband", "mainline")


def number(value):
    """Returns a number as text with the digits that matter; text stays, and None becomes "-"."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if value == int(value) or abs(value) >= 10000:
        return f"{value:.0f}"
    return f"{value:.{4 if abs(value) < 10 else 2 if abs(value) < 1000 else 1}f}"


def distance(row):
    """Returns how far ioband's value is from the ideal, to find the worst of several cases."""
    if "controllers" in row:
        got = row["controllers"]["ioband"]
        return round(got["error"], 2), -(got["throughput"] or 0)
    ideal, got = row["ideal"], row["ioband"]
    if isinstance(ideal, str):
        sign, limit = ideal.split()
        return got - float(limit) if sign == "<=" else float(limit) - got
    if ideal is None:
        return 0
    return abs(got / ideal - 1) if ideal else abs(got)


def brief(rows):
    """Returns one row per scenario and metric: the case where ioband is farthest from the ideal."""
    worst = {}
    for row in rows:
        key = row["scenario"], row["metric"], "buffered write" in row["case"]
        if key not in worst or distance(row) > distance(worst[key]):
            worst[key] = row
    return list(worst.values())


def entry(got):
    """Returns the shares, or the latency, and the throughput under one controller, as text."""
    if "failed" in got:
        return got["failed"]
    text = number(got["p99_ms"]) + " ms" if "p99_ms" in got else "/".join(f"{share:.1f}" for share in got["shares"])
    return text if got["throughput"] is None else f"{text} {got['throughput']:.1f}%"


def share_table(rows):
    """Returns the lines of a table, the heads first, as lists of cells; there is a column per controller."""
    names = [name for name in TITLES if any(name in r["controllers"] for r in rows)]
    yield "scenario", "case", "ideal", *(TITLES[name] for name in names)
    for r in rows:
        yield (r["scenario"], r["case"], "/".join(f"{share:.1f}" for share in r["ideal"]),
               *(entry(r["controllers"].get(name, {"failed": "-"})) for name in names))


def remarks(rows):
    """Yields remarks on the table of shares."""
    yield ("Per controller: the groups' shares of all I/O in %, or the reader's 99th percentile; then the I/O of all in % "
           "of that without control.")
    failed = [(name, r) for r in rows for name, got in r["controllers"].items() if "failed" in got]
    for name, r in failed:
        yield f"{TITLES[name]}: {r['controllers'][name]['failed']}: {r['scenario']}, {r['case']}."
    if not failed:
        yield "Every controller could act on every disk here; none hung. (BFQ and iocost cannot on bio-based disks.)"


def show(table, left, markdown):
    """Prints lines of cells; the first `left` columns are text."""
    width = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    edge, gap = ("| ", " | ") if markdown else ("", "  ")
    for nr, line in enumerate(table):
        cells = [c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(line, width))]
        print((edge + gap.join(cells) + edge[::-1]).rstrip())
        if nr == 0:
            rule = ["-" * w if i < left or not markdown else "-" * (w - 1) + ":" for i, w in enumerate(width)]
            print(edge + gap.join(rule) + edge[::-1])


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="markdown, as in docs/results.md and the cover letter")
    parser.add_argument("--brief", action="store_true", help="per scenario and metric only the worst case")
    parser.add_argument("--scenario", action="append", help="only this one (may be repeated)")
    parser.add_argument("results")
    args = parser.parse_args()
    with open(args.results, encoding="utf-8") as file:
        rows = json.load(file)
    rows = [r for r in rows if not args.scenario or r["scenario"] in args.scenario]
    if args.brief:
        rows = brief(rows)
    plain, shares = ([r for r in rows if ("controllers" in r) == kind] for kind in (False, True))
    if plain:
        lines = [tuple(number(r[h]) if h in HEADS[3:] else r[h] for h in HEADS) for r in plain]
        show([HEADS] + lines, 3, args.markdown)
    if shares:
        if plain:
            print()
        show([*share_table(shares)], 2, args.markdown)
        print("", *remarks(shares), sep="\n")


if __name__ == "__main__":
    main()
