/* SPDX-License-Identifier: BSD-3-Clause
 *
 * common.c - see common.h. */
#include "common.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(sizeof(struct rnl_hist) >= 2 * PEER_BOARD, "the histogram has room for both boards");

struct peer_args peer_start(int argc, char **argv)
{
    struct peer_args a = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the launcher may be killed before it can end its processes */
    if (argc != 5) {
        fprintf(stderr, "usage: %s AREA PAIR WAY RANK; it is for runnel bench itself\n", argv[0]);
        exit(2);
    }
    a.pair = (unsigned)atoi(argv[2]);
    a.way = argv[3];
    a.rank = (unsigned)atoi(argv[4]) % 2;
    int e = a.pair < BENCH_MAX_PAIRS ? bench_area_attach(argv[1], &a.area) : -1;
    if (e) {
        fprintf(stderr, "cannot share memory with runnel bench through %s: %s\n", argv[1], strerror(-e));
        exit(1);
    }
    bench_pin(
        a.area->cpu[a.rank]); /* a launcher's rank may turn out to be the other one: bench_process_run pins again */
    return a;
}

unsigned char *peer_board(const struct bench_process *s, unsigned rank)
{
    return (unsigned char *)&s->pair->hist + (size_t)PEER_BOARD * rank;
}

void peer_meet(struct bench_process *s)
{
    bench_meet(s->pair, &s->meet_count, s->one_core);
}

int peer_settle(struct bench_process *s, int (*progress)(struct bench_process *))
{
    s->meet_count += 2;
    /* as bench_meet */
    atomic_fetch_add_explicit(&s->pair->meet, 1, memory_order_acq_rel);
    while (atomic_load_explicit(&s->pair->meet, memory_order_acquire) < s->meet_count) {
        int e = progress(s);
        if (e)
            return e;
        bench_relax(s);
    }
    return 0;
}

bool peer_may_read(struct bench_process *s)
{
    struct {
        long pid;
        void *at;
        int verdict;
    } word = {getpid(), &word, 0}, other;
    char byte;
    memcpy(peer_board(s, s->rank), &word, sizeof word);
    peer_meet(s);
    if (s->rank == 1) {
        memcpy(&other, peer_board(s, 0), sizeof other);
        struct iovec to = {&byte, 1}, from = {other.at, 1};
        word.verdict = process_vm_readv((pid_t)other.pid, &to, 1, &from, 1, 0) == 1;
        memcpy(peer_board(s, 1), &word, sizeof word);
    }
    peer_meet(s);
    memcpy(&other, peer_board(s, 1), sizeof other);
    peer_meet(s);
    return other.verdict;
}

void peer_about(struct bench_process *s, const char *format, ...)
{
    if (s->rank != 0)
        return;
    va_list ap;
    va_start(ap, format);
    vsnprintf(s->pair->about, sizeof s->pair->about, format, ap);
    va_end(ap);
}
