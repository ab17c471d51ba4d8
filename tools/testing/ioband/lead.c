// SPDX-License-Identifier: GPL-2.0
/*
 * Who goes next: a tree of groups, each with a tag, the device time that it has had for its
 * weight among its siblings.  The least tag goes first, on each level.  What a group leaves goes
 * to its siblings.
 *
 * A group that leads others that have all they want in flight goes only while fewer I/Os are in
 * flight than the device does at once.  On a device that does one at a time it waits even then
 * for a group that lags behind, if that comes back at once: else nobody would ever see that one
 * waiting.
 */
#include <math.h>
#include <stdio.h>

#include "lead.h"

#define GRACE_NS	(2 * NSEC_PER_MSEC)	/* nobody is waited for longer */
#define GRACE_SLACK_NS	(10 * NSEC_PER_USEC)
#define STUCK_NS	(100 * NSEC_PER_MSEC)	/* without an end for so long, and ... */
#define STUCK_LATENCIES	50			/* ... so many latencies: they are stuck */
#define DEAD_NS		(250 * NSEC_PER_MSEC)	/* the device is: it gets all that there is */
#define ASYNC_TURN	8			/* in so many of a group's I/Os one is writeback */
#define DELAY_NS	(250 * NSEC_PER_MSEC)	/* at most, for an I/O that could not wait */

/* A group among its siblings, or the I/O of a group among its children. */
struct node {
	struct node	*parent, *child, *next;
	double		weight;
	double		tag;		/* ns of the device, for weight 100 */
	double		now, step;	/* of the children: greatest tag that went; its average step */
	int		waiting;	/* I/Os, of all below */
	int		inflight;
	int		stuck;		/* of those */

	/* without children: */
	bool		leaf;
	struct bio_list	fifo[2];	/* sync, writeback */
	unsigned int	turn;
	s64		last_done_ns, last_given_ns, progress_ns, probe_ns;
	s64		grace_ns;	/* it is waited for until then */
	double		think_ns, think_error_ns;
	unsigned int	thoughts;
	int		back;		/* I/Os that have ended, none sent for since */
	struct node	*own;		/* of a group: its own I/O */
};

struct gendisk lab_disk = { .disk_name = "lab" };
bool lab_gated = true;

static struct node *root;
static spinlock_t lock;
static int inflight, stuck, excess;
static unsigned int tags = UINT_MAX;
static s64 idle_since_ns, idle_ns, last_done_ns, timer_ns = S64_MAX;
static bool lagging;		/* who goes now leads somebody */

/* bios on their way out, by the CPU that they came from */
static struct out {
	struct bio_list	bios;
	bool		queued;
} outs[LAB_CPUS];

void lab_engine_init(void)
{
}

void lab_engine_tags(unsigned int nr)
{
	tags = nr ?: UINT_MAX;
}

static struct node *new_node(struct node *parent, double weight)
{
	struct node *n = calloc(1, sizeof(*n));

	n->parent = parent;
	n->weight = weight;
	if (parent) {
		n->next = parent->child;
		parent->child = n;
	}
	return n;
}

void *lab_engine_group(const char *name, int weight, void *parent)
{
	struct node *n = new_node(parent, weight);

	n->own = new_node(n, 100);
	n->own->leaf = true;
	if (!parent)
		root = n;
	return n;
}

void lab_engine_weight(void *group, int weight)
{
	((struct node *)group)->weight = weight;
}

static bool is_serial(void)
{
	return lead_depth.settled && lead_depth.at_once < 1.5;
}

/* Does it come back so soon that waiting for it costs next to nothing? */
static bool is_sync(const struct node *leaf)
{
	return leaf->thoughts >= 4 &&
	       (is_serial() ? 8 * leaf->think_ns <= lead_gap_ns : 16 * leaf->think_ns <= lead_latency_ns);
}

/* Until when is a node waited for that has nothing here and nothing in flight? */
static s64 awaited_until(const struct node *n)
{
	s64 until = 0;

	if (n->leaf)
		return n->grace_ns;
	for (struct node *c = n->child; c; c = c->next)
		until = max(until, awaited_until(c));
	return until;
}

/* Is a node held back by nothing but what it wants?  Then others may not lead it for long. */
static bool is_flying(const struct node *n)
{
	return !n->waiting && (n->inflight > n->stuck || lab_now < awaited_until(n));
}

static bool all_sync(const struct node *n)
{
	if (n->leaf)
		return is_sync(n);
	for (struct node *c = n->child; c; c = c->next)
		if ((c->inflight || lab_now < awaited_until(c)) && !all_sync(c))
			return false;
	return true;
}

/* Places of I/Os that have just ended and that others are about to follow at once. */
static int kept_places(const struct node *n)
{
	int nr = 0;

	if (n->leaf)
		return lab_now < n->grace_ns ? n->back : 0;
	for (struct node *c = n->child; c; c = c->next)
		nr += kept_places(c);
	return nr;
}

