# SPDX-License-Identifier: GPL-2.0
"""Makes rows of shares by weight from the files that the guests of share-lib.sh left.

A part is a directory with a directory for the guest of each of CONTROLLERS. There "spec" has the lines

    shares SCENARIO CASE from=S until=S interval=S ideal=PPM,... GROUP...
    reader SCENARIO CASE from=S until=S interval=S fair_us=N READER WRITER
    cannot SCENARIO CASE            the controller cannot act on that disk

and GROUP.json has a line of blkio_load for each process; "failed" says how a guest failed, if it did.

A row is {scenario, case, metric, ideal, controllers}: metric is "shares, %", ideal a list of percent, one per group;
controllers has, by name, {shares: [percent of the I/Os of all groups], error: points that the worst of them is off,
iops: I/Os per second of all groups, throughput: iops in percent of those under "none", or null} or {failed: how}.
The row of a reader has the metric "p99, ms" and its fair latency in a list as ideal; its controllers have p99_ms in
place of shares, and error is p99_ms over the ideal.
"""
import json
import shlex

TITLES = {"ioband": "ioband", "none": "none", "bfq-v1": "BFQ v1", "bfq-v2": "BFQ v2", "bfq-tuned": "BFQ tuned",
          "iocost": "iocost", "iocost-tuned": "iocost tuned"}


def spec(path):
    """Yields the lines of a guest's spec: (kind, scenario, case, {key: value}, [file])."""
    for line in (path / "spec").read_text().splitlines():
        kind, scenario, case, *rest = shlex.split(line)
        yield (kind, scenario, case, dict(arg.split("=", 1) for arg in rest if "=" in arg),
               [arg for arg in rest if "=" not in arg])


def intervals(path, names, seconds):
    """Returns I/Os in each interval of `seconds` since the first load began: a list per group, all of one length."""
    groups = [[json.loads(line) for line in (path / f"{name}.json").read_text().splitlines()] for name in names]
    zero = min(load["start_ns"] for loads in groups for load in loads)
    counts = [{} for _ in groups]
    for count, loads in zip(counts, groups):
        for load in loads:
            first = round((load["start_ns"] - zero) / 1e9 / seconds)
            for i, ios in enumerate(load["intervals"], first):
                count[i] = count.get(i, 0) + ios
    length = 1 + max(i for count in counts for i in count)
    return [[count.get(i, 0) for i in range(length)] for count in counts]


def p99_ms(path, name):
    """Returns the 99th percentile of the latencies of a load, ms."""
    return json.loads((path / f"{name}.json").read_text())["p99_ns"] / 1e6


def measured(path):
    """Returns {(scenario, case): (ideals, I/Os per second of each group, p99 in ms or None)} of a guest.

    The value is None if the controller cannot act on the disk.
    """
    cells: dict = {}
    for kind, scenario, case, opt, names in spec(path):
        if kind == "cannot":
            cells[scenario, case] = None
            continue
        begin, end, seconds = (float(opt[key]) for key in ("from", "until", "interval"))
        ios = [sum(count[round(begin / seconds):round(end / seconds)]) / (end - begin)
               for count in intervals(path, names, seconds)]
        if kind == "reader":
            cells[scenario, case] = [int(opt["fair_us"]) / 1e3], ios, p99_ms(path, names[0])
        else:
            cells[scenario, case] = [int(ppm) / 1e4 for ppm in opt["ideal"].split(",")], ios, None
    return cells


def judged(cell, free):
    """Returns the entry of one controller; `cell`: as of measured(); `free`: I/Os per second under "none", or None."""
    ideal, ios, latency_ms = cell
    total = sum(ios)
    rate = {"iops": total, "throughput": 100 * total / free if free else None}
    if latency_ms is not None:
        return {"p99_ms": latency_ms, "error": latency_ms / ideal[0], **rate}
    shares = [100 * n / total if total else 0 for n in ios]
    return {"shares": shares, "error": max(abs(got - want) for got, want in zip(shares, ideal)), **rate}


def rows(part):
    """Yields rows of all cells that the guest with ioband has measured."""
    guests = {name: measured(part / name) for name in TITLES if (part / name / "spec").exists()}
    for key, (ideal, _, latency_ms) in guests["ioband"].items():
        free = sum(guests["none"][key][1]) if "none" in guests else None
        entries = {}
        for name, cells in guests.items():
            failed = part / name / "failed"
            if cells.get(key):
                entries[name] = judged(cells[key], free)
            elif key in cells:
                entries[name] = {"failed": "cannot act"}
            else:
                entries[name] = {"failed": failed.read_text().strip() if failed.exists() else "not measured"}
        yield {"scenario": key[0], "case": key[1], "metric": "shares, %" if latency_ms is None else "p99, ms",
               "ideal": ideal, "controllers": entries}
