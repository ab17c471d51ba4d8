/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LAB_KERNEL_H
#define LAB_KERNEL_H

/*
 * The part of the kernel that the engines of block/ioband use, in user space: the engines' files
 * are compiled unchanged, and each <linux/...> header that they include includes this one.
 *
 * Time is that of the lab's clock, see clock.c.  Locks take time on that clock, too.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef unsigned __int128 u128;
typedef u64 sector_t;
typedef u32 blk_opf_t;
typedef unsigned int gfp_t;
typedef u64 u64_stats_t;

/* compiler */
#define __force
#define __rcu
#define __percpu
#define __user
#define __init
#define __must_check
#define __uninitialized
#define noinline		__attribute__((noinline))
#undef swap
#define swap(a, b)		({ __auto_type t_ = (a); (a) = (b); (b) = t_; })
#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
/* nothing runs at the same time in the lab */
#define data_race(x) (x)
#define READ_ONCE(x)		(*(volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#define smp_mb()		((void)0)
#define smp_load_acquire(p)	(*(p))
#define smp_rmb()		((void)0)
#define smp_wmb()		((void)0)
#define smp_store_release(p, v)	(*(p) = (v))
#define BUILD_BUG_ON(c)		((void)sizeof(char[1 - 2 * !!(c)]))
#define static_assert		_Static_assert
#define container_of(p, type, member) \
	((type *)((char *)(p) - offsetof(type, member)))
#define __aligned(n)		__attribute__((aligned(n)))
#define memset_startat(p, v, member) \
	memset((char *)(p) + offsetof(__typeof__(*(p)), member), v, \
	       sizeof(*(p)) - offsetof(__typeof__(*(p)), member))
#define ____cacheline_aligned_in_smp __attribute__((aligned(64)))
#define EXPORT_SYMBOL(x)

/* numbers */
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define U32_MAX			UINT32_MAX
#define S32_MAX			INT32_MAX
#define U64_MAX			UINT64_MAX
#define S64_MAX			INT64_MAX
#define S64_MIN			(-S64_MAX - 1)
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define min(a, b)		({ __auto_type a_ = (a); __auto_type b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b)		({ __auto_type a_ = (a); __auto_type b_ = (b); a_ > b_ ? a_ : b_; })
#define min3(a, b, c)		min(min(a, b), c)
#define max3(a, b, c)		max(max(a, b), c)
#define min_t(t, a, b)		({ t a_ = (a); t b_ = (b); a_ < b_ ? a_ : b_; })
#define max_t(t, a, b)		({ t a_ = (a); t b_ = (b); a_ > b_ ? a_ : b_; })
#define clamp(v, lo, hi)	({ __auto_type v_ = (v); __typeof__(v_) lo_ = (lo), hi_ = (hi); \
				   v_ < lo_ ? lo_ : v_ > hi_ ? hi_ : v_; })
#define clamp_t(t, v, lo, hi)	clamp((t)(v), (t)(lo), (t)(hi))
#define min_not_zero(a, b)	({ __auto_type x_ = (a); __auto_type y_ = (b); \
				   !x_ ? y_ : !y_ ? x_ : min(x_, y_); })
#undef abs
#define abs(x)			({ __auto_type x_ = (x); x_ < 0 ? -x_ : x_; })
#define NSEC_PER_USEC		1000L
#define NSEC_PER_MSEC		1000000L
#define NSEC_PER_SEC		1000000000L
#define USEC_PER_SEC		1000000L
#define SECTOR_SHIFT		9
#define SECTOR_SIZE		512
#define SZ_4K			0x1000
#define SZ_16K			0x4000
#define SZ_64K			0x10000
#define SZ_1M			0x100000
/* of linux/ioband.h */
#define IOBAND_DOOR_BYTES	SZ_1M
#define SZ_1G			0x40000000

static inline int ilog2(u64 v)
{
	return 63 - __builtin_clzll(v);
}

static inline u64 div_u64(u64 a, u32 b)
{
	return a / b;
}

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

