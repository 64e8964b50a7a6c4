/* SPDX-License-Identifier: BSD-3-Clause
 *
 * turn.h - whose turn it is to work on an endpoint: its owner's, which is the thread of the program, or that of the
 * thread of the library that serves it (rnl_progress_start). Nothing else of the endpoint is locked.
 *
 *              the owner has called nothing for a while
 *     OWNER ----------------------------------------------> THREAD
 *       ^ ^            it gives back when asked               | ^
 *       | +---------------------------------------------------+ |
 *       |                                           it sleeps | | it was woken
 *       |        the owner's next call                        v |
 *       +---------------------------------------------------- ASLEEP
 *
 * The owner's mark is `calls`, odd during a call: two stores and a load in each call. Taking its turn, the thread
 * changes `holder`, issues the heavy fence, and looks at `calls`: either it sees the mark, or the owner, which looks at
 * `holder` after it has marked, sees that the turn is taken (tests/model/progress.pml). */
#ifndef RNL_ENDPOINT_TURN_H
#define RNL_ENDPOINT_TURN_H

#include "base/error.h"
#include "base/fence.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rnl_endpoint;
struct rnl_stream;

enum rnl_turn_holder { RNL_TURN_OWNER = 0, RNL_TURN_THREAD, RNL_TURN_ASLEEP };

struct rnl_turn {
    _Atomic uint32_t holder; /* enum rnl_turn_holder */
    _Atomic uint32_t calls;  /* odd while the owner is in a call; changes with each */
    _Atomic uint32_t asked;  /* the owner waits for its turn */
    _Atomic uint32_t serves; /* the thread has its turn; only the thread itself can rely on that */
    _Atomic uint32_t ends;   /* the thread is to end */
    _Atomic uint32_t bell;   /* word on which the thread sleeps while the owner has its turn */
    _Atomic uint32_t parked; /* the owner sleeps in a call */
    _Atomic uint32_t far;    /* the thread sleeps until the owner has */
    uint32_t depth;          /* calls of the owner inside each other, unless the fast path is open in one */
    uint32_t handlers;       /* while the thread serves: fast.handlers, which is 0 then, so that it finds no handler */
    struct rnl_stream *open_short;          /* between calls of the owner: its fast.open_short, which is NULL then */
    void (*promote)(struct rnl_endpoint *); /* what the thread does first in its turn: it moves that message to the
                                                  general path (rnl_stream_promote) */
    uint8_t heads;                          /* messages wait at the head of their lanes for the owner */
    uint8_t no_fence;                       /* there is no heavy fence: the owner fences */
    uint8_t runs;                           /* the thread was started */
    pthread_t thread, self;                 /* for the owner; for the thread */
};

/* ---- the owner ---- */

/* Begin and end a call. They do nothing in functions that the thread runs. */
void rnl_turn_begin(struct rnl_endpoint *ep);
void rnl_turn_end(struct rnl_endpoint *ep);
/* The turn of a call that is the only one of the owner. may_begin_only: whether the caller may begin so, which
 * is not said of the thread. begin_only returns false if the turn has to be requested by rnl_turn_begin instead. */
RNL_INLINE bool rnl_turn_may_begin_only(const struct rnl_turn *t)
{
    return t->depth == 0 &&
           !atomic_load_explicit(&t->serves, memory_order_acquire); /* set: the thread may be the caller */
}

RNL_INLINE bool rnl_turn_begin_only(struct rnl_turn *t)
{
    atomic_store_explicit(&t->calls, atomic_load_explicit(&t->calls, memory_order_relaxed) + 1, memory_order_relaxed);
    if (RNL_UNLIKELY(t->no_fence))
        rnl_full_fence();
    else
        atomic_signal_fence(memory_order_seq_cst); /* pairs with the heavy fence of the thread */
    return RNL_LIKELY(atomic_load_explicit(&t->holder, memory_order_acquire) == RNL_TURN_OWNER);
}

RNL_INLINE void rnl_turn_end_only(struct rnl_turn *t)
{
    atomic_store_explicit(&t->calls, atomic_load_explicit(&t->calls, memory_order_relaxed) + 1,
                          memory_order_release); /* pairs with the load of the thread that takes its turn */
}
/* Waits for the owner's turn, after the beginning of a call. */
void rnl_turn_request(struct rnl_endpoint *ep);
/* Enclose a sleep of the owner inside a call. */
void rnl_turn_parks(struct rnl_endpoint *ep);
void rnl_turn_parked(struct rnl_endpoint *ep);
/* Ends the thread. */
void rnl_turn_stop(struct rnl_endpoint *ep);

/* ---- the thread ---- */

/* Whether the caller is the thread, and has its turn. */
bool rnl_turn_is_threads(const struct rnl_endpoint *ep);
void rnl_turn_thread_begins(struct rnl_endpoint *ep); /* once, before all else */
/* Waits until the owner has called nothing for a while. False: the thread is to end. */
bool rnl_turn_take(struct rnl_endpoint *ep);
void rnl_turn_give(struct rnl_endpoint *ep);
/* Enclose a sleep of the thread, during which the owner may take its turn. After the second one the thread has its turn
 * again, or is to end: then the owner waits for that, and touches nothing. */
void rnl_turn_sleeps(struct rnl_endpoint *ep);
void rnl_turn_slept(struct rnl_endpoint *ep);

#endif
