// SPDX-License-Identifier: GPL-2.0
/*
 * usage: sim [none] [SEED] <SCENARIO
 *
 * Runs a scenario of these lines (times are in seconds, other values in the units of their names):
 *
 *	cpus NR [COST=NS]...		see struct lab_costs; must be the first line, if there is one
 *	device KIND [KEY=VALUE]...	see device.c; tags=NR: its number of tags;
 *					pinned=NR: I/Os in flight at most, instead of what is measured
 *	group NAME WEIGHT [PARENT]
 *	limit GROUP [KEY=VALUE]...	as in io.max: rbps, wbps, riops, wiops
 *	load GROUP [KEY=VALUE]...	see load_keys[]
 *	at TIME device [KEY=VALUE]...	changes the device
 *	at TIME weight GROUP WEIGHT
 *	measure FROM TO
 *
 * Prints a line of JSON for each time that is measured.  "none" runs it without the gate.
 */
#include <stdio.h>

#include "lab.h"

#define MAX 4096
static struct lab_group groups[MAX];
static unsigned int nr_groups;

enum what { DEVICE, WEIGHT, MEASURE, END };
static struct todo {
	s64		when;
	enum what	what;
	char		*text;
	struct lab_group *grp;
	double		value;
} todo[MAX];
static unsigned int nr_todo;

static void fail(const char *why, const char *what)
{
	fprintf(stderr, "sim: %s: %s\n", why, what);
	exit(2);
}

static s64 seconds(double s)
{
	return (s64)(s * 1e9) + NSEC_PER_SEC;
}

static struct lab_group *find(const char *name)
{
	for (unsigned int i = 0; i < nr_groups; i++)
		if (!strcmp(groups[i].name, name))
			return &groups[i];
	fail("no such group", name);
	return NULL;
}

/* Read the next KEY=VALUE of a line.  Returns false if there is none. */
static bool next_pair(char **key, char **value)
{
	*key = strtok(NULL, " \n");
	if (!*key)
		return false;
	*value = strchr(*key, '=');
	if (!*value)
		fail("not KEY=VALUE", *key);
	*(*value)++ = 0;
	return true;
}

static void set_device(char *key, char *value)
{
	if (!strcmp(key, "tags")) {
		lab_engine_tags(atoi(value));
		return;
	}
	if (!strcmp(key, "pinned")) {
		lab_engine_pin(atoi(value));
		return;
	}
	if (!strcmp(key, "seek_us") && atof(value))
		lab_engine_turns();
	if (!lab_device_set(key, atof(value)))
		fail("no such key of a device", key);
}

static void read_cpus(void)
{
	static const struct { const char *key; s64 *value; } keys[] = {
		{ "submit", &lab_costs.submit }, { "complete", &lab_costs.complete },
		{ "lock", &lab_costs.lock }, { "transfer", &lab_costs.transfer },
		{ "wakeup", &lab_costs.wakeup }, { "latency", &lab_costs.latency },
		{ "timer", &lab_costs.timer }, { "queue", &lab_costs.queue }, { "run", &lab_costs.run }, { "gone", &lab_costs.gone },
	};
	char *key, *value;

	lab_nr_cpus = atoi(strtok(NULL, " \n"));
	while (next_pair(&key, &value)) {
		size_t i;

		for (i = 0; i < ARRAY_SIZE(keys) && strcmp(keys[i].key, key); i++)
			;
		if (i == ARRAY_SIZE(keys))
			fail("no such cost", key);
		*keys[i].value = atoll(value);
	}
}

static void read_load(void)
{
	struct lab_load *load = calloc(1, sizeof(*load));
	char *key, *value;
	double n;

	load->grp = find(strtok(NULL, " \n"));
	*load = (struct lab_load){
		.grp = load->grp, .bytes = 4096, .depth = 1, .think_ns = 5000, .cpu = -1,
		.start_ns = seconds(0), .stop_ns = S64_MAX,
	};
	while (next_pair(&key, &value)) {
		n = atof(value);
		if (!strcmp(key, "op"))
			load->opf |= !strcmp(value, "read") ? REQ_OP_READ :
				     !strcmp(value, "write") ? REQ_OP_WRITE | REQ_SYNC :
				     !strcmp(value, "writeback") ? REQ_OP_WRITE :
				     REQ_OP_DISCARD;
		else if (!strcmp(key, "bytes"))
			load->bytes = n;
		else if (!strcmp(key, "depth"))
			load->depth = n;
		else if (!strcmp(key, "think_us"))
			load->think_ns = n * 1e3;
		else if (!strcmp(key, "period_ms"))
			load->period_ns = n * 1e6;
		else if (!strcmp(key, "random"))
			load->random = n;
		else if (!strcmp(key, "must_pass"))
			load->must_pass = n;
		else if (!strcmp(key, "hangs"))
			load->hangs = n;
		else if (!strcmp(key, "silent"))
			load->silent = n;
		else if (!strcmp(key, "start"))
			load->start_ns = seconds(n);
		else if (!strcmp(key, "stop"))
			load->stop_ns = seconds(n);
		else if (!strcmp(key, "cpu"))
			load->cpu = n;
		else
			fail("no such key of a load", key);
	}
	lab_load_start(load);
}

static void read_group(void)
{
	char *name = strtok(NULL, " \n"), *weight = strtok(NULL, " \n"), *parent = strtok(NULL, " \n");
	struct lab_group *up = find(parent ? parent : "/");

	groups[nr_groups] = (struct lab_group){
		.name = strdup(name), .engine = lab_engine_group(name, atoi(weight), up->engine),
	};
	nr_groups++;
}

