/* SPDX-License-Identifier: BSD-3-Clause
 *
 * killed.c - a job whose last rank is killed in the midst of requests: am-killed FILE MICROSECONDS. The others ask it
 * without end, and each other, too. Rank 0 kills it after so long. It counts each request that it handles in FILE,
 * which outlives it. Then, of each request to it: it was handled at most once; who has an answer was handled; who has
 * neither answer nor its message back was handled; nothing comes twice; and what is sent from then on comes back
 * (AM_EUNREACHABLE). Those who live lose nothing. Run by test_killed.sh. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "am/rank_must.h"
#include "runnel/am.h"

enum { ASK = 1, ANSWER, TAKE, PID, DONE, AWAY = 64, SERIALS = 1 << 20, BYTES = 3000, AFTERWARDS = 100, RANKS_MAX = 8 };

static eb_t eb;
static ep_t ep;
static unsigned rank, size, victim;
static unsigned char *handled; /* by asker and serial: how often, in FILE */
static unsigned char answers[SERIALS], backs[SERIALS], data[BYTES];
static unsigned asked, settled, back, done, away_from[RANKS_MAX], answered_by[RANKS_MAX];
static pid_t prey;

static void ask(void *token, int32_t serial, int32_t from)
{
    if (rank == victim)
        handled[(size_t)from * SERIALS + (size_t)serial]++;
    MUST(AM_Reply2(token, ANSWER, serial, (int32_t)rank) == AM_OK);
}

static void take(void *token, void *buf, size_t n, int32_t serial, int32_t from)
{
    MUST(n == BYTES && memcmp(buf, data, n) == 0);
    ask(token, serial, from);
}

static void answer(void *token, int32_t serial, int32_t by)
{
    (void)token;
    answered_by[by]++;
    if ((unsigned)by == victim) {
        MUST(answers[serial]++ == 0 && backs[serial] == 0);
        settled++;
    }
}

static void pid_of(void *token, int32_t pid)
{
    (void)token;
    prey = pid;
}

static void is_done(void *token)
{
    (void)token;
    done++;
}

static void returned(int status, op_t opcode, void *token)
{
    struct rnl_am_token_info info;
    en_t name;
    MUST(AM_GetTokenInfo(token, &info) == AM_OK && AM_GetSourceEndpoint(token, &name) == AM_OK);
    MUST(status == AM_EUNREACHABLE && name.rank == victim);
    if (opcode > AM_REQUEST_XFER_M)
        return;
    MUST(info.index == (int)victim && backs[info.args[0]]++ == 0 && answers[info.args[0]] == 0);
    back++;
    settled++;
}

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int is_dead(void)
{
    struct rnl_peer_info info;
    MUST(rnl_peer(AM_GetRank(eb), victim, &info) == 0);
    return info.state == RNL_PEER_DEAD;
}

static void ask_victim(void)
{
    int32_t serial = (int32_t)asked++;
    MUST(asked < SERIALS);
    if (serial % 4)
        MUST(AM_Request2(ep, (int)victim, ASK, serial, (int32_t)rank) == AM_OK);
    else
        MUST(AM_RequestI2(ep, (int)victim, TAKE, data, BYTES, serial, (int32_t)rank) == AM_OK);
}

static void survive(uint64_t when_us)
{
    uint64_t end = 0, give_up = now_us() + 30000000;
    unsigned afterwards = 0;
    while (afterwards < AFTERWARDS) {
        if (rank == 0 && prey && end == 0)
            end = now_us() + when_us;
        if (rank == 0 && prey && now_us() >= end) {
            MUST(kill(prey, SIGKILL) == 0);
            prey = 0;
            end = UINT64_MAX;
        }
        int dead = is_dead();
        if (dead) {
            afterwards++;
            ask_victim();
        } else if (asked - settled < AWAY) {
            ask_victim();
        }
        for (unsigned i = 0; i < victim; i++) {
            if (i != rank && away_from[i] - answered_by[i] < 4) {
                away_from[i]++;
                MUST(AM_Request2(ep, (int)i, ASK, 0, (int32_t)rank) == AM_OK);
            }
        }
        MUST(AM_Poll(eb) == AM_OK);
        MUST(now_us() < give_up);
    }
    for (unsigned i = 0; i < victim; i++)
        while (i != rank && answered_by[i] < away_from[i] && now_us() < give_up)
            MUST(AM_Poll(eb) == AM_OK);
    for (unsigned i = 0; i < victim; i++) {
        MUST(i == rank || answered_by[i] == away_from[i]);
        if (i != rank)
            MUST(AM_Request0(ep, (int)i, DONE) == AM_OK);
    }
    while (done < victim - 1 && now_us() < give_up)
        MUST(AM_Poll(eb) == AM_OK);
    unsigned lost = 0;
    for (unsigned i = 0; i < asked; i++) {
        unsigned times = handled[(size_t)rank * SERIALS + i];
        MUST(times <= 1);
        MUST(!answers[i] || times == 1);
        MUST(answers[i] || backs[i] || times == 1);
        lost += !answers[i] && !backs[i];
    }
    for (unsigned i = asked - AFTERWARDS; i < asked; i++)
        MUST(backs[i] == 1);
    printf("rank %u: right, %u asked, %u back, %u answers lost\n", rank, asked, back, lost);
}

int main(int argc, char **argv)
{
    en_t name;
    for (unsigned i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i * 13);
    MUST(AM_Init() == AM_OK && AM_AllocateBundle(AM_SEQ, &eb) == AM_OK);
    rank = rnl_rank(AM_GetRank(eb));
    size = rnl_size(AM_GetRank(eb));
    victim = size - 1;
    MUST(argc == 3 && size >= 3 && size <= RANKS_MAX);
    int fd = open(argv[1], O_RDWR | O_CLOEXEC);
    MUST(fd >= 0 && ftruncate(fd, (off_t)size * SERIALS) == 0);
    handled = mmap(NULL, (size_t)size * SERIALS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(handled != MAP_FAILED);
    MUST(AM_AllocateEndpoint(eb, &ep, &name) == AM_OK && AM_SetTag(ep, AM_ALL) == AM_OK);
    MUST(AM_SetHandler(ep, 0, returned) == AM_OK && AM_SetHandler(ep, ASK, ask) == AM_OK);
    MUST(AM_SetHandler(ep, ANSWER, answer) == AM_OK && AM_SetHandler(ep, TAKE, take) == AM_OK);
    MUST(AM_SetHandler(ep, PID, pid_of) == AM_OK && AM_SetHandler(ep, DONE, is_done) == AM_OK);
    for (unsigned i = 0; i < size; i++)
        MUST(AM_Map(ep, (int)i, AM_NameOf(i, 0), AM_ALL) == AM_OK);
    if (rank == victim) {
        MUST(AM_Request1(ep, 0, PID, (int32_t)getpid()) == AM_OK);
        for (;;)
            MUST(AM_Poll(eb) == AM_OK);
    }
    survive((uint64_t)atoi(argv[2]));
    MUST(AM_Terminate() == AM_OK);
    return 0;
}
