/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lab.c - events in a heap, by time and then in the order in which they were made. */
#include "flow/lab.h"

#include <stdlib.h>
#include <string.h>

#include "support/random.h"

enum { LAB_FLOWS = 1024, BACK_WIRE = 66, SENDER_PS = 320, BUFFER = 9216, HIST = 10000, TRIPS = 1 << 20 };
enum kind { AT_QUEUE, ARRIVES, WAKE };
struct event {
    uint64_t at, order;
    uint32_t kind, end; /* an end: flow, or flows + flow for the receiver's */
    struct event *next; /* in an inbox */
    uint8_t ecn, half;
    uint32_t bytes;
    unsigned char data[];
};

struct end {
    struct upper up;
    struct lab *lab;
    struct end *peer;
    uint64_t half, began_ns, asked_ns;
    unsigned index, host;
};

struct host {
    struct event *first, **last;
    uint64_t wake_ns, paused_ns; /* 0 = no wake is under way */
    uint32_t *dirty;
    unsigned dirties;
};

struct lab {
    struct lab_config c;
    struct lab_result *r;
    struct event **heap;
    size_t events, room;
    uint64_t now, order, queue_free_ps, back_free_ps;
    struct end *end;
    struct host *host;
    uint64_t *link_free_ps;
    struct rnl_path *path;
    struct upper_keys keys;
    uint64_t arrivals, drops;
    unsigned left;
    uint64_t hist[HIST + 1];
    uint64_t *trip;
    struct test_random random;
    const char *wrong;
};

void lab_defaults(struct lab_config *c)
{
    memset(c, 0, sizeof *c);
    c->flows = 1;
    c->ps_per_byte = 800;
    c->base_ns = 20000;
    c->buffer = 192000;
    c->duration_ns = 200000000;
    c->unit = 1400;
    c->seed = 1;
    rnl_flow_defaults(&c->flow);
    memset(c->flow.mtu, 0, sizeof c->flow.mtu);
    c->flow.mtu[0] = 1432;
}

static void wrong(struct lab *l, const char *what)
{
    if (!l->wrong)
        l->wrong = what;
}

static int chance(struct lab *l, uint32_t ppm)
{
    return ppm && test_random_below(&l->random, 1000000) < ppm;
}

/* ---- events ---- */

