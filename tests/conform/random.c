/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random.c - the bodies that are random runs: everybody to everybody, on some lanes or all, with pauses. */
#include "conform/bodies.h"

#include <poll.h>
#include <pthread.h>
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

enum { SLEEP_MS = 10000 };

struct sleeper {
    struct rnl_transport *t;
    uint32_t peer;
    int rounds, first;
    uint64_t random;
    const char *failed;
};

/* Takes in one packet, asleep until it is there. */
static int await_packet(struct sleeper *s, int number)
{
    struct rnl_view v;
    int fd = s->t->ops->fd(s->t);
    while (s->t->ops->poll(s->t, &v, 1, conform_now(s->t)) == 0) {
        if (s->t->ops->arm(s->t) != 0)
            continue;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, SLEEP_MS) != 1) {
            s->failed = "slept through an arrival";
            return 0;
        }
    }
    int good = v.bytes == sizeof number && memcmp(v.at, &number, sizeof number) == 0;
    s->t->ops->release(s->t, &v, 1);
    if (!good)
        s->failed = "took in another packet than was due";
    return good;
}

static void send_packet(struct sleeper *s, int number)
{
    struct rnl_room room;
    const uint32_t used = sizeof number;
    while (s->t->ops->reserve(s->t, s->peer, (unsigned)number % 3, used, &room, 1) == 0)
        ;
    memcpy(room.at, &number, sizeof number);
    (void)s->t->ops->commit(s->t, s->peer, (unsigned)number % 3, &room, &used, 1, conform_now(s->t));
    while (s->t->ops->flush(s->t, conform_now(s->t)) > 0)
        ;
}

static void *sleep_and_answer(void *arg)
{
    struct sleeper *s = arg;
    for (int i = 0; i < s->rounds; i++) {
        if (!s->first && !await_packet(s, i))
            break;
        for (volatile uint32_t spin = traffic_below(&s->random, 20000); spin > 0; spin--)
            ;
        send_packet(s, i);
        if (s->first && !await_packet(s, i))
            break;
    }
    return NULL;
}

static void asleep(struct conform_case *c)
{
    struct sleeper s[2];
    pthread_t thread[2];
    conform_connect(c);
    for (uint32_t i = 0; i < 2; i++)
        s[i] = (struct sleeper){
            .t = c->net.t[i], .peer = 1 - i, .rounds = CONFORM_COUNT(20000), .first = i == 0, .random = c->seed + i};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, sleep_and_answer, &s[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++)
        if (s[i].failed)
            fail_msg("seed %llu: rank %d %s", (unsigned long long)c->seed, i, s[i].failed);
}

const struct conform_body conform_random_bodies[] = {
    {"lane 0 delivers once, in order, unchanged", RNL_CAP_RELIABLE, 0, 0, 0, 0, lane0},
    {"lane 1 delivers once, in order, unchanged", RNL_CAP_RELIABLE, 0, 0, 0, 0, lane1},
    {"lane 2 delivers once, in order, unchanged", RNL_CAP_RELIABLE, 0, 0, 0, 0, lane2},
    {"a long run of all lanes", RNL_CAP_RELIABLE, 0, 0, 0, 0, long_run},
    {"all sides stop and go on at random", RNL_CAP_RELIABLE, 0, 0, 0, 0, stopping},
    {"many short runs from many seeds", RNL_CAP_RELIABLE, 0, 0, 0, 0, seeds},
    {"datagrams are unchanged and none is invented", 0, RNL_CAP_RELIABLE, 0, 0, 0, long_run},
    {"who sleeps on the descriptor is woken", RNL_CAP_FD, 0, 2, 2, 1, asleep},
    {NULL, 0, 0, 0, 0, 0, NULL},
};
