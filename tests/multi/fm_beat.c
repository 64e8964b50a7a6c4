/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm_beat.c - a steady exchange over a network that changes: runnel run -n N multi-fm_beat COUNT EVERY_MS [FILE].
 * Everybody sends everybody else COUNT numbered messages, one each EVERY_MS, more of them until FILE is there, and
 * takes in what comes: each once, in order, with the right bytes, all of whoever lives. Who is told that a peer is dead
 * goes on with the others. With FILE it says `beats RANK` once all were heard, and `moves RANK N gap MS late MS` when
 * packets to a peer have gone on to another of its addresses for the N-th time and it is heard again: gap is the
 * longest time since the move before, or the beginning, in which one was not, and `late` how long this process
 * overslept meanwhile at most. Says at its end
 *
 *   beat RANK gap MS [dead R]... [moved N] [frames N refused N forged N again N]
 *
 * gap: the longest time in which one of those that live was not heard; frames: that came past the kernel, that were
 * none for it, and packets that were no peer's or had come before. Without arguments: a job of one joins and
 * leaves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/fm/process.h"
#include "multi/fm_check.h"
#include "runnel/counters.h"
#include "runnel/fm.h"
#include "runnel/runnel.h"

enum { BEAT = 1, LAST, RANKS_MAX = 64, BYTES_MAX = 3000, SETTLED_NS = 500000000 };
#define MS 1000000ull

static unsigned long me, ranks;
static uint64_t got[RANKS_MAX], all[RANKS_MAX],                 /* 1 + how many come; 0: not told yet */
    heard_ns[RANKS_MAX], gap_ns[RANKS_MAX], lately_ns, late_ns; /* the longest since the last move */
static int dead[RANKS_MAX];

static void on_error(int status, unsigned long peer, const char *sentence)
{
    if (status != RNL_ERR_PEER_DEAD || peer >= ranks || dead[peer])
        check_fail("the error handler was told %d about %lu: %s", status, peer, sentence);
    dead[peer] = 1;
}

static uint64_t size_of(uint64_t key)
{
    return 8 + check_mix(key) % (BYTES_MAX - 8);
}

static void heard(unsigned long from)
{
    uint64_t now = check_now_ns();
    if (now - heard_ns[from] > gap_ns[from])
        gap_ns[from] = now - heard_ns[from];
    if (now - heard_ns[from] > lately_ns)
        lately_ns = now - heard_ns[from];
    heard_ns[from] = now;
}

static int on_beat(FM_stream *s, unsigned from)
{
    unsigned char bytes[BYTES_MAX];
    uint64_t number, key = check_key(BEAT, from, me, got[from]), size = size_of(key);
    FM_receive(&number, s, sizeof number);
    if (number != got[from])
        check_fail("message %llu of %u is said to be %llu", (unsigned long long)got[from], from,
                   (unsigned long long)number);
    FM_receive(bytes, s, size - sizeof number);
    check_bytes(key, 0, bytes, size - sizeof number, "a beat");
    got[from]++;
    heard(from);
    return FM_CONTINUE;
}

static int on_last(FM_stream *s, unsigned from)
{
    uint64_t count;
    FM_receive(&count, s, sizeof count);
    all[from] = 1 + count;
    return FM_CONTINUE;
}

static void send_last(unsigned long to, uint64_t count)
{
    FM_stream *s = dead[to] ? NULL : FM_begin_message(to, sizeof count, LAST);
    if (!s)
        return;
    FM_send_piece(s, &count, sizeof count);
    FM_end_message(s);
}

static void send_beat(unsigned long to, uint64_t k)
{
    unsigned char bytes[BYTES_MAX];
    uint64_t key = check_key(BEAT, me, to, k), size = size_of(key);
    FM_stream *s = dead[to] ? NULL : FM_begin_message(to, size, BEAT);
    if (!s)
        return; /* it is dead, of which the error handler was told */
    check_fill(key, 0, bytes, size - sizeof k);
    FM_send_piece(s, &k, sizeof k);
    FM_send_piece(s, bytes, size - sizeof k);
    FM_end_message(s);
}

