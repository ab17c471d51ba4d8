// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for qemu that counts transfers of cache lines between CPUs of the guest.
 *
 * A transfer is an access by a CPU to a line that another CPU has written to since the
 * first CPU last accessed it.  Where each CPU has a cache of its own, a transfer is a miss,
 * however large the caches are.  The plugin counts accesses by the guest's kernel, between
 * marks.  A mark is an instruction that does nothing, see cache_mark.c: the first mark begins
 * a phase, the next one ends it, and so on.
 *
 * qemu runs as many CPUs at the same time as the host has, and each for a while.  So that CPUs
 * take turns as often as on a real machine, each CPU gives way to the others after some
 * accesses; a line that all CPUs write to then moves in each turn.
 *
 * usage: qemu-system-x86_64 -plugin cache_lines.so,out=FILE,mib=GUEST_MEMORY
 * Writes a line for each phase: its number, transfers, instructions; then a line for each
 * place of the kernel's code that had any: address, transfers.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<qemu-plugin.h>)
#include <qemu-plugin.h>
#else
/* The parts of qemu's interface for plugins, version 1, that this plugin uses. */
typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
#define QEMU_PLUGIN_EXPORT	__attribute__((visibility("default")))
#define QEMU_PLUGIN_VERSION	1
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };
typedef void (*qemu_plugin_mem_cb)(unsigned int, qemu_plugin_meminfo_t, uint64_t, void *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned int, void *),
					    enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  void (*cb)(unsigned int, void *),
					  enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_mem_cb cb,
				      enum qemu_plugin_cb_flags flags,
				      enum qemu_plugin_mem_rw rw, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *addr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *addr);
#endif

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define LINE_SHIFT	6
#define MAX_CPUS	64
#define KERNEL		0xffff000000000000ULL
/* The number of accesses after which a CPU gives way to the others: fewer than an I/O takes. */
#define TURN		256
#define PLACES		(1U << 16)

/* see cache_mark.c */
static const unsigned char mark[] = { 0x0f, 0x1f, 0x84, 0x00, 0x0a, 0xb0, 0x10, 0x0a };

static struct cpu {
	_Alignas(128) uint64_t transfers;
	uint64_t insns;
	unsigned int accesses;
} cpus[MAX_CPUS];

static struct place {
	_Atomic uint64_t pc;
	_Atomic uint64_t transfers;
} places[PLACES];

/* For each line, a bit for each CPU that has not accessed it since another CPU wrote to it. */
static _Atomic uint64_t *stale;
static uint64_t lines;
static _Atomic bool counting;
static unsigned int phase;
static FILE *out;

static void count_place(uint64_t pc)
{
	for (unsigned int i = (pc * 0x9e3779b97f4a7c15ULL) >> 48;; i++) {
		struct place *place = &places[i % PLACES];
		uint64_t none = 0;

		if (atomic_load(&place->pc) == pc ||
		    atomic_compare_exchange_strong(&place->pc, &none, pc) || none == pc) {
			atomic_fetch_add_explicit(&place->transfers, 1, memory_order_relaxed);
			return;
		}
	}
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *pc)
{
	struct qemu_plugin_hwaddr *addr;
	uint64_t own = 1ULL << cpu, line, before;

	if (!atomic_load_explicit(&counting, memory_order_relaxed))
		return;
	addr = qemu_plugin_get_hwaddr(info, vaddr);
	if (!addr || qemu_plugin_hwaddr_is_io(addr))
		return;
	line = qemu_plugin_hwaddr_phys_addr(addr) >> LINE_SHIFT;
	if (line >= lines)
		return;
	if (qemu_plugin_mem_is_store(info)) {
		before = atomic_load_explicit(&stale[line], memory_order_relaxed);
		if (before != ~own)
			before = atomic_exchange(&stale[line], ~own);
	} else {
		before = atomic_load_explicit(&stale[line], memory_order_relaxed);
		if (before & own)
			atomic_fetch_and(&stale[line], ~own);
	}
	if (before & own) {
		cpus[cpu].transfers++;
		count_place((uint64_t)pc);
	}
	if (++cpus[cpu].accesses % TURN == 0)
		sched_yield();
}

static void on_block(unsigned int cpu, void *insns)
{
	if (atomic_load_explicit(&counting, memory_order_relaxed))
		cpus[cpu].insns += (uint64_t)insns;
}

static void report(void)
{
	uint64_t transfers = 0, insns = 0;

	for (int i = 0; i < MAX_CPUS; i++) {
		transfers += cpus[i].transfers;
		insns += cpus[i].insns;
		cpus[i].transfers = cpus[i].insns = 0;
	}
	fprintf(out, "phase %u transfers %lu insns %lu\n", phase++, transfers, insns);
	for (unsigned int i = 0; i < PLACES; i++) {
		transfers = atomic_exchange(&places[i].transfers, 0);
		if (transfers)
			fprintf(out, "%lx %lu\n", atomic_load(&places[i].pc), transfers);
	}
	fflush(out);
}

static void on_mark(unsigned int cpu, void *data)
{
	if (atomic_exchange(&counting, !atomic_load(&counting)))
		report();
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t pc = qemu_plugin_insn_vaddr(insn);

		if (pc >= KERNEL)
			qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW, (void *)pc);
		else if (qemu_plugin_insn_size(insn) == sizeof(mark) &&
			 !memcmp(qemu_plugin_insn_data(insn), mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
	if (n && qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0)) >= KERNEL)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS,
						     (void *)n);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
		else if (!strncmp(argv[i], "mib=", 4))
			lines = strtoull(argv[i] + 4, NULL, 0) << (20 - LINE_SHIFT);
	}
	stale = calloc(lines, sizeof(*stale));
	if (!out || !lines || !stale) {
		fprintf(stderr, "cache_lines: out=FILE,mib=GUEST_MEMORY\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
