/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coro.c - coroutines on pooled stacks. A stack is mapped on first use and kept; between two uses its coroutine rests
 * in the loop of coro_main, so that starting costs no more than resuming. The one used last is used next.
 *
 *   base                                          top
 *   +------------+---------------------------------+----------+------------------+
 *   | guard      | stack, grows down               | colour   | struct rnl_coro  |
 *   +------------+---------------------------------+----------+------------------+
 *
 * The guard is address space that nothing can touch, and wide: a function with a large array on its stack writes first
 * at the array's far end, and beyond a single page lies another stack. 256 KiB catch a frame of that size and leave six
 * stacks to a page of page tables; a thousand stacks reserve 320 MiB of addresses.
 *
 * Leaves out: unwinding of what is dropped, and giving back pages that one deep call has touched. */
#include "base/coro.h"
#include "base/error.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(RNL_HAVE_FCONTEXT)
#define RNL_HAVE_FCONTEXT 0
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORO_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define CORO_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CORO_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define CORO_TSAN 1
#endif
#if defined(CORO_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if defined(CORO_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

#if RNL_HAVE_FCONTEXT
/* The C interface of Boost.Context, declared here because its headers are C++. */
typedef void *fcontext_t;
struct transfer {
    fcontext_t from;
    void *data;
};
extern fcontext_t make_fcontext(void *stack_top, size_t size, void (*entry)(struct transfer));
extern struct transfer jump_fcontext(fcontext_t to, void *data);
#else
#include <ucontext.h>
#endif
#if RNL_HAVE_FCONTEXT && defined(__x86_64__)
#include <immintrin.h>
#define CARRY_FLAGS 1
#endif

/* Stacks are mapped at like addresses: without colours the hot lines of all would share a few cache sets. */
enum { GUARD_BYTES = 256 << 10, COLOURS = 8, COLOUR_BYTES = 256, COLOURS_BYTES = COLOURS * COLOUR_BYTES };

struct rnl_coro {
#if RNL_HAVE_FCONTEXT
    fcontext_t context; /* where it stands while it does not run */
    fcontext_t resumer; /* where its resumer stands while it runs */
#else
    ucontext_t context, resumer;
#endif
    rnl_coro_fn *fn;
    void *arg;
    int returned; /* fn did; rests in coro_main */
    int fresh;    /* context must be made: never run, or dropped */
#if defined(CARRY_FLAGS)
    int carry_flags; /* the layout of a saved context is as carry_flags() knows it */
#endif
    struct rnl_coro_pool *pool;
    struct rnl_coro *next_free, *next_mapped;
    char *base, *top;
#if defined(CORO_ASAN)
    void *fake_stack;
    const void *resumer_bottom;
    size_t resumer_bytes;
#endif
#if defined(CORO_TSAN)
    void *fiber, *resumer_fiber;
#endif
#if defined(VALGRIND_STACK_REGISTER)
    unsigned valgrind_id;
#endif
};

struct rnl_coro_pool {
    uint32_t max, mapped, in_use;
    size_t guard_bytes, map_bytes;
    struct rnl_coro *free, *all;
};

/* ---- switching ---- */

static size_t stack_bytes(const struct rnl_coro *c)
{
    return (size_t)(c->top - c->base) - c->pool->guard_bytes;
}

#if defined(CORO_ASAN)
static const void *stack_bottom(const struct rnl_coro *c)
{
    return c->base + c->pool->guard_bytes;
}
#endif

#if defined(CARRY_FLAGS)
/* A saved context begins with MXCSR. Its exception flags (bits 0..5) are sticky and soon differ from ours, and loading
 * a differing value costs 50 ns on recent Intel cores. As with any call, flags raised before are still raised after: so
 * add ours to the saved ones. */
enum { MXCSR_FLAGS = 0x3f };

static inline void carry_flags(const struct rnl_coro *c, fcontext_t to)
{
    uint32_t *saved = to, mine = _mm_getcsr() & MXCSR_FLAGS;
    if (c->carry_flags && (*saved & MXCSR_FLAGS) != mine)
        *saved |= mine;
}
#endif

