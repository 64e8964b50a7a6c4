/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coro.h - pooled stacks that a handler can be suspended on (design: handler coroutines). A pool belongs to one
 * endpoint; stacks have 256 KiB below that nothing can touch, and are kept for reuse. Sanitizers and valgrind are told
 * of each switch. */
#ifndef RNL_BASE_CORO_H
#define RNL_BASE_CORO_H

#include <stddef.h>
#include <stdint.h>

struct rnl_coro;
struct rnl_coro_pool;
typedef void rnl_coro_fn(struct rnl_coro *self, void *arg);

/* At most `max` stacks of at least `stack_bytes`, mapped on demand. One thread at a time uses a pool and what runs on
 * it. 0 or RNL_ERR_NO_MEMORY. */
int rnl_coro_pool_new(uint32_t max, size_t stack_bytes, struct rnl_coro_pool **out);
/* Unmaps all; suspended ones are dropped without unwinding. NULL is fine. */
void rnl_coro_pool_free(struct rnl_coro_pool *);

/* Take a stack and run fn(self, arg) on it until it returns or yields. *out = the suspended coroutine, NULL if it
 * returned. RNL_NO_ROOM: all stacks are in use; RNL_ERR_NO_MEMORY: no stack could be mapped (nothing ran in both). */
int rnl_coro_start(struct rnl_coro_pool *, rnl_coro_fn *fn, void *arg, struct rnl_coro **out);
/* Continue a suspended coroutine, from any thread: code on its stack must not keep addresses of thread-local objects
 * across a yield. 1 = it suspended again, 0 = it returned and its stack is back in the pool. */
int rnl_coro_resume(struct rnl_coro *);
/* From inside: go back to whoever started or resumed us. Returns when resumed. */
void rnl_coro_yield(struct rnl_coro *self);
/* Give up a suspended coroutine: its stack is reused, never unwound. */
void rnl_coro_drop(struct rnl_coro *);
uint32_t rnl_coro_in_use(const struct rnl_coro_pool *);
uint32_t rnl_coro_max(const struct rnl_coro_pool *);

#endif
