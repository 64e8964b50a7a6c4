/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random.c - the bodies that are random runs: everybody to everybody, on some lanes or all, with pauses. */
#include "conform/bodies.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "conform/traffic.h"

static void one_lane(struct conform_case *c, unsigned lane)
{
    conform_connect(c);
    traffic_run(c, &(struct traffic_options){.packets = CONFORM_COUNT(20000), .lanes = 1u << lane, .mtu = 6000});
}

static void lane0(struct conform_case *c)
{
    one_lane(c, 0);
}

static void lane1(struct conform_case *c)
{
    one_lane(c, 1);
}

static void lane2(struct conform_case *c)
{
    one_lane(c, 2);
}

static void long_run(struct conform_case *c)
{
    conform_connect(c);
    traffic_run(c, &(struct traffic_options){.packets = CONFORM_COUNT(40000), .lanes = 7, .pause = 1});
}

static void datagrams(struct conform_case *c)
{
    conform_connect(c);
    traffic_run(c, &(struct traffic_options){.packets = CONFORM_COUNT(40000), .lanes = 1, .pause = 1});
}

static void stopping(struct conform_case *c)
{
    conform_connect(c);
    traffic_run(c, &(struct traffic_options){.packets = CONFORM_COUNT(3000), .lanes = 7, .mtu = 200, .pause = 30});
}

static void seeds(struct conform_case *c)
{
    /* Many short lives: what depends on where a ring or a count begins. */
    uint64_t first = c->seed;
    for (int i = 0; i < CONFORM_COUNT(60); i++) {
        if (i > 0)
            conform_renew(c);
        c->seed = first + 1 + (uint64_t)i;
        conform_connect(c);
        traffic_run(c, &(struct traffic_options){.packets = 300, .lanes = 7, .pause = 3});
    }
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
    const unsigned lane = t->caps & RNL_CAP_LANES ? (unsigned)number / 2 % 3 : 0;
    while (t->ops->reserve(t, 1, lane, used, &room, 1) == 0)
        ;
    memcpy(room.at, &number, sizeof number);
    (void)t->ops->commit(t, 1, lane, &room, &used, 1, conform_now(t));
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

const struct conform_body conform_random_bodies[] = {
    {"lane 0 delivers once, in order, unchanged", RNL_CAP_RELIABLE, 0, 0, 0, 0, lane0},
    {"lane 1 delivers once, in order, unchanged", RNL_CAP_RELIABLE, 0, 0, 0, 0, lane1},
    {"lane 2 delivers once, in order, unchanged", RNL_CAP_RELIABLE, 0, 0, 0, 0, lane2},
    {"a long run of all lanes", RNL_CAP_RELIABLE, 0, 0, 0, 0, long_run},
    {"all sides stop and go on at random", RNL_CAP_RELIABLE, 0, 0, 0, 0, stopping},
    {"many short runs from many seeds", RNL_CAP_RELIABLE, 0, 0, 0, 0, seeds},
    {"datagrams are unchanged and none is invented", 0, RNL_CAP_RELIABLE, 0, 0, 0, datagrams},
    {"who sleeps on the descriptor is woken", RNL_CAP_FD, 0, 2, 2, 1, asleep},
    {NULL, 0, 0, 0, 0, 0, NULL},
};
