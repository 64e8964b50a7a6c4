/* SPDX-License-Identifier: BSD-3-Clause
 *
 * traffic.c - see traffic.h, and the bodies that are random runs. */
#include "conform/traffic.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "support/unit.h"

enum { BATCH = 12, HOLD = 48, TEXT = 256, GIVE_UP_S = 60 };

uint64_t traffic_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t traffic_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return traffic_mix(*state);
}

uint32_t traffic_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((traffic_random(state) >> 32) * n >> 32);
}

/* ---- packets ---- */

static uint64_t key_of(const struct traffic_flow *f, uint64_t k)
{
    return traffic_mix(traffic_mix(f->seed ^ (uint64_t)f->from << 40 ^ (uint64_t)f->to << 20) + k);
}

uint32_t traffic_bytes(const struct traffic_flow *f, uint64_t k)
{
    static const uint32_t edge[] = {1, 7, 8, 9, 18, 19, 28, 55, 56, 57, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097};
    uint64_t x = key_of(f, k);
    uint32_t kind = (uint32_t)(x & 31), rest = (uint32_t)(x >> 32), bytes;
    /* Runs of equal length are what shares lines. */
    if (kind < 12)
        bytes = 1 + (uint32_t)(traffic_mix(f->seed + k / 16) % 56);
    else if (kind < 20)
        bytes = 1 + rest % 56;
    else if (kind < 24)
        bytes = edge[rest % (sizeof edge / sizeof *edge)];
    else if (kind < 31)
        bytes = 1 + rest % (f->mtu < 2048 ? f->mtu : 2048);
    else
        bytes = f->mtu - (rest & 1 ? 0 : rest / 2 % f->mtu);
    if (bytes > f->mtu)
        bytes = f->mtu;
    return bytes < f->least ? f->least : bytes;
}

static uint64_t word_of(const struct traffic_flow *f, uint64_t k, uint64_t key, uint32_t at)
{
    return at == 0 && f->least >= 8 ? k : (key + at) * 0x9e3779b97f4a7c15u ^ key >> 7;
}

