/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session.c - sessions, ports and bundles; polling, waiting, and taking a dead rank back. */
#include "stream/poll.h"

#include "api/am/core.h"

#include <stdlib.h>

static int null(const char *function)
{
    return rnl_am_fail(AM_ERR_BAD_ARG, "%s needs a bundle, as AM_AllocateBundle has made it", function);
}

/* ---- sessions ---- */

static void forget_rejected(struct rnl_am_port *port)
{
    while (port->rejected) {
        struct rnl_am_rejected *r = port->rejected;
        port->rejected = r->next;
        free(r);
    }
}

static void port_free(struct rnl_am_port *port)
{
    forget_rejected(port);
    for (uint32_t i = 0; i < port->ranks; i++)
        for (unsigned lane = 0; lane < 2; lane++)
            free(port->peer[i].of[lane].record);
    for (uint32_t i = 0; i < port->buffers; i++)
        free(port->buffer[i]);
    free(port->peer);
    free(port->endpoint);
    free(port);
}

static void drop(struct rnl_am_port *port)
{
    for (uint32_t i = 0; i < port->endpoints; i++)
        if (port->endpoint[i])
            rnl_am_free_endpoint_now(port->endpoint[i]);
    while (port->bundle) {
        struct rnl_am_bundle *b = port->bundle;
        port->bundle = b->next;
        free(b);
    }
    port_free(port);
}

void rnl_am_drop(rnl_endpoint *rank)
{
    struct rnl_am_port *port = rnl_am_port_of(rank);
    if (port)
        drop(port);
}

static int port_new(rnl_endpoint *rank, struct rnl_am_port **out)
{
    uint32_t generation = (uint32_t)rank->env->ops->random(rank->env); /* a virtual host may crash here */
    struct rnl_am_port *port = aligned_alloc(64, (sizeof *port + 63) & ~(size_t)63);
    if (!port)
        return rnl_am_fail(AM_ERR_RESOURCE, "no memory for a bundle");
    memset(port, 0, sizeof *port);
    port->ep = rank;
    port->ranks = rank->size;
    port->rejected_last = &port->rejected;
    port->generation = generation; /* random, so that names of an earlier process do not match */
    port->deaths = rank->deaths_seen;
    size_t bytes = (rank->size * sizeof *port->peer + 63) & ~(size_t)63;
    port->peer = aligned_alloc(64, bytes); /* each message writes to it, so it shares no cache line */
    if (port->peer)
        memset(port->peer, 0, bytes);
    if (!port->peer) {
        free(port);
        return rnl_am_fail(AM_ERR_RESOURCE, "no memory for a table of %u ranks", rank->size);
    }
    int status = rnl_iface_counters(&rnl_am_iface, rank->c, &port->count);
    if (status == 0)
        status = rnl_am_register(port);
    if (status < 0) {
        port_free(port);
        return rnl_am_status(status);
    }
    *out = port;
    return AM_OK;
}

int rnl_am_init(void)
{
    rnl_am.sessions++;
    return AM_OK;
}

static int not_init(const char *function)
{
    return rnl_am_fail(AM_ERR_NOT_INIT, "%s was called before AM_Init or after AM_Terminate", function);
}

int rnl_am_terminate(void)
{
    if (rnl_am.sessions == 0)
        return not_init("AM_Terminate");
    struct rnl_am_port *port = rnl_am.port;
    if (rnl_am.sessions > 1 || !port) {
        rnl_am.sessions--;
        return AM_OK;
    }
    if (port->ep->fast.open == RNL_EP_FORKED)
        return rnl_am_enter_slow(port);
    int status = rnl_am_outside(port, "AM_Terminate");
    if (status != AM_OK)
        return status;
    while (port->rejected && !port->ep->close.job_gone) { /* rnl_close knows nothing of rejected replies */
        struct rnl_idle w = {.deadline_ns = UINT64_MAX};
        if (!rnl_stream_progress(port->ep))
            rnl_ep_idle(port->ep, &w);
        rnl_am_do_pending(port);
    }
    /* The endpoints are freed after the close, since messages to them arrive until then. */
    if (port->guarded)
        rnl_ep_unguard(port->ep);
    int closed = rnl_close(port->ep);
    if (closed == RNL_ERR_CONTEXT || closed == RNL_ERR_FORKED)
        return rnl_am_status(closed);
    rnl_am = (struct rnl_am){0};
    drop(port);
    return rnl_am_status(closed);
}

/* ---- bundles ---- */

static int bundle_new(struct rnl_am_port *port, int type, eb_t *out)
{
    int status = rnl_am_enter(port);
    if (status != AM_OK)
        return status;
    status = rnl_am_leave(port, rnl_am_outside(port, "AM_AllocateBundle"));
    if (status != AM_OK)
        return status;
    struct rnl_am_bundle *b = aligned_alloc(64, (sizeof *b + 63) & ~(size_t)63);
    if (!b)
        return rnl_am_fail(AM_ERR_RESOURCE, "no memory for a bundle");
    memset(b, 0, sizeof *b);
    b->port = port;
    b->type = type;
    if (!port->guarded && (type == AM_PAR || port->bundle)) {
        rnl_ep_guard(port->ep);
        port->guarded = 1;
    }
    if (port->guarded)
        pthread_mutex_lock(&port->ep->lock);
    b->next = port->bundle;
    port->bundle = b;
    (void)rnl_am_leave(port, AM_OK);
    *out = b;
    return AM_OK;
}

