/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_kernel.c - two endpoints that take each other for processes of different hosts, over the kernel's sockets on
 * loopback: messages arrive whole, in order, both ways. Prints a round trip beside that of bare connected sockets. */
#include "support/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint/net.h"
#include "net/datagram/udp.h"
#include "remote/remote_internal.h"
#include "stream/stream_internal.h"
#include "support/hub.h"
#include "support/loop.h"

enum { NOTE = 2, BULK, BULKS = 40, LONGEST = 1 << 20, JUMBO = 8972 };

static void open_two(struct test_hub *h)
{
    unsetenv("RNL_TEST_REMOTE"); /* a network of this test's own */
    test_hub_open(h, 2, NULL);
    test_loop_attach(h->ep[0], NULL);
    test_loop_attach(h->ep[1], NULL);
}

/* ---- messages ---- */

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
    const struct rnl_message b = {.peer = 1, .handler = BULK, .bound = LONGEST};
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
    const struct rnl_flow *f = &h.ep[0]->peer[1].conn->remote->flow;
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
            flow[k] = &h.ep[0]->peer[k].conn->remote->flow;
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
        cmocka_unit_test(near_is_what_calls_cost_under_one_kernel),
        cmocka_unit_test(bulk_goes_in_full_runs),
        cmocka_unit_test(under_one_kernel_a_datagram_is_as_long_as_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
