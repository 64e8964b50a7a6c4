/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_net_faults.c - faults of links: how often they strike, what they do, that a seed gives all of it, and the words
 * of scenarios. Bounds are those of the binomial distribution at five standard deviations; the seeds are fixed, so that
 * a run that passes once always does. */
#include "runnel/runnel.h"
#include "sim/net_bench.h"

enum { N = 40000 };
#define PLAIN ((struct vc_net_socket_config){.plain = 1})

static uint64_t square_root(uint64_t n)
{
    uint64_t r = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit; bit >>= 1)
        if ((r | bit) * (r | bit) <= n)
            r |= bit;
    return r;
}

/* count of n, each with probability parts / 10^9. */
static void assert_binomial(uint64_t count, uint64_t n, uint64_t parts)
{
    uint64_t mean = n * parts / RNL_CHANCE_ALWAYS;
    uint64_t deviation = square_root(n * (parts / 1000) / 1000 * ((RNL_CHANCE_ALWAYS - parts) / 1000) / 1000) + 1;
    if (count + 5 * deviation < mean || count > mean + 5 * deviation)
        fail_msg("%llu of %llu, where about %llu are to be expected", (unsigned long long)count, (unsigned long long)n,
                 (unsigned long long)mean);
}

/* What came of N packets of 100 bytes, 1 us apart, by their number. */
static struct outcome {
    uint32_t times[N], place[N]; /* place: the how manieth it was, first time */
    uint64_t came, twice, changed, cut, ce, not_marked, first_ns[N];
} out;

static struct vc_net_link_counts send_all(uint64_t seed, const char *faults, uint32_t packets)
{
    struct net_bench *b = net_bench_pair(seed, &(struct vc_net_link_config){.delay_ns = 5000}, PLAIN);
    struct vc_net_link_counts c;
    struct vc_net_counts all;
    const char *words[] = {"fault", "0>1", faults};
    memset(&out, 0, sizeof out);
    assert_int_equal(vc_net_verb_run(b->net, 3, words), 0);
    for (uint32_t i = 0; i < packets + 2000; i++) {
        static unsigned char data[2048], sent[100];
        struct rnl_socket_in in = {.at = data, .room = sizeof data};
        if (i < packets)
            assert_int_equal(net_bench_send(b, 0, 1, i, 100, RNL_ECN_ECT0), RNL_SOCKET_WENT);
        net_bench_run(b, (i + 1) * 1000);
        while (b->socket[1]->ops->recv(b->socket[1], &in, 1) == 1) {
            uint64_t number = N;
            memcpy(&number, data, in.bytes < 8 ? in.bytes : 8);
            out.came++;
            out.cut += in.bytes < 100;
            out.ce += in.ecn == RNL_ECN_CE;
            out.not_marked += in.ecn == RNL_ECN_NOT;
            if (in.bytes < 8 || number >= packets) {
                out.changed += in.bytes >= 8;
                continue;
            }
            memset(sent, (int)number, sizeof sent);
            memcpy(sent, &number, 8);
            out.changed += memcmp(sent, data, in.bytes) != 0;
            if (out.times[number]++ == 0) {
                out.place[number] = (uint32_t)out.came;
                out.first_ns[number] = net_bench_ns(b);
            } else {
                out.twice++;
            }
        }
    }
    vc_net_link_counts(b->net, 0, &c);
    vc_net_counts(b->net, &all);
    assert_int_equal(all.under_way, 0);
    net_bench_free(b);
    return c;
}

static void losses_are_as_frequent_as_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t parts;
    } cases[] = {{"loss=0.1%", 1000000},  {"loss=1%", 10000000},     {"loss=0.05", 50000000},
                 {"loss=50%", 500000000}, {"loss=100%", 1000000000}, {"loss=0%", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vc_net_link_counts c = send_all(20 + i, cases[i].text, N);
        assert_binomial(c.dropped[VC_NET_DROP_FAULT], N, cases[i].parts);
        assert_int_equal(out.came + c.dropped[VC_NET_DROP_FAULT], N);
        assert_int_equal(out.changed + out.cut + out.twice, 0);
    }
}