static int check_bundle(int type, const eb_t *out)
{
    if (rnl_am.sessions == 0)
        return not_init("AM_AllocateBundle");
    if ((type != AM_SEQ && type != AM_PAR) || !out)
        return rnl_am_fail(AM_ERR_BAD_ARG, "a bundle is AM_SEQ or AM_PAR, not %d", type);
    return AM_OK;
}

int rnl_am_allocate_bundle(int type, eb_t *bundle)
{
    int status = check_bundle(type, bundle);
    if (status != AM_OK)
        return status;
    if (!rnl_am.port) {
        rnl_endpoint *ep;
        struct rnl_options opt = {.size = sizeof opt};
        int opened = rnl_open(&ep, &opt);
        if (opened < 0)
            return rnl_am_status(opened);
        status = port_new(ep, &rnl_am.port);
        if (status != AM_OK) {
            (void)!rnl_close(ep);
            return status;
        }
        rnl_am.port->owns_ep = 1;
    }
    return bundle_new(rnl_am.port, type, bundle);
}

int rnl_am_allocate_bundle_on(rnl_endpoint *rank, int type, eb_t *bundle)
{
    int status = check_bundle(type, bundle);
    if (status != AM_OK)
        return status;
    if (!rank || rank->flags & RNL_SHARED)
        return rnl_am_fail(AM_ERR_BAD_ARG, "a bundle stands on an endpoint that is not RNL_SHARED: AM_PAR locks by "
                                           "itself");
    if (rank->fast.open == RNL_EP_FORKED)
        return rnl_am_status(rnl_ep_enter_slow(rank));
    struct rnl_am_port *port = rnl_am_port_of(rank);
    if (!port) {
        status = port_new(rank, &port);
        if (status != AM_OK)
            return status;
    }
    return bundle_new(port, type, bundle);
}

int rnl_am_free_bundle(eb_t bundle)
{
    if (!bundle)
        return null("AM_FreeBundle");
    struct rnl_am_port *port = bundle->port;
    int status = rnl_am_enter(port);
    if (status != AM_OK)
        return status;
    status = rnl_am_outside(port, "AM_FreeBundle");
    if (status != AM_OK)
        return rnl_am_leave(port, status);
    for (uint32_t i = 0; i < port->endpoints; i++)
        if (port->endpoint[i] && port->endpoint[i]->bundle == bundle)
            (void)rnl_am_free_endpoint(port->endpoint[i]);
    struct rnl_am_bundle **at = &port->bundle;
    while (*at != bundle)
        at = &(*at)->next;
    *at = bundle->next;
    free(bundle);
    (void)rnl_am_leave(port, AM_OK);
    if (!port->bundle && !port->owns_ep) {
        if (port->guarded)
            rnl_ep_unguard(port->ep);
        rnl_am_unregister(port->ep);
        port_free(port);
    }
    return AM_OK;
}

/* ---- polling ---- */

/* told: this call reports messages that were returned to an endpoint without a handler 0. */
RNL_INLINE int progress(struct rnl_am_port *port, int report)
{
    port->sent_remote = 0;
    int64_t bytes = rnl_stream_poll_pairs(port->ep, SIZE_MAX);
    if (RNL_UNLIKELY(rnl_ep_forked(port->ep)))
        return rnl_am_enter_slow(port);
    if (RNL_UNLIKELY(rnl_am_has_pending(port))) {
        rnl_am_do_pending(port);
        return bytes < 0 ? rnl_am_status((int)bytes) : report ? rnl_am_report_returned(port) : AM_OK;
    }
    return RNL_UNLIKELY(bytes < 0) ? rnl_am_status((int)bytes) : AM_OK;
}

int rnl_am_progress(struct rnl_am_port *port)
{
    return progress(port, 1);
}

int rnl_am_progress_sent(struct rnl_am_port *port)
{
    return progress(port, 0);
}

static RNL_NOINLINE int poll_other(eb_t bundle)
{
    if (!bundle)
        return null("AM_Poll");
    struct rnl_am_port *port = bundle->port;
    int status = rnl_am_enter(port);
    if (RNL_UNLIKELY(status != AM_OK))
        return status;
    status = rnl_am_outside(port, "AM_Poll");
    if (RNL_LIKELY(status == AM_OK)) {
        bundle->seen = bundle->events;
        status = rnl_am_progress(port);
    }
    return rnl_am_leave(port, status);
}

int rnl_am_poll(eb_t bundle)
{
    if (RNL_UNLIKELY(!bundle || !rnl_am_is_fast(bundle->port)))
        return poll_other(bundle);
    bundle->seen = bundle->events;
    return rnl_am_progress(bundle->port);
}

/* ---- waiting ---- */

