/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_path_measure.c - the measurement of one direction of a path, over a network in memory that loses, reorders,
 * repeats and narrows. Time is the test's. */
#include "net/probe/path_measure.h"

#include <stdbool.h>

#include "support/unit.h"

#define MS ((uint64_t)1000 * 1000)
enum { QUEUE = 4096, HEAD_BYTES = 1200, HOSTS = 2 };

struct net {
    struct rnl_path_sender sender;
    struct rnl_path_receiver receiver;
    uint64_t now_ns, trip_ns;
    uint32_t takes, passes;               /* bytes that the interface, the path takes */
    unsigned lose_every, lose_echo_every; /* 0 = none */
    unsigned late_every, twice_every;     /* of the train: so much later than what follows; twice */
    bool deaf;                            /* nothing comes back any more */
    unsigned sent, echoes, n;
    struct {
        uint64_t at_ns;
        uint32_t number;
    } queue[QUEUE];
};

static void put(struct net *net, uint32_t number, uint64_t at_ns)
{
    assert_true(net->n < QUEUE);
    net->queue[net->n].number = number;
    net->queue[net->n++].at_ns = at_ns;
}

static enum rnl_path_sent send_it(void *arg, uint32_t number, uint32_t bytes)
{
    struct net *net = arg;
    if (bytes > net->takes)
        return RNL_PATH_TOO_LONG;
    net->sent++;
    if (bytes > net->passes || (net->lose_every && net->sent % net->lose_every == 0))
        return RNL_PATH_WENT;
    const bool train = number < RNL_PATH_NUMBER_SIZE;
    const bool late = train && net->late_every && number % net->late_every == 1;
    put(net, number, net->now_ns + net->trip_ns / 2 + (late ? 20 * MS : 0));
    if (train && net->twice_every && number % net->twice_every == 2)
        put(net, number, net->now_ns + net->trip_ns / 2);
    return RNL_PATH_WENT;
}

/* What has arrived by now is received and echoed; the way back takes no time but counts in the trip. */
static void arrive(struct net *net)
{
    unsigned left = 0;
    for (unsigned i = 0; i < net->n; i++) {
        if (net->queue[i].at_ns > net->now_ns) {
            net->queue[left++] = net->queue[i];
            continue;
        }
        const uint32_t number = net->queue[i].number;
        rnl_path_receive(&net->receiver, number);
        net->echoes++;
        if (!net->deaf && !(net->lose_echo_every && net->echoes % net->lose_echo_every == 0))
            rnl_path_echo(&net->sender, number, &net->receiver.counts, net->now_ns);
    }
    net->n = left;
}

static struct rnl_path_result run(struct net *net)
{
    struct rnl_path_result r;
    uint64_t begun;
    if (net->takes == 0)
        net->takes = 1472;
    if (net->passes == 0)
        net->passes = net->takes;
    if (net->trip_ns == 0)
        net->trip_ns = MS / 5;
    begun = net->now_ns = 1000 * MS;
    rnl_path_begin(&net->sender, HOSTS, HEAD_BYTES, net->now_ns);
    while (rnl_path_deadline_ns(&net->sender) != UINT64_MAX) {
        rnl_path_step(&net->sender, net->now_ns, send_it, net);
        net->now_ns += MS / 10;
        arrive(net);
        assert_true(net->now_ns - begun < 10000 * MS);
    }
    rnl_path_result(&net->sender, &r);
    return r;
}

static void a_good_path_has_no_loss_and_its_whole_mtu(void **state)
{
    struct net net = {.takes = 1472};
    (void)state;
    const struct rnl_path_result r = run(&net);
    assert_int_equal(r.done, 1);
    assert_int_equal(r.sent, RNL_PATH_TRAIN_MOST);
    assert_int_equal(r.counts.came, r.sent);
    assert_int_equal(r.counts.reordered + r.counts.repeated, 0);
    assert_int_equal(r.passes, 1472);
    assert_int_equal(r.takes, 1472);
    assert_int_equal(r.echoes, r.sent);
    assert_in_range(r.least_ns, 1, MS);
    assert_true(r.half_ns >= r.least_ns && r.most_ns >= r.half_ns);
    assert_true(net.now_ns < 3000 * MS);
}

