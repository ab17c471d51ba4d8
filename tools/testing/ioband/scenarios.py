# SPDX-License-Identifier: GPL-2.0
"""The lab's scenarios: devices at their real speed, loads of groups, and the results that are right.

SCENARIOS is a list of Scenario. A scenario measures one or more times (lines "measure"), and has a Right for each.
"""
import dataclasses


@dataclasses.dataclass
class Right:
    """The results that are right in one time that is measured.

    share: {group: part of all I/Os, 0 to 1}, within `points` hundredths; of bytes if `bytes` is set
    rate: I/Os a second of all groups, at least this part of those without the gate in that time, or of `of`
    least, most: {group: I/Os a second}
    p50_us, p99_us, max_us: {group: us at most}
    moves: how often, per I/O at most, a CPU takes a lock or writes a variable that another CPU had last; 0: any number
    """
    share: dict = dataclasses.field(default_factory=dict)
    points: float = 1
    bytes: bool = False
    rate: float = 0
    of: float = 0
    least: dict = dataclasses.field(default_factory=dict)
    most: dict = dataclasses.field(default_factory=dict)
    p50_us: dict = dataclasses.field(default_factory=dict)
    p99_us: dict = dataclasses.field(default_factory=dict)
    max_us: dict = dataclasses.field(default_factory=dict)
    moves: float = 0


@dataclasses.dataclass
class Scenario:
    """name: for the command line; title: for people; text: what sim reads; right: one for each time measured."""
    name: str
    title: str
    text: str
    right: list


FLASH = "device servers servers=64 read_us=100 write_us=100 jitter=.05"
FAST = "device servers servers=320 read_us=80 jitter=.05"
VOLUME = "device token read_us=700 write_us=700 jitter=.1 burst_iops=16000 base_iops=16000 credits=1"


def two(device, first, second, times="measure 2 6"):
    """Returns the text of a scenario with two groups on a device; first, second: "NAME WEIGHT LOAD...".

    times: lines that come last.
    """
    lines = [device]
    for group in first, second:
        name, weight, *_ = group.split()
        lines.append(f"group {name} {weight}")
    for group in first, second:
        name, _, load = group.split(" ", 2)
        lines.append(f"load {name} {load}")
    return "\n".join(lines) + "\n" + times + "\n"


