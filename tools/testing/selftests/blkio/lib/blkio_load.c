// SPDX-License-Identifier: GPL-2.0
/*
 * A small block load: one file or device, a fixed number of I/Os outstanding.
 *
 * It sleeps in the kernel whenever all of its I/O is outstanding and never
 * polls, so that it also works where CPU time is free and only waiting lets the
 * clock go on (UML, time-travel=inf-cpu).  Depth 1 and buffered I/O use
 * pread()/pwrite(), deeper direct I/O the plain Linux AIO system calls or
 * io_uring.
 *
 * Prints one line of JSON; see usage().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "blkio_report.h"
#include "blkio_uring.h"
#include "blkio_util.h"

#define MAX_SIZES	32
#define MAX_DEPTH	4096
#define BUF_ALIGN	4096

struct io {
	struct iocb	cb;
	char		*buf;
	long long	start;
	size_t		len;
	bool		write;
};

/* what usage() explains */
static char *file, *op = "r", *where = "seq", *sizes = "64k", *log_file;
static long long depth = 1, count, offset, length, start_at, seed = 1;
static long long duration, think, warmup, interval = NSEC_PER_SEC, reads = 50;
static bool buffered, end_fsync, uring;

static const struct {
	char	letter;
	char	**text;
	long long *number;
	long long	*seconds;
	bool	*flag;
} options[] = {
	{ 'f', .text = &file },
	{ 'o', .text = &op },
	{ 's', .text = &sizes },
	{ 'p', .text = &where },
	{ 'l', .text = &log_file },
	{ 'd', .number = &depth },
	{ 'n', .number = &count },
	{ 'O', .number = &offset },
	{ 'L', .number = &length },
	{ 'a', .number = &start_at },
	{ 'S', .number = &seed },
	{ 'r', .number = &reads },
	{ 't', .seconds = &duration },
	{ 'T', .seconds = &think },
	{ 'w', .seconds = &warmup },
	{ 'i', .seconds = &interval },
	{ 'b', .flag = &buffered },
	{ 'y', .flag = &end_fsync },
	{ 'u', .flag = &uring },
};

static int fd;
static size_t size[MAX_SIZES], max_size;
static int nr_sizes;
static long long next_off;
static long long nr_issued;
static struct report report;

static const char help[] =
"blkio_load -f FILE [options]: do block I/O, print what was reached\n"
"  -o r|w|rw|d|a  reads, writes, either at random, discards (r);\n"
"                 a: memory is allocated and freed, and no file used\n"
"  -r PERCENT     of rw, how many are reads (50)\n"
"  -s N[,N...]    bytes of an I/O; several: chosen at random (64k)\n"
"  -p seq|rand    where: one after the other, or at random (seq)\n"
"  -d N           I/Os outstanding (1)\n"
"  -b             buffered, not direct; implies -d 1\n"
"  -u             io_uring, at any depth\n"
"  -y             fsync at the end, counted into end_ns\n"
"  -t SEC         how long to submit; only I/O that ends within counts\n"
"  -n N           how many I/Os; without -t and -n: once over the part\n"
"  -T SEC         think that long between I/Os; implies -d 1\n"
"  -O N, -L N     first byte and length of the part to use (the whole)\n"
"  -a NS          start at that CLOCK_MONOTONIC time\n"
"  -w SEC         leave I/O that starts before this out of the latencies (0)\n"
"  -i SEC         length of the intervals whose I/Os are counted (1)\n"
"  -S N           seed of the random choices (1)\n"
"  -l LOG         write 'start_ns end_ns op bytes' per I/O\n"
"Bytes may end in k, M or G.  Exits with 0, with 1 if an I/O failed (the last\n"
"errno is in the JSON line), with 2 for bad use.\n";

static void usage(int status)
{
	fputs(help, status ? stderr : stdout);
	exit(status);
}

static void fatal(const char *what)
{
	fprintf(stderr, "blkio_load: %s: %s\n", what, strerror(errno));
	exit(2);
}

static long long parse_number(char *s, char **end)
{
	static const char suffix[] = "kMG";
	long long n = strtoll(s, end, 10);
	const char *p = **end ? strchr(suffix, **end) : NULL;

	if (*end == s)
		usage(2);
	if (!p)
		return n;
	(*end)++;
	return n << (10 * (p - suffix + 1));
}

