/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coro.h - pooled stacks on which a handler can be suspended. A pool belongs to one endpoint. Below each stack lie 256
 * KiB that nothing can touch, and stacks are kept for reuse. Sanitizers and valgrind are informed of each switch. */
#ifndef RNL_BASE_CORO_H
#define RNL_BASE_CORO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rnl_coro;
struct rnl_coro_pool;
typedef void rnl_coro_fn(struct rnl_coro *self, void *arg);

/* Makes a pool of at most `max` stacks of at least `stack_bytes`, mapped on demand. One thread at a time uses a pool
 * and what runs on it. Returns 0 or RNL_ERR_NO_MEMORY. */
int rnl_coro_pool_new(uint32_t max, size_t stack_bytes, struct rnl_coro_pool **out);
/* Unmaps all stacks; suspended coroutines are dropped without unwinding. NULL is allowed. */
void rnl_coro_pool_free(struct rnl_coro_pool *);

/* Takes a stack and runs fn(self, arg) on it until it returns or yields. *out is the suspended coroutine, or NULL if it
 * returned. RNL_NO_ROOM: all stacks are in use; RNL_ERR_NO_MEMORY: no stack could be mapped. In both cases nothing
 * ran. */
int rnl_coro_start(struct rnl_coro_pool *, rnl_coro_fn *fn, void *arg, struct rnl_coro **out);
/* Continues a suspended coroutine, from any thread; code on its stack must not keep addresses of thread-local objects
 * across a yield. Returns true if it suspended again, false if it returned and its stack is back in the pool. */
bool rnl_coro_resume(struct rnl_coro *);
/* From inside: goes back to whoever started or resumed this coroutine. Returns when it is resumed. */
void rnl_coro_yield(struct rnl_coro *self);
/* Gives up a suspended coroutine: its stack is reused, and never unwound. */
void rnl_coro_drop(struct rnl_coro *);
/* Returns true if the address lies in what nothing can touch below the coroutine's stack: code on it has overrun it.
 * For signal handlers, too. */
bool rnl_coro_guards(const struct rnl_coro *, const void *address);
uint32_t rnl_coro_in_use(const struct rnl_coro_pool *);
uint32_t rnl_coro_max(const struct rnl_coro_pool *);

/* ---- context.c: a stack of the caller's, and switching to it and back; sim/engine uses it, too ---- */

struct rnl_context {
    /* saved state of the context while others run, and of its caller while it runs */
    void *inside, *outside;
    void (*fn)(void *arg);
    void *arg;
    unsigned char *stack; /* lowest byte */
    size_t stack_bytes;
    int carries;                /* the saved state has the layout that carry_flags() knows */
    void *fiber, *fiber_inside; /* thread sanitizer: fiber of `stack`, and those on either side */
    void *fiber_outside;
    void *fake_stack; /* address sanitizer: its stack, and the stacks on either side */
    const void *bottom_inside, *bottom_outside;
    size_t bytes_inside, bytes_outside;
};

/* Prepares a context: the next enter calls fn(arg) on that stack, and fn never returns. *c is zeroed, or was
 * forgotten. */
void rnl_context_make(struct rnl_context *, void *stack, size_t stack_bytes, void (*fn)(void *arg), void *arg);
/* From outside: continues inside, and returns when the context leaves. */
void rnl_context_enter(struct rnl_context *);
/* From inside: returns to the caller of enter. With `last` the context is never entered again, and this call does not
 * return. */
void rnl_context_leave(struct rnl_context *, int last);
/* Discards what lies on the stack, without unwinding. */
void rnl_context_forget(struct rnl_context *);

#endif
