/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pick.c - a socket over another one. It counts the datagrams of all hosts in the order in which they are sent, and
 * does to those that the plan picks what it says. */
#include <stdlib.h>
#include <string.h>

#include "net/socket/socket.h"
#include "net/wire/hello.h"
#include "support/must.h"
#include "swarm/world.h"

enum { COPY_ENTITY = 0x30000000, COPIES_MAX = 2000 };

struct swarm_picker {
    struct rnl_socket socket; /* first */
    struct swarm_picker *next;
    struct swarm_host *host;
    struct rnl_socket *under; /* NULL: closed */
    struct copy {
        struct rnl_sim_event event; /* first */
        struct copy *next;
        struct swarm_picker *picker;
        struct rnl_socket_out out;
        unsigned char at[];
    } * copies;
};

static struct swarm_picker *of(struct rnl_socket *s)
{
    return (struct swarm_picker *)(void *)s;
}

/* The socket that the host of this one has today. */
static struct rnl_socket *todays(const struct swarm_picker *p)
{
    for (struct swarm_picker *k = p->host->w->picker; k; k = k->next)
        if (k->host == p->host && k->under)
            return k->under;
    return NULL;
}

static void goes(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    struct copy *c = (struct copy *)(void *)event;
    struct swarm_world *w = c->picker->host->w;
    struct rnl_socket *under = todays(c->picker);
    struct rnl_socket_result result;
    (void)sim;
    w->replays = 1;
    if (under)
        (void)under->ops->send(under, &c->out, 1, &result);
    w->replays = 0;
}

/* A copy goes later. */
static void hold(struct swarm_picker *p, const struct rnl_socket_out *out, uint64_t later_ns)
{
    struct swarm_world *w = p->host->w;
    struct copy *c = malloc(sizeof *c + out->bytes);
    TEST_MUST(c != NULL && out->segment == 0);
    *c = (struct copy){.next = p->copies, .picker = p, .out = *out};
    p->copies = c;
    c->out.at = memcpy(c->at, out->at, out->bytes);
    rnl_sim_event_init(&c->event, goes, COPY_ENTITY + (uint32_t)w->copies++);
    TEST_MUST(rnl_sim_at(w->sim, &c->event, rnl_sim_now(w->sim) + later_ns * VC_TICKS_PER_NS) == 0);
}

/* REPLAY. */
static void again(struct swarm_picker *p, const struct rnl_socket_out *out)
{
    struct swarm_world *w = p->host->w;
    const struct swarm_plan *plan = &w->plan;
    uint64_t of_it = rnl_chance(plan->seed, 0x5a000000u + SWARM_STREAM_AGAIN, p->host->rank, w->picked);
    uint32_t src, dst, parts = plan->again;
    if (rnl_hello_peek(out->at, out->bytes, &src, &dst))
        parts = parts > RNL_CHANCE_ALWAYS / 10 ? RNL_CHANCE_ALWAYS : 10 * parts;
    if (parts && w->copies < COPIES_MAX && rnl_chance_is(of_it, parts))
        hold(p, out, 1 + rnl_chance_below(rnl_chance_mix(of_it), plan->again_ns));
}

static uint32_t picked(struct swarm_host *h)
{
    struct swarm_world *w = h->w;
    uint64_t number = ++w->picked;
    if (!h->first_ns)
        h->first_ns = 1 + rnl_sim_now(w->sim) / VC_TICKS_PER_NS;
    for (unsigned i = 0; i < SWARM_PICKS_MAX; i++)
        if (w->plan.pick[i].number == number)
            return w->plan.pick[i].what;
    return SWARM_PICK_NONE;
}

static int pick_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct swarm_picker *p = of(s);
    int i = 0;
    for (; i < n; i++) {
        uint32_t what = picked(p->host);
        *result = (struct rnl_socket_result){0};
        again(p, &out[i]);
        if (what == SWARM_PICK_LATE)
            hold(p, &out[i], p->host->w->plan.late_ns);
        if (what == SWARM_PICK_TWICE)
            (void)p->under->ops->send(p->under, &out[i], 1, result);
        if (what == SWARM_PICK_EVENTS)
            swarm_picked(p->host->w);
        if (what != SWARM_PICK_LATE && what != SWARM_PICK_DROP &&
            p->under->ops->send(p->under, &out[i], 1, result) != 1)
            break;
    }
    p->socket.datagram_max = p->under->datagram_max;
    return i;
}

static int pick_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct rnl_socket *under = of(s)->under;
    int came = under->ops->recv(under, in, n);
    s->datagram_max = under->datagram_max;
    return came;
}

static int pick_error(struct rnl_socket *s, struct rnl_socket_error *e)
{
    return of(s)->under->ops->error(of(s)->under, e);
}

static int pick_arm(struct rnl_socket *s)
{
    return of(s)->under->ops->arm(of(s)->under);
}

static int pick_fd(struct rnl_socket *s)
{
    return of(s)->under->ops->fd(of(s)->under);
}

static void pick_close(struct rnl_socket *s)
{
    of(s)->under->ops->close(of(s)->under);
    of(s)->under = NULL;
}

static const struct rnl_socket_ops ops = {.size = sizeof ops,
                                          .send = pick_send,
                                          .recv = pick_recv,
                                          .error = pick_error,
                                          .arm = pick_arm,
                                          .fd = pick_fd,
                                          .close = pick_close};

struct rnl_socket *swarm_pick_over(struct swarm_host *h, struct rnl_socket *under)
{
    struct swarm_picker *p = calloc(1, sizeof *p);
    TEST_MUST(p != NULL);
    p->socket = *under;
    p->socket.ops = &ops;
    p->under = under;
    p->host = h;
    p->next = h->w->picker;
    h->w->picker = p;
    return &p->socket;
}

void swarm_pick_free(struct swarm_world *w)
{
    for (struct swarm_picker *p = w->picker, *next; p; p = next) {
        next = p->next;
        for (struct copy *c = p->copies, *after; c; c = after) {
            after = c->next;
            free(c);
        }
        free(p);
    }
}
