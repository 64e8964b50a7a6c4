/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_stripe.c - two ranks with long and short messages between them, over as many cards as their hosts have:
 *
 *     vproc-stripe.so KILOBYTES 0|1|both
 *
 * (multi-stripe is the same for real hosts; a job of one, without arguments, joins and leaves.)
 *
 * That rank, or each, sends so much to the other one. The receiver checks that each message comes once, in order, with
 * its content, and tells in what time all of them came, and the longest time in which none did. */
#include <runnel/runnel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DATA = 1, READY = 2, LONGEST = 400000 };
static const size_t sizes[] = {65536, 8, 262144, 3000, 400000, 48, 48, 100000, 20000};

static rnl_endpoint *ep;
static unsigned char bytes[LONGEST];
static uint64_t came, came_bytes, began_ns, last_ns, longest_ns;
static unsigned ready;

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

static size_t size_of(uint64_t k)
{
    return sizes[k % (sizeof sizes / sizeof sizes[0])];
}

/* The k-th message: its number in each word, and where the word stands. */
static void fill(unsigned char *at, uint64_t k)
{
    for (size_t i = 0; i + 8 <= size_of(k); i += 8) {
        uint64_t word = k << 32 ^ i;
        memcpy(at + i, &word, 8);
    }
}

static int on_data(const void *buf, size_t n, unsigned peer, void *ctx)
{
    static unsigned char wanted[LONGEST];
    uint64_t now = now_ns();
    (void)peer, (void)ctx;
    fill(wanted, came);
    if (n != size_of(came) || memcmp(buf, wanted, n) != 0) {
        printf("WRONG: message %llu\n", (unsigned long long)came);
        exit(1);
    }
    came++;
    came_bytes += n;
    if (now - last_ns > longest_ns)
        longest_ns = now - last_ns;
    last_ns = now;
    return RNL_DONE;
}

static int on_ready(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer, (void)ctx;
    ready++;
    return RNL_DONE;
}

static void send(unsigned handler, const void *at, size_t n)
{
    const struct rnl_message b = {.peer = !rnl_rank(ep), .handler = handler, .bound = n};
    rnl_stream *s;
    must(rnl_begin(ep, &b, &s));
    must(rnl_piece(s, at, n));
    must(rnl_end(s));
}

int main(int argc, char **argv)
{
    must(rnl_open(&ep, NULL));
    if (argc < 3)
        return rnl_close(ep) < 0;
    must(rnl_handler_whole(ep, DATA, on_data, NULL, 0));
    must(rnl_handler_whole(ep, READY, on_ready, NULL, 0));
    const uint64_t total = (uint64_t)atoi(argv[1]) * 1000;
    const char *who = argv[2];
    const unsigned self = rnl_rank(ep);
    const int sends = strcmp(who, "both") == 0 || atoi(who) == (int)self;
    const int takes = strcmp(who, "both") == 0 || atoi(who) != (int)self;
    send(READY, "12345678", 8); /* a handshake is no part of the time */
    while (!ready)
        must(rnl_wait(ep, -1));
    began_ns = last_ns = now_ns();
    for (uint64_t k = 0, sent = 0; sends && sent < total; sent += size_of(k++)) {
        fill(bytes, k);
        send(DATA, bytes, size_of(k));
    }
    while (takes && came_bytes < total)
        must(rnl_wait(ep, -1));
    if (takes)
        printf("rank %u: right, %llu us, at most %llu us without any\n", self,
               (unsigned long long)(last_ns - began_ns) / 1000, (unsigned long long)longest_ns / 1000);
    return rnl_close(ep) < 0;
}