static inline s64 div_s64(s64 a, s32 b)
{
	return a / b;
}

static inline s64 div64_s64(s64 a, s64 b)
{
	return a / b;
}

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (u64)(((u128)a * b) >> shift);
}

/* A quotient that does not fit in 64 bits traps on some CPUs, so it aborts the lab. */
static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	u128 quotient = (u128)a * b / c;

	if (quotient >> 64)
		abort();
	return quotient;
}

static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rest)
{
	*rest = a % b;
	return a / b;
}

static inline u64 mul_u64_u32_div(u64 a, u32 b, u32 c)
{
	return (u64)((u128)a * b / c);
}

static inline u32 int_sqrt64(u64 x)
{
	u64 root = 0;

	for (u64 bit = 1ULL << 31; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= x)
			root |= bit;
	return root;
}

/* tools/include of the kernel tree */
#include "rbtree_augmented.h"

struct list_head { struct list_head *next, *prev; };

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	entry->prev = list->prev;
	entry->next = list;
	list->prev->next = entry;
	list->prev = entry;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
	INIT_LIST_HEAD(entry);
}

static inline void list_move_tail(struct list_head *entry, struct list_head *list)
{
	list_del_init(entry);
	list_add_tail(entry, list);
}

#define list_for_each_entry_safe(pos, n, list, member) \
	for ((pos) = container_of((list)->next, __typeof__(*(pos)), member), \
	     (n) = container_of((pos)->member.next, __typeof__(*(pos)), member); \
	     &(pos)->member != (list); \
	     (pos) = (n), (n) = container_of((n)->member.next, __typeof__(*(n)), member))
struct hlist_head { void *first; };
struct rcu_head { void *next; };
struct kref { int nr; };
typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; int owner; } atomic64_t;
#define ATOMIC_INIT(i)		{ (i) }

static inline s64 atomic64_read(const atomic64_t *v)
{
	return v->counter;
}

static inline void atomic64_set(atomic64_t *v, s64 i)
{
	v->counter = i;
}

void lab_wrote(atomic64_t *v);

#define atomic64_read_acquire(v)	atomic64_read(v)

static inline bool atomic64_try_cmpxchg(atomic64_t *v, s64 *old, s64 new)
{
	if (v->counter != *old) {
		*old = v->counter;
		return false;
	}
	v->counter = new;
	lab_wrote(v);
	return true;
}

static inline s64 atomic64_cmpxchg(atomic64_t *v, s64 old, s64 new)
{
	atomic64_try_cmpxchg(v, &old, new);
	return old;
}

static inline void atomic64_sub(s64 i, atomic64_t *v)
{
	v->counter -= i;
	lab_wrote(v);
}

static inline int atomic_read(const atomic_t *v)
{
	return v->counter;
}

static inline void atomic_add(int i, atomic_t *v)
{
	v->counter += i;
}

static inline void atomic_inc(atomic_t *v)
{
	v->counter++;
}

typedef struct { long counter; } atomic_long_t;
#define ATOMIC_LONG_INIT(i)	{ (i) }

static inline long atomic_long_inc_return(atomic_long_t *v)
{
	return ++v->counter;
}

static inline void atomic_sub(int i, atomic_t *v)
{
	v->counter -= i;
}

/* time, CPUs and locks */
#define LAB_CPUS		128

extern s64 lab_now;		/* ns */
extern int lab_cpu;		/* the CPU of the present event */
extern int lab_nr_cpus;

static inline u64 ktime_get_ns(void)
{
	return lab_now;
}

/* as with HZ=1000 */
#define jiffies			((unsigned long)(lab_now / NSEC_PER_MSEC))
#define msecs_to_jiffies(ms)	((unsigned long)(ms))
#define time_after_eq(a, b)	((long)((a) - (b)) >= 0)

typedef struct {
	s64	free_at;	/* ns */
	int	owner;		/* the CPU that had it last */
} spinlock_t;

