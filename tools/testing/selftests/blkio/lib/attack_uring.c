// SPDX-License-Identifier: GPL-2.0
/*
 * attack_uring - reads and writes by io_uring for attacks, because Python has no io_uring
 *
 * attack_uring MODE FILE BASE LENGTH CHUNK TOTAL MS
 *   direct  O_DIRECT, fixed buffers and a fixed file, DEPTH writes outstanding
 *   fsync   buffered writes, each with an fsync linked to it
 *   meta    extended attributes, each with an fsync linked to it; no data
 *   meta-deep  the same by WORKERS, which always have requests
 *   meta-exec  the same; after 50 ms the program executes itself again, and its workers end
 *   buffered  buffered writes alone, with an fsync at times
 *   reads   buffered reads, every other one by a worker
 * With sqpoll- before MODE a kernel thread submits; not in virtual time, where this polling
 * thread would stop the clock.
 * BASE, LENGTH, CHUNK and TOTAL are bytes, MS is the duration in ms.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>

#include "blkio_uring.h"

#define DEPTH	8
#define WORKERS	64
#define DEEP	(2 * WORKERS)
#define ENTRIES	128

static void fatal(const char *what)
{
	fprintf(stderr, "attack_uring: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned int reap(void)
{
	struct io_uring_cqe cqe;
	unsigned int n = 0;

	for (; next_cqe(&cqe); n++) {
		if (cqe.res < 0 && cqe.res != -ECANCELED) {
			errno = -cqe.res;
			fatal("a request");
		}
	}
	return n;
}

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Prepare a request that workers do, which makes metadata. */
static void set_attribute(struct io_uring_sqe *sqe, int fd, const char *value, size_t len)
{
	sqe->opcode = IORING_OP_FSETXATTR;
	sqe->fd = fd;
	sqe->addr = (unsigned long)"user.attack";
	sqe->addr2 = (unsigned long)value;
	sqe->len = len;
}

static void rw_fixed(struct io_uring_sqe *sqe, int op, int fd, const struct iovec *vec,
		     long long at)
{
	sqe->opcode = op;
	sqe->fd = fd;
	sqe->addr = (unsigned long)vec->iov_base;
	sqe->len = vec->iov_len;
	sqe->off = at;
}

/* Execute this program again in the same task, for the rest of the time: the workers end. */
static void begin_anew(char **argv, long long left_ms)
{
	char ms[32];

	snprintf(ms, sizeof(ms), "%lld", left_ms);
	argv[7] = ms;
	execv("/proc/self/exe", argv);
	fatal("exec");
}

int main(int argc, char **argv)
{
	unsigned int workers[2] = { WORKERS, WORKERS };
	long long base, length, chunk, total, begin, end, asked = 0;
	unsigned int outstanding = 0, depth = DEPTH, pushed;
	bool direct, sync, link, meta, deep, anew, reads, sqpoll;
	const char *mode;
	struct iovec vec;
	int fd;

	if (argc != 8)
		return 2;
	sqpoll = !strncmp(argv[1], "sqpoll-", 7);
	mode = argv[1] + (sqpoll ? 7 : 0);
	meta = !strncmp(mode, "meta", 4);
	anew = !strcmp(mode, "meta-exec");
	deep = anew || !strcmp(mode, "meta-deep");
	if (deep)
		depth = DEEP;
	link = meta || !strcmp(mode, "fsync");
	sync = link || !strcmp(mode, "buffered");
	reads = !strcmp(mode, "reads");
	direct = !sync && !reads;
	base = atoll(argv[3]);
	length = atoll(argv[4]);
	chunk = atoll(argv[5]);
	total = atoll(argv[6]);
	begin = now_ms();
	end = begin + atoll(argv[7]);
	fd = open(argv[2], O_RDWR | O_CLOEXEC | (base ? 0 : O_CREAT) | (direct ? O_DIRECT : 0), 0666);
	if (fd < 0)
		fatal(argv[2]);
	ring_setup(ENTRIES, sqpoll);
	vec.iov_len = chunk;
	vec.iov_base = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (vec.iov_base == MAP_FAILED)
		fatal("mmap");
	if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &vec, 1) < 0)
		fatal("register buffers");
	if (deep && syscall(SYS_io_uring_register, ring, IORING_REGISTER_IOWQ_MAX_WORKERS, workers, 2) < 0)
		fatal("register the number of workers");
	while (asked < total && now_ms() < end) {
		for (pushed = 0; outstanding < depth && asked < total; ) {
			struct io_uring_sqe *sqe = next_sqe();

			if (meta)
				set_attribute(sqe, fd, (char *)&asked, sizeof(asked));
			else
				rw_fixed(sqe, reads ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED,
					 fd, &vec, base + asked % length);
			if (link)
				sqe->flags = IOSQE_IO_LINK;
			else if (reads && asked / chunk % 2)
				sqe->flags = IOSQE_ASYNC;
			push();
			asked += chunk;
			pushed++;
			outstanding++;
			if (!link && !(sync && asked / chunk % 16 == 0))
				continue;
			sqe = next_sqe();
			sqe->opcode = IORING_OP_FSYNC;
			sqe->fd = fd;
			push();
			pushed++;
			outstanding++;
		}
		enter(pushed);
		outstanding -= reap();
		if (sync)
			usleep(1000);
		if (anew && now_ms() > begin + 50)
			begin_anew(argv, end - now_ms());
	}
	while (outstanding) {
		enter(0);
		outstanding -= reap();
	}
	return 0;
}
