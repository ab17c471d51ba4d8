#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tables of what the device lab measures, beside what happens without a gate. They judge nothing: lab.py does.

usage: tables.py DIRECTORY readers|cpus

readers: latencies of a task that reads, one I/O at a time, in a group of weight 300, beside writers in one of 100, on
	 each model of a device; its fair latency is what it takes alone over its share, 3/4
cpus:	 I/Os a second on 4 to 128 CPUs, of one group and of two at 300:100, on a device that does 4,000,000
"""
import argparse
import concurrent.futures
import os

from lab import simulate, total
from scenarios import FLASH, VOLUME, Scenario

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
    """{name: text of a writer's load}; `seconds`: (from, to) that are measured."""
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


def cpus(program, pool):
    """Prints the second table."""
    def run(text, gated):
        return pool.submit(simulate, program, Scenario("", "", text, []), 1, gated)

    rows = []
    for nr in 4, 8, 16, 32, 64, 128:
        head = f"cpus {nr}\ndevice servers servers=320 read_us=80 jitter=.05\ngroup A 300\ngroup B 100\n"
        times = "measure .2 .25\n"
        one = head + "load A depth=1024 think_us=1\n" + times
        two = head + "load A depth=512 think_us=1\nload B depth=512 think_us=1\n" + times
        rows.append((nr, run(one, False), run(one, True), run(two, False), run(two, True)))
    print("CPUs  one group: without, with     two groups: without, with     share of the first")
    for nr, *runs in rows:
        got = [one.result()[0] for one in runs]
        print("{:4} {:16.0f} {:11.0f} {:18.0f} {:11.0f} {:18.1%}".format(
            nr, *(total(one) for one in got), got[3]["A"]["iops"] / total(got[3])), flush=True)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("table", choices=["readers", "cpus"])
    args = parser.parse_args()
    program = os.path.join(args.directory, "sim")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        {"readers": readers, "cpus": cpus}[args.table](program, pool)


if __name__ == "__main__":
    main()
