/* SPDX-License-Identifier: BSD-3-Clause
 *
 * udp.c - messages between two processes over UDP on loopback, each figure beside that of raw sockets in the same
 * round; and what an idle network costs those who share memory:
 * udp [all|trip|way|wait|rate|bulk|long|local|silent] [rounds] [protection]. Fails only if something does not arrive.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint/net.h"
#include "net/datagram/udp.h"
#include "net/wire/seal.h"
#include "remote/remote_internal.h"
#include "support/hub.h"
#include "support/loop.h"
#include "support/must.h"

enum { ECHO = 1, COUNT, BULK, FIRSTS = 400, MIB = 1 << 20, PART_MIB = 8 };
enum { TRIPS = 20000, WAITS = 3000, SLICE = 200, LONG_SLICE = 10000, RATE_MS = 200, BULKS = 600, LOCALS = 300000 };
enum { AT_PORT = 0, AT_STOP = 2, AT_SEEN, AT_RESULT };

struct want {
    const char *what;
    unsigned rounds, slow;
};

static int raw = -1;
static unsigned got;
static uint64_t got_bytes;

/* When the receiver had so many more MiB: on a machine that others use, too, only the shortest of these times say what
 * a MiB costs. */
static uint64_t part_ns[BULKS / PART_MIB], part_from;
static unsigned parts;

static void part_ends(void)
{
    uint64_t now = test_now_ns();
    if (part_from && parts < BULKS / PART_MIB)
        part_ns[parts++] = now - part_from;
    part_from = now;
}

static int shorter(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* GB/s of the best tenth of them; they begin anew. */
static double best_tenth(void)
{
    qsort(part_ns, parts, sizeof *part_ns, shorter);
    double ns = parts ? (double)part_ns[parts / 10] : 1e18;
    parts = 0;
    part_from = 0;
    return (double)PART_MIB * MIB / ns;
}

static int on_count(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)peer, (void)ctx;
    got++;
    got_bytes += n;
    return RNL_DONE;
}

static int on_bulk(rnl_stream *s, unsigned peer, void *ctx)
{
    static unsigned char into[MIB];
    (void)peer, (void)ctx;
    TEST_MUST(rnl_receive(s, into, sizeof into) >= 0);
    if (++got % PART_MIB == 0)
        part_ends();
    return RNL_DONE;
}

/* ---- raw sockets ---- */

static void raw_open(struct test_loop_side *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int bytes = 4 << 20, one = 1;
    raw = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    TEST_MUST(raw >= 0 && bind(raw, (struct sockaddr *)&a, sizeof a) == 0);
    TEST_MUST(getsockname(raw, (struct sockaddr *)&a, &len) == 0);
    (void)setsockopt(raw, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    (void)setsockopt(raw, IPPROTO_UDP, UDP_GRO, &one, sizeof one);
    atomic_store_explicit(&s->run->word[AT_PORT + s->rank], a.sin_port, memory_order_relaxed);
    test_loop_meet(s);
    a.sin_port = (in_port_t)atomic_load_explicit(&s->run->word[AT_PORT + !s->rank], memory_order_relaxed);
    TEST_MUST(connect(raw, (struct sockaddr *)&a, sizeof a) == 0);
}

static void raw_hear(int flags)
{
    uint64_t what;
    while (recv(raw, &what, sizeof what, flags) != sizeof what)
        TEST_MUST(errno == EAGAIN || errno == EINTR);
}

static void raw_trips(struct test_loop_side *s, unsigned times, int flags)
{
    uint64_t what = 0;
    for (unsigned i = 0; i < times; i++) {
        if (s->rank == 0)
            TEST_MUST(send(raw, &what, sizeof what, 0) == sizeof what);
        raw_hear(flags);
        if (s->rank == 1)
            TEST_MUST(send(raw, &what, sizeof what, 0) == sizeof what);
    }
}

/* Runs with a window of 1 MiB that the receiver opens. */
static void raw_bulk(struct test_loop_side *s, unsigned datagram, uint64_t total)
{
    static unsigned char buf[65536], into[65536];
    unsigned segments = 65507 / datagram < 46 ? 65507 / datagram : 46, run = segments * datagram;
    _Atomic uint64_t *seen = &s->run->word[AT_SEEN];
    uint64_t done = 0;
    if (s->rank == 0) {
        uint16_t segment = (uint16_t)datagram;
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof segment)] = {0};
        struct iovec part = {buf, run};
        struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = IPPROTO_UDP;
        c->cmsg_type = UDP_SEGMENT;
        c->cmsg_len = CMSG_LEN(sizeof segment);
        memcpy(CMSG_DATA(c), &segment, sizeof segment);
        while (done < total) {
            while (done - atomic_load_explicit(seen, memory_order_relaxed) > MIB)
                ;
            if (sendmsg(raw, &m, 0) > 0)
                done += run;
        }
        while (atomic_load_explicit(seen, memory_order_relaxed) < total)
            ;
        return;
    }
    while (done < total) {
        ssize_t n = recv(raw, into, sizeof into, MSG_DONTWAIT);
        if (n > 0) {
            if ((done + (uint64_t)n) / (PART_MIB * MIB) > done / (PART_MIB * MIB))
                part_ends();
            done += (uint64_t)n;
            atomic_store_explicit(seen, done, memory_order_relaxed);
        }
    }
}

