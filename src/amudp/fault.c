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
static int losing;                        /* some endpoint has messages held back */

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
    double rate = rnl_amudp_share("FAULT_RATE");
    if (rate <= 0)
        return AM_OK;
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
    __atomic_store_n(&losing, 1, __ATOMIC_RELAXED);
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

/* The first one that is due, sent, or taken for lost again. `all`: whatever it is due. 0 = there is none. */
static int send_one(struct amudp_ep *ep, int all)
{
    int held = rnl_am_hold(), again = 0;
    struct held *h = ep->fault->first;
    uint64_t now = h != NULL ? now_ns(ep) : 0;
    if (h != NULL && !all && h->due_ns > now)
        h = NULL;
    if (h != NULL) {
        ep->fault->first = h->next;
        ep->stats.RequestsRetransmitted[h->q.category]++;
        again = !all && chosen(ep);
        if (again)
            later(ep, h, now);
    }
    rnl_am_let_go(held);
    if (h == NULL || again)
        return again;
    (void)rnl_amudp_send(ep, &h->q, h->args); /* what is wrong with it comes back to handler 0 */
    free(h);
    return 1;
}

void rnl_amudp_fault_free(struct amudp_ep *ep)
{
    if (ep->fault == NULL)
        return;
    while (send_one(ep, 1))
        ;
    free(ep->fault);
    ep->fault = NULL;
}

/* One that has something due; NULL: *left_ns until one has, -1 = nothing is held back. */
static struct amudp_ep *first_due(int64_t *left_ns)
{
    int held = rnl_am_hold();
    struct amudp_ep *found = NULL;
    *left_ns = -1;
    for (struct amudp_eb *eb = rnl_amudp_bundles; eb != NULL && found == NULL; eb = eb->next)
        for (struct amudp_ep *ep = eb->first; ep != NULL && found == NULL; ep = ep->next) {
            if (ep->fault == NULL || ep->fault->first == NULL)
                continue;
            uint64_t now = now_ns(ep), due = ep->fault->first->due_ns;
            if (due <= now)
                found = ep;
            else if (*left_ns < 0 || (int64_t)(due - now) < *left_ns)
                *left_ns = (int64_t)(due - now);
        }
    rnl_am_let_go(held);
    return found;
}

int64_t rnl_amudp_fault_poll(void)
{
    int64_t left_ns = -1;
    struct amudp_ep *ep;
    if (RNL_LIKELY(!__atomic_load_n(&losing, __ATOMIC_RELAXED)))
        return -1;
    while ((ep = first_due(&left_ns)) != NULL)
        (void)send_one(ep, 0);
    return left_ns;
}
