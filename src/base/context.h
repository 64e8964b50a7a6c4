/* SPDX-License-Identifier: BSD-3-Clause
 *
 * context.h - a thread of execution on a stack of the caller's, and switching to it and back: what coroutines of
 * handlers (coro.h) and of the simulator (sim/engine/coro.h) have in common. Sanitizers are told of each switch.
 *
 * It may be entered from another thread each time, and code in it may enter others and leave from there: it then goes
 * on where it left. */
#ifndef RNL_BASE_CONTEXT_H
#define RNL_BASE_CONTEXT_H

#include <stddef.h>

struct rnl_context {
    void *inside, *outside; /* where it stands while others run; where who entered stands while it runs */
    void (*fn)(void *arg);
    void *arg;
    unsigned char *stack; /* the lowest byte */
    size_t stack_bytes;
    int carries;                /* the layout of what is saved is as carry_flags() knows it */
    void *fiber, *fiber_inside; /* thread sanitizer's: of `stack`, and the one it left from, */
    void *fiber_outside;
    void *fake_stack; /* address sanitizer's; and the stacks on either side of the switch */
    const void *bottom_inside, *bottom_outside;
    size_t bytes_inside, bytes_outside;
};

/* The next enter calls fn(arg) on that stack; fn never returns. What is there has been forgotten, or is zeroed. */
void rnl_context_make(struct rnl_context *, void *stack, size_t stack_bytes, void (*fn)(void *arg), void *arg);
/* From outside: goes on inside; comes back when that leaves. */
void rnl_context_enter(struct rnl_context *);
/* From inside: back to who entered. last: it is never entered again; this does not return then. */
void rnl_context_leave(struct rnl_context *, int last);
/* What lies on its stack means nothing any more, and is not unwound. */
void rnl_context_forget(struct rnl_context *);

#endif
