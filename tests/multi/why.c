/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs that hang, each for a reason of its own, and jobs that go on: what test_why.sh asks `runnel why` about. The
 * first argument says which; nobody but the script ends them. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runnel/runnel.h"
#include "support/must.h"

enum { NOTE = 1, REST = 2, PAUSES = 3, LOOPS = 4, MISSING = 7, BYTES = 5000, RANKS = 3, NAP_US = 20000 };

static rnl_endpoint *ep;
static unsigned rank, notes;
static volatile bool over; /* never */

static int note(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
    notes++;
    return RNL_DONE;
}

static int pauses(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
    while (!over)
        pause();
    return RNL_DONE;
}

static int loops(rnl_stream *s, unsigned peer, void *ctx)
{
    static volatile unsigned n;
    (void)s, (void)peer, (void)ctx;
    while (!over)
        n++;
    return RNL_DONE;
}

static int answer(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)ctx;
    TEST_MUST(rnl_send(ep, peer, NOTE, "ball", 4) <= 0);
    return RNL_DONE;
}

static int rest(rnl_stream *s, unsigned peer, void *ctx)
{
    char buf[BYTES];
    (void)peer, (void)ctx;
    TEST_MUST(rnl_receive(s, buf, sizeof buf) == 0);
    return RNL_DONE;
}

static void wait_for_ever(void)
{
    for (;;)
        TEST_MUST(rnl_wait(ep, -1) >= 0);
}

static void close_it(void)
{
    TEST_MUST(rnl_close(ep) == 0);
    exit(0);
}

static void flood(unsigned peer)
{
    for (;;)
        TEST_MUST(rnl_send(ep, peer, NOTE, "12345678", 8) == 0);
}

static void is_stopped(void)
{
    if (rank == 1)
        raise(SIGSTOP);
    close_it();
}

static void computes(void)
{
    static volatile unsigned n;
    while (rank == 1)
        n++;
    close_it();
}

static void outside(void)
{
    while (rank == 1)
        pause();
    close_it();
}

static void room(void)
{
    while (rank == 1)
        pause();
    if (rank == 0)
        flood(1);
    wait_for_ever();
}

static void unsent(void)
{
    if (rank == 1)
        wait_for_ever();
    close_it();
}

static void polls(void)
{
    for (;;)
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
}

static void handler(void)
{
    if (rank == 0)
        TEST_MUST(rnl_send(ep, 1, MISSING, "x", 1) == 0);
    wait_for_ever();
}

static void unfinished(void)
{
    const struct rnl_message b = {.peer = 1, .handler = REST, .bound = BYTES};
    rnl_stream *s;
    if (rank == 0) {
        TEST_MUST(rnl_begin(ep, &b, &s) == 0 && rnl_piece(s, "12345678", 8) == 0);
        TEST_MUST(rnl_flush(ep) == 0);
    }
    wait_for_ever();
}

static void cycle(void)
{
    if (rank < 2)
        flood(1 - rank);
    wait_for_ever();
}

static void throws(void)
{
    if (rank < 2)
        TEST_MUST(rnl_send(ep, 1 - rank, REST, "ball", 4) == 0);
    for (;;)
        if (rank == 2)
            (void)!rnl_wait(ep, -1);
        else if (rnl_wait(ep, -1) >= 0)
            TEST_MUST(rnl_send(ep, 1 - rank, NOTE, "ball", 4) == 0);
}

static void streams(void)
{
    if (rank == 0)
        flood(1);
    wait_for_ever();
}

/* ---- more that hang ---- */

static void two_stopped(void)
{
    if (rank > 0)
        raise(SIGSTOP);
    close_it();
}

static void stopped_room(void)
{
    if (rank == 1)
        raise(SIGSTOP);
    if (rank == 0)
        flood(1);
    wait_for_ever();
}

static void stopped_sender(void)
{
    if (rank == 1)
        raise(SIGSTOP);
    wait_for_ever();
}

static void reads(void)
{
    int ends[2];
    char byte;
    if (rank == 1)
        TEST_MUST(pipe(ends) == 0 && read(ends[0], &byte, 1) == 1);
    close_it();
}

static void locks(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (rank == 1) {
        pthread_mutex_lock(&lock);
        pthread_mutex_lock(&lock);
    }
    close_it();
}

static void sender_outside(void)
{
    while (rank == 0)
        pause();
    wait_for_ever();
}

static void two_rooms(void)
{
    while (rank == 1)
        pause();
    flood(1);
}

static void cycle_of_three(void)
{
    flood((rank + 1) % RANKS);
}

static void closes_early(void)
{
    if (rank == 0)
        close_it();
    polls();
}

static void two_unsent(void)
{
    if (rank == 2)
        close_it();
    wait_for_ever();
}

static void handler_of_two(void)
{
    if (rank < 2)
        TEST_MUST(rnl_send(ep, 2, MISSING, "x", 1) == 0);
    wait_for_ever();
}

static void begins_only(unsigned from, unsigned to)
{
    const struct rnl_message b = {.peer = to, .handler = REST, .bound = BYTES};
    rnl_stream *s;
    if (rank == from) {
        TEST_MUST(rnl_begin(ep, &b, &s) == 0 && rnl_piece(s, "12345678", 8) == 0);
        TEST_MUST(rnl_flush(ep) == 0);
    }
}

static void unfinished_and_polls(void)
{
    begins_only(2, 0);
    polls();
}

