#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Samples of what kernels print when something is wrong, and when nothing is, through scripts/lib/console-check."""
import pathlib
import subprocess
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[1] / "lib/console-check"

BAD = {
    "warn": "WARNING: block/bio.c:1749 at bio_endio+0x12/0x40, CPU#1: fio/123",
    "warn, old form": "WARNING: CPU: 1 PID: 123 at block/bio.c:1749 bio_endio+0x12/0x40",
    "kasan": "BUG: KASAN: slab-use-after-free in ioband_hold+0x10/0x20",
    "ubsan": "UBSAN: array-index-out-of-bounds in block/blk.c:12:3",
    "circular": "WARNING: possible circular locking dependency detected",
    "circular, first word lost": "possible circular locking dependency detected",
    "irq state": "WARNING: inconsistent lock state",
    "irq order": "WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected",
    "rcu usage": "WARNING: suspicious RCU usage",
    "lockdep off": "turning off the locking correctness validator.",
    "unregistered lock": "INFO: trying to register non-static key.",
    "lock kept": "WARNING: lock held when returning to user space!",
    "kmemleak": "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "kmemleak gave up": "kmemleak: Cannot allocate a kmemleak_object structure",
    "odebug": "ODEBUG: free active (active state 0) object: 000000006 object type: hrtimer hint: x+0x0/0x50",
    "odebug gave up": "ODEBUG: Out of memory. ODEBUG disabled",
    "hung task": "INFO: task fio:123 blocked for more than 120 seconds.",
    "hung task in io wait": "INFO: task fio:123 blocked in I/O wait for more than 120 seconds.",
    "trace": "Call Trace:",
    "trace, arm64": "Call trace:",
    "oops": "Oops: general protection fault, probably for non-canonical address: 0000 [#1] SMP KASAN",
    "panic": "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100",
    "uml fault": "Kernel panic - not syncing: Kernel mode fault at addr 0x0, ip 0x60012345",
    "bug on": "kernel BUG at block/bio.c:100!",
    "refcount": "refcount_t: underflow; use-after-free.",
    "list": "list_add corruption. next->prev should be prev (0000), but was 0000. (next=0000).",
    "list del": "list_del corruption, 0000->next is LIST_POISON1 (dead000000000100)",
    "soft lockup": "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [kworker/0:1:9]",
    "rcu stall": "rcu: INFO: rcu_sched self-detected stall on CPU",
    "rcu stall elsewhere": "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "atomic sleep": "BUG: sleeping function called from invalid context at mm/page_alloc.c:1",
    "scheduling": "BUG: scheduling while atomic: fio/123/0x00000002",
    "workqueue": "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 31s!",
    "slab": "BUG kmalloc-64 (Not tainted): Right Redzone overwritten",
    "page allocation": "kworker/0:1: page allocation failure: order:0, mode:0x800(GFP_NOWAIT)",
    "oom": "fio invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
}

GOOD = [
    "Linux version 7.3.4 (ioband@build) #1 SMP",
    "Kernel command line: mem=1G panic_on_oops=1 hung_task_panic=1 kasan.fault=report",
    "ODEBUG: selftest passed",
    "ODEBUG: 20 of 20 active objects replaced",
    "kmemleak: Kernel memory leak detector initialized (mem pool available: 15000)",
    "kmemleak: Automatic memory scanning thread started",
    "kmemleak: Cannot allocate a scan area, scanning the full object",
    "KernelAddressSanitizer initialized",
    "kcsan: non-strict mode configured - use CONFIG_KCSAN_STRICT=y to see all data races",
    "Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar",
    "FAULT_INJECTION: forcing a failure.",
    "Buffer I/O error on dev nullb0, logical block 0, async page read",
    "I/O error, dev nullb0, sector 2048 op 0x1:(WRITE) flags 0x8800 phys_seg 1 prio class 2",
    "EXT4-fs (nullb0): mounted filesystem r/w with ordered data mode.",
    "md/raid1:md0: Disk failure on nullb1, disabling device.",
    "INFO: The task fio:123 has been waiting for writeback completion for more than 40 seconds.",
    "[DEBUG] nothing of interest",
    "ok 3 - nothing is lost",
]


