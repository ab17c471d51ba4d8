#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Print bench results as a table, in columns or as markdown.

RESULTS.json is a list of {scenario, case, metric, ideal, ioband, mainline}; the unit is part of the metric.
"""
import argparse
import json

HEADS = ("scenario", "case", "metric", "ideal", "ioband", "mainline")


def number(value):
    """A value with the digits that matter; text and nothing as they are."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if value == int(value) or abs(value) >= 10000:
        return f"{value:.0f}"
    return f"{value:.{4 if abs(value) < 10 else 2 if abs(value) < 1000 else 1}f}"


def distance(row):
    """How far ours is from the ideal, to tell the worst case of several."""
    ideal, got = row["ideal"], row["ioband"]
    if isinstance(ideal, str):
        sign, limit = ideal.split()
        return got - float(limit) if sign == "<=" else float(limit) - got
    if ideal is None:
        return 0
    return abs(got / ideal - 1) if ideal else abs(got)


def brief(rows):
    """One row per scenario and metric: the case where ours is farthest from the ideal."""
    worst = {}
    for row in rows:
        key = row["scenario"], row["metric"], "buffered write" in row["case"]
        if key not in worst or distance(row) > distance(worst[key]):
            worst[key] = row
    return list(worst.values())


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="markdown, as in README and cover letter")
    parser.add_argument("--brief", action="store_true", help="per scenario and metric only the worst case")
    parser.add_argument("--scenario", action="append", help="only this one (may be repeated)")
    parser.add_argument("results")
    args = parser.parse_args()
    with open(args.results, encoding="utf-8") as file:
        rows = json.load(file)
    rows = [r for r in rows if not args.scenario or r["scenario"] in args.scenario]
    if args.brief:
        rows = brief(rows)
    table = [HEADS] + [tuple(number(r[h]) if h in HEADS[3:] else r[h] for h in HEADS) for r in rows]
    width = [max(len(line[i]) for line in table) for i in range(len(HEADS))]
    edge, gap = ("| ", " | ") if args.markdown else ("", "  ")
    for nr, line in enumerate(table):
        cells = [c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(line, width))]
        print((edge + gap.join(cells) + edge[::-1]).rstrip())
        if nr == 0:
            print(edge + gap.join("-" * w if i < 3 or not args.markdown else "-" * (w - 1) + ":" for i, w in enumerate(width)) + edge[::-1])


if __name__ == "__main__":
    main()
