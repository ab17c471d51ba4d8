/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BLKIO_UTIL_H
#define BLKIO_UTIL_H

/* The clock of loads, CLOCK_MONOTONIC, and numbers that are the same in each run. */
#include <errno.h>
#include <time.h>

#define NSEC_PER_SEC	1000000000LL

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void sleep_until(long long ns)
{
	struct timespec ts = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* splitmix64: the same sequence everywhere */
static unsigned long long rnd(long long *seed)
{
	unsigned long long z = (*seed += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

#endif /* BLKIO_UTIL_H */