static int wait(struct rnl_am_bundle *b, int64_t timeout_ns)
{
    struct rnl_am_port *port = b->port;
    struct rnl_endpoint *ep = port->ep;
    struct rnl_idle w = {.deadline_ns = UINT64_MAX};
    if (timeout_ns >= 0)
        w.deadline_ns = ep->env->ops->now_ns(ep->env) + (uint64_t)timeout_ns;
    uint64_t seen = b->seen; /* a copy, since polls of other threads change it meanwhile */
    while (b->events == seen) {
        unsigned things;
        (void)rnl_stream_extract(ep, UINT64_MAX, &things);
        if (rnl_ep_forked(ep))
            return rnl_am_enter_slow(port);
        if (RNL_UNLIKELY(rnl_am_has_pending(port))) {
            rnl_am_do_pending(port);
            int status = rnl_am_report_returned(port);
            if (status != AM_OK)
                return status;
        }
        if (RNL_UNLIKELY(ep->credit.starved | ep->close.job_gone)) {
            int64_t trouble = rnl_extract(ep, SIZE_MAX); /* returns and records the error */
            if (trouble < 0)
                return rnl_am_status((int)trouble);
        }
        if (things)
            w.polls = w.yields = 0;
        else if (rnl_ep_idle(ep, &w) == RNL_TIMED_OUT)
            return rnl_am_fail(AM_ERR_NOT_SENT, "nothing came within the time given");
    }
    b->seen = b->events;
    return AM_OK;
}

int rnl_am_wait_sema_for(eb_t bundle, int64_t timeout_ns)
{
    if (!bundle)
        return null("AM_WaitSema");
    struct rnl_am_port *port = bundle->port;
    int status = rnl_am_enter(port);
    if (status != AM_OK)
        return status;
    status = rnl_am_outside(port, "AM_WaitSema");
    if (status == AM_OK && bundle->mask == AM_NOEVENTS)
        status = rnl_am_fail(AM_ERR_BAD_ARG, "AM_WaitSema would sleep for ever: set the event mask to AM_NOTEMPTY");
    if (status == AM_OK) {
        bundle->waiting++;
        status = wait(bundle, timeout_ns);
        if (!rnl_ep_forked(port->ep))
            bundle->waiting--;
    }
    return rnl_am_leave(port, status);
}

int rnl_am_wait_sema(eb_t bundle)
{
    return rnl_am_wait_sema_for(bundle, -1);
}

int rnl_am_set_event_mask(eb_t bundle, int mask)
{
    if (!bundle)
        return null("AM_SetEventMask");
    if (mask != AM_NOEVENTS && mask != AM_NOTEMPTY)
        return rnl_am_fail(AM_ERR_BAD_ARG, "an event mask is AM_NOEVENTS or AM_NOTEMPTY, not %d", mask);
    int status = rnl_am_enter(bundle->port);
    if (status != AM_OK)
        return status;
    bundle->mask = mask;
    return rnl_am_leave(bundle->port, AM_OK);
}

int rnl_am_get_event_mask(eb_t bundle, int *mask)
{
    if (!bundle)
        return null("AM_GetEventMask");
    if (!mask)
        return rnl_am_fail(AM_ERR_BAD_ARG, "AM_GetEventMask needs a place for the mask");
    int status = rnl_am_enter(bundle->port);
    if (status != AM_OK)
        return status;
    *mask = bundle->mask;
    return rnl_am_leave(bundle->port, AM_OK);
}

/* ---- taking a rank back ---- */

static int readmit(struct rnl_am_port *port, unsigned rank)
{
    if (rank >= port->ranks)
        return rnl_am_fail(AM_ERR_BAD_ARG, "there is no rank %u: the job has ranks 0 to %u", rank, port->ranks - 1);
    int status = rnl_am_outside(port, "AM_Readmit");
    if (status != AM_OK)
        return status;
    if (rnl_am_has_pending(port)) /* messages in flight are returned before their connection goes */
        rnl_am_do_pending(port);
    if (rnl_ep_forked(port->ep))
        return rnl_am_enter_slow(port);
    if (rnl_peer_is_dead(&port->ep->peer[rank]) && !port->peer[rank].dead)
        return rnl_am_fail(AM_ERR_NOT_SENT,
                           "rank %u cannot be taken back yet: what it had sent is still being taken "
                           "in; poll, and try again",
                           rank);
    int core = rnl_readmit(port->ep, rank);
    if (core == RNL_BUSY)
        return AM_ERR_NOT_SENT;
    if (core == 0) { /* the serial numbers continue from where they were */
        struct rnl_am_peer *p = &port->peer[rank];
        p->dead = 0;
        p->last_replied = p->window_replied = p->requests_sent; /* every request has been answered or returned */
        p->window = p->outstanding_peak = p->outstanding_now = 0;
    }
    return rnl_am_status(core);
}

int rnl_am_readmit(eb_t bundle, unsigned rank)
{
    if (!bundle)
        return null("AM_Readmit");
    int status = rnl_am_enter(bundle->port);
    return status != AM_OK ? status : rnl_am_leave(bundle->port, readmit(bundle->port, rank));
}

rnl_endpoint *rnl_am_get_rank(eb_t bundle)
{
    return bundle ? bundle->port->ep : NULL;
}
