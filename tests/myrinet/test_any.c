/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_any.c - experiments drawn at random: any system, measure, size and machine. Each is refused with a sentence, or
 * ends with a figure; it hangs or fails only for what is on a list here. No byte is made or lost but by a named fault,
 * and it is the same once more.
 *
 *     test_any [EXPERIMENTS [FIRST SEED]] */
#include "runnel/runnel.h"
#include "sim/engine/random.h"
#include "sim/myrinet/experiments/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed, drawn;

static void must(int true_, const char *what, int line)
{
    if (true_)
        return;
    fprintf(stderr, "%s:%d: %s\nnot ok - once more with: sim-myrinet-any 1 %llu\n", __FILE__, line, what,
            (unsigned long long)seed);
    exit(1);
}
#define MUST(x) must(x, #x, __LINE__)

static uint32_t below(uint32_t n)
{
    return (uint32_t)rnl_sim_below(rnl_sim_random(seed, 0, 0, drawn++), n);
}

static uint32_t draw_bytes(uint32_t most)
{
    static const uint32_t borders[] = {4, 8, 16, 60, 124, 128, 132, 248, 256, 1024, 1028, 2048, 4096, 8192, 8196};
    uint32_t n = below(2) ? borders[below(sizeof borders / sizeof borders[0])] : 4 + 4 * below(4000);
    return n < most || below(20) == 0 ? n : most;
}

static void draw_machine(struct myri_machine *m)
{
    static const char *const names[] = {"H-A", "H-FM2", "H-P", "H-PP", "H-S"};
    MUST(myri_machine_builtin(names[below(5)], m) == 0);
    for (uint32_t changes = below(4); changes; changes--) {
        char text[64];
        uint32_t k = below(MYRI_M_page + 1); /* what came later changes nothing that is measured here */
        double v = k == MYRI_M_page ? (double)(1024u << below(5)) : m->v[k] * pow(2, (double)below(65) / 16 - 2);
        if (below(6) == 0)
            v = 0;
        snprintf(text, sizeof text, "%s=%.9g", myri_machine_name_of((enum myri_machine_value)k), v);
        (void)myri_machine_set(m, text); /* refused if it is out of its bounds */
    }
}

/* Whether it is the second firmware of that one. */
static int is_tuned_of(const struct myri_system *s, const struct myri_system *plain)
{
    const char *at = strstr(s->name, "-tuned");
    size_t n = at ? (size_t)(at - s->name) : 0;
    return at && strncmp(s->name, plain->name, n) == 0 && strcmp(at + 6, plain->name + n) == 0;
}

/* BIP's and PM's were there before a seed had found something; others are drawn last, in place of their plain one. */
static int is_tuned_later(const struct myri_system *s)
{
    return strstr(s->name, "-tuned") && strncmp(s->name, "bip", 3) != 0 && strncmp(s->name, "pm", 2) != 0;
}

static void draw(struct myri_experiment *x)
{
    struct myri_machine m;
    uint32_t n = 0, first = 0, later;
    drawn = 0;
    const struct myri_system *drawn_from[64], *behind[64], *cache = myri_system_find("pm-cache");
    while (strcmp(myri_systems[first]->name, "probe") != 0)
        first++;
    for (uint32_t i = later = 0; myri_systems[i]; i++) /* those behind the probe came later, and are drawn last */
        if (i <= first && myri_systems[i] != cache && !is_tuned_later(myri_systems[i]))
            drawn_from[n++] = myri_systems[i];
        else if (i > first && !is_tuned_later(myri_systems[i]))
            behind[later++] = myri_systems[i];
    const struct myri_system *s = drawn_from[below(n)];
    draw_machine(&m);
    myri_experiment_init(x, s, &m, (enum myri_measure)below(MYRI_ANSWER_COST + 1), draw_bytes(s->most));
    x->count = 1 + below(60);
    x->seed = seed;
    if (s->packet_most && below(2))
        x->packet = s->packet_least + 4 * below(1 + (s->packet_most - s->packet_least) / 4);
    else if (below(30) == 0)
        x->packet = below(5000);
    x->buffers = below(3) || !s->buffers_most ? 0 : below(s->buffers_most + 2);
    x->senders = x->measure == MYRI_GOODPUT ? below(9) : below(30) == 0;
    x->processes = s->processes_most || below(30) == 0 ? below(s->processes_most + 2) : 0;
    x->slow_us = below(2) ? 0 : below(80);
    x->attention = (enum myri_attention)below(3);
    x->bad_per_2_32 = below(40) ? 0 : (uint64_t)1 << (22 + below(9));
    x->cold = below(4) == 0;
    x->no_skip = below(20) == 0;
    x->jitter_us = below(4) ? 16 : 0;
    /* What came later is drawn last, or the seeds that have found something would be other experiments. */
    if (x->measure == MYRI_GOODPUT && below(4) == 0)
        x->measure = MYRI_WIRE_COST;
    if (below(6) == 0)
        x->places = below(40);
    if (strcmp(s->name, "pm-uncached") == 0 && below(2))
        x->system = cache;
    if (below(3) == 0) {
        x->system = behind[below(later)];
        x->bytes = x->bytes < x->system->most ? x->bytes : x->system->most;
    }
    if (x->measure == MYRI_WIRE_COST && below(2))
        x->measure = (enum myri_measure)(MYRI_TO_ALL + below(3));
    if (x->measure == MYRI_TO_ALL || x->measure == MYRI_ALL_RATE) {
        x->receivers = below(9);
        x->bringer = (enum myri_bringer)below(3);
        x->senders = 0;
    }
    for (uint32_t i = 0; myri_systems[i]; i++)
        if (is_tuned_later(myri_systems[i]) && is_tuned_of(myri_systems[i], x->system) && below(2)) {
            x->system = myri_systems[i];
            break;
        }
}