/* Just arrived on the coroutine's stack: learn whose stack we left, which may be another thread's each time. */
static inline void arrived(struct rnl_coro *c, void *fake_stack)
{
    (void)c, (void)fake_stack;
#if defined(CORO_ASAN)
    __sanitizer_finish_switch_fiber(fake_stack, &c->resumer_bottom, &c->resumer_bytes);
#endif
}

/* From the coroutine to its resumer. */
static inline void switch_out(struct rnl_coro *c)
{
#if defined(CORO_ASAN)
    __sanitizer_start_switch_fiber(&c->fake_stack, c->resumer_bottom, c->resumer_bytes);
#endif
#if defined(CORO_TSAN)
    __tsan_switch_to_fiber(c->resumer_fiber, 0);
#endif
#if defined(CARRY_FLAGS)
    carry_flags(c, c->resumer);
#endif
#if RNL_HAVE_FCONTEXT
    c->resumer = jump_fcontext(c->resumer, NULL).from;
#else
    swapcontext(&c->context, &c->resumer);
#endif
#if defined(CORO_ASAN)
    arrived(c, c->fake_stack);
#endif
}

static void coro_main(struct rnl_coro *c)
{
    for (;;) {
        c->fn(c, c->arg);
        c->returned = 1;
        switch_out(c);
    }
}

#if RNL_HAVE_FCONTEXT
static void coro_entry(struct transfer t)
{
    struct rnl_coro *c = t.data;
    c->resumer = t.from;
    arrived(c, NULL);
    coro_main(c);
}

static void make_context(struct rnl_coro *c)
{
    c->context = make_fcontext(c->top, stack_bytes(c), coro_entry);
#if defined(CARRY_FLAGS)
    const uint32_t *saved = c->context;
    uint16_t control;
    __asm__("fnstcw %0" : "=m"(control));
    c->carry_flags = saved[0] == _mm_getcsr() && (saved[1] & 0xffff) == control;
#endif
}
#else
/* makecontext passes ints only. */
static void coro_entry(unsigned high, unsigned low)
{
    struct rnl_coro *c = (struct rnl_coro *)(uintptr_t)((uint64_t)high << 32 | low);
    arrived(c, NULL);
    coro_main(c);
}

static void make_context(struct rnl_coro *c)
{
    uint64_t p = (uint64_t)(uintptr_t)c;
    getcontext(&c->context);
    c->context.uc_stack.ss_sp = c->base + c->pool->guard_bytes;
    c->context.uc_stack.ss_size = stack_bytes(c);
    c->context.uc_link = NULL;
    makecontext(&c->context, (void (*)(void))coro_entry, 2, (unsigned)(p >> 32), (unsigned)p);
}
#endif

/* From the resumer to the coroutine; back when it yields or returns. */
static inline void switch_in(struct rnl_coro *c)
{
#if defined(CORO_ASAN)
    void *fake_stack;
    __sanitizer_start_switch_fiber(&fake_stack, stack_bottom(c), stack_bytes(c));
#endif
#if defined(CORO_TSAN)
    if (c->fiber == NULL)
        c->fiber = __tsan_create_fiber(0);
    c->resumer_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(c->fiber, 0);
#endif
#if defined(CARRY_FLAGS)
    carry_flags(c, c->context);
#endif
#if RNL_HAVE_FCONTEXT
    c->context = jump_fcontext(c->context, c).from;
#else
    swapcontext(&c->resumer, &c->context);
#endif
#if defined(CORO_ASAN)
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
#endif
}

/* ---- the pool ---- */

int rnl_coro_pool_new(uint32_t max, size_t bytes, struct rnl_coro_pool **out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t overhead = sizeof(struct rnl_coro) + COLOURS_BYTES;
    if (bytes > SIZE_MAX / 2)
        return rnl_fail(RNL_ERR_NO_MEMORY, "handler stacks of %zu bytes do not fit into memory", bytes);
    struct rnl_coro_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a pool of handler stacks");
    pool->max = max;
    pool->guard_bytes = (GUARD_BYTES + page - 1) / page * page;
    pool->map_bytes = pool->guard_bytes + (bytes + overhead + page - 1) / page * page;
    *out = pool;
    return 0;
}