def run(text):
    """Runs console-check on a log with that text; returns its exit status and output."""
    with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
        log.write(text)
        log.flush()
        done = subprocess.run([CHECK, log.name], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


class ConsoleCheck(unittest.TestCase):
    def test_each_bad_line_alone_is_found_and_shown(self):
        for name, line in BAD.items():
            for prefix, suffix in (("", ""), ("[   12.345678] ", "\r"), ("<4>[T123] ", "")):
                with self.subTest(name, prefix=prefix):
                    status, output = run(f"booting\n{prefix}{line}{suffix}\ndone\n")
                    self.assertEqual(status, 1)
                    self.assertIn(line, output)
                    self.assertNotIn("booting", output)

    def test_good_lines_pass(self):
        for line in GOOD:
            with self.subTest(line):
                self.assertEqual(run(f"[    0.000000] {line}\n")[0], 0)

    def test_only_the_trace_of_a_failed_allocation_is_benign(self):
        for first in ("percpu: allocation failed, size=16 align=8 atomic=0, failed to populate",
                      "python3: vmalloc error: size 262144, align 0x1, vm_struct allocation failed, mode:0xdc0(GFP_KERNEL|__GFP_ZERO)"):
            report = f"{first}\nCPU: 0 PID: 7\nStack:\nCall Trace:\n f()\n"
            self.assertEqual(run(report)[0], 0)
            self.assertEqual(run(report + "Call Trace:\n")[0], 1)

    def test_only_a_report_of_vmas_under_an_aio_ring_is_benign(self):
        report = ("[    1.000000] WARNING: suspicious RCU usage\nlib/maple_tree.c:720 suspicious rcu_dereference_check() usage!\n"
                  "Call Trace:\n [<60118ffd>] ? flush_tlb_mm+0xfd/0x280\n [<60585d88>] ? truncate_pagecache+0x58/0xa0\n"
                  " [<6090cc0e>] ? aio_free_ring+0x7e/0x340\n")
        # the same report from another function
        other = report.replace("aio_free_ring", "ioband_hold")
        self.assertEqual(run(report + "fine\n" + report)[0], 0)
        self.assertEqual(run(other)[0], 1)
        self.assertEqual(run(report + other)[0], 1)
        self.assertEqual(run(other + report)[0], 1)
        self.assertEqual(run(report.replace("flush_tlb_mm", "ioband_kick"))[0], 1)
        self.assertEqual(run(report + "Call Trace:\n")[0], 1)
        self.assertEqual(run("WARNING: suspicious RCU usage\n" + "noise\n" * 200 + report)[0], 1)

    def test_only_one_report_of_one_leaked_object_is_benign(self):
        report = "kmemleak: 1 new suspected memory leaks (see /sys/kernel/debug/kmemleak)\n"
        self.assertEqual(run(report)[0], 0)
        self.assertEqual(run(report + report)[0], 1)
        self.assertEqual(run(report.replace("1 new", "2 new"))[0], 1)
        self.assertEqual(run(report.replace("1 new", "11 new"))[0], 1)

    def test_a_benign_line_hides_no_bad_one(self):
        self.assertEqual(run("\n".join([*GOOD, "Call Trace:", *GOOD]) + "\n")[0], 1)

    def test_binary_noise_hides_nothing(self):
        self.assertEqual(run("abc\0\1\2\nCall Trace:\n")[0], 1)

    def test_no_log_is_an_error(self):
        self.assertEqual(run("")[0], 2)
        done = subprocess.run([CHECK, "/nonexistent"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)

    def test_standard_input(self):
        done = subprocess.run([CHECK], input="fine\nOops: 0000\n", capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
