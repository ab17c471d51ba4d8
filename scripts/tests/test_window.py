# SPDX-License-Identifier: GPL-2.0
"""Tests of window_check.py: the bios of a call that its task has paid for are one I/O, and no others are."""
import os
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, TOP + '/tools/testing/selftests/blkio/lib')
import window_check
from window_check import NO_SECTOR, NSEC

KIB, MIB = 1 << 10, 1 << 20
PART = 64 * KIB         # bytes: B at 1 MiB/s
PART_NS = PART * NSEC // MIB


def line(what, ns, sector, size, task=9, late=None, group=7):
    """Returns a line of a trace; what: admit, hold, release or return; ns and late: ns; size: bytes; group: the id of a cgroup."""
    return (f'  dd-{task} [000] ..... 5.000001: ioband_{what}: dev=250,0 cg={group} op=W sector={sector} bytes={size} ns={ns} piece=0'
            + (f' waited=1 late={late}' if what == 'release' else ' debt=0'))


def call(ns, bios, task=9, apart=PART // 512, paid=True):
    """Returns the lines of a call of bios of PART bytes: the task waits from ns on until that is paid, and submits them."""
    done = ns + bios * PART_NS - PART_NS
    lines = [line('hold', ns, NO_SECTOR, bios * PART, task), line('release', done, NO_SECTOR, 0, 2, 0)] if paid else []
    lines += [line('admit', done + i, 1000 + i * apart, PART, task) for i in range(bios)]
    return lines + [line('return', done + bios, NO_SECTOR, 0, task)]


class TestWindow(unittest.TestCase):
    """Traces of a limit of 1 MiB/s."""

    def parsed(self, lines):
        """Returns the events of a trace."""
        with tempfile.NamedTemporaryFile('w', encoding='ascii') as trace:
            trace.write('\n'.join(lines))
            trace.flush()
            return window_check.parse(trace.name, '250:0')

    def over(self, lines, unit='bytes', rate=MIB):
        """Returns whether the worst window is over its bound."""
        return window_check.upper(window_check.Limit(f'w:{unit}:{rate}:7'), self.parsed(lines))[0] > 0

    def under(self, lines):
        """Returns whether less than R leaves while something waits."""
        return window_check.lower(window_check.Limit(f'w:bytes:{MIB}:7:busy'), self.parsed(lines))[1] > 0

    def test_call(self):
        """Four bios that a task has paid for are one I/O."""
        events = [event for event in self.parsed(call(0, 4)) if event.kind == 'call']
        self.assertEqual([(event.size, event.ios, event.part, event.late) for event in events], [(4 * PART, 4, 4 * PART, 0)])
        self.assertFalse(self.over(call(0, 4)))
        self.assertFalse(self.over(call(0, 4, apart=4096)))
        self.assertFalse(self.over(call(0, 4), 'ios', 1))

    def test_no_call(self):
        """Bios that nobody waited for, of the next call, of another task, or owed, are I/Os of their own."""
        self.assertTrue(self.over(call(0, 4, paid=False)))
        self.assertTrue(self.over(call(0, 2) + call(PART_NS, 2, paid=False)))
        self.assertTrue(self.over([text.replace('debt=0', 'debt=1') for text in call(0, 4)]))
        self.assertTrue(self.over(call(0, 2) + call(PART_NS, 2, task=10, paid=False)))

    def test_moved(self):
        """What a task submits after it has moved is no I/O of the call that its old group paid for."""
        for moved in (call(0, 1) + [line('admit', 1, 1000 + PART // 512, PART, group=8)],
                      call(0, 1)[:2] + [line('admit', 1, 1000, PART, group=8)]):
            events = [event for event in self.parsed(moved) if event.ios]
            self.assertEqual([(event.group, event.kind, event.size) for event in events][-1], (8, 'admit', PART))

    def test_second_call(self):
        """After a call the next one of the same size is due when it has been earned, and not a microsecond earlier."""
        self.assertFalse(self.over(call(0, 4) + call(4 * PART_NS, 4)))
        self.assertTrue(self.over(call(0, 4) + call(4 * PART_NS - 1000, 4)))

    def test_pieces(self):
        """A piece of a bio of the call is an I/O of the call."""
        lines = call(0, 2)
        lines.insert(3, line('admit', PART_NS, 1008, 0))
        events = [event for event in self.parsed(lines) if event.kind == 'call']
        self.assertEqual([(event.size, event.ios) for event in events], [(2 * PART, 3)])

    def test_busy(self):
        """While a task waits, the limit gives R."""
        waits = [line('hold', 0, NO_SECTOR, PART, 50)]
        full = [entry for i in range(8) for entry in call(i * PART_NS, 1)]
        self.assertFalse(self.under(full[:1] + waits + full[1:]))
        self.assertTrue(self.under(full[:1] + waits + full[1:12] + full[15:]))


if __name__ == '__main__':
    unittest.main()