/* ---- messages ---- */

static void trips(struct test_loop_side *s, unsigned times, int waits)
{
    uint64_t what = 0;
    for (unsigned i = 0; i < times; i++) {
        unsigned before = got;
        if (s->rank == 0)
            TEST_MUST(rnl_send(s->ep, 1, COUNT, &what, sizeof what) == 0);
        while (got == before)
            TEST_MUST((waits ? rnl_wait(s->ep, -1) : rnl_extract(s->ep, SIZE_MAX)) >= 0);
        if (s->rank == 1)
            TEST_MUST(rnl_send(s->ep, 0, COUNT, &what, sizeof what) == 0);
    }
}

static double timed(struct test_loop_side *s, unsigned times, int what)
{
    test_loop_meet(s);
    uint64_t began = test_now_ns();
    switch (what) {
    case 0:
        raw_trips(s, times, MSG_DONTWAIT);
        break;
    case 1:
        trips(s, times, 0);
        break;
    case 2:
        raw_trips(s, times, 0);
        break;
    default:
        trips(s, times, 1);
    }
    uint64_t took = test_now_ns() - began;
    test_loop_meet(s);
    return (double)took / times / 1000;
}

static double rate(struct test_loop_side *s, unsigned ms)
{
    _Atomic uint64_t *stop = &s->run->word[AT_STOP], *result = &s->run->word[AT_RESULT];
    uint64_t what = 0, sent = 0;
    atomic_store_explicit(stop, 0, memory_order_relaxed);
    got = 0;
    test_loop_meet(s);
    uint64_t began = test_now_ns(), end = began + (uint64_t)ms * 1000000;
    if (s->rank == 0) {
        for (; test_now_ns() < end;)
            for (int i = 0; i < 1000; i++, sent++)
                TEST_MUST(rnl_send(s->ep, 1, COUNT, &what, sizeof what) == 0);
        atomic_store_explicit(stop, sent, memory_order_release);
        while (atomic_load_explicit(result, memory_order_acquire) == 0)
            TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
    } else {
        uint64_t all = 0;
        while (all == 0 || got < all) {
            TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
            all = atomic_load_explicit(stop, memory_order_acquire);
        }
        atomic_store_explicit(result, (uint64_t)got * 1000000 / (test_now_ns() - began), memory_order_release);
    }
    test_loop_meet(s);
    double value = (double)atomic_load_explicit(result, memory_order_acquire) / 1000;
    test_loop_meet(s);
    atomic_store_explicit(result, 0, memory_order_relaxed);
    return value;
}

static double bulk(struct test_loop_side *s, unsigned times)
{
    static unsigned char buf[MIB];
    test_loop_meet(s);
    got = 0;
    uint64_t began = test_now_ns();
    if (s->rank == 0) {
        for (unsigned i = 0; i < times; i++) {
            const struct rnl_message b = {.peer = 1, .handler = BULK, .bound = MIB};
            rnl_stream *out;
            TEST_MUST(rnl_begin(s->ep, &b, &out) == 0);
            TEST_MUST(rnl_piece(out, buf, sizeof buf) == 0);
            TEST_MUST(rnl_end(out) == 0);
        }
        TEST_MUST(rnl_flush(s->ep) == 0);
    }
    while (s->rank == 1 && got < times)
        TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
    test_loop_meet(s);
    return (double)times * MIB / (double)(test_now_ns() - began);
}

