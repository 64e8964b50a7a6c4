/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_net_scale.c - a thousand hosts. Prints how many packet events a second were simulated; that is no verdict. */
#include "sim/net_bench.h"
#include "support/must.h"
#include "support/random.h"

#include <stdio.h>

enum { HOSTS = 1000 };

static void say_speed(const char *what, struct net_bench *b, uint64_t began_ns)
{
    struct rnl_net_counts c;
    rnl_net_counts(b->net, &c);
    uint64_t ns = test_cpu_ns() - began_ns;
    printf("%s: %llu packets, %llu arrivals at nodes, %.2f M a second of CPU time, at most %llu packets under way\n",
           what, (unsigned long long)c.sent, (unsigned long long)c.hops, (double)c.hops * 1e3 / (double)ns,
           (unsigned long long)c.pool);
}

static void a_thousand_hosts_all_to_all(void **state)
{
    (void)state;
    const uint32_t step = test_slowness(); /* the k-th hosts only, where every access is checked */
    struct net_bench *b = net_bench_new(3, HOSTS, 1);
    struct rnl_net_counts c;
    assert_int_equal(
        rnl_net_star(b->net, HOSTS,
                     &(struct rnl_net_link_config){.bits_per_s = GBPS(10), .delay_ns = 5000, .buffer_bytes = 1 << 20}),
        0);
    net_bench_start(b, (struct rnl_net_socket_config){.plain = 1, .receive_bytes = 8 << 20});
    uint64_t began_ns = test_cpu_ns(), sent = 0, taken = 0, number;
    for (uint32_t round = 1; round < HOSTS; round += step) {
        for (uint32_t from = 0; from < HOSTS; from++) {
            uint32_t to = (from + round) % HOSTS;
            assert_int_equal(net_bench_send(b, from, to, (uint64_t)from << 32 | to, 64, 0), RNL_SOCKET_WENT);
            sent++;
        }
        net_bench_run(b, net_bench_ns(b) + 200);
    }
    net_bench_run(b, UINT64_MAX);
    say_speed("all to all, 64 bytes", b, began_ns);
    rnl_net_counts(b->net, &c);
    assert_int_equal(c.delivered, sent);
    for (uint32_t to = 0; to < HOSTS; to++) {
        while (net_bench_recv(b, to, &number, NULL) == 64) {
            assert_int_equal((uint32_t)number, to);
            taken++;
        }
    }
    assert_int_equal(taken, sent);
    rnl_net_counts(b->net, &c);
    assert_int_equal(c.under_way, 0);
    net_bench_free(b);
}

static void a_hundred_senders_into_a_shallow_queue(void **state)
{
    (void)state;
    enum { SENDERS = 100, EACH = 2000 };
    const uint64_t each = EACH / test_slowness();
    struct net_bench *b = net_bench_new(4, SENDERS + 1, 1);
    const struct rnl_net_link_config in = {.bits_per_s = GBPS(25), .delay_ns = 4000, .buffer_bytes = 1 << 20},
                                     out = {.bits_per_s = GBPS(10), .delay_ns = 4000, .buffer_bytes = 48000};
    struct rnl_net_link_counts c;
    uint32_t slow;
    for (uint32_t i = 0; i < SENDERS; i++)
        assert_int_equal(rnl_net_connect(b->net, i, SENDERS + 1, &in, NULL), 0);
    assert_int_equal(rnl_net_connect(b->net, SENDERS + 1, SENDERS, &out, &slow), 0);
    net_bench_start(b, (struct rnl_net_socket_config){.plain = 1, .receive_bytes = 1 << 30});
    assert_int_equal(rnl_net_watch(b->net, slow), 0);
    uint64_t began_ns = test_cpu_ns();
    for (uint64_t k = 0; k < each; k++) {
        for (uint32_t i = 0; i < SENDERS; i++)
            (void)net_bench_send(b, i, SENDERS, k, 1400, 0);
        net_bench_run(b, net_bench_ns(b) + 10000);
    }
    net_bench_run(b, UINT64_MAX);
    say_speed("100 into one, 1400 bytes", b, began_ns);
    rnl_net_link_counts(b->net, slow, &c);
    assert_int_equal(c.delivered + c.dropped[RNL_NET_DROP_QUEUE], SENDERS * each);
    assert_true(c.dropped[RNL_NET_DROP_QUEUE] > SENDERS * each / 2);
    assert_in_range(c.most_bytes, 48000 - 1466, 48000);
    /* A full queue is 38.4 us long, less what the last packet leaves. */
    assert_in_range(rnl_net_wait_ns(b->net, slow, 1000), 36000, 39600);
    net_bench_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_hosts_all_to_all),
        cmocka_unit_test(a_hundred_senders_into_a_shallow_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