SCENARIOS = [
    Scenario("reader-8ms", "weight 800 at QD1 beside 200 at QD64, 32 x 8 ms",
             two("device servers servers=32 read_us=8000 tags=64", "A 800 depth=1", "B 200 depth=64"),
             [Right(rate=.97, least={"A": 110}, p99_us={"A": 16000})]),
    Scenario("reader-flash", "600 at QD1 beside 100 at QD32, 64 x 100 us",
             two(FLASH, "A 600 depth=1", "B 100 depth=32"), [Right(rate=.97, p99_us={"A": 200})]),
    Scenario("reader-volume", "200 at QD1 beside 100 at QD256, 256 x 1 ms",
             two("device servers servers=256 read_us=1000 jitter=.05", "A 200 depth=1", "B 100 depth=256"),
             [Right(rate=.97, p99_us={"A": 2000})]),
    Scenario("reader-network", "200 at QD1 beside 100 at QD1000, 1000 x 10 ms",
             two("device servers servers=1000 read_us=10000 jitter=.05", "A 200 depth=1", "B 100 depth=1000"),
             [Right(rate=.97, p99_us={"A": 20000})]),
    Scenario("reader-disk", "600 at QD1 beside 100 at QD32, one at a time, 6.6 ms",
             two("device servers servers=1 read_us=6600", "A 600 depth=1", "B 100 depth=32", "measure 7 14"),
             [Right(share={"A": 6 / 7}, rate=.97, p99_us={"A": 2 * 6600 * 7 / 6})]),
    Scenario("linear-20ms", "100:300 at QD8 each, no tags, 8 x 20 ms",
             two("device servers servers=8 read_us=20000 tags=0", "A 100 depth=8", "B 300 depth=8", "measure 3 7"),
             [Right(share={"B": .75}, rate=.99)]),
    Scenario("linear-2.5ms", "100:300 at QD8 each, no tags, 8 x 2.5 ms",
             two("device servers servers=8 read_us=2500 tags=0", "A 100 depth=8", "B 300 depth=8"),
             [Right(share={"B": .75}, rate=.99)]),
    Scenario("flash", "300:100 at QD64 each, 64 x 100 us", two(FLASH, "A 300 depth=64", "B 100 depth=64"),
             [Right(share={"A": .75}, rate=.99)]),
    Scenario("sata", "300:100 at QD16 each, 8 x 80 us",
             two("device servers servers=8 read_us=80 jitter=.05 tags=32", "A 300 depth=16", "B 100 depth=16"),
             [Right(share={"A": .75}, rate=.99)]),
    Scenario("tails", "equal, QD32 beside QD128, 64 x 100 us, 1 % take 50 times as long",
             two("device servers servers=64 read_us=100 jitter=.3 tail_part=.01 tail_times=50", "A 100 depth=32",
                 "B 100 depth=128"),
             # 32 I/Os at a time, which take 149 us and come again after 7, are 47.9 % of 429,000 at most
             [Right(share={"A": .479}, points=2, rate=.97)]),
    Scenario("sizes", "equal, 8 KiB beside 16 KiB, each 16 ms of one of 16",
             two("device servers servers=16 read_us=16000 tags=64", "A 100 depth=32 bytes=8192",
                 "B 100 depth=32 bytes=16384"), [Right(share={"A": .5}, rate=.99)]),
    Scenario("mixed-8", "equal, 4 KiB at QD64 beside 64 KiB at QD64, 8 x (20 us + 1 ns a byte)",
             two("device servers servers=8 read_us=20 ns_per_byte=1 jitter=.05", "A 100 depth=64",
                 "B 100 depth=64 bytes=65536", "measure 3 6"),
             # this is the share of all I/Os if each group has half of the device's time
             [Right(share={"A": 85.5 / (24.1 + 85.5)}, rate=.97)]),
    Scenario("mixed-64", "equal, 4 KiB at QD128 beside 256 KiB at QD128, 64 x (20 us + 1 ns a byte)",
             two("device servers servers=64 read_us=20 ns_per_byte=1 jitter=.05", "A 100 depth=128",
                 "B 100 depth=128 bytes=262144", "measure 3 6"),
             [Right(share={"A": 282.1 / (24.1 + 282.1)}, points=.5, rate=.97)]),
    Scenario("link", "equal, 4 KiB at QD256 beside 1 MiB at QD32, a link of 1 GB/s, 2 ms",
             two("device link rtt_us=2000 link_ns_per_byte=1 link_us=1 jitter=.1", "small 100 depth=256",
                 "large 100 depth=32 bytes=1048576", "measure 4 8"), [Right(least={"small": 63000})]),
    Scenario("link-slow", "equal, 4 KiB at QD128 beside 256 KiB at QD32, 250 MB/s, 0.7 ms",
             two("device link rtt_us=700 link_ns_per_byte=4 link_us=1 jitter=.1", "small 100 depth=128",
                 "large 100 depth=32 bytes=262144", "measure 4 8"), [Right(least={"small": 20000})]),
    Scenario("hang", "a group's I/Os hang for 30 s; in the first 0.5 s, and later",
             two(FLASH, "hung 100 depth=256 hangs=1", "healthy 100 depth=256 op=write",
                 "at 3 device hang=1\nat 33 device hang=0\nmeasure 3 3.5\nmeasure 4 33\nmeasure 34 35"),
             [Right(least={"healthy": 440000}), Right(least={"healthy": 620000}), Right(share={"hung": .5}, rate=.97)]),
    Scenario("hang-part", "300 at QD64, for a while at QD16, beside 100 at QD1024, which hangs for 9 s, 64 x 1 ms",
             "device servers servers=64 read_us=1000 jitter=.05\ngroup A 300\ngroup B 100\nload A depth=64 stop=3\n"
             "load B depth=1024 hangs=1\nload A depth=16 start=3 stop=12\nload A depth=64 start=12\n"
             "at 3 device hang=1\nat 12 device hang=0\nmeasure 2 3\nmeasure 5 12\nmeasure 12.02 12.1\n",
             # 20 ms after the end of the hang
             [Right(share={"A": .75}, rate=.99), Right(least={"A": 15500}), Right(share={"A": .75}, rate=.97)]),
    Scenario("kinds", "equal, reads of 80 us beside writes of 400 us, each QD64",
             two("device servers servers=8 read_us=80 write_us=400 jitter=.05", "A 100 depth=64", "B 100 op=write depth=64",
                 "measure .5 1\nmeasure 2 6"),
             # each group has half of the device's time
             [Right(share={"A": 5 / 6})] * 2),
    Scenario("stall", "the device stands still for 5 s; 0.5 s after, and later",
             two(FLASH, "reads 100 depth=64", "writes 100 depth=64 op=write",
                 "at 3 device stall=1\nat 8 device stall=0\nmeasure 8 8.5\nmeasure 9 10"),
             [Right(share={"reads": .5}, points=2, rate=.97), Right(share={"reads": .5}, rate=.99)]),
    Scenario("writeback", "a group's reader beside its own 64 MiB of writeback every 3 s, and another group",
             "device servers servers=1 read_us=100 write_us=100 ns_per_byte=10\n"
             "group A 100\ngroup B 100\nload B depth=8 bytes=65536\n"
             "load A op=writeback bytes=1048576 depth=64 period_ms=3000 start=4 silent=1\n"
             "load A depth=1 think_us=5000 start=4\nmeasure 4 30\n",
             [Right(p99_us={"A": 60000})]),
    Scenario("bursts-link", "300 at QD1 beside 64 x 256 KiB of writeback each 50 ms, a link of 1 GB/s, 2 ms",
             two("device link rtt_us=2000 link_ns_per_byte=1 link_us=1 jitter=.1", "R 300 depth=1",
                 "W 100 op=writeback bytes=262144 depth=64 period_ms=50", "measure 3 6"),
             [Right(least={"W": 1267}, p99_us={"R": 2 * 2105 / .75})]),
    Scenario("volume", "300 at QD1 beside 100 at QD128, a volume of 16000 IOPS, 0.7 ms",
             two(VOLUME, "R 300 depth=1", "W 100 op=write depth=128", "measure 3 6"),
             [Right(rate=.97, p99_us={"R": 2 * 770 / .75})]),
    Scenario("ull", "300 at QD1 beside 100 at QD32, 8 x 10 us",
             two("device servers servers=8 read_us=10 write_us=10 jitter=.05", "R 300 depth=1",
                 "W 100 op=write depth=32", "measure 3 4"), [Right(rate=.97, p99_us={"R": 2 * 12 / .75})]),
    Scenario("slc", "300:100 at QD64 each, writes; the cache that they are programmed in fast is full, and is not",
             two("device cache servers=64 read_us=80 write_us=15 cache=256 program_us=200", "A 300 op=write depth=64",
                 "B 100 op=write depth=64", "at 4 device program_us=1500\nat 8 device program_us=200\n"
                 "measure 2 4\nmeasure 5 8\nmeasure 9 11"),
             # a trial with half as many I/Os in flight takes 130 ms here, and may be in the last two seconds
             [Right(share={"A": .75}, rate=.97)] * 2 + [Right(share={"A": .75}, rate=.95)]),
    Scenario("gc", "300:100, each QD32 of reads and of writes; garbage is collected, and is not",
             "device cache servers=64 read_us=80 write_us=15 cache=256 program_us=200\ngroup A 300\ngroup B 100\n"
             "load A depth=32\nload A op=write depth=32\nload B depth=32\nload B op=write depth=32\n"
             "at 4 device gc_writes=64 gc_us=2000\nat 8 device gc_writes=0\nmeasure 2 4\nmeasure 5 8\nmeasure 9 11\n",
             # shares are of time, and the groups' mixes of reads and writes differ: shares of I/Os differ a little
             # a read waits for the channel of its data: the more I/Os are in flight, the fewer channels are idle, and
             # without the gate 128 are in flight, more than with it
             [Right(share={"A": .75}, points=2, rate=.88)] * 3),
    Scenario("gc-reader", "300 at QD1 beside writes of 100 at QD128; garbage is collected, and writes take long for that",
             two("device cache servers=64 read_us=80 write_us=15 cache=256 program_us=200 gc_writes=64 gc_us=2000",
                 "R 300 depth=1", "W 100 op=write depth=128", "measure 3 6"),
             # reads wait for channels that are being programmed, as without the gate
             [Right(rate=.93)]),
    Scenario("volume-bursts", "300 at QD1 beside 64 x 256 KiB of writeback each 50 ms, a volume of 16000 IOPS, 0.7 ms",
             two(VOLUME, "R 300 depth=1", "W 100 op=writeback bytes=262144 depth=64 period_ms=50", "measure 3 6"),
             [Right(least={"W": 1267}, p99_us={"R": 2 * 770 / .75})]),
    Scenario("disk-reader", "300 at QD1 beside writes of 64 KiB of 100 at QD32, a disk of 7200 rpm with NCQ",
             two("device servers servers=1 seek_us=8000 ncq=32 ns_per_byte=6.6", "R 300 depth=1",
                 "W 100 op=write bytes=65536 depth=32", "measure 10 60"),
             # the disk does more I/Os the more it can choose from: 112 a second one at a time, and 164 with 32
             [Right(rate=.65, p99_us={"R": 2 * 15200 / .75})]),
    Scenario("raid-reader", "300 at QD1 beside writes of 100 at QD32, 24 disks of 7200 rpm with NCQ",
             two("device servers disks=24 servers=1 seek_us=8000 ncq=32 ns_per_byte=6.6", "R 300 depth=1",
                 "W 100 op=write depth=32", "measure 10 60"),
             # see "depths" in tables.py: with more I/Os in flight the disks do more, and the reader waits longer
             [Right(rate=.48, p99_us={"R": 2 * 15200 / .75})]),
    Scenario("swap", "weight 1 that swaps, 512 at once, beside 10000 and 100, 64 x 100 us",
             "device servers servers=64 read_us=100 write_us=100 jitter=.1\n"
             "group swapper 1\ngroup victim 10000\ngroup third 100\n"
             "load swapper op=write depth=512 must_pass=1 start=2\nload victim depth=64\nload third depth=64\n"
             "measure 3 5\n", [Right(most={"swapper": 6400}, least={"victim": 480000}, rate=.97)]),
    Scenario("swap-dip", "weight 1 that swaps, 60 at once, beside 10000 at QD8, 64 x 100 us: while the depth is measured, too",
             "device servers servers=64 read_us=100 write_us=100 jitter=.1\ngroup swapper 1\ngroup victim 10000\n"
             "load swapper depth=64 stop=1\nload victim depth=64 stop=1\n"
             "load swapper op=write depth=60 must_pass=1 start=1.5\nload victim depth=8 start=1.5\nmeasure 2 10\n",
             # the swapper's tasks wait for its debts, and meanwhile the victim alone does not fill the device
             [Right(rate=.8, max_us={"victim": 1000})]),
    Scenario("swap-few", "equal, one swaps, 512 at once, beside QD16, 64 x 100 us: the gate never opens beside it",
             "device servers servers=64 read_us=100 write_us=100 jitter=.1\ngroup swapper 100\ngroup other 100\n"
             "load swapper depth=64 stop=.5\nload other depth=64 stop=.5\n"
             "load swapper op=write depth=512 must_pass=1 start=.6\nload other depth=16 start=.6\nmeasure 1 6\n",
             # the swapper's tasks wait for debts beyond 100 ms; 16 in flight without a queue are 160,000 a second
             [Right(least={"other": 100000}, max_us={"other": 10000})]),
    Scenario("sparse", "weight 10000, an I/O every 50 ms, beside 100 at QD128, 16 x 1 ms",
             two("device servers servers=16 read_us=1000 jitter=.1", "sparse 10000 period_ms=50 random=1 start=1",
                 "batch 100 depth=128", "measure 5 25"), [Right(rate=.99, p50_us={"sparse": 2000})]),
    Scenario("credits", "volume of 16000 IOPS that falls to 300: 600 at QD1 beside 100 at QD32",
             "device token read_us=700 jitter=.1 burst_iops=16000 base_iops=300 credits=320000\n"
             "group A 600\ngroup B 100\ngroup reader 600\nload A depth=32 stop=25\nload B depth=32\n"
             "load reader start=30\nmeasure 5 10\nmeasure 40 60\n",
             [Right(share={"A": 6 / 7}, rate=.99), Right(share={"reader": 6 / 7}, points=4, rate=.97)]),
    Scenario("many", "equal, QD3000 each, 4096 x 10 ms",
             two("device servers servers=4096 read_us=10000 jitter=.05 tags=8192", "A 100 depth=3000", "B 100 depth=3000",
                 "measure 2 4"), [Right(share={"A": .5}, rate=.99)]),
    Scenario("disk-few", "300:100 at QD8 each, a disk of 7200 rpm with NCQ",
             two("device servers servers=1 seek_us=8000 ncq=32 ns_per_byte=6.6", "A 300 depth=8", "B 100 depth=8",
                 "measure 10 60"), [Right(share={"A": .75}, points=2, rate=.92)]),
    Scenario("disk-many", "equal, QD32 beside QD128, a disk of 7200 rpm with NCQ",
             two("device servers servers=1 seek_us=8000 ncq=32 ns_per_byte=6.6", "A 100 depth=32", "B 100 depth=128",
                 "measure 10 60"), [Right(share={"A": .5}, points=2, rate=.97)]),
    Scenario("raid", "300:100 at QD64 each, 8 disks of 7200 rpm with NCQ",
             two("device servers disks=8 servers=1 seek_us=8000 ncq=32 ns_per_byte=6.6", "A 300 depth=64",
                 "B 100 depth=64", "measure 10 60"), [Right(share={"A": .75}, points=2, rate=.92)]),
    Scenario("tree", "A 200 of b at QD2 and c at QD32, beside D 100 at QD32, 16 x 16 ms",
             "device servers servers=16 read_us=16000 tags=64\n"
             "group A 200\ngroup b 100 A\ngroup c 100 A\ngroup D 100\n"
             "load b depth=2\nload c depth=32\nload D depth=32\nmeasure 2 10\n",
             [Right(share={"b": .125, "c": .542, "D": .333}, rate=.99)]),
    Scenario("light", "100:1 below a group of weight 1",
             "device servers servers=1 read_us=10\ngroup a 1\ngroup b 100 a\ngroup c 1 a\n"
             "load b depth=8 think_us=1\nload c depth=8 think_us=1\nmeasure 2 6\n",
             [Right(share={"b": 100 / 101}, rate=.97)]),
    Scenario("trim", "discards of 1 GiB that take 1 ms beside writes of 2 MiB and reads of 128 KiB",
             "device servers servers=1 read_us=20 write_us=20 ns_per_byte=2 discard_us=1000\n"
             "group writes 100\ngroup reads 100\ngroup trim 100\n"
             "load writes op=write bytes=2097152 depth=4\nload reads bytes=131072 depth=8\n"
             "load trim op=discard bytes=1073741824 period_ms=20 start=3 stop=12\nmeasure 6 12\nmeasure 14 18\n",
             [Right(least={"trim": 45}), Right(least={"writes": 100, "reads": 1500})]),
    Scenario("cpus-busy", "300:100 at QD64 each, 1024 x 10 us, two CPUs that are busy; then the first alone",
             "cpus 2\n" + two("device servers servers=1024 read_us=10 jitter=.05", "A 300 depth=64 think_us=1",
                              "B 100 depth=64 think_us=1 stop=.7", "measure .3 .7\nmeasure .9 1.1"),
             [Right(share={"A": .75}, rate=.9), Right(rate=.99)]),
    Scenario("cpus-gone", "300:100 at QD16 each, 1024 x 100 us, 8 virtual CPUs on 4 of the host",
             "cpus 8 run=4000000 gone=4000000\n" + two("device servers servers=1024 read_us=100 jitter=.05",
                                                       "A 300 depth=16 think_us=1", "B 100 depth=16 think_us=1",
                                                       "measure 0 1\nmeasure 2 6"),
             # how long it takes until the engine notices this depends on when the virtual CPUs run
             [Right(rate=.55), Right(rate=.95)]),
    Scenario("cpus-16", "300:100 at QD512 each, 4,000,000 I/Os a second, 16 CPUs",
             "cpus 16\n" + two("device servers servers=320 read_us=80 jitter=.05", "A 300 depth=512 think_us=1",
                               "B 100 depth=512 think_us=1", "measure .2 .3"),
             [Right(share={"A": .75}, rate=.99, moves=.5)]),
    Scenario("cpus-64", "300:100 at QD512 each, 4,000,000 I/Os a second, 64 CPUs",
             "cpus 64\n" + two("device servers servers=320 read_us=80 jitter=.05", "A 300 depth=512 think_us=1",
                               "B 100 depth=512 think_us=1", "measure .2 .3"),
             [Right(share={"A": .75}, rate=.99, moves=.5)]),
    Scenario("cpus-below", "300:100 at QD64 each, which is less than the device does, 16 CPUs",
             "cpus 16\n" + two(FAST, "A 300 depth=64 think_us=1", "B 100 depth=64 think_us=1", "measure 1 3"),
             [Right(share={"A": .5}, rate=.99, moves=.01)]),
    Scenario("cpus-few", "300:100 at QD1 each, which seldom meet, so that the depth of the device is not known, 8 CPUs",
             "cpus 8\n" + two("device servers servers=64 read_us=100 jitter=.05", "A 300 cpu=0 depth=1 think_us=300 random=1",
                              "B 100 cpu=1 depth=1 think_us=300 random=1"), [Right(share={"A": .5}, rate=.97, moves=.1)]),
    Scenario("cpus-alone", "a group alone at QD76, 64 x 100 us, 8 CPUs, after another group has come and gone twice",
             "cpus 8\ndevice servers servers=64 read_us=100 jitter=.05\ngroup A 100\ngroup B 100\n"
             "load A depth=76 think_us=1\nload B depth=64 think_us=1 start=.2 stop=.5\n"
             "load B depth=1 think_us=1 start=.7 stop=.7005\nmeasure 9 10\n",
             [Right(rate=.99, moves=.01)]),
    Scenario("cpus-irq", "900 at QD1 beside 100 at QD40, 64 x 1 ms, and the first 17 ms in which it has 400 more; one CPU has all "
             "interrupts",
             "cpus 8\ndevice servers servers=64 read_us=1000 jitter=.05 irq_cpus=8\ngroup A 900\ngroup B 100\n"
             "load A depth=1 cpu=0\nload A depth=3 cpu=1 stop=2\nload B depth=40 cpu=0\nload B depth=400 start=2.013 cpu=0\n"
             "measure 1.5 2\nmeasure 2.013 2.03\n",
             [Right(rate=.99), Right(least={"A": 500})]),
    Scenario("cpus-apart", "300:100 at QD28 each, which is less than the device does, 64 CPUs, of which 4 have all interrupts",
             "cpus 64\n" + two("device servers servers=64 read_us=100 jitter=.2 irq_cpus=4",
                               "A 300 depth=28 think_us=5 random=1", "B 100 depth=28 think_us=5 random=1", "measure .5 2"),
             [Right(share={"A": .5}, rate=.99, moves=.1)]),
    Scenario("cpus-hang", "300:100 at QD512 each, 16 CPUs, with leases; all I/Os of B hang for a second, then none",
             "cpus 16\n" + two("device servers servers=320 read_us=80 jitter=.05", "A 300 depth=512 think_us=1",
                               "B 100 depth=512 think_us=1 hangs=1",
                               "at .3 device hang=1\nat 1.3 device hang=0\nmeasure .5 1.3\nmeasure 1.5 2"),
             # while a group hangs there are no leases: each I/O takes dev->lock
             [Right(rate=.85), Right(share={"A": .75}, rate=.97)]),
    Scenario("limit-16", "a limit of 1,000,000 I/Os a second, QD512, a device of 4,000,000, 16 CPUs",
             f"cpus 16\n{FAST}\ngroup A 100\nlimit A riops=1000000\nload A depth=512 think_us=1\nmeasure .2 .4\n",
             [Right(rate=.999, of=1e6, most={"A": 1.001e6}, p99_us={"A": 600})]),
    Scenario("limit-64", "a limit of 1,000,000 I/Os a second, QD512, a device of 4,000,000, 64 CPUs",
             f"cpus 64\n{FAST}\ngroup A 100\nlimit A riops=1000000\nload A depth=512 think_us=1\nmeasure .2 .4\n",
             [Right(rate=.999, of=1e6, most={"A": 1.001e6}, p99_us={"A": 600})]),
    Scenario("limit-above", "a limit of 1,000,000 I/Os a second for QD512 and QD32 below it, beside a group without limits",
             f"cpus 16\n{FAST}\ngroup up 100\ngroup a 100 up\ngroup b 100 up\ngroup free 100\nlimit up riops=1000000\n"
             "load a depth=512 think_us=1\nload b depth=32 think_us=1\nload free depth=64 think_us=1\nmeasure .2 .4\n",
             # b has at most 32 I/Os outstanding, each for 81 us and until the limit next dispatches, up to 50 us
             [Right(least={"a": .7e6, "b": .23e6, "free": .73e6}, most={"a": .77e6, "b": .3e6})]),
    Scenario("limit-gone", "a limit of 37,000 I/Os a second, QD32, 8 virtual CPUs on 2 of the host",
             "cpus 8 run=4000000 gone=12000000\ndevice servers servers=1024 read_us=100 jitter=.05\ngroup A 100\n"
             "limit A riops=37000\nload A depth=32 think_us=1\nmeasure .2 4.2\n",
             [Right(rate=.995, of=37000, most={"A": 37200})]),
    Scenario("slower", "300 at QD8 beside 100 at QD64, 32 x 100 us; 10 times slower, and fast again",
             two("device servers servers=32 read_us=100 jitter=.05", "A 300 depth=8", "B 100 depth=64",
                 "at 3 device slow=10\nat 6 device slow=1\nmeasure 2 3\nmeasure 4 6\nmeasure 7 9"),
             [Right(rate=.97, least={"A": 64000}), Right(rate=.97, least={"A": 6400}),
              Right(rate=.97, least={"A": 64000})]),
]
