// SPDX-License-Identifier: GPL-2.0
/*
 * stress_verify - asynchronous direct I/O that notices what gets lost
 *
 * Every block written carries its number and generation, by which a torn, stale
 * or misplaced block is noticed.  Every request is known by its slot, so that a
 * request that completes twice or never is noticed as well.  The generations can
 * be kept in a file and checked later, by another process in another group.
 *
 * Prints one line of key=value and exits with 0 if nothing was lost, doubled or
 * wrong.  Errors that the kernel reports (EIO, or those of a removed device) are
 * counted and are not failures.  The first error ends the program, unless -e is given.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/aio_abi.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stress_stamp.h"

#define MAX_DEPTH	4096
#define SEC_NS		1000000000ULL
#define ERROR_NAP_NS	(SEC_NS / 100)

struct slot {
	struct iocb iocb;
	char *buf;
	uint64_t block;
	uint32_t gen;		/* written, or expected */
	bool write;
	bool busy;
};

/* what the program knows of a block */
struct known {
	uint32_t gen;		/* last written, 0 for never */
	uint8_t busy;
	uint8_t unsure;		/* a write failed: the data is old, new or a mix */
};

static struct {
	const char *path, *state, *pid;
	uint64_t offset, size, count;
	uint32_t bs, depth, readpct, seconds, seed, rate;
	uint32_t drain;		/* seconds after which it counts as a hang; 0: never */
	bool sequential, check, go_on;
} opt = {
	.size = 1 << 20, .bs = 4096, .depth = 8, .readpct = 30, .seed = 1, .drain = 300,
};

static struct {
	uint64_t submitted, completed, errors, eio, enodev;
	uint64_t dup, lost, bad, shortio;
	int other;		/* the last other errno */
} sum;

static atomic_int stop;
static struct slot slots[MAX_DEPTH];
static struct known *known;
static uint64_t nr_blocks, next_block;
static uint64_t due;		/* when the next request starts, with a rate */
static aio_context_t ctx;
static int fd;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static uint32_t rnd(void)
{
	static uint64_t s;

	if (!s)
		s = opt.seed * 0x9e3779b97f4a7c15ULL + 1;
	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s >> 32;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SEC_NS + ts.tv_nsec;
}

static time_t now_s(void)
{
	return now_ns() / SEC_NS;
}

/* Return the ns until the next request is due, at most a second. */
static uint64_t until_due(void)
{
	uint64_t now = now_ns();

	if (now >= due)
		return 0;
	return due - now < SEC_NS ? due - now : SEC_NS;
}

static void nap(uint64_t ns)
{
	struct timespec ts = { ns / SEC_NS, ns % SEC_NS };

	nanosleep(&ts, NULL);
}

static void complain(const struct slot *sl)
{
	struct stamp st;

	if (sum.bad++ >= 5)
		return;
	memcpy(&st, sl->buf, sizeof(st));
	warnx("block %llu: expected generation %u, found %s block %llu generation %u",
	      (unsigned long long)sl->block, sl->gen,
	      st.magic == STAMP_MAGIC ? "" : "no stamp;",
	      (unsigned long long)st.block, st.gen);
}

/* Choose the next request of a slot.  Returns false if there is nothing left to do. */
static bool choose(struct slot *sl)
{
	uint64_t b;

	if (opt.check) {
		while (next_block < nr_blocks &&
		       (!known[next_block].gen || known[next_block].unsure))
			next_block++;
	}
	if (opt.check || opt.sequential) {
		if (next_block >= nr_blocks)
			return false;
		b = next_block++;
	} else {
		do
			b = rnd() % nr_blocks;
		while (known[b].busy);
	}
	sl->block = b;
	sl->write = !opt.check &&
		(!known[b].gen || known[b].unsure || rnd() % 100 >= opt.readpct);
	sl->gen = known[b].gen + sl->write;
	return true;
}

static void count_error(int error)
{
	sum.errors++;
	if (error == EIO)
		sum.eio++;
	else if (error == ENODEV || error == ENXIO)
		sum.enodev++;
	else
		sum.other = error;
}

