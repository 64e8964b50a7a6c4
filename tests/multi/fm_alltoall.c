/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm_alltoall.c - everybody sends to everybody, themselves too, messages of 0 bytes to 4 MiB, from programs and from
 * handlers: runnel run -n N multi-fm_alltoall [SEED [SCALE]]. A handler that is asked to answers at once; where begin
 * says NULL, the program answers later, in order. All sizes and bytes follow from the seed, so each receiver knows what
 * is due. It must end: the deadline is the caller's.
 *
 * A message that would have to be sent from a handler and is longer than a handler can reserve is left to the program
 * too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "multi/fm_check.h"
#include "runnel/fm.h"

enum { ASK = 1, ANSWER };
enum { RANKS_MAX = 128 };

static unsigned long me, ranks;
static uint64_t seed = 1, per_pair = 12;

static uint64_t asked[RANKS_MAX];    /* messages taken in, by sender */
static uint64_t answered[RANKS_MAX]; /* answers taken in, by sender */
static uint64_t replies[RANKS_MAX];  /* answers sent, by receiver; the k-th is for the k-th question */
static uint64_t deferred, from_handlers, sent_bytes;

/* Many short, some of every other kind; few of several MiB. */
static uint64_t size_of(unsigned kind, unsigned long from, unsigned long to, uint64_t k)
{
    static const uint64_t edge[] = {0, 1, 7, 8, 55, 56, 57, 64, 4095, 4096, 65536, 262143, 262144, 262145};
    uint64_t random = check_key(kind, from, to, k) ^ seed, x = check_random(&random);
    if (x % 64 < 28)
        return (x >> 8) % 57;
    if (x % 64 < 44)
        return edge[(x >> 8) % (sizeof edge / sizeof *edge)];
    if (x % 64 < 58)
        return (x >> 8) % 20000;
    if (x % 64 < 62)
        return (x >> 8) % (300 << 10);
    if ((x >> 40) % 8 || FM_SANITIZED)
        return (x >> 8) % (1 << 20);
    return (x >> 41) % 2 ? 4 << 20 : (x >> 8) % (4 << 20);
}

/* Bytes from one pseudo-random piece to the next. */
static uint64_t step_of(uint64_t *random, uint64_t left)
{
    uint64_t x = check_random(random), step = x % 4 == 0 ? 1 + (x >> 8) % 100 : 1 + (x >> 8) % 70000;
    return step < left ? step : left;
}

static void compose(FM_stream *s, unsigned kind, unsigned long to, uint64_t k, uint64_t size)
{
    uint64_t key = check_key(kind, me, to, k) ^ seed, random = key + 1;
    unsigned char *buf = malloc(size + 1);
    CHECK(buf != NULL);
    check_fill(key, 0, buf, size);
    for (uint64_t at = 0, step; at < size; at += step) {
        step = step_of(&random, size - at);
        FM_send_piece(s, buf + at, step);
    }
    FM_end_message(s);
    free(buf);
    sent_bytes += size;
}

static void take_in(FM_stream *s, unsigned kind, unsigned from, uint64_t k)
{
    uint64_t key = check_key(kind, from, me, k) ^ seed, random = key + 2, size = size_of(kind, from, me, k);
    unsigned char *buf = malloc(70000);
    CHECK(buf != NULL);
    for (uint64_t at = 0, step; at < size; at += step) {
        step = step_of(&random, size - at);
        FM_receive(buf, s, step);
        check_bytes(key, at, buf, step, kind == ASK ? "a question" : "an answer");
    }
    free(buf);
}

/* The next answer that `to` has to get. */
static int answer(unsigned long to, int in_handler)
{
    uint64_t k = replies[to], size = size_of(ANSWER, me, to, k);
    if (in_handler && size > 512 << 10)
        return 0;
    FM_stream *s = FM_begin_message(to, size, ANSWER);
    if (!s)
        return 0;
    replies[to]++; /* before anything else can run */
    compose(s, ANSWER, to, k, size);
    return 1;
}

static int on_ask(FM_stream *s, unsigned from)
{
    take_in(s, ASK, from, asked[from]);
    /* Messages of one sender are handled one after another; answers go in the order of the questions. */
    asked[from]++;
    if (replies[from] + 1 == asked[from] && answer(from, 1))
        from_handlers++;
    else
        deferred++;
    return FM_CONTINUE;
}

static int on_answer(FM_stream *s, unsigned from)
{
    take_in(s, ANSWER, from, answered[from]);
    answered[from]++;
    return FM_CONTINUE;
}

/* A deferred answer, if there is one. While it waits for room, handlers run, and may add others. */
static int answer_one(void)
{
    for (unsigned long i = 0; i < ranks; i++) {
        unsigned long to = (me + i) % ranks;
        if (replies[to] < asked[to])
            return answer(to, 0);
    }
    return 0;
}

static int all_here(void)
{
    for (unsigned long r = 0; r < ranks; r++)
        if (asked[r] < per_pair || answered[r] < per_pair || replies[r] < per_pair)
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    if (argc > 2)
        per_pair = strtoull(argv[2], NULL, 0);
    FM_initialize();
    me = check_rank = FM_nodeid;
    ranks = FM_numnodes;
    CHECK(ranks <= RANKS_MAX);
    FM_register_handler(ASK, on_ask);
    FM_register_handler(ANSWER, on_answer);
    uint64_t random = check_mix(seed) + me;
    for (uint64_t k = 0; k < per_pair; k++) {
        unsigned long first = check_below(&random, (uint32_t)ranks);
        for (unsigned long i = 0; i < ranks; i++) {
            unsigned long to = (first + i) % ranks;
            uint64_t size = size_of(ASK, me, to, k);
            FM_stream *s = FM_begin_message(to, size, ASK);
            CHECK(s != NULL);
            compose(s, ASK, to, k, size);
            if (check_below(&random, 4) == 0)
                (void)FM_extract(check_below(&random, 100000));
            (void)answer_one();
        }
    }
    while (!all_here())
        if (!answer_one())
            (void)FM_wait(-1);
    FM_finalize();
    if (me == 0)
        printf("rank 0 of %lu sent %.1f MB; %llu answers from handlers, %llu later\n", ranks, (double)sent_bytes / 1e6,
               (unsigned long long)from_handlers, (unsigned long long)deferred);
    return 0;
}