static void read_limits(void)
{
	struct lab_group *grp = find(strtok(NULL, " \n"));
	char *key, *value;

	while (next_pair(&key, &value))
		if (!lab_engine_limit(grp->engine, key, atof(value)))
			fail("no such limit", key);
}

static void add(s64 when, enum what what)
{
	todo[nr_todo++] = (struct todo){ .when = when, .what = what };
}

static void read_at(void)
{
	double when = atof(strtok(NULL, " \n"));
	char *what = strtok(NULL, " \n");

	if (!strcmp(what, "device")) {
		add(seconds(when), DEVICE);
		todo[nr_todo - 1].text = strdup(strtok(NULL, "\n"));
	} else if (!strcmp(what, "weight")) {
		add(seconds(when), WEIGHT);
		todo[nr_todo - 1].grp = find(strtok(NULL, " \n"));
		todo[nr_todo - 1].value = atof(strtok(NULL, " \n"));
	} else {
		fail("not device or weight", what);
	}
}

/* Start the engine, once the number of CPUs is known. */
static void start(void)
{
	if (nr_groups)
		return;
	lab_engine_init();
	groups[nr_groups++] = (struct lab_group){ .name = "/", .engine = lab_engine_group("/", 100, NULL) };
}

static void read_line(char *line)
{
	char *what = strtok(line, " \n"), *key, *value;

	if (!what || *what == '#')
		return;
	if (!strcmp(what, "cpus")) {
		read_cpus();
		return;
	}
	start();
	if (!strcmp(what, "device")) {
		value = strtok(NULL, " \n");
		if (!lab_device_kind(value))
			fail("no such kind of device", value);
		while (next_pair(&key, &value))
			set_device(key, value);
	} else if (!strcmp(what, "group")) {
		read_group();
	} else if (!strcmp(what, "limit")) {
		read_limits();
	} else if (!strcmp(what, "load")) {
		read_load();
	} else if (!strcmp(what, "at")) {
		read_at();
	} else if (!strcmp(what, "measure")) {
		add(seconds(atof(strtok(NULL, " \n"))), MEASURE);
		add(seconds(atof(strtok(NULL, " \n"))), END);
	} else {
		fail("no such line", what);
	}
}

static int by_latency(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static double quantile_us(const struct lab_group *grp, double part)
{
	return grp->nr ? grp->latency_ns[(u64)((grp->nr - 1) * part)] / 1e3 : 0;
}

static void begin(void)
{
	lab_measuring = true;
	lab_moves = 0;
	for (unsigned int i = 0; i < nr_groups; i++)
		groups[i].ios = groups[i].bytes = groups[i].device_ns = groups[i].nr = 0;
}

static void end(double from, double to)
{
	lab_measuring = false;
	printf("{\"from\": %g, \"to\": %g, \"moves\": %.1f, \"groups\": {", from, to, lab_moves / (to - from));
	for (unsigned int i = 1; i < nr_groups; i++) {
		struct lab_group *grp = &groups[i];

		if (grp->nr)
			qsort(grp->latency_ns, grp->nr, sizeof(u64), by_latency);
		printf("%s\"%s\": {\"iops\": %.1f, \"bps\": %.0f, \"busy\": %.4f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}",
		       i > 1 ? ", " : "", grp->name, grp->ios / (to - from), grp->bytes / (to - from),
		       grp->device_ns / 1e9 / (to - from),
		       quantile_us(grp, .5), quantile_us(grp, .99), quantile_us(grp, 1));
	}
	printf("}}\n");
}

static int by_time(const void *a, const void *b)
{
	const struct todo *x = a, *y = b;

	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	/* a measurement ends before the next one begins */
	return (y->what == END) - (x->what == END);
}

static void run_until(s64 when)
{
	const char *trace = getenv("LAB_TRACE");
	s64 step = trace ? (s64)(atof(trace) * 1e9) : S64_MAX, next = lab_now + (trace ? step : 0);

	while (trace && next < when) {
		while (lab_step(next))
			;
		fprintf(stderr, "%.4f ", (lab_now - NSEC_PER_SEC) / 1e9);
		lab_engine_print();
		next += step;
	}
	while (lab_step(when))
		;
}

static void run(void)
{
	double from = 0;

	qsort(todo, nr_todo, sizeof(todo[0]), by_time);
	for (unsigned int i = 0; i < nr_todo; i++) {
		struct todo *t = &todo[i];
		double now = (t->when - NSEC_PER_SEC) / 1e9;
		char *key, *value;

		run_until(t->when);
		switch (t->what) {
		case DEVICE:
			strtok(strcat(strcpy(malloc(strlen(t->text) + 3), "x "), t->text), " ");
			while (next_pair(&key, &value))
				set_device(key, value);
			break;
		case WEIGHT:
			lab_engine_weight(t->grp->engine, t->value);
			break;
		case MEASURE:
			from = now;
			begin();
			break;
		case END:
			end(from, now);
			break;
		}
	}
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t size = 0;

	if (argc > 1 && !strcmp(argv[1], "none")) {
		lab_gated = false;
		argv++;
		argc--;
	}
	if (argc > 1)
		lab_seed(atoi(argv[1]));
	while (getline(&line, &size, stdin) > 0)
		read_line(line);
	run();
	return 0;
}
