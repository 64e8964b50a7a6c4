/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_kernel.c - two endpoints that take each other for processes of different hosts, over the kernel's sockets on
 * loopback: messages arrive whole, in order, both ways. Prints a round trip beside that of bare connected sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint/link.h"
#include "stream/stream.h"
#include "support/hub.h"
#include "support/loop.h"
#include "transport/udp/udp.h"

enum { ECHO = 1, NOTE, BULK, TRIPS = 3000, BULKS = 40, ROUNDS = 3, LONGEST = 1 << 20, JUMBO = 8972 };

static void open_two(struct test_hub *h)
{
    unsetenv("RNL_TEST_REMOTE"); /* a network of this test's own */
    test_hub_open(h, 2, NULL);
    test_loop_attach(h->ep[0], NULL);
    test_loop_attach(h->ep[1], NULL);
}

/* ---- messages ---- */

struct heard {
    rnl_endpoint *ep;
    unsigned count, want;
    size_t length[64];
};

static _Atomic unsigned done; /* of the two */

static unsigned char pattern(size_t i, size_t length)
{
    return (unsigned char)(i * 131 + (i >> 9) + length);
}

static int on_note(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct heard *h = ctx;
    (void)peer;
    for (size_t i = 0; i < n; i++)
        TEST_MUST(((const unsigned char *)buf)[i] == pattern(i, n));
    TEST_MUST(h->count < 64);
    h->length[h->count++] = n;
    return RNL_DONE;
}

static const size_t lengths[] = {0, 1, 8, 48, 57, 1000, 1400, 4000, 20000, 65536, 300000, LONGEST, 3};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void *talk(void *arg)
{
    struct heard *h = arg;
    unsigned char *buf = malloc(LONGEST);
    uint64_t until = test_now_ns() + (uint64_t)30000000000;
    TEST_MUST(buf != NULL);
    for (int i = 0; i < LENGTHS; i++) {
        for (size_t k = 0; k < lengths[i]; k++)
            buf[k] = pattern(k, lengths[i]);
        const struct rnl_begin b = {.peer = 1 - h->ep->env->rank, .handler = NOTE, .bound = lengths[i]};
        rnl_stream *s;
        TEST_MUST(rnl_begin(h->ep, &b, &s) == 0);
        TEST_MUST(rnl_piece(s, buf, lengths[i]) == 0);
        TEST_MUST(rnl_end(s) == 0);
    }
    for (int told = 0; atomic_load_explicit(&done, memory_order_relaxed) < 2 && test_now_ns() < until;) {
        TEST_MUST(rnl_extract(h->ep, SIZE_MAX) >= 0);
        if (!told && h->count == h->want) { /* the other may still wait for what we sent: go on calling in */
            told = 1;
            atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
        }
    }
    free(buf);
    return NULL;
}