static void the_longest_that_passes_is_found_to_the_byte(void **state)
{
    const uint32_t sizes[] = {1200, 1201, 1372, 1471, 1472, 4052, 8871, 8972, RNL_PATH_BYTES_MOST};
    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned k = i; k < sizeof sizes / sizeof *sizes; k++) {
            struct net net = {.takes = sizes[k], .passes = sizes[i], .lose_every = 17, .lose_echo_every = 13};
            const struct rnl_path_result r = run(&net);
            assert_int_equal(r.takes, sizes[k]);
            assert_int_equal(r.passes, sizes[i]);
            assert_int_equal(r.done, 1);
        }
}

static void lost_echoes_are_no_loss(void **state)
{
    struct net net = {.lose_echo_every = 3};
    (void)state;
    const struct rnl_path_result r = run(&net);
    assert_int_equal(r.done, 1);
    assert_int_equal(r.counts.came, r.sent);
    assert_true(r.echoes < r.sent);
}

static void what_is_lost_is_counted(void **state)
{
    struct net net = {.lose_every = 20};
    (void)state;
    const struct rnl_path_result r = run(&net);
    assert_int_equal(r.done, 1);
    assert_in_range(r.sent - r.counts.came, 19, 21);
}

static void what_is_overtaken_or_comes_twice_is_no_loss(void **state)
{
    struct net net = {.late_every = 40, .twice_every = 100};
    (void)state;
    const struct rnl_path_result r = run(&net);
    assert_int_equal(r.counts.came, r.sent);
    assert_int_equal(r.counts.reordered, 10);
    assert_int_equal(r.counts.repeated, 4);
}

static void a_path_that_breaks_off_ends_and_says_so(void **state)
{
    struct net net = {.deaf = true};
    (void)state;
    const struct rnl_path_result r = run(&net);
    assert_int_equal(r.done, 0);
    assert_int_equal(r.passes, HEAD_BYTES);
    assert_int_equal(r.sent, RNL_PATH_TRAIN_MOST);
}

static void counts_that_cannot_be_true_are_not_believed(void **state)
{
    struct rnl_path_sender s;
    struct rnl_path_result r;
    const struct rnl_path_counts lies = {.came = 9999};
    (void)state;
    rnl_path_begin(&s, HOSTS, HEAD_BYTES, 0);
    rnl_path_echo(&s, 5, &lies, MS);
    rnl_path_echo(&s, RNL_PATH_NUMBER_SIZE + 9000, &lies, MS);
    rnl_path_echo(&s, RNL_PATH_NUMBER_TALLY, &lies, MS);
    rnl_path_echo(&s, UINT32_MAX, &lies, MS);
    rnl_path_result(&s, &r);
    assert_int_equal(r.done, 0);
    assert_int_equal(r.counts.came, 0);
    assert_int_equal(r.passes, HEAD_BYTES);
}

static void many_hosts_send_less_each(void **state)
{
    struct rnl_path_sender few, many;
    (void)state;
    rnl_path_begin(&few, 2, HEAD_BYTES, 0);
    rnl_path_begin(&many, 500, HEAD_BYTES, 0);
    assert_true(many.train < few.train && many.train > 0 && many.window < few.window && many.window > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_path_has_no_loss_and_its_whole_mtu),
        cmocka_unit_test(the_longest_that_passes_is_found_to_the_byte),
        cmocka_unit_test(lost_echoes_are_no_loss),
        cmocka_unit_test(what_is_lost_is_counted),
        cmocka_unit_test(what_is_overtaken_or_comes_twice_is_no_loss),
        cmocka_unit_test(a_path_that_breaks_off_ends_and_says_so),
        cmocka_unit_test(counts_that_cannot_be_true_are_not_believed),
        cmocka_unit_test(many_hosts_send_less_each),
    };
    return cmocka_run_group_tests_name("path_measure", tests, NULL, NULL);
}
