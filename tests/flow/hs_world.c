/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hs_world.c - see hs_world.h. A node here does what endpoint/ does with the handshake: it makes a record of a peer
 * when it is told to, says packets on connections that are up, answers packets of connections it does not have. */
#include "flow/hs_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/must.h"
#include "support/random.h"

#define MS ((uint64_t)1000000)

enum { HEARD = 77, ADDRESS = 8, SAY_MOST = 40, SLOTS = 64 };

static struct rnl_ciphers ciphers;
static struct rnl_sealer sealer;
static uint32_t in_bytes; /* of the datagram that is being answered, 0 = none */

static void address_of(unsigned node, unsigned char at[ADDRESS])
{
    memset(at, 0, ADDRESS);
    at[0] = (unsigned char)(node + 1);
}

static void fly(struct hs_world *w, unsigned from, unsigned to, const void *at, uint32_t bytes, uint64_t due_ns)
{
    TEST_MUST(w->flying_count < HS_FLYING && bytes <= HS_BYTES);
    struct hs_datagram *d = &w->flying[w->flying_count++];
    *d = (struct hs_datagram){.from = from, .to = to, .due_ns = due_ns, .bytes = bytes};
    memcpy(d->at, at, bytes);
}

static void send_from(struct hs_world *w, unsigned from, unsigned to, const void *at, uint32_t bytes)
{
    enum hs_fault_kind kind = HS_NONE;
    TEST_MUST(w->sent < 3000); /* two that answer each other for ever */
    w->sent++;
    if (to < HS_NODES && w->said_count < HS_SAID) {
        struct hs_datagram *d = &w->said[w->said_count++];
        *d = (struct hs_datagram){.from = from, .to = to, .bytes = bytes};
        memcpy(d->at, at, bytes);
    }
    for (unsigned i = 0; i < w->faults; i++)
        if (w->fault[i].ordinal == w->sent)
            kind = w->fault[i].kind;
    if (kind == HS_TWICE)
        fly(w, from, to, at, bytes, w->now_ns + 3 * MS + MS / 2);
    if (kind != HS_DROP)
        fly(w, from, to, at, bytes, w->now_ns + (kind == HS_LATE ? 25 * MS : kind == HS_VERY_LATE ? 300 * MS : MS));
}

static void no_key_twice(struct hs_world *w, const unsigned char key[RNL_KEY_BYTES])
{
    for (unsigned i = 0; i < w->keys_count; i++)
        TEST_MUST(memcmp(w->keys[i], key, RNL_KEY_BYTES) != 0);
    if (w->keys_count == w->keys_room) {
        w->keys_room = w->keys_room ? 2 * w->keys_room : 64;
        w->keys = realloc(w->keys, w->keys_room * sizeof *w->keys);
        TEST_MUST(w->keys != NULL);
    }
    memcpy(w->keys[w->keys_count++], key, RNL_KEY_BYTES);
}

static void want_again(struct hs_world *w, struct hs_link *l, struct hs_node *n, unsigned to)
{
    unsigned char address[ADDRESS];
    address_of(to, address);
    if (l->wants && l->peer.state == RNL_HS_IDLE)
        TEST_MUST(rnl_hs_open(&n->hs, &l->peer, address, ADDRESS, w->now_ns) == 0);
}

static void drop(struct hs_world *w, struct hs_link *l, unsigned peer, int refuse)
{
    l->gone_up += l->up && l->made.incarnation == w->node[peer].incarnation;
    rnl_hs_end(&l->peer, refuse);
    l->have = l->up = 0;
    l->heard = l->said = 0;
}

