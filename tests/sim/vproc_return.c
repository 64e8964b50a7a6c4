/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_return.c - ranks that take back who died and was started again. Each sends `MESSAGES` numbered messages to each
 * process of each other rank, and has to get as many from each that lives at the end: in order, from 0 on, and nothing
 * of a process that is no more once one that followed it was heard.
 *
 *     runnel sim --keep-going --scenario FILE vproc-return.so MILLISECONDS
 *
 * It goes on for so long at least: the scenario's crashes and returns have to be over by then. */
#include <runnel/runnel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGES = 20, RANKS_MAX = 64, LONG = 3000 };

struct message {
    uint64_t from, serial;
    unsigned char filler[LONG];
};

static struct peer {
    uint64_t from;   /* the process that was heard last */
    unsigned got;    /* of its messages */
    unsigned sent;   /* to the one that is there */
    unsigned deaths; /* that were told */
    unsigned returns;
    int dead;  /* that was told, and it has not been taken back */
    int fresh; /* ... it has, and nothing was heard of it */
} peer[RANKS_MAX];
static rnl_endpoint *ep;
static unsigned wrong;

static void is_wrong(const char *what, unsigned rank, uint64_t a, uint64_t b)
{
    wrong++;
    printf("rank %u: WRONG: %s of rank %u: %llu, %llu\n", rnl_rank(ep), what, rank, (unsigned long long)a,
           (unsigned long long)b);
}

static size_t bytes_of(uint64_t serial)
{
    static const size_t lengths[] = {16, 40, 200, 16 + LONG};
    return lengths[serial % 4];
}

static int came(const void *buf, size_t n, unsigned rank, void *ctx)
{
    struct message m;
    struct peer *p = &peer[rank];
    (void)ctx;
    memcpy(&m, buf, n < sizeof m ? n : sizeof m);
    if (n < 16 || n != bytes_of(m.serial)) {
        is_wrong("length", rank, n, 0);
        return RNL_DONE;
    }
    if (m.from < p->from)
        is_wrong("a message of a process that is no more", rank, m.from, p->from);
    if (m.serial == 0 && (m.from != p->from || p->fresh)) {
        p->from = m.from;
        p->got = 0;
        p->fresh = 0;
    }
    if (m.from != p->from || m.serial != p->got)
        is_wrong("number of a message", rank, m.serial, p->got);
    for (size_t i = 0; i < n - 16; i++)
        if (m.filler[i] != (unsigned char)(m.serial + i)) {
            is_wrong("a byte", rank, i, m.filler[i]);
            break;
        }
    p->got++;
    return RNL_DONE;
}

static struct rnl_peer_info about(unsigned rank)
{
    struct rnl_peer_info info;
    if (rnl_peer(ep, rank, &info) < 0) {
        is_wrong("no news", rank, 0, 0);
        exit(1);
    }
    return info;
}

static void died(void *arg, unsigned rank, enum rnl_death_reason reason)
{
    struct peer *p = &peer[rank];
    (void)arg;
    p->deaths++;
    if (p->dead)
        is_wrong("told twice that it died", rank, reason, 0);
    p->dead = 1;
}

static int is_dead(unsigned rank)
{
    enum rnl_peer_state state = about(rank).state;
    return state == RNL_PEER_DEAD || state == RNL_PEER_RETURNED;
}

static void take_back(unsigned rank)
{
    struct peer *p = &peer[rank];
    int status = rnl_readmit(ep, rank);
    if (status == 0 && !p->dead) {
        is_wrong("taken back before its death was told", rank, 0, 0);
    } else if (status == 0) {
        p->dead = 0;
        p->fresh = 1;
        p->sent = p->got = 0;
        p->returns++;
    } else if (status != RNL_BUSY && status != RNL_ERR_PEER_DEAD) {
        is_wrong(rnl_last_error()->text, rank, 0, 0);
    }
}

static void send_next(unsigned rank)
{
    struct peer *p = &peer[rank];
    struct message m = {about(rnl_rank(ep)).incarnation, p->sent, {0}};
    const struct rnl_message b = {.peer = rank, .handler = 1, .bound = bytes_of(m.serial)};
    for (size_t i = 0; i < sizeof m.filler; i++)
        m.filler[i] = (unsigned char)(m.serial + i);
    rnl_stream *s;
    int status = rnl_begin(ep, &b, &s);
    if (status == 0) {
        status = rnl_piece(s, &m, b.bound);
        int ended = rnl_end(s);
        status = status < 0 ? status : ended;
    }
    if (status == 0 && !is_dead(rank))
        p->sent++;
    else if (status < 0 && status != RNL_ERR_PEER_DEAD)
        is_wrong(rnl_last_error()->text, rank, (uint64_t)-status, 0);
}

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
    uint64_t end = now_us() + (argc > 1 ? (uint64_t)atoi(argv[1]) : 10) * 1000;
    const struct rnl_options opt = {.size = sizeof(struct rnl_options), .flags = RNL_RESTARTED};
    unsigned missing = 1;
    if (rnl_open(&ep, &opt) < 0 || rnl_handler_whole(ep, 1, came, NULL, 0) < 0) {
        printf("WRONG: %s\n", rnl_last_error()->text);
        return 1;
    }
    unsigned self = rnl_rank(ep), size = rnl_size(ep);
    rnl_on_death(ep, died, NULL);
    while ((missing || now_us() < end) && wrong == 0) {
        missing = 0;
        for (unsigned i = 0; i < size; i++) {
            if (i == self)
                continue;
            if (is_dead(i))
                take_back(i);
            else if (peer[i].sent < MESSAGES)
                send_next(i);
            missing += peer[i].sent < MESSAGES || peer[i].got < MESSAGES;
        }
        int64_t status = rnl_wait(ep, missing ? 500000 : 5000000);
        if (status < 0 && status != RNL_TIMED_OUT)
            is_wrong(rnl_last_error()->text, self, 0, 0);
    }
    unsigned deaths = 0, returns = 0;
    for (unsigned i = 0; i < size; i++) {
        deaths += peer[i].deaths;
        returns += peer[i].returns;
    }
    if (rnl_close(ep) < 0)
        printf("WRONG: %s\n", rnl_last_error()->text);
    else if (wrong == 0)
        printf("rank %u: right, %u deaths, %u returns\n", self, deaths, returns);
    return wrong != 0;
}