static bool submit(struct slot *sl)
{
	struct iocb *iocb = &sl->iocb;

	if (!choose(sl))
		return false;
	if (sl->write)
		stamp_fill(sl->buf, opt.bs, sl->block, sl->gen);
	else
		memset(sl->buf, 0xdb, opt.bs);
	memset(iocb, 0, sizeof(*iocb));
	iocb->aio_data = sl - slots;
	iocb->aio_lio_opcode = sl->write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
	iocb->aio_fildes = fd;
	iocb->aio_buf = (uintptr_t)sl->buf;
	iocb->aio_nbytes = opt.bs;
	iocb->aio_offset = opt.offset + sl->block * opt.bs;
	if (opt.rate)	/* gaps of 0 to twice the mean; a late request does not make the next earlier */
		due = now_ns() + rnd() % (2 * SEC_NS / opt.rate + 1);
	sl->busy = true;
	known[sl->block].busy = 1;
	if (syscall(SYS_io_submit, ctx, 1, &iocb) == 1) {
		sum.submitted++;
		return true;
	}
	/* the kernel did not take the request, so it is not in flight */
	count_error(errno);
	sl->busy = false;
	known[sl->block].busy = 0;
	return opt.go_on;
}

static void complete(const struct io_event *ev)
{
	struct slot *sl = &slots[ev->data % MAX_DEPTH];
	struct known *k = &known[sl->block];

	if (ev->data >= opt.depth || !sl->busy) {
		sum.dup++;
		return;
	}
	sl->busy = false;
	k->busy = 0;
	sum.completed++;
	if (ev->res != opt.bs) {
		int64_t res = ev->res;

		if (res >= 0)
			sum.shortio++;
		else
			count_error(-res);
		if (sl->write)
			k->unsure = 1;
		return;
	}
	if (sl->write) {
		k->gen = sl->gen;
		k->unsure = 0;
	} else if (!stamp_matches(sl->buf, opt.bs, sl->block, sl->gen)) {
		complain(sl);
	}
}

/* Wait for at least one completion, for at most @ns. */
static int reap(uint64_t ns)
{
	struct timespec ts = { ns / SEC_NS, ns % SEC_NS };
	struct io_event ev[64];
	int n = syscall(SYS_io_getevents, ctx, 1L, 64L, ev, &ts);

	for (int i = 0; i < n; i++)
		complete(&ev[i]);
	return n < 0 ? 0 : n;
}

static uint64_t inflight(void)
{
	return sum.submitted - sum.completed;
}

static void run(void)
{
	time_t end = now_s() + opt.seconds, idle;
	uint64_t errors = 0;
	bool more = true;

	/* a signal that comes before the first request ends the program after it */
	while (more && !(stop && (sum.submitted || sum.errors)) && (opt.go_on || !sum.errors) &&
	       (!opt.count || sum.submitted < opt.count) &&
	       (!opt.seconds || now_s() < end)) {
		for (uint32_t i = 0; more && i < opt.depth; i++) {
			if (opt.count && sum.submitted >= opt.count)
				break;
			if (!slots[i].busy && !until_due())
				more = submit(&slots[i]);
		}
		if (inflight())
			reap(inflight() < opt.depth && due ? until_due() : SEC_NS);
		else if (due)
			nap(until_due());
		if (sum.errors > errors)
			nap(ERROR_NAP_NS);
		errors = sum.errors;
	}
	idle = now_s();
	while (inflight() && (!opt.drain || now_s() - idle < opt.drain))
		if (reap(SEC_NS))
			idle = now_s();
	sum.lost = inflight();
	/* a completion that arrives now is the second one of its request */
	if (!sum.lost) {
		struct timespec ts = { .tv_nsec = 1000000 };
		struct io_event ev;

		sum.dup += syscall(SYS_io_getevents, ctx, 0L, 1L, &ev, &ts) == 1;
	}
}

static void state_io(bool save)
{
	FILE *f = fopen(opt.state, save ? "w" : "r");

	if (!f)
		err(2, "%s", opt.state);
	if ((save ? fwrite(known, sizeof(*known), nr_blocks, f) :
		    fread(known, sizeof(*known), nr_blocks, f)) != nr_blocks)
		errx(2, "%s: wrong size", opt.state);
	if (fclose(f))
		err(2, "%s", opt.state);
}

/* From now on a signal stops the program in good order. */
static void write_pid(void)
{
	FILE *f = fopen(opt.pid, "w");

	if (!f || fprintf(f, "%d\n", getpid()) < 0 || fclose(f))
		err(2, "%s", opt.pid);
}

