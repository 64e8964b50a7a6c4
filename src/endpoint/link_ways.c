/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link_ways.c - a peer that has several addresses: between the machine that says which one is used (reliable/ways.h),
 * the flow that makes the packets about it, and the transport that sends to one of them. */
#include "base/sometimes.h"
#include "endpoint/link.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t patience_ns = (uint64_t)250 * 1000 * 1000;
/* ... and at most an eighth of the time in which we are taken for dead by a peer that hears nothing. */
static const uint64_t settled_ns = (uint64_t)4 * 1000 * 1000 * 1000;

static void address_of(const struct rnl_place *place, struct rnl_addr *out)
{
    *out = (struct rnl_addr){.len = place->addr_bytes};
    memcpy(out->bytes, place->addr, place->addr_bytes);
}

static int same_address(const struct rnl_addr *a, const struct rnl_addr *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* The n-th address of a rank, its place being the first: 1, or 0 = there is none. */
static int nth_address(struct rnl_remote *r, uint32_t rank, unsigned n, struct rnl_addr *out)
{
    struct rnl_env *env = r->ep->env;
    struct rnl_place place = {0};
    int more = env->ops->size > offsetof(struct rnl_env_ops, way) && env->ops->way;
    if (n == 0 ? env->ops->place(env, rank, &place) != 1 : !more || env->ops->way(env, rank, n - 1, &place) != 1)
        return 0;
    address_of(&place, out);
    return 1;
}

int rnl_link_is_of(struct rnl_remote *r, uint32_t rank, const struct rnl_addr *from, struct rnl_addr *first)
{
    struct rnl_addr known;
    for (unsigned n = 0; n < RNL_WAYS_MAX && nth_address(r, rank, n, &known); n++) {
        if (n == 0)
            *first = known;
        if (same_address(from, &known))
            return 1;
    }
    return 0;
}

static uint64_t at_most(uint64_t ns, uint64_t limit_ns) /* 0 = there is none */
{
    return limit_ns && limit_ns < ns ? limit_ns : ns;
}

/* An address that somebody else has, too (hosts whose containers are all numbered alike), is none of the peer's. */
int rnl_link_ways_new(struct rnl_link *link)
{
    struct rnl_remote *r = link->remote;
    uint32_t rank = link->conn->rank;
    uint64_t dead_ns = r->config.dead_ns;
    struct rnl_addr next;
    unsigned count = 1, way;
    if (!r->t->ops->also || !nth_address(r, rank, 1, &next))
        return 0;
    struct rnl_link_ways *w = calloc(1, sizeof *w);
    if (!w)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the addresses of rank %u (%zu bytes)", rank, sizeof *w);
    (void)nth_address(r, rank, 0, &w->addr[0]);
    for (unsigned n = 1; n < RNL_WAYS_MAX && nth_address(r, rank, n, &next); n++) {
        int status = r->t->ops->also(r->t, rank, &next, &way);
        if (status == RNL_ERR_NO_MEMORY) {
            free(w);
            return status;
        }
        if (status == 0 && way == count)
            w->addr[count++] = next;
    }
    if (count == 1) {
        free(w);
        return 0;
    }
    rnl_ways_init(&w->ways, count, 0, at_most(patience_ns, dead_ns / 4), at_most(settled_ns, dead_ns / 8));
    link->ways = w;
    return 0;
}

static int way_of(const struct rnl_link *link, const struct rnl_view *v)
{
    struct rnl_transport *t = link->remote->t;
    struct rnl_addr from;
    if (t->ops->source(t, v, &from) < 0)
        return -1;
    for (unsigned i = 0; i < link->ways->ways.count; i++)
        if (same_address(&from, &link->ways->addr[i]))
            return (int)i;
    return -1;
}

void rnl_link_aim_at(struct rnl_link *link, const struct rnl_view *v)
{
    struct rnl_transport *t = link->remote->t;
    int way = link->ways ? way_of(link, v) : -1;
    if (way < 0)
        return;
    rnl_ways_aim(&link->ways->ways, (unsigned)way);
    (void)t->ops->aim(t, link->conn->rank, (unsigned)way);
}

/* ---- HELLOs ---- */

int rnl_link_hello_send(struct rnl_link *link, const void *at, uint32_t bytes, uint64_t now_ns)
{
    struct rnl_transport *t = link->remote->t;
    uint32_t rank = link->conn->rank;
    struct rnl_room room;
    if (link->ways) {
        unsigned way = link->ways->hello;
        link->ways->hello = (uint8_t)((way + 1) % link->ways->ways.count);
        return t->ops->toward(t, rank, way, at, bytes, now_ns);
    }
    int n = t->ops->reserve(t, rank, 0, bytes, &room, 1);
    if (n != 1)
        return n;
    memcpy(room.at, at, bytes);
    return t->ops->commit(t, rank, 0, &room, &bytes, 1, now_ns);
}

/* ---- challenges ---- */

static void answer(struct rnl_link *link, const struct rnl_view *v, uint64_t value, uint64_t now_ns)
{
    unsigned char out[RNL_WAYS_BYTES];
    const struct rnl_path_word word = {RNL_PATH_ANSWER, value};
    if (v->bytes != sizeof out)
        return;
    uint32_t bytes = rnl_flow_path(&link->flow, out, sizeof out, sizeof out, &word);
    if (bytes)
        rnl_remote_answer(link->remote, v, out, bytes, now_ns);
}

static void challenge(struct rnl_link *link, unsigned way, uint64_t now_ns)
{
    struct rnl_remote *r = link->remote;
    struct rnl_env *env = r->ep->env;
    unsigned char out[RNL_WAYS_BYTES];
    struct rnl_path_word word = {RNL_PATH_CHALLENGE, env->ops->random(env)};
    word.value += word.value == 0;
    uint32_t bytes = rnl_flow_path(&link->flow, out, sizeof out, sizeof out, &word);
    if (bytes == 0 || r->t->ops->toward(r->t, link->conn->rank, way, out, bytes, now_ns) != 1)
        return;
    rnl_ways_asked(&link->ways->ways, way, word.value, link->flow.control, now_ns);
}

int rnl_link_challenged(const struct rnl_link *link, const struct rnl_view *v, uint64_t number)
{
    int way = link->ways ? way_of(link, v) : -1;
    return way >= 0 && rnl_ways_under_way(&link->ways->ways, (unsigned)way, number);
}

void rnl_link_ways_input(struct rnl_link *link, const struct rnl_view *v, uint64_t now_ns)
{
    struct rnl_link_ways *w = link->ways;
    struct rnl_remote *r = link->remote;
    if (r->has_word) {
        const struct rnl_path_word word = r->word;
        r->has_word = 0;
        int way = w ? way_of(link, v) : -1;
        if (word.kind == RNL_PATH_CHALLENGE) {
            answer(link, v, word.value, now_ns);
            if (w)
                rnl_ways_doubt(&w->ways, (unsigned)way);
        } else if (way < 0 || !rnl_ways_answered(&w->ways, (unsigned)way, word.value, now_ns))
            r->unasked++;
        return;
    }
    if (!w || (!(v->flags & RNL_VIEW_ASIDE) && w->ways.from == 0) || rnl_packet_is_control(v->at))
        return;
    int way = v->flags & RNL_VIEW_ASIDE ? way_of(link, v) : w->ways.aim;
    const struct rnl_flow *f = &link->flow;
    if (way >= 0 && rnl_ways_hint(&w->ways, (unsigned)way, rnl_flow_next(f), rnl_flow_acked(f), now_ns))
        rnl_flow_ask(&link->flow);
}

int rnl_link_ways_ends(const struct rnl_link *link, const void *at, uint32_t bytes)
{
    struct rnl_packet p;
    return link->ways && rnl_flow_ends_anywhere(&link->flow) && rnl_packet_decode(at, bytes, &p) == RNL_PACKET_GOOD &&
           p.type == RNL_PACKET_CLOSE;
}

void rnl_link_ways_end(struct rnl_link *link, uint64_t now_ns)
{
    struct rnl_transport *t = link->remote->t;
    unsigned char out[RNL_PACKET_MIN + 8];
    for (unsigned way = 0; way < link->ways->ways.count; way++) {
        uint32_t bytes = way == link->ways->ways.aim ? 0 : rnl_flow_end(&link->flow, out, sizeof out);
        if (bytes) /* no room: as if it were lost */
            (void)t->ops->toward(t, link->conn->rank, way, out, bytes, now_ns);
    }
}

/* By when everything that had come has been taken in: who was away itself first hears what there is. Where the socket
 * is never empty, what was last in it comes a little later. */
static uint64_t looked_ns(const struct rnl_remote *r)
{
    uint64_t later = r->drained && !r->receiving ? 0 : patience_ns;
    return r->received_ns > later ? r->received_ns - later : 0;
}

void rnl_link_ways_step(struct rnl_link *link, uint64_t now_ns)
{
    struct rnl_remote *r = link->remote;
    struct rnl_ways *w = &link->ways->ways;
    int move;
    unsigned ask = rnl_ways_step(w, rnl_flow_stuck_ns(&link->flow, now_ns), looked_ns(r), now_ns, &move);
    for (unsigned way = 0; ask >> way; way++)
        if (ask >> way & 1)
            challenge(link, way, now_ns);
    if (!move) {
        rnl_remote_due(link, rnl_ways_deadline(w));
        return;
    }
    RNL_SOMETIMES(1, "a peer is reached at another address");
    (void)r->t->ops->aim(r->t, link->conn->rank, w->aim);
    rnl_flow_moved(&link->flow, w->rtt_ns, now_ns);
    r->ep->c->peers_moved++;
}