static int all_here(void)
{
    for (unsigned long r = 0; r < ranks; r++)
        if (r != me && !dead[r] && (all[r] == 0 || got[r] + 1 < all[r]))
            return 0;
    return 1;
}

static void say_once_all_beat(void)
{
    static int said;
    for (unsigned long r = 0; r < ranks && !said; r++)
        if (r != me && got[r] == 0)
            return;
    if (!said) {
        CHECK(dprintf(STDOUT_FILENO, "beats %lu\n", me) > 0);
        lately_ns = late_ns = 0;
    }
    said = 1;
}

static uint64_t moved(void)
{
    return rnl_get_counters(rnl_fm.ep)->peers_moved;
}

/* A while after the move, when everybody has been heard again. */
static void say_moves(void)
{
    static uint64_t said, seen, seen_ns;
    if (moved() != seen) {
        seen = moved();
        seen_ns = check_now_ns();
    }
    if (seen == said || check_now_ns() - seen_ns < SETTLED_NS)
        return;
    said = seen;
    CHECK(dprintf(STDOUT_FILENO, "moves %lu %llu gap %llu late %llu\n", me, (unsigned long long)said,
                  (unsigned long long)(lately_ns / MS), (unsigned long long)(late_ns / MS)) > 0);
    lately_ns = late_ns = 0;
}

static void say(const char *until, uint64_t moves, const struct rnl_counters *c)
{
    char line[200 + RANKS_MAX * 10];
    uint64_t gap = 0;
    for (unsigned long r = 0; r < ranks; r++)
        if (r != me && !dead[r] && gap_ns[r] > gap)
            gap = gap_ns[r];
    int n = snprintf(line, sizeof line, "beat %lu gap %llu", me, (unsigned long long)(gap / MS));
    for (unsigned long r = 0; r < ranks; r++)
        if (dead[r])
            n += snprintf(line + n, sizeof line - (size_t)n, " dead %lu", r);
    if (until)
        n += snprintf(line + n, sizeof line - (size_t)n, " moved %llu", (unsigned long long)moves);
    if (c->frames_received)
        snprintf(line + n, sizeof line - (size_t)n, " frames %llu refused %llu forged %llu again %llu",
                 (unsigned long long)c->frames_received, (unsigned long long)c->frames_refused,
                 (unsigned long long)c->packets_refused, (unsigned long long)c->packets_again);
    CHECK(dprintf(STDOUT_FILENO, "%s\n", line) > 0);
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 0,
             every_ns = argc > 2 ? strtoull(argv[2], NULL, 0) * MS : 0;
    const char *until = argc > 3 ? argv[3] : NULL;
    FM_set_parameter(FM_ERROR_HANDLER, on_error);
    FM_initialize();
    me = check_rank = FM_nodeid;
    ranks = FM_numnodes;
    CHECK(ranks <= RANKS_MAX);
    FM_register_handler(BEAT, on_beat);
    FM_register_handler(LAST, on_last);
    uint64_t next_ns = check_now_ns();
    for (unsigned long r = 0; r < ranks; r++)
        heard_ns[r] = next_ns;
    uint64_t k = 0;
    for (; k < count || (until && access(until, F_OK) != 0); k++) {
        for (unsigned long i = 1; i < ranks; i++)
            send_beat((me + i) % ranks, k);
        next_ns += every_ns;
        for (uint64_t now; (now = check_now_ns()) < next_ns;)
            (void)FM_wait((long)((next_ns - now) / 1000));
        if (check_now_ns() - next_ns > late_ns)
            late_ns = check_now_ns() - next_ns;
        if (!until)
            continue;
        say_once_all_beat();
        say_moves();
    }
    for (unsigned long r = 0; r < ranks; r++)
        if (r != me)
            send_last(r, k);
    while (!all_here())
        (void)FM_wait(-1);
    uint64_t moves = moved();
    const struct rnl_counters counters = *rnl_get_counters(rnl_fm.ep);
    FM_finalize();
    for (unsigned long r = 0; r < ranks; r++)
        if (r != me && (got[r] < all[r] - 1 || all[r] == 0) && !dead[r])
            check_fail("%llu messages of %lu came", (unsigned long long)got[r], r);
    say(until, moves, &counters);
    return 0;
}