static void obey(struct hs_world *w, unsigned me, unsigned peer, const struct rnl_hs_step *step)
{
    static const struct rnl_key_limits limits = {1 << 20, 1 << 21, 1 << 20};
    struct hs_node *n = &w->node[me];
    struct hs_link *l = &n->link[peer];
    TEST_MUST(in_bytes == 0 || step->bytes <= in_bytes); /* never more out than in */
    if (step->events & RNL_HS_GONE) {
        TEST_MUST(l->have);
        l->gone_up += l->up && l->made.incarnation == w->node[peer].incarnation;
        l->have = l->up = 0;
    }
    if (step->events & RNL_HS_CONNECTED) {
        TEST_MUST(!l->have && step->made.incarnation != 0 && step->made.rx_connection != 0 &&
                  rnl_hs_connection_rank(step->made.rx_connection) == peer);
        l->made = step->made;
        l->have = 1;
        l->heard = l->said = 0;
        l->number = 0;
        no_key_twice(w, l->made.tx);
        rnl_keys_init(&l->keys, l->made.suite, l->made.tx, l->made.rx, &limits);
    }
    if (step->events & RNL_HS_CONFIRMED) {
        TEST_MUST(l->have && !l->up);
        l->up = 1;
        l->say_ns = w->now_ns;
        unsigned made = 0; /* by the peer: nobody is confirmed by one who does not have the keys */
        for (unsigned i = 0; i < w->keys_count; i++)
            made += memcmp(w->keys[i], l->made.rx, RNL_KEY_BYTES) == 0;
        TEST_MUST(made == 1);
    }
    TEST_MUST(l->have == (l->peer.state >= RNL_HS_MADE) && l->up == (l->peer.state == RNL_HS_UP));
    if (step->events & RNL_HS_FAILED) {
        l->failed++;
        l->status = step->status;
        TEST_MUST(step->status < 0 && rnl_last_error()->status == step->status);
        snprintf(l->sentence, sizeof l->sentence, "%s", rnl_last_error()->text);
        if (l->failed < 4 && step->status == RNL_TIMED_OUT)
            want_again(w, l, n, peer);
    } else if ((step->events & RNL_HS_GONE) && !l->have) {
        want_again(w, l, n, peer);
    }
}

static void take_hello(struct hs_world *w, const struct hs_datagram *d)
{
    struct hs_node *n = &w->node[d->to];
    unsigned char address[ADDRESS], out[HS_BYTES];
    struct rnl_hs_step step;
    uint32_t rank = rnl_hs_claimed_rank(&n->hs, d->at, d->bytes);
    struct hs_link *l = rank < HS_NODES ? &n->link[rank] : NULL;
    address_of(d->from, address);
    in_bytes = d->bytes;
    rnl_hs_input(&n->hs, l && l->has_peer ? &l->peer : NULL, d->at, d->bytes, address, ADDRESS, w->now_ns, out,
                 sizeof out, &step);
    if (step.events & RNL_HS_NEEDS_PEER) {
        TEST_MUST(step.bytes == 0 && step.events == RNL_HS_NEEDS_PEER);
        l->has_peer = 1;
        rnl_hs_peer_init(&n->hs, &l->peer, rank, w->told ? w->node[rank].incarnation : 0);
        rnl_hs_input(&n->hs, &l->peer, d->at, d->bytes, address, ADDRESS, w->now_ns, out, sizeof out, &step);
        TEST_MUST(step.events & RNL_HS_CONNECTED || w->told);
    }
    if (l && l->has_peer)
        obey(w, d->to, rank, &step);
    else
        TEST_MUST(step.events == 0 && step.bytes <= d->bytes);
    if (step.bytes)
        send_from(w, d->to, d->from, out, step.bytes);
    in_bytes = 0;
}

static void say(struct hs_world *w, unsigned me, unsigned peer);

static void take_packet(struct hs_world *w, const struct hs_datagram *d)
{
    struct hs_node *n = &w->node[d->to];
    unsigned char at[HS_BYTES], out[HS_BYTES];
    struct rnl_packet p;
    memcpy(at, d->at, d->bytes);
    if (rnl_packet_decode(at, d->bytes, &p) != RNL_PACKET_GOOD)
        return;
    if (p.type == RNL_PACKET_UNKNOWN) {
        struct hs_link *l = d->from < HS_NODES ? &n->link[d->from] : NULL;
        uint64_t number;
        unsigned control;
        if (!l || !l->have ||
            !rnl_hs_unknown_said(&n->hs, &l->peer, l->made.tx_connection, at, d->bytes, w->now_ns, &number, &control))
            return;
        if (number < l->number && l->heard == 0) { /* in flight, and never acknowledged */
            drop(w, l, d->from, 0);
            want_again(w, l, n, d->from);
        }
        return;
    }
    uint32_t rank = rnl_hs_connection_rank(p.connection);
    struct hs_link *l = rank < HS_NODES ? &n->link[rank] : NULL;
    if (!l || !l->have || l->made.rx_connection != p.connection || d->from != rank) {
        uint32_t bytes = d->from < HS_NODES ? rnl_hs_unknown(&n->hs, &p, w->now_ns, out, sizeof out) : 0;
        TEST_MUST(bytes <= d->bytes);
        if (bytes)
            send_from(w, d->to, d->from, out, bytes);
        return;
    }
    if (rnl_keys_open(&l->keys, &sealer, at, &p, w->now_ns, MS) != 1)
        return;
    struct rnl_hs_step step = {.events = rnl_hs_confirm(&l->peer)};
    l->heard++;
    obey(w, d->to, rank, &step);
    if (at[p.body] != HEARD)
        say(w, d->to, rank); /* as an acknowledgement does */
}

