#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints tables of what the device lab measures, with the gate and without. Only lab.py judges results.

usage: tables.py DIRECTORY readers|cpus|yardsticks|depths

readers: latencies of a task that reads, one I/O at a time, in a group of weight 300, beside writers in a group of 100,
	 on each model of a device; the fair latency is that of the reader alone, divided by its share, 3/4
cpus:	 I/Os a second on 4 to 128 CPUs, of one group and of two at 300:100, on a device that does 4,000,000; "moves":
	 how often, per I/O, a CPU takes a lock or writes a variable that another CPU had last
depths:	 the reader of "readers" beside one kind of writers, where its p99 is above twice the fair latency or much of
	 the rate is lost: with the engine, without the gate, with a fixed number of I/Os in flight (RAM: also with CPUs
	 that wake each other in no time), and with a limit on the writers, I/Os a second
yardsticks: published figures of other controllers, and those of ioband; the lab's devices and CPUs are models, and
	 differ from those of the publications
"""
import argparse
import concurrent.futures
import os

from lab import simulate, times as run_times, total
from scenarios import FAST, FLASH, VOLUME, Scenario

NVME = "device cache servers=64 read_us=80 write_us=15 cache=256 program_us=200"
DISK = "servers=1 seek_us=8000 ncq=32 ns_per_byte=6.6"
# name: (device, seconds that are measured)
DEVICES = {
    "SATA SSD": ("device cache servers=8 read_us=80 write_us=20 cache=32 program_us=80", (3, 6)),
    "NVMe": (NVME, (3, 6)),
    "NVMe, garbage": (NVME + " gc_writes=64 gc_us=2000", (3, 6)),
    "flash": (FLASH, (3, 6)),
    "flash, tails": (FLASH + " tail_part=.01 tail_times=50", (3, 6)),
    "ULL flash": ("device servers servers=8 read_us=10 write_us=10 jitter=.05", (3, 4)),
    "disk": ("device servers " + DISK, (10, 60)),
    "RAID of 8": ("device servers disks=8 " + DISK, (10, 60)),
    "RAID of 24": ("device servers disks=24 " + DISK, (10, 60)),
    "volume": (VOLUME, (3, 6)),
    "link": ("device link rtt_us=2000 link_ns_per_byte=1 link_us=1 jitter=.1", (3, 6)),
    "RAM": ("device servers servers=4 read_us=2 write_us=8", (3, 4)),
}


def loads(seconds):
    """Returns {name: text of a writer's load}; `seconds`: (from, to) that are measured."""
    period = 4000 if seconds[1] > 10 else 50
    return {
        "4 KiB QD32": "load W op=write depth=32",
        "4 KiB QD128": "load W op=write depth=128",
        "64 KiB QD32": "load W op=write depth=32 bytes=65536",
        "writeback": f"load W op=writeback bytes=262144 depth=64 period_ms={period}",
    }


def readers(program, pool):
    """Prints the first table; latencies in us."""
    def run(text, gated):
        return pool.submit(simulate, program, Scenario("", "", text, []), 1, gated)

    rows = []
    for name, (device, seconds) in DEVICES.items():
        times = "measure {} {}\n".format(*seconds)
        alone = run(f"{device}\ngroup R 300\nload R depth=1\n{times}", False)
        for kind, load in loads(seconds).items():
            text = f"{device}\ngroup R 300\ngroup W 100\nload R depth=1\n{load}\n{times}"
            rows.append((name, kind, alone, run(text, False), run(text, True)))
    print(f"{'device':14} {'writers':12} {'p99 alone':>10} {'fair':>9} {'without':>9} {'ioband':>9}   "
          "I/Os a second without, with")
    for name, kind, alone, none, gated in rows:
        alone, none, gated = (one.result()[0] for one in (alone, none, gated))
        p99 = alone["R"]["p99_us"]
        print(f"{name:14} {kind:12} {p99:10.0f} {p99 * 4 / 3:9.0f} {none['R']['p99_us']:9.0f} {gated['R']['p99_us']:9.0f}   "
              f"{total(none):9.0f} {total(gated):9.0f}", flush=True)


# (device, lines before the scenario, writers, fixed numbers of I/Os in flight, limits of the writers in I/Os a second)
CURVES = [
    ("RAID of 8", "", "4 KiB QD32", (4, 6, 8, 12, 16, 24, 32), ()),
    ("RAID of 24", "", "4 KiB QD32", (4, 8, 12, 16, 20, 24, 32), ()),
    ("disk", "", "64 KiB QD32", (1, 2, 3, 4, 8, 32), ()),
    ("SATA SSD", "", "4 KiB QD32", (1, 2, 3, 4, 8, 32), (10000, 20000, 30000, 40000, 60000, 80000)),
    ("NVMe", "", "4 KiB QD32", (1, 2, 4, 6, 8, 32), (10000, 20000, 50000, 100000, 200000, 250000)),
    ("RAM", "", "4 KiB QD32", (2, 3, 4, 5, 6, 7, 8), ()),
    ("RAM", "cpus 8 wakeup=0 latency=0 transfer=0 queue=0 lock=0\n", "4 KiB QD32", (4, 6), ()),
]


def depths(program, pool):
    """Prints the trade between the rate and the reader's p99, us."""
    def run(text, gated=True):
        return pool.submit(simulate, program, Scenario("", "", text, []), 1, gated)

    rows = []
    for name, before, kind, pins, limits in CURVES:
        device, seconds = DEVICES[name]
        if name == "RAM":
            device += " jitter=.1"   # with exact times, I/Os of both groups would stay in step
        times = "measure {} {}\n".format(*seconds)
        alone = run(f"{before}{device}\ngroup R 300\nload R depth=1\n{times}", False)
        rest = f"\ngroup R 300\ngroup W 100\nload R depth=1\n{loads(seconds)[kind]}\n{times}"
        runs = [("ioband", run(before + device + rest)), ("without", run(before + device + rest, False))]
        runs += [(f"{nr} in flight", run(f"{before}{device} pinned={nr}{rest}")) for nr in pins]
        runs += [(f"limit {nr}", run(f"{before}{device}{rest}limit W wiops={nr}\n")) for nr in limits]
        rows += [(name + (" *" if before else ""), kind, alone, what, one) for what, one in runs]
    print(f"{'device':14} {'writers':12} {'twice fair':>10}   {'':12} {'I/Os a second':>13} {'p99':>9}")
    for name, kind, alone, what, one in rows:
        fair, got = alone.result()[0]["R"]["p99_us"] * 4 / 3, one.result()[0]
        p99 = got["R"]["p99_us"]
        print(f"{name:14} {kind:12} {2 * fair:10.0f}   {what:12} {total(got):13.0f} {p99:9.0f}", flush=True)
    print("* CPUs that wake each other, and lock, in no time")


def cpus(program, pool):
    """Prints the second table."""
    def run(text, gated):
        return pool.submit(run_times, program, Scenario("", "", text, []), 1, gated)

    rows = []
    for nr in 4, 8, 16, 32, 64, 128:
        head = f"cpus {nr}\ndevice servers servers=320 read_us=80 jitter=.05\ngroup A 300\ngroup B 100\n"
        times = "measure .2 .25\n"
        one = head + "load A depth=1024 think_us=1\n" + times
        two = head + "load A depth=512 think_us=1\nload B depth=512 think_us=1\n" + times
        rows.append((nr, run(one, False), run(one, True), run(two, False), run(two, True)))
    print("CPUs  one group: without, with, moves     two groups: without, with, moves     share of the first")
    for nr, *runs in rows:
        got = [one.result()[0] for one in runs]
        iops = [total(one["groups"]) for one in got]
        moves = [one["moves"] / max(all_ios, 1) for one, all_ios in zip(got, iops)]
        print("{:4} {:16.0f} {:11.0f} {:7.3f} {:18.0f} {:11.0f} {:7.3f} {:18.1%}".format(
            nr, *iops[:2], moves[1], *iops[2:], moves[3], got[3]["groups"]["A"]["iops"] / iops[3]), flush=True)


TENANTS = FLASH + "\ngroup victim 100\ngroup other 100\n"


def of_one(name, key="iops"):
    """Returns a function that takes a number of one group from the results of the first time that is measured."""
    return lambda got: got[0][name][key]


def slowed(what):
    """Returns a function that says how many times as large a number is in the second run as in the first."""
    return lambda runs: f"{what(runs[1]) / what(runs[0]):.2f} x"


# (published by, what, published figure, scenarios to run with the gate, function that makes a text of the results).
# With None for the function the second scenario runs without the gate, and beside_none() makes the text.
YARDSTICKS = [
    ("MQFQ, ATC'19", "I/Os a second of two tenants that share a device, 64 CPUs", "3.1 M",
     [f"cpus 64\n{FAST}\ngroup A 300\ngroup B 100\nload A depth=512 think_us=1\nload B depth=512 think_us=1\n"
      "measure .2 .25\n"], lambda runs: f"{total(runs[0][0]) / 1e6:.2f} M"),
    ("MQFQ, ATC'19", "slowdown of a tenant with little I/O beside one with much", "1.00 x (6.57 x without)",
     [TENANTS + "load victim depth=16\nload other depth=512\nmeasure 2 3\n", TENANTS + "load victim depth=16\nmeasure 2 3\n"],
     slowed(of_one("victim"))),
    ("MQFQ, ATC'19", "slowdown of a tenant that can use the whole device beside another one; 2 x is fair", "1.33 x (3.78 x without)",
     [TENANTS + "load victim depth=64\nload other depth=512\nmeasure 2 3\n", TENANTS + "load victim depth=64\nmeasure 2 3\n"],
     slowed(of_one("victim"))),
    ("Ren et al., ICPE'24", "part of 4 million I/Os a second that a scheduler costs", "up to 63.4 %",
     [f"cpus 16\n{FAST}\ngroup A 300\ngroup B 100\nload A depth=512 think_us=1\nload B depth=512 think_us=1\n"
      "measure .2 .25\n"] * 2, None),
    ("K2, RTSS'19", "a reader beside writers: by how much its p99 is shorter, and the writers are slower", "up to 10 x, 2.7 x",
     [f"{FLASH}\ngroup R 300\ngroup W 100\nload R depth=1\nload W op=write depth=256\nmeasure 3 5\n"] * 2, None),
    ("mClock, OSDI'10", "share of 300 in 300:100 before, while and after the device is ten times slower", "they hold",
     [f"{FLASH}\ngroup A 300\ngroup B 100\nload A depth=64\nload B depth=64\nat 3 device slow=10\nat 6 device slow=1\n"
      "measure 1 3\nmeasure 4 6\nmeasure 7 9\n"],
     lambda runs: ", ".join(f"{got['A']['iops'] / total(got):.1%}" for got in runs[0])),
    ("isol-bench, 2025", "1. overhead: part of the rate that one group loses, 64 CPUs", "least with io.cost",
     [f"cpus 64\n{FAST}\ngroup A 300\ngroup B 100\nload A depth=1024 think_us=1\nmeasure .2 .25\n"] * 2, None),
    ("isol-bench, 2025", "2. fairness of 4 KiB beside 64 KiB: share of device time, equal weights", "io.cost, most of the time",
     ["device servers servers=8 read_us=20 ns_per_byte=1\ngroup A 100\ngroup B 100\nload A depth=64\n"
      "load B depth=64 bytes=65536\nmeasure 3 6\n"],
     lambda runs: "{:.1%}".format(runs[0][0]["A"]["iops"] * 24.1 /
                                  (runs[0][0]["A"]["iops"] * 24.1 + runs[0][0]["B"]["iops"] * 85.5))),
    ("isol-bench, 2025", "3. 10000 beside 100, both at QD64: share of the first, and rate of both over no gate", "a trade",
     [FLASH + "\ngroup A 10000\ngroup B 100\nload A depth=64\nload B depth=64\nmeasure 2 4\n"] * 2, None),
    ("isol-bench, 2025", "4. bursts of weight 10000, each 50 ms, beside QD128: p50 over the time of an I/O alone", "io.cost, slowly",
     ["device servers servers=16 read_us=1000 jitter=.1\ngroup A 10000\ngroup B 100\nload A period_ms=50 random=1 start=1\n"
      "load B depth=128\nmeasure 5 15\n"], lambda runs: f"{runs[0][0]['A']['p50_us'] / 1000:.2f} x"),
]


def beside_none(title, runs):
    """Returns the text on two runs, with the gate and without."""
    with_gate, none = runs[0][0], runs[1][0]
    lost = 100 * (1 - total(with_gate) / total(none))
    if "R" in with_gate:
        return (f"{none['R']['p99_us'] / with_gate['R']['p99_us']:.1f} x, "
                f"{none['W']['iops'] / with_gate['W']['iops']:.2f} x")
    if title.startswith("3."):
        return f"{with_gate['A']['iops'] / total(with_gate):.1%}, {100 - lost:.1f} %"
    return f"{lost:.1f} %"


def yardsticks(program, pool):
    """Prints the third table."""
    rows = []
    for who, what, published, texts, say in YARDSTICKS:
        runs = [pool.submit(simulate, program, Scenario("", "", text, []), 1, say is not None or nr == 0)
                for nr, text in enumerate(texts)]
        rows.append((who, what, published, say, runs))
    print(f"{'published by':20} {'what':90} {'published':26} here")
    for who, what, published, say, runs in rows:
        got = [run.result() for run in runs]
        print(f"{who:20} {what:90} {published:26} {say(got) if say else beside_none(what, got)}", flush=True)


def main():
    """Parses the command line, and does what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("table", choices=["readers", "cpus", "yardsticks", "depths"])
    args = parser.parse_args()
    program = os.path.join(args.directory, "sim")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        {"readers": readers, "cpus": cpus, "yardsticks": yardsticks, "depths": depths}[args.table](program, pool)


if __name__ == "__main__":
    main()
