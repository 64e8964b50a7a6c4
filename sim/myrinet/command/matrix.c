/* SPDX-License-Identifier: BSD-3-Clause
 *
 * matrix.c - `runnel paper matrix`: the survey's six issues, and what they come to when all systems run on one
 * machine. */
#include "sim/myrinet/command/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct issues {
    const char *system, *transfer, *translation, *protection, *control, *reliability, *multicast;
} issues[] = {
    {"simple", "DMA, staging area", "offset in area", "none", "poll", "none: drops", "no"},
    {"fm1", "stores", "none to send", "none", "poll", "host credits", "no"},
    {"fm2", "stores, combined", "none to send", "none", "poll", "host credits", "no"},
    {"vmmc", "stores to 128 B, DMA", "TLB on card", "yes", "both", "back-pressure", "no"},
    {"bip", "stores to 1 KB, DMA", "user does", "none", "poll", "rendezvous", "no"},
    {"pm", "DMA, own buffers", "none to send", "gang", "poll", "card ACK/NACK", "yes"},
};

static int one(const struct myri_cmd_options *o, const char *system, enum myri_measure m, uint32_t bytes, double *out)
{
    const struct myri_cmd_figure f = {.over = "size"};
    struct myri_cmd_curve c = {
        .label = system, .system = system, .machine = o->machine ? o->machine : "H-PP", .measure = m};
    return myri_cmd_point(o, &f, &c, bytes, out);
}

/* Of four senders of 128 bytes to a receiver that computes; NAN where that ends in a fault. */
static double overload(const struct myri_cmd_options *o, const struct myri_machine *machine, const char *system,
                       enum myri_measure m)
{
    enum { SENDERS = 4, MESSAGES = 100, SLOW_US = 20 };
    struct myri_experiment x;
    struct myri_outcome out;
    myri_experiment_init(&x, myri_system_find(system), machine, m, 128);
    myri_cmd_prepare(o, &x);
    x.senders = SENDERS;
    x.slow_us = SLOW_US;
    if (!o->count)
        x.count = MESSAGES;
    return myri_experiment_run(&x, &out) < 0 ? NAN : out.value;
}

int myri_cmd_matrix(struct myri_cmd_options *o)
{
    struct myri_machine machine;
    int rc = myri_cmd_machine_for(o, "H-PP", &machine);
    if (rc)
        return rc;
    if (o->json)
        putchar('[');
    else
        printf(
            "on %s; us: one way of 4 bytes, a send of 4 bytes at its host; MB/s: ping-pong of 1 KB and 64 KB, of\n"
            "overload (four senders of 128 bytes to a receiver that computes 20 us for each: what its program gets,\n"
            "and bytes on the wire for each byte of that; BIP's ring is overrun). Overload is a what-if: no published\n"
            "figure validates more than two hosts.\n\n"
            "%-7s %-20s %-14s %-10s %-7s %-13s %-8s %7s %5s %5s %5s %8s %5s\n",
            machine.name, "system", "host to card", "translation", "protection", "control", "reliability", "to many",
            "one-way", "send", "1 KB", "64 KB", "overload", "wire");
    for (size_t i = 0; i < sizeof issues / sizeof issues[0]; i++) {
        const struct issues *s = &issues[i];
        double longest = strcmp(s->system, "fm1") == 0 ? 32768 : 65536;
        double v[4];
        rc = one(o, s->system, MYRI_ONE_WAY, 4, &v[0]);
        rc = rc ? rc : one(o, s->system, MYRI_SEND_COST, 4, &v[1]);
        rc = rc ? rc : one(o, s->system, MYRI_PING_RATE, 1024, &v[2]);
        rc = rc ? rc : one(o, s->system, MYRI_PING_RATE, (uint32_t)longest, &v[3]);
        if (rc)
            return rc;
        double goodput = overload(o, &machine, s->system, MYRI_GOODPUT),
               wire = overload(o, &machine, s->system, MYRI_WIRE_COST);
        if (o->json) {
            printf("%s\n  {\"system\": \"%s\", \"one_way_us\": %.4g, \"send_us\": %.4g, \"rate_1k\": %.4g, "
                   "\"rate_long\": %.4g",
                   i ? "," : "", s->system, v[0], v[1], v[2], v[3]);
            if (!isnan(goodput))
                printf(", \"overload\": %.4g, \"overload_wire\": %.4g", goodput, wire);
            putchar('}');
            continue;
        }
        printf("%-7s %-20s %-14s %-10s %-7s %-13s %-8s %7.2f %5.2f %5.1f %5.1f ", s->system, s->transfer,
               s->translation, s->protection, s->control, s->reliability, s->multicast, v[0], v[1], v[2], v[3]);
        if (isnan(goodput))
            printf("%8s %5s\n", "fault", "-");
        else
            printf("%8.2f %5.2f\n", goodput, wire);
    }
    if (o->json)
        puts("\n]");
    return 0;
}