static void parse_sizes(char *s)
{
	do {
		if (nr_sizes == MAX_SIZES)
			usage(2);
		size[nr_sizes] = parse_number(s, &s);
		if (size[nr_sizes] > max_size)
			max_size = size[nr_sizes];
	} while (size[nr_sizes++] && *s++ == ',');
	if (s[-1])
		usage(2);
}

static void set_option(int letter, char *arg)
{
	char *end = "";
	size_t i;

	for (i = 0; options[i].letter != letter; i++)
		;
	if (options[i].text)
		*options[i].text = arg;
	else if (options[i].flag)
		*options[i].flag = true;
	else if (options[i].seconds)
		*options[i].seconds = strtod(arg, &end) * NSEC_PER_SEC;
	else
		*options[i].number = parse_number(arg, &end);
	if (*end)
		usage(2);
}

static void parse_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "f:o:s:p:l:d:n:O:L:a:S:r:t:T:w:i:byuh")) != -1) {
		if (c == 'h' || c == '?')
			usage(c == 'h' ? 0 : 2);
		set_option(c, optarg);
	}
	parse_sizes(sizes);
	if (optind != argc || !file || !strchr("rwda", *op) ||
	    depth < 1 || depth > MAX_DEPTH || interval < 1)
		usage(2);
	if (buffered || think || strchr("da", *op))
		depth = 1;
}

static void open_file(void)
{
	int flags = strchr(op, 'w') || *op == 'd' ? O_RDWR : O_RDONLY;
	struct stat st;
	unsigned long long bytes;

	fd = open(file, flags | (buffered ? 0 : O_DIRECT));
	if (fd < 0 || fstat(fd, &st))
		fatal(file);
	bytes = st.st_size;
	if (S_ISBLK(st.st_mode) && ioctl(fd, BLKGETSIZE64, &bytes))
		fatal("BLKGETSIZE64");
	if (!length)
		length = bytes - offset;
	if (!duration && !count)
		count = length / size[0];
	next_off = offset;
}

/* A random place is a multiple of the I/O's size, or of 4096 if that is odd. */
static long long pick_offset(size_t len)
{
	size_t align = len % 4096 ? 512 : len;
	long long off;

	if (*where == 'r')
		return offset + rnd(&seed) % ((length - len) / align + 1) * align;
	off = next_off;
	if (off + (long long)len > offset + length)
		off = offset;
	next_off = off + len;
	return off;
}

static bool pick_write(void)
{
	unsigned long long number = rnd(&seed);

	return reads == 50 ? number & 1 : number % 100 >= (unsigned long long)reads;
}

/*
 * One for all reads and one for all writes that are under way: nobody looks at what is read, and a
 * page that is touched costs user-mode Linux more than an I/O.  They are one if I/Os never overlap.
 */
static char *buffers[2];

static void prepare(struct io *io)
{
	io->len = size[nr_sizes > 1 ? rnd(&seed) % nr_sizes : 0];
	io->write = op[1] ? pick_write() : !!strchr("wd", *op);
	io->buf = buffers[io->write];
	io->cb.aio_offset = pick_offset(io->len);
	io->start = now_ns();
	nr_issued++;
}

static bool more(void)
{
	if (report.errors || (count && nr_issued >= count))
		return false;
	return !duration || now_ns() < report.start + duration;
}

static void finish(struct io *io, long long res)
{
	long long end = now_ns();

	if (res < 0 || (size_t)res != io->len) {
		report.errors++;
		report.last_errno = res < 0 ? -res : EIO;
		return;
	}
	if (duration && end > report.start + duration)
		return;
	if (!report_add(&report, (struct record){ io->start, end, io->len, io->write }))
		fatal("records");
}

static ssize_t use_memory(size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED || munmap(p, len) ? -1 : (ssize_t)len;
}

