/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STRESS_STAMP_H
#define STRESS_STAMP_H

/* The data that stress_verify writes, by which it notices a torn, stale or misplaced block. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define STAMP_MAGIC	0x696f62616e643a76ULL

struct stamp {			/* at the start of every 512 bytes */
	uint64_t magic;
	uint64_t block;
	uint32_t gen;
	uint32_t part;
};

/* Write the stamps of generation @gen of @block all over it. */
static void stamp_fill(char *buf, uint32_t bs, uint64_t block, uint32_t gen)
{
	for (uint32_t part = 0; part < bs / 512; part++) {
		struct stamp st = { STAMP_MAGIC, block, gen, part };

		memset(buf + part * 512, (int)(gen + part), 512);
		memcpy(buf + part * 512, &st, sizeof(st));
	}
}

/* Return whether @buf holds the stamps of generation @gen of @block, and nothing else. */
static bool stamp_matches(const char *buf, uint32_t bs, uint64_t block,
			  uint32_t gen)
{
	for (uint32_t part = 0; part < bs / 512; part++) {
		const char *p = buf + part * 512;
		struct stamp st;

		memcpy(&st, p, sizeof(st));
		if (st.magic != STAMP_MAGIC || st.block != block || st.gen != gen ||
		    st.part != part)
			return false;
		if (p[511] != (char)(gen + part))
			return false;
	}
	return true;
}

#endif /* STRESS_STAMP_H */
