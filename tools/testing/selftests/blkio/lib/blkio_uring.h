/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BLKIO_URING_H
#define BLKIO_URING_H

/* One io_uring, by its plain system calls. Who includes this has fatal(). */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void fatal(const char *what);

static struct io_uring_params params;
static struct io_uring_sqe *sqes;
static struct io_uring_cqe *cqes;
static unsigned int *sq_tail, *sq_flags, *sq_array, *cq_head, *cq_tail, mask, cq_mask;
static int ring;

static void *ring_map(size_t size, off_t where)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, where);

	if (at == MAP_FAILED)
		fatal("mmap");
	return at;
}

static void ring_setup(unsigned int entries, bool sqpoll)
{
	char *sq, *cq;

	if (sqpoll) {
		params.flags = IORING_SETUP_SQPOLL;
		params.sq_thread_idle = 1;
	}
	ring = syscall(SYS_io_uring_setup, entries, &params);
	if (ring < 0)
		fatal("io_uring_setup");
	sq = ring_map(params.sq_off.array + params.sq_entries * sizeof(unsigned int), IORING_OFF_SQ_RING);
	cq = ring_map(params.cq_off.cqes + params.cq_entries * sizeof(*cqes), IORING_OFF_CQ_RING);
	sqes = ring_map(params.sq_entries * sizeof(*sqes), IORING_OFF_SQES);
	sq_tail = (void *)(sq + params.sq_off.tail);
	sq_flags = (void *)(sq + params.sq_off.flags);
	sq_array = (void *)(sq + params.sq_off.array);
	mask = *(unsigned int *)(sq + params.sq_off.ring_mask);
	cq_head = (void *)(cq + params.cq_off.head);
	cq_tail = (void *)(cq + params.cq_off.tail);
	cq_mask = *(unsigned int *)(cq + params.cq_off.ring_mask);
	cqes = (void *)(cq + params.cq_off.cqes);
}

static struct io_uring_sqe *next_sqe(void)
{
	unsigned int tail = *sq_tail;
	struct io_uring_sqe *sqe = &sqes[tail & mask];

	memset(sqe, 0, sizeof(*sqe));
	sq_array[tail & mask] = tail & mask;
	return sqe;
}

static void push(void)
{
	__atomic_store_n(sq_tail, *sq_tail + 1, __ATOMIC_RELEASE);
}

/* Submits what was pushed and waits until one more request is done. */
static void enter(unsigned int pushed)
{
	unsigned int flags = IORING_ENTER_GETEVENTS;

	if (params.flags & IORING_SETUP_SQPOLL) {
		pushed = 0;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(sq_flags, __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP)
			flags |= IORING_ENTER_SQ_WAKEUP;
	}
	while (syscall(SYS_io_uring_enter, ring, pushed, 1, flags, NULL, 0) < 0)
		if (errno != EINTR && errno != EAGAIN)
			fatal("io_uring_enter");
}

/* Takes one request that is done; false if there is none. */
static bool next_cqe(struct io_uring_cqe *done)
{
	unsigned int head = *cq_head;

	if (head == __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE))
		return false;
	*done = cqes[head & cq_mask];
	__atomic_store_n(cq_head, head + 1, __ATOMIC_RELEASE);
	return true;
}

#endif /* BLKIO_URING_H */
