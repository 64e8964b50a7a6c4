/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coro.c - coroutines on pooled stacks. A stack is mapped on first use and kept; between two uses its coroutine waits
 * in the loop of body(), so that starting costs no more than resuming. The stack used last is used next.
 *
 *   base                                          top
 *   +------------+---------------------------------+----------+------------------+
 *   | guard      | stack, grows down               | colour   | struct rnl_coro  |
 *   +------------+---------------------------------+----------+------------------+
 *
 * The guard is address space that nothing can touch. It is wide because a function with a large array on its stack
 * writes first at the array's far end, and beyond a single page lies another stack. 256 KiB catch a frame of that size
 * and leave six stacks to a page of page tables; a thousand stacks reserve 320 MiB of addresses.
 *
 * Left out: unwinding of dropped coroutines, and giving back pages that one deep call has touched. */
#include "base/coro.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORO_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CORO_ASAN 1
#endif
#if defined(CORO_ASAN)
#include <sanitizer/lsan_interface.h>
#endif
#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

/* Stacks are mapped at similar addresses: without colours the busy cache lines of all would share a few cache sets. */
enum { GUARD_BYTES = 256 << 10, COLOURS = 8, COLOUR_BYTES = 256, COLOURS_BYTES = COLOURS * COLOUR_BYTES };

struct rnl_coro {
    struct rnl_context context;
    rnl_coro_fn *fn;
    void *arg;
    int returned; /* fn has returned; the coroutine waits in body() */
    int fresh;    /* the context must be made: never run, or dropped */
    struct rnl_coro_pool *pool;
    struct rnl_coro *next_free, *next_mapped;
    char *base, *top;
#if defined(VALGRIND_STACK_REGISTER)
    unsigned valgrind_id;
#endif
};

struct rnl_coro_pool {
    uint32_t max, mapped, in_use;
    size_t guard_bytes, map_bytes;
    struct rnl_coro *free, *all;
};

static void body(void *self)
{
    struct rnl_coro *c = self;
    for (;;) {
        c->fn(c, c->arg);
        c->returned = 1;
        rnl_context_leave(&c->context, 0);
    }
}

/* ---- the pool ---- */

int rnl_coro_pool_new(uint32_t max, size_t bytes, struct rnl_coro_pool **out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t overhead = sizeof(struct rnl_coro) + COLOURS_BYTES;
    if (bytes > SIZE_MAX / 2)
        return rnl_fail(RNL_ERR_NO_MEMORY, "handler stacks of %zu bytes do not fit into memory", bytes);
    struct rnl_coro_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
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

/* Forgets what ran on the stack; the next use makes the context anew. */
static void forget(struct rnl_coro *c)
{
    c->fresh = 1;
    rnl_context_forget(&c->context);
}

static void put_back(struct rnl_coro *c)
{
    c->next_free = c->pool->free;
    c->pool->free = c;
    c->pool->in_use--;
}

void rnl_coro_pool_free(struct rnl_coro_pool *pool)
{
    if (!pool)
        return;
    for (struct rnl_coro *c = pool->all, *next; c; c = next) {
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

bool rnl_coro_guards(const struct rnl_coro *c, const void *address)
{
    uintptr_t at = (uintptr_t)address, base = (uintptr_t)c->base;
    return at >= base && at - base < c->pool->guard_bytes;
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
    if (c) {
        pool->free = c->next_free;
    } else {
        if (pool->mapped >= pool->max)
            return RNL_NO_ROOM;
        c = map_stack(pool);
        if (!c)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for handler stack %u of at most %u, %zu bytes each",
                            pool->mapped + 1, pool->max, pool->map_bytes);
    }
    pool->in_use++;
    c->fn = fn;
    c->arg = arg;
    if (c->fresh) {
        c->fresh = 0;
        char *stack = c->base + pool->guard_bytes;
        rnl_context_make(&c->context, stack, (size_t)(c->top - stack), body, c);
    }
    *out = rnl_coro_resume(c) ? c : NULL;
    return 0;
}

bool rnl_coro_resume(struct rnl_coro *c)
{
    c->returned = 0;
    rnl_context_enter(&c->context);
    if (!c->returned)
        return true;
    put_back(c);
    return false;
}

void rnl_coro_yield(struct rnl_coro *self)
{
    rnl_context_leave(&self->context, 0);
}

void rnl_coro_drop(struct rnl_coro *c)
{
    forget(c);
    put_back(c);
}