static double bulk_raw(struct test_loop_side *s, unsigned times)
{
    uint64_t total = (uint64_t)times * MIB;
    atomic_store_explicit(&s->run->word[AT_SEEN], 0, memory_order_relaxed);
    test_loop_meet(s);
    uint64_t began = test_now_ns();
    raw_bulk(s, 1472, total);
    double took = (double)(test_now_ns() - began);
    test_loop_meet(s);
    return (double)total / took;
}

/* What the rounds took: packets, runs, verdicts. */
static void told(struct test_loop_side *s)
{
    const struct rnl_flow_counters *c = s->ep->remote->count;
    struct rnl_udp_counts u;
    rnl_udp_counts(s->ep->remote->t, &u);
    const struct rnl_flow *f = &s->ep->peer[!s->rank].conn->remote->flow;
    printf("rank %u: window %llu bytes, round trip %u ns, least %llu, datagrams of %u\n", s->rank,
           (unsigned long long)f->congest.window >> 8, f->rtt.smoothed_ns, (unsigned long long)f->path->base_ns,
           f->mtu.bytes);
    printf("rank %u: %llu packets of %llu bytes each, %llu acks, %llu lost (%llu not), %llu probes; %llu packets in "
           "%llu runs out, %llu in, host full %llu times\n",
           s->rank, (unsigned long long)c->sent, (unsigned long long)(c->sent_bytes / (c->sent ? c->sent : 1)),
           (unsigned long long)c->acks_sent, (unsigned long long)c->lost, (unsigned long long)c->spurious,
           (unsigned long long)c->probes, (unsigned long long)u.sent, (unsigned long long)u.calls,
           (unsigned long long)u.received, (unsigned long long)u.full);
}

static int wanted(const struct want *w, const char *what)
{
    return strcmp(w->what, what) == 0 || strcmp(w->what, "all") == 0;
}

static void body(struct test_loop_side *s)
{
    const struct want *w = s->arg;
    test_loop_pin(s->rank);
    TEST_MUST(rnl_handler_whole(s->ep, COUNT, on_count, NULL, 0) == COUNT);
    TEST_MUST(rnl_handler_stream(s->ep, BULK, on_bulk, NULL) == BULK);
    raw_open(s);
    test_loop_meet(s);
    trips(s, 100, 0);
    for (unsigned round = 0; round < w->rounds; round++) {
        double a, b;
        if (wanted(w, "trip")) {
            a = timed(s, TRIPS / w->slow, 0), b = timed(s, TRIPS / w->slow, 1);
            if (s->rank == 0)
                printf("8 B there and back, polling: raw %.2f us, messages %.2f us: x %.2f\n", a, b, b / a);
        }
        if (wanted(w, "wait")) {
            a = timed(s, WAITS / w->slow, 2), b = timed(s, WAITS / w->slow, 3);
            if (s->rank == 0)
                printf("8 B there and back, waiting: raw %.2f us, messages %.2f us: x %.2f\n", a, b, b / a);
        }
        if (wanted(w, "rate")) {
            a = rate(s, RATE_MS / w->slow);
            if (s->rank == 0)
                printf("8 B one way: %.1f million a second\n", a);
        }
        if (strcmp(w->what, "long") == 0) /* for a profile */
            (void)bulk(s, BULKS / w->slow);
        if (wanted(w, "bulk")) {
            a = bulk_raw(s, BULKS / w->slow);
            double raw_best = best_tenth();
            b = bulk(s, BULKS / w->slow);
            double best = best_tenth();
            if (s->rank == 0)
                printf("1 MiB one way: raw %.2f GB/s, messages %.2f GB/s: x %.2f\n", a, b, b / a);
            else
                printf("the best tenth of 8 MiB: raw %.2f GB/s, messages %.2f GB/s: x %.2f\n", raw_best, best,
                       best / raw_best);
            fflush(stdout);
        }
    }
    test_loop_meet(s);
    told(s);
    if (s->rank == 0)
        printf("ok - all of it arrived\n");
    fflush(stdout);
}

