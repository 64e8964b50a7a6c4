/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fault.c - messages that are lost on purpose (fault.h). Held back ones lie in a list by the time they are due; each
 * has a copy of what it brings, so the caller's memory is free again as it always is. */
#include "amudp/fault.h"

#include "base/chance.h"
#include "endpoint/endpoint.h"
#include "endpoint/link.h"
#include "transport/fault/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US_NS 1000ull

struct held {
    struct held *next;
    uint64_t due_ns, wait_ns; /* wait: what the next loss of it costs */
    struct rnl_amudp_request q;
    int32_t args[AMUDP_MAX_SHORT];
    char bytes[];
};
struct rnl_amudp_fault {
    double share; /* of requests that a loss on their way, or on their reply's, befalls */
    uint64_t first_ns, most_ns;
    long backoff;
    struct held *first;
    unsigned leaving; /* of threads that send one which was held back: the endpoint stays as long */
};

static struct rnl_env *env_of(const struct amudp_ep *ep)
{
    return rnl_am_get_rank(ep->bundle->core)->env;
}

static uint64_t now_ns(const struct amudp_ep *ep)
{
    struct rnl_env *env = env_of(ep);
    return env->ops->now_ns(env);
}

static int chosen(const struct amudp_ep *ep)
{
    struct rnl_env *env = env_of(ep);
    return (double)(env->ops->random(env) >> 11) / 9007199254740992.0 < ep->fault->share; /* 53 bits */
}

static const struct rnl_transport *lossy; /* the rank's, once it is */
static unsigned losing;                   /* endpoints that may have messages held back */

void rnl_amudp_fault_end(void)
{
    lossy = NULL;
}

/* From now on the rank's datagrams are lost, those that it sends: its peers see to the others. */
static int lose_datagrams(struct rnl_endpoint *rank, double rate)
{
    struct rnl_remote *r = rank->remote;
    char text[32];
    if (r == NULL || r->t == lossy)
        return AM_OK;
    snprintf(text, sizeof text, "loss=%.4f%%", rate * 100);
    if (rnl_fault_wrap(&r->t, text, rank->env->ops->now_ns(rank->env)) < 0)
        return rnl_amudp_error(AM_ERR_RESOURCE, "AM_AllocateEndpoint");
    lossy = rank->env->datagrams = r->t;
    return AM_OK;
}

/* Its messages are datagrams. */
static int is_away(const struct amudp_ep *ep, int index)
{
    struct rnl_endpoint *rank = rnl_am_get_rank(ep->bundle->core);
    rnl_am_en name;
    return rank->remote != NULL && rnl_am_get_translation_name(ep->core, index, &name) == AM_OK &&
           name.rank < rank->size && rnl_remote_away(rank, name.rank);
}

int rnl_amudp_fault_new(struct amudp_ep *ep)
{
    static int said;
    double rate = rnl_amudp_share("FAULT_RATE", "AM_AllocateEndpoint");
    if (rate <= 0)
        return rate < 0 ? AM_ERR_BAD_ARG : AM_OK;
    int r = lose_datagrams(rnl_am_get_rank(ep->bundle->core), rate);
    if (r != AM_OK)
        return r;
    struct rnl_amudp_fault *f = calloc(1, sizeof *f);
    if (f == NULL)
        return rnl_amudp_wrong(AM_ERR_RESOURCE, "AM_AllocateEndpoint", "no memory for what FAULT_RATE asks for");
    f->share = rate + (1 - rate) * rate;
    f->first_ns = (uint64_t)rnl_amudp_setting("REQUESTTIMEOUT_INITIAL", 1, 1000000000, 100000) * US_NS;
    f->most_ns = (uint64_t)rnl_amudp_setting("REQUESTTIMEOUT_MAX", 1, 1000000000, 30000000) * US_NS;
    f->backoff = rnl_amudp_setting("REQUESTTIMEOUT_BACKOFF", 1, 100, 2);
    ep->fault = f;
    __atomic_add_fetch(&losing, 1, __ATOMIC_RELAXED);
    if (!said)
        rnl_amudp_tell("FAULT_RATE loses %g of the packets on purpose", rate);
    said = 1;
    return AM_OK;
}

static void later(struct amudp_ep *ep, struct held *h, uint64_t now)
{
    struct held **at = &ep->fault->first;
    h->due_ns = now + h->wait_ns;
    h->wait_ns *= (uint64_t)ep->fault->backoff;
    if (h->wait_ns > ep->fault->most_ns)
        h->wait_ns = ep->fault->most_ns;
    while (*at != NULL && (*at)->due_ns <= h->due_ns)
        at = &(*at)->next;
    h->next = *at;
    *at = h;
}

