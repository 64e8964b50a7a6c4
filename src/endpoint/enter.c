/* SPDX-License-Identifier: BSD-3-Clause
 *
 * enter.c - who may be in a call of an endpoint now: its owner, one thread at a time of a shared one, nobody in a
 * forked child. */
#include "base/error.h"
#include "endpoint/endpoint.h"
#include "endpoint/turn.h"

#include <pthread.h>

int rnl_ep_enter_slow(struct rnl_endpoint *ep)
{
    if (ep->fast.open == RNL_EP_SERVED) {
        rnl_turn_begin(ep);
        return 0;
    }
    if (ep->fast.open == RNL_EP_FORKED)
        return rnl_fail(RNL_ERR_FORKED,
                        "this process was forked from the one that opened the endpoint; only the parent may use it");
    if (ep->fast.open == RNL_EP_YIELDED && !pthread_equal(ep->wait.owner, pthread_self())) {
        ep->wait.many_threads = 1;
        return rnl_fail(
            RNL_ERR_CONTEXT,
            "another thread is in a call of this endpoint that waits, and one thread at a time may call: "
            "open it shared (RNL_SHARED, or the interface's option for threads), or give each thread one of its own");
    }
    if (ep->flags & RNL_SHARED)
        pthread_mutex_lock(&ep->lock);
    return 0;
}

const char *rnl_ep_threads_text(const struct rnl_endpoint *ep)
{
    return ep->wait.many_threads ? " (or several threads called this endpoint at once: open it shared (RNL_SHARED, or "
                                   "the interface's option for threads))"
                                 : "";
}

void rnl_ep_leave_slow(struct rnl_endpoint *ep)
{
    if (ep->flags & RNL_SHARED)
        pthread_mutex_unlock(&ep->lock);
    else if (ep->fast.open == RNL_EP_SERVED) /* else the call that has opened the fast path ends the turn */
        rnl_turn_end(ep);
}

void rnl_ep_away(struct rnl_endpoint *ep)
{
    if (ep->fast.open != RNL_EP_OPEN || ep->flags & RNL_EP_GUARDED)
        return;
    ep->wait.many_threads |= !pthread_equal(ep->wait.owner, pthread_self());
    ep->wait.owner = pthread_self();
    ep->fast.open = RNL_EP_YIELDED;
    ep->fast.ranks = 0;
    ep->fast.pending_work |= RNL_PENDING_OPEN;
}

void rnl_ep_back(struct rnl_endpoint *ep)
{
    if (ep->fast.open != RNL_EP_YIELDED) /* it is shared, or this is a forked child */
        return;
    ep->fast.open = RNL_EP_OPEN;
    rnl_ep_set_fast(ep);
}