/* ---- two threads that share memory, and a third rank on another host, which is silent ---- */

struct local {
    rnl_endpoint *ep;
    pthread_barrier_t *together;
    unsigned rank, times, heard;
    double ns;
};

/* The least time of a slice of so many trips counts: other programs make the rest longer. */
struct parts {
    uint64_t began, least;
};
static void slice(struct parts *s, unsigned trip, unsigned trips)
{
    if (trip % trips)
        return;
    uint64_t now = test_now_ns();
    if (s->began && (!s->least || now - s->began < s->least))
        s->least = now - s->began;
    s->began = now;
}

static int on_local(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer;
    ((struct local *)ctx)->heard++;
    return RNL_DONE;
}

static void *local_trips(void *arg)
{
    struct local *l = arg;
    uint64_t what = 0;
    test_loop_pin(l->rank);
    TEST_MUST(rnl_handler_whole(l->ep, COUNT, on_local, l, 0) == COUNT);
    pthread_barrier_wait(l->together);
    struct parts s = {0};
    for (unsigned i = 0; i <= l->times; i++) {
        slice(&s, i, LONG_SLICE); /* a millisecond: the network is looked at many times in it */
        if (l->rank == 0)
            TEST_MUST(rnl_send(l->ep, 1, COUNT, &what, sizeof what) == 0);
        while (l->heard == i)
            TEST_MUST(rnl_extract(l->ep, SIZE_MAX) >= 0);
        if (l->rank == 1)
            TEST_MUST(rnl_send(l->ep, 0, COUNT, &what, sizeof what) == 0);
    }
    l->ns = (double)s.least / LONG_SLICE;
    pthread_barrier_wait(l->together);
    return NULL;
}

enum third { NOBODY, IN_MEMORY, OVER_A_NETWORK };

static double local_round(unsigned times, enum third third, uint32_t without)
{
    unsigned ranks = third == NOBODY ? 2 : 3;
    const struct test_loop opt = {.local = 1 << 0 | 1 << 1, .kernel.without = without};
    struct test_hub h;
    struct local l[3] = {{0}};
    pthread_t thread[2];
    pthread_barrier_t together;
    uint64_t what = 0;
    pthread_barrier_init(&together, NULL, 2);
    unsetenv("RNL_TEST_REMOTE");
    test_hub_open(&h, ranks, NULL);
    for (unsigned i = 0; third == OVER_A_NETWORK && i < ranks; i++)
        test_loop_attach(h.ep[i], &opt);
    if (third != NOBODY)
        TEST_MUST(rnl_handler_whole(h.ep[2], COUNT, on_local, &l[2], 0) == COUNT);
    for (unsigned i = 0; third != NOBODY && i < 2; i++)
        TEST_MUST(rnl_send(h.ep[i], 2, COUNT, &what, sizeof what) == 0);
    while (third != NOBODY && l[2].heard < 2)
        for (unsigned i = 0; i < 3; i++)
            TEST_MUST(rnl_extract(h.ep[i], SIZE_MAX) >= 0);
    for (unsigned i = 0; i < 2; i++) {
        l[i] = (struct local){.ep = h.ep[i], .rank = i, .times = times, .together = &together};
        TEST_MUST(pthread_create(&thread[i], NULL, local_trips, &l[i]) == 0);
    }
    for (unsigned i = 0; i < 2; i++)
        TEST_MUST(pthread_join(thread[i], NULL) == 0);
    pthread_barrier_destroy(&together);
    TEST_MUST(test_hub_close(&h) == 0);
    return l[0].ns;
}

static void local(const struct want *w)
{
    for (unsigned round = 0; round < w->rounds; round++) {
        double alone = local_round(LOCALS / w->slow, NOBODY, 0), three = local_round(LOCALS / w->slow, IN_MEMORY, 0),
               with = local_round(LOCALS / w->slow, OVER_A_NETWORK, 0),
               asked = local_round(LOCALS / w->slow, OVER_A_NETWORK, RNL_KERNEL_BELL);
        printf("8 B there and back in memory: %.0f ns, beside a third rank there %.0f ns, over a network %.0f ns: "
               "x %.2f, x %.2f; without io_uring %.0f ns: x %.2f, x %.2f\n",
               alone, three, with, with / alone, with / three, asked, asked / alone, asked / three);
    }
}

