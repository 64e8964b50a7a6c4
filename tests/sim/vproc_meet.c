/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_meet.c - processes of the virtual cluster that nobody started together: each opens an endpoint alone, and the
 * daemons of the virtual hosts introduce them.
 *
 *     runnel sim --hosts H [--keep-going --scenario FILE] vproc-meet.so RANKS [VISITS [SERVICE]]
 *
 * A process that was not launched knows no rank: here the pid says it. Rank 0 serves "counter", on host 0, offers a
 * window, and echoes what is said to it. Each other rank comes VISITS times: it reaches the service, asks for an echo,
 * imports the window, adds 1 to its own word there, reads what it has put, and leaves. Whom the server finds gone it
 * counts. A visitor whose visit fails says why, and comes again; it ends when all its visits are made. The server ends
 * when all have said goodbye and are gone. The simulator's limit bounds all waits. */
#include <runnel/meet.h>
#include <runnel/window.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAY = 1, ECHO, BYE, WINDOW = 7, WORDS = 512, RETRY_NS = 50000000, FIRST_PID = 1000 };
static rnl_endpoint *ep;
static unsigned byes, gone, left, requests, notified;
static char echo[64];

static int on_say(const void *data, size_t n, unsigned peer, void *ctx)
{
    (void)ctx;
    (void)!rnl_send(ep, peer, ECHO, data, n);
    return RNL_DONE;
}

static int on_echo(const void *data, size_t n, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    memcpy(echo, data, n < sizeof echo ? n : sizeof echo - 1);
    return RNL_DONE;
}

static int on_bye(const void *data, size_t n, unsigned peer, void *ctx)
{
    (void)data, (void)n, (void)ctx;
    (void)!rnl_send(ep, peer, ECHO, "bye", 4);
    byes++;
    return RNL_DONE;
}

static int on_request(void *ctx, unsigned peer, const struct rnl_cred *cred)
{
    (void)ctx, (void)peer;
    requests += cred->pid >= 0;
    return 0;
}

static void on_death(void *ctx, unsigned peer, enum rnl_death_reason why)
{
    (void)ctx;
    *(why == RNL_DEATH_LEFT ? &left : &gone) += 1;
    (void)rnl_leave(ep, peer);
}

static void on_put(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    (void)ctx, (void)w, (void)peer, (void)offset;
    notified += n == 8;
}

static int fail(const char *what)
{
    printf("%s: %s\n", what, rnl_last_error()->text);
    return 1;
}

static int serve(unsigned visitors, unsigned visits)
{
    uint64_t *words, sum = 0;
    void *at;
    rnl_window *w;
    const struct rnl_admit anyone = {.flags = RNL_ADMIT_ANYONE};
    const struct rnl_offer offer = {.size = sizeof offer, .id = WINDOW, .who = &anyone, .notify = on_put};
    rnl_on_death(ep, on_death, NULL);
    if (rnl_window_alloc(ep, WORDS * sizeof *words, &at, &w) < 0 || rnl_window_offer(w, &offer) < 0 ||
        rnl_serve(ep, "counter", NULL, on_request, NULL) < 0)
        return fail("cannot serve");
    words = at;
    while (byes < visitors || left + gone < requests)
        if (rnl_wait(ep, RETRY_NS) < 0 && rnl_last_error()->status != RNL_TIMED_OUT)
            return fail("cannot wait");
    for (unsigned i = 0; i < WORDS / 2; i++)
        sum += words[i];
    printf("server: %s, %s\n", sum >= (uint64_t)visitors * visits ? "all visits" : "visits are missing",
           notified >= visitors * visits && requests >= visitors * visits ? "all told" : "some not told");
    return sum >= (uint64_t)visitors * visits && notified >= visitors * visits ? 0 : 1;
}

/* Returns 0, or a status. */
static int visit(const char *service, unsigned rank, int is_last)
{
    unsigned peer;
    rnl_import *m = NULL;
    struct rnl_cred cred;
    size_t bytes;
    char text[32];
    uint64_t value = rank, back = 0, before;
    int status = rnl_reach(ep, service, 20000000000, &peer);
    if (status < 0)
        return status;
    snprintf(text, sizeof text, "rank %u", rank);
    echo[0] = '\0';
    status = rnl_peer_cred(ep, peer, &cred);
    if (status == 0)
        status = rnl_send(ep, peer, SAY, text, strlen(text) + 1);
    if (status == 0)
        status = rnl_window_import(ep, peer, WINDOW, 20000000000, &m, &bytes);
    if (status == 0)
        status = rnl_put_any(m, (WORDS / 2 + rank) * sizeof value, &value, sizeof value, RNL_PUT_NOTIFY);
    if (status == 0)
        status = rnl_get(m, (WORDS / 2 + rank) * sizeof value, &back, sizeof back);
    if (status == 0 && back != value)
        status = RNL_ERR_PEER_BROKEN;
    if (status == 0)
        status = rnl_atomic_any(m, rank * sizeof value, 8, RNL_ATOMIC_ADD, 1, 0, &before);
    while (status == 0 && echo[0] == '\0')
        status = (int)rnl_wait(ep, 20000000000) < 0 ? rnl_last_error()->status : 0;
    if (status == 0 && strcmp(echo, text) != 0)
        status = RNL_ERR_PEER_BROKEN;
    (void)rnl_import_drop(m);
    echo[0] = '\0';
    if (status == 0 && is_last)
        status = rnl_send(ep, peer, BYE, NULL, 0);
    while (status == 0 && is_last && echo[0] == '\0')
        status = (int)rnl_wait(ep, 20000000000) < 0 ? rnl_last_error()->status : 0;
    (void)rnl_leave(ep, peer);
    return status;
}

int main(int argc, char **argv)
{
    const struct rnl_options alone = {.size = sizeof alone, .flags = RNL_ALONE};
    const unsigned ranks = argc > 1 ? (unsigned)atoi(argv[1]) : 2, visits = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    const unsigned rank = ((unsigned)getpid() - FIRST_PID) % ranks;
    int status = 0;
    if (rnl_open(&ep, &alone) < 0 || rnl_handler_whole(ep, SAY, on_say, NULL, 0) < 0 ||
        rnl_handler_whole(ep, ECHO, on_echo, NULL, 0) < 0 || rnl_handler_whole(ep, BYE, on_bye, NULL, 0) < 0)
        return fail("open");
    if (rank == 0)
        status = serve(ranks - 1, visits);
    else
        usleep(RETRY_NS / 1000); /* until the service is offered: a host without a daemon is given up at once */
    for (unsigned done = 0; rank != 0 && done < visits;) {
        const int e = visit(argc > 3 ? argv[3] : "counter@host0", rank, done + 1 == visits);
        done += e == 0;
        if (e < 0) {
            printf("rank %u: %s\n", rank, rnl_last_error()->text);
            usleep(RETRY_NS / 1000);
        }
    }
    if (rank != 0)
        printf("rank %u: %u visits\n", rank, visits);
    return rnl_close(ep) < 0 ? fail("close") : status;
}
