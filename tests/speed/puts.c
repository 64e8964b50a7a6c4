/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What puts, notifications and atomics cost between two processes of this host, beside the bare machine in the same
 * rounds: a line that both write, and the copies that a put could have chosen. Prints figures; times never fail it.
 * Arguments: rounds. */
#include "base/copy.h"
#include "runnel/window.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/must.h"

enum { AREA = 2 << 20, ID = 1, HELLO = 1, MOST_ROUNDS = 1000 };
#define BOUND_NS ((int64_t)30 * 1000 * 1000 * 1000)

enum way { RAW_CACHED, RAW_REP, RAW_PAST, PUT, WAYS };
static const char *const way_name[] = {"memcpy", "rep movsb", "past caches", "rnl_put"};

struct side {
    int me;
    rnl_endpoint *ep;
    unsigned peer;
    unsigned char *own, *its,
        *raw[2]; /* the own window, the peer's as it is mapped, bare memory that each side reads */
    rnl_import *m;
    unsigned char *from, *to; /* private */
    unsigned notes, words;
};

static void on_note(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    struct side *s = ctx;
    (void)w, (void)peer, (void)offset, (void)n;
    s->notes++;
}

static int on_word(rnl_stream *in, unsigned peer, void *ctx)
{
    struct side *s = ctx;
    uint64_t word;
    (void)peer;
    s->words++;
    return rnl_receive(in, &word, sizeof word);
}

/* One way of n bytes, whose last word is `turn`, into memory of the other side. */
static void give(struct side *s, enum way way, size_t n, uint64_t turn)
{
    unsigned char *at = s->raw[!s->me];
    memcpy(s->from + n - 8, &turn, 8);
    if (way == PUT) {
        TEST_MUST(rnl_put(s->m, 0, s->from, n, 0) == 0);
        return;
    }
    const size_t first = n - 8;
    if (way == RAW_CACHED)
        memcpy(at, s->from, first);
    else
        rnl_copy_put(at, s->from, first, way == RAW_PAST);
    __atomic_store_n((uint64_t *)(void *)(at + first), turn, __ATOMIC_RELEASE); /* pairs with take */
}

static void take(struct side *s, enum way way, size_t n, uint64_t turn, int use)
{
    unsigned char *at = way == PUT ? s->own : s->raw[s->me];
    uint64_t end = 0, polls = 0;
    while (__atomic_load_n((uint64_t *)(void *)(at + n - 8), __ATOMIC_ACQUIRE) != turn) {
        __builtin_ia32_pause();
        if (++polls % 1000000 == 0) {
            end = end ? end : test_now_ns() + (uint64_t)BOUND_NS;
            TEST_MUST(test_now_ns() < end);
            sched_yield();
        }
    }
    if (use)
        memcpy(s->to, at, n);
}

static uint64_t turns = 1;

/* Returns ns of one way. */
static double ping(struct side *s, enum way way, size_t n, int use, unsigned count)
{
    uint64_t begin = test_now_ns();
    for (unsigned i = 0; i < count; i++, turns++) {
        if (s->me == 0)
            give(s, way, n, turns);
        take(s, way, n, turns, use);
        if (s->me == 1)
            give(s, way, n, turns);
    }
    return (double)(test_now_ns() - begin) / count / 2;
}

