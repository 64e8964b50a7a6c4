/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_busy.c - rank 0 always finds something that rank 1, on its own host, has sent, and meanwhile asks rank 2, on
 * another one, a question after the other: what the network lost of those has to be sent again all the same.
 *
 *     runnel sim -n 3 --hosts 2 --loss 10% vproc-busy.so [QUESTIONS]
 *
 * Says how long the slowest answer took, and how often rank 0 found nothing in spite of all. */
#include <runnel/runnel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { NOISE = 1, ASK, ANSWER, ENOUGH, A_FEW = 32, GIVE_UP_NS = 2000000000 };

static rnl_endpoint *ep;
static unsigned long long noise, asked, answers, enough;

static int on_note(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer;
    ++*(unsigned long long *)ctx;
    return RNL_DONE;
}

static void must(int64_t status)
{
    if (status < 0 && status != RNL_TIMED_OUT) {
        printf("WRONG: %s\n", rnl_last_error()->text);
        exit(1);
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Between two looks time goes by, in which rank 1 fills the ring up again. */
static void look(uint64_t *misses)
{
    const struct timespec computes = {.tv_nsec = 2000};
    nanosleep(&computes, NULL);
    int64_t bytes = rnl_extract(ep, A_FEW);
    must(bytes);
    *misses += bytes == 0;
}

static void asks(unsigned long long questions)
{
    uint64_t longest = 0, misses = 0;
    while (noise < A_FEW)
        must(rnl_extract(ep, A_FEW));
    for (unsigned long long i = 1; i <= questions; i++) {
        uint64_t began = now_ns(), took = 0;
        must(rnl_send(ep, 2, ASK, &i, sizeof i));
        while (answers < i && took < GIVE_UP_NS) {
            look(&misses);
            took = now_ns() - began;
        }
        longest = took > longest ? took : longest;
        if (answers < i) {
            printf("no answer to question %llu\n", i);
            break;
        }
    }
    must(rnl_send(ep, 1, ENOUGH, NULL, 0));
    must(rnl_send(ep, 2, ENOUGH, NULL, 0));
    printf("%llu answers, the slowest after %llu us, %llu looks in vain\n", answers, (unsigned long long)longest / 1000,
           (unsigned long long)misses);
}

int main(int argc, char **argv)
{
    must(rnl_open(&ep, NULL));
    must(rnl_handler_whole(ep, NOISE, on_note, &noise, 0));
    must(rnl_handler_whole(ep, ASK, on_note, &asked, 0));
    must(rnl_handler_whole(ep, ANSWER, on_note, &answers, 0));
    must(rnl_handler_whole(ep, ENOUGH, on_note, &enough, 0));
    unsigned self = rnl_rank(ep);
    unsigned long long given = 0;
    if (self == 0)
        asks(argc > 1 ? strtoull(argv[1], NULL, 10) : 100);
    while (self == 1 && !enough) {
        char some[32] = {0};
        must(rnl_send(ep, 0, NOISE, some, sizeof some)); /* waits while the ring is full */
        must(rnl_extract(ep, SIZE_MAX));
    }
    while (self == 2 && !enough) {
        must(rnl_wait(ep, -1));
        for (; given < asked; given++)
            must(rnl_send(ep, 0, ANSWER, &given, sizeof given));
    }
    return rnl_close(ep) < 0;
}
