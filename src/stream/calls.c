/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls.c - what the program asked to be told: posts that are done, peers that died. Whoever finds such a thing only
 * notes it; it is told here, at the end of an extract, when no list of the endpoint is being walked and no handler
 * runs. What is told may send and post, as a handler may, and like one must not make progress or close: so nothing
 * recurs, and nothing changes under the feet of those below. */
#include "stream/stream.h"

#include <stdlib.h>

#include "stream/post.h"

void rnl_stream_done(struct rnl_endpoint *ep, struct rnl_post *p, int status)
{
    p->status = status;
    p->next = NULL;
    if (ep->done_first)
        ep->done_last->next = p;
    else
        ep->done_first = p;
    ep->done_last = p;
    ep->calls++;
    rnl_ep_chores(ep);
    if (ep->fd_armed)
        rnl_ep_busy(ep); /* an extract has something to tell */
}

static void tell_posts(struct rnl_endpoint *ep)
{
    struct rnl_post *p = ep->done_first, *next;
    ep->done_first = ep->done_last = NULL; /* what is posted meanwhile is told next time */
    for (; p && !rnl_ep_forked(ep); p = next) {
        next = p->next;
        ep->calls--;
        ep->post_bytes -= p->charge;
        if (p->done)
            p->done(p->arg, p->status);
        free(p);
    }
}

static void tell_deaths(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; ep->untold && i < ep->size; i++) {
        struct rnl_peer *p = &ep->peer[i];
        if (!p->untold)
            continue;
        p->untold = 0;
        ep->untold--;
        ep->calls--;
        if (ep->on_death)
            ep->on_death(ep->on_death_arg, i, (enum rnl_death_reason)p->reason);
    }
}

unsigned rnl_stream_calls(struct rnl_endpoint *ep)
{
    unsigned n = ep->calls;
    ep->in_handler = RNL_IN_CALL;
    tell_posts(ep);
    tell_deaths(ep);
    ep->in_handler = 0;
    rnl_ep_chores(ep);
    return n;
}
