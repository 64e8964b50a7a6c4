/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs that hang, each for a reason of its own, and jobs that go on: what test_why.sh asks `runnel why` about. The
 * first argument says which; nobody but the script ends them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runnel/runnel.h"
#include "support/must.h"

enum { NOTE = 1, REST = 2, MISSING = 7, BYTES = 5000 };

static rnl_endpoint *ep;
static unsigned rank;

static int note(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
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

static void looks_now_and_then(void)
{
    for (;;)
        TEST_MUST(rnl_wait(ep, 10 * 1000 * 1000) == RNL_TIMED_OUT);
}

static const struct way {
    const char *name;
    void (*run)(void);
} ways[] = {
    {"stopped", is_stopped},       {"computes", computes}, {"outside", outside}, {"room", room},
    {"silent", wait_for_ever},     {"unsent", unsent},     {"polls", polls},     {"handler", handler},
    {"unfinished", unfinished},    {"cycle", cycle},       {"throws", throws},   {"streams", streams},
    {"timed", looks_now_and_then},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const struct rnl_options opt = {.size = sizeof opt, .flags = strcmp(name, "cycle") == 0 ? RNL_NO_RUN_IN_SEND : 0};
    TEST_MUST(rnl_open(&ep, &opt) == 0);
    rank = rnl_rank(ep);
    TEST_MUST(rnl_handler_stream(ep, NOTE, note, NULL) == NOTE);
    TEST_MUST(rnl_handler_stream(ep, REST, strcmp(name, "throws") == 0 ? answer : rest, NULL) == REST);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            ways[i].run();
    fprintf(stderr, "there is no way '%s'\n", name);
    return 2;
}