static long long do_io(struct io *io)
{
	unsigned long long range[2] = { io->cb.aio_offset, io->len };
	ssize_t res;

	if (*op == 'd')
		res = ioctl(fd, BLKDISCARD, range) ? -1 : (ssize_t)io->len;
	else if (*op == 'a')
		res = use_memory(io->len);
	else if (io->write)
		res = pwrite(fd, io->buf, io->len, io->cb.aio_offset);
	else
		res = pread(fd, io->buf, io->len, io->cb.aio_offset);
	return res < 0 ? -errno : res;
}

static void run_sync(struct io *io)
{
	while (more()) {
		prepare(io);
		finish(io, do_io(io));
		if (think)
			sleep_until(now_ns() + think);
	}
}

static aio_context_t ctx;

static void submit(struct io *io)
{
	struct iocb *cb = &io->cb;
	long ret;

	prepare(io);
	cb->aio_fildes = fd;
	cb->aio_lio_opcode = io->write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
	cb->aio_buf = (unsigned long)io->buf;
	cb->aio_nbytes = io->len;
	cb->aio_data = (unsigned long)io;
	do {
		ret = syscall(SYS_io_submit, ctx, 1, &cb);
	} while (ret < 0 && errno == EINTR);
	if (ret != 1)
		fatal("io_submit");
}

static void run_aio(struct io *io)
{
	static struct io_event ev[MAX_DEPTH];
	int inflight = 0;
	long i, n;

	if (syscall(SYS_io_setup, depth, &ctx))
		fatal("io_setup");
	for (; inflight < depth && more(); inflight++)
		submit(&io[inflight]);
	while (inflight) {
		n = syscall(SYS_io_getevents, ctx, 1, depth, ev, NULL);
		if (n < 0 && errno != EINTR)
			fatal("io_getevents");
		for (i = 0; i < n; i++) {
			struct io *done = (void *)(unsigned long)ev[i].data;

			finish(done, ev[i].res);
			if (more())
				submit(done);
			else
				inflight--;
		}
	}
}

static void push_io(struct io *io)
{
	struct io_uring_sqe *sqe = next_sqe();

	prepare(io);
	sqe->opcode = io->write ? IORING_OP_WRITE : IORING_OP_READ;
	sqe->fd = fd;
	sqe->addr = (unsigned long)io->buf;
	sqe->len = io->len;
	sqe->off = io->cb.aio_offset;
	sqe->user_data = (unsigned long)io;
	push();
}

static void run_uring(struct io *io)
{
	unsigned int pushed = 0, inflight;
	struct io_uring_cqe cqe;

	ring_setup(depth, false);
	for (; pushed < depth && more(); pushed++)
		push_io(&io[pushed]);
	inflight = pushed;
	while (inflight) {
		enter(pushed);
		pushed = 0;
		while (next_cqe(&cqe)) {
			struct io *done = (void *)(unsigned long)cqe.user_data;

			finish(done, cqe.res);
			if (more()) {
				push_io(done);
				pushed++;
			} else {
				inflight--;
			}
		}
	}
}

static struct io *alloc_ios(void)
{
	struct io *io = calloc(depth, sizeof(*io));
	int i;

	if (!io)
		fatal("memory");
	if (*op == 'a')
		return io;
	for (i = 0; i < 2; i++) {
		if (i == 1 && (depth == 1 || !op[1])) {
			buffers[1] = buffers[0];
			break;
		}
		if (posix_memalign((void **)&buffers[i], BUF_ALIGN, max_size))
			fatal("buffers");
		memset(buffers[i], 0x5a + i, max_size);
	}
	return io;
}

int main(int argc, char **argv)
{
	struct io *io;

	parse_options(argc, argv);
	open_file();
	io = alloc_ios();
	if (start_at)
		sleep_until(start_at);
	report.start = now_ns();
	if (uring)
		run_uring(io);
	else if (depth == 1)
		run_sync(io);
	else
		run_aio(io);
	if (end_fsync && fsync(fd)) {
		report.errors++;
		report.last_errno = errno;
	}
	report.end = now_ns();
	report.length = duration ? duration : report.end - report.start;
	report.interval = interval;
	report.warmup = warmup;
	if (!report_print(&report) || (log_file && !report_log(&report, log_file)))
		fatal("report");
	/* UML: left to exit, a kworker unmaps the ring and lockdep complains */
	if (ctx)
		syscall(SYS_io_destroy, ctx);
	return report.errors ? 1 : 0;
}