static void messages_of_any_length_cross_both_ways_at_once(void **state)
{
    struct test_hub h;
    struct heard heard[2] = {{.want = LENGTHS}, {.want = LENGTHS}};
    pthread_t thread[2];
    (void)state;
    open_two(&h);
    for (int i = 0; i < 2; i++) {
        heard[i].ep = h.ep[i];
        assert_int_equal(rnl_handler_whole(h.ep[i], NOTE, on_note, &heard[i], 0), NOTE);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, talk, &heard[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(heard[i].count, LENGTHS);
        for (int k = 0; k < LENGTHS; k++)
            assert_int_equal(heard[i].length[k], lengths[k]);
    }
    assert_int_equal(test_hub_close(&h), 0);
}

/* ---- a round trip ---- */

static unsigned echoes;

static int on_echo(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer, (void)ctx;
    echoes++;
    return RNL_DONE;
}

static void hop(const struct test_hub *h, unsigned from, uint64_t what)
{
    unsigned before = echoes;
    TEST_MUST(rnl_send(h->ep[from], 1 - from, ECHO, &what, sizeof what) == 0);
    for (uint64_t until = test_now_ns() + (uint64_t)10000000000; echoes == before && test_now_ns() < until;) {
        TEST_MUST(rnl_extract(h->ep[1 - from], SIZE_MAX) >= 0);
        if (echoes == before) /* the first one waits for the handshake, in which both take part */
            TEST_MUST(rnl_extract(h->ep[from], SIZE_MAX) >= 0);
    }
    TEST_MUST(echoes == before + 1);
}

static uint64_t by_messages(const struct test_hub *h)
{
    uint64_t begin = test_now_ns();
    for (uint64_t i = 0; i < TRIPS; i++) {
        hop(h, 0, i);
        hop(h, 1, i);
    }
    return (test_now_ns() - begin) / TRIPS;
}

static uint64_t by_sockets(const int fd[2])
{
    uint64_t begin = test_now_ns(), what = 0;
    for (uint64_t i = 0; i < TRIPS; i++) {
        for (int from = 0; from < 2; from++) {
            TEST_MUST(send(fd[from], &what, sizeof what, 0) == sizeof what);
            TEST_MUST(recv(fd[1 - from], &what, sizeof what, 0) == sizeof what);
        }
    }
    return (test_now_ns() - begin) / TRIPS;
}

static void a_round_trip_beside_that_of_bare_sockets(void **state)
{
    struct test_hub h;
    struct sockaddr_in a[2];
    int fd[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        socklen_t len = sizeof a[i];
        const struct timeval bound = {.tv_sec = 10};
        a[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        fd[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_true(fd[i] >= 0);
        assert_int_equal(bind(fd[i], (struct sockaddr *)&a[i], sizeof a[i]), 0);
        assert_int_equal(getsockname(fd[i], (struct sockaddr *)&a[i], &len), 0);
        assert_int_equal(setsockopt(fd[i], SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(connect(fd[i], (struct sockaddr *)&a[1 - i], sizeof a[i]), 0);
    open_two(&h);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rnl_handler_whole(h.ep[i], ECHO, on_echo, NULL, 0), ECHO);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t raw = by_sockets(fd), ours = by_messages(&h);
        print_message("8 bytes there and back, one thread: %llu ns, bare connected sockets %llu ns, ratio %.2f\n",
                      (unsigned long long)ours, (unsigned long long)raw, (double)ours / (double)raw);
    }
    assert_int_equal(echoes, 2 * TRIPS * ROUNDS);
    assert_int_equal(test_hub_close(&h), 0);
    close(fd[0]);
    close(fd[1]);
}

/* ---- runs ---- */

static int on_bulk(rnl_stream *s, unsigned peer, void *ctx)
{
    static unsigned char into[LONGEST];
    (void)peer;
    TEST_MUST(rnl_receive(s, into, sizeof into) >= 0);
    ++*(unsigned *)ctx;
    return RNL_DONE;
}

/* As much as is taken without waiting; the two take turns whenever no more is. */
static void bulk_message(struct test_hub *h, unsigned *got)
{
    static unsigned char buf[LONGEST];
    const struct rnl_begin b = {.peer = 1, .handler = BULK, .bound = LONGEST};
    unsigned before = *got, ended = 0;
    size_t put = 0;
    rnl_stream *s;
    assert_int_equal(rnl_begin(h->ep[0], &b, &s), 0);
    while (*got == before) {
        while (put < LONGEST) {
            int64_t n = rnl_stream_put(s, buf + put, LONGEST - put);
            assert_true(n >= 0);
            put += (size_t)n;
            if (n == 0)
                break;
        }
        if (put == LONGEST && !ended++)
            assert_int_equal(rnl_end(s), 0);
        for (unsigned i = 0; i < 3; i++)
            assert_true(rnl_extract(h->ep[i == 0 ? 0 : 1], SIZE_MAX) >= 0);
    }
}

/* Two ranks under one kernel whose datagrams become no longer than a jumbo frame takes. */
static void shorten(struct test_hub *h)
{
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i < RNL_MTU_SIZES; i++)
            if (h->ep[k]->remote->config.mtu[i] == 0)
                h->ep[k]->remote->config.mtu[i] = JUMBO;
}

/* What piles up in one call leaves as full datagrams in full runs, whatever the pieces are; and where the way takes
 * them, as datagrams that are as long as a run. */
static void bulk_leaves_full(unsigned longest)
{
    struct test_hub h;
    struct rnl_udp_counts from, to;
    unsigned got = 0;
    open_two(&h);
    if (longest == JUMBO)
        shorten(&h);
    assert_int_equal(rnl_handler_stream(h.ep[1], BULK, on_bulk, &got), BULK);
    for (unsigned i = 0; i < BULKS; i++)
        bulk_message(&h, &got);
    rnl_udp_counts(h.ep[0]->remote->t, &from);
    uint64_t probes = h.ep[0]->remote->count->probes;
    for (unsigned i = 0; i < BULKS; i++)
        bulk_message(&h, &got);
    rnl_udp_counts(h.ep[0]->remote->t, &to);
    probes = h.ep[0]->remote->count->probes - probes;
    const struct rnl_flow *f = &h.ep[0]->peer[1].conn->link->flow;
    uint64_t runs = to.calls - from.calls, packets = to.sent - from.sent;
    print_message("a MiB goes as %.1f packets in %.1f runs; datagrams of %u, least round trip %llu ns, window %llu\n",
                  (double)packets / BULKS, (double)runs / BULKS, f->mtu.bytes, (unsigned long long)f->path->base_ns,
                  (unsigned long long)f->congest.window >> 8);
    assert_int_equal(f->mtu.bytes, longest);
    /* What is paced is cut by its times, and a probe may be short; of 118 packets one is. */
    int by_times = !rnl_congest_near(&f->config->congest, f->path->base_ns);
    if (!by_times && longest == JUMBO && runs < packets) /* the host does send runs */
        assert_true((packets - probes) * f->mtu.bytes < BULKS * (uint64_t)LONGEST * 41 / 40);
    assert_int_equal(test_hub_close(&h), 0);
}

static void bulk_goes_in_full_runs(void **state)
{
    (void)state;
    bulk_leaves_full(JUMBO);
}

static void under_one_kernel_a_datagram_is_as_long_as_a_run(void **state)
{
    (void)state;
    bulk_leaves_full(RNL_REMOTE_MTU_NEAR);
}

/* ---- what is near ---- */

static int on_nothing(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer;
    ++*(unsigned *)ctx;
    return RNL_DONE;
}

/* A round trip that is short beside what the calls for it cost has met no network, on a slow host, too; but only among
 * processes of one kernel: others may have a network that is as quick. */
static void near_is_what_calls_cost_under_one_kernel(void **state)
{
    static const uint32_t trip_ns[] = {1, 800, 4000, 100000}, near_ns[] = {8000, 8000, 40000, 45000};
    (void)state;
    for (unsigned i = 0; i < sizeof trip_ns / sizeof *trip_ns; i++) {
        const struct test_loop opt = {.trip_ns = trip_ns[i], .apart = 1 << 2};
        const struct rnl_flow *flow[3];
        struct test_hub h;
        unsigned got = 0;
        unsetenv("RNL_TEST_REMOTE");
        test_hub_open(&h, 3, NULL);
        for (unsigned k = 0; k < 3; k++)
            test_loop_attach(h.ep[k], &opt);
        for (unsigned k = 1; k < 3; k++) {
            assert_int_equal(rnl_handler_stream(h.ep[k], NOTE, on_nothing, &got), NOTE);
            assert_int_equal(rnl_send(h.ep[0], k, NOTE, NULL, 0), 0);
        }
        for (uint64_t until = test_now_ns() + (uint64_t)30000000000; got < 2 && test_now_ns() < until;)
            for (unsigned k = 0; k < 3; k++)
                assert_true(rnl_extract(h.ep[k], SIZE_MAX) >= 0);
        assert_int_equal(got, 2);
        for (unsigned k = 1; k < 3; k++)
            flow[k] = &h.ep[0]->peer[k].conn->link->flow;
        assert_int_equal(flow[1]->config->congest.near_ns, near_ns[i]);
        assert_int_equal(flow[2]->config->congest.near_ns, 8000);
        assert_int_equal(flow[1]->config->mtu[3], RNL_REMOTE_MTU_NEAR);
        assert_int_equal(flow[2]->config->mtu[3], 0);
        assert_int_equal(test_hub_close(&h), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_any_length_cross_both_ways_at_once),
        cmocka_unit_test(near_is_what_calls_cost_under_one_kernel),
        cmocka_unit_test(bulk_goes_in_full_runs),
        cmocka_unit_test(under_one_kernel_a_datagram_is_as_long_as_a_run),
        cmocka_unit_test(a_round_trip_beside_that_of_bare_sockets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
