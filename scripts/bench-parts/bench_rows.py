#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes rows of results from the files that the guests of scripts/bench left.

usage: bench_rows.py RESULTS.json PART...

Each PART is a directory with the subdirectories "ioband" and "mainline", from the same script under
ioband=on and ioband=off. A line of PART/*/spec is: kind, scenario, case, key=value..., file...; the kinds are
the functions below, which yield (metric, ideal, value).
Writes a list of {scenario, case, metric, ideal, ioband, mainline}. A PART with the
subdirectory "none" has shares under several controllers; its rows are those of bench_shares.py.
"""
import argparse
import bisect
import collections
import json
import pathlib
import re
import statistics

import bench_shares

SEC = 1e9       # ns
MIB = 1 << 20
BURST_S = 0.005         # the default burst: this much time of the rate ...
BURST_BYTES = 65536     # ... but no less than this
BURST_IOS = 1


class Run:
    """The files of one guest."""

    def __init__(self, path):
        self.path = path

    def json(self, name):
        """Returns what blkio_load printed, as a dict; times in ns."""
        return json.loads((self.path / f"{name}.json").read_text())

    def processes(self, name):
        """Returns what the processes of a group printed: a list with a dict for each process; times in ns."""
        return [json.loads(line) for line in (self.path / f"{name}.json").read_text().splitlines()]

    def seconds_of(self, name, first):
        """Returns the I/Os of all processes of a group in each second from second `first` on: a list of numbers."""
        return [sum(ios) for ios in zip(*(p["intervals"][first:] for p in self.processes(name)))]

    def log(self, names, direction="RW"):
        """Returns a list of I/Os, (end in ns, bytes), in the order of their ends."""
        ios = []
        for name in names:
            for line in (self.path / f"{name}.log").read_text().splitlines():
                _, end, op, size = line.split()
                if op in direction:
                    ios.append((int(end), int(size)))
        return sorted(ios, key=lambda io: io[0])


def load(run, opt, names):
    """Yields the rate of all loads together in MiB/s, from second `from` on, and latencies in ms if `size` is known."""
    rate, seconds = int(opt["rate"]), float(opt["seconds"])
    runs = [run.json(n) for n in names]
    if "from" in opt:
        got = sum(sum(r["intervals"][int(opt["from"]):]) for r in runs) * int(opt["size"])
    else:
        got = sum(r["bytes"] for r in runs)
    what = opt.get("what", "rate")
    yield f"{what}, MiB/s", rate / MIB, got / seconds / MIB
    yield f"{what} error, %", 0, (got / seconds / rate - 1) * 100
    if "size" in opt:
        for p in "p50", "p99", "max":
            yield f"latency {p}, ms", int(opt["size"]) / rate * 1e3, runs[0][f"{p}_ns"] / 1e6


def mib_s(run, name):
    """Returns the rate of a group of processes in MiB/s, from their start until the last of them ends."""
    got = run.processes(name)
    return sum(p["bytes"] for p in got) / MIB * SEC / (max(p["end_ns"] for p in got) - min(p["start_ns"] for p in got))


def whole(run, opt, names):
    """Yields the rate of a group of processes in MiB/s, or in percent of the rate of `base`."""
    if "base" in opt:
        yield f"{opt['what']}, % of that without", ">= 99", 100 * mib_s(run, names[0]) / mib_s(run, opt["base"])
    else:
        yield f"{opt['what']}, MiB/s", None, mib_s(run, names[0])


def rate(run, opt, names):
    """Yields the rate of a group of processes under a limit in MiB/s, from second `from` on."""
    want, got = int(opt["rate"]), statistics.mean(run.seconds_of(names[0], int(opt["from"]))) * int(opt["size"])
    yield "rate, MiB/s", want / MIB, got / MIB
    yield "rate error, %", 0, (got / want - 1) * 100


def portion(run, opt, names):
    """Yields the share of the first of two groups of processes, and the rate of both over that of `base`, in %."""
    seconds = [run.seconds_of(name, int(opt["from"])) for name in names]
    got = [sum(ios) for ios in seconds]
    yield "share of the first, %", float(opt["ideal"]), 100 * got[0] / sum(got)
    rate_mib_s = sum(got) / len(seconds[0]) * int(opt["size"]) / MIB
    yield "rate of both, % of that without a rule", ">= 99", 100 * rate_mib_s / mib_s(run, opt["base"])


def iops(run, opt, names):
    """Yields the worst interval after the first, the spacing of I/Os after the first second in us, latencies in ms."""
    rate, interval = int(opt["rate"]), int(opt["interval"])
    run0 = run.json(names[0])
    per = [n / interval for n in run0["intervals"][1:]]
    worst = max(per, key=lambda n: abs(n - rate))
    yield f"IOPS, worst {interval} s interval", rate, worst
    yield f"error, worst {interval} s interval, %", 0, (worst / rate - 1) * 100
    ends = [t for t, _ in run.log(names) if t > run0["start_ns"] + SEC]
    gaps = [b - a for a, b in zip(ends, ends[1:])]
    yield "time between I/Os, stddev, us", 0, statistics.pstdev(gaps) / 1e3
    for p in "p50", "p99", "max":
        yield f"latency {p}, ms", int(opt["depth"]) / rate * 1e3, run0[f"{p}_ns"] / 1e6


def window(run, opt, names):
    """Yields the most that any window has beyond R * t + max(B, its first I/O); at most 0 if the bound is kept."""
    ios = run.log(names, opt.get("dir", "RW"))
    if "bps" in opt:
        rate, unit, least = int(opt["bps"]), "bytes", BURST_BYTES
    else:
        rate, unit, least = int(opt["iops"]), "I/Os", BURST_IOS
        ios = [(t, 1) for t, _ in ios]
    burst = max(least, rate * BURST_S)
    most, best, total = float("-inf"), float("inf"), 0
    for t, n in ios:
        rest = rate * (t - ios[0][0]) / SEC
        best = min(best, total - rest + max(burst, n))
        total += n
        most = max(most, total - rest - best)
    yield f"beyond R*t + B, {unit}, {opt.get('dir', 'all')}", "<= 0", most


def ends(run, opt, names):
    """Yields the time from the start of a load to its end, s."""
    got = run.json(names[0])
    yield "end, s", float(opt["seconds"]), (got["end_ns"] - got["start_ns"]) / SEC


def share(run, _opt, names):
    """Yields the share of the first load of all bytes, in percent."""
    got = [run.json(n)["bytes"] for n in names]
    yield "share of the first, %", 100 / len(got), got[0] / sum(got) * 100


def neighbour(run, _opt, names):
    """Yields a neighbour's 99th percentiles in ms, alone and beside a writer under 1 MiB/s, and the writer's rate."""
    alone, beside, writer = (run.json(n) for n in names)
    for what, factor in ("write", 1.5), ("sync", 2):
        before, after = (got[f"{what}_p99_ns"] / 1e6 for got in (alone, beside))
        call = {"write": "write()", "sync": "fsync()"}[what]
        yield f"{call} p99 without it, ms", None, before
        yield f"{call} p99, ms", f"<= {factor * before:.4g}", after
    yield "writes and syncs a second", alone["rounds"] / 10, beside["rounds"] / 25
    yield "the writer's write(), MiB/s", 1, writer["bytes"] / MIB / 30


def per_io(run, name):
    """Returns the median of ns per I/O over the runs of one load; at one instruction per ns these are instructions."""
    paths = sorted(run.path.glob(f"{name}.*.json"))
    runs = [json.loads(p.read_text()) for p in paths]
    return statistics.median((r["end_ns"] - r["start_ns"]) / r["ios"] for r in runs)


def instr(run, opt, names):
    """Yields instructions per I/O, or per `unit`, of which an I/O has `parts`; or how many more than load `base`."""
    unit, parts = opt.get("unit", "I/O"), int(opt.get("parts", 1))
    got = per_io(run, names[0]) / parts
    if "base" not in opt:
        yield f"instructions per {unit}", None, got
        return
    base = per_io(run, opt["base"]) / parts
    if "percent" in opt:
        yield f"instructions per {unit} over no rule, %", f"<= {opt['percent']}", (got / base - 1) * 100
    else:
        yield f"instructions per {unit} over no rule", f"<= {opt['most']}", got - base


def ratio(run, opt, names):
    """Yields the median of the ratios of I/Os per second, pair by pair; files are NAME.PAIR.json."""
    ratios = []
    for pair in range(int(opt["pairs"])):
        base, got = (run.json(f"{n}.{pair}") for n in names)
        speed = [r["ios"] / (r["end_ns"] - r["start_ns"]) for r in (base, got)]
        ratios.append(speed[1] / speed[0])
    low, middle, high = statistics.quantiles(ratios, n=4)
    yield "IOPS, of those without a rule", f">= {opt['least']}", middle
    # The standard error of the median, if the ratios are normal, is 1.2533 sigma / sqrt(n), and their quartiles are
    # 1.349 sigma apart.
    yield "the same, standard error (noise)", 0, 1.2533 * (high - low) / 1.349 / len(ratios) ** .5


def transfers(run, phase):
    """Returns the number of transfers of cache lines that cache_lines.so has counted in a phase."""
    for line in (run.path / "lines").read_text().splitlines():
        words = line.split()
        if words[:2] == ["phase", phase]:
            return int(words[3])
    raise ValueError(f"{run.path}: no phase {phase}")


def transfers_by_function(run, phase):
    """Returns the transfers in a phase by function of the kernel: {name: transfers}."""
    symbols = sorted((int(address, 16), name) for address, kind, name in
                     (line.split() for line in (run.path / "System.map").read_text().splitlines()) if kind in "tT")
    addresses = [address for address, _ in symbols]
    found, counts = collections.Counter(), False
    for line in (run.path / "lines").read_text().splitlines():
        words = line.split()
        if words[0] == "phase":
            counts = words[1] == phase
        elif counts:
            found[symbols[bisect.bisect(addresses, int(words[0], 16)) - 1][1]] += int(words[1])
    return found


def lines(run, opt, names):
    """Yields the transfers per unit in the phase `names[0]`, or how many more than in the phase `base` of `base_units`.

    With `own` yields the transfers by functions whose name has this regular expression; with `top` those by each of
    the `top` functions that have most transfers.
    """
    if "own" in opt:
        found = transfers_by_function(run, names[0])
        got = sum(n for name, n in found.items() if re.search(opt["own"], name))
        yield f"transfers per {opt['unit']} by the controller", None, got / int(opt["units"])
        return
    if "top" in opt:
        for name, got in transfers_by_function(run, names[0]).most_common(int(opt["top"])):
            yield f"transfers per {opt['unit']} in {name}()", None, got / int(opt["units"])
        return
    got = transfers(run, names[0]) / int(opt["units"])
    if "base" not in opt:
        yield f"transfers per {opt['unit']}", None, got
        return
    base = transfers(run, opt["base"]) / int(opt["base_units"])
    yield f"transfers per {opt['unit']} over no rule", None, got - base


def value(_run, opt, names):
    """Yields a number that the guest has measured itself."""
    yield opt["metric"], opt.get("ideal"), float(names[0])


KINDS = {f.__name__: f for f in (load, whole, rate, portion, iops, window, ends, share, neighbour, instr, lines, ratio, value)}


def measure(path):
    """Returns the results of one guest: {(scenario, case, metric): (ideal, value)}."""
    rows = {}
    for kind, scenario, case, opt, names in bench_shares.spec(path):
        for metric, ideal, got in KINDS[kind](Run(path), opt, names):
            rows[scenario, case, metric] = ideal, got
    return rows


def unused(ours, theirs, plain):
    """Yields rows: what a kernel of each column costs without limits over a kernel that is built without ioband."""
    for key, (ideal, base) in plain.items():
        if key[2].startswith("instructions per ") and ideal is None:
            yield {"scenario": "unused", "case": key[1], "metric": f"{key[2]} over a kernel without ioband",
                   "ideal": 0, "ioband": ours[key][1] - base, "mainline": theirs[key][1] - base}


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("part", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    rows = []
    for part in args.part:
        if (part / "none").exists():
            rows += bench_shares.rows(part)
            continue
        ours, theirs = measure(part / "ioband"), measure(part / "mainline")
        for key, (ideal, got) in ours.items():
            rows.append(dict(zip(("scenario", "case", "metric"), key), ideal=ideal, ioband=got,
                             mainline=theirs[key][1] if key in theirs else None))
        if (part / "plain").exists():
            rows += unused(ours, theirs, measure(part / "plain"))
    args.results.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
