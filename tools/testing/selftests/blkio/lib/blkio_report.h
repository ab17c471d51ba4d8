/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BLKIO_REPORT_H
#define BLKIO_REPORT_H

/* What blkio_load notes of each I/O, and what it says of all of them. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct record {
	long long	start;		/* ns of CLOCK_MONOTONIC, as all here */
	long long	end;
	unsigned int	len;
	bool		write;
};

struct report {
	struct record	*rec;
	size_t		nr, max;
	long long	start;		/* of the run */
	long long	end;
	long long	length;		/* what intervals divide */
	long long	interval;
	long long	warmup;		/* left out of the latencies */
	long long	errors;
	int		last_errno;
};

/* Returns false if there is no memory. */
static bool report_add(struct report *r, struct record rec)
{
	if (r->nr == r->max) {
		r->max = r->max ? 2 * r->max : 4096;
		r->rec = realloc(r->rec, r->max * sizeof(*r->rec));
		if (!r->rec)
			return false;
	}
	r->rec[r->nr++] = rec;
	return true;
}

static int by_value(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return x < y ? -1 : x > y;
}

static bool print_latencies(const struct report *r)
{
	long long *lat = calloc(r->nr + 1, sizeof(*lat));
	size_t i, n = 0;

	if (!lat)
		return false;
	for (i = 0; i < r->nr; i++)
		if (r->rec[i].start >= r->start + r->warmup)
			lat[n++] = r->rec[i].end - r->rec[i].start;
	qsort(lat, n, sizeof(*lat), by_value);
	printf("\"p01_ns\": %lld, \"p50_ns\": %lld, ", lat[n / 100], lat[n / 2]);
	printf("\"p99_ns\": %lld, \"max_ns\": %lld, ", lat[n * 99 / 100],
	       n ? lat[n - 1] : 0);
	free(lat);
	return true;
}

/* An interval has its end, not its start: (k * interval, (k + 1) * interval]. */
static bool print_intervals(const struct report *r)
{
	size_t i, nr = (r->length + r->interval - 1) / r->interval;
	long long *ios = calloc(nr + 1, sizeof(*ios));

	if (!ios)
		return false;
	for (i = 0; i < r->nr; i++) {
		long long t = r->rec[i].end - r->start;

		ios[t > 0 ? (t - 1) / r->interval : 0]++;
	}
	printf("\"intervals\": [");
	for (i = 0; i < nr; i++)
		printf("%s%lld", i ? ", " : "", ios[i]);
	printf("]}\n");
	free(ios);
	return true;
}

static bool report_print(const struct report *r)
{
	long long bytes[2] = { 0 };
	size_t i;

	for (i = 0; i < r->nr; i++)
		bytes[r->rec[i].write] += r->rec[i].len;
	printf("{\"start_ns\": %lld, \"end_ns\": %lld, \"ios\": %zu, ",
	       r->start, r->end, r->nr);
	printf("\"bytes\": %lld, \"rbytes\": %lld, \"wbytes\": %lld, ",
	       bytes[0] + bytes[1], bytes[0], bytes[1]);
	printf("\"errors\": %lld, \"errno\": %d, ", r->errors, r->last_errno);
	return print_latencies(r) && print_intervals(r);
}

static bool report_log(const struct report *r, const char *path)
{
	FILE *f = fopen(path, "w");
	size_t i;

	if (!f)
		return false;
	for (i = 0; i < r->nr; i++)
		fprintf(f, "%lld %lld %c %u\n", r->rec[i].start, r->rec[i].end,
			r->rec[i].write ? 'W' : 'R', r->rec[i].len);
	return !fclose(f);
}

#endif /* BLKIO_REPORT_H */
