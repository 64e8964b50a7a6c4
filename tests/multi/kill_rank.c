/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kill_rank.c - a rank of the jobs that kill_many.c kills ranks of: multi-kill_rank MODE SEED VICTIM. Says on its
 * output, a line each:
 *
 *   dead REPORTER RANK NS SENTENCE    its error handler was told RNL_ERR_PEER_DEAD for RANK, at that time of
 *                                     CLOCK_MONOTONIC
 *   done RANK MESSAGES                it has left the job, with so many messages taken in and checked
 *
 * Modes, by what the survivors do when the death comes: "traffic", everybody sends everybody numbered messages, and who
 * lives gets all of all who live, and a prefix of those of the dead; "wait", asleep in FM_wait, some pairs connected,
 * some not; "poll", asleep in poll on FM_fd; "send", everybody sends to VICTIM, which takes in; "stuck", everybody
 * sends to VICTIM, which does not: blocked; "half", VICTIM has sent the first half of a message to everybody: their
 * handlers are suspended. Without arguments: a job of one joins and leaves. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "multi/fm_check.h"
#include "runnel/fm.h"
#include "runnel/runnel.h"

enum { DATA = 1, HELLO, RANKS_MAX = 64 };
enum { PER_PAIR = FM_SANITIZED ? 20 : 60 };

static unsigned long me, ranks, victim;
static uint64_t seed, sent[RANKS_MAX], got[RANKS_MAX], messages;
static int dead[RANKS_MAX], deaths;
/* One handler of each sender at a time: memory it took itself would leak when its sender dies. */
enum { STEP = 30000 };
static unsigned char *taken[RANKS_MAX];

static void on_error(int status, unsigned long peer, const char *sentence)
{
    uint64_t now = check_now_ns();
    if (status != RNL_ERR_PEER_DEAD || peer >= ranks)
        check_fail("the error handler was told %d about %lu: %s", status, peer, sentence);
    if (dead[peer])
        check_fail("the death of %lu was told twice", peer);
    dead[peer] = 1;
    deaths++;
    CHECK(dprintf(STDOUT_FILENO, "dead %lu %lu %llu %s\n", me, peer, (unsigned long long)now, sentence) > 0);
}

static uint64_t size_of(unsigned long from, unsigned long to, uint64_t k)
{
    uint64_t x = check_key(DATA, from, to, k) ^ seed;
    x = check_mix(x);
    return x % 20 < 14 ? (x >> 8) % 80 : x % 20 < 19 ? (x >> 8) % 20000 : (x >> 8) % 500000;
}

static int on_data(FM_stream *s, unsigned from)
{
    uint64_t k = got[from], size = size_of(from, me, k), key = check_key(DATA, from, me, k) ^ seed;
    if (!taken[from])
        taken[from] = malloc(STEP);
    CHECK(taken[from] != NULL);
    for (uint64_t at = 0, step; at < size; at += step) {
        step = size - at < STEP ? size - at : STEP;
        FM_receive(taken[from], s, step);
        check_bytes(key, at, taken[from], step, "a message");
    }
    CHECK(got[from] == k);
    got[from]++;
    messages++;
    return FM_CONTINUE;
}

static int on_hello(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    messages++;
    return FM_CONTINUE;
}

/* To the dead it is swallowed. */
static void send_next(unsigned long to)
{
    uint64_t k = sent[to]++, size = size_of(me, to, k), key = check_key(DATA, me, to, k) ^ seed;
    unsigned char *buf = malloc(size + 1);
    CHECK(buf != NULL);
    check_fill(key, 0, buf, size);
    FM_stream *s = FM_begin_message(to, size, DATA);
    if (!s)
        check_fail("no stream to %lu", to);
    FM_send_piece(s, buf, size / 3);
    FM_send_piece(s, buf + size / 3, size - size / 3);
    FM_end_message(s);
    free(buf);
}