/* Until it has heard something, as a flow probes. Then nothing more: the connection works. */
static void say(struct hs_world *w, unsigned me, unsigned peer)
{
    struct hs_link *l = &w->node[me].link[peer];
    unsigned char at[HS_BYTES];
    struct rnl_packet p = {.type = RNL_PACKET_DATA, .connection = l->made.tx_connection, .number = l->number};
    if (l->said >= SAY_MOST && !l->heard) {
        drop(w, l, peer, 1);
        want_again(w, l, &w->node[me], peer);
        return;
    }
    uint32_t body = rnl_packet_encode(at, sizeof at, &p);
    memset(at + body, l->heard ? HEARD : 0, 20);
    uint32_t bytes = rnl_packet_finish(at, body + 20);
    TEST_MUST(rnl_keys_seal(&l->keys, &sealer, at, bytes, body) == 0);
    l->number++;
    l->said++;
    l->say_ns = w->now_ns + 15 * MS;
    send_from(w, me, peer, at, bytes);
}

static uint64_t say_at(const struct hs_link *l)
{
    return l->up && (l->heard == 0 || l->said < 3) ? l->say_ns : UINT64_MAX;
}

int hs_world_step(struct hs_world *w, uint64_t until_ns)
{
    uint64_t when = until_ns;
    int what = -1; /* 0 datagram, 1 handshake, 2 packet */
    unsigned which = 0, other = 0;
    for (unsigned i = 0; i < w->flying_count; i++)
        if (w->flying[i].due_ns < when) {
            when = w->flying[i].due_ns;
            what = 0;
            which = i;
        }
    for (unsigned a = 0; a < w->nodes; a++)
        for (unsigned b = 0; b < w->nodes; b++) {
            struct hs_link *l = &w->node[a].link[b];
            if (l->has_peer && rnl_hs_deadline(&l->peer) < when) {
                when = rnl_hs_deadline(&l->peer);
                what = 1;
                which = a;
                other = b;
            }
            if (say_at(l) < when) {
                when = say_at(l);
                what = 2;
                which = a;
                other = b;
            }
        }
    if (what < 0)
        return 0;
    if (when > w->now_ns)
        w->now_ns = when;
    if (what == 0) {
        struct hs_datagram d = w->flying[which];
        memmove(&w->flying[which], &w->flying[which + 1], (--w->flying_count - which) * sizeof d);
        w->delivered++;
        if (d.to >= w->nodes)
            return 1; /* nobody is there */
        if (d.bytes > 0 && d.at[0] >> 4 == RNL_PACKET_HELLO)
            take_hello(w, &d);
        else
            take_packet(w, &d);
    } else if (what == 1) {
        unsigned char out[HS_BYTES];
        struct rnl_hs_step step;
        rnl_hs_output(&w->node[which].hs, &w->node[which].link[other].peer, w->now_ns, out, sizeof out, &step);
        obey(w, which, other, &step);
        if (step.bytes)
            send_from(w, which, other, out, step.bytes);
    } else {
        say(w, which, other);
    }
    return 1;
}

void hs_world_run(struct hs_world *w)
{
    while (hs_world_step(w, w->now_ns + 60000 * MS))
        ;
    for (unsigned a = 0; a < w->nodes; a++) /* a connection that nobody uses does not notice that its peer is gone */
        for (unsigned b = 0; b < w->nodes; b++) {
            struct hs_link *l = &w->node[a].link[b];
            l->heard = l->said = 0;
            l->say_ns = w->now_ns;
        }
    while (hs_world_step(w, w->now_ns + 60000 * MS))
        ;
}