/* ---- a network that was silent for a while ---- */

struct silent {
    rnl_endpoint *ep;
    uint64_t took[FIRSTS];
    _Atomic unsigned heard;
    _Atomic int ready;
    double extract_ns; /* of one in vain */
};

static int on_first(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct silent *l = ctx;
    uint64_t sent;
    (void)peer, (void)n;
    memcpy(&sent, buf, sizeof sent);
    unsigned i = atomic_load_explicit(&l->heard, memory_order_relaxed);
    if (i > 0 && i <= FIRSTS)
        l->took[i - 1] = test_now_ns() - sent;
    atomic_store_explicit(&l->heard, i + 1, memory_order_release);
    return RNL_DONE;
}

/* Nobody else sends to it: it hears the first, then each of the others after a silence. */
static void *silent_hear(void *arg)
{
    struct silent *l = arg;
    test_loop_pin(0);
    while (atomic_load_explicit(&l->heard, memory_order_relaxed) == 0)
        TEST_MUST(rnl_extract(l->ep, SIZE_MAX) >= 0);
    struct parts s = {0};
    for (unsigned i = 0; i <= FIRSTS * SLICE; i++) {
        slice(&s, i, SLICE);
        TEST_MUST(rnl_extract(l->ep, SIZE_MAX) >= 0);
    }
    l->extract_ns = (double)s.least / SLICE;
    atomic_store_explicit(&l->ready, 1, memory_order_release);
    while (atomic_load_explicit(&l->heard, memory_order_relaxed) <= FIRSTS)
        TEST_MUST(rnl_extract(l->ep, SIZE_MAX) >= 0);
    return NULL;
}

static void silent_round(unsigned ranks, uint32_t without)
{
    const struct test_loop opt = {.local = ranks == 3 ? 1 << 0 | 1 << 2 : 0, .kernel.without = without};
    static struct silent l;
    struct rnl_kernel_facts f;
    struct test_hub h;
    pthread_t thread;
    uint64_t what = 0;
    l = (struct silent){.ep = NULL};
    unsetenv("RNL_TEST_REMOTE");
    test_hub_open(&h, ranks, NULL);
    for (unsigned i = 0; i < ranks; i++)
        test_loop_attach(h.ep[i], &opt);
    l.ep = h.ep[0];
    test_loop_pin(1);
    TEST_MUST(rnl_handler_whole(l.ep, COUNT, on_first, &l, 0) == COUNT);
    if (ranks == 3) { /* one of its own host, so that it asks the network less often */
        TEST_MUST(rnl_handler_whole(h.ep[2], COUNT, on_count, NULL, 0) == COUNT);
        TEST_MUST(rnl_send(l.ep, 2, COUNT, &what, sizeof what) == 0 && rnl_extract(h.ep[2], SIZE_MAX) > 0);
    }
    TEST_MUST(pthread_create(&thread, NULL, silent_hear, &l) == 0);
    for (unsigned i = 0; i <= FIRSTS; i++) {
        uint64_t until = test_now_ns() + 300000 + (uint64_t)i * 7919 % 100000;
        while ((i == 1 && !atomic_load_explicit(&l.ready, memory_order_acquire)) || test_now_ns() < until)
            TEST_MUST(rnl_extract(h.ep[1], SIZE_MAX) >= 0);
        what = test_now_ns();
        TEST_MUST(rnl_send(h.ep[1], 0, COUNT, &what, sizeof what) == 0);
        while (atomic_load_explicit(&l.heard, memory_order_acquire) <= i)
            TEST_MUST(rnl_extract(h.ep[1], SIZE_MAX) >= 0);
    }
    TEST_MUST(pthread_join(thread, NULL) == 0);
    rnl_kernel_socket_facts(test_loop_socket(0), &f);
    qsort(l.took, FIRSTS, sizeof l.took[0], shorter);
    printf("%s, %s: extract in vain %.0f ns, 8 B after a silence %.2f us (10 %% below %.2f, 10 %% above %.2f)\n",
           ranks == 3 ? "beside a peer in memory" : "all over a network",
           f.features & RNL_KERNEL_BELL ? "io_uring" : "asked", l.extract_ns, (double)l.took[FIRSTS / 2] / 1000,
           (double)l.took[FIRSTS / 10] / 1000, (double)l.took[FIRSTS - FIRSTS / 10] / 1000);
    TEST_MUST(test_hub_close(&h) == 0);
}