/* One whose I/Os hang gets no more of the places of others, but tries again now and then. */
static bool may_go(struct node *leaf)
{
	return !leaf->stuck || lab_now >= leaf->probe_ns;
}

static bool any_may_go(struct node *n)
{
	if (n->leaf)
		return n->waiting && may_go(n);
	for (struct node *c = n->child; c; c = c->next)
		if (c->waiting && any_may_go(c))
			return true;
	return false;
}

/* Whose turn is it?  NULL if nobody may go now; *@when becomes sooner if time changes that. */
static struct node *pick(int room, int room_alone, s64 *when)
{
	struct node *n = root;
	bool alone = true;

	lagging = false;
	while (!n->leaf) {
		struct node *best = NULL, *behind = NULL;
		int active = 0;

		for (struct node *c = n->child; c; c = c->next) {
			if (c->waiting && (!best || c->tag < best->tag) && any_may_go(c))
				best = c;
			active += c->waiting || is_flying(c);
			if (is_flying(c) && (!behind || c->tag < behind->tag))
				behind = c;
		}
		if (!best)
			return NULL;
		alone = alone && active == 1;
		if (behind && behind->tag < best->tag) {
			lagging = true;
			if (room <= 0)
				return NULL;
			if (room <= kept_places(behind)) {
				*when = min(*when, awaited_until(behind));
				return NULL;
			}
			if (is_serial() && all_sync(behind)) {
				if (!behind->inflight)
					*when = min(*when, awaited_until(behind));
				return NULL;
			}
		}
		n = best;
	}
	return alone && room_alone <= 0 ? NULL : n;
}

/* Give the first I/O of a node to the device.  Says nothing of time if it was not its turn. */
static struct bio *give(struct node *leaf, bool turn)
{
	bool writeback = bio_list_empty(&leaf->fifo[0]) ||
			 (!bio_list_empty(&leaf->fifo[1]) && ++leaf->turn % ASYNC_TURN == 0);
	struct bio *bio = bio_list_pop(&leaf->fifo[writeback]);
	double cost = lead_cost_ns(bio) * 100;

	lead_depth_time(inflight - stuck);
	if (!inflight++)
		idle_ns += lab_now - idle_since_ns;
	if (!leaf->inflight || leaf->stuck)
		leaf->progress_ns = max(leaf->progress_ns, leaf->stuck ? 0 : lab_now);
	leaf->probe_ns = lab_now + STUCK_NS;
	for (struct node *n = leaf; n; n = n->parent) {
		n->waiting--;
		n->inflight++;
		if (!n->parent)
			break;
		if (turn && n->tag > n->parent->now) {
			n->parent->step += (n->tag - n->parent->now - n->parent->step) / 8;
			n->parent->now = n->tag;
		}
		n->tag += cost / n->weight;
	}
	bio->issue_time_ns = lab_now;
	bio->bi_iocost_cost = (uintptr_t)leaf;
	return bio;
}

static void send_out(void *ctx)
{
	struct out *out = ctx;
	struct bio_list bios;
	struct bio *bio;

	scoped_guard(spinlock_irqsave, &lock) {
		out->queued = false;
		bios = out->bios;
		bio_list_init(&out->bios);
	}
	while ((bio = bio_list_pop(&bios))) {
		lab_spend(lab_costs.submit);
		lab_device_submit(bio);
	}
}

static void send(struct bio *bio)
{
	struct out *out = &outs[bio->cpu];

	bio_list_add(&out->bios, bio);
	if (out->queued)
		return;
	out->queued = true;
	lab_spend(lab_costs.wakeup);
	lab_at(lab_now + lab_costs.latency, bio->cpu, send_out, out);
}

/* What has been in flight for too long holds no places any more. */
static void find_stuck(struct node *n, s64 limit_ns)
{
	if (!n->leaf) {
		for (struct node *c = n->child; c; c = c->next)
			if (c->inflight > c->stuck)
				find_stuck(c, limit_ns);
		return;
	}
	if (lab_now - n->progress_ns < limit_ns)
		return;
	stuck += n->inflight - n->stuck;
	for (struct node *up = n->parent; up; up = up->parent)
		up->stuck += n->inflight - n->stuck;
	n->stuck = n->inflight;
}

static void unstick(struct node *leaf)
{
	stuck -= leaf->stuck;
	for (struct node *up = leaf->parent; up; up = up->parent)
		up->stuck -= leaf->stuck;
	leaf->stuck = 0;
}

static void timer(void *ctx);

static void set_timer(s64 when_ns)
{
	if (when_ns >= timer_ns)
		return;
	timer_ns = when_ns;
	lab_at(when_ns + lab_costs.timer, -1, timer, NULL);
}