static void help(int status)
{
	fputs("usage: stress_verify [options] FILE\n"
	      "  -b BYTES    block size (4096)\n"
	      "  -d N        requests under way (8)\n"
	      "  -o BYTES    first byte used (0)\n"
	      "  -s BYTES    bytes used (1048576)\n"
	      "  -t SECONDS  stop after this time\n"
	      "  -n N        stop after N requests\n"
	      "  -r PERCENT  percentage of reads (30)\n"
	      "  -q          write each block once, in order\n"
	      "  -R N        at most N requests a second, at random times\n"
	      "  -e          go on after errors\n"
	      "  -l SECONDS  requests count as lost if none ends for this time (300); 0: never\n"
	      "  -S N        seed (1)\n"
	      "  -w FILE     keep what was written in FILE\n"
	      "  -c FILE     only read back what FILE says and compare\n"
	      "  -p FILE     write the pid to FILE before the first request\n"
	      "SIGTERM stops the program, which waits for requests in flight.\n",
	      status ? stderr : stdout);
	exit(status);
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "b:d:o:s:t:n:r:qR:el:S:w:c:p:h")) != -1) {
		switch (c) {
		case 'b':
			opt.bs = strtoul(optarg, NULL, 0);
			break;
		case 'd':
			opt.depth = strtoul(optarg, NULL, 0);
			break;
		case 'o':
			opt.offset = strtoull(optarg, NULL, 0);
			break;
		case 's':
			opt.size = strtoull(optarg, NULL, 0);
			break;
		case 't':
			opt.seconds = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			opt.count = strtoull(optarg, NULL, 0);
			break;
		case 'r':
			opt.readpct = strtoul(optarg, NULL, 0);
			break;
		case 'q':
			opt.sequential = true;
			break;
		case 'R':
			opt.rate = strtoul(optarg, NULL, 0);
			break;
		case 'e':
			opt.go_on = true;
			break;
		case 'l':
			opt.drain = strtoul(optarg, NULL, 0);
			break;
		case 'S':
			opt.seed = strtoul(optarg, NULL, 0);
			break;
		case 'w':
			opt.state = optarg;
			break;
		case 'c':
			opt.state = optarg; opt.check = true;
			break;
		case 'p':
			opt.pid = optarg;
			break;
		case 'h':
			help(0);
			break;
		default:
			help(2);
		}
	}
	if (optind + 1 != argc || opt.bs < 512 || opt.bs % 512 ||
	    !opt.depth || opt.depth > MAX_DEPTH)
		help(2);
	opt.path = argv[optind];
	nr_blocks = opt.size / opt.bs;
	if (nr_blocks <= opt.depth)
		errx(2, "fewer blocks (%llu) than requests under way",
		     (unsigned long long)nr_blocks);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };

	parse(argc, argv);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	fd = open(opt.path, (opt.check ? O_RDONLY : O_RDWR) | O_DIRECT);
	if (fd < 0)
		err(2, "%s", opt.path);
	known = calloc(nr_blocks, sizeof(*known));
	if (!known)
		err(2, "calloc");
	for (uint32_t i = 0; i < opt.depth; i++)
		if (posix_memalign((void **)&slots[i].buf, 4096, opt.bs))
			errx(2, "no memory");
	if (syscall(SYS_io_setup, opt.depth, &ctx))
		err(2, "io_setup");
	if (opt.check)
		state_io(false);
	if (opt.pid)
		write_pid();
	run();
	if (opt.state && !opt.check)
		state_io(true);
	printf("submitted=%llu completed=%llu errors=%llu eio=%llu enodev=%llu other=%d short=%llu dup=%llu lost=%llu bad=%llu\n",
	       (unsigned long long)sum.submitted, (unsigned long long)sum.completed,
	       (unsigned long long)sum.errors, (unsigned long long)sum.eio,
	       (unsigned long long)sum.enodev, sum.other,
	       (unsigned long long)sum.shortio, (unsigned long long)sum.dup,
	       (unsigned long long)sum.lost, (unsigned long long)sum.bad);
	fflush(stdout);
	if (sum.dup || sum.lost || sum.bad ||
	    (opt.check && (sum.errors || sum.shortio)))
		_exit(1);	/* io_destroy() at exit would wait for the lost requests */
	/* on UML, without this a kworker unmaps the ring after exit, and lockdep complains */
	syscall(SYS_io_destroy, ctx);
	return 0;
}