static void traffic(void)
{
    uint64_t random = seed + me;
    for (uint64_t k = 0; k < PER_PAIR; k++) {
        unsigned long first = check_below(&random, (uint32_t)ranks);
        for (unsigned long i = 0; i < ranks; i++)
            send_next((first + i) % ranks);
        if (check_below(&random, 2))
            (void)FM_extract(check_below(&random, 200000));
    }
    for (unsigned long r = 0; r < ranks; r++)
        while (got[r] < PER_PAIR && !dead[r])
            (void)FM_wait(-1);
}

static void hello_some(void)
{
    uint64_t random = seed + me;
    for (unsigned long r = 0; r < ranks; r++) {
        if (check_below(&random, 2)) {
            FM_stream *s = FM_begin_message(r, 0, HELLO);
            if (s)
                FM_end_message(s);
        }
    }
}

static void wait_for_death(void)
{
    hello_some();
    while (!deaths)
        (void)FM_wait(-1);
}

static void poll_for_death(void)
{
    hello_some();
    struct pollfd p = {.fd = FM_fd(), .events = POLLIN};
    CHECK(p.fd >= 0);
    while (!deaths) {
        if (FM_extract(~0ul) == 0 && !deaths)
            (void)poll(&p, 1, -1);
    }
}

static void send_to_victim(int takes_in)
{
    while (me == victim && !takes_in)
        pause();
    while (!dead[victim]) {
        if (me == victim)
            (void)FM_wait(-1);
        else
            send_next(victim);
    }
}

static int on_half(FM_stream *s, unsigned from)
{
    unsigned char buf[400];
    FM_receive(buf, s, sizeof buf / 2);
    check_bytes(seed, 0, buf, sizeof buf / 2, "half a message");
    messages++;
    FM_receive(buf, s, sizeof buf / 2); /* never comes */
    check_fail("a handler whose sender %u died went on", from);
    return FM_CONTINUE;
}

static void half(void)
{
    unsigned char buf[400];
    FM_stream *s[RANKS_MAX];
    check_fill(seed, 0, buf, sizeof buf);
    FM_register_handler(DATA, on_half);
    if (me == victim) {
        for (unsigned long r = 0; r < ranks; r++) {
            s[r] = r == me ? NULL : FM_begin_message(r, sizeof buf, DATA);
            if (s[r])
                FM_send_piece(s[r], buf, sizeof buf / 2);
            (void)FM_extract(~0ul); /* makes it visible */
        }
        for (;;)
            (void)FM_wait(-1);
    }
    while (!dead[victim])
        (void)FM_wait(-1);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
    victim = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
    FM_set_parameter(FM_ERROR_HANDLER, on_error);
    FM_initialize();
    me = check_rank = FM_nodeid;
    ranks = FM_numnodes;
    CHECK(ranks <= RANKS_MAX && victim < ranks);
    FM_register_handler(HELLO, on_hello);
    if (strcmp(mode, "half") != 0)
        FM_register_handler(DATA, on_data);
    if (strcmp(mode, "traffic") == 0)
        traffic();
    else if (strcmp(mode, "wait") == 0)
        wait_for_death();
    else if (strcmp(mode, "poll") == 0)
        poll_for_death();
    else if (strcmp(mode, "send") == 0 || strcmp(mode, "stuck") == 0)
        send_to_victim(mode[1] == 'e');
    else if (strcmp(mode, "half") == 0)
        half();
    FM_finalize();
    for (unsigned long r = 0; r < ranks; r++)
        free(taken[r]);
    for (unsigned long r = 0; r < ranks && strcmp(mode, "traffic") == 0; r++)
        if (got[r] > PER_PAIR || (got[r] < PER_PAIR && !dead[r]))
            check_fail("%llu messages of %lu came", (unsigned long long)got[r], r);
    if (argc > 1)
        CHECK(dprintf(STDOUT_FILENO, "done %lu %llu\n", me, (unsigned long long)messages) > 0);
    return 0;
}
