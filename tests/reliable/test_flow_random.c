/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_flow_random.c - flows over random networks: whatever is lost, doubled, changed, late or paused, every unit
 * arrives and every note comes back once, memory stays bounded, and nothing is stuck. A seed that fails is printed;
 * with numbers as arguments only these seeds are run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reliable/lab.h"
#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t only_from, only_to;

static uint32_t rarely(struct test_random *r, uint32_t most)
{
    return test_random_below(r, 2) ? 0 : test_random_below(r, most + 1);
}

static void configure(struct lab_config *c, uint64_t seed)
{
    struct test_random r = test_random_of(seed, 77);
    lab_defaults(c);
    c->seed = seed;
    c->flows = 1 + test_random_below(&r, test_random_one_in(&r, 4) ? 60 : 4);
    const uint32_t rates[] = {80, 800, 8000, 80000};
    c->ps_per_byte = rates[test_random_below(&r, 4)];
    c->base_ns = 5000 + test_random_below(&r, test_random_one_in(&r, 4) ? 2000000 : 100000);
    c->buffer = 3000 + test_random_below(&r, 300000);
    c->loss_ppm = rarely(&r, 300000);
    c->duplicate_ppm = rarely(&r, 100000);
    c->corrupt_ppm = rarely(&r, 50000);
    c->jitter_ns = rarely(&r, 200000);
    c->pause_ppm = rarely(&r, 20000);
    c->pause_from_ns = 10000;
    c->pause_to_ns = 10000 + test_random_below(&r, 2000000);
    c->pause_who = 1 + test_random_below(&r, 3);
    c->unit = 8 + test_random_below(&r, 1380);
    c->units = 1 + test_random_below(&r, 3000 / c->flows);
    c->stagger_ns = rarely(&r, 1000000);
    c->own_base = (uint8_t)test_random_below(&r, 2);
    c->flow.law = (uint8_t)test_random_below(&r, RNL_CONGEST_LAWS);
    c->flow.ecn = (uint8_t)test_random_below(&r, 2);
    c->mark_bytes = rarely(&r, 50000);
    c->bleach = test_random_one_in(&r, 4) ? 1 + test_random_below(&r, 2) : 0;
    if (test_random_below(&r, 2)) {
        c->flow.mtu[0] = 1450;
        c->flow.mtu[1] = 2900;
        c->flow.mtu[2] = 8972;
        c->mtu = 1450 + test_random_below(&r, 9000);
        c->mtu_at_ns = rarely(&r, 5000000);
    }
    if (test_random_one_in(&r, 4)) {
        c->dark_from_ns = test_random_below(&r, 2000000);
        c->dark_to_ns = c->dark_from_ns + test_random_below(&r, 1000000000);
    }
    c->flow.ack_every = 1 + test_random_below(&r, 40);
    c->flow.ack_delay_ns = 1000 + test_random_below(&r, 200000);
    c->flow.pace.burst = 1 + test_random_below(&r, 64);
    c->flow.dead_ns = 0;
    c->duration_ns = 600 * (uint64_t)1000000000;
}

static void every_unit_arrives_over_any_network(void **state)
{
    (void)state;
    uint64_t from = only_from ? only_from : 1, to = only_from ? only_to : 400 / test_slowness();
    for (uint64_t seed = from; seed <= to; seed++) {
        struct lab_config c;
        struct lab_result r;
        configure(&c, seed);
        const char *wrong = lab_run(&c, &r);
        if (wrong || r.unfinished)
            fail_msg("seed %llu: %s (%u flows unfinished after %llu ms; repeat with this number as argument)",
                     (unsigned long long)seed, wrong ? wrong : "stuck", r.unfinished,
                     (unsigned long long)(r.end_ns / 1000000));
        assert_true(r.memory <= 2 * c.flows * rnl_sent_bytes(RNL_SENT_MAX) * 3 / 2);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        only_from = strtoull(argv[1], NULL, 10);
        only_to = argc > 2 ? strtoull(argv[2], NULL, 10) : only_from;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_unit_arrives_over_any_network)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