int rnl_amudp_fault_send(struct amudp_ep *ep, const struct rnl_amudp_request *q, const int32_t *args)
{
    int held = rnl_am_hold(), lost = !is_away(ep, q->dest) && chosen(ep);
    rnl_am_let_go(held);
    if (!lost)
        return rnl_amudp_send(ep, q, args);
    struct held *h = malloc(sizeof *h + q->nbytes);
    if (h == NULL) /* none is lost then */
        return rnl_amudp_send(ep, q, args);
    h->q = *q;
    h->q.async = 0;
    h->wait_ns = ep->fault->first_ns;
    if (q->numargs > 0)
        memcpy(h->args, args, sizeof *args * (size_t)q->numargs);
    if (q->nbytes > 0)
        memcpy(h->bytes, q->from, q->nbytes);
    h->q.from = h->bytes;
    held = rnl_am_hold();
    rnl_am_eb bundle = ep->bundle->core;
    h->q.since_ns = now_ns(ep);
    later(ep, h, h->q.since_ns);
    rnl_am_let_go(held);
    return rnl_am_poll(bundle); /* as every request */
}

/* The first one that it holds back, which is the caller's to send; NULL: none. The lock is held. */
static struct held *take(struct amudp_ep *ep)
{
    struct held *h = ep->fault->first;
    if (h == NULL)
        return NULL;
    ep->fault->first = h->next;
    ep->fault->leaving++;
    ep->stats.RequestsRetransmitted[h->q.category]++;
    return h;
}

static void send_taken(struct amudp_ep *ep, struct held *h)
{
    (void)rnl_amudp_send(ep, &h->q, h->args); /* what is wrong with it comes back to handler 0 */
    free(h);
    int held = rnl_am_hold();
    ep->fault->leaving--;
    rnl_am_let_go(held);
}

void rnl_amudp_fault_flush(struct amudp_ep *ep)
{
    for (;;) {
        int held = rnl_am_hold();
        struct held *h = ep->fault != NULL ? take(ep) : NULL;
        int done = h == NULL && (ep->fault == NULL || ep->fault->leaving == 0);
        rnl_am_let_go(held);
        if (h != NULL)
            send_taken(ep, h);
        else if (done || rnl_am_poll(ep->bundle->core) != AM_OK)
            return; /* the latter in a handler, perhaps of what this thread is sending */
    }
}

void rnl_amudp_fault_free(struct amudp_ep *ep)
{
    int held = rnl_am_hold();
    struct rnl_amudp_fault *f = ep->fault;
    ep->fault = NULL;
    rnl_am_let_go(held);
    if (f != NULL)
        __atomic_sub_fetch(&losing, 1, __ATOMIC_RELAXED);
    while (f != NULL && f->first != NULL) {
        struct held *h = f->first;
        f->first = h->next;
        free(h);
    }
    free(f);
}

/* One that is due, of any endpoint, and not taken for lost again: the caller's to send, for *of. NULL: *left_ns until
 * one is due, -1 = nothing is held back. */
static struct held *take_due(struct amudp_ep **of, int64_t *left_ns)
{
    int held = rnl_am_hold();
    struct held *h = NULL;
    *left_ns = -1;
    for (struct amudp_eb *eb = rnl_amudp_bundles; eb != NULL && h == NULL; eb = eb->next)
        for (struct amudp_ep *ep = eb->first; ep != NULL && h == NULL; ep = ep->next) {
            if (ep->fault == NULL || ep->fault->first == NULL)
                continue;
            uint64_t now = now_ns(ep);
            while (ep->fault->first != NULL && ep->fault->first->due_ns <= now && h == NULL) {
                h = take(ep);
                if (chosen(ep)) {
                    ep->fault->leaving--;
                    later(ep, h, now);
                    h = NULL;
                }
            }
            *of = ep;
            uint64_t due = ep->fault->first != NULL ? ep->fault->first->due_ns : UINT64_MAX;
            if (h == NULL && due != UINT64_MAX && (*left_ns < 0 || (int64_t)(due - now) < *left_ns))
                *left_ns = (int64_t)(due - now);
        }
    rnl_am_let_go(held);
    return h;
}

int64_t rnl_amudp_fault_poll(void)
{
    int64_t left_ns = -1;
    struct amudp_ep *ep;
    struct held *h;
    if (RNL_LIKELY(!__atomic_load_n(&losing, __ATOMIC_RELAXED)))
        return -1;
    while ((h = take_due(&ep, &left_ns)) != NULL)
        send_taken(ep, h);
    return left_ns;
}