static struct rnl_coro *map_stack(struct rnl_coro_pool *pool)
{
    char *base = mmap(NULL, pool->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    if (mprotect(base + pool->guard_bytes, pool->map_bytes - pool->guard_bytes, PROT_READ | PROT_WRITE) != 0) {
        munmap(base, pool->map_bytes);
        return NULL;
    }
    struct rnl_coro *c = (struct rnl_coro *)(void *)(base + pool->map_bytes - (sizeof(struct rnl_coro) + 63) / 64 * 64);
    c->pool = pool;
    c->base = base;
    c->top = (char *)c - pool->mapped % COLOURS * COLOUR_BYTES;
    c->fresh = 1;
    c->next_mapped = pool->all;
    pool->all = c;
    pool->mapped++;
#if defined(CORO_ASAN)
    __lsan_register_root_region(base + pool->guard_bytes, pool->map_bytes - pool->guard_bytes);
#endif
#if defined(VALGRIND_STACK_REGISTER)
    c->valgrind_id = VALGRIND_STACK_REGISTER(base + pool->guard_bytes, c->top);
#endif
    return c;
}

/* What ran on the stack is forgotten; the next use begins afresh. */
static void forget(struct rnl_coro *c)
{
    c->fresh = 1;
#if defined(CORO_ASAN)
    __asan_unpoison_memory_region(stack_bottom(c), stack_bytes(c));
#endif
#if defined(CORO_TSAN)
    if (c->fiber != NULL)
        __tsan_destroy_fiber(c->fiber);
    c->fiber = NULL;
#endif
}

static void put_back(struct rnl_coro *c)
{
    c->next_free = c->pool->free;
    c->pool->free = c;
    c->pool->in_use--;
}

void rnl_coro_pool_free(struct rnl_coro_pool *pool)
{
    if (pool == NULL)
        return;
    for (struct rnl_coro *c = pool->all, *next; c != NULL; c = next) {
        next = c->next_mapped;
        forget(c);
#if defined(CORO_ASAN)
        __lsan_unregister_root_region(c->base + pool->guard_bytes, pool->map_bytes - pool->guard_bytes);
#endif
#if defined(VALGRIND_STACK_DEREGISTER)
        VALGRIND_STACK_DEREGISTER(c->valgrind_id);
#endif
        munmap(c->base, pool->map_bytes);
    }
    free(pool);
}

uint32_t rnl_coro_in_use(const struct rnl_coro_pool *pool)
{
    return pool->in_use;
}

uint32_t rnl_coro_max(const struct rnl_coro_pool *pool)
{
    return pool->max;
}

/* ---- coroutines ---- */

int rnl_coro_start(struct rnl_coro_pool *pool, rnl_coro_fn *fn, void *arg, struct rnl_coro **out)
{
    struct rnl_coro *c = pool->free;
    if (c != NULL) {
        pool->free = c->next_free;
    } else {
        if (pool->mapped >= pool->max)
            return RNL_NO_ROOM;
        c = map_stack(pool);
        if (c == NULL)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for handler stack %u of at most %u, %zu bytes each",
                            pool->mapped + 1, pool->max, pool->map_bytes);
    }
    pool->in_use++;
    c->fn = fn;
    c->arg = arg;
    if (c->fresh) {
        c->fresh = 0;
        make_context(c);
    }
    *out = rnl_coro_resume(c) ? c : NULL;
    return 0;
}

int rnl_coro_resume(struct rnl_coro *c)
{
    c->returned = 0;
    switch_in(c);
    if (!c->returned)
        return 1;
    put_back(c);
    return 0;
}

void rnl_coro_yield(struct rnl_coro *self)
{
    switch_out(self);
}

void rnl_coro_drop(struct rnl_coro *c)
{
    forget(c);
    put_back(c);
}
