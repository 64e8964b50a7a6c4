/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_figures.c - what a flow reaches on a virtual network, each figure with its bound: a link of 10 Gb/s, 20 us,
 * units of 1400 bytes, a queue of 192 kB, unless said. Virtual time: the figures are the same on every machine.
 *
 *     unit-flow-figures         prints and checks them
 *     unit-flow-figures laws    prints the laws of congestion control beside each other */
#include "flow/lab.h"
#include "support/unit.h"

#include <stdio.h>

enum { SEEDS = 20 };
static const uint32_t losses_ppm[] = {0, 1000, 10000, 50000};

static struct lab_result run(const struct lab_config *c)
{
    struct lab_result r;
    const char *wrong = lab_run(c, &r);
    if (wrong)
        fail_msg("seed %llu: %s", (unsigned long long)c->seed, wrong);
    return r;
}

static void at_least(const char *what, uint64_t is, uint64_t bound)
{
    print_message("  %-64s %8llu  (at least %llu)\n", what, (unsigned long long)is, (unsigned long long)bound);
    assert_true(is >= bound);
}

static void at_most(const char *what, uint64_t is, uint64_t bound)
{
    print_message("  %-64s %8llu  (at most %llu)\n", what, (unsigned long long)is, (unsigned long long)bound);
    assert_true(is <= bound);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

/* Goodput in thousandths of what the link carries without headers. What is lost has used its share of the link. */
static void one_flow_at_random_loss(void **state)
{
    (void)state;
    const uint32_t bound[] = {980, 980, 970, 930};
    for (int b = 0; b < 2; b++) {
        for (int i = 0; i < 4; i++) {
            struct lab_config c;
            char what[80];
            lab_defaults(&c);
            c.buffer = b ? 48000 : 192000;
            c.loss_ppm = losses_ppm[i];
            snprintf(what, sizeof what, "goodput of one flow, %u kB, %u.%u %% loss, 1/1000", c.buffer / 1000,
                     c.loss_ppm / 10000, c.loss_ppm / 1000 % 10);
            at_least(what, run(&c).per_mille, bound[i]);
        }
    }
}

static void long_flows_share(void **state)
{
    (void)state;
    for (unsigned flows = 2; flows <= 16; flows += 14) {
        struct lab_config c;
        char what[80];
        lab_defaults(&c);
        c.flows = flows;
        c.stagger_ns = 100000;
        struct lab_result r = run(&c);
        snprintf(what, sizeof what, "%u long flows: Jain's index, 1/1000", flows);
        at_least(what, r.jain_mille, 980);
        snprintf(what, sizeof what, "%u long flows: drops, ppm", flows);
        at_most(what, r.drop_ppm, 0);
        snprintf(what, sizeof what, "%u long flows: median queue, us", flows);
        at_most(what, r.queue50_us, 25);
        snprintf(what, sizeof what, "%u long flows: goodput, 1/1000", flows);
        at_least(what, r.per_mille, 980);
    }
}

static void many_senders_into_one(void **state)
{
    (void)state;
    const struct {
        unsigned flows;
        uint32_t buffer;
        uint64_t last, drops;
    } rows[] = {
        {16, 192000, 1050, 20000}, {100, 192000, 1200, 60000}, {16, 48000, 1050, 80000}, {100, 48000, 1200, 200000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t ends[SEEDS], dropped[SEEDS];
        struct lab_config c;
        char what[80];
        lab_defaults(&c);
        c.flows = rows[i].flows;
        c.buffer = rows[i].buffer;
        c.units = 180;
        c.duration_ns = 2000000000;
        uint64_t ideal_ns = c.flows * c.units * (c.unit + 98) * c.ps_per_byte / 1000 + c.base_ns;
        for (c.seed = 1; c.seed <= SEEDS; c.seed++) {
            struct lab_result r = run(&c);
            assert_int_equal(r.unfinished, 0);
            ends[c.seed - 1] = r.last_ns * 1000 / ideal_ns;
            dropped[c.seed - 1] = r.drop_ppm;
        }
        snprintf(what, sizeof what, "%u senders of 252 kB, %u kB: last one done, 1/1000 of ideal", c.flows,
                 c.buffer / 1000);
        at_most(what, median(ends, SEEDS), rows[i].last);
        snprintf(what, sizeof what, "%u senders of 252 kB, %u kB: drops, ppm", c.flows, c.buffer / 1000);
        at_most(what, median(dropped, SEEDS), rows[i].drops);
    }
}

static void small_messages_at_loss(void **state)
{
    (void)state;
    struct lab_result r[2];
    for (int i = 0; i < 2; i++) {
        struct lab_config c;
        lab_defaults(&c);
        c.app = LAB_ECHO;
        c.unit = 8;
        c.units = 100000;
        c.loss_ppm = i ? 10000 : 0;
        c.duration_ns = 100000000000;
        r[i] = run(&c);
        assert_int_equal(r[i].trips, c.units);
    }
    at_most("8 B round trip at 1 % loss: mean, 1/1000 of that without", r[1].trip_mean_ns * 1000 / r[0].trip_mean_ns,
            3000);
    at_most("8 B round trip at 1 % loss: p99.9, 1/1000 of that without", r[1].trip999_ns * 1000 / r[0].trip999_ns,
            30000);
}

static void marks_shorten_the_queue(void **state)
{
    (void)state;
    struct lab_config c;
    lab_defaults(&c);
    c.flows = 16;
    c.stagger_ns = 100000;
    c.flow.ecn = 1;
    c.mark_bytes = 20000;
    struct lab_result r = run(&c);
    at_least("16 flows, marks from 20 kB on: goodput, 1/1000", r.per_mille, 950);
    at_most("16 flows, marks from 20 kB on: median queue, us", r.queue50_us, 20);
}

/* ---- the laws beside each other ---- */

static void laws(void)
{
    static const char *const names[] = {"DLF", "NewReno", "CUBIC"};
    printf("%-8s | one flow, 48 kB, loss 0 / 0.1 / 1 / 5 %%: goodput 1/1000 | 2, 16 flows, 192 kB: goodput, Jain, "
           "queue us, "
           "drops ppm | 16, 100 x 252 kB into one: last 1/1000 of ideal, drops ppm\n",
           "algorithm");
    for (unsigned algorithm = 0; algorithm < RNL_CONGEST_ALGORITHMS; algorithm++) {
        printf("%-8s |", names[algorithm]);
        struct lab_config c;
        struct lab_result r;
        for (int i = 0; i < 4; i++) {
            lab_defaults(&c);
            c.flow.algorithm = (uint8_t)algorithm;
            c.buffer = 48000;
            c.loss_ppm = losses_ppm[i];
            printf(" %u", lab_run(&c, &r) ? 0 : r.per_mille);
        }
        printf(" |");
        for (unsigned flows = 2; flows <= 16; flows += 14) {
            lab_defaults(&c);
            c.flow.algorithm = (uint8_t)algorithm;
            c.flows = flows;
            c.stagger_ns = 100000;
            lab_run(&c, &r);
            printf(" %u %u %u %u;", r.per_mille, r.jain_mille, r.queue50_us, r.drop_ppm);
        }
        printf(" |");
        for (unsigned flows = 16; flows <= 100; flows += 84) {
            lab_defaults(&c);
            c.flow.algorithm = (uint8_t)algorithm;
            c.flows = flows;
            c.units = 180;
            c.duration_ns = 2000000000;
            lab_run(&c, &r);
            printf(" %llu %u;",
                   (unsigned long long)(r.last_ns * 1000 / (flows * 180 * (uint64_t)(1498 * 800 / 1000) + 20000)),
                   r.drop_ppm);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "laws")) {
        laws();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_flow_at_random_loss), cmocka_unit_test(long_flows_share),
        cmocka_unit_test(many_senders_into_one),   cmocka_unit_test(small_messages_at_loss),
        cmocka_unit_test(marks_shorten_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