static int before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct lab *l, struct event *e, uint64_t at)
{
    if (l->events == l->room) {
        l->room = l->room ? l->room * 2 : 1024;
        l->heap = realloc(l->heap, l->room * sizeof(struct event *));
    }
    e->at = at;
    e->order = l->order++;
    size_t i = l->events++;
    for (; i && before(e, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = e;
}

static struct event *pop(struct lab *l)
{
    struct event *first = l->heap[0], *last = l->heap[--l->events];
    for (size_t i = 0;;) {
        size_t k = 2 * i + 1;
        if (k + 1 < l->events && before(l->heap[k + 1], l->heap[k]))
            k++;
        if (k >= l->events || !before(l->heap[k], last)) {
            l->heap[i] = last;
            return first;
        }
        l->heap[i] = l->heap[k];
        i = k;
    }
}

static struct event *new_event(enum kind kind, uint32_t end, const void *data, uint32_t bytes)
{
    struct event *e = malloc(sizeof *e + bytes);
    memset(e, 0, sizeof *e);
    e->kind = kind;
    e->end = end;
    e->bytes = bytes;
    if (bytes)
        memcpy(e->data, data, bytes);
    return e;
}

/* ---- the program ---- */

static void arrived(struct upper *u, uint64_t number)
{
    struct end *e = u->owner;
    struct lab *l = e->lab;
    (void)number;
    if (l->now > l->c.duration_ns / 2)
        e->half++;
    if (l->c.app == LAB_ECHO) {
        if (e->index < l->c.flows) {
            if (l->r->trips < TRIPS)
                l->trip[l->r->trips++] = l->now - e->asked_ns;
            e->asked_ns = l->now;
            if (l->r->trips == l->c.units * l->c.flows)
                l->left = 0;
        }
        upper_send(u, 1);
    } else if (l->c.units && u->taken == l->c.units) {
        l->left--;
        if (l->now - e->peer->began_ns > l->r->last_ns)
            l->r->last_ns = l->now - e->peer->began_ns;
    }
}

/* ---- the network ---- */

static void to_host(struct lab *l, struct event *e, uint64_t at)
{
    e->kind = ARRIVES;
    if (l->c.jitter_ns)
        at += test_random_below(&l->random, l->c.jitter_ns);
    push(l, e, at);
}

static uint64_t hop_ns(const struct lab *l)
{
    uint64_t wire = l->c.unit + 32 + BACK_WIRE, busy = wire * (l->c.ps_per_byte + SENDER_PS) / 1000;
    return l->c.base_ns > busy ? (l->c.base_ns - busy) / 4 : 0;
}

static int vanishes(struct lab *l, struct event *e)
{
    if (l->now >= l->c.dark_from_ns && l->now < l->c.dark_to_ns)
        return 1;
    if (l->c.mtu && l->now >= l->c.mtu_at_ns && e->bytes > l->c.mtu)
        return 1;
    if (chance(l, l->c.loss_ppm))
        return 1;
    if (chance(l, l->c.corrupt_ppm))
        e->data[test_random_below(&l->random, e->bytes)] ^= (unsigned char)(1u << test_random_below(&l->random, 8));
    return 0;
}

static void send(struct lab *l, struct end *from, const unsigned char *data, uint32_t bytes, uint64_t at)
{
    struct event *e = new_event(AT_QUEUE, from->peer->index, data, bytes);
    uint64_t now_ps = at * 1000, wire = bytes + BACK_WIRE;
    e->ecn = (uint8_t)rnl_flow_ecn(&from->up.flow);
    if (from->index < l->c.flows) {
        uint64_t *link = &l->link_free_ps[from->index];
        *link = (*link > now_ps ? *link : now_ps) + wire * SENDER_PS + test_random_below(&l->random, 500) * 1000;
        push(l, e, *link / 1000 + hop_ns(l));
        return;
    }
    l->back_free_ps = (l->back_free_ps > now_ps ? l->back_free_ps : now_ps) + wire * l->c.ps_per_byte;
    if (vanishes(l, e))
        free(e);
    else
        to_host(l, e, l->back_free_ps / 1000 + 2 * hop_ns(l));
}

static void at_queue(struct lab *l, struct event *e)
{
    uint64_t now_ps = l->now * 1000, wire = e->bytes + BACK_WIRE;
    uint64_t wait_ps = l->queue_free_ps > now_ps ? l->queue_free_ps - now_ps : 0, us = wait_ps / 1000000;
    l->arrivals++;
    l->hist[us < HIST ? us : HIST]++;
    if (wait_ps / l->c.ps_per_byte + wire > l->c.buffer) {
        l->drops++;
        free(e);
        return;
    }
    if (e->ecn != RNL_ECT_NOT) {
        if (l->c.mark_bytes && wait_ps / l->c.ps_per_byte > l->c.mark_bytes)
            e->ecn = RNL_ECT_CE;
        if (l->c.bleach)
            e->ecn = l->c.bleach == 1 ? RNL_ECT_NOT : RNL_ECT_CE;
    }
    l->queue_free_ps = now_ps + wait_ps + wire * l->c.ps_per_byte;
    if (vanishes(l, e)) { /* behind the queue: it has used its share of the link */
        free(e);
        return;
    }
    if (chance(l, l->c.duplicate_ppm)) {
        struct event *again = new_event(ARRIVES, e->end, e->data, e->bytes);
        again->ecn = e->ecn;
        to_host(l, again, l->queue_free_ps / 1000 + hop_ns(l) + test_random_below(&l->random, 100000));
    }
    to_host(l, e, l->queue_free_ps / 1000 + hop_ns(l));
}

/* ---- hosts ---- */

static void wake_at(struct lab *l, unsigned host, uint64_t at)
{
    struct host *h = &l->host[host];
    if (at < l->now)
        at = l->now;
    if (h->paused_ns > at)
        at = h->paused_ns;
    if (h->wake_ns && h->wake_ns <= at)
        return;
    h->wake_ns = at ? at : 1;
    push(l, new_event(WAKE, host, NULL, 0), h->wake_ns);
}

static void touch(struct lab *l, struct end *e)
{
    struct host *h = &l->host[e->host];
    for (unsigned i = h->dirties; i > 0; i--)
        if (h->dirty[i - 1] == e->index)
            return;
    h->dirty[h->dirties++] = e->index;
}

static void arrives(struct lab *l, struct event *e)
{
    struct host *h = &l->host[l->end[e->end].host];
    e->next = NULL;
    *h->last = e;
    h->last = &e->next;
    wake_at(l, l->end[e->end].host, l->now);
}

static void serve(struct lab *l, struct end *e)
{
    static unsigned char buffer[BUFFER];
    uint32_t bytes;
    struct host *h = &l->host[e->host];
    while (h->paused_ns <= l->now && (bytes = rnl_flow_output(&e->up.flow, buffer, sizeof buffer, l->now)) > 0) {
        if ((l->c.pause_who >> (e->host < l->c.flows) & 1) && chance(l, l->c.pause_ppm))
            h->paused_ns =
                l->now + l->c.pause_from_ns + test_random_below(&l->random, l->c.pause_to_ns - l->c.pause_from_ns + 1);
        send(l, e, buffer, bytes, h->paused_ns > l->now ? h->paused_ns : l->now);
    }
    uint64_t due = rnl_flow_deadline(&e->up.flow);
    if (due != UINT64_MAX)
        wake_at(l, e->host, due > l->now ? due : l->now + 1);
}

static void wake(struct lab *l, unsigned host)
{
    struct host *h = &l->host[host];
    if (h->wake_ns != l->now)
        return; /* another one is under way */
    h->wake_ns = 0;
    h->dirties = 0;
    for (struct event *e = h->first, *next; e; e = next) {
        struct end *end = &l->end[e->end];
        next = e->next;
        int status = rnl_flow_input(&end->up.flow, e->data, e->bytes, e->ecn, l->now);
        if (status < 0)
            wrong(l, "a peer was taken for broken");
        l->r->hash = (l->r->hash ^ l->now ^ ((uint64_t)e->end << 48) ^ e->bytes) * 1099511628211u;
        touch(l, end);
        free(e);
    }
    h->first = NULL;
    h->last = &h->first;
    /* Whatever is due, of all of this host's ends: none of them is looked at before it is. */
    if (host < l->c.flows) {
        serve(l, &l->end[host]);
        return;
    }
    for (unsigned i = 0; i < h->dirties; i++)
        serve(l, &l->end[h->dirty[i]]);
    uint64_t least = UINT64_MAX;
    for (unsigned i = l->c.flows; i < 2 * l->c.flows; i++) {
        uint64_t due = rnl_flow_deadline(&l->end[i].up.flow);
        if (due <= l->now)
            serve(l, &l->end[i]);
        else if (due < least)
            least = due;
    }
    if (least != UINT64_MAX)
        wake_at(l, host, least);
}

/* ---- a run ---- */

static void set_up_end(struct lab *l, unsigned i)
{
    struct end *e = &l->end[i];
    unsigned n = l->c.flows;
    int forth = i < n;
    struct rnl_keys k;
    upper_keys_make(&l->keys, &k, i % n, forth);
    static struct rnl_flow_config configs[2 * LAB_FLOWS];
    configs[i] = l->c.flow;
    if (i % n == 0 && l->c.law_of_first)
        configs[i].algorithm = l->c.law_of_first - 1;
    struct rnl_flow_setup setup = {
        .config = &configs[i],
        .ops = &upper_ops,
        .path = &l->path[i],
        .count = &e->up.count,
        .ctx = &e->up,
        .connection = i,
        .window_bytes = 4 << 20,
        .mtu_bytes = 8972,
        .peer_ack_delay_ns = l->c.flow.ack_delay_ns,
        .sealer = &l->keys.sealer,
        .keys = &k,
    };
    e->up.owner = e;
    e->up.arrived = arrived;
    e->up.units_per_packet = l->c.app == LAB_ECHO;
    e->lab = l;
    e->index = i;
    e->host = forth ? i : n;
    e->peer = &l->end[forth ? i + n : i - n];
    if (!l->c.own_base) {
        l->path[i].base_ns = l->path[i].full_ns = l->c.base_ns; /* which is of a full packet */
        l->path[i].full_bytes = 1200;
    }
    e->began_ns = 1 + (i % n) * l->c.stagger_ns;
    e->asked_ns = e->began_ns;
    rnl_flow_init(&e->up.flow, &setup, e->began_ns);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void add_counters(struct rnl_flow_counters *to, const struct rnl_flow_counters *from)
{
    uint64_t *t = (uint64_t *)to;
    const uint64_t *f = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *t; i++)
        t[i] += f[i];
}

static void conclude(struct lab *l)
{
    struct lab_result *r = l->r;
    unsigned n = l->c.flows;
    uint64_t sum = 0, squares = 0, k = 0;
    r->end_ns = l->now;
    for (unsigned i = 0; i < n; i++) {
        struct end *sender = &l->end[i], *receiver = &l->end[i + n];
        uint64_t v = l->c.units ? receiver->up.taken : receiver->half;
        r->delivered += receiver->up.taken;
        sum += v;
        squares += v * v;
        add_counters(&r->sent, &sender->up.count);
        add_counters(&r->received, &receiver->up.count);
        r->windows_q8 += (uint32_t)(sender->up.flow.congest.window / (l->c.unit + 98) / n);
        if (l->c.app == LAB_BULK && l->c.units && receiver->up.taken != l->c.units)
            r->unfinished++;
        const char *bad[] = {sender->up.wrong, receiver->up.wrong, rnl_flow_valid(&sender->up.flow),
                             rnl_flow_valid(&receiver->up.flow)};
        for (unsigned k2 = 0; k2 < 4; k2++)
            if (bad[k2])
                wrong(l, bad[k2]);
        r->memory += sender->up.memory_most + receiver->up.memory_most;
    }
    uint64_t span = l->c.units ? l->now : l->c.duration_ns - l->c.duration_ns / 2;
    uint64_t wire = l->c.unit + 32 + BACK_WIRE;
    r->per_mille = (uint32_t)(sum * wire * l->c.ps_per_byte / span);
    r->jain_mille = squares ? (uint32_t)(sum * sum * 1000 / (n * squares)) : 0;
    r->first_mille = sum ? (uint32_t)((l->c.units ? l->end[n].up.taken : l->end[n].half) * 1000 / sum) : 0;
    r->drop_ppm = l->arrivals ? (uint32_t)(l->drops * 1000000 / l->arrivals) : 0;
    for (unsigned us = 0; us <= HIST; us++) {
        k += l->hist[us];
        if (k * 2 < l->arrivals)
            r->queue50_us = us + 1;
        if (k * 100 < l->arrivals * 99)
            r->queue99_us = us + 1;
    }
    if (r->trips) {
        qsort(l->trip, r->trips, sizeof *l->trip, by_value);
        for (uint64_t i = 0; i < r->trips; i++)
            r->trip_mean_ns += l->trip[i];
        r->trip_mean_ns /= r->trips;
        r->trip50_ns = l->trip[r->trips / 2];
        r->trip999_ns = l->trip[r->trips - 1 - r->trips / 1000];
    }
}

static void tidy(struct lab *l)
{
    while (l->events)
        free(pop(l));
    for (unsigned i = 0; i <= l->c.flows; i++) {
        for (struct event *e = l->host[i].first, *next; e; e = next) {
            next = e->next;
            free(e);
        }
        free(l->host[i].dirty);
    }
    for (unsigned i = 0; i < 2 * l->c.flows; i++) {
        rnl_flow_fini(&l->end[i].up.flow);
        if (l->end[i].up.memory)
            wrong(l, "a flow kept memory");
        upper_free(&l->end[i].up);
    }
    upper_keys_free(&l->keys);
    free(l->heap);
    free(l->end);
    free(l->host);
    free(l->path);
    free(l->link_free_ps);
    free(l->trip);
}

const char *lab_run(const struct lab_config *config, struct lab_result *result)
{
    static struct lab lab;
    struct lab *l = &lab;
    unsigned n = config->flows;
    memset(l, 0, sizeof *l);
    memset(result, 0, sizeof *result);
    l->c = *config;
    l->r = result;
    l->random = test_random_of(config->seed, 0);
    l->end = calloc(2 * n, sizeof *l->end);
    l->host = calloc(n + 1, sizeof *l->host);
    l->path = calloc(2 * n, sizeof *l->path);
    l->link_free_ps = calloc(n, sizeof *l->link_free_ps);
    l->trip = calloc(TRIPS, sizeof *l->trip);
    if (n > LAB_FLOWS || upper_keys_init(&l->keys, n) < 0)
        return "too many flows, or no cipher";
    l->left = l->c.app == LAB_BULK && l->c.units ? n : 1;
    for (unsigned i = 0; i <= n; i++) {
        l->host[i].last = &l->host[i].first;
        l->host[i].dirty = calloc(i < n ? 1 : n, sizeof(uint32_t));
    }
    for (unsigned i = 0; i < n; i++)
        upper_pair(&l->end[i].up, &l->end[i + n].up, l->c.unit);
    for (unsigned i = 0; i < 2 * n; i++)
        set_up_end(l, i);
    for (unsigned i = 0; i < n; i++) {
        struct end *e = &l->end[i];
        upper_send(&e->up, l->c.app == LAB_ECHO ? 1 : l->c.units ? l->c.units : UINT32_MAX);
        wake_at(l, i, e->began_ns);
    }
    while (l->events && l->left && !l->wrong) {
        struct event *e = pop(l);
        l->now = e->at;
        result->events++;
        if (l->now > l->c.duration_ns) {
            l->now = l->c.duration_ns;
            free(e);
            break;
        }
        if (e->kind == AT_QUEUE) {
            at_queue(l, e);
        } else if (e->kind == ARRIVES) {
            arrives(l, e);
        } else {
            unsigned host = e->end;
            free(e);
            wake(l, host);
        }
    }
    conclude(l);
    tidy(l);
    return l->wrong;
}
