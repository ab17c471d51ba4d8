# SPDX-License-Identifier: GPL-2.0
# A kernel log without what looks like a fault of the kernel and is none; the lines that say so become empty, so that
# the others keep their numbers.
#
# - A per-CPU allocation or a vmalloc() that fails says so with a stack trace. Tests let allocations fail.
# - UML walks the VMAs of a process without its mmap_lock when a worker unmaps the AIO ring that a killed process has left:
#   mainline's. Such a report is kept back until its trace has said whether it is that one.

function out(blank) {
	for (i = 1; i <= n; i++)
		print blank && kept[i] ~ /WARNING: suspicious RCU usage|Call Trace:/ ? "" : kept[i]
	n = held = vmas = 0
}

/percpu: allocation failed, size=|vmalloc error: size / { left = 12 }
left-- > 0 && /Call Trace:/ { left = 0; $0 = "" }
/WARNING: suspicious RCU usage/ { out(0); held = 1 }
!held { print; next }
{ kept[++n] = $0 }
/flush_tlb_mm/ { vmas = 1 }
vmas && /aio_free_ring/ { out(1) }
n == 100 { out(0) }
END { out(0) }
