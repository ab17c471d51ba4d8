# SPDX-License-Identifier: GPL-2.0
"""Tests of the judge of attacks: it finds what exceeds a bound by a little, and nothing else; plans are reproducible."""
import os
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, TOP + '/tools/testing/selftests/blkio/lib')
import attack_judge
import attack_plan
from attack_judge import NSEC, Event, Limit
from window_check import ADMIT_NS, COST_NS

MIB = 1 << 20
FOREVER = -NSEC
BEGIN = 100 * NSEC      # ns of the first event


def stream(count, size, gap_ns, group=7, op='W', begin=BEGIN, admitted=False):
    """Returns `count` events of the same size (bytes), gap_ns apart."""
    return [Event(begin + i * gap_ns, group, op, size, admitted) for i in range(count)]


def limit(key='wbps', rate=MIB, window_s=0, groups=(7,), history=None, data_only=False, buffered=False):
    """Returns a limit (rate per second) that holds from the beginning on, unless there is a history."""
    return Limit('g', key, set(groups), history or [(FOREVER, rate)], window_s, data_only, buffered=buffered)


class TestWindow(unittest.TestCase):
    """Events at R = 1 MiB/s, B = 64 KiB: 4 KiB are due every 3906250 ns."""

    DUE_NS = 4096 * NSEC // MIB

    def judged(self, events, *limits):
        """Returns how many limits were exceeded."""
        return len(attack_judge.judge(limits or [limit()], events))

    def test_exact_rate(self):
        """Events at R for long, after a burst of B, are within the limit."""
        burst = stream(16, 4096, 0)
        self.assertEqual(self.judged(burst + stream(2000, 4096, self.DUE_NS, begin=BEGIN + self.DUE_NS)), 0)

    def test_one_more(self):
        """A burst of B is within the limit, a burst of B and one I/O is not."""
        self.assertEqual(self.judged(stream(16, 4096, 0)), 0)
        self.assertEqual(self.judged(stream(17, 4096, 0)), 1)

    def test_little_too_fast(self):
        """One ns less between I/Os than due adds up to more than the clock allows for."""
        count = 16 + 2 * COST_NS + 2
        self.assertEqual(self.judged(stream(16, 4096, 0) + stream(count, 4096, self.DUE_NS - 1, begin=BEGIN + self.DUE_NS)), 1)

    def test_rounding(self):
        """An event may be COST_NS early because of rounding, and no ns more."""
        for early, faults in ((COST_NS, 0), (COST_NS + 1, 1)):
            late = stream(1, 4096, 0, begin=BEGIN + self.DUE_NS - early)
            self.assertEqual(self.judged(stream(16, 4096, 0) + late), faults)

    def test_admitted(self):
        """Admitted events are traced up to ADMIT_NS after the decision: the first may have been that much earlier."""
        first = stream(16, 4096, 0, admitted=True)
        for early, faults in ((ADMIT_NS + COST_NS, 0), (ADMIT_NS + COST_NS + 1, 1)):
            self.assertEqual(self.judged(first + stream(1, 4096, 0, begin=BEGIN + self.DUE_NS - early)), faults)

    def test_large_first(self):
        """An I/O larger than B counts as itself; the next has to wait."""
        self.assertEqual(self.judged(stream(1, 4 * MIB, 0)), 0)
        self.assertEqual(self.judged(stream(1, 4 * MIB, 0) + stream(1, 4096, 0)), 1)
        self.assertEqual(self.judged(stream(1, 4 * MIB, 0) + stream(1, 4096, 0, begin=BEGIN + self.DUE_NS)), 0)

    def test_late_burst(self):
        """A burst after a long pause has no more than B: what was not used in the pause is not saved."""
        self.assertEqual(self.judged(stream(1, 4096, 0) + stream(17, 4096, 0, begin=BEGIN + 50 * NSEC)), 1)

    def test_window(self):
        """With a window W of one second of R, 16 + 256 I/Os of 4 KiB at once are within the limit, one more is not."""
        self.assertEqual(self.judged(stream(272, 4096, 0), limit(window_s=1)), 0)
        self.assertEqual(self.judged(stream(273, 4096, 0), limit(window_s=1)), 1)

    def test_ios(self):
        """10 IOPS are one I/O at once, then one every 100 ms; pieces count, bytes do not."""
        ios = limit('wiops', 10)
        self.assertEqual(self.judged(stream(50, MIB, NSEC // 10), ios), 0)
        self.assertEqual(self.judged(stream(2, 512, NSEC // 10 - COST_NS - 1), ios), 1)
        self.assertEqual(self.judged(stream(2, 0, 0), ios), 1)
        self.assertEqual(self.judged(stream(1000, 0, 0), limit()), 0)
        self.assertEqual(self.judged(stream(11, 512, 0), limit('wiops', 10, 1)), 0)
        self.assertEqual(self.judged(stream(12, 512, 0), limit('wiops', 10, 1)), 1)

    def test_large_rate(self):
        """B is 5 ms of R where that is more: 80 KiB at 16 MiB/s."""
        self.assertEqual(self.judged(stream(20, 4096, 0), limit(rate=16 * MIB)), 0)
        self.assertEqual(self.judged(stream(21, 4096, 0), limit(rate=16 * MIB)), 1)

    def test_direction_and_group(self):
        """A limit on writes ignores reads and other groups; discards are writes."""
        self.assertEqual(self.judged(stream(99, 4096, 0, op='R')), 0)
        self.assertEqual(self.judged(stream(99, 4096, 0, group=8)), 0)
        self.assertEqual(self.judged(stream(17, 4096, 0, op='D')), 1)
        self.assertEqual(self.judged(stream(17, 4096, 0, op='R'), limit('rbps')), 1)

    def test_subtree(self):
        """Two groups that are each within the limit exceed the limit above them together."""
        events = sorted(stream(10, 4096, 0, group=7) + stream(10, 4096, 0, group=8), key=lambda event: event.due_ns)
        self.assertEqual(self.judged(events, limit(), limit(groups=(8,))), 0)
        self.assertEqual(self.judged(events, limit(groups=(7, 8))), 1)

    def test_metadata(self):
        """Metadata may use a window W; data that is judged with it may not."""
        events = stream(20, 4096, 0)
        for event in events:
            event.meta = True
        both = limit(data_only=True), limit(window_s=1)
        self.assertEqual(self.judged(events, *both), 0)
        self.assertEqual(self.judged(events + stream(17, 4096, 0), *both), 1)

    def test_one_call(self):
        """The metadata of one system call may exceed W; that of the next call must wait until the first is repaid."""
        first, second = (stream(300, 4096, 0, begin=BEGIN + ns, admitted=True) for ns in (0, 40_000_000))
        for event in first + second:
            event.meta = True
        self.assertEqual(self.judged(first, limit(window_s=1)), 0)
        self.assertEqual(self.judged(first + second, limit(window_s=1)), 1)

    def test_call_of_a_device_above(self):
        """A call to a loop device counts as the I/Os that the disk makes of it, or its bytes; the largest call counts."""
        bios = [attack_judge.Queued(BEGIN + ns, 'R', attack_judge.LARGEST + 512, 'R', 'task', 3) for ns in (0, 1000, NSEC)]
        for key, units in (('riops', 4), ('rbps', 2 * bios[0].size), ('wiops', 0)):
            self.assertEqual(attack_judge.asked_at_once(Limit('g', key, {7}, [(FOREVER, 1)], 0, stacked=True, asked=bios)), units)

    def test_call_beside_pages(self):
        """Where pages may be dirty, those of W and the metadata of one call, but no more, may be written at once."""
        for pages, faults in ((272, 0), (273, 1)):
            written = stream(pages, 4096, 0) + stream(10, 4096, 0, admitted=True)
            for event in written[pages:]:
                event.meta = True
            self.assertEqual(self.judged(written, limit(window_s=1, buffered=True)), faults)


class TestFlips(unittest.TestCase):
    """Limits that change: in a window the largest rate in force counts."""

    def history(self, *rates):
        """Returns a history with another rate in each second, from BEGIN on."""
        return [(FOREVER, rates[0])] + [(BEGIN + (i + 1) * NSEC, rate) for i, rate in enumerate(rates[1:])]

    def test_stretches(self):
        """stretches() returns the times with at most a rate; None is no limit."""
        history = self.history(1, 3, 2, None, 1)
        self.assertEqual(attack_judge.stretches(history, 1), [(FOREVER, BEGIN + NSEC), (BEGIN + 4 * NSEC, None)])
        self.assertEqual(attack_judge.stretches(history, 2), [(FOREVER, BEGIN + NSEC), (BEGIN + 2 * NSEC, BEGIN + 3 * NSEC),
                                                              (BEGIN + 4 * NSEC, None)])
        self.assertEqual(attack_judge.stretches(history, 3), [(FOREVER, BEGIN + 3 * NSEC), (BEGIN + 4 * NSEC, None)])

    def test_old_rate_after_flip(self):
        """Events at the old rate after the limit was lowered exceed it; events at each rate in its time do not."""
        history = self.history(4 * MIB, MIB)
        fast = stream(1024, 4096, NSEC // 1024)
        rest = BEGIN + NSEC + 1
        self.assertEqual(attack_judge.judge([limit(history=history)], fast + stream(256, 4096, NSEC // 256, begin=rest)), [])
        self.assertEqual(len(attack_judge.judge([limit(history=history)], fast + stream(256, 4096, NSEC // 1024, begin=rest))), 1)

    def test_no_limit(self):
        """A burst is within the limit while there is none, and exceeds it before and after."""
        history = self.history(MIB, None, MIB)
        self.assertEqual(attack_judge.judge([limit(history=history)], stream(99, 4096, 0, begin=BEGIN + 3 * NSEC // 2)), [])
        self.assertEqual(len(attack_judge.judge([limit(history=history)], stream(99, 4096, 0, begin=BEGIN + 3 * NSEC))), 1)


class TestTrace(unittest.TestCase):
    """Traces read as events."""

    LINES = (
        '  dd-9 [000] ..... 5.000001: ioband_admit: dev=250,0 cg=7 op=W sector=8 bytes=4096 ns=5000001000 piece=0 debt=0',
        '  dd-9 [000] ..... 5.000002: block_bio_queue: 250,0 WSM 8 + 8 [dd]',
        '  kworker/0:1-9 [000] ..... 6.000000: ioband_release: dev=250,0 cg=7 op=W sector=8 bytes=4096 ns=6000000000 '
        'piece=0 waited=1000 late=300',
        '  kworker/0:1-9 [000] ..... 6.000001: block_bio_queue: 250,0 FWFS 8 + 8 [kworker/0:1]',
        '  dd-9 [000] ..... 6.1: ioband_admit: dev=250,0 cg=7 op=W sector=99 bytes=512 ns=6100000000 piece=0 debt=1',
        '  dd-9 [000] ..... 7.000000: block_bio_queue: 250,0 WS 4096 + 16 [dd]',
        '  dd-9 [000] ..... 7.000000: block_bio_queue: 8,0 WS 4096 + 16 [dd]',
        '  dd-9 [000] ..... 7.000000: block_bio_queue: 250,0 R 4096 + 16 [dd]',
    )

    def test_parse(self):
        """Each field is read, and which of two bios of a sector was metadata."""
        events, queued = attack_judge.parse(self.LINES, '250,0'.replace(',', ':'))
        self.assertEqual([(e.due_ns, e.admitted, e.debt, e.meta) for e in events],
                         [(5000001000, True, False, True), (5999999700, False, False, False), (6100000000, True, True, False)])
        self.assertEqual([(bio.op, bio.size) for bio in queued], [('W', 4096), ('W', 4096), ('W', 8192), ('R', 8192)])

    def test_parse_loop(self):
        """A loop device drops REQ_META: its own last bio of a sector says whether a charge of the disk is metadata."""
        bio = '  dd-9 [000] ..... 5.000000: block_bio_queue: 7,1 {} 8 + 8 [dd]'
        charge = '  dd-9 [000] ..... 5.000001: ioband_admit: dev=250,0 cg=7 op=W sector=8 bytes=4096 ns=5000001000 piece=0 debt=0'
        lines = [bio.format('WSM'), charge, bio.format('WS'), charge]
        self.assertEqual([event.meta for event in attack_judge.parse(lines, '250:0', '7:1')[0]], [True, False])
        self.assertEqual([event.meta for event in attack_judge.parse(lines, '250:0')[0]], [False, False])

    def test_strays(self):
        """8192 bytes of 250,0 were charged to no group; 512 bytes that were charged and not traced do not hide them."""
        events, queued = attack_judge.parse(self.LINES, '250:0')
        self.assertEqual(attack_judge.stray_bytes(events, queued, {7}), 8192 - 512)
        self.assertEqual(attack_judge.stray_bytes(events, queued, {8}), 4096 + 8192)

    def test_lateness_is_bounded(self):
        """A release that says that it is very late counts as LATE_NS late."""
        line = self.LINES[2].replace('late=300', 'late=999999999')
        self.assertEqual(attack_judge.parse([line], '250:0')[0][0].due_ns, 6 * NSEC - attack_judge.LATE_NS)


class TestLatency(unittest.TestCase):
    """The bound of p99 beside an attack is twice p99 alone and 1 ms."""

    def test_bound(self):
        """Latencies at the bound, above it, one of a hundred above it, and no latencies at all."""
        alone = [100000] * 20
        self.assertIsNone(attack_judge.slow('reads', alone, [1200000] * 200))
        self.assertIsNotNone(attack_judge.slow('reads', alone, [1200001] * 200))
        self.assertIsNone(attack_judge.slow('reads', alone, [100000] * 198 + [9999999] * 2))
        self.assertIsNotNone(attack_judge.slow('reads', alone, [100000] * 197 + [9999999] * 3))
        self.assertIsNotNone(attack_judge.slow('reads', alone, []))


class TestPlan(unittest.TestCase):
    """Plans that are made from seeds."""

    def test_reproducible(self):
        """A seed gives the same plan twice."""
        self.assertEqual([attack_plan.make_plan(seed) for seed in range(300)], [attack_plan.make_plan(seed) for seed in range(300)])

    def test_coverage(self):
        """200 seeds have each route, file system, version of cgroups and stacked device."""
        plans = [attack_plan.make_plan(seed) for seed in range(1, 201)]
        self.assertEqual({task.route for plan in plans for task in plan.tasks}, {route.name for route in attack_plan.ROUTES})
        self.assertEqual({plan.fs for plan in plans}, set(attack_plan.FILE_SYSTEMS))
        self.assertEqual({plan.stack for plan in plans}, set(attack_plan.STACKS))
        self.assertEqual({plan.version for plan in plans}, {'v1', 'v2'})

    def test_sense(self):
        """Limits are in their range, groups of tasks exist, and attackers are below a limit."""
        for plan in map(attack_plan.make_plan, range(1000)):
            for limits in plan.limits.values():
                for key, rate in limits.items():
                    low, high = attack_plan.RATE_BYTES if key.endswith('bps') else (1, attack_plan.RATE_IOS[1])
                    self.assertTrue(low <= rate <= high, str(plan))
            for task in plan.tasks:
                self.assertIn(task.group, plan.groups)
                if task.role == 'attack':
                    self.assertTrue(any(plan.limited(task.group, op) for op in task.route_ops()), str(plan))


if __name__ == '__main__':
    unittest.main()