int hs_world_settled(const struct hs_world *w)
{
    for (unsigned a = 0; a < w->nodes; a++)
        for (unsigned b = 0; b < w->nodes; b++) {
            const struct hs_link *there = &w->node[a].link[b], *back = &w->node[b].link[a];
            if (!there->wants && !back->wants)
                continue;
            if (!there->up || !back->up || there->heard == 0 ||
                memcmp(there->made.tx, back->made.rx, RNL_KEY_BYTES) != 0 ||
                memcmp(there->made.rx, back->made.tx, RNL_KEY_BYTES) != 0 ||
                there->made.tx_connection != back->made.rx_connection ||
                there->made.incarnation != w->node[b].incarnation ||
                memcmp(&there->made.suite, &back->made.suite, sizeof there->made.suite) != 0)
                return 0;
        }
    return 1;
}

struct rnl_hs_config hs_world_usual(const struct hs_world *w, unsigned node)
{
    const struct hs_node *n = &w->node[node];
    struct rnl_hs_config c = {.rank = node,
                              .ranks = w->nodes,
                              .incarnation = n->incarnation,
                              .job = &n->job,
                              .protect = RNL_PROTECT_AUTHENTICATE,
                              .ciphers = (uint8_t)ciphers.have,
                              .mtu_bytes = (uint16_t)(1400 + node),
                              .window_bytes = 1000 + node,
                              .ack_delay_ns = 25000 + node,
                              .first_ns = 10 * MS,
                              .most_ns = 80 * MS,
                              .give_up_ns = 2000 * MS};
    struct test_random r = test_random_of(w->seed, n->incarnation);
    for (unsigned i = 0; i < sizeof c.secret; i++)
        c.secret[i] = (unsigned char)test_random_next(&r);
    return c;
}

void hs_world_config(struct hs_world *w, unsigned node, const struct rnl_hs_config *config)
{
    TEST_MUST(rnl_hs_init(&w->node[node].hs, config) == 0);
}

void hs_world_init(struct hs_world *w, unsigned nodes, uint64_t seed)
{
    static const unsigned char key[RNL_JOB_SECRET] = "the key of this job";
    static void *memory;
    if (!memory) {
        memory = aligned_alloc(RNL_SEALER_ALIGN, rnl_sealer_bytes(SLOTS));
        TEST_MUST(memory && rnl_ciphers_init(&ciphers, ~0u) == 0 &&
                  rnl_sealer_init(&sealer, &ciphers, memory, SLOTS) == 0);
    }
    memset(w, 0, sizeof *w);
    w->nodes = nodes;
    w->seed = seed;
    w->now_ns = 1000 * MS;
    for (unsigned i = 0; i < nodes; i++) {
        w->node[i].incarnation = 100 + i;
        rnl_job_keys_derive(&w->node[i].job, key);
        struct rnl_hs_config c = hs_world_usual(w, i);
        hs_world_config(w, i, &c);
    }
}

void hs_world_fini(struct hs_world *w)
{
    free(w->keys);
    w->keys = NULL;
}

void hs_world_want(struct hs_world *w, unsigned from, unsigned to)
{
    struct hs_node *n = &w->node[from];
    struct hs_link *l = &n->link[to];
    if (!l->has_peer)
        rnl_hs_peer_init(&n->hs, &l->peer, to, w->told ? w->node[to].incarnation : 0);
    l->has_peer = 1;
    l->wants = 1;
    l->failed = 0;
    want_again(w, l, n, to);
}

void hs_world_restart(struct hs_world *w, unsigned node, int wants)
{
    struct hs_node *n = &w->node[node];
    int wanted[HS_NODES];
    for (unsigned i = 0; i < w->nodes; i++) {
        wanted[i] = n->link[i].wants;
        memset(&n->link[i], 0, sizeof n->link[i]);
    }
    n->incarnation += 1000;
    struct rnl_hs_config c = hs_world_usual(w, node);
    hs_world_config(w, node, &c);
    for (unsigned i = 0; i < w->nodes; i++) {
        struct hs_link *l = &w->node[i].link[node];
        if (w->told && i != node && l->has_peer && rnl_hs_expect(&l->peer, n->incarnation)) {
            l->have = l->up = 0;
            want_again(w, l, &w->node[i], node);
        }
    }
    for (unsigned i = 0; i < w->nodes && wants; i++)
        if (wanted[i])
            hs_world_want(w, node, i);
}

void hs_world_inject(struct hs_world *w, unsigned from, unsigned to, const void *at, uint32_t bytes)
{
    fly(w, from, to, at, bytes, w->now_ns);
}