static void silent(const struct want *w)
{
    for (unsigned round = 0; round < w->rounds; round++)
        for (unsigned ranks = 2; ranks <= 3; ranks++) {
            silent_round(ranks, 0);
            silent_round(ranks, RNL_KERNEL_BELL);
        }
}

/* ---- there and back in one thread, where nobody waits for anybody: the way alone ---- */

static double way_raw(unsigned times)
{
    struct parts s = {0};
    int fd[2];
    struct sockaddr_in a[2];
    socklen_t len = sizeof a[0];
    uint64_t what = 0;
    for (unsigned i = 0; i < 2; i++) {
        a[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        fd[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        TEST_MUST(fd[i] >= 0 && bind(fd[i], (struct sockaddr *)&a[i], sizeof a[i]) == 0);
        TEST_MUST(getsockname(fd[i], (struct sockaddr *)&a[i], &len) == 0);
    }
    for (unsigned i = 0; i < 2; i++)
        TEST_MUST(connect(fd[i], (struct sockaddr *)&a[!i], sizeof a[i]) == 0);
    for (unsigned i = 0; i <= 2 * times; i++) {
        slice(&s, i, 2 * SLICE);
        TEST_MUST(send(fd[i & 1], &what, sizeof what, 0) == sizeof what);
        TEST_MUST(recv(fd[!(i & 1)], &what, sizeof what, MSG_DONTWAIT) == sizeof what);
    }
    close(fd[0]);
    close(fd[1]);
    return (double)s.least / SLICE;
}

static double way_round(unsigned times, const struct test_loop *opt)
{
    struct test_hub h;
    struct parts s = {0};
    uint64_t what = 0;
    unsetenv("RNL_TEST_REMOTE");
    test_hub_open(&h, 2, NULL);
    for (unsigned i = 0; i < 2; i++) {
        test_loop_attach(h.ep[i], opt);
        TEST_MUST(rnl_handler_whole(h.ep[i], COUNT, on_count, NULL, 0) == COUNT);
    }
    for (unsigned i = 0; i <= 2 * (times + WAITS); i++) {
        unsigned before = got;
        slice(&s, i, 2 * SLICE);
        TEST_MUST(rnl_send(h.ep[i & 1], !(i & 1), COUNT, &what, sizeof what) == 0);
        while (got == before) {
            TEST_MUST(rnl_extract(h.ep[!(i & 1)], SIZE_MAX) >= 0);
            if (got == before) /* its handshake is not over */
                TEST_MUST(rnl_extract(h.ep[i & 1], SIZE_MAX) >= 0);
        }
    }
    TEST_MUST(test_hub_close(&h) == 0);
    return (double)s.least / SLICE;
}

static void way(const struct want *w, const struct test_loop *opt)
{
    for (unsigned round = 0; round < w->rounds; round++) {
        double raw_ns = way_raw(TRIPS / w->slow), ns = way_round(TRIPS / w->slow, opt);
        printf("8 B there and back in one thread: raw %.0f ns, messages %.0f ns: x %.2f\n", raw_ns, ns, ns / raw_ns);
    }
}

int main(int argc, char **argv)
{
    struct want w = {.what = argc > 1 ? argv[1] : "all", .rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1, .slow = 1};
    struct test_loop opt = {0};
    if (argc > 3 && rnl_protect_read(argv[3], &opt.protect) < 0)
        return 2;
    if (argc <= 1)
        w.slow = 10;
    if (wanted(&w, "local"))
        local(&w);
    if (wanted(&w, "silent"))
        silent(&w);
    if (wanted(&w, "way"))
        way(&w, &opt);
    fflush(stdout); /* once, not by each process */
    return test_loop_run(2, &opt, body, &w);
}
