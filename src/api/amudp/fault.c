/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fault.c - messages that are lost on purpose (amudp_internal.h). Delayed messages lie in a list, ordered by the time
 * at which they are due. Each has a copy of its data, so the caller's memory can be used again at once, as after any
 * request. */
#include "api/amudp/amudp_internal.h"

#include "base/chance.h"
#include "endpoint/endpoint.h"
#include "endpoint/net.h"
#include "net/fault/fault.h"
#include "remote/remote_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US_NS 1000ull

struct delayed_message {
    struct delayed_message *next;
    uint64_t due_ns, wait_ns; /* wait_ns: delay of the next retransmission */
    struct rnl_amudp_request q;
    int32_t args[AMUDP_MAX_SHORT];
    char bytes[];
};
struct rnl_amudp_fault {
    double share; /* probability that a request or its reply is lost */
    uint64_t first_ns, most_ns;
    long backoff;
    struct delayed_message *first;
    unsigned leaving; /* threads that send a delayed message now; the endpoint is not freed meanwhile */
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

static bool chosen(const struct amudp_ep *ep)
{
    struct rnl_env *env = env_of(ep);
    return (double)(env->ops->random(env) >> 11) / 9007199254740992.0 < ep->fault->share; /* 53 bits */
}

static const struct rnl_transport *lossy; /* the rank's transport, once it loses datagrams */
static unsigned losing;                   /* endpoints that may have delayed messages */

void rnl_amudp_fault_end(void)
{
    lossy = NULL;
}

/* Makes the rank's transport lose datagrams that it sends; the peers' transports lose the others. */
static int lose_datagrams(struct rnl_endpoint *rank, double rate)
{
    struct rnl_remote *r = rank->remote;
    char text[32];
    if (!r || r->t == lossy)
        return AM_OK;
    snprintf(text, sizeof text, "loss=%.4f%%", rate * 100);
    if (rnl_fault_wrap(&r->t, text, rank->env->ops->now_ns(rank->env)) < 0)
        return rnl_amudp_error(AM_ERR_RESOURCE, "AM_AllocateEndpoint");
    lossy = rank->env->datagrams = r->t;
    return AM_OK;
}

/* Returns true if messages to that entry travel as datagrams. */
static bool is_remote(const struct amudp_ep *ep, int index)
{
    struct rnl_endpoint *rank = rnl_am_get_rank(ep->bundle->core);
    rnl_am_en name;
    return rank->remote && rnl_am_get_translation_name(ep->core, index, &name) == AM_OK && name.rank < rank->size &&
           rnl_ep_is_remote(rank, name.rank);
}

int rnl_amudp_fault_new(struct amudp_ep *ep)
{
    static int said;
    double rate = rnl_amudp_env_probability("FAULT_RATE", "AM_AllocateEndpoint");
    if (rate <= 0)
        return rate < 0 ? AM_ERR_BAD_ARG : AM_OK;
    int r = lose_datagrams(rnl_am_get_rank(ep->bundle->core), rate);
    if (r != AM_OK)
        return r;
    struct rnl_amudp_fault *f = calloc(1, sizeof *f);
    if (!f)
        return rnl_amudp_fail(AM_ERR_RESOURCE, "AM_AllocateEndpoint", "no memory for what FAULT_RATE asks for");
    f->share = rate + (1 - rate) * rate;
    f->first_ns = (uint64_t)rnl_amudp_env_long("REQUESTTIMEOUT_INITIAL", 1, 1000000000, 100000) * US_NS;
    f->most_ns = (uint64_t)rnl_amudp_env_long("REQUESTTIMEOUT_MAX", 1, 1000000000, 30000000) * US_NS;
    f->backoff = rnl_amudp_env_long("REQUESTTIMEOUT_BACKOFF", 1, 100, 2);
    ep->fault = f;
    __atomic_add_fetch(&losing, 1, __ATOMIC_RELAXED);
    if (!said)
        rnl_amudp_print_notice("FAULT_RATE loses %g of the packets on purpose", rate);
    said = 1;
    return AM_OK;
}

static void later(struct amudp_ep *ep, struct delayed_message *h, uint64_t now)
{
    struct delayed_message **at = &ep->fault->first;
    h->due_ns = now + h->wait_ns;
    h->wait_ns *= (uint64_t)ep->fault->backoff;
    if (h->wait_ns > ep->fault->most_ns)
        h->wait_ns = ep->fault->most_ns;
    while (*at && (*at)->due_ns <= h->due_ns)
        at = &(*at)->next;
    h->next = *at;
    *at = h;
}

int rnl_amudp_fault_send(struct amudp_ep *ep, const struct rnl_amudp_request *q, const int32_t *args)
{
    int held = rnl_am_hold(), lost = !is_remote(ep, q->dest) && chosen(ep);
    rnl_am_let_go(held);
    if (!lost)
        return rnl_amudp_send(ep, q, args);
    struct delayed_message *h = malloc(sizeof *h + q->nbytes);
    if (!h) /* without memory nothing is lost */
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
    return rnl_am_poll(bundle); /* every request polls */
}

/* Takes the first delayed message out of the list, for the caller to send. Returns NULL if there is none. The caller
 * holds the lock. */
static struct delayed_message *take(struct amudp_ep *ep)
{
    struct delayed_message *h = ep->fault->first;
    if (!h)
        return NULL;
    ep->fault->first = h->next;
    ep->fault->leaving++;
    ep->stats.RequestsRetransmitted[h->q.category]++;
    return h;
}

static void send_taken(struct amudp_ep *ep, struct delayed_message *h)
{
    (void)rnl_amudp_send(ep, &h->q, h->args); /* handler 0 gets it back if it cannot be delivered */
    free(h);
    int held = rnl_am_hold();
    ep->fault->leaving--;
    rnl_am_let_go(held);
}

void rnl_amudp_fault_flush(struct amudp_ep *ep)
{
    for (;;) {
        int held = rnl_am_hold();
        struct delayed_message *h = ep->fault ? take(ep) : NULL;
        int done = !h && (!ep->fault || ep->fault->leaving == 0);
        rnl_am_let_go(held);
        if (h)
            send_taken(ep, h);
        else if (done || rnl_am_poll(ep->bundle->core) != AM_OK)
            return; /* a poll fails in a handler, which may belong to a message that this thread sends */
    }
}

void rnl_amudp_fault_free(struct amudp_ep *ep)
{
    int held = rnl_am_hold();
    struct rnl_amudp_fault *f = ep->fault;
    ep->fault = NULL;
    rnl_am_let_go(held);
    if (f)
        __atomic_sub_fetch(&losing, 1, __ATOMIC_RELAXED);
    while (f && f->first) {
        struct delayed_message *h = f->first;
        f->first = h->next;
        free(h);
    }
    free(f);
}

/* Takes a message that is due, and is not lost again, of any endpoint, for the caller to send on *of. Returns NULL if
 * there is none; *left_ns is then the time until one is due, or -1 if no message is delayed. */
static struct delayed_message *take_due(struct amudp_ep **of, int64_t *left_ns)
{
    int held = rnl_am_hold();
    struct delayed_message *h = NULL;
    *left_ns = -1;
    for (struct amudp_eb *eb = rnl_amudp_bundles; eb && !h; eb = eb->next)
        for (struct amudp_ep *ep = eb->first; ep && !h; ep = ep->next) {
            if (!ep->fault || !ep->fault->first)
                continue;
            uint64_t now = now_ns(ep);
            while (ep->fault->first && ep->fault->first->due_ns <= now && !h) {
                h = take(ep);
                if (chosen(ep)) {
                    ep->fault->leaving--;
                    later(ep, h, now);
                    h = NULL;
                }
            }
            *of = ep;
            uint64_t due = ep->fault->first ? ep->fault->first->due_ns : UINT64_MAX;
            if (!h && due != UINT64_MAX && (*left_ns < 0 || (int64_t)(due - now) < *left_ns))
                *left_ns = (int64_t)(due - now);
        }
    rnl_am_let_go(held);
    return h;
}

int64_t rnl_amudp_fault_poll(void)
{
    int64_t left_ns = -1;
    struct amudp_ep *ep;
    struct delayed_message *h;
    if (RNL_LIKELY(!__atomic_load_n(&losing, __ATOMIC_RELAXED)))
        return -1;
    while ((h = take_due(&ep, &left_ns)) != NULL)
        send_taken(ep, h);
    return left_ns;
}