#define spin_lock_init(lock)	((void)(lock))
void lab_lock(spinlock_t *lock);
void lab_unlock(spinlock_t *lock);
void lab_queued(void);

static inline void lab_unlock_scope(spinlock_t **lock)
{
	if (*lock)
		lab_unlock(*lock);
}

static inline spinlock_t *lab_lock_scope(spinlock_t *lock)
{
	lab_lock(lock);
	return lock;
}

/* nothing else runs while a task has a mutex */
struct mutex { int unused; };
#define DEFINE_MUTEX(name)	struct mutex name

#define lab_join(a, b)		a##b
#define lab_name(a, b)		lab_join(a, b)
#define lab_guard_spinlock_irqsave(lock) \
	spinlock_t *lab_name(guard_, __LINE__) __attribute__((unused, cleanup(lab_unlock_scope))) = \
		lab_lock_scope(lock)
#define lab_guard_spinlock_irq(lock)	lab_guard_spinlock_irqsave(lock)
#define lab_guard_rcu()			((void)0)
#define lab_guard_preempt()		((void)0)
#define guard(kind)			lab_guard_##kind
#define lab_scope_spinlock_irqsave(lock) \
	for (spinlock_t *held_ __attribute__((cleanup(lab_unlock_scope))) = lab_lock_scope(lock), \
	     *once_ = held_; once_; once_ = NULL)
#define lab_scope_spinlock_irq(lock)	lab_scope_spinlock_irqsave(lock)
#define lab_scope_preempt()
#define lab_scope_mutex(lock)
#define scoped_guard(kind, ...)	lab_scope_##kind(__VA_ARGS__)
#define lockdep_assert_held(lock)	((void)0)
#define pr_info(...)			do { } while (0)
#define lockdep_is_held(lock)		1
#define rcu_dereference_protected(p, c)	(p)
#define rcu_dereference_sched(p)	(p)
#define rcu_dereference(p)		(p)
#define rcu_dereference_check(p, c)	(p)
#define rcu_access_pointer(p)		(p)
#define rcu_assign_pointer(p, v)	((p) = (v))
/* memory that the kernel frees after a grace period is never freed */
#define call_rcu(head, fn)		((void)(fn))
#define OPTIMIZER_HIDE_VAR(v)		((void)0)
#define preempt_disable()		((void)0)
#define preempt_enable()		((void)0)

/* The distance between the per-CPU areas of two CPUs, bytes. */
#define LAB_STRIDE		4096
#define alloc_percpu(type)	((type *)calloc(LAB_CPUS, LAB_STRIDE))
#define free_percpu(p)		free(p)
#define per_cpu_ptr(p, cpu)	((__typeof__(p))((char *)(p) + (size_t)(cpu) * LAB_STRIDE))
#define this_cpu_ptr(p)		per_cpu_ptr(p, lab_cpu)
#define raw_cpu_ptr(p)		per_cpu_ptr(p, lab_cpu)
#define this_cpu_inc(var)	((*per_cpu_ptr(&(var), lab_cpu))++)
#define this_cpu_dec(var)	((*per_cpu_ptr(&(var), lab_cpu))--)
#define this_cpu_read(var)	(*per_cpu_ptr(&(var), lab_cpu))
#define this_cpu_add(var, n)	(*per_cpu_ptr(&(var), lab_cpu) += (n))
#define for_each_possible_cpu(cpu)	for ((cpu) = 0; (cpu) < lab_nr_cpus; (cpu)++)
#define num_online_cpus()		((unsigned int)lab_nr_cpus)
#define num_possible_cpus()		((unsigned int)lab_nr_cpus)
#define raw_smp_processor_id()		((unsigned int)lab_cpu)

#include "kernel_work.h"

struct seq_file;
struct kernfs_open_file;
struct cftype { int unused; };
struct backing_dev_info;
struct task_struct;
enum dirty_how { DIRTY_WAIT };
struct bio;
#define CONFIG_BLK_CGROUP_IOBAND 1

#include "kernel_block.h"

#endif /* LAB_KERNEL_H */