static void two_unfinished(void)
{
    begins_only(0, 1);
    begins_only(0, 2);
    wait_for_ever();
}

static void handler_pauses(void)
{
    if (rank == 0)
        TEST_MUST(rnl_send(ep, 1, PAUSES, "x", 1) == 0);
    wait_for_ever();
}

static void handler_loops(void)
{
    if (rank == 0)
        TEST_MUST(rnl_send(ep, 2, LOOPS, "x", 1) == 0);
    close_it();
}

/* ---- more that go on ---- */

static void send_on(void)
{
    TEST_MUST(rnl_send(ep, (rank + 1) % RANKS, NOTE, "12345678", 8) == 0);
}

static void ring(void)
{
    if (rank == 0)
        send_on();
    for (;;)
        for (TEST_MUST(rnl_wait(ep, -1) >= 0); notes > 0; notes--)
            send_on();
}

static void fan(void)
{
    if (rank > 0)
        flood(0);
    wait_for_ever();
}

static void naps(void)
{
    for (;; usleep(NAP_US)) {
        send_on();
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
    }
}

static void works(void)
{
    static volatile unsigned n;
    for (;;) {
        for (unsigned i = 0; i < 5 * 1000 * 1000; i++)
            n++;
        send_on();
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
    }
}

/* One handler after another waits for pieces that come late. */
static void pieces(void)
{
    static const char part[BYTES / 10];
    const struct rnl_message b = {.peer = 1, .handler = REST, .bound = BYTES};
    rnl_stream *s;
    while (rank == 0) {
        TEST_MUST(rnl_begin(ep, &b, &s) == 0);
        for (int i = 0; i < 10; i++, usleep(NAP_US / 4))
            TEST_MUST(rnl_piece(s, part, sizeof part) == 0 && rnl_flush(ep) == 0);
        TEST_MUST(rnl_end(s) == 0);
    }
    wait_for_ever();
}

static void long_ones(void)
{
    static const char all[BYTES];
    const struct rnl_message b = {.peer = 1, .handler = REST, .bound = BYTES};
    rnl_stream *s;
    while (rank == 0)
        TEST_MUST(rnl_begin(ep, &b, &s) == 0 && rnl_piece(s, all, sizeof all) == 0 && rnl_end(s) == 0);
    wait_for_ever();
}

static void polls_and_sends(void)
{
    for (unsigned i = 0;; i++) {
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
        if (i % 1000 == 0)
            send_on();
    }
}

static void each_to_each(void)
{
    for (;;) {
        for (unsigned to = 0; to < RANKS; to++)
            if (to != rank)
                TEST_MUST(rnl_send(ep, to, NOTE, "12345678", 8) == 0);
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
    }
}

static void timed_sends(void)
{
    for (;;) {
        (void)!rnl_wait(ep, 5 * 1000 * 1000);
        send_on();
        usleep(NAP_US);
    }
}

/* Between hosts a message may stay until its sender calls in again, so it does. */
static void one_works(void)
{
    while (rank == 0) {
        send_on();
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
        usleep(NAP_US);
    }
    wait_for_ever();
}

static void looks_now_and_then(void)
{
    for (;;)
        TEST_MUST(rnl_wait(ep, 10 * 1000 * 1000) == RNL_TIMED_OUT);
}

static const struct way {
    const char *name;
    void (*run)(void);
} ways[] = {
    {"stopped", is_stopped},
    {"computes", computes},
    {"outside", outside},
    {"room", room},
    {"silent", wait_for_ever},
    {"unsent", unsent},
    {"polls", polls},
    {"handler", handler},
    {"unfinished", unfinished},
    {"cycle", cycle},
    {"throws", throws},
    {"streams", streams},
    {"timed", looks_now_and_then},
    {"two_stopped", two_stopped},
    {"stopped_room", stopped_room},
    {"stopped_sender", stopped_sender},
    {"reads", reads},
    {"locks", locks},
    {"sender_outside", sender_outside},
    {"two_rooms", two_rooms},
    {"cycle_of_three", cycle_of_three},
    {"closes_early", closes_early},
    {"two_unsent", two_unsent},
    {"handler_of_two", handler_of_two},
    {"unfinished_and_polls", unfinished_and_polls},
    {"two_unfinished", two_unfinished},
    {"handler_pauses", handler_pauses},
    {"handler_loops", handler_loops},
    {"ring", ring},
    {"fan", fan},
    {"naps", naps},
    {"works", works},
    {"pieces", pieces},
    {"long_ones", long_ones},
    {"polls_and_sends", polls_and_sends},
    {"each_to_each", each_to_each},
    {"timed_sends", timed_sends},
    {"one_works", one_works},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const struct rnl_options opt = {.size = sizeof opt,
                                    .flags = strncmp(name, "cycle", 5) == 0 ? RNL_NO_RUN_IN_SEND : 0};
    TEST_MUST(rnl_open(&ep, &opt) == 0);
    rank = rnl_rank(ep);
    TEST_MUST(rnl_handler_stream(ep, NOTE, note, NULL) == NOTE);
    TEST_MUST(rnl_handler_stream(ep, PAUSES, pauses, NULL) == PAUSES);
    TEST_MUST(rnl_handler_stream(ep, LOOPS, loops, NULL) == LOOPS);
    TEST_MUST(rnl_handler_stream(ep, REST, strcmp(name, "throws") == 0 ? answer : rest, NULL) == REST);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            ways[i].run();
    fprintf(stderr, "there is no way '%s'\n", name);
    return 2;
}
