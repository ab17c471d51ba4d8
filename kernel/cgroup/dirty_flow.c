// SPDX-License-Identifier: GPL-2.0
/*
 * Flows.  A flow is the pages that one group has dirty or being written on one backing device.
 * It is created with its first page, under the locks under which that page is dirtied,
 * and is freed when it has had no pages for DIRTY_FLOW_IDLE.
 */
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/init.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "dirty_owner-internal.h"

/* A flow without pages is kept for this time. */
#define DIRTY_FLOW_IDLE		HZ
#define DIRTY_FLOW_BITS		8
#define DIRTY_BDI_BITS		6

static DEFINE_HASHTABLE(dirty_flows, DIRTY_FLOW_BITS);
/* the same flows by their backing device alone */
static DEFINE_HASHTABLE(dirty_flows_on, DIRTY_BDI_BITS);
/* its lock is the lock of the flows: it also protects both tables */
static DEFINE_XARRAY_FLAGS(dirty_flow_ids, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
static u32 dirty_flow_next = 1;

/* An empty hint points to this. */
static struct dirty_flow dirty_no_flow;
DEFINE_PER_CPU(struct dirty_hints, dirty_hints) = { &dirty_no_flow, &dirty_no_flow };

/* Hidden flows that still have pages, and that newer flows replace; for dirty_flow_reap(). */
static HLIST_HEAD(dirty_flow_replaced);

static void dirty_flow_reap(struct work_struct *work);
static DECLARE_DELAYED_WORK(dirty_flow_work, dirty_flow_reap);

static unsigned long dirty_flow_key(const struct cgroup_subsys_state *css,
				    const struct backing_dev_info *bdi)
{
	return (unsigned long)css ^ (unsigned long)bdi >> 7;
}

static void dirty_flow_add(struct dirty_flow *flow)
{
	hash_add_rcu(dirty_flows, &flow->node, dirty_flow_key(flow->css, flow->bdi));
	hash_add_rcu(dirty_flows_on, &flow->on_bdi, (unsigned long)flow->bdi);
}

/* The flow of a group on a backing device, NULL if there is none.  RCU read side. */
struct dirty_flow *dirty_flow_peek(const struct cgroup_subsys_state *css,
				   const struct backing_dev_info *bdi)
{
	struct dirty_flow *flow;

	hash_for_each_possible_rcu(dirty_flows, flow, node, dirty_flow_key(css, bdi))
		if (flow->css == css && flow->bdi == bdi)
			return flow;
	return NULL;
}

static void dirty_flow_free(struct dirty_flow *flow)
{
	bdi_put(flow->bdi);
	css_put(flow->css);
	kfree(flow);
}

/* If two tasks race to create the same flow, the second gets the flow of the first. */
static struct dirty_flow *dirty_flow_create(struct cgroup_subsys_state *css,
					    struct backing_dev_info *bdi)
{
	const gfp_t gfp = GFP_NOWAIT | __GFP_NOWARN;
	struct dirty_flow *flow, *other;

	if (!css_tryget(css))
		return NULL;
	flow = kzalloc_obj(*flow, gfp);
	if (!flow) {
		css_put(css);
		return NULL;
	}
	flow->css = css;
	flow->bdi = bdi_get(bdi);
	flow->idle_since = jiffies;
	flow->looked_at = jiffies;
	flow->roomy_at = jiffies - 1;
	flow->chunk = DIRTY_CHUNK_ANY;
	/* limits that are set already apply from the first page on */
	flow->since = dirty_owner_ops->rate(css, bdi).since;
	flow->stuck_at = -1;
	flow->stuck_below = -1;
	flow->tried_gone = -1;
	spin_lock_init(&flow->lock);
	init_waitqueue_head(&flow->wait);

	scoped_guard(spinlock_irqsave, &dirty_flow_ids.xa_lock) {
		other = dirty_flow_peek(css, bdi);
		if (!other && __xa_alloc_cyclic(&dirty_flow_ids, &flow->id, flow,
						XA_LIMIT(1, DIRTY_ID_MAX),
						&dirty_flow_next, gfp) >= 0) {
			dirty_flow_add(flow);
			schedule_delayed_work(&dirty_flow_work, DIRTY_FLOW_IDLE);
			return flow;
		}
	}
	dirty_flow_free(flow);
	return other;
}

/*
 * Can the pages of an inode have dirtiers?  They can if they are data on disks: the page cache of a
 * device with a mounted filesystem holds metadata, and so do inodes that are not files.
 */
bool dirty_is_data(struct inode *inode)
{
	if (S_ISREG(inode->i_mode))
		return dirty_is_file_data(inode);
	return S_ISBLK(inode->i_mode) && !READ_ONCE(I_BDEV(inode)->bd_holder_ops);
}

/* As dirty_flow_of(), without the hint. */
struct dirty_flow *dirty_flow_find(struct cgroup_subsys_state *css,
				   struct backing_dev_info *bdi)
{
	return dirty_flow_peek(css, bdi) ?: dirty_flow_create(css, bdi);
}

/* Slow path of dirty_flow_of(): does not look at the hint, and sets it. */
struct dirty_flow *dirty_flow_get(struct cgroup_subsys_state *css,
				  struct backing_dev_info *bdi)
{
	struct dirty_flow *flow;

	guard(rcu)();
	flow = dirty_flow_find(css, bdi);
	if (flow)
		this_cpu_write(dirty_hints.by_css, flow);
	return flow;
}

/* As dirty_flow_of(), for pages that the current task dirties; NULL if they have no dirtier. */
struct dirty_flow *dirty_flow_of_current(struct inode *inode)
{
	struct backing_dev_info *bdi = inode_to_bdi(inode);
	struct dirty_flow *flow = dirty_flow_promised(bdi);
	struct cgroup_subsys_state *css;

	if (!dirty_is_data(inode))
		return NULL;
	if (flow)
		return flow;
	css = dirty_css_of_current();
	return css ? dirty_flow_of(css, bdi) : NULL;
}

/* Slow path of dirty_flow_by_id(): does not look at the hint, and sets it. */
struct dirty_flow *dirty_flow_load(u32 id)
{
	struct dirty_flow *flow;

	guard(rcu)();
	flow = xa_load(&dirty_flow_ids, id);
	if (flow)
		this_cpu_write(dirty_hints.by_id, flow);
	return flow;
}

/* When this returns, a flow that has left the tables cannot be found any more, O5. */
static void dirty_forget_hints(void)
{
	int cpu;

	synchronize_rcu();
	for_each_possible_cpu(cpu) {
		WRITE_ONCE(per_cpu(dirty_hints.by_css, cpu), &dirty_no_flow);
		WRITE_ONCE(per_cpu(dirty_hints.by_id, cpu), &dirty_no_flow);
	}
	synchronize_rcu();
}

static bool dirty_flow_is_below(const struct dirty_flow *flow, struct cgroup_subsys_state *css)
{
	return cgroup_is_descendant(flow->css->cgroup, css->cgroup);
}

/*
 * Sum up the pages of a group and all groups below it on the device of @own, one of their flows;
 * ->saved is without it.  RCU read side.  Takes time in proportion to the flows on the device.
 */
struct dirty_sum dirty_flow_sum(struct cgroup_subsys_state *css, const struct dirty_flow *own)
{
	struct dirty_sum sum = { .css = css };
	struct dirty_flow *flow;

	hash_for_each_possible_rcu(dirty_flows_on, flow, on_bdi, (unsigned long)own->bdi) {
		if (flow->bdi != own->bdi || !dirty_flow_is_below(flow, css))
			continue;
		sum.dirty += max(dirty_flow_dirty(flow), 0);
		sum.on_way += dirty_flow_on_way(flow);
		sum.gone += dirty_flow_gone(flow);
		if (flow != own)
			sum.saved += max(-dirty_unpaid(flow), 0) >> PAGE_SHIFT;
	}
	return sum;
}

/*
 * Take back what the flows other than @own below a limit of @css have paid and not dirtied.
 * Otherwise many groups below one limit could each save up a little, and together fill the window.
 * A task that has only just paid has to pay again.  RCU read side; takes time as dirty_flow_sum()
 * does.
 */
void dirty_flow_forfeit(struct cgroup_subsys_state *css, const struct dirty_flow *own)
{
	struct dirty_flow *flow;

	hash_for_each_possible_rcu(dirty_flows_on, flow, on_bdi, (unsigned long)own->bdi)
		if (flow->bdi == own->bdi && flow != own && dirty_flow_is_below(flow, css))
			dirty_forfeit(flow, 0);
}

/* A group that nothing limits may dirty pages without words, which dirtied does not count. */
static bool dirty_flow_is_seen(struct dirty_flow *flow)
{
	return !css_is_dying(flow->css) &&
	       (time_before(jiffies, READ_ONCE(flow->looked_at) + DIRTY_FLOW_IDLE) ||
		time_before(jiffies, READ_ONCE(flow->roomy_at) + DIRTY_FLOW_IDLE));
}

static bool dirty_flow_is_used(struct dirty_flow *flow)
{
	return dirty_flow_dirty(flow) || dirty_flow_writing(flow) ||
	       atomic_read(&flow->users);
}

/* Hide the flows of a bucket that seem to be idle.  Returns true if any flow is left in it. */
static bool dirty_flow_hide(struct hlist_head *bucket, struct hlist_head *hidden)
{
	struct dirty_flow *flow;
	struct hlist_node *tmp;
	bool left = false;

	guard(spinlock_irqsave)(&dirty_flow_ids.xa_lock);
	hlist_for_each_entry_safe(flow, tmp, bucket, node) {
		if (dirty_flow_is_used(flow) || dirty_flow_is_seen(flow)) {
			flow->idle_since = jiffies;
		} else if (time_after_eq(jiffies, flow->idle_since + DIRTY_FLOW_IDLE) ||
			   css_is_dying(flow->css)) {
			hash_del_rcu(&flow->node);
			hash_del_rcu(&flow->on_bdi);
			hlist_add_head(&flow->idle, hidden);
			continue;
		}
		left = true;
	}
	return left;
}

/*
 * After the grace period: a hidden flow that was not used meanwhile leaves the table of ids,
 * to be freed.  Any other goes back to its bucket, unless a newer flow of the same group and
 * device is there: then it stays hidden until its pages are written.  Returns true if @flow
 * is not to be freed.
 */
static bool dirty_flow_sort_out(struct dirty_flow *flow)
{
	guard(spinlock_irqsave)(&dirty_flow_ids.xa_lock);
	if (!dirty_flow_is_used(flow)) {
		__xa_erase(&dirty_flow_ids, flow->id);
		return false;
	}
	hlist_del(&flow->idle);
	if (dirty_flow_peek(flow->css, flow->bdi))
		hlist_add_head(&flow->idle, &dirty_flow_replaced);
	else
		dirty_flow_add(flow);
	return true;
}

static void dirty_flow_reap(struct work_struct *work)
{
	HLIST_HEAD(hidden);
	struct dirty_flow *flow;
	struct hlist_node *tmp;
	bool left = false;

	hlist_move_list(&dirty_flow_replaced, &hidden);
	/* the lock is held for one bucket at a time: there may be many groups */
	for (int i = 0; i < HASH_SIZE(dirty_flows); i++) {
		left |= dirty_flow_hide(&dirty_flows[i], &hidden);
		cond_resched();
	}
	if (!hlist_empty(&hidden)) {
		/* O3: tasks that found a flow before are done with it, or counted in it */
		dirty_forget_hints();
		hlist_for_each_entry_safe(flow, tmp, &hidden, idle) {
			left |= dirty_flow_sort_out(flow);
			cond_resched();
		}
		/* and so are those that found a flow by its id */
		dirty_forget_hints();
	}
	hlist_for_each_entry_safe(flow, tmp, &hidden, idle)
		dirty_flow_free(flow);
	if (left)
		schedule_delayed_work(&dirty_flow_work, DIRTY_FLOW_IDLE);
}

/* One line for each flow: group, device, pages now, of these in its window; dirtied pages ever. */
static int dirty_flows_show(struct seq_file *sf, void *v)
{
	struct dirty_flow *flow;
	int i;

	guard(rcu)();
	hash_for_each_rcu(dirty_flows, i, flow, node)
		seq_printf(sf, "cg=%llu bdi=%s dirty=%ld writing=%ld window=%ld dirtied=%ld\n",
			   cgroup_id(flow->css->cgroup), bdi_dev_name(flow->bdi),
			   dirty_flow_dirty(flow), dirty_flow_writing(flow),
			   dirty_flow_pages(flow), atomic_long_read(&flow->dirtied));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(dirty_flows);

static int __init dirty_flow_init(void)
{
	debugfs_create_file("dirty_owner", 0400, NULL, NULL, &dirty_flows_fops);
	return 0;
}
late_initcall(dirty_flow_init);