static void bursts_begin_and_end_as_asked_for(void **state)
{
    (void)state;
    struct vc_net_link_counts c = send_all(5, "burst=0.5%:20%", N);
    uint32_t bursts = 0;
    for (uint32_t i = 0; i < N; i++)
        bursts += !out.times[i] && (i == 0 || out.times[i - 1]);
    /* A burst lasts 5 packets in the mean and begins every 200: 1 / 41 of all are lost. */
    assert_in_range(c.dropped[VC_NET_DROP_FAULT], N / 41 * 6 / 10, N / 41 * 14 / 10);
    assert_in_range(c.dropped[VC_NET_DROP_FAULT] * 10 / bursts, 34, 66); /* some 200 bursts */
}

static void the_nth_and_the_named_are_lost_and_no_other(void **state)
{
    (void)state;
    send_all(1, "nth=7", 1000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(out.times[i], (i + 1) % 7 != 0);
    send_all(1, "drop=1+40+1000", 1000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(out.times[i], i != 0 && i != 39 && i != 999);
    send_all(1, "mtu=99", 10);
    assert_int_equal(out.came, 0);
    send_all(1, "mtu=100", 10);
    assert_int_equal(out.came, 10);
    send_all(1, "loss=100%,after=100us,for=50us", 1000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(out.times[i], i < 100 || i >= 150);
}

static void packets_come_twice_damaged_cut_marked_as_often_as_asked_for(void **state)
{
    (void)state;
    send_all(2, "dup=3%", N);
    assert_binomial(out.twice, N, 30000000);
    assert_int_equal(out.came, N + out.twice);
    send_all(3, "corrupt=2%", N);
    assert_int_equal(out.came, N);
    assert_binomial(out.changed, N, 20000000);
    send_all(4, "cut=10%", N);
    assert_binomial(out.cut, N, 100000000);
    assert_int_equal(out.changed, 0);
    send_all(5, "ce=25%", N);
    assert_binomial(out.ce, N, 250000000);
    send_all(6, "bleach=25%", N);
    assert_binomial(out.not_marked, N, 250000000);
    send_all(6, "bleach=100%,ce=100%", 100);
    assert_int_equal(out.not_marked, 100);
}

static void delays_keep_order_when_fixed_and_spread_evenly_when_not(void **state)
{
    (void)state;
    send_all(7, "delay=100us", 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(out.place[i], i + 1);
        assert_int_equal(out.first_ns[i], (i + 105) * 1000);
    }
    send_all(8, "delay=0us..50us", N);
    uint64_t sum = 0, overtaken = 0;
    for (uint32_t i = 0; i < N; i++) {
        assert_in_range(out.first_ns[i], (i + 5) * 1000, (i + 56) * 1000);
        sum += out.first_ns[i] - (i + 5) * 1000;
        overtaken += i && out.place[i] < out.place[i - 1];
    }
    assert_in_range(sum / N, 24500, 26500); /* looked at once a us: half of one more */
    assert_in_range(overtaken, N * 4 / 10, N * 5 / 10);
    send_all(9, "reorder=1%:20us", N);
    uint64_t late = 0;
    for (uint32_t i = 0; i < N; i++)
        late += out.first_ns[i] == (i + 25) * 1000;
    assert_binomial(late, N, 10000000);
    assert_int_equal(out.came, N);
}

static void one_fault_taken_away_leaves_the_others_where_they_were(void **state)
{
    (void)state;
    static uint32_t lost[N];
    send_all(11, "loss=5%,seed=3", N);
    for (uint32_t i = 0; i < N; i++)
        lost[i] = out.times[i] == 0;
    send_all(11, "loss=5%,dup=2%,delay=1us..9us,corrupt=0%,ce=3%,seed=3", N);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(out.times[i] == 0, lost[i]);
    uint32_t other = 0;
    send_all(11, "loss=5%,seed=4", N);
    for (uint32_t i = 0; i < N; i++)
        other += (out.times[i] == 0) != lost[i];
    assert_true(other > N / 50);
}

/* ---- the same run again ---- */

/* A busy little world: the hash of all that happened in it. */
static uint64_t world(uint64_t seed)
{
    enum { HOSTS = 12, PACKETS = 6000 };
    struct net_bench *b = net_bench_new(seed, HOSTS, 2);
    uint64_t number;
    const struct vc_net_link_config edge = {.bits_per_s = GBPS(10), .delay_ns = 2000, .buffer_bytes = 64000},
                                    trunk = {.bits_per_s = GBPS(10),
                                             .delay_ns = 5000,
                                             .buffer_bytes = 48000,
                                             .mark_bytes = 20000};
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_int_equal(vc_net_connect(b->net, i, HOSTS + i % 2, &edge, NULL), 0);
    assert_int_equal(vc_net_connect(b->net, HOSTS, HOSTS + 1, &trunk, NULL), 0);
    net_bench_start(b, PLAIN);
    rnl_sim_set_tie(b->sim, rnl_sim_tie_by_seed);
    assert_int_equal(vc_net_verb_run(b->net, 3,
                                     (const char *const[]){"fault", "s0:s1",
                                                           "loss=1%,burst=0.1%:30%,dup=1%,reorder=2%:30us,"
                                                           "delay=0us..3us,corrupt=0.5%,cut=0.5%,ce=1%,bleach=1%"}),
                     0);
    for (uint64_t i = 0; i < PACKETS; i++) {
        uint64_t draw = rnl_chance(seed, 1, 0, i);
        uint32_t from = (uint32_t)(draw % HOSTS), to = (uint32_t)(draw / HOSTS % HOSTS);
        (void)net_bench_send(b, from, to, i, (uint32_t)(draw >> 32) % 1473, (uint8_t)(draw >> 20 & 3));
        if (i == PACKETS / 2)
            vc_net_link_up(b->net, 3, 0);
        if (i % 16 == 0)
            net_bench_run(b, net_bench_ns(b) + 5000);
        if (i % 64 == 0)
            while (net_bench_recv(b, to, &number, NULL) >= 0)
                ;
    }
    net_bench_run(b, UINT64_MAX);
    uint64_t hash = rnl_sim_hash(b->sim);
    net_bench_free(b);
    return hash;
}

static void equal_seeds_give_equal_runs_whatever_compiled_them(void **state)
{
    (void)state;
    uint64_t first = world(1);
    assert_int_equal(world(1), first);
    assert_int_not_equal(world(2), first);
    /* Of every build alike. Another number after a change of the network's rules is no fault: then put it here. */
    if (first != 0x2e4b1ddca6db06c5u)
        fail_msg("the hash is 0x%016llx", (unsigned long long)first);
}

/* ---- words ---- */

static void a_wrong_word_is_an_error_that_says_what_could_stand_there(void **state)
{
    (void)state;
    struct net_bench *b = net_bench_pair(1, &(struct vc_net_link_config){.bits_per_s = GBPS(10)}, PLAIN);
    static const struct {
        const char *words[4];
        const char *says;
    } wrong[] = {{{"explode", "0"}, "no verb 'explode'"},
                 {{"rate", "0>1"}, "LINKS RATE|none"},
                 {{"rate", "0>1", "10"}, "10Gb/s"},
                 {{"rate", "0>1", "fast"}, "10Gb/s"},
                 {{"rate", "0>2", "10Gb/s"}, "0 to 1 for a host"},
                 {{"rate", "s0", "10Gb/s"}, "0 switches"},
                 {{"rate", "0>0", "10Gb/s"}, "no link that there is"},
                 {{"rate", "0>1x", "10Gb/s"}, "names no links"},
                 {{"delay", "all", "5"}, "5us"},
                 {{"delay", "all", "99999999999999999999s"}, "5us"},
                 {{"buffer", "all", "1.5B"}, "192kB"},
                 {{"mtu", "all", "20"}, "68 to 65535"},
                 {{"mtu", "all", "1500", "loud"}, "silent"},
                 {{"fault", "all", "loss=2"}, "probability"},
                 {{"fault", "all", "part=0"}, "not for links"},
                 {{"partition"}, "HOSTS..."},
                 {{"partition", "0-2"}, "up to 1"},
                 {{"block", "0", "1-0"}, "0-3+7"},
                 {{"heal", "now"}, "nothing"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int count = 0;
        while (count < 4 && wrong[i].words[count])
            count++;
        assert_int_equal(vc_net_verb_run(b->net, count, wrong[i].words), RNL_ERR_ARG);
        if (strstr(rnl_last_error()->text, wrong[i].says) == NULL)
            fail_msg("%s: '%s' does not say '%s'", wrong[i].words[0], rnl_last_error()->text, wrong[i].says);
    }
    assert_int_equal(vc_net_link_get(b->net, 0)->bits_per_s, GBPS(10));
    net_bench_free(b);
}

static void words_build_a_network(void **state)
{
    (void)state;
    struct net_bench *b = net_bench_new(1, 4, 0);
    uint64_t number;
    static const char *const words[][3] = {{"switches", "2"},         {"link", "0", "s0"},      {"link", "1", "s0"},
                                           {"link", "2", "s1"},       {"link", "3", "s1"},      {"link", "s0", "s1"},
                                           {"rate", "all", "10Gb/s"}, {"delay", "s0:s1", "3us"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_equal(vc_net_verb_run(b->net, words[i][2] ? 3 : 2, words[i]), 0);
    assert_int_equal(vc_net_verb_run(b->net, 2, (const char *const[]){"switches", "3"}), RNL_ERR_ARG);
    assert_int_equal(vc_net_verb_run(b->net, 3, (const char *const[]){"link", "0", "s2"}), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "2 switches"));
    assert_int_equal(vc_net_verb_run(b->net, 3, (const char *const[]){"link", "0", "0"}), RNL_ERR_ARG);
    assert_int_equal(vc_net_links(b->net), 10);
    net_bench_start(b, PLAIN);
    for (uint32_t from = 0; from < 4; from++)
        for (uint32_t to = 0; to < 4; to++)
            assert_int_equal(net_bench_send(b, from, to, 4 * from + to, 100, 0), RNL_SOCKET_WENT);
    net_bench_run(b, UINT64_MAX);
    for (uint32_t to = 0; to < 4; to++)
        for (int i = 0; i < 4; i++)
            assert_int_equal(net_bench_recv(b, to, &number, NULL), 100);
    struct vc_net_link_counts c;
    vc_net_link_counts(b->net, 8, &c);
    assert_int_equal(c.delivered, 4); /* 0 and 1 to 2 and 3 */
    net_bench_free(b);
}

static void words_change_the_links_they_name(void **state)
{
    (void)state;
    struct net_bench *b = net_bench_new(1, 3, 2);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(vc_net_connect(b->net, i, 3, &(struct vc_net_link_config){0}, NULL), 0);
    assert_int_equal(vc_net_connect(b->net, 3, 4, &(struct vc_net_link_config){0}, NULL), 0);
    static const char *const words[][3] = {{"rate", "all", "1Gb/s"},     {"rate", "1", "2.5Gb/s"},
                                           {"rate", "s0>2", "100Mb/s"},  {"delay", "s0:s1", "1.5us"},
                                           {"buffer", "s0>s1", "192kB"}, {"mark", "s1>s0", "64KiB"},
                                           {"buffer", "0", "unbounded"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_equal(vc_net_verb_run(b->net, 3, words[i]), 0);
    static const uint64_t rate[] = {1000000000, 1000000000, 2500000000, 2500000000,
                                    1000000000, 100000000,  1000000000, 1000000000};
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(vc_net_link_get(b->net, i)->bits_per_s, rate[i]);
        assert_int_equal(vc_net_link_get(b->net, i)->delay_ns, i < 6 ? 0 : 1500);
        assert_int_equal(vc_net_link_get(b->net, i)->buffer_bytes, i == 6 ? 192000 : 0);
        assert_int_equal(vc_net_link_get(b->net, i)->mark_bytes, i == 7 ? 65536 : 0);
    }
    uint32_t link;
    assert_int_equal(vc_net_find_link(b->net, 4, 3, &link), 0);
    assert_int_equal(link, 7);
    assert_int_equal(vc_net_find_link(b->net, 0, 1, &link), RNL_ERR_ARG);
    net_bench_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_as_frequent_as_asked_for),
        cmocka_unit_test(bursts_begin_and_end_as_asked_for),
        cmocka_unit_test(the_nth_and_the_named_are_lost_and_no_other),
        cmocka_unit_test(packets_come_twice_damaged_cut_marked_as_often_as_asked_for),
        cmocka_unit_test(delays_keep_order_when_fixed_and_spread_evenly_when_not),
        cmocka_unit_test(one_fault_taken_away_leaves_the_others_where_they_were),
        cmocka_unit_test(equal_seeds_give_equal_runs_whatever_compiled_them),
        cmocka_unit_test(a_wrong_word_is_an_error_that_says_what_could_stand_there),
        cmocka_unit_test(words_build_a_network),
        cmocka_unit_test(words_change_the_links_they_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
