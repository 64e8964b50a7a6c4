/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tap.c - what is on the wires, seen from outside: headers only. Between two processes each connection has keys of its
 * own, and with one key no number is used twice: so numbers only rise, in both spaces, and a connection that another
 * one has followed does not come again. And an endpoint does not take in more packets than different ones have come. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/wire/hello.h"
#include "net/wire/packet.h"
#include "sim/cluster/net.h"
#include "support/must.h"
#include "swarm/world.h"

enum { OLD = 8, HELLOS_MAX = 1000 };

struct way { /* from one process to a host */
    uint32_t connection, old[OLD];
    unsigned olds;
    uint64_t number[4][2]; /* of each flow and space: the last */
    unsigned hellos;       /* of both lives */
};
struct swarm_tap {
    unsigned hosts;
    int talks;
    struct way *way; /* [from][life][to] */
    uint64_t *came;  /* set of different packets that were delivered: keys, 0 = free */
    uint64_t room, count;
    uint64_t *fresh; /* of each host and life: how many */
};

static struct way *way_of(struct swarm_tap *t, unsigned from, unsigned life, unsigned to)
{
    return &t->way[(from * SWARM_LIVES + life) * t->hosts + to];
}

static void check_sent(struct swarm_world *w, unsigned from, unsigned to, const struct rnl_packet *p)
{
    unsigned life = swarm_host_life(&w->host[from]);
    struct way *v = way_of(w->tap, from, life, to);
    if (v->connection != p->connection) {
        if (v->connection && v->olds < OLD)
            v->old[v->olds++] = v->connection;
        for (unsigned i = 0; i < v->olds && swarm_host_life(&w->host[to]) == 0; i++)
            if (v->old[i] == p->connection)
                swarm_wrong("rank %u sends on connection %08x to rank %u, which it had left", from, p->connection, to);
        v->connection = p->connection;
        memset(v->number, 0, sizeof v->number);
    }
    uint64_t *last = &v->number[p->flags >> RNL_PACKET_FLOW_SHIFT][p->control];
    if (p->number <= *last)
        swarm_wrong("rank %u uses number %llu of connection %08x to rank %u, and had used %llu", from,
                    (unsigned long long)p->number, p->connection, to, (unsigned long long)*last);
    *last = p->number;
}

/* Answers are not answered for ever. */
static void check_hello(struct swarm_world *w, unsigned from, unsigned to, const struct vc_net_tap_packet *k)
{
    uint32_t src, dst;
    if (rnl_hello_peek(k->at, k->bytes, &src, &dst) && ++way_of(w->tap, from, 0, to)->hellos > HELLOS_MAX)
        swarm_wrong("rank %u has sent rank %u more than %d hellos", from, to, HELLOS_MAX);
}

/* 1 = it is new. */
static int put(uint64_t *set, uint64_t room, uint64_t key)
{
    uint64_t i = key & (room - 1);
    for (; set[i]; i = (i + 1) & (room - 1))
        if (set[i] == key)
            return 0;
    set[i] = key;
    return 1;
}

static void grow(struct swarm_tap *t)
{
    uint64_t *old = t->came, was = t->room;
    t->room = was ? 2 * was : 1024;
    t->came = calloc(t->room, sizeof *t->came);
    TEST_MUST(t->came != NULL);
    for (uint64_t i = 0; i < was; i++)
        if (old[i])
            (void)put(t->came, t->room, old[i]);
    free(old);
}

static void delivered(struct swarm_world *w, unsigned from, unsigned to, const struct rnl_packet *p)
{
    struct swarm_tap *t = w->tap;
    unsigned life = swarm_host_life(&w->host[to]);
    if (2 * t->count >= t->room)
        grow(t);
    uint64_t who = (uint64_t)from << 32 | (uint64_t)to << 16 | life << 8 | p->control;
    if (!put(t->came, t->room, rnl_chance(who, 1u + (p->flags >> RNL_PACKET_FLOW_SHIFT), p->connection, p->number) | 1))
        return;
    t->count++;
    t->fresh[to * SWARM_LIVES + life]++;
}

/* SWARM_TALK=1: a line for each datagram. */
static void say(const struct swarm_world *w, const struct vc_net_tap_packet *k, uint32_t from, uint32_t to)
{
    static const char *const what[] = {"", "sends", "gets  ", "loses "};
    static const char *const type[] = {"DATA", "HELLO", "UNKNOWN", "PROBE", "CLOSE", "PATH"};
    struct rnl_packet p;
    printf("%12.3f us %u>%u %s %5u bytes", (double)rnl_sim_now(w->sim) / (1e3 * VC_TICKS_PER_NS), from, to,
           what[k->what], k->bytes);
    if (rnl_packet_decode(k->at, k->bytes, &p) == RNL_PACKET_GOOD)
        printf(" %s %s%llu%s", type[p.type], p.control ? "C" : "", (unsigned long long)p.number,
               p.flags & RNL_PACKET_ACK ? " ack" : "");
    if (k->what == VC_NET_TAP_DROPPED)
        printf(" (%s)", vc_net_drop_name(k->drop));
    putchar('\n');
}

static void look(void *arg, const struct vc_net_tap_packet *k)
{
    struct swarm_world *w = arg;
    uint32_t from = vc_net_host_of(w->net, &k->from), to = vc_net_host_of(w->net, &k->to);
    struct rnl_packet p;
    if (w->tap->talks)
        say(w, k, from, to);
    if (k->what == VC_NET_TAP_SENT && !w->replays && from < w->plan.hosts && to < w->plan.hosts)
        check_hello(w, from, to, k);
    if (k->what == VC_NET_TAP_DROPPED || from >= w->plan.hosts || to >= w->plan.hosts ||
        rnl_packet_decode(k->at, k->bytes, &p) != RNL_PACKET_GOOD || p.type == RNL_PACKET_HELLO ||
        p.type == RNL_PACKET_UNKNOWN)
        return;
    if (k->what == VC_NET_TAP_SENT && !w->plan.picks && !w->replays) /* else they come twice and late here */
        check_sent(w, from, to, &p);
    else
        delivered(w, from, to, &p);
}

void swarm_tap_taken(struct swarm_host *h, uint64_t packets)
{
    uint64_t fresh = h->w->tap->fresh[h->rank * SWARM_LIVES + swarm_host_life(h)];
    if (packets > fresh)
        swarm_wrong("rank %u has taken in %llu packets, and %llu different ones have come", h->rank,
                    (unsigned long long)packets, (unsigned long long)fresh);
}

void swarm_tap_new(struct swarm_world *w)
{
    struct swarm_tap *t = calloc(1, sizeof *t);
    TEST_MUST(t != NULL);
    t->hosts = w->plan.hosts;
    t->talks = getenv("SWARM_TALK") != NULL;
    t->way = calloc((size_t)t->hosts * t->hosts * SWARM_LIVES, sizeof *t->way);
    t->fresh = calloc((size_t)t->hosts * SWARM_LIVES, sizeof *t->fresh);
    TEST_MUST(t->way && t->fresh);
    w->tap = t;
    vc_net_set_tap(w->net, look, w);
}

void swarm_tap_free(struct swarm_world *w)
{
    free(w->tap->way);
    free(w->tap->came);
    free(w->tap->fresh);
    free(w->tap);
}
