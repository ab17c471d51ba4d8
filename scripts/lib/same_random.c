// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into user-mode Linux in virtual time (scripts/boot): its random numbers, which it asks
 * the host for, are the same in every run, so that names of temporary files, UUIDs, hash seeds and
 * addresses are, too.  With the number IOBAND_RANDOM in the environment they are other ones.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* splitmix64 */
static uint64_t next(void)
{
	static uint64_t state;
	uint64_t z;

	if (!state && getenv("IOBAND_RANDOM"))
		state = strtoull(getenv("IOBAND_RANDOM"), NULL, 10);
	z = (state += 0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	unsigned char *byte = buffer;
	uint64_t bits = 0;

	(void)flags;
	for (size_t i = 0; i < length; i++, bits >>= 8) {
		if (i % 8 == 0)
			bits = next();
		byte[i] = bits;
	}
	return length;
}