static double ping_notes(struct side *s, int notify, unsigned count)
{
    uint64_t word = 1, begin = test_now_ns();
    for (unsigned i = 0; i < count; i++) {
        const unsigned *seen = notify ? &s->notes : &s->words;
        unsigned before = *seen;
        for (int half = 0; half < 2; half++) {
            if (half != s->me)
                while (*seen == before)
                    TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
            else if (notify)
                TEST_MUST(rnl_put(s->m, 64, &word, 8, RNL_PUT_NOTIFY) == 0);
            else
                TEST_MUST(rnl_send(s->ep, s->peer, HELLO, &word, 8) == 0);
        }
    }
    return (double)(test_now_ns() - begin) / count / 2;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
    qsort(v, n, sizeof *v, by_size);
    return v[n / 2];
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void sizes(struct side *s, unsigned rounds)
{
    static const size_t size[] = {8, 4096, 65536, 1 << 20};
    static const unsigned count[] = {2000, 400, 40, 4};
    double v[WAYS][2][MOST_ROUNDS];
    for (unsigned k = 0; k < 4; k++) {
        for (unsigned r = 0; r < rounds; r++)
            for (int use = 0; use < 2; use++)
                for (enum way w = 0; w < WAYS; w++)
                    v[w][use][r] = ping(s, w, size[k], use, count[k]);
        for (enum way w = 0; s->me == 0 && w < WAYS; w++) {
            double landed = median(v[w][0], rounds), used = median(v[w][1], rounds);
            printf("# %7zu bytes, %-11s landed %9.1f ns, used %9.1f ns\n", size[k], way_name[w], landed, used);
        }
    }
}

static void notes(struct side *s, unsigned rounds)
{
    double v[2][MOST_ROUNDS];
    for (unsigned r = 0; r < rounds; r++)
        for (int notify = 0; notify < 2; notify++)
            v[notify][r] = ping_notes(s, notify, 1000);
    if (s->me == 0)
        printf("# message of 8 bytes %.1f ns, put of 8 bytes with notification %.1f ns\n", median(v[0], rounds),
               median(v[1], rounds));
}

static void atomics(struct side *s, unsigned rounds)
{
    double v[2][MOST_ROUNDS];
    uint64_t was;
    for (unsigned r = 0; s->me == 0 && r < rounds; r++) {
        uint64_t begin = test_now_ns();
        for (unsigned i = 0; i < 10000; i++)
            __atomic_fetch_add((uint64_t *)(void *)(s->its + 128), 1, __ATOMIC_SEQ_CST);
        uint64_t middle = test_now_ns();
        for (unsigned i = 0; i < 10000; i++)
            TEST_MUST(rnl_fetch_add(s->m, 128, 1, &was) == 0);
        v[0][r] = (double)(middle - begin) / 10000;
        v[1][r] = (double)(test_now_ns() - middle) / 10000;
    }
    if (s->me == 0)
        printf("# atomic add to that line %.1f ns, rnl_fetch_add %.1f ns\n", median(v[0], rounds),
               median(v[1], rounds));
}

static void body(struct side *s, unsigned rounds)
{
    const struct rnl_offer o = {.size = sizeof o, .id = ID, .notify = on_note, .ctx = s};
    rnl_window *w;
    void *at;
    pin(s->me);
    TEST_MUST(rnl_handler_stream(s->ep, HELLO, on_word, s) == HELLO);
    TEST_MUST(rnl_window_alloc(s->ep, AREA, &at, &w) == 0 && rnl_window_offer(w, &o) == 0);
    s->own = at;
    TEST_MUST(rnl_window_import(s->ep, s->peer, ID, BOUND_NS, &s->m, NULL) == 0 && rnl_import_is_direct(s->m));
    s->its = ((struct rnl_import_head *)(void *)s->m)->at;
    s->from = aligned_alloc(4096, AREA);
    s->to = aligned_alloc(4096, AREA);
    TEST_MUST(s->from && s->to);
    memset(s->from, 1, AREA);
    memset(s->to, 1, AREA);
    for (unsigned i = 0; i < 20; i++) /* the other side has imported, too */
        TEST_MUST(rnl_wait(s->ep, 5000000) >= RNL_TIMED_OUT);
    sizes(s, rounds);
    notes(s, rounds);
    atomics(s, rounds);
    free(s->from);
    free(s->to);
}

int main(int argc, char **argv)
{
    const struct rnl_options alone = {.size = sizeof alone, .flags = RNL_ALONE};
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    struct side s = {.me = 0};
    int pair[2], status;
    rounds = rounds < 1 || rounds > MOST_ROUNDS ? 1 : rounds;
    for (int i = 0; i < 2; i++) {
        s.raw[i] = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        TEST_MUST(s.raw[i] != MAP_FAILED);
    }
    TEST_MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    pid_t child = fork();
    TEST_MUST(child >= 0);
    s.me = child == 0;
    if (s.me == 1)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it ends with the test, however that ends */
    TEST_MUST(rnl_open(&s.ep, &alone) == 0);
    TEST_MUST(rnl_introduce(s.ep, pair[s.me], s.me ? RNL_OFFER : RNL_ACCEPT, NULL, BOUND_NS, &s.peer) == 0);
    body(&s, rounds);
    if (s.me == 1) {
        test_sleep_ms(100); /* the other side takes in the last of ours */
        _exit(rnl_close(s.ep) == 0 ? 0 : 1);
    }
    TEST_MUST(waitpid(child, &status, 0) == child && status == 0);
    TEST_MUST(rnl_close(s.ep) == 0);
    printf("ok - puts, notifications and atomics are timed\n");
    return 0;
}
