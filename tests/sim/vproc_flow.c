/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_flow.c - whole endpoints that send much, or little at a time: scripts/figures-flow asks it for the figures that
 * doc/flow.md tells beside those of flows alone.
 *
 *     vproc-flow.so stream KILOBYTES     each rank below the last sends so much to the last, which tells each one's
 * time vproc-flow.so ping TIMES           rank 0 and rank 1 send 8 bytes to and fro */
#include <runnel/runnel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DATA = 1, PING = 2, READY = 3, MESSAGE = 64 << 10, RANKS_MAX = 256 };

static rnl_endpoint *ep;
static unsigned char bytes[MESSAGE];
static uint64_t came[RANKS_MAX], ended_ns[RANKS_MAX], by_then[RANKS_MAX]; /* by_then: when the first had all */
static unsigned pings, ready;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void must(int64_t status)
{
    if (status < 0 && status != RNL_TIMED_OUT) {
        printf("WRONG: %s\n", rnl_last_error()->text);
        exit(1);
    }
}

static int on_data(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)ctx;
    came[peer] += n;
    ended_ns[peer] = now_ns();
    return RNL_DONE;
}

static int on_note(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer;
    ++*(unsigned *)ctx;
    return RNL_DONE;
}

static void send(unsigned to, unsigned handler, size_t n)
{
    const struct rnl_message b = {.peer = to, .handler = handler, .bound = n};
    rnl_stream *s;
    must(rnl_begin(ep, &b, &s));
    must(rnl_piece(s, bytes, n));
    must(rnl_end(s));
}

static int first_is_done(uint64_t total)
{
    for (unsigned i = 0; i + 1 < rnl_size(ep); i++)
        if (came[i] >= total)
            return 1;
    return 0;
}

static void stream(uint64_t total)
{
    unsigned self = rnl_rank(ep), last = rnl_size(ep) - 1;
    if (self < last) { /* connected first: a handshake is no part of the figure */
        send(last, READY, 8);
        while (!ready)
            must(rnl_wait(ep, -1));
        for (uint64_t n = 0; n < total; n += MESSAGE)
            send(last, DATA, total - n < MESSAGE ? total - n : MESSAGE);
        return;
    }
    while (ready < last)
        must(rnl_wait(ep, -1));
    must(rnl_wait(ep, 2000000));
    uint64_t began = now_ns(), done = 0;
    for (unsigned i = 0; i < last; i++)
        send(i, READY, 8);
    while (done < total * last) {
        int before = first_is_done(total);
        must(rnl_wait(ep, -1));
        if (!before && first_is_done(total))
            memcpy(by_then, came, sizeof by_then);
        done = 0;
        for (unsigned i = 0; i < last; i++)
            done += came[i];
    }
    for (unsigned i = 0; i < last; i++)
        printf("rank %u: %llu bytes in %llu ns, %llu when the first had all\n", i, (unsigned long long)came[i],
               (unsigned long long)(ended_ns[i] - began), (unsigned long long)by_then[i]);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void ping(unsigned times)
{
    uint64_t *took = calloc(times, sizeof *took), sum = 0;
    unsigned self = rnl_rank(ep);
    if (!took)
        exit(1);
    for (unsigned i = 0; self < 2 && i < times; i++) {
        uint64_t began = now_ns();
        if (self == 0)
            send(1, PING, 8);
        while (pings <= i)
            must(rnl_wait(ep, -1));
        if (self == 1)
            send(0, PING, 8);
        sum += took[i] = now_ns() - began;
    }
    qsort(took, times, sizeof *took, by_size);
    if (self == 0)
        printf("round trip: mean %llu median %llu p99.9 %llu ns\n", (unsigned long long)(sum / times),
               (unsigned long long)took[times / 2], (unsigned long long)took[times - 1 - times / 1000]);
    free(took);
}

int main(int argc, char **argv)
{
    if (argc < 3 || rnl_open(&ep, NULL) < 0)
        return 1;
    must(rnl_handler_whole(ep, DATA, on_data, NULL, 0));
    must(rnl_handler_whole(ep, PING, on_note, &pings, 0));
    must(rnl_handler_whole(ep, READY, on_note, &ready, 0));
    if (strcmp(argv[1], "stream") == 0)
        stream((uint64_t)atoi(argv[2]) * 1000);
    else
        ping((unsigned)atoi(argv[2]));
    return rnl_close(ep) < 0;
}