void traffic_fill(const struct traffic_flow *f, uint64_t k, void *to, uint32_t bytes)
{
    uint64_t key = key_of(f, k);
    for (uint32_t i = 0; i < bytes; i += 8) {
        uint64_t word = word_of(f, k, key, i);
        memcpy((char *)to + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

uint32_t traffic_check(const struct traffic_flow *f, uint64_t k, const void *at, uint32_t bytes)
{
    uint64_t key = key_of(f, k);
    for (uint32_t i = 0; i < bytes; i += 8) {
        uint64_t word = word_of(f, k, key, i);
        if (memcmp((const char *)at + i, &word, bytes - i < 8 ? bytes - i : 8) != 0)
            return 1 + i;
    }
    return 0;
}

/* ---- actors ---- */

struct flow { /* of one (from, to) */
    struct traffic_flow f;
    /* sender */
    uint64_t sent;
    _Atomic uint64_t told; /* the same, for the receiver's thread */
    struct rnl_room room[BATCH];
    int rooms;
    /* receiver */
    uint64_t received;
    struct rnl_view held[HOLD];
    uint64_t number[HOLD]; /* of each held packet */
    int holds;
};

struct actor {
    struct traffic *all;
    struct rnl_transport *t;
    uint32_t place;
    uint64_t random;
    uint32_t paused; /* turns */
    _Atomic int done;
};

struct traffic {
    struct conform_case *c;
    uint64_t seed;
    const struct traffic_options *o;
    struct actor actor[CONFORM_PLACES];
    struct flow flow[CONFORM_PLACES][CONFORM_PLACES];
    unsigned places;
    pthread_mutex_t lock;
    _Atomic int failed;
    char text[TEXT];
};

static void fail_traffic(struct actor *a, const struct flow *w, const char *what, long long number)
{
    struct traffic *all = a->all;
    pthread_mutex_lock(&all->lock);
    if (!atomic_load(&all->failed))
        snprintf(all->text, sizeof all->text, "rank %u, from %u to %u, packet %llu: %s (%lld)", a->place, w->f.from,
                 w->f.to, (unsigned long long)(w->f.to == a->place ? w->received : w->sent), what, number);
    atomic_store(&all->failed, 1);
    pthread_mutex_unlock(&all->lock);
}

static int sends_to(const struct traffic *all, uint32_t from, uint32_t to)
{
    return all->places == 1 || from != to;
}

static struct flow *some_flow(struct actor *a, int out)
{
    struct traffic *all = a->all;
    for (;;) {
        uint32_t other = traffic_below(&a->random, all->places);
        if (sends_to(all, a->place, other))
            return out ? &all->flow[a->place][other] : &all->flow[other][a->place];
    }
}

/* Rooms for the next few packets; as long as the longest of them, or longer. */
static void act_reserve(struct actor *a, struct flow *w)
{
    uint64_t left = a->all->o->packets - w->sent;
    uint32_t n = 1 + traffic_below(&a->random, BATCH), bytes = 0;
    if (n > left)
        n = (uint32_t)left;
    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t b = traffic_bytes(&w->f, w->sent + i);
        bytes = b > bytes ? b : bytes;
    }
    if (traffic_below(&a->random, 4) == 0)
        bytes += traffic_below(&a->random, w->f.mtu - bytes + 1);
    int got = a->t->ops->reserve(a->t, w->f.to, bytes, w->room, (int)n);
    if (got < 0 || got > (int)n)
        fail_traffic(a, w, "reserve", got);
    w->rooms = got < 0 ? 0 : got;
    for (int i = 0; i < w->rooms; i++)
        if (!w->room[i].at || (uintptr_t)w->room[i].at % 8 || w->room[i].bytes < bytes)
            fail_traffic(a, w, "a room that is not aligned, or too short", w->room[i].bytes);
}

static void act_commit(struct actor *a, struct flow *w)
{
    uint32_t used[BATCH];
    int full = 0;
    uint64_t next = w->sent;
    for (int i = 0; i < w->rooms; i++) {
        used[i] = 0;
        if (traffic_below(&a->random, 8) == 0)
            continue; /* given back */
        uint32_t bytes = traffic_bytes(&w->f, next);
        traffic_fill(&w->f, next, w->room[i].at, bytes);
        used[i] = bytes;
        next++;
        full++;
    }
    atomic_store_explicit(&w->told, next, memory_order_release);
    int went = a->t->ops->commit(a->t, w->f.to, w->room, used, w->rooms, false, conform_now(a->t));
    if (went != full)
        fail_traffic(a, w, "commit", went);
    w->sent = next;
    w->rooms = 0;
}

static void check_view(struct actor *a, struct flow *w, const struct rnl_view *v, uint64_t k)
{
    uint32_t wrong;
    if (v->bytes != traffic_bytes(&w->f, k))
        fail_traffic(a, w, "a packet of the wrong length", v->bytes);
    else if ((wrong = traffic_check(&w->f, k, v->at, v->bytes)) != 0)
        fail_traffic(a, w, "a wrong byte", wrong - 1);
}

static void take(struct actor *a, const struct rnl_view *v)
{
    struct traffic *all = a->all;
    if (v->peer >= all->places || !sends_to(all, v->peer, a->place)) {
        fail_traffic(a, &all->flow[0][0], "a packet from nowhere", v->peer);
        return;
    }
    struct flow *w = &all->flow[v->peer][a->place];
    uint64_t k;
    if (v->bytes < sizeof k) {
        fail_traffic(a, w, "a packet cut short", v->bytes);
        return;
    }
    memcpy(&k, v->at, sizeof k);
    if (k >= atomic_load_explicit(&w->told, memory_order_acquire)) {
        fail_traffic(a, w, "a packet that was not sent", (long long)k);
        return;
    }
    check_view(a, w, v, k);
    w->number[w->holds] = k;
    w->held[w->holds++] = *v;
    w->received++;
}

static int room_to_hold(struct actor *a)
{
    int room = HOLD;
    for (uint32_t from = 0; from < a->all->places; from++)
        if (HOLD - a->all->flow[from][a->place].holds < room)
            room = HOLD - a->all->flow[from][a->place].holds;
    return room;
}

static int act_poll(struct actor *a)
{
    struct rnl_view v[BATCH];
    int n = 1 + (int)traffic_below(&a->random, BATCH), room = room_to_hold(a);
    if (n > room)
        n = room;
    if (n == 0)
        return 0;
    int got = a->t->ops->poll(a->t, v, n, conform_now(a->t));
    if (got < 0 || got > n)
        fail_traffic(a, &a->all->flow[0][0], "poll", got);
    for (int i = 0; i < got && !atomic_load(&a->all->failed); i++)
        take(a, &v[i]);
    return got;
}

/* The oldest few, after another look at what they hold. */
static void act_release(struct actor *a, struct flow *w)
{
    int n = w->holds ? 1 + (int)traffic_below(&a->random, (uint32_t)w->holds) : 0;
    if (n == 0)
        return;
    for (int i = 0; i < n; i++)
        check_view(a, w, &w->held[i], w->number[i]);
    a->t->ops->release(a->t, w->held, n);
    w->holds -= n;
    memmove(w->held, w->held + n, (size_t)w->holds * sizeof *w->held);
    memmove(w->number, w->number + n, (size_t)w->holds * sizeof *w->number);
}

static int all_done(struct actor *a)
{
    for (uint32_t other = 0; other < a->all->places; other++) {
        const struct flow *out = &a->all->flow[a->place][other], *in = &a->all->flow[other][a->place];
        if (sends_to(a->all, a->place, other) && (out->sent < a->all->o->packets || out->rooms || in->holds))
            return 0;
    }
    return 1;
}

/* One turn. */
static void act(struct actor *a)
{
    if (a->paused) {
        a->paused--;
        return;
    }
    if (traffic_below(&a->random, 100) < a->all->o->pause) {
        a->paused = traffic_below(&a->random, 200);
        return;
    }
    struct flow *w;
    switch (traffic_below(&a->random, 5)) {
    case 0:
        w = some_flow(a, 1);
        if (w->rooms)
            act_commit(a, w);
        else
            act_reserve(a, w);
        break;
    case 1:
        w = some_flow(a, 1); /* both at once, as programs do */
        if (!w->rooms)
            act_reserve(a, w);
        if (w->rooms)
            act_commit(a, w);
        break;
    case 2:
        (void)act_poll(a);
        break;
    case 3:
        act_release(a, some_flow(a, 0));
        break;
    default:
        if (a->t->ops->flush(a->t, conform_now(a->t)) < 0)
            fail_traffic(a, &a->all->flow[0][0], "flush", 0);
        break;
    }
    if (!atomic_load_explicit(&a->done, memory_order_relaxed) && all_done(a))
        atomic_store(&a->done, 1);
}

static int everybody_done(const struct traffic *all)
{
    for (uint32_t i = 0; i < all->places; i++)
        if (!atomic_load(&all->actor[i].done))
            return 0;
    return 1;
}

static uint64_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

/* Sender and receiver of a datagram flow agree on nothing: after the last packet was sent, what still travels has had
 * its time. */
static int given_up(struct actor *a, uint64_t began)
{
    if (seconds() - began < GIVE_UP_S)
        return 0;
    if (!atomic_load(&a->all->failed))
        fail_traffic(a, some_flow(a, 0), "does not arrive", GIVE_UP_S);
    return 1;
}

static void *actor_thread(void *arg)
{
    struct actor *a = arg;
    uint64_t began = seconds();
    for (uint32_t turn = 0; !everybody_done(a->all) && !atomic_load(&a->all->failed); turn++) {
        act(a);
        if (turn % 64 == 0)
            sched_yield();
        if (turn % 65536 == 0 && given_up(a, began))
            break;
    }
    return NULL;
}

static void take_turns(struct traffic *all)
{
    uint64_t random = all->seed ^ 0x5eed, began = seconds();
    struct actor *a = &all->actor[0];
    uint32_t burst = 0;
    for (uint32_t turn = 0; !everybody_done(all) && !atomic_load(&all->failed); turn++) {
        if (burst == 0) { /* sometimes each a turn, sometimes one for long */
            a = &all->actor[traffic_below(&random, all->places)];
            burst = 1 + traffic_below(&random, 1u << traffic_below(&random, 8));
        }
        burst--;
        act(a);
        if (turn % 8 == 0)
            conform_step(all->c);
        if (turn % 65536 == 0 && given_up(a, began))
            break;
    }
}

static void take_threads(struct traffic *all)
{
    pthread_t thread[CONFORM_PLACES];
    for (uint32_t i = 0; i < all->places; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, actor_thread, &all->actor[i]), 0);
    for (uint32_t i = 0; i < all->places; i++)
        pthread_join(thread[i], NULL);
}

static struct traffic *prepare(unsigned places, uint64_t seed, const struct traffic_options *o)
{
    struct traffic *all = calloc(1, sizeof *all);
    assert_non_null(all);
    all->o = o;
    all->seed = seed;
    all->places = places;
    pthread_mutex_init(&all->lock, NULL);
    return all;
}

/* What place i sends with t, and what it gets. */
static void prepare_place(struct traffic *all, uint32_t i, struct rnl_transport *t)
{
    all->actor[i].all = all;
    all->actor[i].t = t;
    all->actor[i].place = i;
    all->actor[i].random = traffic_mix(all->seed + i);
    for (uint32_t other = 0; other < all->places; other++) {
        uint32_t mtu = t->ops->mtu(t, other);
        const struct traffic_flow out = {.seed = all->seed,
                                         .from = i,
                                         .to = other,
                                         .mtu = all->o->mtu && all->o->mtu < mtu ? all->o->mtu : mtu,
                                         .least = 8};
        struct traffic_flow in = out;
        in.from = other;
        in.to = i;
        all->flow[i][other].f = out;
        all->flow[other][i].f = in;
    }
}

static int finish(struct traffic *all, char text[TEXT])
{
    int failed = atomic_load(&all->failed);
    memcpy(text, all->text, TEXT);
    pthread_mutex_destroy(&all->lock);
    free(all);
    return failed;
}

void traffic_run(struct conform_case *c, const struct traffic_options *o)
{
    struct traffic *all = prepare(c->fixture->places, c->seed, o);
    char text[TEXT];
    all->c = c;
    for (uint32_t i = 0; i < all->places; i++)
        prepare_place(all, i, c->net.t[i]);
    if (c->fixture->threads)
        take_threads(all);
    else
        take_turns(all);
    if (finish(all, text))
        fail_msg("seed %llu: %s", (unsigned long long)c->seed, text);
}

static void unchanged(struct conform_case *c)
{
    conform_connect(c);
    traffic_run(c, &(struct traffic_options){.packets = CONFORM_COUNT(40000), .pause = 1});
}

/* ---- asleep on the descriptor ---- */

enum { SLEEP_MS = 10000, APART_NS = 60000 };

struct sleeper {
    struct conform_case *c;
    int packets;
    _Atomic int taken; /* by the sleeper */
    _Atomic int failed;
};

/* Takes in packet by packet, asleep whenever none is there. */
static void *sleep_and_take(void *arg)
{
    struct sleeper *s = arg;
    struct rnl_transport *t = s->c->net.t[1];
    int fd = t->ops->fd(t);
    for (int i = 0; i < s->packets && !atomic_load(&s->failed); i++) {
        struct rnl_view v;
        while (t->ops->poll(t, &v, 1, conform_now(t)) == 0) {
            struct pollfd p = {.fd = fd, .events = POLLIN};
            uint64_t until_ns = t->ops->deadline(t), now_ns = conform_now(t);
            int late = until_ns != UINT64_MAX; /* what it wants to do by itself is no arrival */
            int ms = late ? until_ns > now_ns ? (int)((until_ns - now_ns) / 1000000) : 0 : SLEEP_MS;
            if (t->ops->arm(t) == 0 && poll(&p, 1, ms) != 1 && !late)
                atomic_store(&s->failed, 1);
            if (atomic_load(&s->failed))
                return NULL;
        }
        if (v.bytes != sizeof i || memcmp(v.at, &i, sizeof i) != 0)
            atomic_store(&s->failed, 2);
        t->ops->release(t, &v, 1);
        atomic_store(&s->taken, i + 1);
    }
    return NULL;
}

static void send_number(struct rnl_transport *t, int number)
{
    struct rnl_room room;
    const uint32_t used = sizeof number;
    while (t->ops->reserve(t, 1, used, &room, 1) == 0)
        ;
    memcpy(room.at, &number, sizeof number);
    (void)t->ops->commit(t, 1, &room, &used, 1, false, conform_now(t));
    while (t->ops->flush(t, conform_now(t)) > 0)
        ;
}

static void asleep(struct conform_case *c)
{
    struct sleeper s = {.c = c, .packets = CONFORM_COUNT(150000)};
    struct rnl_transport *t = c->net.t[0];
    pthread_t thread;
    uint64_t random = c->seed;
    conform_connect(c);
    assert_int_equal(pthread_create(&thread, NULL, sleep_and_take, &s), 0);
    /* Two at a time: the first wakes it, the second comes about when it lies down again. Then nothing more until both
     * are taken. */
    for (int i = 0; i < s.packets && !atomic_load(&s.failed); i += 2) {
        send_number(t, i);
        uint64_t until_ns = conform_now(t) + traffic_below(&random, APART_NS);
        while (conform_now(t) < until_ns)
            ;
        send_number(t, i + 1);
        while (atomic_load(&s.taken) < i + 2 && !atomic_load(&s.failed))
            sched_yield();
    }
    pthread_join(thread, NULL);
    if (atomic_load(&s.failed))
        fail_msg("seed %llu: packet %d: %s", (unsigned long long)c->seed, atomic_load(&s.taken),
                 atomic_load(&s.failed) == 1 ? "slept through its arrival" : "another one came");
}

const struct conform_body conform_traffic_bodies[] = {
    {"packets are unchanged and none is invented", 0, 0, 0, unchanged},
    {"who sleeps on the descriptor is woken", CONFORM_FD | CONFORM_THREADS, 2, 2, asleep},
    {NULL, 0, 0, 0, NULL},
};