/* Let go who may.  Returns true if the caller's own bio is among them. */
static bool pump(struct bio *own)
{
	s64 limit_ns = max((double)STUCK_NS, STUCK_LATENCIES * lead_latency_ns), when = S64_MAX;
	bool dead, own_goes = false;
	struct node *leaf;
	struct bio *bio;

	while (root->waiting) {
		int counted = inflight - stuck - excess;
		int room = min(lead_depth.depth, (double)tags) - counted;
		int alone = min(lead_depth.alone, 1e9) - counted;

		dead = inflight && lab_now - last_done_ns > DEAD_NS;
		if (dead)
			room = alone = INT_MAX;
		leaf = !dead && counted >= lead_depth.ceiling ? NULL : pick(room, alone, &when);
		if (!leaf) {
			if (room <= 0 || counted >= lead_depth.ceiling)
				lead_depth_held();
			break;
		}
		if (lagging)
			lead_depth_lagged();
		bio = give(leaf, true);
		if (bio == own)
			own_goes = true;
		else
			send(bio);
	}
	if (root->waiting && inflight)
		when = min(when, lab_now + limit_ns / 2);
	set_timer(when);
	return own_goes;
}

static void timer(void *ctx)
{
	if (lab_now < timer_ns)
		return;
	guard(spinlock_irqsave)(&lock);
	timer_ns = S64_MAX;
	find_stuck(root, max((double)STUCK_NS, STUCK_LATENCIES * lead_latency_ns));
	pump(NULL);
}

static void think(struct node *leaf)
{
	double ns = min(lab_now - leaf->last_done_ns, GRACE_NS);

	if (leaf->thoughts++) {
		leaf->think_error_ns += (fabs(ns - leaf->think_ns) - leaf->think_error_ns) / 4;
		leaf->think_ns += (ns - leaf->think_ns) / 8;
	} else {
		leaf->think_ns = ns;
		leaf->think_error_ns = ns / 2;
	}
}

/* A group comes back: not before what others have had meanwhile, but for two turns. */
static void arrive(struct node *leaf, const struct bio *bio)
{
	for (struct node *n = leaf; n; n = n->parent) {
		if (!n->waiting && n->parent) {
			double late = n->inflight || lab_now < awaited_until(n) ?
				2 * min(lead_depth.depth, 256.0) * n->parent->step +
				2 * lead_cost_ns(bio) * 100 / n->weight : 0;

			n->tag = max(n->tag, n->parent->now - late);
		}
		n->waiting++;
	}
}

/*
 * What cannot wait goes at once, and is paid for: the task that sent it waits for as long as its
 * group leads.
 */
static void must_pass(struct node *leaf, struct bio *bio)
{
	double lead = 0, weights = 0;

	for (struct node *c = root->child; c; c = c->next)
		if (c->waiting || c->inflight)
			weights += c->weight;
	bio_list_add_head(&leaf->fifo[0], bio);
	excess += inflight - stuck - excess >= (int)min(lead_depth.depth, (double)tags);
	give(leaf, false);
	for (struct node *n = leaf; n->parent; n = n->parent)
		lead = max(lead, (n->tag - n->parent->now) * weights / 100);
	lab_load_delay(bio, min(lead, (double)DELAY_NS));
}

bool lab_engine_submit(struct bio *bio, void *group)
{
	struct node *leaf = ((struct node *)group)->own;
	bool writeback = bio_data_dir(bio) == WRITE && !(bio->bi_opf & REQ_SYNC);

	if (!lab_gated)
		return false;
	guard(spinlock_irqsave)(&lock);
	if (leaf->last_done_ns && !leaf->waiting)
		think(leaf);
	leaf->back = max(leaf->back - 1, 0);
	arrive(leaf, bio);
	if (bio->must_pass) {
		must_pass(leaf, bio);
		return false;
	}
	bio_list_add(&leaf->fifo[writeback], bio);
	return !pump(bio);
}

void lab_engine_done(struct bio *bio)
{
	struct node *leaf = (struct node *)(uintptr_t)bio->bi_iocost_cost;

	if (!lab_gated)
		return;
	guard(spinlock_irqsave)(&lock);
	lead_depth_time(inflight - stuck);
	lead_depth_done(bio, inflight - stuck);
	lead_cost_done(bio, idle_ns, root->waiting);
	unstick(leaf);
	if (!--inflight)
		idle_since_ns = lab_now;
	excess = min(max(excess - 1, 0), inflight);
	for (struct node *n = leaf; n; n = n->parent)
		n->inflight--;
	last_done_ns = leaf->last_done_ns = leaf->progress_ns = lab_now;
	leaf->back = is_sync(leaf) ? leaf->back + 1 : 0;
	if (is_sync(leaf))
		leaf->grace_ns = lab_now + min(leaf->think_ns + 4 * leaf->think_error_ns + GRACE_SLACK_NS,
					       (double)GRACE_NS);
	pump(NULL);
}

void lab_engine_print(void)
{
	fprintf(stderr, "alone %.1f depth %.1f at once %.1f in flight %d stuck %d waiting %d\n", lead_depth.alone, lead_depth.depth,
		lead_depth.at_once, inflight, stuck, root->waiting);
}
