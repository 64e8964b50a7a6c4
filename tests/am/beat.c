/* SPDX-License-Identifier: BSD-3-Clause
 *
 * beat.c - a steady exchange of requests and replies over a network that changes: runnel run -n N am-beat COUNT
 * EVERY_MS [FILE]. Each rank asks each other one COUNT times, and more until FILE is there, some of the requests and of
 * the replies with bytes, with several under way at any time. Half way through, rank 0 moves its endpoint to another
 * bundle, and everybody maps the others anew. Each request runs its handler once, has its reply once, and no message
 * comes back. With FILE it says `beats RANK` once something was answered, and `moves RANK N` when packets to a peer
 * have gone on to another of its addresses for the N-th time. Says at its end
 *
 *   beat RANK gap MS at MS moved N
 *
 * gap: the longest time in which nothing was answered, and when it began; moved: how often packets to a peer went on to
 * another of its addresses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "am/rank_must.h"
#include "runnel/am.h"
#include "runnel/counters.h"

enum { ASK = 1, ASK_BYTES, ANSWER, ANSWER_BYTES, REST, RANKS_MAX = 16, COUNT_MAX = 100000, BYTES = 2000, AWAY = 40 };
enum { TAG = 77, WAIT_NS = 1000000 };

static eb_t bundle, other;
static ep_t ep;
static unsigned rank, size, rest;
static unsigned char handled[RANKS_MAX][COUNT_MAX], answered[RANKS_MAX][COUNT_MAX], data[BYTES];
static unsigned long asked, settled;
static long asks_of[RANKS_MAX];
static uint64_t began_us, heard_us, gap_us, gap_at_us;

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void note(unsigned char *place)
{
    MUST(*place == 0);
    *place = 1;
}

static void ask(void *token, int32_t k, int32_t from)
{
    note(&handled[from][k]);
    if (k % 3)
        MUST(AM_Reply2(token, ANSWER, k, (int32_t)rank) == AM_OK);
    else
        MUST(AM_ReplyI2(token, ANSWER_BYTES, data, BYTES, k, (int32_t)rank) == AM_OK);
}

static void ask_bytes(void *token, void *buf, size_t n, int32_t k, int32_t from)
{
    MUST(n == BYTES && memcmp(buf, data, n) == 0);
    ask(token, k, from);
}

static void answer(void *token, int32_t k, int32_t by)
{
    uint64_t now = now_us();
    (void)token;
    note(&answered[by][k]);
    settled++;
    if (now - heard_us > gap_us) {
        gap_us = now - heard_us;
        gap_at_us = heard_us - began_us;
    }
    heard_us = now;
}

static void answer_bytes(void *token, void *buf, size_t n, int32_t k, int32_t by)
{
    MUST(n == BYTES && memcmp(buf, data, n) == 0);
    answer(token, k, by);
}

static void is_at_rest(void *token, int32_t from, int32_t asks)
{
    (void)token;
    asks_of[from] = asks;
    rest++;
}

static void returned(int status, op_t opcode, void *token)
{
    (void)token;
    fprintf(stderr, "rank %u: message %d came back: %d\n", rank, opcode, status);
    _exit(1);
}

static void map_all(int anew)
{
    for (unsigned i = 0; i < size; i++) {
        if (anew)
            MUST(AM_UnMap(ep, (int)i) == AM_OK);
        MUST(AM_Map(ep, (int)i, AM_NameOf(i, 0), TAG) == AM_OK);
    }
}

static void wait_some(void)
{
    int status = AM_WaitSemaFor(bundle, WAIT_NS);
    MUST(status == AM_OK || status == AM_ERR_NOT_SENT);
    MUST(AM_Poll(bundle) == AM_OK);
}

static void say_moves(rnl_endpoint *own)
{
    static uint64_t said;
    uint64_t moved = rnl_get_counters(own)->peers_moved;
    if (moved == said)
        return;
    said = moved;
    MUST(dprintf(STDOUT_FILENO, "moves %u %llu\n", rank, (unsigned long long)said) > 0);
}

int main(int argc, char **argv)
{
    long count = argc > 2 ? atol(argv[1]) : 20, every_ms = argc > 2 ? atol(argv[2]) : 0;
    const char *until = argc > 3 ? argv[3] : NULL;
    int said = !until;
    en_t name;
    MUST(count <= COUNT_MAX && AM_Init() == AM_OK && AM_AllocateBundle(AM_SEQ, &bundle) == AM_OK);
    rnl_endpoint *own = AM_GetRank(bundle);
    rank = rnl_rank(own);
    size = rnl_size(own);
    MUST(size <= RANKS_MAX && AM_AllocateEndpoint(bundle, &ep, &name) == AM_OK && AM_SetTag(ep, TAG) == AM_OK);
    for (unsigned i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    MUST(AM_SetHandler(ep, 0, returned) == AM_OK && AM_SetHandler(ep, ASK, ask) == AM_OK);
    MUST(AM_SetHandler(ep, ASK_BYTES, ask_bytes) == AM_OK && AM_SetHandler(ep, ANSWER, answer) == AM_OK);
    MUST(AM_SetHandler(ep, ANSWER_BYTES, answer_bytes) == AM_OK && AM_SetHandler(ep, REST, is_at_rest) == AM_OK);
    MUST(AM_SetEventMask(bundle, AM_NOTEMPTY) == AM_OK);
    map_all(0);
    uint64_t next_us = began_us = heard_us = now_us();
    long k = 0;
    for (; k < count || (until && access(until, F_OK) != 0); k++) {
        MUST(k < COUNT_MAX);
        if (k == count / 2) {
            if (rank == 0) {
                MUST(AM_AllocateBundle(AM_SEQ, &other) == AM_OK);
                MUST(AM_MoveEndpoint(ep, bundle, other) == AM_OK);
                bundle = other;
                MUST(AM_SetEventMask(bundle, AM_NOTEMPTY) == AM_OK);
            }
            map_all(1);
        }
        for (unsigned i = 1; i < size; i++, asked++) {
            int to = (int)((rank + i) % size);
            if (k % 4)
                MUST(AM_Request2(ep, to, ASK, (int32_t)k, (int32_t)rank) == AM_OK);
            else
                MUST(AM_RequestI2(ep, to, ASK_BYTES, data, BYTES, (int32_t)k, (int32_t)rank) == AM_OK);
        }
        for (next_us += (uint64_t)every_ms * 1000; now_us() < next_us || asked - settled > AWAY;)
            wait_some();
        if (!said && settled > 0)
            said = dprintf(STDOUT_FILENO, "beats %u\n", rank) > 0;
        if (until)
            say_moves(own);
    }
    while (settled < asked)
        wait_some();
    for (unsigned i = 0; i < size; i++)
        if (i != rank)
            MUST(AM_Request2(ep, (int)i, REST, (int32_t)rank, (int32_t)k) == AM_OK);
    while (rest < size - 1)
        wait_some();
    for (unsigned i = 0; i < size; i++)
        for (long j = 0; i != rank && j < COUNT_MAX; j++)
            MUST(handled[i][j] == (j < asks_of[i]) && answered[i][j] == (j < k));
    printf("beat %u gap %llu at %llu moved %llu\n", rank, (unsigned long long)(gap_us / 1000),
           (unsigned long long)(gap_at_us / 1000), (unsigned long long)rnl_get_counters(own)->peers_moved);
    MUST(AM_Terminate() == AM_OK);
    return 0;
}
