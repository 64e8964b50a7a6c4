/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm_idle.c - what waiting costs: runnel run -n N multi-fm_idle wait|poll|silent SECONDS.
 *
 *   wait, poll   everybody but rank 0 waits a second for its message, in FM_wait or in poll on FM_fd: processor time
 *                used, the most of all
 *   silent       all are connected and wait for so long, while whoever started them counts packets: rank 0 says when
 *                that begins and ends, each how much processor time it took
 *
 * A test fails on processor time beyond reason, never on time that passed. Without arguments: a job of one joins and
 * leaves. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "multi/fm_check.h"
#include "runnel/fm.h"

enum { GO = 1, USED, HELLO };
enum { IDLE_MS = 1000, TICKS = 250 };
enum { SETTLE_MS = 1500, MOST_SILENT_US = FM_SANITIZED ? 50000 : 5000 /* in a second */ };
#define MOST_IDLE_US (FM_SANITIZED ? 400000u : 100000u)

struct used {
    uint64_t us;          /* of processor time, in the silent second */
    uint64_t for_nothing; /* waits that ended with nothing taken in, in the other */
};

static unsigned long me, ranks;
static uint64_t gos, used_seen, most_used_us, most_for_nothing, hellos;

static int on_go(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    gos++;
    return FM_CONTINUE;
}

static int on_hello(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    hellos++;
    return FM_CONTINUE;
}

static int on_used(FM_stream *s, unsigned from)
{
    struct used used;
    (void)from;
    FM_receive(&used, s, sizeof used);
    most_used_us = used.us > most_used_us ? used.us : most_used_us;
    most_for_nothing = used.for_nothing > most_for_nothing ? used.for_nothing : most_for_nothing;
    used_seen++;
    return FM_CONTINUE;
}

static void send(unsigned long to, unsigned long handler, const void *buf, unsigned long n)
{
    FM_stream *s = FM_begin_message(to, n, handler);
    CHECK(s != NULL);
    FM_send_piece(s, buf, n);
    FM_end_message(s);
}

static uint64_t used_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Waits until rank 0 has said go `n` times; returns how many waits ended with nothing taken in. */
static uint64_t await_go(uint64_t n, int in_poll)
{
    struct pollfd p = {.fd = in_poll ? FM_fd() : -1, .events = POLLIN};
    uint64_t waits = 0, before = gos, for_nothing;
    while (gos < n) {
        if (!in_poll) {
            (void)FM_wait(-1);
            waits++;
        } else if (FM_extract(~0ul) == 0 && gos < n) {
            (void)poll(&p, 1, -1);
            waits++;
        }
    }
    for_nothing = waits > n - before ? waits - (n - before) : 0;
    return for_nothing;
}

static void go(void)
{
    for (unsigned long to = 1; to < ranks; to++)
        send(to, GO, "", 0);
}

static void idle(int in_poll)
{
    for (unsigned long to = 0; to < ranks; to++) /* all pairs are connected */
        send(to, HELLO, "", 0);
    while (hellos < ranks)
        (void)FM_wait(-1);
    if (me > 0) {
        uint64_t before = used_us();
        struct used used;
        (void)await_go(1, in_poll);
        used.us = used_us() - before;
        used.for_nothing = await_go(1 + TICKS, in_poll);
        send(0, USED, &used, sizeof used);
        return;
    }
    check_sleep_ms(IDLE_MS);
    go();
    for (int tick = 0; tick < TICKS; tick++) {
        check_sleep_ms(IDLE_MS / TICKS);
        go();
    }
    while (used_seen < ranks - 1)
        (void)FM_wait(-1);
    printf(
        "%s for %d ms: at most %.1f ms of processor time in each of %lu ranks; in %d waits, at most %llu for nothing\n",
        in_poll ? "poll on FM_fd" : "FM_wait", IDLE_MS, (double)most_used_us / 1e3, ranks - 1, TICKS,
        (unsigned long long)most_for_nothing);
    CHECK(most_used_us < MOST_IDLE_US);
    CHECK(most_for_nothing < 4 * TICKS);
}

/* ---- silence ---- */

static void wait_ms(uint64_t ms)
{
    uint64_t until = check_now_ns() + ms * 1000000, now;
    while ((now = check_now_ns()) < until)
        (void)FM_wait((long)((until - now + 999) / 1000));
}

static void silent(unsigned seconds)
{
    for (unsigned long to = 0; to < ranks; to++)
        send(to, HELLO, "", 0);
    while (hellos < ranks)
        (void)FM_wait(-1);
    wait_ms(SETTLE_MS); /* what was sent is acknowledged, for all */
    if (me == 0)
        printf("silence begins\n");
    fflush(stdout);
    uint64_t before = used_us();
    wait_ms(seconds * 1000ull);
    uint64_t us = used_us() - before;
    if (me == 0)
        printf("silence ends\n");
    printf("rank %lu: %.1f ms of processor time in %u s\n", me, (double)us / 1e3, seconds);
    CHECK(us < MOST_SILENT_US * seconds);
    fflush(stdout);
    wait_ms(SETTLE_MS); /* nobody leaves while packets are counted */
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    FM_initialize();
    me = check_rank = FM_nodeid;
    ranks = FM_numnodes;
    FM_register_handler(GO, on_go);
    FM_register_handler(USED, on_used);
    FM_register_handler(HELLO, on_hello);
    if (strcmp(mode, "wait") == 0 || strcmp(mode, "poll") == 0) {
        idle(mode[0] == 'p');
    } else if (strcmp(mode, "silent") == 0) {
        silent((unsigned)atoi(argc > 2 ? argv[2] : "1"));
    }
    FM_finalize();
    return 0;
}
