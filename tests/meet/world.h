/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.h - endpoints alone and a daemon, all in one thread: whoever waits for one gives each of them its turn. */
#ifndef RNL_TESTS_MEET_WORLD_H
#define RNL_TESTS_MEET_WORLD_H

#include "meet/daemon.h"
#include "runnel/meet.h"
#include "support/must.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORLD_MOST = 8, WORLD_WHOLE = 1, WORLD_COUNT = 2, WORLD_LONG = 1 << 20 };

/* What one endpoint has seen. */
struct seen {
    rnl_endpoint *ep;
    unsigned count, from;  /* WORLD_COUNT: messages, and who sent the last one */
    char text[64];         /* WORLD_COUNT: what the last one said */
    size_t bytes;          /* WORLD_WHOLE: of the last one, which was right in each byte */
    unsigned deaths, died; /* how many, and who did last */
    enum rnl_death_reason why;
    unsigned requests, requester; /* processes that asked, and the number of the last */
    int refuse;                   /* what they are told */
    bool leaves_the_dead;
    struct rnl_cred cred;
};

static struct seen world[WORLD_MOST];
static struct rnl_daemon *world_daemon;

static int on_count(const void *data, size_t n, unsigned peer, void *ctx)
{
    struct seen *s = ctx;
    s->count++;
    s->from = peer;
    TEST_MUST(n < sizeof s->text);
    memcpy(s->text, data, n);
    s->text[n] = '\0';
    return 0;
}

static int on_long(const void *data, size_t n, unsigned peer, void *ctx)
{
    struct seen *s = ctx;
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        TEST_MUST(at[i] == (unsigned char)(i * 7 + i / 251));
    s->bytes = n;
    s->from = peer;
    return 0;
}

static void on_death(void *arg, unsigned peer, enum rnl_death_reason why)
{
    struct seen *s = arg;
    s->deaths++;
    s->died = peer;
    s->why = why;
    if (s->leaves_the_dead)
        TEST_MUST(rnl_leave(s->ep, peer) == 0);
}

static inline int on_request(void *ctx, unsigned peer, const struct rnl_cred *cred)
{
    struct seen *s = ctx;
    s->requests++;
    s->requester = peer;
    s->cred = *cred;
    return s->refuse;
}

static rnl_endpoint *world_open(unsigned i, uint32_t peers)
{
    const struct rnl_options opt = {.size = sizeof opt, .flags = RNL_ALONE, .peers = peers};
    memset(&world[i], 0, sizeof world[i]);
    TEST_MUST(rnl_open(&world[i].ep, &opt) == 0);
    TEST_MUST(rnl_handler_whole(world[i].ep, WORLD_COUNT, on_count, &world[i], 0) == WORLD_COUNT);
    TEST_MUST(rnl_handler_whole(world[i].ep, WORLD_WHOLE, on_long, &world[i], 0) == WORLD_WHOLE);
    rnl_on_death(world[i].ep, on_death, &world[i]);
    return world[i].ep;
}

static void world_turn(void)
{
    for (unsigned i = 0; i < WORLD_MOST; i++)
        if (world[i].ep)
            TEST_MUST(rnl_extract(world[i].ep, SIZE_MAX) >= 0);
    if (world_daemon)
        rnl_daemon_step(world_daemon, test_now_ns());
}

/* Gives turns until the condition holds; at most 20 s. */
#define UNTIL(condition)                                                \
    do {                                                                \
        uint64_t until_ns = test_now_ns() + (uint64_t)60 * 1000000000u; \
        while (!(condition)) {                                          \
            TEST_MUST(test_now_ns() < until_ns && #condition);          \
            world_turn();                                               \
        }                                                               \
    } while (0)

static inline bool is_up(unsigned i, unsigned peer)
{
    struct rnl_peer_info info;
    TEST_MUST(rnl_peer(world[i].ep, peer, &info) == 0);
    return info.state == RNL_PEER_UP;
}

static void world_close(unsigned i)
{
    if (world[i].ep)
        TEST_MUST(rnl_close(world[i].ep) == 0);
    world[i].ep = NULL;
}

static inline void say(unsigned i, unsigned peer, const char *text)
{
    TEST_MUST(rnl_send(world[i].ep, peer, WORLD_COUNT, text, strlen(text)) == 0);
    TEST_MUST(rnl_flush(world[i].ep) == 0);
}

#endif