/* Both send first and take in then: with a `send` that returns when the other has made room, neither comes to that. */
static int sends_block_each_other(const struct myri_experiment *x)
{
    const char *name = x->system->name;
    if (x->measure != MYRI_BOTH_RATE)
        return 0;
    if (strncmp(name, "bip", 3) == 0) /* short ones go into a ring, others wait for a receive */
        return x->bytes > x->system->several_most;
    uint32_t page = (uint32_t)x->machine.v[MYRI_M_page], unit = x->packet ? x->packet : x->system->piece;
    if (x->system->by_page && unit > page)
        unit = page;
    uint32_t buffers = x->buffers ? x->buffers : x->system->buffers_most;
    if (x->count > 1)
        buffers--; /* the last one of a message is given back when the next one is asked for */
    return strncmp(name, "pm", 2) == 0 && (x->bytes + unit - 1) / unit > buffers;
}

/* An experiment that was not refused came to no figure: only for these reasons. Anything else is a message, a credit or
 * a wake-up that the model loses. */
static int is_known(const struct myri_experiment *x, const char *why)
{
    static const struct {
        const char *system, *why; /* names that begin so; words of the sentence */
    } faults[] = {
        {"bip", "its ring is overrun"},                                    /* it has no credits */
        {"fm1-bus", "its ring is overrun"},                                /* FM 1.1 before its flow control */
        {"mpi-fm1", "messages is full, and FM 1.1 hands over what comes"}, /* nor a choice */
        {"panda", "Panda keeps"}, /* a program that is slower than the others' calls; nothing holds them back */
        {"panda", "message objects are kept or come"},
        {"orca", "Panda keeps"},
        {"orca", "message objects are kept or come"},
    };
    if (x->bad_per_2_32)
        return 1;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (strncmp(x->system->name, faults[i].system, strlen(faults[i].system)) == 0 && strstr(why, faults[i].why))
            return 1;
    if (!strstr(why, " tasks wait, and nothing more happens"))
        return 0;
    return x->system->lossy || sends_block_each_other(x);
}

static int one(void)
{
    struct myri_experiment x;
    struct myri_outcome a, b;
    draw(&x);
    int rc = myri_experiment_run(&x, &a);
    if (rc < 0) {
        char why[sizeof rnl_last_error()->text];
        snprintf(why, sizeof why, "%s", rnl_last_error()->text);
        MUST(why[0] != 0);
        if (rc != RNL_ERR_ARG && !is_known(&x, why)) {
            fprintf(stderr, "%s, %s, %u bytes: %s\n", x.system->name, myri_measure_name(x.measure), x.bytes, why);
            MUST(!"it ends for a reason of the list");
        }
        if (rc != RNL_ERR_ARG || below(8) == 0) { /* most are refused at once */
            MUST(myri_experiment_run(&x, &b) == rc);
            MUST(strcmp(why, rnl_last_error()->text) == 0);
        }
        if (getenv("RNL_TEST_SAY"))
            printf("%llu %s %s %u: %d %s\n", (unsigned long long)seed, x.system->name, myri_measure_name(x.measure),
                   x.bytes, rc, why);
        return 0;
    }
    if (getenv("RNL_TEST_SAY"))
        printf("%llu %s %s %u: %g %s\n", (unsigned long long)seed, x.system->name, myri_measure_name(x.measure),
               x.bytes, a.value, myri_measure_unit(x.measure));
    MUST(isfinite(a.value) && a.value >= 0);
    MUST(a.count.packets_received <= a.count.packets_sent && a.count.bytes_received <= a.count.bytes_sent);
    MUST(a.received <= a.sent);
    if (!x.system->lossy && !x.system->overwrites) /* a stream of VMMC's overwrites one place */
        MUST(a.received == a.sent && a.wrong == 0);
    MUST(myri_experiment_run(&x, &b) == 0);
    MUST(memcmp(&a.value, &b.value, sizeof a.value) == 0 && a.end_ps == b.end_ps && a.events == b.events);
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 150, first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    static const uint64_t found[] = {780, 1080, 1138, 2448, 2846, 5124}; /* seeds that came upon what was wrong once */
    uint64_t figures = 0;
    for (seed = first; seed < first + n; seed++)
        figures += (uint64_t)one();
    for (size_t i = 0; argc == 1 && i < sizeof found / sizeof found[0]; i++) {
        seed = found[i];
        (void)one();
    }
    printf("ok - %llu experiments, %llu of them with a figure\n", (unsigned long long)n, (unsigned long long)figures);
    return figures ? 0 : 1;
}
